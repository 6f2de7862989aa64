//! Reading a stream from an RDB file, part by part: into a value that is loaded, or as effects.
//!
//! A file has a group's pending entries before its consumers, so they are kept until their consumer
//! is read.

use super::block::count_of;
use super::lag::UNKNOWN;
use super::{Part, Stream};
use crate::effect::Ids;
use crate::rdb::{RdbError, Source, kind};
use crate::stream_id::StreamId;
use crate::work::Work;
use std::collections::BTreeMap;
use std::io::Read;

/// The progress of reading a stream. A step reads one item; if the bytes end before it is complete,
/// it changes nothing.
pub(crate) struct Reading {
    kind: u8,
    stage: Stage,
    blocks: u64,
    groups: u64,
    /// The group that is being read, and its pending entries whose consumer was not read yet.
    group: Vec<u8>,
    unowned: BTreeMap<StreamId, (i64, u64)>,
    consumers: u64,
    consumer: (Vec<u8>, i64),
    /// The number of pending entries still to be read, of the group or of the consumer.
    pending: u64,
    /// The number of entries in the blocks read so far.
    len: u64,
    /// The stream with its first block alone, to compute the counts that files before 7.0 do not
    /// have.
    head: Stream,
    has_blocks: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Blocks,
    Head,
    Group,
    Pending,
    Consumers,
    Consumer,
    ConsumersPending,
    Done,
}

impl Reading {
    /// Begins to read a value of this RDB type, after its number of blocks.
    pub fn new(kind: u8, blocks: u64) -> Self {
        Self {
            kind,
            stage: Stage::Blocks,
            blocks,
            groups: 0,
            group: Vec::new(),
            unowned: BTreeMap::new(),
            consumers: 0,
            consumer: (Vec::new(), 0),
            pending: 0,
            len: 0,
            head: Stream::default(),
            has_blocks: false,
        }
    }

    pub fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// Reads one item and hands it to `take` as a part.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged, and the error of `take`.
    pub fn step<R: Read>(
        &mut self,
        source: &mut Source<R>,
        work: &Work,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        work.step();
        match self.stage {
            Stage::Blocks if self.blocks == 0 => {
                if !self.has_blocks {
                    take(Part::Empty)?;
                }
                self.stage = Stage::Head;
                Ok(())
            }
            Stage::Blocks => self.block(source, work, take),
            Stage::Head => self.head(source, take),
            Stage::Group => self.group(source, take),
            Stage::Pending => self.pending(source),
            Stage::Consumers => {
                self.consumers = source.length()?;
                self.stage = Stage::Consumer;
                Ok(())
            }
            Stage::Consumer => self.consumer(source, take),
            Stage::ConsumersPending => self.consumers_pending(source, take),
            Stage::Done => Ok(()),
        }
    }

    fn block<R: Read>(
        &mut self,
        source: &mut Source<R>,
        work: &Work,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        let id = source.owned()?;
        let block = source.owned()?;
        let Ok(id) = <[u8; StreamId::BYTES]>::try_from(id) else {
            return Err(source.damaged("a block of a stream without an ID"));
        };
        let base = StreamId::from_bytes(id);
        work.bytes(block.len());
        take(Part::Block { base, block: &block })?;
        self.len = self.len.saturating_add(count_of(&block));
        if self.kind == kind::STREAM_LISTPACKS && self.head.first_entry().is_none() {
            let added = self.head.add_block(base, block, work);
            added.map_err(|what| source.damaged(what))?;
        }
        self.blocks -= 1;
        self.has_blocks = true;
        Ok(())
    }

    fn head<R: Read>(
        &mut self,
        source: &mut Source<R>,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        let len = source.length()?;
        let last = id(source)?;
        let (mut max_deleted, mut added) = (StreamId::MIN, len);
        if self.kind != kind::STREAM_LISTPACKS {
            let _first = id(source)?;
            max_deleted = id(source)?;
            added = source.length()?;
        }
        let groups = source.length()?;
        if len != self.len {
            return Err(source.damaged("a stream that counts its entries wrong"));
        }
        self.head.pretend(len, last);
        take(Part::Head { last, added, max_deleted })?;
        self.groups = groups;
        self.end_group();
        Ok(())
    }

    fn group<R: Read>(
        &mut self,
        source: &mut Source<R>,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        let name = source.owned()?;
        let last = id(source)?;
        let read = match self.kind {
            kind::STREAM_LISTPACKS => self.head.count_up_to(last),
            _ => source.length()? as i64,
        };
        let pending = source.length()?;
        take(Part::Group { name: &name, last, read: read.max(UNKNOWN) })?;
        self.group = name;
        self.pending = pending;
        self.groups -= 1;
        self.stage = Stage::Pending;
        Ok(())
    }

    fn pending<R: Read>(&mut self, source: &mut Source<R>) -> Result<(), RdbError> {
        if self.pending == 0 {
            self.stage = Stage::Consumers;
            return Ok(());
        }
        let id = StreamId::from_bytes(source.array()?);
        let time = i64::from_le_bytes(source.array()?);
        let count = source.length()?;
        if self.unowned.insert(id, (time, count)).is_some() {
            return Err(source.damaged("an entry that is pending twice"));
        }
        self.pending -= 1;
        Ok(())
    }

    fn consumer<R: Read>(
        &mut self,
        source: &mut Source<R>,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        if self.consumers == 0 {
            if !self.unowned.is_empty() {
                return Err(source.damaged("an entry that is pending to nobody"));
            }
            self.end_group();
            return Ok(());
        }
        let name = source.owned()?;
        let seen = i64::from_le_bytes(source.array()?);
        if self.kind == kind::STREAM_LISTPACKS_3 {
            let _active: [u8; 8] = source.array()?;
        }
        let pending = source.length()?;
        take(Part::Consumer { group: &self.group, name: &name, seen })?;
        self.consumer = (name, seen);
        self.pending = pending;
        self.consumers -= 1;
        self.stage = Stage::ConsumersPending;
        Ok(())
    }

    fn consumers_pending<R: Read>(
        &mut self,
        source: &mut Source<R>,
        mut take: impl FnMut(Part<'_>) -> Result<(), RdbError>,
    ) -> Result<(), RdbError> {
        if self.pending == 0 {
            self.stage = Stage::Consumer;
            return Ok(());
        }
        let id = StreamId::from_bytes(source.array()?);
        let Some(&(time, count)) = self.unowned.get(&id) else {
            return Err(source.damaged("an entry that is pending to a consumer alone"));
        };
        let mut bytes = Vec::with_capacity(StreamId::BYTES);
        Ids::put(&mut bytes, id);
        let ids = Ids::of(&bytes).expect("one whole ID");
        let (consumer, seen) = (&self.consumer.0, self.consumer.1);
        take(Part::Pending { group: &self.group, consumer, seen, time, count, ids })?;
        self.unowned.remove(&id);
        self.pending -= 1;
        Ok(())
    }

    fn end_group(&mut self) {
        self.stage = if self.groups == 0 { Stage::Done } else { Stage::Group };
    }
}

fn id<R: Read>(source: &mut Source<R>) -> Result<StreamId, RdbError> {
    Ok(StreamId::new(source.length()?, source.length()?))
}
