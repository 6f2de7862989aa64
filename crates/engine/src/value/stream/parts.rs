//! A stream as a sequence of parts, from which it is built again: by effects, from a file, or for
//! another key.

use super::Stream;
use crate::effect::{Effect, Ids};
use crate::stream_id::StreamId;
use crate::value::Recipe;

/// A part of a stream.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Part<'a> {
    /// An empty stream; the first part if there are no blocks.
    Empty,
    /// A block of entries, as a listpack.
    Block {
        base: StreamId,
        block: &'a [u8],
    },
    /// The stream's counters.
    Head {
        last: StreamId,
        added: u64,
        max_deleted: StreamId,
    },
    Group {
        name: &'a [u8],
        last: StreamId,
        read: i64,
    },
    Consumer {
        group: &'a [u8],
        name: &'a [u8],
        seen: i64,
    },
    /// Entries pending to a consumer, which was last seen at `seen`.
    Pending {
        group: &'a [u8],
        consumer: &'a [u8],
        seen: i64,
        time: i64,
        count: u64,
        ids: Ids<'a>,
    },
}

impl<'a> Part<'a> {
    /// The effect that adds the part to a stream.
    pub fn effect(self) -> Effect<'a> {
        match self {
            Self::Empty => Effect::StreamCreate,
            Self::Block { base, block } => Effect::StreamBlock { base, block },
            Self::Head { last, added, max_deleted } => {
                Effect::StreamSetId { last, added, max_deleted }
            }
            Self::Group { name, last, read } => {
                Effect::StreamGroupCreate { group: name, last, read }
            }
            Self::Consumer { group, name, seen } => {
                Effect::StreamConsumerCreate { group, consumer: name, seen }
            }
            Self::Pending { group, consumer, seen, time, count, ids } => {
                Effect::StreamDeliver { group, consumer, seen, time, count, ids }
            }
        }
    }
}

impl Stream {
    /// Calls `visit` with each part in turn, until it fails.
    ///
    /// # Errors
    /// The error of `visit`.
    pub(super) fn try_each_part<E>(
        &self,
        mut visit: impl FnMut(Part<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        if self.blocks.is_empty() {
            visit(Part::Empty)?;
        }
        for (base, block) in &self.blocks {
            visit(Part::Block { base: *base, block: block.bytes() })?;
        }
        let (last, added, max_deleted) = (self.last_id, self.added, self.max_deleted);
        visit(Part::Head { last, added, max_deleted })?;
        let mut bytes = Vec::with_capacity(StreamId::BYTES);
        for (name, group) in self.groups() {
            visit(Part::Group { name, last: group.last_id(), read: group.read() })?;
            for it in group.consumers() {
                visit(Part::Consumer { group: name, name: it.name(), seen: it.seen() })?;
            }
            for (id, pending) in group.pending_from(StreamId::MIN) {
                let Some(owner) = group.owner(pending) else { continue };
                bytes.clear();
                Ids::put(&mut bytes, id);
                visit(Part::Pending {
                    group: name,
                    consumer: owner.name(),
                    seen: owner.seen(),
                    time: pending.time,
                    count: pending.count,
                    ids: Ids::of(&bytes).expect("one whole ID"),
                })?;
            }
        }
        Ok(())
    }

    /// Adds a part to the stream, as its effect does.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn take(&mut self, part: Part<'_>, recipe: &Recipe<'_>) -> Result<(), &'static str> {
        let work = recipe.work;
        let is_new = match part {
            Part::Empty => true,
            Part::Block { base, block } => {
                self.add_block(base, block.to_vec(), work)?;
                true
            }
            Part::Head { last, added, max_deleted } => self.set_id(last, added, max_deleted),
            Part::Group { name, last, read } => self.create_group(name, last, read),
            Part::Consumer { group, name, seen } => self.create_consumer(group, name, seen),
            Part::Pending { group, consumer, seen, time, count, ids } => {
                self.deliver(group, consumer, seen, time, count, ids, work)
            }
        };
        if is_new { Ok(()) } else { Err("a part of a stream that does not fit the others") }
    }
}
