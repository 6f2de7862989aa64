//! Bytes of a fixed number: a `Box<[u8]>` whose block may lie in either memory.

use super::ByteVec;
use crate::size_class::size_class;
use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Owns a block of bytes. Two words; without bytes it has no block.
pub struct ByteBox {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it owns its bytes alone, like a `Box<[u8]>`, and blocks are freed on whatever thread.
unsafe impl Send for ByteBox {}
// SAFETY: whoever shares it can only read.
unsafe impl Sync for ByteBox {}

impl ByteBox {
    pub fn zeroed(len: usize) -> Self {
        let start =
            if len == 0 { NonNull::dangling() } else { super::allocate_zeroed(layout(len)) };
        Self { start, len }
    }

    pub fn copied(bytes: &[u8]) -> Self {
        if bytes.is_empty() {
            return Self { start: NonNull::dangling(), len: 0 };
        }
        let start = super::allocate(layout(bytes.len()));
        // SAFETY: the new block has room for the bytes, and nobody else knows it.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len()) };
        Self { start, len: bytes.len() }
    }

    /// The same block, which has no room behind its bytes.
    pub fn of_full(bytes: ByteVec) -> Self {
        assert_eq!(bytes.len(), bytes.capacity(), "a block without room");
        let (start, len, _) = bytes.into_parts();
        Self { start, len }
    }

    /// Bytes of memory behind it, as the allocator counts them.
    pub fn allocated_bytes(&self) -> usize {
        if self.len == 0 { 0 } else { size_class(self.len) }
    }

    pub fn into_vec(self) -> Vec<u8> {
        let this = std::mem::ManuallyDrop::new(self);
        if this.len == 0 {
            return Vec::new();
        }
        // SAFETY: the block is this one's own, all of it bytes, and is not used again.
        unsafe { super::into_vec(this.start, this.len, this.len) }
    }
}

impl From<Vec<u8>> for ByteBox {
    fn from(bytes: Vec<u8>) -> Self {
        // The boxed slice has no room behind its bytes, and its `Vec` neither.
        let (start, len, _) = super::from_vec(bytes.into_boxed_slice().into_vec());
        Self { start, len }
    }
}

fn layout(len: usize) -> Layout {
    super::layout_of(len, 1)
}

impl Deref for ByteBox {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the block has `len` bytes, all of which have a value, and is shared.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for ByteBox {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has the block.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for ByteBox {
    #[inline]
    fn drop(&mut self) {
        if self.len > 0 {
            // SAFETY: the block was allocated with this layout, and ends with its owner.
            unsafe { super::free(self.start, layout(self.len)) };
        }
    }
}

impl Clone for ByteBox {
    fn clone(&self) -> Self {
        Self::copied(self)
    }
}

impl PartialEq for ByteBox {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ByteBox {}
