//! What a table consists of: a `Box<[T]>` whose block may lie in slow memory.

use std::alloc::Layout;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::slice;

/// Owns a block of elements, which need no dropping. Two words; without elements it has no block.
pub struct TableSlice<T: Copy> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: it owns its elements alone, like a `Box<[T]>`, and blocks are freed on whatever thread.
unsafe impl<T: Copy + Send> Send for TableSlice<T> {}
// SAFETY: whoever shares it can only read elements, as in a `Box<[T]>`.
unsafe impl<T: Copy + Sync> Sync for TableSlice<T> {}

impl<T: Copy> TableSlice<T> {
    pub fn filled(element: T, len: usize) -> Self {
        // SAFETY: the whole block is written before anybody reads it.
        unsafe {
            Self::written_by(len, |start| {
                (0..len).for_each(|index| start.add(index).write(element));
            })
        }
    }

    /// # Safety
    /// `write` gives each of the `len` elements from its argument on a value.
    unsafe fn written_by(len: usize, write: impl FnOnce(NonNull<T>)) -> Self {
        let layout = layout::<T>(len);
        if layout.size() == 0 {
            return Self { start: NonNull::dangling(), len };
        }
        let start = super::allocate_table(layout).cast();
        write(start);
        Self { start, len }
    }
}

fn layout<T>(len: usize) -> Layout {
    Layout::array::<T>(len).expect("a table is no larger than memory")
}

impl<T: Copy> Deref for TableSlice<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the block has `len` elements, all of which have a value, and is shared.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for TableSlice<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and nobody else has the block.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for TableSlice<T> {
    #[inline]
    fn drop(&mut self) {
        let layout = layout::<T>(self.len);
        if layout.size() > 0 {
            // SAFETY: the block was allocated with this layout, and ends with its owner.
            unsafe { super::free_table(self.start.cast(), layout) };
        }
    }
}

impl<T: Copy> Clone for TableSlice<T> {
    fn clone(&self) -> Self {
        // SAFETY: the new block has room for as many elements as this one, and is another.
        unsafe {
            Self::written_by(self.len, |start| {
                start.copy_from_nonoverlapping(self.start, self.len);
            })
        }
    }
}
