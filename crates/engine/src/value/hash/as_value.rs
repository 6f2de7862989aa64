//! A hash as a value among others.

use super::{FieldTable, Hash};
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
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
            Self::Table(_) => "hashtable",
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
            Self::Table(fields) => {
                size_of::<FieldTable>() + fields.table.allocated_bytes() + fields.field_bytes
            }
        }
    }

    fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Pack(pack) => Self::Pack(pack.clone()),
            Self::Table(fields) => Self::Table(Box::new(fields.copied(work))),
        }
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let (mut first, mut second) = (MemberBuffer::new(), MemberBuffer::new());
        self.iter().try_for_each(|(field, value)| {
            visit(Element::Pair(field.bytes(&mut first), value.bytes(&mut second)))
        })
    }

    fn stored(&self) -> Stored<'_> {
        match self {
            Self::Pack(pack) => Stored::Packed(kind::HASH_LISTPACK, pack.bytes()),
            Self::Table(fields) => Stored::InPieces(kind::HASH, fields.table.len()),
        }
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        put_scanned(out, cursor, bytes_max, |out, cursor| {
            self.scan(cursor, STEP_ELEMENTS, |field, value| {
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
        if !parts.read(source, 2, until)? {
            return Ok(false);
        }
        recipe.work.step();
        let [field, value] = &parts.strings;
        match self.set(field, value, recipe) {
            true => Ok(true),
            false => Err(source.damaged("a field that stands in its hash twice")),
        }
    }
}
