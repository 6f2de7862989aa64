//! The size from which on blocks are slow, and the class that it divides.

use super::Memory;
use super::classes::class_of;

/// Parts of a class, by the upper bits of hashes. With 64 of them, the nearest end of a part is off
/// by 0.8 % of the class's bytes, which leaves room within [`super::BAND_PERCENT`].
/// More would be finer than blocks are: a thousand of them divide by a percent or two.
pub(super) const PARTS: usize = 64;
const PART_BITS: u32 = PARTS.ilog2();

/// Where a block is counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub class: usize,
    pub part: usize,
}

impl Cell {
    /// The upper bits of the hashes must be evenly mixed among the blocks of a shard.
    pub fn of(bytes: usize, hash: u64) -> Self {
        Self { class: class_of(bytes), part: (hash >> (u64::BITS - PART_BITS)) as usize }
    }
}

/// Slow are the blocks of `class` and above, and of the class below it those of the first `parts`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Threshold {
    pub class: usize,
    pub parts: usize,
}

impl Threshold {
    pub fn wants(self, cell: Cell) -> Memory {
        let is_divided = cell.class + 1 == self.class && cell.part < self.parts;
        if cell.class >= self.class || is_divided { Memory::Slow } else { Memory::Fast }
    }
}
