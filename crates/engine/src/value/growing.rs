//! Values read from RDB files and DUMP payloads, in slices: a value of a gigabyte is built beside
//! the table over many of them.
//!
//! ```text
//! begin ─▶ whole: a short string, a small encoding
//!       └▶ growing ─▶ grow, grow … ─▶ true ─▶ finish
//! ```
//! Small encodings are one string, whose size is limited by settings. Everything else is read by
//! elements, and a long string by pieces.

use super::stream::reading::Reading;
use super::text::payload_of;
use super::{Hash, Recipe, Set, Sorted, Value, ValueType, each_type, hash, list, stream};
use crate::number::parse_f64;
use crate::rdb::length::{Head, Text};
use crate::rdb::{RdbError, Source, kind};
use std::io::Read;
use structures::entry::Payload;
use structures::heap::ByteVec;
use structures::listpack::Item;
use structures::{Intset, Listpack};

/// Bytes of a string that are read at once.
const PIECE_BYTES: u64 = 64 << 10;

/// Bytes that a string's length is believed in a stream that nobody has checked: memory beyond it
/// is taken as bytes arrive.
const BELIEVED_BYTES: usize = 1 << 20;

/// A value, as far as the first slice has read it.
pub(crate) enum Begun<'a> {
    Whole(Payload<'a, Value>),
    Growing(Growing),
}

/// A value of which a part was read.
pub(crate) struct Growing {
    value: Value,
    /// Elements to come.
    left: u64,
    parts: Parts,
}

/// The strings of an element, as far as they were read.
#[derive(Default)]
pub(crate) struct Parts {
    pub(super) strings: [Vec<u8>; 2],
    /// A number that stands before them, once it was read.
    pub(super) number: Option<u64>,
    /// Strings that are complete.
    complete: usize,
    /// Bytes of the next one that are still to come, if it is a long one.
    rest: Option<u64>,
    /// The progress of reading a stream.
    pub(super) stream: Option<Box<Reading>>,
    /// Where the times of a hash's fields are.
    pub(super) times: Times,
}

/// Where a stored hash has the expiries of its fields.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Times {
    /// No field expires.
    #[default]
    None,
    /// Before each field, as the distance from the earliest expiry plus one; 0: the field does not
    /// expire.
    Before { earliest: i64 },
    /// Behind each value, as a Unix time in milliseconds.
    Behind,
}

impl Parts {
    /// Reads until `count` strings are complete, or the source has come to `until`; whether they
    /// are complete.
    pub(super) fn read<R: Read>(
        &mut self,
        source: &mut Source<R>,
        count: usize,
        until: u64,
    ) -> Result<bool, RdbError> {
        while self.complete < count {
            if self.rest.is_none() && !self.begin(source)? {
                continue;
            }
            let string = &mut self.strings[self.complete];
            while let Some(rest @ 1..) = self.rest {
                if source.offset() >= until {
                    return Ok(false);
                }
                let piece = rest.min(PIECE_BYTES);
                string.extend_from_slice(source.bytes(piece as usize)?);
                self.rest = Some(rest - piece);
            }
            self.rest = None;
            self.complete += 1;
        }
        self.complete = 0;
        Ok(true)
    }

    /// Begins the next string; whether it is a long one, which is then still to come.
    fn begin<R: Read>(&mut self, source: &mut Source<R>) -> Result<bool, RdbError> {
        let string = &mut self.strings[self.complete];
        string.clear();
        let head = source.head()?;
        if let Some(length) = head.long() {
            self.begin_long(source, length)?;
            return Ok(true);
        }
        let text = source.text_behind(head)?;
        if let Text::Bytes(bytes) = text {
            string.reserve_exact(bytes.len());
        }
        text.append_to(string);
        self.complete += 1;
        Ok(false)
    }

    fn begin_long<R: Read>(&mut self, source: &Source<R>, length: u64) -> Result<(), RdbError> {
        let length = source.checked(length)?;
        let believed = if source.is_trusted() { length } else { length.min(BELIEVED_BYTES) };
        // Where there is not as much memory, it is taken as bytes arrive.
        let _ = self.strings[self.complete].try_reserve_exact(believed);
        self.rest = Some(length as u64);
        Ok(())
    }
}

