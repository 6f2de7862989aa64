//! Which blocks lie in slow memory, so that a chosen share of all bytes does.
//!
//! Large blocks go to slow memory and small ones stay: a large one costs one slow access for many
//! bytes. So there is a *threshold*, a size from which on blocks are slow. It is not approached in
//! steps but computed, from the live bytes of each size class: whatever speed a load has, the share
//! is right at each moment of it. The class at the threshold is divided by bits of the blocks'
//! hashes, so that blocks of a single size are divided, too.
//!
//! ```text
//! live bytes   ▂▂▂▃▃▂▅▅▇▇▇▃▃▂▁▁
//! size class   16 B     ▲      1 GiB
//!                 fast  │ slow        a part of the class at ▲, by hash: slow too
//! ```
//!
//! When what is stored changes, blocks lie on the wrong side. They are moved, in one direction,
//! until the share is within its band; there, none is moved for being on the wrong side. What a
//! threshold is predicted to bring does not depend on where blocks lie, and it changes only for a
//! prediction that is clearly better, so nothing goes back and forth.
//!
//! **How it is driven.** [`Ratio::place`] says where a new block goes; it is told of every block
//! ([`Ratio::add`], [`Ratio::remove`], [`Ratio::moved`]) by what allocates and frees values, with
//! the bytes that the allocator takes for it and a hash that stays the same through its life, such
//! as its key's. A block that grows is removed and added. While [`Ratio::wants_moves`], the walk
//! that ages keys asks about each block that it meets ([`Ratio::wish`]), allocates it anew where
//! the answer says, and tells of it; so many bytes a turn as its limits allow. Where that memory is
//! full, it is for the walk to rest: a wish stays as long as its reason. No clock is needed.
//!
//! Absent on purpose: memory itself, and which nodes are slow (`world::numa`); blocks that are
//! never slow, such as tables, keys and trees, which are not told of here.
//!
//! memKeyDB's names: `dram-pmem-ratio` is [`Share::of_ratio`], `dynamic-threshold-min` and `-max`
//! are those of [`Bounds`], `pmem_threshold` is [`Ratio::threshold_bytes`]. There it goes by steps,
//! each 100 ms, and places new blocks alone: loads outrun it, and old blocks stay where they are.

mod classes;
mod threshold;

use classes::{CLASSES, class_bytes, class_from};
use threshold::{Cell, PARTS, Threshold};

/// The memory that a block lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    Fast,
    Slow,
}

/// A part of all bytes, in units of 2⁻²⁰: computed at each allocation, without a division.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share(u32);

impl Share {
    const BITS: u32 = 20;

    /// The slow part where fast and slow bytes are to each other as these numbers. None of 0 to 0.
    pub fn of_ratio(fast: u32, slow: u32) -> Option<Self> {
        let part = (u64::from(slow) << Self::BITS).checked_div(u64::from(fast) + u64::from(slow));
        part.map(|part| Self(part as u32))
    }

    fn of(self, bytes: u64) -> u64 {
        ((u128::from(bytes) * u128::from(self.0)) >> Self::BITS) as u64
    }
}

/// Blocks below `min_bytes` are never slow, those from `max_bytes` on always, whatever becomes of
/// the share. Both are rounded up to a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bounds {
    pub min_bytes: usize,
    pub max_bytes: usize,
}

/// The slow share may be off by so much of all bytes before blocks are moved for it.
const BAND_PERCENT: u64 = 2;

/// Moving goes on until it is off by no more than this, so that it does not begin again at once.
const MOVED_UNTIL_PERCENT: u64 = 1;

/// A threshold changes if that brings the predicted share nearer by more than this. Well below
/// [`BAND_PERCENT`], so that the threshold that stays is not what keeps the share outside.
const GAIN_PERCENT: u64 = 1;

/// The threshold is computed anew when so much was allocated and freed. That takes some hundred
/// additions, and thousands if it changes. The floor spares a shard that holds next to nothing.
const CHANGED_PERCENT: u64 = 1;
const CHANGED_BYTES_MIN: u64 = 64 << 10;

/// The same, in thousandths, while there is nothing to move though the share is about to leave its
/// band. Then any gain is worth another threshold.
const STUCK_PERMILLE: u64 = 1;
const STUCK_BYTES_MIN: u64 = 4 << 10;

