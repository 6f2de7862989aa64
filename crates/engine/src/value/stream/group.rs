//! Groups of consumers: how far a group has read, who reads for it, and what was given to whom and
//! not acknowledged (Redis documentation, "Redis Streams", consumer groups).

use super::Stream;
use crate::effect::Ids;
use crate::stream_id::StreamId;
use crate::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Bytes that a pending entry takes: its place in two trees. A guess: half-full nodes.
const PENDING_BYTES: usize = 96;

/// Bytes that a consumer or a group takes in a tree, beside itself and its name. A guess.
const SLOT_BYTES: usize = 64;

/// A group of consumers.
#[derive(Clone, Default)]
pub struct Group {
    last_id: StreamId,
    read: i64,
    pending: BTreeMap<StreamId, Pending>,
    /// Places among `slots`, by name.
    names: BTreeMap<Vec<u8>, u32>,
    slots: Vec<Option<Consumer>>,
    /// Places that are free again.
    free: Vec<u32>,
    name_bytes: usize,
}

/// An entry that was given to a consumer and not acknowledged.
#[derive(Clone, Copy)]
pub struct Pending {
    /// The consumer's place.
    slot: u32,
    /// The last time it was given to somebody, as a Unix time in milliseconds.
    pub time: i64,
    /// How often it was given to somebody.
    pub count: u64,
}

/// One who reads for a group.
#[derive(Clone)]
pub struct Consumer {
    name: Vec<u8>,
    /// The last time that it asked for something, as a Unix time in milliseconds.
    seen: i64,
    pending: BTreeSet<StreamId>,
}

impl Group {
    /// The last entry that was given to somebody, or what the group was told of it.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// How many entries came up to that one; [`super::lag::UNKNOWN`] if that is not known.
    pub fn read(&self) -> i64 {
        self.read
    }

    /// What is pending, from this ID on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = (StreamId, Pending)> {
        self.pending.range(from..).map(|(id, pending)| (*id, *pending))
    }

    /// What is pending behind this ID, or all.
    pub(super) fn pending_behind(
        &self,
        id: Option<StreamId>,
    ) -> impl Iterator<Item = (StreamId, Pending)> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.pending.range((from, Bound::Unbounded)).map(|(id, pending)| (*id, *pending))
    }

    pub fn pending(&self, id: StreamId) -> Option<Pending> {
        self.pending.get(&id).copied()
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }

    /// The first and the last ID that is pending.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        Some((*self.pending.first_key_value()?.0, *self.pending.last_key_value()?.0))
    }

    /// Consumers, in the order of their names.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.values().filter_map(|slot| self.at(*slot))
    }

    pub fn consumers_len(&self) -> usize {
        self.names.len()
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.at(*self.names.get(name)?)
    }

    /// The consumer that an entry is pending to.
    pub fn owner(&self, pending: Pending) -> Option<&Consumer> {
        self.at(pending.slot)
    }

    fn at(&self, slot: u32) -> Option<&Consumer> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn consumer_mut(&mut self, slot: u32) -> Option<&mut Consumer> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Bytes behind the group, with what it takes in its tree.
    fn bytes(&self) -> usize {
        let consumers = self.names.len() * (size_of::<Consumer>() + SLOT_BYTES);
        let group = size_of::<Self>() + SLOT_BYTES;
        group + consumers + self.name_bytes + self.pending.len() * PENDING_BYTES
    }

    fn elements(&self) -> usize {
        self.pending.len() + self.names.len()
    }

    fn create_consumer(&mut self, name: &[u8], seen: i64) -> bool {
        if self.names.contains_key(name) {
            return false;
        }
        let consumer = Consumer { name: name.to_vec(), seen, pending: BTreeSet::new() };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                (self.slots.len() - 1) as u32
            }
        };
        self.slots[slot as usize] = Some(consumer);
        self.names.insert(name.to_vec(), slot);
        self.name_bytes += 2 * name.len();
        true
    }

    fn delete_consumer(&mut self, name: &[u8], work: &Work) -> bool {
        let Some(slot) = self.names.remove(name) else { return false };
        let consumer = self.slots[slot as usize].take();
        for id in consumer.into_iter().flat_map(|consumer| consumer.pending) {
            work.step();
            self.pending.remove(&id);
        }
        self.free.push(slot);
        self.name_bytes -= 2 * name.len();
        true
    }

    /// Gives entries to a consumer, whoever had them.
    fn deliver(&mut self, slot: u32, time: i64, count: u64, ids: Ids<'_>, work: &Work) {
        for id in ids.iter() {
            work.step();
            let before = self.pending.insert(id, Pending { slot, time, count });
            if before.is_some_and(|before| before.slot == slot) {
                continue;
            }
            if let Some(owner) = before.and_then(|before| self.consumer_mut(before.slot)) {
                owner.pending.remove(&id);
            }
            if let Some(consumer) = self.consumer_mut(slot) {
                consumer.pending.insert(id);
            }
        }
    }

    fn acknowledge(&mut self, ids: Ids<'_>, work: &Work) -> u64 {
        let mut acknowledged = 0;
        for id in ids.iter() {
            work.step();
            let Some(pending) = self.pending.remove(&id) else { continue };
            if let Some(owner) = self.consumer_mut(pending.slot) {
                owner.pending.remove(&id);
            }
            acknowledged += 1;
        }
        acknowledged
    }
}

