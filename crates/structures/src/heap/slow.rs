//! Slow memory: the one that the process has, if any, and which blocks lie there.
//!
//! Installed once, before there is a block: from then on every block is counted, in the classes and
//! with the sizes that the allocator has. All of it is the process's, because values are freed on
//! other threads than their shard's.

use super::{allocate_fast, allocate_fast_zeroed, resize_fast};
use crate::ratio::{Memory, Policy, Ratio};
use crate::size_class::{CLASS_NUMBERS, class_number, size_class};
use std::alloc::{self, Layout};
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Memory that is slower than the ordinary one, and is asked for blocks of this module alone.
///
/// # Safety
/// A block that [`Self::allocate`] returns is as its layout says, nobody else's until it is freed,
/// and of addresses that [`Self::contains`], which contains no address that any other allocator
/// hands out.
pub unsafe trait SlowMemory: Sync {
    /// A block of a size that is not zero. None if there is no room.
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>>;

    /// Frees a block, on whatever thread.
    ///
    /// # Safety
    /// `block` came from [`Self::allocate`] with the same layout, and nobody uses it again.
    unsafe fn free(&self, block: NonNull<u8>, layout: Layout);

    fn contains(&self, address: usize) -> bool;

    /// Whether it may become more. If not, it still hands out what was freed of it.
    fn has_room(&self) -> bool;
}

type Slow = &'static dyn SlowMemory;

/// Whether [`SLOW`] is there. Apart, so that a process without slow memory pays for one load. It
/// needs no order: who has a block got it from whoever had seen this.
static IS_INSTALLED: AtomicBool = AtomicBool::new(false);
static SLOW: OnceLock<Slow> = OnceLock::new();
static RATIO: Ratio = Ratio::new();

/// Whether new blocks of tables are to be slow, whatever their size.
static TABLES_ARE_SLOW: AtomicBool = AtomicBool::new(false);

/// Slow memory could not become more at the last [`adjust`]: nothing is moved there.
static IS_FULL: AtomicBool = AtomicBool::new(false);

/// The size classes of blocks for which slow memory had no room since the last [`adjust`]. It is
/// not asked for another one before: it searches before it says no. One that is too large for it
/// says nothing of others.
static REFUSED: Refused = Refused([const { AtomicU64::new(0) }; CLASS_NUMBERS.div_ceil(64)]);

struct Refused([AtomicU64; CLASS_NUMBERS.div_ceil(64)]);

impl Refused {
    fn has(&self, bytes: usize) -> bool {
        let class = class_number(bytes);
        self.0[class / 64].load(Relaxed) & 1 << (class % 64) != 0
    }

    fn note(&self, bytes: usize) {
        let class = class_number(bytes);
        self.0[class / 64].fetch_or(1 << (class % 64), Relaxed);
    }

    fn forget(&self) {
        self.0.iter().for_each(|classes| classes.store(0, Relaxed));
    }
}

/// What lies where, in bytes that the allocators take for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Usage {
    /// Blocks of values and of tables in ordinary memory.
    pub fast_bytes: u64,
    /// The same in slow memory.
    pub slow_bytes: u64,
    /// The size from which on new blocks are slow.
    pub threshold_bytes: usize,
    /// Slow memory had no room for more at the last [`adjust`].
    pub is_slow_full: bool,
}

/// Gives the process slow memory. Before anything holds a block of this module: they are counted
/// from now on. False, and nothing happens, if there is one already.
pub fn install(memory: Slow, policy: Policy) -> bool {
    let is_first = SLOW.set(memory).is_ok();
    if is_first {
        RATIO.set(policy);
        IS_INSTALLED.store(true, Relaxed);
    }
    is_first
}

/// Divides blocks by another policy from now on.
pub fn set_policy(policy: Policy) {
    if memory().is_some() {
        RATIO.set(policy);
    }
}

/// Has new blocks of tables lie in this memory; in the fast one, if nothing is said. Those that
/// there are stay where they are.
pub fn set_tables(memory: Memory) {
    TABLES_ARE_SLOW.store(memory == Memory::Slow, Relaxed);
}

