//! What a table consists of: like a `Box<[T]>`, whose block may lie in slow memory.

use std::alloc::Layout;
use std::mem::ManuallyDrop;
use std::ptr::NonNull;

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

    pub fn copied(elements: &[T]) -> Self {
        // SAFETY: the new block has room for as many elements as there are, and is another.
        unsafe {
            Self::written_by(elements.len(), |start| {
                start.as_ptr().copy_from_nonoverlapping(elements.as_ptr(), elements.len());
            })
        }
    }

    /// Where its elements begin.
    pub fn start(&self) -> NonNull<T> {
        self.start
    }

    /// Bytes of all its elements.
    pub fn bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// Where its elements begin, and how many there are: for who owns the block from now on.
    pub fn into_parts(self) -> (NonNull<T>, usize) {
        let block = ManuallyDrop::new(self);
        (block.start, block.len)
    }

    /// # Safety
    /// The parts are those of [`Self::into_parts`], and are nobody else's.
    pub unsafe fn from_parts(start: NonNull<T>, len: usize) -> Self {
        Self { start, len }
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