/// Live bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Bytes {
    fast: u64,
    slow: u64,
}

impl Bytes {
    fn of(&mut self, memory: Memory) -> &mut u64 {
        match memory {
            Memory::Fast => &mut self.fast,
            Memory::Slow => &mut self.slow,
        }
    }

    fn all(self) -> u64 {
        self.fast + self.slow
    }
}

/// Knows all blocks by size, and says where each belongs. One of a shard; about 110 KB.
#[derive(Debug)]
pub struct Ratio {
    share: Share,
    bounds: Bounds,
    threshold: Threshold,
    cells: Box<[[Bytes; PARTS]; CLASSES]>,
    /// The sums of the rows above.
    classes: [u64; CLASSES],
    all: Bytes,
    /// Bytes that lie in fast memory and should not, and likewise of slow memory.
    misplaced: Bytes,
    /// Allocated and freed since the threshold was computed.
    changed: u64,
    /// The share was outside of its band, and is not yet well within.
    moves: bool,
}

impl Ratio {
    /// Of no blocks yet. As far as the bounds allow all are fast until there is something to go by.
    pub fn new(share: Share, bounds: Bounds) -> Self {
        Self {
            share,
            bounds,
            threshold: Threshold { class: class_from(bounds.max_bytes), parts: 0 },
            cells: Box::new([[Bytes::default(); PARTS]; CLASSES]),
            classes: [0; CLASSES],
            all: Bytes::default(),
            misplaced: Bytes::default(),
            changed: 0,
            moves: false,
        }
    }

    /// Another share or other bounds from now on (CONFIG SET). What lies wrong then is to be moved.
    pub fn set(&mut self, share: Share, bounds: Bounds) {
        (self.share, self.bounds) = (share, bounds);
        // Whether or not it is better: the one in force may be outside of the bounds.
        self.adopt(self.best());
        self.settle();
    }

    /// Where a new block belongs.
    pub fn place(&self, bytes: usize, hash: u64) -> Memory {
        self.threshold.wants(Cell::of(bytes, hash))
    }

    /// A block was allocated, wherever that was possible.
    pub fn add(&mut self, bytes: usize, hash: u64, memory: Memory) {
        let cell = Cell::of(bytes, hash);
        self.each_sum(cell, memory, |sum| *sum += bytes as u64);
        self.classes[cell.class] += bytes as u64;
        self.change(bytes);
    }

    /// A block was freed, which was added with the same words.
    pub fn remove(&mut self, bytes: usize, hash: u64, memory: Memory) {
        let cell = Cell::of(bytes, hash);
        self.each_sum(cell, memory, |sum| take(sum, bytes));
        take(&mut self.classes[cell.class], bytes);
        self.change(bytes);
    }

    /// A block lies in `to` now, and lay in the other memory before.
    pub fn moved(&mut self, bytes: usize, hash: u64, to: Memory) {
        let cell = Cell::of(bytes, hash);
        let from = if to == Memory::Slow { Memory::Fast } else { Memory::Slow };
        self.each_sum(cell, from, |sum| take(sum, bytes));
        self.each_sum(cell, to, |sum| *sum += bytes as u64);
        self.settle();
    }

    /// Whether some blocks should be moved now, so that it is worth asking [`Self::wish`].
    pub fn wants_moves(&self) -> bool {
        self.moves
    }

    /// Where a block should be moved to now; none if it should stay.
    pub fn wish(&self, bytes: usize, hash: u64, memory: Memory) -> Option<Memory> {
        let to = self.place(bytes, hash);
        (self.moves && to != memory && to == self.direction()).then_some(to)
    }

    /// The size from which on all blocks are slow; of the class below it a part may be.
    pub fn threshold_bytes(&self) -> usize {
        class_bytes(self.threshold.class)
    }

    /// All live bytes.
    pub fn live_bytes(&self) -> u64 {
        self.all.all()
    }

    /// Of these, the bytes in slow memory.
    pub fn slow_bytes(&self) -> u64 {
        self.all.slow
    }

    /// Applies a change to every sum that a block is counted in, but for those by class.
    fn each_sum(&mut self, cell: Cell, memory: Memory, change: impl Fn(&mut u64)) {
        change(self.cells[cell.class][cell.part].of(memory));
        change(self.all.of(memory));
        if self.threshold.wants(cell) != memory {
            change(self.misplaced.of(memory));
        }
    }