/// Computes the threshold anew. To be called periodically; it takes some microseconds.
/// `other_bytes` are used in ordinary memory by other things than values and tables.
pub fn adjust(other_bytes: u64) {
    if let Some(slow) = memory() {
        RATIO.set_others(other_bytes);
        IS_FULL.store(!slow.has_room(), Relaxed);
        REFUSED.forget();
        RATIO.adjust();
    }
}

/// What lies where; none without slow memory.
pub fn usage() -> Option<Usage> {
    memory()?;
    let slow_bytes = RATIO.slow_bytes();
    Some(Usage {
        fast_bytes: RATIO.live_bytes().saturating_sub(slow_bytes) + RATIO.table_bytes(Memory::Fast),
        slow_bytes: slow_bytes + RATIO.table_bytes(Memory::Slow),
        threshold_bytes: RATIO.threshold_bytes(),
        is_slow_full: IS_FULL.load(Relaxed),
    })
}

/// Whether it is worth asking about blocks that lie on the wrong side.
pub fn wants_moves() -> bool {
    memory().is_some()
        && (RATIO.moves_to(Memory::Fast) || RATIO.moves_to(Memory::Slow) && !IS_FULL.load(Relaxed))
}

/// Whether a block, of so many bytes, should be allocated anew so that it lies in the other memory.
pub fn is_misplaced(address: usize, bytes: usize) -> bool {
    let Some(slow) = memory() else { return false };
    let bytes = size_class(bytes);
    match RATIO.wish(bytes, lies_in(slow, address)) {
        Some(Memory::Slow) => !IS_FULL.load(Relaxed) && !REFUSED.has(bytes),
        Some(Memory::Fast) => true,
        None => false,
    }
}

/// Whether only a part of the blocks of this size, in bytes, belongs into slow memory: any of them
/// may be the ones.
pub fn is_divided(bytes: usize) -> bool {
    memory().is_some() && RATIO.is_divided(size_class(bytes))
}

/// Whether a block lies in slow memory.
pub fn is_slow(address: usize) -> bool {
    memory().is_some_and(|slow| slow.contains(address))
}

#[inline]
pub(super) fn memory() -> Option<Slow> {
    if !IS_INSTALLED.load(Relaxed) {
        return None;
    }
    SLOW.get().copied()
}

fn lies_in(slow: Slow, address: usize) -> Memory {
    if slow.contains(address) { Memory::Slow } else { Memory::Fast }
}

/// A block of slow memory, if it belongs there and there is room.
fn try_allocate(slow: Slow, layout: Layout) -> Option<NonNull<u8>> {
    let bytes = size_class(layout.size());
    if RATIO.place(bytes) == Memory::Fast {
        return None;
    }
    let block = ask(slow, layout, bytes);
    if block.is_some() {
        RATIO.add(bytes, Memory::Slow);
    }
    block
}

/// A block of slow memory, of the class `bytes`, unless there was no room for such a one lately.
fn ask(slow: Slow, layout: Layout, bytes: usize) -> Option<NonNull<u8>> {
    if REFUSED.has(bytes) {
        return None;
    }
    let block = slow.allocate(layout);
    if block.is_none() {
        REFUSED.note(bytes);
    }
    block
}

pub(super) fn allocate(slow: Slow, layout: Layout) -> NonNull<u8> {
    try_allocate(slow, layout).unwrap_or_else(|| {
        let block = allocate_fast(layout);
        RATIO.add(size_class(layout.size()), Memory::Fast);
        block
    })
}

/// A block that does not count yet ([`count`]).
pub(super) fn allocate_opposite(slow: Slow, address: usize, layout: Layout) -> Option<NonNull<u8>> {
    if lies_in(slow, address) == Memory::Slow {
        return Some(allocate_fast(layout));
    }
    if IS_FULL.load(Relaxed) {
        return None;
    }
    ask(slow, layout, size_class(layout.size()))
}

