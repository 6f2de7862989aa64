//! One value of each type, as RDB files and DUMP payloads hold it.

use super::length::{Text, put_integer, put_string};
use super::piece::{ELEMENT_BYTES, Place, put_count, put_pieces};
use super::{RdbError, Source, kind};
use crate::number::parse_f64;
use crate::value::text::payload_of;
use crate::value::{Hash, Recipe, Set, Sorted, Value, list};
use crate::work::Work;
use std::collections::BTreeSet;
use std::io::Read;
use structures::entry::{Payload, ValueRef};
use structures::listpack::Item;
use structures::{Intset, Listpack, Scored};

/// Containers of a list's nodes.
pub(crate) const NODE_PLAIN: u64 = 1;
pub(crate) const NODE_PACKED: u64 = 2;

/// The type byte of a value.
pub fn kind_of(value: ValueRef<'_, Value>) -> u8 {
    match value {
        ValueRef::Integer(_) | ValueRef::Bytes(_) | ValueRef::Boxed(Value::Text(_)) => kind::STRING,
        ValueRef::Boxed(Value::List(_)) => kind::LIST_QUICKLIST_2,
        ValueRef::Boxed(Value::Set(Set::Integers(_))) => kind::SET_INTSET,
        ValueRef::Boxed(Value::Set(Set::Table(_))) => kind::SET,
        ValueRef::Boxed(Value::Hash(Hash::Pack(_))) => kind::HASH_LISTPACK,
        ValueRef::Boxed(Value::Hash(Hash::Table(_))) => kind::HASH,
        ValueRef::Boxed(Value::Sorted(Sorted::Pack(_))) => kind::ZSET_LISTPACK,
        ValueRef::Boxed(Value::Sorted(Sorted::Tree(_))) => kind::ZSET_2,
    }
}

/// Appends a value, without its type byte.
pub fn put_value(out: &mut Vec<u8>, value: ValueRef<'_, Value>, work: &Work) {
    match value {
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Bytes(bytes) => put_string(out, bytes),
        ValueRef::Boxed(Value::Text(text)) => put_string(out, text),
        ValueRef::Boxed(Value::Set(Set::Integers(integers))) => put_string(out, integers.bytes()),
        ValueRef::Boxed(Value::Hash(Hash::Pack(pack))) => put_string(out, pack.bytes()),
        ValueRef::Boxed(Value::Sorted(Sorted::Pack(pack))) => put_string(out, pack.bytes()),
        ValueRef::Boxed(value) => {
            put_count(out, value);
            put_pieces(out, value, &mut Place::default(), work);
        }
    }
}

pub(crate) fn put_item(out: &mut Vec<u8>, item: Item<'_>) {
    match item {
        Item::Bytes(bytes) => put_string(out, bytes),
        Item::Integer(integer) => put_integer(out, integer),
    }
}