impl Growing {
    /// A value that is kept by elements, with none so far; `None` if this type is one string.
    fn begin<R: Read>(
        kind: u8,
        source: &mut Source<R>,
        recipe: &Recipe<'_>,
    ) -> Result<Option<Self>, RdbError> {
        let mut parts = Parts::default();
        let value = match kind {
            kind::HASH_METADATA => {
                parts.times = Times::Before { earliest: i64::from_le_bytes(source.array()?) };
                hash::create(recipe)
            }
            kind::HASH_2 if source.is_valkey => {
                parts.times = Times::Behind;
                hash::create(recipe)
            }
            kind::LIST_QUICKLIST_2 => list::create(recipe),
            kind::SET => Value::Set(Set::empty_table(recipe.hasher)),
            kind::HASH => Value::Hash(Hash::empty_table(recipe.hasher)),
            kind::ZSET_2 if source.keeps_encodings => {
                Value::Sorted(Sorted::empty_tree(recipe.hasher))
            }
            kind::ZSET_2 => Value::Sorted(Sorted::new()),
            _ if kind::is_stream(kind) => {
                let stream = Some(Box::new(Reading::new(kind, source.length()?)));
                let parts = Parts { stream, ..Parts::default() };
                return Ok(Some(Self { value: stream::create(recipe), left: 1, parts }));
            }
            _ => return Ok(None),
        };
        Ok(Some(Self { value, left: source.length()?, parts }))
    }

    fn of_text<R: Read>(source: &Source<R>, length: u64) -> Result<Self, RdbError> {
        let mut parts = Parts::default();
        parts.begin_long(source, length)?;
        Ok(Self { value: Value::Text(ByteVec::new()), left: 1, parts })
    }

    /// Reads on, until the source has come to `until`; whether the value is complete.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged.
    pub(crate) fn grow<R: Read>(
        &mut self,
        source: &mut Source<R>,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        let Self { value, left, parts } = self;
        each_type!(value, value => {
            while *left > 0 {
                if source.offset() >= until || !value.read_element(source, parts, recipe, until)? {
                    return Ok(false);
                }
                *left -= 1;
            }
        });
        Ok(true)
    }

    /// The complete value.
    ///
    /// # Errors
    /// It has no elements.
    pub(crate) fn finish<R: Read>(self, source: &Source<R>) -> Result<Box<Value>, RdbError> {
        match self.value.is_empty() {
            true => Err(source.damaged("an empty collection")),
            false => Ok(Box::new(self.value)),
        }
    }
}

impl<R: Read> Source<R> {
    /// Reads a value of this type. Collections take the encoding that the file has, as in Redis.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged, or the type is unknown.
    pub fn value(&mut self, kind: u8, recipe: &Recipe<'_>) -> Result<Payload<'_, Value>, RdbError> {
        match self.begin_value(kind, recipe, u64::MAX)? {
            Begun::Whole(payload) => Ok(payload),
            Begun::Growing(_) => unreachable!("nothing ends the slice"),
        }
    }

    /// Begins to read a value, and comes as far as `until`.
    ///
    /// # Errors
    /// As [`Self::value`].
    pub(crate) fn begin_value(
        &mut self,
        kind: u8,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<Begun<'_>, RdbError> {
        let growing = if kind == kind::STRING {
            let head = self.head()?;
            match head.long() {
                Some(length) => Some(Growing::of_text(self, length)?),
                None => return Ok(Begun::Whole(self.short_text(head)?)),
            }
        } else {
            Growing::begin(kind, self, recipe)?
        };
        if let Some(mut growing) = growing {
            return Ok(match growing.grow(self, recipe, until)? {
                true => Begun::Whole(Payload::Boxed(growing.finish(self)?)),
                false => Begun::Growing(growing),
            });
        }
        let value = match kind {
            kind::SET_INTSET => Value::Set(Set::from_intset(self.intset()?)),
            kind::HASH_LISTPACK => Value::Hash(Hash::from_listpack(self.pairs(|_| {})?)),
            kind::ZSET_LISTPACK => Value::Sorted(self.small_sorted(recipe)?),
            _ => match self.older_value(kind, recipe)? {
                Some(value) => value,
                None => return Err(self.unsupported(format!("a value of type {kind}"))),
            },
        };
        if value.is_empty() {
            return Err(self.damaged("an empty collection"));
        }
        Ok(Begun::Whole(Payload::Boxed(Box::new(value))))
    }

    fn short_text(&mut self, head: Head) -> Result<Payload<'_, Value>, RdbError> {
        Ok(match self.text_behind(head)? {
            Text::Integer(integer) => Payload::Integer(integer),
            Text::Bytes(bytes) => payload_of(bytes),
        })
    }

