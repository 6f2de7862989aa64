//! Consumer groups: how far a group has read, its consumers, and the pending entries: delivered and
//! not acknowledged (Redis documentation, "Redis Streams", consumer groups).

use super::Stream;
use crate::effect::Ids;
use crate::stream_id::StreamId;
use crate::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// Bytes of a pending entry, which is in two trees. A guess: half-full nodes.
const PENDING_BYTES: usize = 96;

/// Bytes of a consumer or a group in its tree, beside itself and its name. A guess.
const SLOT_BYTES: usize = 64;

/// A consumer group.
#[derive(Clone, Default)]
pub struct Group {
    last_id: StreamId,
    read: i64,
    pending: BTreeMap<StreamId, Pending>,
    /// Indices in `slots`, by consumer name.
    names: BTreeMap<Vec<u8>, u32>,
    slots: Vec<Option<Consumer>>,
    /// Free indices of `slots`.
    free: Vec<u32>,
    name_bytes: usize,
}

/// A pending entry: delivered to a consumer, and not acknowledged.
#[derive(Clone, Copy)]
pub struct Pending {
    /// The consumer's index.
    slot: u32,
    /// The last delivery, as a Unix time in milliseconds.
    pub time: i64,
    /// The number of deliveries.
    pub count: u64,
}

/// A consumer of a group.
#[derive(Clone)]
pub struct Consumer {
    name: Vec<u8>,
    /// The consumer's last request, as a Unix time in milliseconds.
    seen: i64,
    pending: BTreeSet<StreamId>,
}

impl Group {
    /// The last delivered ID: of the last entry that the group read, or as XGROUP SETID set it.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// How many entries the stream had up to that one; [`super::lag::UNKNOWN`] if that is not
    /// known.
    pub fn read(&self) -> i64 {
        self.read
    }

    /// The pending entries from this ID on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = (StreamId, Pending)> {
        self.pending.range(from..).map(|(id, pending)| (*id, *pending))
    }

    /// The pending entries behind this ID, or all.
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

    /// The smallest and the greatest pending ID.
    pub fn pending_ends(&self) -> Option<(StreamId, StreamId)> {
        Some((*self.pending.first_key_value()?.0, *self.pending.last_key_value()?.0))
    }

    /// The consumers, ordered by name.
    pub fn consumers(&self) -> impl Iterator<Item = &Consumer> {
        self.names.values().filter_map(|slot| self.at(*slot))
    }

    pub fn consumers_len(&self) -> usize {
        self.names.len()
    }

    pub fn consumer(&self, name: &[u8]) -> Option<&Consumer> {
        self.at(*self.names.get(name)?)
    }

    /// The consumer to which an entry is pending.
    pub fn owner(&self, pending: Pending) -> Option<&Consumer> {
        self.at(pending.slot)
    }

    fn at(&self, slot: u32) -> Option<&Consumer> {
        self.slots.get(slot as usize)?.as_ref()
    }

    fn consumer_mut(&mut self, slot: u32) -> Option<&mut Consumer> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    /// Bytes of the group and of its place in the tree.
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

    /// Makes entries pending to a consumer, whichever consumer had them before.
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

    /// The consumer's last request, as a Unix time in milliseconds.
    pub fn seen(&self) -> i64 {
        self.seen
    }

    /// The IDs pending to it, from this one on.
    pub fn pending_from(&self, from: StreamId) -> impl Iterator<Item = StreamId> {
        self.pending.range(from..).copied()
    }

    /// The IDs pending to it behind this one, or all.
    pub(super) fn pending_behind(&self, id: Option<StreamId>) -> impl Iterator<Item = StreamId> {
        let from = id.map_or(Bound::Unbounded, Bound::Excluded);
        self.pending.range((from, Bound::Unbounded)).copied()
    }

    pub fn pending_len(&self) -> usize {
        self.pending.len()
    }
}

impl Stream {
    /// Creates a group; returns false if the name is taken.
    pub fn create_group(&mut self, name: &[u8], last: StreamId, read: i64) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        let group = Group { last_id: last, read, name_bytes: name.len(), ..Group::default() };
        self.group_bytes += group.bytes();
        self.groups.insert(name.to_vec(), group);
        true
    }

    /// Sets a group's progress; returns whether the group exists.
    pub fn set_group(&mut self, name: &[u8], last: StreamId, read: i64) -> bool {
        let set = self.edit_group(name, |group| {
            group.last_id = last;
            group.read = read;
        });
        set.is_some()
    }

    /// Deletes a group; returns whether it existed.
    pub fn delete_group(&mut self, name: &[u8], work: &Work) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        work.steps(group.elements());
        self.group_bytes -= group.bytes();
        self.group_elements -= group.elements();
        true
    }

    /// Creates a consumer; returns false if the group does not exist or the name is taken.
    pub fn create_consumer(&mut self, group: &[u8], name: &[u8], seen: i64) -> bool {
        self.edit_group(group, |group| group.create_consumer(name, seen)) == Some(true)
    }

    /// Deletes a consumer with its pending entries; returns whether it existed.
    pub fn delete_consumer(&mut self, group: &[u8], name: &[u8], work: &Work) -> bool {
        self.edit_group(group, |group| group.delete_consumer(name, work)) == Some(true)
    }

    /// Notes that a consumer was seen, and makes entries pending to it: `count` times delivered,
    /// the last time at `time`. Returns whether the consumer exists.
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

    /// Removes entries from the pending ones; returns how many were pending.
    pub fn acknowledge(&mut self, group: &[u8], ids: Ids<'_>, work: &Work) -> u64 {
        self.edit_group(group, |group| group.acknowledge(ids, work)).unwrap_or(0)
    }

    /// Changes a group, and updates the stream's count of the groups' bytes and elements.
    fn edit_group<T>(&mut self, name: &[u8], edit: impl FnOnce(&mut Group) -> T) -> Option<T> {
        let group = self.groups.get_mut(name)?;
        let (bytes, elements) = (group.bytes(), group.elements());
        let done = edit(group);
        self.group_bytes = self.group_bytes + group.bytes() - bytes;
        self.group_elements = self.group_elements + group.elements() - elements;
        Some(done)
    }
}
