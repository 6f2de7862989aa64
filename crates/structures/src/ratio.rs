//! Which blocks lie in slow memory, so that a chosen share of all bytes does.
//!
//! Large blocks go to slow memory and small ones stay: a large one costs one slow access for many
//! bytes. So there is a *threshold*, a size from which on blocks are slow. It is not approached in
//! steps but computed, from the live bytes of each size class: whatever speed a load has, the share
//! is right at each moment of it. The class at the threshold is *divided*: a new block of it is
//! slow while too few of all bytes are. So blocks of a single size are divided, too, and what lies
//! wrong elsewhere, because it was right before, is made up for by blocks that come anyway.
//!
//! ```text
//! live bytes   ▂▂▂▃▃▂▅▅▇▇▇▃▃▂▁▁
//! size class   16 B     ▲      1 GiB
//!                 fast  │ slow        a part of the class below ▲: slow too
//! ```
//!
//! When what is stored changes, blocks lie on the wrong side. They are moved, in one direction,
//! until the share is within its band; there, none is moved for being on the wrong side. Where a
//! policy names no share, each block that lies wrong is moved. What a
//! threshold is predicted to bring does not depend on where blocks lie, and it changes only for a
//! prediction that is clearly better, so nothing goes back and forth.
//!
//! **How it is driven.** [`Ratio::place`] says where a new block goes; it is told of every block
//! ([`Ratio::add`], [`Ratio::remove`]) by what allocates and frees values, on whatever thread. A
//! block that grows or moves is added and removed. [`Ratio::adjust`] computes the threshold: it is
//! called periodically, and by the change that makes too much of what it last saw untrue. While
//! [`Ratio::wants_moves`], a walk over values asks about each block ([`Ratio::wish`]) and allocates
//! it anew where the answer says. Where that memory is full, it is for the walk to rest: a wish
//! stays as long as its reason.
//!
//! Absent on purpose: memory itself, and which nodes are slow (`world::numa`); blocks that no size
//! decides about, such as those of tables and trees, of which only the sums count; and where a
//! single block of the divided class belongs: a hash that decides it would have to be at hand
//! wherever blocks are freed.
//!
//! memKeyDB's names: `dram-pmem-ratio` is [`Share::of_ratio`], `dynamic-threshold-min` and `-max`
//! are those of [`Bounds`], `pmem_threshold` is [`Ratio::threshold_bytes`]. There it goes by steps,
//! each 100 ms, and places new blocks alone: loads outrun it, and old blocks stay where they are.

pub(crate) mod classes;
mod counts;
mod policy;
mod threshold;

pub use policy::{Bounds, Policy, Share};

use classes::class_of;
use counts::{Bytes, Counts, Live};
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError, TryLockError};
use threshold::{Published, Threshold, in_blocks};

/// The memory that a block lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Memory {
    Fast,
    Slow,
}

impl Memory {
    fn other(self) -> Self {
        match self {
            Self::Fast => Self::Slow,
            Self::Slow => Self::Fast,
        }
    }
}

/// The slow share may be off by so much of all bytes before blocks are moved for it.
const BAND_PERCENT: u64 = 2;

/// Moving goes on until it is off by no more than this, so that it does not begin again at once.
const MOVED_UNTIL_PERCENT: u64 = 1;

/// A threshold changes if that brings the predicted share nearer by more than this. Well below
/// [`BAND_PERCENT`], so that the threshold that stays is not what keeps the share outside.
const GAIN_PERCENT: u64 = 1;

/// While there is nothing to move though the share is so near to the end of its band, in
/// thousandths, any gain is worth another threshold.
const STUCK_PERMILLE: u64 = 10 * BAND_PERCENT - 1;

/// The threshold is computed anew when one memory's bytes changed by so much of all bytes. It takes
/// some hundred additions. The floor spares a process that holds next to nothing, where the first
/// threshold is as good as any.
const CHANGED_PERCENT: u64 = 1;
const CHANGED_BYTES_MIN: u64 = 64 << 10;

/// Bits of [`Ratio::moves`].
const REST: u8 = 0;
const TO_FAST: u8 = 1;
const TO_SLOW: u8 = 2;
/// Of a policy that names no share: one direction does not wait for the other, which may be stuck.
const BOTH: u8 = TO_FAST | TO_SLOW;

/// Counts all blocks by size, and says where each belongs. Shared by all threads.
#[derive(Debug)]
pub struct Ratio {
    counts: Counts,
    published: Published,
    /// Whereto blocks are moved: the share was outside of its band, and is not yet well within.
    moves: AtomicU8,
    plan: Mutex<Plan>,
}