    fn intset(&mut self) -> Result<Intset, RdbError> {
        let bytes = self.owned()?;
        Intset::from_bytes(bytes).map_err(|error| self.damaged(error.to_string()))
    }

    fn small_sorted(&mut self, recipe: &Recipe<'_>) -> Result<Sorted, RdbError> {
        let mut are_scores = true;
        let pack = self.pairs(|item| {
            are_scores &= match item {
                Item::Integer(_) => true,
                Item::Bytes(text) => parse_f64(text).is_some(),
            };
        })?;
        if !are_scores {
            return Err(self.damaged("a score that is not a number"));
        }
        Ok(match self.keeps_encodings {
            true => Sorted::Pack(pack),
            false => Sorted::from_listpack(pack, recipe),
        })
    }

    /// A listpack of names and what belongs to them, which is handed to `value`; no name stands in
    /// it twice.
    fn pairs(&mut self, mut value: impl FnMut(Item<'_>)) -> Result<Listpack, RdbError> {
        let bytes = self.owned()?;
        let names = &mut self.names;
        names.clear();
        let mut is_name = true;
        let pack = Listpack::from_bytes_each(bytes, |item| {
            match is_name {
                true => names.add(item),
                false => value(item),
            }
            is_name = !is_name;
        });
        let pack = pack.map_err(|error| self.damaged(error.to_string()))?;
        if !is_name {
            return Err(self.damaged("a listpack of pairs with an odd element"));
        }
        if !self.names.are_distinct(&pack) {
            return Err(self.damaged("a name that stands in its listpack twice"));
        }
        Ok(pack)
    }

    pub(super) fn listpack(&self, bytes: Vec<u8>) -> Result<Listpack, RdbError> {
        Listpack::from_bytes(bytes).map_err(|error| self.damaged(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::length::put_length;
    use crate::settings::Settings;
    use crate::work::Work;
    use std::io::Empty;
    use structures::KeyHasher;

    /// A listpack of these texts, as a file has it.
    fn payload<'a>(texts: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
        let mut pack = Listpack::new();
        texts.for_each(|text| pack.push_back(text));
        let mut bytes = Vec::new();
        put_length(&mut bytes, pack.bytes().len() as u64);
        bytes.extend_from_slice(pack.bytes());
        bytes
    }

    /// The listpack that is read from a payload with these names, each with an empty value.
    fn pairs(names: &[&[u8]]) -> Result<Listpack, String> {
        let bytes = payload(names.iter().flat_map(|name| [*name, b""]));
        Source::<Empty>::of_bytes(&bytes).pairs(|_| {}).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_no_pair_or_no_score_is_refused() {
        let (settings, work) = (Settings::default(), Work::default());
        let recipe = Recipe { settings: &settings, hasher: KeyHasher::fixed(1), work: &work };
        let sorted = |texts: &[&[u8]]| {
            let read =
                Source::<Empty>::of_bytes(&payload(texts.iter().copied())).small_sorted(&recipe);
            read.map(|sorted| sorted.len()).map_err(|error| error.to_string())
        };
        assert_eq!(sorted(&[b"member", b"7", b"other", b"-1.5", b"8", b"inf"]), Ok(3));
        for (texts, expected) in [
            (&[b"member" as &[u8], b"7", b"other", b"many"][..], "a score that is not a number"),
            (&[b"member", b"7", b"other"], "an odd element"),
        ] {
            let why = sorted(texts).expect_err("it is no sorted set");
            assert!(why.contains(expected), "{why}");
        }
    }

    #[test]
    fn a_name_stands_in_a_listpack_once() {
        let many: Vec<Vec<u8>> = (0..200).map(|n| format!("{n}").into_bytes()).collect();
        let mut many: Vec<&[u8]> = many.iter().map(|name| &name[..]).collect();
        assert_eq!(pairs(&many).map(|pack| pack.len()), Ok(400));
        for twice in [&b"0"[..], b"57", b"199"] {
            many.push(twice);
            let why = pairs(&many).expect_err("it stands there twice");
            assert!(why.contains("a name that stands in its listpack twice"), "{why}");
            many.pop();
        }
        assert!(pairs(&[b"", b"a", b""]).is_err() && pairs(&[b"", b"a", b"aa"]).is_ok());
    }
}
