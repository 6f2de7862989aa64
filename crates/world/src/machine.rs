//! The process as Linux describes it under `/proc` (man 5 proc).

use crate::descriptors::Room;
use crate::net::Listeners;
use crate::tls::Tls;
use base::heap::Heap;
use base::machine::{AllocatorUsage, Identity, KeyHolder, Listening, Machine, Usage};
use base::slow_memory::SlowMemoryKeeper;
use base::tls::TlsSettings;
use std::fs;
use std::net::UdpSocket;
use std::sync::Arc;

/// Reads `/proc`; the allocator, which the binary chooses, is asked through functions of the
/// binary.
#[derive(Clone)]
pub struct RealMachine {
    /// The TLS configurations, shared with the network driver.
    pub tls: Arc<Tls>,
    /// The keys of encryption at rest.
    pub keys: Arc<dyn KeyHolder>,
    /// The sockets that take connections.
    pub listeners: Arc<Listeners>,
    /// Who divides values between ordinary and slow memory, if there is some.
    pub slow_memory: Option<Arc<dyn SlowMemoryKeeper>>,
    pub allocator_name: &'static str,
    pub allocator_usage: fn() -> AllocatorUsage,
    pub allocator_purge: fn(),
    pub allocator_report: fn() -> String,
    /// How blocks lie, if the allocator tells.
    pub heap: Option<Arc<dyn Heap>>,
}

impl Machine for RealMachine {
    fn usage(&self) -> Usage {
        let process = Times::read("/proc/self/stat").unwrap_or_default();
        let thread = Times::read("/proc/thread-self/stat").unwrap_or_default();
        Usage {
            resident_bytes: process.resident_pages * rustix::param::page_size() as u64,
            memory_bytes: memory_bytes().unwrap_or(0),
            user_micros: process.user_micros,
            system_micros: process.system_micros,
            thread_user_micros: thread.user_micros,
            thread_system_micros: thread.system_micros,
            allocator: (self.allocator_usage)(),
        }
    }

    fn identity(&self) -> Identity {
        let system = rustix::system::uname();
        let word = |text: &std::ffi::CStr| text.to_string_lossy().into_owned();
        let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
        Identity {
            process_id: std::process::id(),
            executable: executable.to_string_lossy().into_owned(),
            operating_system: format!(
                "{} {} {}",
                word(system.sysname()),
                word(system.release()),
                word(system.machine())
            ),
            address_v4: way_out("0.0.0.0:0", "192.0.2.1:9"),
            address_v6: way_out("[::]:0", "[2001:db8::1]:9"),
        }
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        crate::entropy::fill_random(bytes);
    }

    fn speak_tls(&self, settings: &TlsSettings) -> Result<(), String> {
        self.tls.adopt(settings)
    }

    fn keys(&self) -> Option<&dyn KeyHolder> {
        Some(&*self.keys)
    }

    fn slow_memory(&self) -> Option<&dyn SlowMemoryKeeper> {
        self.slow_memory.as_deref()
    }

    fn listen(&self, listening: &Listening) -> Result<(), String> {
        self.listeners.reopen(listening).map_err(|error| error.to_string())
    }

    fn heap(&self) -> Option<Arc<dyn Heap>> {
        self.heap.clone()
    }

    fn clients_max(&self) -> usize {
        Room::of_process().clients_max()
    }

    fn purge(&self) {
        (self.allocator_purge)();
    }

    fn allocator_name(&self) -> &'static str {
        self.allocator_name
    }

    fn allocator_report(&self) -> String {
        (self.allocator_report)()
    }
}

/// The address on the way to everybody else. A socket for datagrams takes it when it is told where
/// they would go; none is sent. The far addresses are for documentation (RFC 5737, RFC 3849):
/// nobody has them, so they lie where the default route leads.
fn way_out(here: &str, far: &str) -> Option<String> {
    let socket = UdpSocket::bind(here).ok()?;
    socket.connect(far).ok()?;
    let address = socket.local_addr().ok()?.ip();
    let leads_out = !address.is_loopback() && !address.is_unspecified();
    leads_out.then(|| address.to_string())
}

#[derive(Default, Debug)]
struct Times {
    user_micros: u64,
    system_micros: u64,
    resident_pages: u64,
}

impl Times {
    fn read(path: &str) -> Option<Self> {
        #[allow(clippy::disallowed_methods, reason = "this is world")]
        let text = fs::read_to_string(path).ok()?;
        Self::parse(&text)
    }

    /// Reads the line of `stat`. Its second field is a name that may hold anything, in parentheses.
    fn parse(line: &str) -> Option<Self> {
        let (_, fields) = line.rsplit_once(')')?;
        let fields: Vec<u64> =
            fields.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        // The first field here is the third of the page; times are in hundredths of a second.
        let micros_per_tick = 1_000_000 / rustix::param::clock_ticks_per_second();
        Some(Self {
            user_micros: fields.get(11)? * micros_per_tick,
            system_micros: fields.get(12)? * micros_per_tick,
            resident_pages: *fields.get(21)?,
        })
    }
}

fn memory_bytes() -> Option<u64> {
    #[allow(clippy::disallowed_methods, reason = "this is world")]
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    line.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct NoKeys;

    impl KeyHolder for NoKeys {
        fn read(&self, _: &std::path::Path) -> Result<(), String> {
            Err("there are none".to_owned())
        }

        fn put_back(&self) {}

        fn current(&self) -> Option<String> {
            None
        }
    }

    fn machine() -> RealMachine {
        RealMachine {
            tls: Arc::default(),
            keys: Arc::new(NoKeys),
            slow_memory: None,
            listeners: Arc::default(),
            allocator_name: "none",
            allocator_usage: AllocatorUsage::default,
            allocator_purge: || {},
            allocator_report: String::new,
            heap: None,
        }
    }

    #[test]
    fn usage_of_this_process_is_plausible() {
        let usage = machine().usage();
        assert!(usage.resident_bytes > 100_000, "{usage:?}");
        assert!(usage.memory_bytes > usage.resident_bytes, "{usage:?}");
        assert_eq!(machine().identity().process_id, std::process::id());
    }

    #[test]
    fn a_name_with_parentheses_does_not_shift_the_fields() {
        let fields = (4..=52).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        let times = Times::parse(&format!("7 (a) b) S {fields}")).unwrap();
        assert_eq!(times.resident_pages, 24);
        assert_eq!(times.user_micros, 14 * 1_000_000 / rustix::param::clock_ticks_per_second());
    }
}
