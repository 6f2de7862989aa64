//! Bytes that grow: a `Vec<u8>` whose block may lie in either memory, and that moves to the other
//! when its size asks for it.

use crate::size_class::size_class;
use std::alloc::Layout;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// What the first byte allocates at least: as much as the allocator gives for it.
const CAPACITY_MIN: usize = 8;

/// Owns a block of bytes, of which the first `len` have a value. Without room it has no block.
pub struct ByteVec {
    start: NonNull<u8>,
    len: usize,
    capacity: usize,
}

// SAFETY: it owns its bytes alone, like a `Vec<u8>`, and blocks are freed on whatever thread.
unsafe impl Send for ByteVec {}
// SAFETY: whoever shares it can only read.
unsafe impl Sync for ByteVec {}

impl ByteVec {
    pub const fn new() -> Self {
        Self { start: NonNull::dangling(), len: 0, capacity: 0 }
    }

    pub fn with_capacity(capacity: usize) -> Self {
        let mut bytes = Self::new();
        bytes.set_capacity(capacity);
        bytes
    }

    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Bytes of memory behind it, as the allocator counts them.
    pub fn allocated_bytes(&self) -> usize {
        if self.capacity == 0 { 0 } else { size_class(self.capacity) }
    }

    /// Makes room for `more` bytes, and so much beyond that growing by steps takes linear time.
    pub fn reserve(&mut self, more: usize) {
        if self.capacity - self.len < more {
            let needed = self.len_with(more);
            // More than half of all addresses is refused by `set_capacity`.
            self.set_capacity(needed.max(self.capacity.saturating_mul(2)).max(CAPACITY_MIN));
        }
    }

    /// Makes room for `more` bytes and no more than these.
    pub fn reserve_exact(&mut self, more: usize) {
        if self.capacity - self.len < more {
            self.set_capacity(self.len_with(more));
        }
    }

    fn len_with(&self, more: usize) -> usize {
        self.len.checked_add(more).expect("lengths are those of slices in memory")
    }

    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.reserve(bytes.len());
        // SAFETY: there is room for the bytes behind the others, and they are not this block's,
        // which nobody can borrow meanwhile.
        unsafe {
            let end = self.start.add(self.len);
            end.copy_from_nonoverlapping(NonNull::from(bytes).cast(), bytes.len());
        }
        self.len += bytes.len();
    }

    /// Cuts bytes off, or appends `byte` as often as it takes.
    pub fn resize(&mut self, len: usize, byte: u8) {
        if let Some(more) = len.checked_sub(self.len) {
            self.reserve(more);
            // SAFETY: there is room for so many bytes behind the others.
            unsafe { self.start.add(self.len).write_bytes(byte, more) };
        }
        self.len = len;
    }

    /// Cuts off what is behind the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// Gives room back, but for `capacity` bytes in all.
    pub fn shrink_to(&mut self, capacity: usize) {
        let capacity = capacity.max(self.len);
        if capacity < self.capacity {
            self.set_capacity(capacity);
        }
    }

    pub fn into_vec(self) -> Vec<u8> {
        let this = std::mem::ManuallyDrop::new(self);
        if this.capacity == 0 {
            return Vec::new();
        }
        // SAFETY: the block is this one's own, its first `len` bytes have a value, and it is not
        // used again.
        unsafe { super::into_vec(this.start, this.len, this.capacity) }
    }

    /// A new block, of a size that is not zero, without any content.
    pub(super) fn of_block(start: NonNull<u8>, capacity: usize) -> Self {
        Self { start, len: 0, capacity }
    }

    /// Where the block begins, the bytes that have a value, and its size.
    pub(super) fn into_parts(self) -> (NonNull<u8>, usize, usize) {
        let this = std::mem::ManuallyDrop::new(self);
        (this.start, this.len, this.capacity)
    }

    /// Another room, of at least `len` bytes.
    fn set_capacity(&mut self, capacity: usize) {
        assert!(capacity >= self.len, "a block keeps its bytes");
        self.start = match (self.capacity, capacity) {
            (old, new) if old == new => return,
            (0, _) => super::allocate(layout(capacity)),
            (_, 0) => {
                // SAFETY: the block was allocated with this layout, and is not used again.
                unsafe { super::free(self.start, layout(self.capacity)) };
                NonNull::dangling()
            }
            // SAFETY: as above; the new size is not zero.
            _ => unsafe { super::resize(self.start, layout(self.capacity), capacity) },
        };
        self.capacity = capacity;
    }
}

fn layout(capacity: usize) -> Layout {
    super::layout_of(capacity, 1)
}

impl From<&[u8]> for ByteVec {
    fn from(bytes: &[u8]) -> Self {
        let mut copied = Self::with_capacity(bytes.len());
        copied.extend_from_slice(bytes);
        copied
    }
}

impl From<Vec<u8>> for ByteVec {
    fn from(bytes: Vec<u8>) -> Self {
        let (start, len, capacity) = super::from_vec(bytes);
        Self { start, len, capacity }
    }
}

impl Deref for ByteVec {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the first `len` bytes of the block have a value, and it is shared.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for ByteVec {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and nobody else has the block.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for ByteVec {
    fn drop(&mut self) {
        if self.capacity > 0 {
            // SAFETY: the block was allocated with this layout, and ends with its owner.
            unsafe { super::free(self.start, layout(self.capacity)) };
        }
    }
}

impl Default for ByteVec {
    fn default() -> Self {
        Self::new()
    }
}

impl Clone for ByteVec {
    fn clone(&self) -> Self {
        Self::from(&**self)
    }
}

impl PartialEq for ByteVec {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for ByteVec {}

impl fmt::Debug for ByteVec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, out)
    }
}
