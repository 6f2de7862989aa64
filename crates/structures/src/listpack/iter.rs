//! Walks a listpack from either end.

use super::encoding::{Item, backlen_len, decode, read_backlen};

/// The elements between two places of a listpack.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    bytes: &'a [u8],
    front: usize,
    back: usize,
}

impl<'a> Iter<'a> {
    /// `front` and `back` are bounds of entries of a valid listpack.
    pub(super) fn new(bytes: &'a [u8], front: usize, back: usize) -> Self {
        Self { bytes, front, back }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.front >= self.back {
            return None;
        }
        let (item, entry) = decode(self.bytes, self.front)?;
        self.front += entry + backlen_len(entry);
        Some(item)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.front >= self.back {
            return None;
        }
        let (entry, back) = read_backlen(self.bytes, self.back)?;
        self.back -= entry + back;
        decode(self.bytes, self.back).map(|(item, _)| item)
    }
}
