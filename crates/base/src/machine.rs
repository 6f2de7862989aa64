//! What the process is and what it uses of its machine, as INFO shows it.

use crate::heap::Heap;
use crate::slow_memory::SlowMemoryKeeper;
use crate::tls::TlsSettings;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// What the process uses now. 0 where the machine does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Memory of the process that lies in RAM, in bytes.
    pub resident_bytes: u64,
    /// Memory of the machine, in bytes.
    pub memory_bytes: u64,
    /// Processor time of the process in user and in kernel mode, in microseconds.
    pub user_micros: u64,
    pub system_micros: u64,
    /// The same of the calling thread.
    pub thread_user_micros: u64,
    pub thread_system_micros: u64,
    pub allocator: AllocatorUsage,
}

/// What the allocator holds, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AllocatorUsage {
    /// Handed out to the program.
    pub allocated: u64,
    /// In pages with at least one allocation.
    pub active: u64,
    /// In RAM, pages kept for later included.
    pub resident: u64,
}

/// What does not change while the process lives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    pub process_id: u32,
    /// Absolute path of the program.
    pub executable: String,
    /// Name, release and architecture of the operating system.
    pub operating_system: String,
    /// The IPv4 address that others see when this machine speaks to a far one, if it can.
    pub address_v4: Option<String>,
    /// The same for IPv6.
    pub address_v6: Option<String>,
}

/// Where a server listens for TCP connections, in the words of redis.conf. A port of 0 is none.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Listening {
    pub bind: Vec<String>,
    pub port: u16,
    pub tls_port: u16,
}

/// Holds the master keys with which what is written is encrypted.
pub trait KeyHolder: fmt::Debug + Send + Sync {
    /// Reads them anew. What is written from now on is encrypted with the first of them.
    ///
    /// # Errors
    /// A text that names the file and what is wrong. The keys in force then stay.
    fn read(&self, file: &Path) -> Result<(), String>;

    /// Takes the keys again that were in force before the last [`Self::read`] that succeeded.
    fn put_back(&self);

    /// The name of the key that encrypts; `None` if nothing is encrypted.
    fn current(&self) -> Option<String>;
}

/// Tells about the process and its machine.
pub trait Machine: Send + Sync {
    /// May take some microseconds: for INFO and the periodic work, not for commands.
    fn usage(&self) -> Usage;
    fn identity(&self) -> Identity;
    /// Fills with bits that nobody can guess, for passwords.
    fn fill_random(&self, bytes: &mut [u8]);
    /// Puts TLS settings in force, for connections that begin later.
    ///
    /// # Errors
    /// A text that names the bad setting or file. The settings in force then stay.
    fn speak_tls(&self, _: &TlsSettings) -> Result<(), String> {
        Ok(())
    }
    /// Holds the keys of encryption at rest, where there may be some.
    fn keys(&self) -> Option<&dyn KeyHolder> {
        None
    }
    /// Listens there from now on, and nowhere else but on a Unix socket. Connections stay.
    ///
    /// # Errors
    /// Why it cannot be. Then it listens where it did before.
    fn listen(&self, _: &Listening) -> Result<(), String> {
        Ok(())
    }
    /// How many clients there is room for, whatever `maxclients` says: each takes a file
    /// descriptor.
    fn clients_max(&self) -> usize {
        usize::MAX
    }
    /// Gives memory that the allocator keeps for later back to the machine (MEMORY PURGE).
    fn purge(&self) {}
    /// Who divides values between ordinary and slow memory, where there is slow memory.
    fn slow_memory(&self) -> Option<&dyn SlowMemoryKeeper> {
        None
    }
    /// Bytes that an interpreter of scripts takes, as INFO tells them, where its allocator counted
    /// so many. The count is the process's own: how Lua's tables grow depends on the addresses that
    /// they have for keys.
    fn interpreter_bytes(&self, counted: usize) -> usize {
        counted
    }
    /// The allocator, if it tells where blocks lie.
    fn heap(&self) -> Option<Arc<dyn Heap>> {
        None
    }
    /// The allocator, as INFO calls it. Of a machine that does not say, the one of a release.
    fn allocator_name(&self) -> &'static str {
        "jemalloc-5.3.1"
    }
    /// The allocator's own report (MEMORY MALLOC-STATS).
    fn allocator_report(&self) -> String {
        String::new()
    }
}

/// A machine that tells nothing: simulations, tests.
#[derive(Clone, Copy, Default, Debug)]
pub struct UnknownMachine;

impl Machine for UnknownMachine {
    fn usage(&self) -> Usage {
        Usage::default()
    }
    fn identity(&self) -> Identity {
        Identity::default()
    }
    /// Nothing is secret here, and a run must be the same each time.
    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
    fn interpreter_bytes(&self, _: usize) -> usize {
        0
    }
}
