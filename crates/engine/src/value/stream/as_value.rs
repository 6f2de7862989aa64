//! The stream as a [`ValueType`].

use super::Stream;
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
use crate::value::stored::{Cursor, Stored};
use crate::value::{Awaited, Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;

impl ValueType for Box<Stream> {
    fn type_name(&self) -> &'static str {
        "stream"
    }

    fn type_number(&self) -> u32 {
        6
    }

    fn serves(&self) -> Option<Awaited> {
        Some(Awaited::Stream)
    }

    fn encoding(&self) -> &'static str {
        "stream"
    }

    /// Blocks, pending entries and consumers: each is an allocation of its own, to be freed in
    /// steps.
    fn elements(&self) -> usize {
        self.blocks.len() + self.groups.len() + self.group_elements
    }

    /// Never: a stream without entries stays, because it keeps its last ID and its groups.
    fn is_empty(&self) -> bool {
        false
    }

    fn allocated_bytes(&self) -> usize {
        size_of::<Stream>() + self.block_bytes + self.group_bytes
    }

    fn copied(&self, work: &Work) -> Self {
        work.bytes(self.block_bytes);
        work.steps(self.group_elements);
        self.clone()
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        self.try_each_part(|part| visit(Element::Stream(part)))
    }

    fn stored(&self) -> Stored<'_> {
        Stored::InPieces(kind::STREAM_LISTPACKS_2, self.blocks.len())
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        self.put_from(out, &mut cursor.1, bytes_max)
    }

    /// Reads the stream part by part, as one element.
    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        let Some(reading) = &mut parts.stream else {
            return Err(source.damaged("a stream that was not begun"));
        };
        while !reading.is_done() {
            if source.offset() >= until {
                return Ok(false);
            }
            let mut wrong = None;
            reading.step(source, recipe.work, |part| {
                wrong = self.take(part, recipe).err();
                Ok(())
            })?;
            if let Some(what) = wrong {
                return Err(source.damaged(what));
            }
        }
        Ok(true)
    }
}
