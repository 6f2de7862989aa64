//! A long record in the making.
//!
//! Its content is written bit by bit, by whoever has little time at once, into the very memory from
//! which it goes to the file: in the end nothing is copied, and no checksum is computed over all
//! of it.

use crate::limits::PAGE_BYTES;
use crate::place::Place;
use crate::record::{self, HEADER_BYTES};

/// The content of a record so far. It may be filled by a thread that has no tier at hand.
pub struct Draft {
    /// Room for the header, and the content.
    bytes: Vec<u8>,
    /// Of the content.
    checksum: u32,
    /// Bytes of the tier's buffers that it counts as: see [`crate::Tier::begin_draft`].
    pub(crate) reserved: usize,
}

impl Draft {
    /// An empty one, with memory for this content and what pads it.
    fn with_room_for(content_bytes: usize) -> Self {
        let bytes_max = (HEADER_BYTES + content_bytes).next_multiple_of(PAGE_BYTES);
        let mut bytes = Vec::with_capacity(bytes_max);
        bytes.resize(HEADER_BYTES, 0);
        Self { bytes, checksum: 0, reserved: 0 }
    }

    /// An empty one whose memory, for this content at most, counts among a tier's buffers.
    pub(crate) fn reserved_for(content_bytes: usize) -> Self {
        let draft = Self::with_room_for(content_bytes);
        Self { reserved: draft.bytes.capacity(), ..draft }
    }

    /// One with this content, which counts as nobody's memory yet.
    pub fn of(content: &[u8]) -> Self {
        let mut draft = Self::with_room_for(content.len());
        draft.write(|bytes| bytes.extend_from_slice(content));
        draft
    }

    /// Lets `append` append to the content.
    pub fn write<T>(&mut self, append: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let before = self.bytes.len();
        let appended = append(&mut self.bytes);
        self.checksum = crc32c::crc32c_append(self.checksum, &self.bytes[before..]);
        appended
    }

    pub fn content(&self) -> &[u8] {
        &self.bytes[HEADER_BYTES..]
    }

    pub fn content_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }

    /// Whether it has become longer than its memory was counted.
    pub fn is_over(&self) -> bool {
        self.reserved > 0 && self.bytes.capacity() > self.reserved
    }

    /// Gives memory back that the record does not need.
    pub(crate) fn trim(&mut self) {
        self.bytes.shrink_to(self.bytes.len().next_multiple_of(PAGE_BYTES));
    }

    /// Memory that it takes.
    pub(crate) fn allocated_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// The record, as a piece of its own, which will lie at `place`.
    pub(crate) fn into_piece(self, place: Place, generation: u32, hash: u64) -> Vec<u8> {
        let Self { mut bytes, checksum, .. } = self;
        let content_bytes = bytes.len() - HEADER_BYTES;
        let header = record::header_of_draft(place, generation, hash, content_bytes, checksum);
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        bytes.resize(place.length().next_multiple_of(PAGE_BYTES), 0);
        bytes
    }
}
