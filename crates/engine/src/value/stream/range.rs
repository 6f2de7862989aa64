//! Iteration over entries between two IDs, in either direction, without deleted ones.

use super::Stream;
use super::block::Entry;
use crate::stream_id::StreamId;

impl Stream {
    /// The entries from `start` to `end`, both included, in the order of their IDs.
    pub fn range(&self, start: StreamId, end: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let first = self.blocks.range(..=start).next_back().map_or(start, |(base, _)| *base);
        // A `BTreeMap` panics on a range that ends before it begins.
        let blocks = self.blocks.range(first..=end.max(first));
        let entries = blocks.flat_map(|(base, block)| block.entries(*base));
        // Only entries that are not deleted are in order: see [`Stream::set_id`].
        entries
            .filter(|entry| !entry.is_deleted())
            .skip_while(move |entry| entry.id < start)
            .take_while(move |entry| entry.id <= end)
    }

    /// The same entries from the greatest ID down.
    pub fn range_back(&self, start: StreamId, end: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let first = self.blocks.range(..=start).next_back().map_or(start, |(base, _)| *base);
        let blocks = self.blocks.range(first..=end.max(first)).rev();
        let entries = blocks.flat_map(|(base, block)| block.entries_back(*base));
        entries
            .filter(|entry| !entry.is_deleted())
            .skip_while(move |entry| entry.id > end)
            .take_while(move |entry| entry.id >= start)
    }

    /// Every entry, in the order of their IDs.
    pub fn iter(&self) -> impl Iterator<Item = Entry<'_>> {
        self.range(StreamId::MIN, StreamId::MAX)
    }

    pub fn first_entry(&self) -> Option<Entry<'_>> {
        self.iter().next()
    }

    pub fn last_entry(&self) -> Option<Entry<'_>> {
        self.range_back(StreamId::MIN, StreamId::MAX).next()
    }

    /// The entry with this ID.
    pub fn get(&self, id: StreamId) -> Option<Entry<'_>> {
        self.range(id, id).next()
    }

    /// The ID of the first entry; [`StreamId::MIN`] if there is none.
    pub fn first_id(&self) -> StreamId {
        self.first_entry().map_or(StreamId::MIN, |entry| entry.id)
    }
}
