//! Streams: entries in the order of their IDs, and groups of consumers that read them.
//!
//! ```text
//! Stream ── blocks: ID of the first entry ─▶ Block   entries beside each other, in Redis's form
//!        └─ groups: name ─▶ Group ── pending: ID ─▶ consumer, when and how often delivered
//!                                 └─ consumers
//! ```
//! Entries are appended at the end and mostly removed from the front, so a block is filled once and
//! dropped as a whole; an entry deleted elsewhere is only marked. A stream without entries stays:
//! it keeps its last ID and its groups.
//!
//! | module | holds |
//! |---|---|
//! | `block` | the bytes of a block |
//! | `check` | whether bytes are a block |
//! | `range` | entries between two IDs, from either end |
//! | `trim` | which entries trimming removes |
//! | `group` | groups, consumers, what is pending |
//! | `references` | which entries groups still need |
//! | `lag` | how far a group is behind |
//! | `radix` | how many nodes Redis's tree of the blocks would have |
//! | `parts` | what a stream consists of, each part as an effect |
//! | `stored`, `reading` | a stream in files, written and read in pieces |

mod as_value;
mod block;
mod check;
pub mod group;
mod lag;
mod parts;
mod radix;
pub mod range;
pub(crate) mod reading;
mod references;
mod stored;
mod trim;

pub use block::{Entry, entries_of};
pub use group::{Consumer, Group, Pending};
pub use lag::{Counter, UNKNOWN};
pub use parts::Part;
pub(crate) use stored::StreamCursor;
pub use trim::Threshold;

use crate::effect::{Fields, Ids};
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::value::{EntryRef, Recipe, Value, not_of};
use crate::work::Work;
use block::Block;
use std::collections::BTreeMap;
use structures::Listpack;
use structures::Mover;
use structures::entry::ValueRef;

/// The most bytes of a block, or of the fields of an entry: the limit of a listpack, as in Redis.
pub const BLOCK_BYTES_MAX: u64 = 1 << 30;

/// Bytes of a block in the tree of blocks, beside its own. A guess: half-full nodes of a B-tree.
const BLOCK_SLOT_BYTES: usize = 64;

/// A stream, with counts of its bytes and entries.
#[derive(Clone, Default)]
pub struct Stream {
    /// The blocks, each by its base: the ID of the first entry that it had.
    blocks: BTreeMap<StreamId, Block>,
    /// The number of entries, without deleted ones.
    len: u64,
    last_id: StreamId,
    max_deleted: StreamId,
    added: u64,
    groups: BTreeMap<Vec<u8>, Group>,
    /// Bytes of the blocks.
    block_bytes: usize,
    /// Bytes of the groups.
    group_bytes: usize,
    /// The number of pending entries and consumers of all groups.
    group_elements: usize,
}

/// An empty stream.
pub fn create(_: &Recipe<'_>) -> Value {
    Value::Stream(Box::default())
}

/// The stream in an entry.
///
/// # Errors
/// WRONGTYPE if the entry holds another type.
pub fn of(entry: EntryRef<'_>) -> Result<&Stream, Refusal> {
    match entry.value() {
        ValueRef::Boxed(Value::Stream(stream)) => Ok(stream),
        _ => Err(not_of(entry, "stream")),
    }
}

/// The stream in a value, to be changed.
///
/// # Errors
/// WRONGTYPE if the value is of another type.
pub fn of_mut(value: &mut Value) -> Result<&mut Stream, Refusal> {
    match value {
        Value::Stream(stream) => Ok(stream),
        _ => Err(Refusal::WRONG_TYPE),
    }
}

impl Stream {
    /// The number of entries.
    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The last ID: the greatest that the stream gave to an entry, or that XSETID set.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// The greatest ID of a deleted entry; [`StreamId::MIN`] if there is none.
    pub fn max_deleted(&self) -> StreamId {
        self.max_deleted
    }

    /// How many entries were ever added.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Moves what `mover` takes of up to `blocks_max` blocks, from the first one on that begins
    /// with this ID or a later one. Returns where to go on, `None` at the end.
    pub(crate) fn move_blocks(
        &mut self,
        from: StreamId,
        blocks_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<StreamId> {
        let mut blocks = self.blocks.range_mut(from..);
        blocks.by_ref().take(blocks_max).for_each(|(_, block)| block.move_block(mover));
        blocks.next().map(|(base, _)| *base)
    }

    /// The number of blocks.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    pub fn groups(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (name.as_slice(), group))
    }

