//! A sorted set as a value among others.

use super::Sorted;
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
use crate::value::stored::{Cursor, Stored, put_item};
use crate::value::{Awaited, Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;
use structures::{MemberBuffer, Scored, SortedSet};

impl ValueType for Sorted {
    fn type_name(&self) -> &'static str {
        "zset"
    }

    fn type_number(&self) -> u32 {
        3
    }

    fn serves(&self) -> Option<Awaited> {
        Some(Awaited::SortedSet)
    }

    fn encoding(&self) -> &'static str {
        match self {
            Self::Pack(_) => "listpack",
            Self::Tree(_) => "skiplist",
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
            Self::Tree(tree) => size_of::<SortedSet>() + tree.allocated_bytes(),
        }
    }

    fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Pack(pack) => Self::Pack(pack.clone()),
            Self::Tree(tree) => {
                let mut copy = SortedSet::new(tree.hasher());
                for (member, score) in tree.iter() {
                    work.step();
                    copy.insert(member, score);
                }
                Self::Tree(Box::new(copy))
            }
        }
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = MemberBuffer::new();
        self.iter().try_for_each(|(member, score)| {
            visit(Element::Scored(member.bytes(&mut buffer), score))
        })
    }

    fn stored(&self) -> Stored<'_> {
        match self {
            Self::Pack(pack) => Stored::Packed(kind::ZSET_LISTPACK, pack.bytes()),
            Self::Tree(tree) => Stored::InPieces(kind::ZSET_2, tree.len()),
        }
    }

    /// From the greatest down, as Redis writes them.
    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        let bytes_until = out.len().saturating_add(bytes_max);
        let left = self.len() - cursor.0 as usize;
        for (member, score) in self.descending(0..left) {
            if out.len() >= bytes_until {
                return false;
            }
            put_item(out, member);
            out.extend_from_slice(&score.to_le_bytes());
            cursor.0 += 1;
        }
        true
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
        let score = f64::from_le_bytes(source.array()?);
        if score.is_nan() {
            return Err(source.damaged("a score that is not a number"));
        }
        if self.insert(&parts.strings[0], score, recipe) != Scored::Added {
            return Err(source.damaged("a member that stands in its sorted set twice"));
        }
        Ok(true)
    }
}
