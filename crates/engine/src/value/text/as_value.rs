//! A string as a value among others: one that is long or grows.

use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
use crate::value::stored::{Cursor, Stored};
use crate::value::{Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;
use structures::heap::ByteVec;

impl ValueType for ByteVec {
    fn type_name(&self) -> &'static str {
        "string"
    }

    fn type_number(&self) -> u32 {
        0
    }

    fn encoding(&self) -> &'static str {
        "raw"
    }

    fn elements(&self) -> usize {
        1
    }

    fn allocated_bytes(&self) -> usize {
        Self::allocated_bytes(self)
    }

    fn copied(&self, work: &Work) -> Self {
        work.bytes(self.len());
        self.clone()
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        visit(Element::Text(self))
    }

    fn stored(&self) -> Stored<'_> {
        Stored::InPieces(kind::STRING, self.len())
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        let rest = &self[cursor.0 as usize..];
        let piece = &rest[..rest.len().min(bytes_max)];
        out.extend_from_slice(piece);
        cursor.0 += piece.len() as u64;
        piece.len() == rest.len()
    }

    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        _: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        let is_read = parts.read(source, 1, until)?;
        if is_read {
            *self = std::mem::take(&mut parts.strings[0]).into();
        }
        Ok(is_read)
    }
}
