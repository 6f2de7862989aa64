//! Where the blocks of values are allocated and freed; nothing else allocates one.
//!
//! A value is the larger part of what a key takes, and may lie in other memory than what finds it.
//! So entries, members, and the bytes of strings and small collections come from here, while trees
//! and short-lived buffers ask Rust's allocator as everything does. What a table mostly consists
//! of comes from here as well, since an operator may want that in slow memory, too.
//!
//! | file | holds |
//! |---|---|
//! | [`byte_box`] | bytes of a fixed number, like a `Box<[u8]>` |
//! | [`byte_vec`] | bytes that grow, like a `Vec<u8>` |
//! | [`table_slice`] | elements of a fixed number, like a `Box<[T]>`, of a table |
//! | [`replacement`] | a large block's copy, made in pieces |
//! | [`slow`] | slow memory, and which blocks lie there |
//!
//! Without slow memory a call here costs one load and a branch more than the allocator's. With it,
//! every block is counted and placed by its size ([`crate::ratio`]), but for a table's, which is
//! placed by what [`set_tables`] was told. Where it lies shows in its address, so nothing else
//! knows of slow memory. When that is full, a block lies where all others do.
//!
//! Blocks are not moved from here: who owns them allocates them anew where [`is_misplaced`] says
//! so, and the new one is placed like any other.

mod byte_box;
mod byte_vec;
mod replacement;
mod slow;
mod table_slice;

pub use byte_box::ByteBox;
pub use byte_vec::ByteVec;
pub use replacement::Replacement;
pub use slow::{
    SlowMemory, Usage, adjust, install, is_divided, is_misplaced, is_slow, set_policy, set_tables,
    usage, wants_moves,
};
pub use table_slice::TableSlice;

use std::alloc::{self, Layout, handle_alloc_error};
use std::ptr::NonNull;

/// A new block, of a size that is not zero.
#[inline]
pub fn allocate(layout: Layout) -> NonNull<u8> {
    match slow::memory() {
        None => allocate_fast(layout),
        Some(memory) => slow::allocate(memory, layout),
    }
}

/// A new block of zeros, of a size that is not zero.
#[inline]
pub fn allocate_zeroed(layout: Layout) -> NonNull<u8> {
    match slow::memory() {
        None => allocate_fast_zeroed(layout),
        Some(memory) => slow::allocate_zeroed(memory, layout),
    }
}

/// A new block of bytes in the memory that the one at `address` does not lie in. It counts for
/// nothing yet. None if there is no room.
fn allocate_opposite(address: usize, bytes: usize) -> Option<NonNull<u8>> {
    let layout = layout_of(bytes, 1);
    match slow::memory() {
        None => Some(allocate_fast(layout)),
        Some(memory) => slow::allocate_opposite(memory, address, layout),
    }
}

/// Frees a block, on whatever thread.
///
/// # Safety
/// `block` came from this module with the same layout, and nobody uses it again.
#[inline]
pub unsafe fn free(block: NonNull<u8>, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe {
        match slow::memory() {
            None => alloc::dealloc(block.as_ptr(), layout),
            Some(memory) => slow::free(memory, block, layout),
        }
    }
}

/// A new block of a table, of a size that is not zero.
fn allocate_table(layout: Layout) -> NonNull<u8> {
    match slow::memory() {
        None => allocate_fast(layout),
        Some(memory) => slow::allocate_table(memory, layout),
    }
}

/// Frees a block of a table, on whatever thread.
///
/// # Safety
/// `block` came from [`allocate_table`] with the same layout, and nobody uses it again.
unsafe fn free_table(block: NonNull<u8>, layout: Layout) {
    // SAFETY: the caller's promise.
    unsafe {
        match slow::memory() {
            None => alloc::dealloc(block.as_ptr(), layout),
            Some(memory) => slow::free_table(memory, block, layout),
        }
    }
}

/// A block of another size, with the content as far as both sizes go.
///
/// # Safety
/// As of [`free`]; and `bytes` is not zero.
pub unsafe fn resize(block: NonNull<u8>, layout: Layout, bytes: usize) -> NonNull<u8> {
    let wanted = layout_of(bytes, layout.align());
    // SAFETY: the caller's promise; a layout of the new size exists.
    unsafe {
        match slow::memory() {
            None => resize_fast(block, layout, wanted),
            Some(memory) => slow::resize(memory, block, layout, wanted),
        }
    }
}

/// The block as a `Vec`'s.
///
/// # Safety
/// `start` came from this module with a layout of `capacity` bytes, which is not zero, and of
/// alignment 1; the first `len` bytes have a value; and nobody else uses the block.
unsafe fn into_vec(start: NonNull<u8>, len: usize, capacity: usize) -> Vec<u8> {
    // SAFETY: the caller's promise; a `Vec` asks the fast allocator for blocks of the same layout.
    unsafe {
        match slow::memory() {
            Some(memory) if !slow::give_up(memory, start, capacity) => {
                let copy = std::slice::from_raw_parts(start.as_ptr(), len).to_vec();
                free(start, layout_of(capacity, 1));
                copy
            }
            _ => Vec::from_raw_parts(start.as_ptr(), len, capacity),
        }
    }
}

/// The block of a `Vec`, or a copy where it belongs: where it begins, its bytes that have a value,
/// and its size.
fn from_vec(bytes: Vec<u8>) -> (NonNull<u8>, usize, usize) {
    if slow::memory().is_some() && !slow::take_over(bytes.capacity()) {
        let copy = ByteVec::from(&*bytes);
        return copy.into_parts();
    }
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    let (len, capacity) = (bytes.len(), bytes.capacity());
    // A `Vec` asks the fast allocator for blocks, of a layout with alignment 1.
    let start = NonNull::new(bytes.as_mut_ptr()).expect("a Vec's pointer is never null");
    (start, len, capacity)
}

#[inline]
fn allocate_fast(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a block has a size");
    // SAFETY: the size is not zero.
    let block = unsafe { alloc::alloc(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

#[inline]
fn allocate_fast_zeroed(layout: Layout) -> NonNull<u8> {
    assert!(layout.size() > 0, "a block has a size");
    // SAFETY: the size is not zero.
    let block = unsafe { alloc::alloc_zeroed(layout) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
}

/// # Safety
/// As of [`free`]; the block lies in fast memory, and `wanted` has its alignment and a size.
unsafe fn resize_fast(block: NonNull<u8>, layout: Layout, wanted: Layout) -> NonNull<u8> {
    // SAFETY: the caller's promise.
    let block = unsafe { alloc::realloc(block.as_ptr(), layout, wanted.size()) };
    NonNull::new(block).unwrap_or_else(|| handle_alloc_error(wanted))
}

#[inline]
fn layout_of(bytes: usize, align: usize) -> Layout {
    Layout::from_size_align(bytes, align).expect("lengths are those of slices in memory")
}

#[cfg(test)]
mod tests;
