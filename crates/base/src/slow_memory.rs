//! Memory that is slower than the ordinary one: how values are divided between both, and who
//! divides them. The words are memKeyDB's: *DRAM* is the ordinary memory, *pmem* the slow one, of
//! whatever kind it is.

use std::fmt;

/// Slow nodes that are used, at most. A guess: machines have one, or one beside each of two
/// sockets.
pub const NODES_MAX: usize = 4;

/// Which values lie where (`memory-alloc-policy`). Sizes are those of blocks, as the allocator
/// takes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MemoryPolicy {
    #[default]
    OnlyDram,
    OnlyPmem,
    /// Blocks from this size on are slow.
    Threshold {
        bytes: usize,
    },
    /// So many bytes are slow that both are to each other as these numbers, which are not 0.
    Ratio {
        dram: u32,
        pmem: u32,
        /// The threshold until there are values to go by.
        first_bytes: usize,
        /// Blocks of fewer bytes are never slow.
        min_bytes: usize,
        /// Blocks of so many bytes always are.
        max_bytes: usize,
    },
}

/// How values are divided now.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoryDivision {
    /// Bytes of values and tables in slow memory.
    pub pmem_bytes: u64,
    /// The size from which on a block is slow; of the size class below it a part may be.
    pub threshold_bytes: usize,
    /// Slow memory has next to none left, so that what would be more lies in the ordinary one.
    pub is_pmem_full: bool,
}

/// Divides values between the memories of a process that has both.
pub trait SlowMemoryKeeper: fmt::Debug + Send + Sync {
    fn division(&self) -> MemoryDivision;

    /// Looks at what there is, and at how much room: to be called periodically. It takes some tens
    /// of microseconds. `used_bytes` are those of both memories, as INFO shows them: a ratio is one
    /// of all that is used, and not of values alone.
    fn tend(&self, used_bytes: u64);

    /// Divides by another policy from now on.
    fn divide_by(&self, policy: MemoryPolicy);
}
