//! The limits of a tier.

use crate::place::{OFFSET_BYTES_END, UNIT_BYTES};
use crate::record;

/// What is encrypted as one unit and never read in part.
pub const PAGE_BYTES: usize = base::disk::DIRECT_BLOCK_BYTES;

/// A record of at most this length, with its header, lies within one page: it costs one block to
/// read. Half a page: beyond it a record that avoids a page's end could leave half of it empty.
pub const SMALL_BYTES_MAX: usize = PAGE_BYTES / 2;

/// How a tier divides its file, and how much it keeps in memory and free.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of a segment: what is taken, emptied and taken again as a whole. 8 MiB: large enough
    /// that 1 TiB needs 3 MiB of table, small enough to be cleaned in a few milliseconds of disk.
    pub segment_bytes: usize,
    /// Bytes of a piece: what is written at once. 256 KiB: the log's sync and the reads of clients
    /// wait for one such write at most.
    pub piece_bytes: usize,
    /// The longest record, with its header, that shares a piece with others. A longer one is a
    /// piece of its own and begins at a page: the end of a shared piece would often not fit it.
    pub packed_bytes_max: usize,
    /// The longest record, with its header. 7 MiB: what the buffers have room for beside open
    /// pieces. Only one record of more than 4 MiB fits into a segment, so of such ones up to half
    /// of the file may be lost.
    pub record_bytes_max: usize,
    /// Bytes of pieces in memory, open ones and those not yet written, from which on nothing more
    /// is taken. 8 MiB are 5 ms of a disk that writes 1.8 GB/s.
    pub buffered_bytes_max: usize,
    /// Writes handed out at a time. They are done one after another, so that the log's sync waits
    /// for one at most; who does them need not wait for the loop between them.
    pub writes_max: usize,
    /// How full the tier may become, in percent of the capacity without the segments that cleaning
    /// keeps free. At 90, under uniform overwriting, each byte is written 5.2 times: greedy
    /// cleaning finds segments that are 81 % live, by (u - 1) / ln u = fill.
    pub fill_percent_max: u64,
    /// Cleaning keeps this part of the capacity free, in percent.
    pub free_percent_min: u64,
    /// And this many segments at least.
    pub free_segments_min: usize,
    /// The last free segments, which only survivors of cleaning may use: cleaning a segment needs
    /// at most one more for its survivors, and one for what the end of the first wastes.
    pub reserve_segments: usize,
    /// A segment is cleaned only if that gives this part of it back, in percent.
    pub room_percent_min: u64,
    /// The longest file, in bytes: that of a device. While a tier becomes smaller its file may be
    /// longer than its capacity, and without this for a while than its former one.
    pub file_bytes_max: u64,
}

const _: () = assert!(Limits::DEFAULT.are_sound());

impl Limits {
    pub const DEFAULT: Self = Self {
        segment_bytes: 8 << 20,
        piece_bytes: 256 << 10,
        packed_bytes_max: 16 << 10,
        record_bytes_max: 7 << 20,
        buffered_bytes_max: 8 << 20,
        writes_max: 4,
        fill_percent_max: 90,
        free_percent_min: 5,
        free_segments_min: 4,
        reserve_segments: 2,
        room_percent_min: 5,
        file_bytes_max: u64::MAX,
    };

    /// Whether the limits fit each other.
    pub(crate) const fn are_sound(&self) -> bool {
        // Pages of a segment are counted in 16 bits.
        self.segment_bytes / PAGE_BYTES <= u16::MAX as usize
            && self.segment_bytes.is_multiple_of(PAGE_BYTES)
            && self.piece_bytes.is_multiple_of(PAGE_BYTES)
            && self.piece_bytes >= PAGE_BYTES
            && self.piece_bytes <= self.segment_bytes
            // A record that shares a piece fits into an empty one.
            && self.packed_bytes_max >= SMALL_BYTES_MAX
            && self.packed_bytes_max <= self.piece_bytes
            && self.record_bytes_max >= self.packed_bytes_max
            && self.record_bytes_max <= self.segment_bytes
            && self.record_bytes_max.is_multiple_of(UNIT_BYTES)
            // Beside two open pieces, and one that `put` leaves to survivors, the longest record
            // fits as soon as all else is written.
            && self.record_bytes_max.next_multiple_of(PAGE_BYTES) + 3 * self.piece_bytes
                <= self.buffered_bytes_max
            && self.writes_max > 0
            && self.fill_percent_max <= 100
            && self.free_percent_min <= 100
            && self.reserve_segments < self.free_segments_min
            && self.room_percent_min > 0
            && self.room_percent_min <= 100
    }

    /// Whether a content of so many bytes is a piece of its own.
    pub fn is_alone(&self, content_bytes: usize) -> bool {
        record::length(content_bytes) > self.packed_bytes_max
    }

    /// Segments of a capacity, as far as places reach.
    pub(crate) fn segments(&self, capacity_bytes: u64) -> u32 {
        let bytes = capacity_bytes.min(self.file_bytes_max).min(OFFSET_BYTES_END);
        u32::try_from(bytes / self.segment_bytes as u64).unwrap_or(u32::MAX)
    }

    /// Segments that places reach, and the file.
    pub(crate) fn segments_max(&self) -> u32 {
        self.segments(self.file_bytes_max)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
