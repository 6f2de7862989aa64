//! An open segment and the open piece in it: where the next record goes.
//!
//! The open piece has its part of the segment for itself, so that long records, which are pieces of
//! their own, go behind it while small ones still go into it.
//!
//! ```text
//! segment | pieces closed before | open piece … reserved | long record | next ……… end |
//! ```

use crate::limits::{PAGE_BYTES, SMALL_BYTES_MAX};
use crate::pieces::Piece;
use crate::place::Place;
use crate::record;
use crate::segment::Taken;

/// An open segment.
pub(crate) struct OpenSegment {
    pub(crate) taken: Taken,
    /// Where in the file it begins.
    pub(crate) offset: u64,
    /// Bytes of it that pieces have, or the open piece has reserved.
    pub(crate) used: usize,
}

/// A piece into which records still go.
pub(crate) struct OpenPiece {
    pub(crate) taken: Taken,
    offset: u64,
    reserved: usize,
    bytes: Vec<u8>,
}

/// Records of one sort, one after the other.
#[derive(Default)]
pub(crate) struct Stream {
    pub(crate) segment: Option<OpenSegment>,
    pub(crate) piece: Option<OpenPiece>,
}

impl Stream {
    /// Bytes of the open segment that no piece has.
    pub(crate) fn rest(&self, segment_bytes: usize) -> usize {
        self.segment.as_ref().map_or(0, |segment| segment_bytes - segment.used)
    }

    /// The same if the open piece were closed.
    pub(crate) fn rest_without_piece(&self, segment_bytes: usize) -> usize {
        self.rest(segment_bytes) + self.unused()
    }

    /// Bytes that the open piece would give back if it were closed.
    fn unused(&self) -> usize {
        let (Some(segment), Some(piece)) = (&self.segment, &self.piece) else { return 0 };
        let is_last = piece.offset + piece.reserved as u64 == segment.offset + segment.used as u64;
        let length = piece.bytes.len().next_multiple_of(PAGE_BYTES);
        if is_last { piece.reserved - length } else { 0 }
    }

    /// Reserves bytes of the open segment; tells the segment, and where they begin.
    pub(crate) fn reserve(&mut self, bytes: usize) -> (Taken, u64) {
        let segment = self.segment.as_mut().expect("a segment is opened before its pieces");
        let offset = segment.offset + segment.used as u64;
        segment.used += bytes;
        (segment.taken, offset)
    }

    pub(crate) fn fits(&self, length: usize) -> bool {
        self.piece.as_ref().is_some_and(|piece| piece.start_of(length) + length <= piece.reserved)
    }

    /// Takes the open piece out, padded to whole pages. What it reserved and did not use is given
    /// back if nothing lies behind it, else it is padded to its end: what cleaning reads has no
    /// holes. Tells with it the bytes between its last record and its end.
    pub(crate) fn close_piece(&mut self) -> Option<(Piece, usize)> {
        let unused = self.unused();
        let OpenPiece { taken, offset, reserved, mut bytes } = self.piece.take()?;
        let segment = self.segment.as_mut().expect("a piece is closed before its segment");
        segment.used -= unused;
        let (filled, length) = (bytes.len(), reserved - unused);
        bytes.resize(length, 0);
        let piece = Piece { offset, segment: taken.index, generation: taken.generation, bytes };
        Some((piece, length - filled))
    }

    /// Memory of the open piece.
    pub(crate) fn bytes(&self) -> usize {
        self.piece.as_ref().map_or(0, |piece| piece.bytes.capacity())
    }
}

impl OpenPiece {
    pub(crate) fn new(taken: Taken, offset: u64, reserved: usize, bytes: Vec<u8>) -> Self {
        Self { taken, offset, reserved, bytes }
    }

    /// Where in the piece a record of some length goes: a small one not across pages.
    fn start_of(&self, length: usize) -> usize {
        let filled = self.bytes.len();
        let page_end = filled.next_multiple_of(PAGE_BYTES);
        let across = length <= SMALL_BYTES_MAX && filled < page_end && filled + length > page_end;
        if across { page_end } else { filled }
    }

    /// Appends a record that fits; tells its place, and how many bytes were left before it.
    pub(crate) fn append(&mut self, hash: u64, content: &[u8], length: usize) -> (Place, usize) {
        let (filled, start) = (self.bytes.len(), self.start_of(length));
        let place = Place::new(self.offset + start as u64, length);
        self.bytes.resize(start, 0);
        record::append(&mut self.bytes, place, self.taken.generation, hash, content);
        (place, start - filled)
    }

    /// The bytes from a place on, if it lies in the piece.
    pub(crate) fn find(&self, place: Place) -> Option<&[u8]> {
        let start = place.offset().checked_sub(self.offset)?;
        self.bytes.get(start as usize..).filter(|bytes| !bytes.is_empty())
    }
}
