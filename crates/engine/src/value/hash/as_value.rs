//! A hash as a value among others.

use super::Hash;
use crate::rdb::length::put_length;
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::{Parts, Times};
use crate::value::stored::{Cursor, STEP_ELEMENTS, Stored, put_item, put_scanned};
use crate::value::{Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;
use structures::MemberBuffer;

impl ValueType for Hash {
    fn type_name(&self) -> &'static str {
        "hash"
    }

    fn type_number(&self) -> u32 {
        4
    }

    fn encoding(&self) -> &'static str {
        match self {
            Self::Pack(_) => "listpack",
            // Redis's name for it since 7.4.
            Self::TimedPack(_) => "listpackex",
            Self::Table(_) | Self::TimedTable(_) => "hashtable",
        }
    }

    fn elements(&self) -> usize {
        self.len()
    }

    fn is_empty(&self) -> bool {
        Self::is_empty(self)
    }

    fn allocated_bytes(&self) -> usize {
        match self {
            Self::Pack(pack) => pack.allocated_bytes(),
            Self::Table(fields) => fields.allocated_bytes(),
            Self::TimedPack(timed) => timed.allocated_bytes(),
            Self::TimedTable(timed) => timed.allocated_bytes(),
        }
    }

    fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Pack(pack) => Self::Pack(pack.clone()),
            Self::Table(fields) => Self::Table(Box::new(fields.copied(work))),
            Self::TimedPack(timed) => Self::TimedPack(timed.clone()),
            Self::TimedTable(timed) => Self::TimedTable(Box::new(timed.copied(work))),
        }
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let (mut first, mut second) = (MemberBuffer::new(), MemberBuffer::new());
        self.iter_timed().try_for_each(|(field, value, expire_at)| {
            visit(Element::Pair(field.bytes(&mut first), value.bytes(&mut second), expire_at))
        })
    }

    fn stored(&self) -> Stored<'_> {
        match self {
            Self::Pack(pack) => Stored::Packed(kind::HASH_LISTPACK, pack.bytes()),
            Self::Table(fields) => Stored::InPieces(kind::HASH, fields.table.len()),
            // Redis's packed form would have to be sorted by time.
            Self::TimedPack(_) | Self::TimedTable(_) => {
                Stored::InPieces(kind::HASH_METADATA, self.len())
            }
        }
    }

    /// The earliest expiry, to which the others are relative.
    fn put_head(&self, out: &mut Vec<u8>) {
        if let Some(next) = self.next_expiry() {
            out.extend_from_slice(&next.to_le_bytes());
        }
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        let next = self.next_expiry();
        put_scanned(out, cursor, bytes_max, |out, cursor| {
            self.scan(cursor, STEP_ELEMENTS, |(field, value, expire_at)| {
                if let Some(next) = next {
                    put_length(out, expire_at.map_or(0, |at| at.abs_diff(next) + 1));
                }
                put_item(out, field);
                put_item(out, value);
            })
        })
    }

    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        let times = parts.times;
        if matches!(times, Times::Before { .. }) && parts.number.is_none() {
            parts.number = Some(source.length()?);
        }
        if !parts.read(source, 2, until)? {
            return Ok(false);
        }
        recipe.work.step();
        let expire_at = match (times, parts.number.take()) {
            (Times::Before { earliest }, Some(distance)) => source.time_from(earliest, distance)?,
            (Times::Behind, _) => source.field_time()?,
            (Times::None | Times::Before { .. }, _) => None,
        };
        let [field, value] = &parts.strings;
        match self.set_expiring(field, value, expire_at, recipe) {
            true => Ok(true),
            false => Err(source.damaged("a field that stands in its hash twice")),
        }
    }
}
