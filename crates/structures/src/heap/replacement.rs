//! The copy of a large block, made in pieces, that is to take its place in the other memory.

use super::{ByteVec, slow};
use crate::size_class::size_class;

/// Counts for nothing until it is finished: the block that it is a copy of still does, and what is
/// moved because of the sums would otherwise be moved back.
#[derive(Debug)]
pub struct Replacement {
    /// The other block's address and size.
    of: (usize, usize),
    /// Without content for a moment, as it ends.
    copy: ByteVec,
}

impl Replacement {
    /// A copy, of which there is nothing yet, of the block at `address`. None if the other memory
    /// is full.
    pub fn of(address: usize, capacity: usize) -> Option<Self> {
        let start = super::allocate_opposite(address, capacity)?;
        Some(Self { of: (address, capacity), copy: ByteVec::of_block(start, capacity) })
    }

    pub fn is_of(&self, address: usize, capacity: usize) -> bool {
        self.of == (address, capacity)
    }

    /// The address of the block that it is a copy of, and how many bytes of it there are.
    pub fn progress(&self) -> (usize, usize) {
        (self.of.0, self.copy.len())
    }

    /// Copies up to so many bytes more. Whether these were the last.
    pub fn goes_on(&mut self, bytes: &[u8], bytes_max: usize) -> bool {
        let rest = bytes.get(self.copy.len()..).unwrap_or_default();
        self.copy.extend_from_slice(&rest[..rest.len().min(bytes_max)]);
        self.copy.len() >= bytes.len()
    }

    /// The copy, which counts from now on.
    pub fn finish(mut self) -> ByteVec {
        self.count();
        std::mem::take(&mut self.copy)
    }

    fn count(&self) {
        if let Some(memory) = slow::memory()
            && self.copy.capacity() > 0
        {
            let address = self.copy.as_ptr().addr();
            slow::count(memory, address, size_class(self.copy.capacity()));
        }
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        // What is freed has counted.
        self.count();
    }
}