    pub fn group(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Appends an entry. Returns false and does nothing if its ID is not greater than the last ID.
    pub fn add(&mut self, id: StreamId, fields: Fields<'_>, recipe: &Recipe<'_>) -> bool {
        if id <= self.last_id {
            return false;
        }
        let bytes: usize = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
        recipe.work.steps(fields.len());
        self.make_way(id, recipe.work);
        let mut last = self.blocks.last_entry();
        let full = last.as_mut().is_none_or(|last| {
            let is_full = is_full(last.get(), bytes as u64, recipe);
            if is_full {
                let before = last.get().allocated_bytes();
                last.get_mut().shrink();
                self.block_bytes -= before - last.get().allocated_bytes();
            }
            is_full
        });
        match last.filter(|_| !full) {
            Some(mut last) => {
                let base = *last.key();
                let block = last.get_mut();
                let before = block.allocated_bytes();
                block.push(base, id, fields);
                self.block_bytes = self.block_bytes + block.allocated_bytes() - before;
            }
            None => self.insert(id, Block::of(fields)),
        }
        self.len += 1;
        self.added = self.added.wrapping_add(1);
        self.last_id = id;
        true
    }

    /// Appends a block of another stream.
    ///
    /// # Errors
    /// It is no valid block, or its entries do not follow those of the stream.
    pub fn add_block(
        &mut self,
        base: StreamId,
        bytes: Vec<u8>,
        work: &Work,
    ) -> Result<(), &'static str> {
        let pack = Listpack::from_bytes(bytes).map_err(|_| "no listpack")?;
        let block = Block::from_listpack(base, pack, work)?;
        let last = self.last_entry().map(|entry| entry.id);
        let last = last.max(self.blocks.last_key_value().map(|(base, _)| *base));
        if last.is_some_and(|last| base <= last) {
            return Err("blocks of a stream that are not in the order of their IDs");
        }
        let count = block.count();
        self.last_id = self.last_id.max(block.last_id(base));
        self.insert(base, block);
        // A damaged block may end in a deleted entry that is smaller than others.
        self.last_id = self.last_id.max(self.last_entry().map_or(StreamId::MIN, |entry| entry.id));
        self.len = self.len.saturating_add(count);
        self.added = self.added.saturating_add(count);
        Ok(())
    }

    /// Removes blocks without entries that begin at this ID or later. Trimming may have left them;
    /// [`Self::set_id`] then lets smaller IDs follow.
    fn make_way(&mut self, id: StreamId, work: &Work) {
        while let Some((&base, _)) = self.blocks.last_key_value().filter(|(base, _)| **base >= id) {
            work.step();
            self.remove_block(base);
        }
    }

    fn insert(&mut self, base: StreamId, block: Block) {
        self.block_bytes += block.allocated_bytes() + BLOCK_SLOT_BYTES;
        self.blocks.insert(base, block);
    }

    fn remove_block(&mut self, base: StreamId) {
        if let Some(block) = self.blocks.remove(&base) {
            self.block_bytes -= block.allocated_bytes() + BLOCK_SLOT_BYTES;
            self.len -= block.count();
        }
    }

    /// Deletes entries; returns how many existed.
    pub fn delete(&mut self, ids: Ids<'_>, work: &Work) -> u64 {
        ids.iter().filter(|id| self.delete_one(*id, work)).count() as u64
    }

    fn delete_one(&mut self, id: StreamId, work: &Work) -> bool {
        work.step();
        let Some((&base, block)) = self.blocks.range_mut(..=id).next_back() else { return false };
        let before = block.allocated_bytes();
        if !block.delete(base, id, work) {
            return false;
        }
        self.block_bytes = self.block_bytes + block.allocated_bytes() - before;
        self.len -= 1;
        if block.count() == 0 {
            self.remove_block(base);
        }
        self.max_deleted = self.max_deleted.max(id);
        true
    }

    /// Removes all entries with IDs smaller than `below`, or all if that is [`StreamId::MIN`];
    /// returns how many there were. They do not change the greatest deleted ID. A block that ends
    /// with a deleted entry of a greater ID than `below` stays without entries, as in Redis, unless
    /// the next block begins before that ID.
    pub fn trim(&mut self, below: StreamId, work: &Work) -> u64 {
        let (before, mut from) = (self.len, StreamId::MIN);
        while let Some((&base, block)) = self.blocks.range_mut(from..).next() {
            work.step();
            if below == StreamId::MIN || block.last_id(base) < below {
                self.remove_block(base);
                continue;
            }
            let bytes = block.allocated_bytes();
            self.len -= block.delete_below(base, below, work);
            self.block_bytes = self.block_bytes + block.allocated_bytes() - bytes;
            let Some(next) = base.next().filter(|_| block.count() == 0) else { break };
            let last = block.last_id(base);
            if self.blocks.range(next..).next().is_some_and(|(behind, _)| *behind <= last) {
                self.remove_block(base);
            }
            from = next;
        }
        before - self.len
    }

    /// Sets the counters of XSETID. Returns false and does nothing if an entry has a greater ID
    /// than `last`. A deleted entry may have one: then entries with smaller IDs can follow it, in
    /// its block too.
    pub fn set_id(&mut self, last: StreamId, added: u64, max_deleted: StreamId) -> bool {
        if self.last_entry().is_some_and(|entry| entry.id > last) {
            return false;
        }
        self.last_id = last;
        self.added = added;
        self.max_deleted = max_deleted;
        true
    }
}

/// Whether an entry of this many bytes must begin a new block.
fn is_full(block: &Block, bytes: u64, recipe: &Recipe<'_>) -> bool {
    let settings = recipe.settings;
    let bytes_max = match settings.stream_node_max_bytes {
        0 => BLOCK_BYTES_MAX,
        bytes => bytes.min(BLOCK_BYTES_MAX),
    };
    let entries_max = settings.stream_node_max_entries;
    block.total_bytes() as u64 + bytes >= bytes_max
        || (entries_max > 0 && block.slots() >= entries_max)
}