/// What computing the threshold goes by.
#[derive(Debug)]
struct Plan {
    policy: Policy,
    threshold: Threshold,
}

impl Default for Ratio {
    fn default() -> Self {
        Self::new()
    }
}

impl Ratio {
    /// Of no blocks yet, all of which are to be fast.
    pub const fn new() -> Self {
        Self {
            counts: Counts::new(),
            published: Published::new(),
            moves: AtomicU8::new(REST),
            plan: Mutex::new(Plan { policy: Policy::OnlyFast, threshold: Threshold::NOTHING }),
        }
    }

    /// Another policy from now on (CONFIG SET). What lies wrong then is to be moved.
    pub fn set(&self, policy: Policy) {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        plan.policy = policy;
        let live = self.counts.read();
        // Whether or not it is better: the one in force may be outside of the bounds.
        plan.threshold = match policy {
            Policy::Ratio { share, bounds, .. } if live.blocks.all() >= CHANGED_BYTES_MIN => {
                Threshold::best(&live, share, bounds)
            }
            policy => policy.first_threshold(),
        };
        self.settle(&plan, &live);
    }

    /// Where a new block belongs.
    #[inline]
    pub fn place(&self, bytes: usize) -> Memory {
        let published = &self.published;
        if bytes >= published.slow_from() {
            return Memory::Slow;
        }
        if bytes < published.divided_from() {
            return Memory::Fast;
        }
        let Some(share) = published.share() else { return Memory::Fast };
        let totals = self.counts.totals();
        let wanted = share.of(totals.all() + bytes as u64);
        if totals.slow + bytes as u64 / 2 <= wanted { Memory::Slow } else { Memory::Fast }
    }

    /// A block was allocated, wherever that was possible. `bytes` are what the allocator takes.
    #[inline]
    pub fn add(&self, bytes: usize, memory: Memory) {
        let now = self.counts.add(bytes, memory);
        if now > self.published.most(memory) {
            self.adjust();
        }
    }

    /// A block was freed, which was added with the same words.
    #[inline]
    pub fn remove(&self, bytes: usize, memory: Memory) {
        let now = self.counts.remove(bytes, memory);
        if now < self.published.least(memory) {
            self.adjust();
        }
    }

    /// Whether some blocks should be moved now, so that it is worth asking [`Self::wish`].
    pub fn wants_moves(&self) -> bool {
        self.moves_to(Memory::Fast) || self.moves_to(Memory::Slow)
    }

    /// Where a block should be moved to now; none if it should stay.
    pub fn wish(&self, bytes: usize, memory: Memory) -> Option<Memory> {
        let to = memory.other();
        (self.moves_to(to) && self.wants(bytes, to) && self.betters(bytes)).then_some(to)
    }

    /// Whether the share is nearer once a block of this size has moved in the direction that is
    /// lacking. Without this a block that is longer than what is lacking would go to and fro, since
    /// while it moves the threshold may be computed anew.
    fn betters(&self, bytes: usize) -> bool {
        let share = self.published.share();
        share.is_none_or(|share| (bytes as u64) < betters_below(self.counts.totals(), share))
    }

    /// Whether a part of the blocks of this size belongs into slow memory.
    pub fn is_divided(&self, bytes: usize) -> bool {
        (self.published.divided_from()..self.published.slow_from()).contains(&bytes)
    }

    /// Whether a block is missing in a memory: it lies in the other one.
    fn wants(&self, bytes: usize, to: Memory) -> bool {
        let published = &self.published;
        if bytes >= published.slow_from() {
            return to == Memory::Slow;
        }
        if bytes < published.divided_from() {
            return to == Memory::Fast;
        }
        let class = self.counts.of_class(bytes);
        // In whole blocks, as it is decided whether anything is to be moved.
        let wanted = in_blocks(published.divided_share().of(class.all()), class_of(bytes));
        match to {
            Memory::Slow => class.slow < wanted,
            Memory::Fast => class.slow > wanted,
        }
    }

    /// Whether blocks are moved to this memory: as long as the share is too far off in that
    /// direction. Of a policy that names no share: as long as [`Self::adjust`] found some that lie
    /// wrong.
    pub(crate) fn moves_to(&self, to: Memory) -> bool {
        let bit = if to == Memory::Slow { TO_SLOW } else { TO_FAST };
        if self.moves.load(Relaxed) & bit == 0 {
            return false;
        }
        let Some(share) = self.published.share() else { return true };
        let totals = self.counts.totals();
        to == direction(totals, share)
            && off(totals, share) > totals.all() / 100 * MOVED_UNTIL_PERCENT
    }

