//! Live bytes, by size class and memory.
//!
//! Blocks are freed on other threads than allocated them, so the counts are atomic. Nothing is
//! ordered by them: who reads one a moment too early places a block by what was true before.

use super::Memory;
use super::classes::{CLASSES, class_of};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Live bytes of some blocks.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Bytes {
    pub fast: u64,
    pub slow: u64,
}

impl Bytes {
    pub fn all(self) -> u64 {
        self.fast + self.slow
    }

    pub fn plus(self, other: Self) -> Self {
        Self { fast: self.fast + other.fast, slow: self.slow + other.slow }
    }
}

#[derive(Debug)]
struct Count {
    fast: AtomicU64,
    slow: AtomicU64,
}

impl Count {
    const fn new() -> Self {
        Self { fast: AtomicU64::new(0), slow: AtomicU64::new(0) }
    }

    fn of(&self, memory: Memory) -> &AtomicU64 {
        match memory {
            Memory::Fast => &self.fast,
            Memory::Slow => &self.slow,
        }
    }

    fn read(&self) -> Bytes {
        Bytes { fast: self.fast.load(Relaxed), slow: self.slow.load(Relaxed) }
    }
}

#[derive(Debug)]
pub(super) struct Counts {
    classes: [Count; CLASSES],
    totals: Count,
    /// Blocks of tables: they lie where no size decides, and belong to the whole all the same.
    tables: Count,
    /// Other fast bytes that belong to the whole, set by who knows of them.
    others: AtomicU64,
}

/// What was live at one moment, but for changes that other threads made meanwhile.
pub(super) struct Live {
    pub classes: [Bytes; CLASSES],
    /// The sums of the classes.
    pub blocks: Bytes,
    pub beside: Bytes,
    /// Both.
    pub sum: Bytes,
}

impl Live {
    pub fn all(&self) -> u64 {
        self.sum.all()
    }
}

impl Counts {
    pub const fn new() -> Self {
        Self {
            classes: [const { Count::new() }; CLASSES],
            totals: Count::new(),
            tables: Count::new(),
            others: AtomicU64::new(0),
        }
    }

    pub fn set_others(&self, bytes: u64) {
        self.others.store(bytes, Relaxed);
    }

    pub fn add_table(&self, bytes: usize, memory: Memory) {
        self.tables.of(memory).fetch_add(bytes as u64, Relaxed);
    }

    pub fn remove_table(&self, bytes: usize, memory: Memory) {
        let before = self.tables.of(memory).fetch_sub(bytes as u64, Relaxed);
        assert!(before >= bytes as u64, "a block is taken out as it was put in");
    }

    pub fn tables(&self) -> Bytes {
        self.tables.read()
    }

    /// What is beside blocks of values.
    fn beside(&self) -> Bytes {
        self.tables().plus(Bytes { fast: self.others.load(Relaxed), slow: 0 })
    }

    /// Returns all bytes of the memory.
    #[inline]
    pub fn add(&self, bytes: usize, memory: Memory) -> u64 {
        let bytes = bytes as u64;
        self.classes[class_of(bytes as usize)].of(memory).fetch_add(bytes, Relaxed);
        self.totals.of(memory).fetch_add(bytes, Relaxed) + bytes
    }

    /// Returns all bytes of the memory.
    #[inline]
    pub fn remove(&self, bytes: usize, memory: Memory) -> u64 {
        let bytes = bytes as u64;
        self.classes[class_of(bytes as usize)].of(memory).fetch_sub(bytes, Relaxed);
        // A block that was never put in would falsify the share for good.
        let before = self.totals.of(memory).fetch_sub(bytes, Relaxed);
        before.checked_sub(bytes).expect("a block is taken out as it was put in")
    }

    #[inline]
    pub fn of_class(&self, bytes: usize) -> Bytes {
        self.classes[class_of(bytes)].read()
    }

    /// All bytes of blocks.
    #[inline]
    pub fn blocks(&self) -> Bytes {
        self.totals.read()
    }

    /// The same with what is beside them.
    pub fn totals(&self) -> Bytes {
        self.blocks().plus(self.beside())
    }

    pub fn read(&self) -> Live {
        let classes = std::array::from_fn(|class| self.classes[class].read());
        let blocks = classes.iter().fold(Bytes::default(), |sum, class| sum.plus(*class));
        let beside = self.beside();
        Live { classes, blocks, beside, sum: blocks.plus(beside) }
    }
}
