//! What a type of value means to those who treat all types alike.
//!
//! Each type answers in its own folder (`set/as_value.rs`), by one implementation of [`ValueType`].
//! Whoever goes through the elements of any value meets them as [`Element`]s. To add a type: a
//! folder, a variant of [`Value`](super::Value) and of what lists its variants, and the kinds by
//! which files know it in `growing.rs`.

use super::growing::Parts;
use super::stored::{Cursor, Stored};
use super::{Awaited, Recipe, stream};
use crate::effect::{Effect, End};
use crate::rdb::{RdbError, Source};
use crate::work::Work;
use std::io::Read;

/// An element of a value, by what identifies it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Element<'a> {
    /// All of a string.
    Text(&'a [u8]),
    /// An element that counts by its position: of a list, in the list's order.
    Ordered(&'a [u8]),
    /// A member of a set.
    Member(&'a [u8]),
    /// A field of a hash, its value, and when it expires.
    Pair(&'a [u8], &'a [u8], Option<i64>),
    /// A member of a sorted set and its score, in the order of the scores.
    Scored(&'a [u8], f64),
    /// A part of a stream. A stream's parts come in the order in which they build it.
    Stream(stream::Part<'a>),
}

impl<'a> Element<'a> {
    /// The effect that adds the element to its value.
    pub fn effect(self) -> Effect<'a> {
        match self {
            Self::Text(value) => Effect::SetString { value, expire_at: None },
            Self::Ordered(value) => Effect::ListPush { end: End::Tail, value },
            Self::Member(member) => Effect::SetAdd { member },
            Self::Pair(field, value, expire_at) => Effect::HashSet { field, value, expire_at },
            Self::Scored(member, score) => Effect::SortedAdd { member, score },
            Self::Stream(part) => part.effect(),
        }
    }
}

/// A type that a key can hold.
pub(crate) trait ValueType: Sized {
    /// The type as TYPE names it.
    fn type_name(&self) -> &'static str;

    /// Redis's number of the type, which its digests begin with.
    fn type_number(&self) -> u32;

    /// What commands wait for that such a value serves.
    fn serves(&self) -> Option<Awaited> {
        None
    }

    /// The encoding as OBJECT ENCODING names it.
    fn encoding(&self) -> &'static str;

    /// A measure of the work to free the value: large ones are freed on a background thread.
    fn elements(&self) -> usize;

    /// Whether a collection has lost its last element: its key then goes.
    fn is_empty(&self) -> bool {
        self.elements() == 0
    }

    /// Bytes behind the value, without the struct itself.
    fn allocated_bytes(&self) -> usize;

    /// The same once more, for another key.
    fn copied(&self, work: &Work) -> Self;

    /// Hands every element to `visit`, until it fails.
    ///
    /// # Errors
    /// That of `visit`.
    fn try_each<E>(&self, visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E>;

    /// The form of the value in a file.
    fn stored(&self) -> Stored<'_>;

    /// Writes the bytes before the element count of a value that is [`Stored::InPieces`].
    fn put_head(&self, _out: &mut Vec<u8>) {}

    /// Goes on from `cursor` until about `bytes_max` more are written: an element, or a list's
    /// node, is written whole. Whether that was the end. Only of what is [`Stored::InPieces`].
    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool;

    /// Reads the next element of a value that is [`Stored::InPieces`] and adds it, or reads as much
    /// of it as stands before `until`; whether it was added.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged.
    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError>;
}
