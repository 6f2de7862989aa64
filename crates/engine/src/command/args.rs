//! A request's arguments: ranges into the buffer they were read from, never copied.

use crate::ids::{HashedKey, KeyHash};
use std::ops::Range;

/// The arguments of one request; number 0 is the command's name.
#[derive(Clone, Copy, Debug)]
pub struct Args<'a> {
    buffer: &'a [u8],
    /// Start and length of each argument in `buffer`.
    ranges: &'a [(u32, u32)],
    /// One of them of which the hash is known already.
    hashed: Option<HashedKey>,
}

impl<'a> Args<'a> {
    /// Views `ranges` (start, length) of `buffer` as arguments. Every range lies within `buffer`.
    pub fn new(buffer: &'a [u8], ranges: &'a [(u32, u32)]) -> Self {
        Self { buffer, ranges, hashed: None }
    }

    /// The same, of which the argument at `index` has this hash as a key of the keyspace that will
    /// be asked for it.
    pub fn with_hash(self, index: usize, hash: KeyHash) -> Self {
        Self { hashed: self.get(index).map(|key| HashedKey::new(key, hash)), ..self }
    }

    pub(crate) fn hashed(&self) -> Option<HashedKey> {
        self.hashed
    }

    /// How many arguments there are, the command's name included.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The argument at `index`, if there is one.
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        let &(start, length) = self.ranges.get(index)?;
        Some(&self.buffer[start as usize..start as usize + length as usize])
    }

    /// The argument at `index`, which the command's arity or a check of `len` guarantees.
    #[track_caller]
    pub fn at(&self, index: usize) -> &'a [u8] {
        let (start, length) = self.ranges[index];
        &self.buffer[start as usize..start as usize + length as usize]
    }

    /// Whether the argument at `index` exists and is `word`, in any case. `word` is upper-case.
    pub fn is(&self, index: usize, word: &str) -> bool {
        self.get(index).is_some_and(|argument| argument.eq_ignore_ascii_case(word.as_bytes()))
    }

    /// The arguments from `index` on.
    pub fn from(
        &self,
        index: usize,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + Clone + use<'a> {
        self.range(index..self.ranges.len())
    }

    /// The arguments in a range of indexes, which must lie within `len`.
    pub fn range(
        &self,
        indexes: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + Clone + use<'a> {
        let buffer = self.buffer;
        self.ranges[indexes]
            .iter()
            .map(move |&(start, length)| &buffer[start as usize..(start + length) as usize])
    }

    /// The arguments from `index` on, as a request of their own.
    pub fn tail(&self, index: usize) -> Self {
        Self { ranges: &self.ranges[index..], ..*self }
    }

    /// All arguments, the name included.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &'a [u8]> + Clone + use<'a> {
        self.from(0)
    }
}
