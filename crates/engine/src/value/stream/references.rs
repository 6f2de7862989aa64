//! The entries that groups of a stream still need: those that are pending to a consumer, and those
//! that a group has yet to read.

use super::{Stream, Threshold};
use crate::stream_id::StreamId;
use crate::work::Work;

impl Stream {
    /// Returns whether a group needs the entry with this ID, which may be deleted already. Entries
    /// pending in the group `but_pending_to` do not count.
    pub fn refers_to(&self, id: StreamId, but_pending_to: Option<&[u8]>, work: &Work) -> bool {
        self.groups().inspect(|_| work.step()).any(|(name, group)| {
            group.last_id() < id || but_pending_to != Some(name) && group.pending(id).is_some()
        })
    }

    /// The entries that trimming deletes if it spares those that a group needs, in the order of
    /// their IDs. With `whole` only whole blocks are deleted, and at most `entries_max` entries are
    /// considered, if that is not 0.
    pub fn unneeded(
        &self,
        threshold: Threshold,
        whole: bool,
        entries_max: u64,
        work: &Work,
    ) -> Vec<StreamId> {
        match whole {
            true => self.unneeded_blocks(threshold, entries_max, work),
            false => self.unneeded_entries(threshold, work),
        }
    }

    fn unneeded_entries(&self, threshold: Threshold, work: &Work) -> Vec<StreamId> {
        let read_by_all = self.groups().map(|(_, group)| group.last_id()).min();
        let (mut left, mut going) = (self.len, Vec::new());
        work.steps(self.groups.len());
        for entry in self.iter() {
            work.step();
            let is_met = match threshold {
                Threshold::MaxLen(len) => left <= len,
                Threshold::MinId(id) => entry.id >= id,
            };
            if is_met || read_by_all.is_some_and(|last| entry.id > last) {
                break;
            }
            if !self.refers_to(entry.id, None, work) {
                going.push(entry.id);
                left -= 1;
            }
        }
        going
    }

    /// The same by whole blocks. A block stays if any ID between its ends is pending, even that of
    /// a deleted entry: a threshold that need not be met exactly is looked at quickly.
    fn unneeded_blocks(
        &self,
        threshold: Threshold,
        entries_max: u64,
        work: &Work,
    ) -> Vec<StreamId> {
        let (mut left, mut considered, mut going) = (self.len, 0_u64, Vec::new());
        for (base, block) in &self.blocks {
            let count = block.count();
            considered += count;
            let is_met = match threshold {
                Threshold::MaxLen(len) => left <= len || left - count < len,
                Threshold::MinId(id) => block.last_id(*base) >= id,
            };
            if is_met || (entries_max > 0 && considered > entries_max) {
                break;
            }
            let is_needed = self.groups().inspect(|_| work.step()).any(|(_, group)| {
                let last = block.last_id(*base);
                let pending = group.pending_from(*base).next();
                group.last_id() < last || pending.is_some_and(|(id, _)| id <= last)
            });
            if !is_needed {
                let there = block.entries(*base).inspect(|_| work.step());
                going.extend(there.filter(|entry| !entry.is_deleted()).map(|entry| entry.id));
                left -= count;
            }
        }
        going
    }

    /// The number of these IDs that are the stream's first entries, one by one, and the ID of the
    /// entry after those.
    pub fn leading(&self, ids: &[StreamId], work: &Work) -> (usize, Option<StreamId>) {
        let mut count = 0;
        for entry in self.iter() {
            work.step();
            if ids.get(count) != Some(&entry.id) {
                return (count, Some(entry.id));
            }
            count += 1;
        }
        (count, None)
    }
}
