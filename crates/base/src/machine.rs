//! What the process is and what it uses of its machine, as INFO shows it.

use crate::tls::TlsSettings;

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

/// Tells about the process and its machine.
pub trait Machine: Send + Sync {
    /// May take some microseconds: for INFO and the periodic work, not for commands.
    fn usage(&self) -> Usage;
    fn identity(&self) -> Identity;
    /// Fills with bits that nobody can guess, for passwords.
    fn fill_random(&self, bytes: &mut [u8]);
    /// Speaks TLS from now on as these settings say, on connections that are accepted later.
    ///
    /// # Errors
    /// What is wrong with the settings, or with a file. Then everything is as before.
    fn speak_tls(&self, _: &TlsSettings) -> Result<(), String> {
        Ok(())
    }
    /// Gives memory that the allocator keeps for later back to the machine (MEMORY PURGE).
    fn purge(&self) {}
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
}