impl<R: Read> Source<R> {
    /// Reads a value of this type. Collections take the encoding that the file has, as in Redis.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged, or the type is unknown.
    pub fn value(&mut self, kind: u8, recipe: &Recipe<'_>) -> Result<Payload<'_, Value>, RdbError> {
        let value = match kind {
            kind::STRING => {
                return Ok(match self.text()? {
                    Text::Integer(integer) => Payload::Integer(integer),
                    Text::Bytes(bytes) => payload_of(bytes),
                });
            }
            kind::LIST_QUICKLIST_2 => self.list(recipe)?,
            kind::SET_INTSET => Value::Set(Set::from_intset(self.intset()?)),
            kind::SET => Value::Set(self.set(recipe)?),
            kind::HASH_LISTPACK => Value::Hash(Hash::from_listpack(self.pairs()?)),
            kind::HASH => Value::Hash(self.hash(recipe)?),
            kind::ZSET_LISTPACK => Value::Sorted(self.small_sorted(recipe)?),
            kind::ZSET_2 => Value::Sorted(self.sorted(recipe)?),
            _ => return Err(self.unsupported(format!("a value of type {kind}"))),
        };
        if value.is_empty() {
            return Err(self.damaged("an empty collection"));
        }
        Ok(Payload::Boxed(Box::new(value)))
    }

    fn list(&mut self, recipe: &Recipe<'_>) -> Result<Value, RdbError> {
        let mut value = list::create(recipe);
        let nodes = self.length()?;
        for _ in 0..nodes {
            let container = self.length()?;
            let bytes = self.owned()?;
            recipe.work.steps(1 + bytes.len() / ELEMENT_BYTES);
            let Value::List(list) = &mut value else { break };
            match container {
                NODE_PLAIN => list.push_plain_node(bytes),
                NODE_PACKED => list.push_packed_node(self.listpack(bytes)?),
                _ => return Err(self.damaged("a list's node of unknown form")),
            }
        }
        Ok(value)
    }

    fn intset(&mut self) -> Result<Intset, RdbError> {
        let bytes = self.owned()?;
        Intset::from_bytes(bytes).map_err(|error| self.damaged(error.to_string()))
    }

    fn set(&mut self, recipe: &Recipe<'_>) -> Result<Set, RdbError> {
        let mut set = Set::empty_table(recipe.hasher);
        let mut member = Vec::new();
        for _ in 0..self.length()? {
            self.text_into(&mut member)?;
            recipe.work.step();
            if !set.add(&member, recipe) {
                return Err(self.damaged("a member that stands in its set twice"));
            }
        }
        Ok(set)
    }

    fn hash(&mut self, recipe: &Recipe<'_>) -> Result<Hash, RdbError> {
        let mut hash = Hash::empty_table(recipe.hasher);
        let (mut field, mut value) = (Vec::new(), Vec::new());
        for _ in 0..self.length()? {
            self.text_into(&mut field)?;
            self.text_into(&mut value)?;
            recipe.work.step();
            if !hash.set(&field, &value, recipe) {
                return Err(self.damaged("a field that stands in its hash twice"));
            }
        }
        Ok(hash)
    }

    fn sorted(&mut self, recipe: &Recipe<'_>) -> Result<Sorted, RdbError> {
        let mut sorted = Sorted::new();
        let mut member = Vec::new();
        for _ in 0..self.length()? {
            self.text_into(&mut member)?;
            recipe.work.step();
            let score = f64::from_le_bytes(self.array()?);
            if score.is_nan() {
                return Err(self.damaged("a score that is not a number"));
            }
            if sorted.insert(&member, score, recipe) != Scored::Added {
                return Err(self.damaged("a member that stands in its sorted set twice"));
            }
        }
        Ok(sorted)
    }

    fn small_sorted(&mut self, recipe: &Recipe<'_>) -> Result<Sorted, RdbError> {
        let pack = self.pairs()?;
        let is_score = |item: Item<'_>| match item {
            Item::Integer(_) => true,
            Item::Bytes(text) => parse_f64(text).is_some(),
        };
        if !pack.iter().skip(1).step_by(2).all(is_score) {
            return Err(self.damaged("a score that is not a number"));
        }
        Ok(Sorted::from_listpack(pack, recipe))
    }

    /// A listpack of names and what belongs to them; no name stands in it twice.
    fn pairs(&mut self) -> Result<Listpack, RdbError> {
        let bytes = self.owned()?;
        let pack = self.listpack(bytes)?;
        let mut names = BTreeSet::new();
        let mut items = pack.iter();
        while let Some(name) = items.next() {
            if items.next().is_none() {
                return Err(self.damaged("a listpack of pairs with an odd element"));
            }
            if !names.insert(name.to_vec()) {
                return Err(self.damaged("a name that stands in its listpack twice"));
            }
        }
        Ok(pack)
    }

    fn listpack(&self, bytes: Vec<u8>) -> Result<Listpack, RdbError> {
        Listpack::from_bytes(bytes).map_err(|error| self.damaged(error.to_string()))
    }
}
