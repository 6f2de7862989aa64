//! A set as a value among others.

use super::{MemberTable, Set};
use crate::rdb::length::put_string;
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
use crate::value::stored::{Cursor, STEP_ELEMENTS, Stored, put_scanned};
use crate::value::{Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;
use structures::MemberBuffer;

impl ValueType for Set {
    fn type_name(&self) -> &'static str {
        "set"
    }

    fn type_number(&self) -> u32 {
        2
    }

    fn encoding(&self) -> &'static str {
        match self {
            Self::Integers(_) => "intset",
            Self::Table(_) => "hashtable",
        }
    }

    fn elements(&self) -> usize {
        self.len()
    }

    fn allocated_bytes(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.allocated_bytes(),
            Self::Table(members) => {
                size_of::<MemberTable>() + members.table.allocated_bytes() + members.member_bytes
            }
        }
    }

    fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Integers(integers) => Self::Integers(integers.clone()),
            Self::Table(table) => Self::Table(Box::new(table.copied(work))),
        }
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = MemberBuffer::new();
        self.iter().try_for_each(|member| visit(Element::Member(member.bytes(&mut buffer))))
    }

    fn stored(&self) -> Stored<'_> {
        match self {
            Self::Integers(integers) => Stored::Packed(kind::SET_INTSET, integers.bytes()),
            Self::Table(members) => Stored::InPieces(kind::SET, members.table.len()),
        }
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        let mut buffer = MemberBuffer::new();
        put_scanned(out, cursor, bytes_max, |out, cursor| {
            self.scan(cursor, STEP_ELEMENTS, |member| put_string(out, member.bytes(&mut buffer)))
        })
    }

    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        if !parts.read(source, 1, until)? {
            return Ok(false);
        }
        recipe.work.step();
        match self.add(&parts.strings[0], recipe) {
            true => Ok(true),
            false => Err(source.damaged("a member that stands in its set twice")),
        }
    }
}
