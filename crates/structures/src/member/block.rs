//! Blocks of lengths and bytes: their layout, allocation and freeing.

use std::alloc::Layout;
use std::mem::MaybeUninit;

use super::Block;
use crate::heap;
use crate::mover::Mover;
use crate::size_class::size_class;
use crate::varint;

/// Leaves the address's low bits free for a mark, and fits a score.
const ALIGN: usize = 8;

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("lengths are those of slices in memory")
}

/// A new block of the class `bytes`.
pub(super) fn allocate(bytes: usize) -> Block {
    heap::allocate(layout(bytes))
}

/// The same block elsewhere, if `mover` takes it.
///
/// # Safety
/// `block` came from [`allocate`] with what `bytes` says; if another one is returned, nobody uses
/// it again.
pub(super) unsafe fn moved(
    block: Block,
    bytes: impl Fn() -> usize,
    mover: &mut Mover<'_>,
) -> Block {
    if !mover.takes(block.addr().get(), &bytes) {
        return block;
    }
    let bytes = bytes();
    let moved = allocate(bytes);
    // SAFETY: both blocks have so many bytes, and nobody else knows the new one. What was never
    // written is copied as what it is.
    unsafe {
        moved.cast::<MaybeUninit<u8>>().copy_from_nonoverlapping(block.cast(), bytes);
        free(block, bytes);
    }
    moved
}

/// # Safety
/// `block` came from [`allocate`] with the same `bytes`, and nobody uses it again.
pub(super) unsafe fn free(block: Block, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { heap::free(block, layout(bytes)) };
}

#[inline]
pub(super) fn raw_of(block: Block) -> u64 {
    block.as_ptr().expose_provenance() as u64
}

#[inline]
pub(super) fn at(raw: u64) -> Block {
    let block = std::ptr::with_exposed_provenance_mut(raw as usize);
    Block::new(block).expect("no block is at address 0")
}

/// Bytes that a text takes with its length.
#[inline]
pub(super) fn text_bytes(len: usize) -> usize {
    varint::len(len) + len
}

/// Writes a length and its bytes, and returns the address behind them.
///
/// # Safety
/// [`text_bytes`] must be writable at `to`, and `text` must not overlap them.
#[inline]
pub(super) unsafe fn write_text(to: *mut u8, text: &[u8]) -> *mut u8 {
    // SAFETY: the caller's promise.
    unsafe {
        let bytes = varint::write(to, text.len());
        bytes.copy_from_nonoverlapping(text.as_ptr(), text.len());
        bytes.add(text.len())
    }
}

/// Where a text that [`write_text`] wrote begins, and its length.
///
/// # Safety
/// `from` must be where it was written, and be readable.
#[inline]
pub(super) unsafe fn text_at(from: *const u8) -> (*const u8, usize) {
    // SAFETY: the caller's promise.
    let (len, bytes) = unsafe { varint::read(from) };
    (bytes, len)
}

/// The size of the block of a lone text.
pub(super) fn text_block_bytes(len: usize) -> usize {
    size_class(text_bytes(len))
}

/// A block that holds a lone text.
pub(super) fn new_text(text: &[u8]) -> Block {
    let block = allocate(text_block_bytes(text.len()));
    // SAFETY: the block has room for the text, and nobody else knows it.
    unsafe { write_text(block.as_ptr(), text) };
    block
}

/// # Safety
/// `block` came from [`new_text`], is live, and is shared during `'a`.
#[inline]
pub(super) unsafe fn text<'a>(block: Block) -> &'a [u8] {
    // SAFETY: the caller's promise.
    unsafe {
        let (bytes, len) = text_at(block.as_ptr());
        std::slice::from_raw_parts(bytes, len)
    }
}

/// # Safety
/// `block` came from [`new_text`], and nobody uses it again.
pub(super) unsafe fn free_text(block: Block) {
    // SAFETY: the caller's promise; the block's size follows from the text's length.
    unsafe {
        let (_, len) = text_at(block.as_ptr());
        free(block, text_block_bytes(len));
    }
}
