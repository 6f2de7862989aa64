//! A group's count of read entries and its lag, as far as they are known (Redis documentation,
//! XINFO GROUPS). Deleting entries within the stream makes them unknown.

use super::{Group, Stream};
use crate::stream_id::StreamId;

/// A count of read entries that is not known.
pub const UNKNOWN: i64 = -1;

impl Stream {
    /// The number of entries that were not delivered to the group yet; `None` if unknown.
    pub fn lag(&self, group: &Group) -> Option<i64> {
        let added = self.added as i64;
        if added == 0 {
            return Some(0);
        }
        let counter = Counter::of(self);
        if group.read() != UNKNOWN && !counter.has_gap_since(group.last_id()) {
            return Some(added.wrapping_sub(group.read()));
        }
        let read = counter.count_up_to(group.last_id());
        (read != UNKNOWN).then(|| added.wrapping_sub(read))
    }

    /// As [`Counter::count_up_to`].
    pub fn count_up_to(&self, id: StreamId) -> i64 {
        Counter::of(self).count_up_to(id)
    }

    /// Pretends that the stream has this many entries and last ID, and that none was ever deleted.
    pub(super) fn pretend(&mut self, len: u64, last: StreamId) {
        (self.len, self.added, self.last_id) = (len, len, last);
    }
}

/// Counts the entries that a group reads of one stream.
pub struct Counter<'a> {
    stream: &'a Stream,
    first: StreamId,
}

impl<'a> Counter<'a> {
    pub fn of(stream: &'a Stream) -> Self {
        Self { stream, first: stream.first_id() }
    }

    /// The count of read entries of a group that had read `read` and now reads the entry `id`.
    pub fn after(&mut self, read: i64, id: StreamId) -> i64 {
        if read != UNKNOWN && !self.has_gap_since(id) {
            // A client may have set the largest count there is.
            read.saturating_add(1)
        } else if self.stream.added > 0 {
            self.count_up_to(id)
        } else {
            read
        }
    }

    /// Whether an entry from this ID on may have been deleted: the stream knows only the greatest
    /// deleted ID.
    fn has_gap_since(&self, id: StreamId) -> bool {
        let max_deleted = self.stream.max_deleted;
        self.stream.len > 0
            && max_deleted != StreamId::MIN
            && self.first <= max_deleted
            && id <= max_deleted
    }

    /// How many entries were ever added up to this ID; [`UNKNOWN`] if deletions or trimming hide
    /// it.
    fn count_up_to(&self, id: StreamId) -> i64 {
        // A stream that came by RESTORE may claim any count. No group has one below `UNKNOWN`: a
        // dump could not tell it.
        self.wrapping_count_up_to(id).max(UNKNOWN)
    }

    fn wrapping_count_up_to(&self, id: StreamId) -> i64 {
        let Stream { len, added, last_id, max_deleted, .. } = *self.stream;
        let (added, len) = (added as i64, len as i64);
        if added == 0 || (len == 0 && id <= last_id) || id == last_id {
            return added;
        }
        if id > last_id {
            return UNKNOWN;
        }
        let is_whole = max_deleted == StreamId::MIN || max_deleted < self.first;
        match id.cmp(&self.first) {
            std::cmp::Ordering::Less if is_whole => added.wrapping_sub(len),
            std::cmp::Ordering::Equal if is_whole => added.wrapping_sub(len).wrapping_add(1),
            _ => UNKNOWN,
        }
    }
}