impl Consumer {
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The last time that it asked for something, as a Unix time in milliseconds.
    pub fn seen(&self) -> i64 {
        self.seen
    }

    /// What is pending to it, from this ID on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = StreamId> {
        self.pending.range(from..).copied()
    }

    /// What is pending to it behind this ID, or all.
    pub(super) fn pending_behind(&self, id: Option<StreamId>) -> impl Iterator<Item = StreamId> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.pending.range((from, Bound::Unbounded)).copied()
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

impl Stream {
    /// Makes a group; whether there was none of that name.
    pub fn create_group(&mut self, name: &[u8], last: StreamId, read: i64) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        let group = Group { last_id: last, read, name_bytes: name.len(), ..Group::default() };
        self.group_bytes += group.bytes();
        self.groups.insert(name.to_vec(), group);
        true
    }

    /// Says how far a group has read; whether there is such a group.
    pub fn set_group(&mut self, name: &[u8], last: StreamId, read: i64) -> bool {
        let set = self.edit_group(name, |group| {
            group.last_id = last;
            group.read = read;
        });
        set.is_some()
    }

    /// Deletes a group; whether it was there.
    pub fn delete_group(&mut self, name: &[u8], work: &Work) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        work.steps(group.elements());
        self.group_bytes -= group.bytes();
        self.group_elements -= group.elements();
        true
    }

    /// Makes a consumer; whether the group is there and had none of that name.
    pub fn create_consumer(&mut self, group: &[u8], name: &[u8], seen: i64) -> bool {
        self.edit_group(group, |group| group.create_consumer(name, seen)) == Some(true)
    }

    /// Deletes a consumer with what is pending to it; whether it was there.
    pub fn delete_consumer(&mut self, group: &[u8], name: &[u8], work: &Work) -> bool {
        self.edit_group(group, |group| group.delete_consumer(name, work)) == Some(true)
    }

    /// Notes that a consumer was seen, and gives it entries, `count` times delivered and the last
    /// time at `time`; whether it is there.
    #[allow(clippy::too_many_arguments, reason = "the operands of one effect")]
    pub fn deliver(
        &mut self,
        group: &[u8],
        consumer: &[u8],
        seen: i64,
        time: i64,
        count: u64,
        ids: Ids<'_>,
        work: &Work,
    ) -> bool {
        let delivered = self.edit_group(group, |group| {
            let slot = *group.names.get(consumer)?;
            group.consumer_mut(slot)?.seen = seen;
            group.deliver(slot, time, count, ids, work);
            Some(())
        });
        delivered.flatten().is_some()
    }

    /// Takes entries out of what is pending; how many were.
    pub fn acknowledge(&mut self, group: &[u8], ids: Ids<'_>, work: &Work) -> u64 {
        self.edit_group(group, |group| group.acknowledge(ids, work)).unwrap_or(0)
    }

    /// Changes a group, and keeps count of its bytes and elements.
    fn edit_group<T>(&mut self, name: &[u8], edit: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let group = self.groups.get_mut(name)?;
        let (bytes, elements) = (group.bytes(), group.elements());
        let done = edit(group);
        self.group_bytes = self.group_bytes + group.bytes() - bytes;
        self.group_elements = self.group_elements + group.elements() - elements;
        Some(done)
    }
}