/// Counts a block, of the class `bytes`, that did not count.
pub(super) fn count(slow: Slow, address: usize, bytes: usize) {
    RATIO.add(bytes, lies_in(slow, address));
}

pub(super) fn allocate_zeroed(slow: Slow, layout: Layout) -> NonNull<u8> {
    if let Some(block) = try_allocate(slow, layout) {
        // SAFETY: the new block has so many bytes, and nobody else knows it.
        unsafe { block.write_bytes(0, layout.size()) };
        return block;
    }
    let block = allocate_fast_zeroed(layout);
    RATIO.add(size_class(layout.size()), Memory::Fast);
    block
}

/// # Safety
/// As of [`super::free`].
pub(super) unsafe fn free(slow: Slow, block: NonNull<u8>, layout: Layout) {
    let memory = lies_in(slow, block.as_ptr().addr());
    RATIO.remove(size_class(layout.size()), memory);
    // SAFETY: the caller's promise; a block that does not lie in slow memory is from the fast one.
    unsafe {
        match memory {
            Memory::Slow => slow.free(block, layout),
            Memory::Fast => alloc::dealloc(block.as_ptr(), layout),
        }
    }
}

pub(super) fn allocate_table(slow: Slow, layout: Layout) -> NonNull<u8> {
    let bytes = size_class(layout.size());
    if TABLES_ARE_SLOW.load(Relaxed)
        && let Some(block) = ask(slow, layout, bytes)
    {
        RATIO.add_table(bytes, Memory::Slow);
        return block;
    }
    RATIO.add_table(bytes, Memory::Fast);
    allocate_fast(layout)
}

/// # Safety
/// As of [`super::free_table`].
pub(super) unsafe fn free_table(slow: Slow, block: NonNull<u8>, layout: Layout) {
    let memory = lies_in(slow, block.as_ptr().addr());
    RATIO.remove_table(size_class(layout.size()), memory);
    // SAFETY: the caller's promise; a block that does not lie in slow memory is from the fast one.
    unsafe {
        match memory {
            Memory::Slow => slow.free(block, layout),
            Memory::Fast => alloc::dealloc(block.as_ptr(), layout),
        }
    }
}

/// # Safety
/// As of [`super::free`]; `wanted` has the same alignment, and a size.
pub(super) unsafe fn resize(
    slow: Slow,
    block: NonNull<u8>,
    layout: Layout,
    wanted: Layout,
) -> NonNull<u8> {
    let (old, new) = (size_class(layout.size()), size_class(wanted.size()));
    let is_fast = lies_in(slow, block.as_ptr().addr()) == Memory::Fast;
    if is_fast && RATIO.place(new) == Memory::Fast {
        // SAFETY: the caller's promise; the block is from the fast memory.
        let resized = unsafe { resize_fast(block, layout, wanted) };
        RATIO.remove(old, Memory::Fast);
        RATIO.add(new, Memory::Fast);
        return resized;
    }
    let resized = allocate(slow, wanted);
    // SAFETY: both blocks have so many bytes, and are two; the caller's promise for the old one.
    unsafe {
        resized.copy_from_nonoverlapping(block, layout.size().min(wanted.size()));
        free(slow, block, layout);
    }
    resized
}

/// Forgets a block if it is from the fast memory: it is somebody else's from now on.
pub(super) fn give_up(slow: Slow, block: NonNull<u8>, bytes: usize) -> bool {
    let is_fast = lies_in(slow, block.as_ptr().addr()) == Memory::Fast;
    if is_fast {
        RATIO.remove(size_class(bytes), Memory::Fast);
    }
    is_fast
}

/// Counts a block from the fast memory that was somebody else's, if one of its size belongs there.
pub(super) fn take_over(bytes: usize) -> bool {
    let is_fast = bytes == 0 || RATIO.place(size_class(bytes)) == Memory::Fast;
    if is_fast && bytes > 0 {
        RATIO.add(size_class(bytes), Memory::Fast);
    }
    is_fast
}