    fn change(&mut self, bytes: usize) {
        self.changed += bytes as u64;
        let all = self.all.all();
        if self.changed >= (all / 100 * CHANGED_PERCENT).max(CHANGED_BYTES_MIN) {
            self.solve(all / 100 * GAIN_PERCENT);
        }
        self.settle();
    }

    /// Decides whether blocks are to be moved, and looks for a better threshold where that is no
    /// help.
    fn settle(&mut self) {
        self.moves = self.needs_moves();
        let all = self.all.all();
        // Before it is outside, since it goes on to drift until so much has changed again.
        let near = all / 1000 * (10 * BAND_PERCENT - STUCK_PERMILLE);
        let is_stuck = !self.moves && self.off() > near;
        if is_stuck && self.changed >= (all / 1000 * STUCK_PERMILLE).max(STUCK_BYTES_MIN) {
            self.solve(0);
            self.moves = self.needs_moves();
        }
    }

    fn needs_moves(&self) -> bool {
        let percent = if self.moves { MOVED_UNTIL_PERCENT } else { BAND_PERCENT };
        let movable = match self.direction() {
            Memory::Slow => self.misplaced.fast,
            Memory::Fast => self.misplaced.slow,
        };
        movable > 0 && self.off() > self.all.all() / 100 * percent
    }

    /// The bytes by which the slow share is off.
    fn off(&self) -> u64 {
        self.all.slow.abs_diff(self.share.of(self.all.all()))
    }

    /// The memory that there is too little in.
    fn direction(&self) -> Memory {
        let is_short = self.all.slow < self.share.of(self.all.all());
        if is_short { Memory::Slow } else { Memory::Fast }
    }

    /// Takes the best threshold, if it is better than the present one by more than `gain` bytes.
    fn solve(&mut self, gain: u64) {
        self.changed = 0;
        let best = self.best();
        if self.error(self.threshold) > self.error(best) + gain {
            self.adopt(best);
        }
    }

    fn adopt(&mut self, threshold: Threshold) {
        self.threshold = threshold;
        self.misplaced = self.count_misplaced();
    }

    /// The threshold whose share comes nearest to the target, within the bounds. Of nothing, the
    /// smallest.
    fn best(&self) -> Threshold {
        let target = self.share.of(self.all.all());
        let class_min = class_from(self.bounds.min_bytes);
        let mut class = class_from(self.bounds.max_bytes).max(class_min);
        let mut slow: u64 = self.classes[class..].iter().sum();
        while class > class_min && slow + self.classes[class - 1] <= target {
            class -= 1;
            slow += self.classes[class];
        }
        let mut best = (slow.abs_diff(target), Threshold { class, parts: 0 });
        if class > class_min && slow < target {
            for (part, bytes) in self.cells[class - 1].iter().enumerate() {
                slow += bytes.all();
                let off = slow.abs_diff(target);
                if off < best.0 {
                    best = (off, Threshold { class, parts: part + 1 });
                }
            }
        }
        best.1
    }

    /// The bytes by which the share is off when every block lies where a threshold wants it.
    fn error(&self, threshold: Threshold) -> u64 {
        let divided = threshold.class.checked_sub(1).map(|class| &self.cells[class]);
        let parts = divided.into_iter().flat_map(|cells| &cells[..threshold.parts]);
        let slow: u64 = self.classes[threshold.class..].iter().sum();
        let slow = slow + parts.map(|bytes| bytes.all()).sum::<u64>();
        slow.abs_diff(self.share.of(self.all.all()))
    }

    fn count_misplaced(&self) -> Bytes {
        let mut misplaced = Bytes::default();
        for (class, parts) in self.cells.iter().enumerate() {
            for (part, bytes) in parts.iter().enumerate() {
                match self.threshold.wants(Cell { class, part }) {
                    Memory::Fast => misplaced.slow += bytes.slow,
                    Memory::Slow => misplaced.fast += bytes.fast,
                }
            }
        }
        misplaced
    }
}

/// Takes a block out of a sum. A block that was never put in would falsify the share for good.
fn take(sum: &mut u64, bytes: usize) {
    *sum = sum.checked_sub(bytes as u64).expect("a block is taken out as it was put in");
}

#[cfg(test)]
mod tests;
