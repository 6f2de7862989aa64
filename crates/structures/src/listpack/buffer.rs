//! The memory of a listpack: bytes in one piece, with room before and behind them.
//!
//! ```text
//! | room | bytes | room |
//!         ▲ start
//! ```
//! Whatever comes or goes somewhere in the middle moves the shorter side of the bytes. So a list
//! that is pushed and popped at its front costs as little as one that grows at its back, and a
//! queue moves nothing but its elements. Where a side has no room left but the other has, the bytes
//! settle in the middle of it all: that halves the room that is left, and so happens a few times
//! while a node of 8 KiB fills.

use crate::heap::ByteBox;
use crate::mover::Mover;
use crate::size_class::growth_class;
use std::ops::{Deref, DerefMut, Range};

/// Bytes with room at both ends. Three words, like a `Vec`: small values pay for each.
#[derive(Clone)]
pub(super) struct Buffer {
    memory: ByteBox,
    start: u32,
    len: u32,
}

impl Buffer {
    /// `bytes` and no room.
    pub(super) fn exact(bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u32;
        Self { memory: bytes.into(), start: 0, len }
    }

    /// `bytes`, with room behind them up to `capacity` bytes in all.
    pub(super) fn with_capacity(capacity: usize, bytes: &[u8]) -> Self {
        let mut memory = ByteBox::zeroed(capacity.max(bytes.len()));
        memory[..bytes.len()].copy_from_slice(bytes);
        Self { memory, start: 0, len: bytes.len() as u32 }
    }

    pub(super) fn into_vec(self) -> Vec<u8> {
        let range = self.range();
        let mut bytes = self.memory.into_vec();
        bytes.truncate(range.end);
        bytes.drain(..range.start);
        bytes
    }

    /// Bytes of memory behind it, as the allocator counts them.
    pub(super) fn allocated_bytes(&self) -> usize {
        self.memory.allocated_bytes()
    }

    /// Where the memory begins, with the room before the bytes.
    #[inline]
    pub(super) fn address(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    pub(super) fn capacity(&self) -> usize {
        self.memory.len()
    }

    fn range(&self) -> Range<usize> {
        let start = self.start as usize;
        start..start + self.len as usize
    }

    /// Puts `inserted` bytes of no meaning in the place of `removed` bytes at `at`.
    pub(super) fn splice(&mut self, at: usize, removed: usize, inserted: usize) {
        if inserted == removed {
            return;
        }
        let range = self.range();
        let (front, back) = (at, range.len() - at - removed);
        let start = if inserted <= removed {
            if front < back { range.start + (removed - inserted) } else { range.start }
        } else {
            match self.start_for(inserted - removed, front < back) {
                Some(start) => start,
                None => return self.grow(at, removed, inserted),
            }
        };
        // First the side that moves away from the other.
        let fronts = (range.start..range.start + front, start);
        let backs = (range.end - back..range.end, start + front + inserted);
        let moves = if start > range.start { [backs, fronts] } else { [fronts, backs] };
        for (from, to) in moves {
            if from.start != to {
                self.memory.copy_within(from, to);
            }
        }
        self.start = start as u32;
        self.len = (front + inserted + back) as u32;
    }

    /// Where the bytes are to begin so that `more` of them find room: at the same place, or as far
    /// before it as there are more, or in the middle. `None` if all the room is not enough.
    fn start_for(&self, more: usize, moves_front: bool) -> Option<usize> {
        let range = self.range();
        let room = self.memory.len() - range.len();
        let left = room.checked_sub(more)?;
        match moves_front {
            true if range.start >= more => Some(range.start - more),
            false if self.memory.len() - range.end >= more => Some(range.start),
            // The larger part goes to the side that is short of it.
            true => Some(left.div_ceil(2)),
            false => Some(left / 2),
        }
    }

    /// As [`Self::splice`], into the next size class; the new room lies on the shorter side.
    fn grow(&mut self, at: usize, removed: usize, inserted: usize) {
        let old = &self.memory[self.range()];
        let (front, back) = (at, old.len() - at - removed);
        let len = front + inserted + back;
        assert!(u32::try_from(len).is_ok(), "a listpack of 4 GiB: `fits` was not asked");
        let mut memory = ByteBox::zeroed(growth_class(len));
        let start = if front < back { memory.len() - len } else { 0 };
        memory[start..start + front].copy_from_slice(&old[..front]);
        memory[start + len - back..start + len].copy_from_slice(&old[old.len() - back..]);
        *self = Self { memory, start: start as u32, len: len as u32 };
    }

    /// Makes room for `room` bytes behind the bytes, if there is none for `more`.
    pub(super) fn reserve(&mut self, more: usize, room: usize) {
        if self.memory.len() - self.range().end < more {
            *self = Self::with_capacity(growth_class(self.len() + room), self);
        }
    }

    /// Moves the bytes and their room, if `mover` takes them.
    pub(super) fn move_block(&mut self, mover: &mut Mover<'_>) {
        mover.bytes(&mut self.memory);
    }

    /// Gives the room back, up to the allocator's next size.
    pub(super) fn shrink(&mut self) {
        let wanted = growth_class(self.len());
        if wanted < self.memory.len() {
            *self = Self::with_capacity(wanted, self);
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.memory[self.range()]
    }
}

impl DerefMut for Buffer {
    #[inline]
    fn deref_mut(&mut self) -> &mut [u8] {
        let range = self.range();
        &mut self.memory[range]
    }
}

impl PartialEq for Buffer {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buffer {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Capacity after each of `count` elements of ten bytes at one end.
    fn pushed(buffer: &mut Buffer, count: u8, is_front: bool) {
        for byte in 0..count {
            let at = if is_front { 0 } else { buffer.len() };
            buffer.splice(at, 0, 10);
            buffer[at..at + 10].fill(byte);
        }
    }

    #[test]
    fn bytes_come_and_go_at_both_ends() {
        for first_is_front in [true, false] {
            let mut buffer = Buffer::exact(Vec::new());
            pushed(&mut buffer, 100, first_is_front);
            pushed(&mut buffer, 100, !first_is_front);
            let down = (0..100).rev().flat_map(|byte| [byte; 10]);
            let expected: Vec<u8> = down.chain((0..100).flat_map(|byte| [byte; 10])).collect();
            assert!(*buffer == *expected);
            assert!(buffer.capacity() <= growth_class(expected.len()));
            assert!(buffer.clone().into_vec() == expected);
        }
    }

    #[test]
    fn a_queue_stays_where_it_is() {
        let mut buffer = Buffer::exact(Vec::new());
        pushed(&mut buffer, 20, false);
        let capacity = buffer.capacity();
        for turn in 0..1000_u32 {
            buffer.splice(0, 10, 0);
            let at = buffer.len();
            buffer.splice(at, 0, 10);
            buffer[at..].fill(turn as u8);
            assert!(buffer.capacity() == capacity && buffer.len() == 200);
        }
        let expected: Vec<u8> = (980..1000_u32).flat_map(|turn| [turn as u8; 10]).collect();
        assert!(*buffer == *expected);
    }
}
