//! jemalloc as Rust's allocator.
//!
//! The crate `tikv-jemallocator` is this as well, but takes for granted that every block of 16
//! bytes or more lies at a multiple of 16, as C's `malloc` promises. With classes 8 bytes apart it
//! does not: docs/decisions/019-classes-of-sizes.md.

use std::alloc::{GlobalAlloc, Layout};
use tikv_jemalloc_sys::{
    MALLOCX_ALIGN, MALLOCX_ZERO, calloc, malloc, mallocx, rallocx, realloc, sdallocx,
};

/// Every class of sizes is a multiple of so many bytes, and every block lies at one.
pub(crate) const QUANTUM: usize = 8;

/// What allocates: jemalloc.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jemalloc;

/// What jemalloc has to be told of a block's alignment.
#[inline]
pub(crate) fn alignment(layout: Layout) -> i32 {
    if layout.align() <= QUANTUM { 0 } else { MALLOCX_ALIGN(layout.align()) }
}

// SAFETY: jemalloc's blocks are what `GlobalAlloc` asks for: of `layout.size()` bytes at least, at
// a multiple of `layout.align()` (its own promise, or what it is told), and whole until they are
// freed. Sizes are not zero, and blocks come from here with the same layout: the caller's promises.
// None of these functions unwinds.
unsafe impl GlobalAlloc for Jemalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match alignment(layout) {
                0 => malloc(layout.size()),
                told => mallocx(layout.size(), told),
            }
        }
        .cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match alignment(layout) {
                0 => calloc(1, layout.size()),
                told => mallocx(layout.size(), told | MALLOCX_ZERO),
            }
        }
        .cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { sdallocx(block.cast(), layout.size(), alignment(layout)) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match alignment(layout) {
                0 => realloc(block.cast(), bytes),
                told => rallocx(block.cast(), bytes, told),
            }
        }
        .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// # Safety
    /// `bytes` is not zero; who gets the block frees it with the same layout.
    unsafe fn checked_block(layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        let block = unsafe { Jemalloc.alloc_zeroed(layout) };
        assert_eq!(block.addr() % layout.align().max(QUANTUM), 0, "{layout:?}");
        // SAFETY: the block has so many bytes.
        assert_eq!(unsafe { *block.add(layout.size() - 1) }, 0);
        block
    }

    #[test]
    fn blocks_lie_where_their_layout_asks_for() {
        let mut at_eight = 0;
        for bytes in (1..600).chain([1000, 4000, 4104, 70_000]) {
            for align in [1, 4, 8, 16, 32, 64, 4096] {
                let layout = Layout::from_size_align(bytes, align).unwrap();
                let larger = Layout::from_size_align(bytes + 8, align).unwrap();
                // SAFETY: the sizes are not zero, and each block is freed once with its layout.
                unsafe {
                    // The first block of a slab lies at a multiple of anything.
                    let blocks = [checked_block(layout), checked_block(layout)];
                    at_eight += blocks.iter().filter(|block| block.addr() % 16 != 0).count();
                    for block in blocks {
                        block.add(bytes - 1).write(7);
                        let moved = Jemalloc.realloc(block, layout, larger.size());
                        assert_eq!(moved.addr() % align, 0, "{layout:?}, resized");
                        assert_eq!(*moved.add(bytes - 1), 7);
                        Jemalloc.dealloc(moved, larger);
                    }
                    Jemalloc.dealloc(checked_block(larger), larger);
                }
            }
        }
        assert_ne!(at_eight, 0, "classes are multiples of 8, so blocks of some lie at none of 16");
    }
}
