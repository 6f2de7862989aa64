//! jemalloc as Rust's allocator.
//!
//! The crate `tikv-jemallocator` is this as well, but takes for granted that every block of 16
//! bytes or more lies at a multiple of 16, as C's `malloc` promises. With classes 8 bytes apart it
//! does not: docs/decisions/019-classes-of-sizes.md.
//!
//! jemalloc's quick paths are for calls without flags, and an alignment is one. So blocks that are
//! to lie at a multiple of 16 to 64 are asked for in a size that is one: a class that is a multiple
//! of such a number, too, as all are that such a size is rounded up to, and so are its blocks'
//! addresses. What no class holds lies at a multiple of 64 anyway.

use std::alloc::{GlobalAlloc, Layout};
use tikv_jemalloc_sys::{
    MALLOCX_ALIGN, MALLOCX_ZERO, calloc, malloc, mallocx, rallocx, realloc, sdallocx,
};

/// Every class of sizes is a multiple of so many bytes, and every block lies at one.
pub(crate) const QUANTUM: usize = 8;

/// The largest alignment that a size which is a multiple of it brings along.
const ALIGNED_BY_SIZE_MAX: usize = 64;

/// The allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Jemalloc;

/// The size and the flags that jemalloc is asked for a block with.
#[inline]
fn asked(bytes: usize, align: usize) -> (usize, i32) {
    if align <= QUANTUM {
        (bytes, 0)
    } else if align <= ALIGNED_BY_SIZE_MAX {
        // A layout's size, rounded up to its alignment, is no overflow.
        (bytes.next_multiple_of(align), 0)
    } else {
        (bytes, MALLOCX_ALIGN(align))
    }
}

// SAFETY: jemalloc's blocks are what `GlobalAlloc` asks for: of `layout.size()` bytes at least, at
// a multiple of `layout.align()` (see above, or what it is told), and whole until they are
// freed. Sizes are not zero, and blocks come from here with the same layout: the caller's promises.
// None of these functions unwinds.
unsafe impl GlobalAlloc for Jemalloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match asked(layout.size(), layout.align()) {
                (bytes, 0) => malloc(bytes),
                (bytes, flags) => mallocx(bytes, flags),
            }
        }
        .cast()
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match asked(layout.size(), layout.align()) {
                (bytes, 0) => calloc(1, bytes),
                (bytes, flags) => mallocx(bytes, flags | MALLOCX_ZERO),
            }
        }
        .cast()
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let (bytes, flags) = asked(layout.size(), layout.align());
        // SAFETY: see above.
        unsafe { sdallocx(block.cast(), bytes, flags) };
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: see above.
        unsafe {
            match asked(bytes, layout.align()) {
                (bytes, 0) => realloc(block.cast(), bytes),
                (bytes, flags) => rallocx(block.cast(), bytes, flags),
            }
        }
        .cast()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The block, which lies where its layout asks for.
    fn checked(block: *mut u8, layout: Layout) -> *mut u8 {
        assert_eq!(block.addr() % layout.align().max(QUANTUM), 0, "{layout:?}");
        block
    }

    #[test]
    fn blocks_lie_where_their_layout_asks_for() {
        let layout = |bytes, align| Layout::from_size_align(bytes, align).unwrap();
        let mut at_eight = 0;
        for bytes in (1..1100).chain([2049, 4000, 4104, 14_337, 70_000, 300_000]) {
            for align in [1, 4, 8, 16, 32, 64, 128, 4096] {
                let (own, larger) = (layout(bytes, align), layout(bytes + bytes / 2 + 8, align));
                let smaller = layout(bytes / 2 + 1, align);
                // SAFETY: the sizes are not zero, and each block is freed once with its layout.
                unsafe {
                    // The first block of a slab lies at a multiple of anything.
                    let [first, second] = [(); 2].map(|()| checked(Jemalloc.alloc(own), own));
                    at_eight += usize::from(first.addr() % 16 != 0 || second.addr() % 16 != 0);
                    for block in [first, second] {
                        block.write_bytes(7, bytes);
                        let grown = Jemalloc.realloc(block, own, larger.size());
                        assert_eq!(*checked(grown, larger).add(bytes - 1), 7);
                        let shrunk = Jemalloc.realloc(grown, larger, smaller.size());
                        assert_eq!(*checked(shrunk, smaller).add(bytes / 2), 7);
                        Jemalloc.dealloc(shrunk, smaller);
                    }
                    let zeroed = checked(Jemalloc.alloc_zeroed(own), own);
                    assert!(std::slice::from_raw_parts(zeroed, bytes).iter().all(|&it| it == 0));
                    Jemalloc.dealloc(zeroed, own);
                }
            }
        }
        assert_ne!(at_eight, 0, "classes are multiples of 8, so blocks of some lie at none of 16");
    }
}
