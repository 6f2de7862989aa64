//! The full pieces of a long reply: buffers that are written and wait to be sent.
//!
//! A reply of 1 GiB in one growing buffer is copied at each doubling, and every copy is into memory
//! that the kernel hands out page by page: that was half of what such a reply cost.

use std::collections::VecDeque;

/// How long a piece becomes, in bytes, unless one value is longer. Large beside the cost of a
/// system call, small beside what a client may leave unread; and jemalloc keeps freed memory of
/// this size for a while, which it does not with 8 MiB and more.
pub const PIECE_BYTES: usize = 1 << 20;

/// Buffers, the oldest first.
#[derive(Clone, Default, Debug)]
pub(super) struct Pieces {
    pieces: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Pieces {
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Bytes in all of them.
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn capacity(&self) -> usize {
        self.pieces.iter().map(Vec::capacity).sum()
    }

    pub fn push(&mut self, piece: Vec<u8>) {
        self.bytes += piece.len();
        self.pieces.push_back(piece);
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        self.pieces.iter().map(Vec::as_slice)
    }

    pub fn oldest(&self) -> Option<&[u8]> {
        self.pieces.front().map(Vec::as_slice)
    }

    /// Lets `act` have the oldest one, of which there must be one.
    pub fn with_oldest<T>(&mut self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let piece = self.pieces.front_mut().expect("the caller knows that there is a piece");
        let before = piece.len();
        let outcome = act(piece);
        self.bytes = self.bytes - before + piece.len();
        outcome
    }

    /// Whether there was one.
    pub fn drop_oldest(&mut self) -> bool {
        let oldest = self.pieces.pop_front();
        self.bytes -= oldest.as_ref().map_or(0, Vec::len);
        oldest.is_some()
    }

    pub fn take_newest(&mut self) -> Option<Vec<u8>> {
        let newest = self.pieces.pop_back();
        self.bytes -= newest.as_ref().map_or(0, Vec::len);
        newest
    }

    /// Changes the piece in which the byte `at` of all stands; `change` gets its place there.
    pub fn change(&mut self, at: usize, change: impl FnOnce(&mut Vec<u8>, usize)) {
        let mut begin = self.bytes;
        for piece in self.pieces.iter_mut().rev() {
            begin -= piece.len();
            if at >= begin {
                let before = piece.len();
                change(piece, at - begin);
                self.bytes = self.bytes - before + piece.len();
                return;
            }
        }
    }
}
