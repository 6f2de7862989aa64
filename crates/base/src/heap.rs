//! How the blocks of memory lie that the allocator has handed out, so that those which keep nearly
//! empty pages from going back to the machine can be allocated anew.
//!
//! An allocator cuts small blocks of one size from the same pages. When many of a size are freed,
//! and what comes next is of another, the pages stay with a few blocks each: memory that is neither
//! used nor free. Only who knows what refers to a block can move it.

/// The small blocks of all sizes. All 0 where the allocator does not tell.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Holes {
    /// Bytes in blocks that are handed out.
    pub used_bytes: u64,
    /// Bytes between them, in the same pages.
    pub lost_bytes: u64,
}

impl Holes {
    /// How many bytes are lost for each hundred that are used.
    pub fn percent(self) -> u64 {
        (self.lost_bytes * 100).checked_div(self.used_bytes).unwrap_or(0)
    }
}

/// Whether a block is to be moved to the other of two memories.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Misplaced {
    No,
    /// Yes, whoever uses it.
    Yes,
    /// Some of its size are to go to slow memory, rather those that are idle.
    IfIdle,
    /// Some of its size are to come to ordinary memory, rather those that are used.
    IfUsed,
}

/// An allocator that tells where blocks lie.
pub trait Heap: Send + Sync {
    /// The last figures. Stock is taken at once, or beside, on a thread: then they are those of
    /// when this was asked last. What is asked about blocks until the next time rests on them.
    fn survey(&self) -> Holes;

    /// Whether blocks of these sizes, in bytes, leave holes: only then is it worth asking about
    /// one.
    fn has_holes(&self, bytes: std::ops::RangeInclusive<usize>) -> bool;

    /// Whether the block at this address should be allocated anew: its pages are emptier than those
    /// of most blocks of its size. False of large blocks, which have pages of their own.
    fn is_sparse(&self, address: usize) -> bool;

    /// Whether blocks of values are to be moved between ordinary and slow memory: only then is it
    /// worth asking about one.
    fn wants_moves(&self) -> bool {
        false
    }

    /// Whether the block at this address, of so many bytes, is to be moved to the other memory.
    fn misplaced(&self, _address: usize, _bytes: usize) -> Misplaced {
        Misplaced::No
    }

    /// Has freed pages go back to the machine when nobody wanted them for so long, in milliseconds;
    /// `None`: as long as the process keeps them by default.
    fn keep_freed(&self, millis: Option<u64>);

    /// Runs `work`, in which a block that is freed is not what the next one is made of: whoever
    /// moves blocks would be given the holes that it makes.
    fn moving(&self, work: &mut dyn FnMut());
}
