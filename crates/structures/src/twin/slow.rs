//! Slow memory for the fuzzer: ordinary blocks, which a list tells apart.
//!
//! A region that is cut into blocks here would hide what the sanitizer looks for: it knows the
//! bounds of blocks that the allocator made, and who uses one that was freed.

use crate::heap::{self, SlowMemory};
use crate::ratio::{Bounds, Memory, Policy, Share};
use std::alloc::{Layout, alloc, dealloc};
use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Blocks that lie there: where each begins, and how many bytes it has.
struct Listed {
    blocks: Mutex<BTreeMap<usize, usize>>,
    is_full: AtomicBool,
}

static LISTED: Listed =
    Listed { blocks: Mutex::new(BTreeMap::new()), is_full: AtomicBool::new(false) };

impl Listed {
    fn blocks(&self) -> MutexGuard<'_, BTreeMap<usize, usize>> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// SAFETY: a block is the allocator's, which hands out no address twice, and is on the list for as
// long as it lives.
unsafe impl SlowMemory for Listed {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        if self.is_full.load(Relaxed) {
            return None;
        }
        // SAFETY: the size is not zero.
        let block = NonNull::new(unsafe { alloc(layout) })?;
        self.blocks().insert(block.as_ptr().addr(), layout.size());
        Some(block)
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let bytes = self.blocks().remove(&block.as_ptr().addr());
        assert_eq!(bytes, Some(layout.size()), "a block is freed once, with the size that it has");
        // SAFETY: the caller's promise; the block came from the allocator with this layout.
        unsafe { dealloc(block.as_ptr(), layout) };
    }

    fn contains(&self, address: usize) -> bool {
        let blocks = self.blocks();
        let before = blocks.range(..=address).next_back();
        before.is_some_and(|(start, bytes)| address - start < *bytes)
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Relaxed)
    }
}

/// Gives the process slow memory, and divides blocks in one of some ways. Only where nothing else
/// runs beside it: memory is the process's.
pub(super) fn divide(way: usize) {
    let bounds = Bounds { min_bytes: 24, max_bytes: 10_000 };
    let share = Share::of_ratio(1, 1).expect("these are no zeros");
    let policy = match way % 4 {
        0 => Policy::OnlyFast,
        1 => Policy::OnlySlow,
        2 => Policy::Threshold { bytes: 128 },
        _ => Policy::Ratio { share, bounds, first_bytes: 64 },
    };
    heap::install(&LISTED, policy);
    heap::set_policy(policy);
    heap::set_tables(if way & 4 == 0 { Memory::Fast } else { Memory::Slow });
    set_full(false);
}

/// Slow memory gives no block from now on, or does again.
pub(crate) fn set_full(is_full: bool) {
    LISTED.is_full.store(is_full, Relaxed);
    heap::adjust(0);
}

/// Nothing of a game is left behind, in either memory.
pub(super) fn check_is_empty() {
    let usage = heap::usage().map(|usage| (usage.fast_bytes, usage.slow_bytes));
    assert!(usage.is_none_or(|bytes| bytes == (0, 0)), "blocks were left behind: {usage:?}");
    assert!(LISTED.blocks().is_empty(), "blocks of slow memory were left behind");
}