    /// The size from which on all blocks are slow; of the class below it a part may be.
    pub fn threshold_bytes(&self) -> usize {
        self.published.slow_from()
    }

    /// A block of a table was allocated. It stays in this memory whatever the share: values make up
    /// for it.
    pub fn add_table(&self, bytes: usize, memory: Memory) {
        self.counts.add_table(bytes, memory);
    }

    /// Such a block was freed.
    pub fn remove_table(&self, bytes: usize, memory: Memory) {
        self.counts.remove_table(bytes, memory);
    }

    /// Bytes of tables in a memory.
    pub fn table_bytes(&self, memory: Memory) -> u64 {
        let tables = self.counts.tables();
        if memory == Memory::Slow { tables.slow } else { tables.fast }
    }

    /// All live bytes of blocks.
    pub fn live_bytes(&self) -> u64 {
        self.counts.blocks().all()
    }

    /// Of these, the bytes in slow memory.
    pub fn slow_bytes(&self) -> u64 {
        self.counts.blocks().slow
    }

    /// So much fast memory is used beside blocks of values and of tables: the share is one of all
    /// together, so that it is what an operator sees.
    pub fn set_others(&self, bytes: u64) {
        self.counts.set_others(bytes);
    }

    /// Computes the threshold anew, and whether blocks are to be moved. Does nothing while another
    /// thread does it.
    #[cold]
    pub fn adjust(&self) {
        let mut plan = match self.plan.try_lock() {
            Ok(plan) => plan,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };
        let live = self.counts.read();
        if let Policy::Ratio { share, bounds, .. } = plan.policy
            && live.blocks.all() >= CHANGED_BYTES_MIN
        {
            let best = Threshold::best(&live, share, bounds);
            let gain = plan.threshold.error(&live, share).saturating_sub(best.error(&live, share));
            // When the share is about to leave its band though everything lies where it should, any
            // gain is worth it.
            let is_near = off(live.sum, share) > live.all() / 1000 * STUCK_PERMILLE;
            let is_stuck = is_near && self.next_move(&plan, &live) == REST;
            if gain > live.all() / 100 * GAIN_PERCENT || is_stuck && gain > 0 {
                plan.threshold = best;
            }
        }
        self.settle(&plan, &live);
    }

    /// Puts a plan in force.
    fn settle(&self, plan: &Plan, live: &Live) {
        self.moves.store(self.next_move(plan, live), Relaxed);
        let bytes = (live.all() / 100 * CHANGED_PERCENT).max(CHANGED_BYTES_MIN);
        self.published.publish(plan.threshold, plan.policy.share(), live.blocks, bytes);
    }

    /// Whether blocks are to be moved, and whereto.
    fn next_move(&self, plan: &Plan, live: &Live) -> u8 {
        let below = plan.policy.share().map_or(u64::MAX, |share| betters_below(live.sum, share));
        let misplaced = plan.threshold.misplaced(live, below);
        let Some(share) = plan.policy.share() else {
            return match (misplaced.fast, misplaced.slow) {
                (0, 0) => REST,
                (0, _) => TO_FAST,
                (_, 0) => TO_SLOW,
                _ => BOTH,
            };
        };
        let (to, movable) = match direction(live.sum, share) {
            Memory::Slow => (TO_SLOW, misplaced.fast),
            Memory::Fast => (TO_FAST, misplaced.slow),
        };
        let is_moving = self.moves.load(Relaxed) != REST;
        let percent = if is_moving { MOVED_UNTIL_PERCENT } else { BAND_PERCENT };
        let is_off = off(live.sum, share) > live.all() / 100 * percent;
        if movable > 0 && is_off { to } else { REST }
    }
}

/// The bytes by which the slow share is off.
fn off(bytes: Bytes, share: Share) -> u64 {
    bytes.slow.abs_diff(share.of(bytes.all()))
}

/// A block of fewer bytes brings the slow share nearer if it moves whereto there is too little.
fn betters_below(bytes: Bytes, share: Share) -> u64 {
    2 * off(bytes, share)
}

/// The memory that there is too little in.
fn direction(bytes: Bytes, share: Share) -> Memory {
    if bytes.slow < share.of(bytes.all()) { Memory::Slow } else { Memory::Fast }
}

#[cfg(test)]
mod tests;
