//! The pieces in memory that are full: they wait for their write, and are read meanwhile.
//!
//! A piece leaves memory when it is written. A write that failed is handed out again: the same
//! bytes at the same place, so nothing is harmed if some of them had arrived.

use crate::limits::PAGE_BYTES;
use crate::place::Place;
use crate::record::{HEADER_BYTES, Header};
use crate::seal::Sealer;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Buffers that are kept for pieces to come: what two streams take while a write is under way.
pub(crate) const SPARE_BUFFERS_MAX: usize = 3;

/// Names one attempt to write a piece.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WriteId(u64);

/// Whole pages of one segment that are written at once. Immutable.
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) segment: u32,
    pub(crate) generation: u32,
    pub(crate) bytes: Vec<u8>,
}

/// A piece to be written. It may be sent to a thread; what became of it is told to
/// [`crate::Tier::written`] or [`crate::Tier::failed`].
#[derive(Clone)]
pub struct Write {
    id: WriteId,
    piece: Arc<Piece>,
}

impl Write {
    /// By this its outcome is told.
    pub fn id(&self) -> WriteId {
        self.id
    }

    /// Where in the file it goes, in bytes: a multiple of [`PAGE_BYTES`].
    pub fn offset(&self) -> u64 {
        self.piece.offset
    }

    /// How many bytes are written: a multiple of [`PAGE_BYTES`].
    pub fn length(&self) -> usize {
        self.piece.bytes.len()
    }

    /// Replaces what is in `out` by these pages of the piece, encrypted; `part` begins and ends
    /// at a multiple of [`PAGE_BYTES`]. Returns where in `out` they begin: at such a multiple in
    /// memory, as a device wants them. They end where `out` ends.
    pub fn seal_part(&self, sealer: &Sealer, part: Range<usize>, out: &mut Vec<u8>) -> usize {
        let Piece { offset, generation, bytes, .. } = &*self.piece;
        let start = base::disk::block_buffer(out, part.len());
        let first = (*offset + part.start as u64) / PAGE_BYTES as u64;
        out.extend_from_slice(&bytes[part]);
        sealer.seal(first, *generation, &mut out[start..]);
        start
    }
}

/// The content of a record that is not written yet. It may be sent to a thread.
#[derive(Clone)]
pub struct Shared {
    piece: Arc<Piece>,
    content: Range<usize>,
}

impl Shared {
    pub fn content(&self) -> &[u8] {
        &self.piece.bytes[self.content.clone()]
    }
}

/// Without the bytes, which are values of clients.
impl fmt::Debug for Write {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let length = self.length();
        write!(out, "Write {{ id: {:?}, offset: {}, length: {length} }}", self.id, self.offset())
    }
}

pub(crate) struct Pieces {
    piece_bytes: usize,
    /// All of them, by their offsets.
    pieces: BTreeMap<u64, Arc<Piece>>,
    /// Those that no write under way has: in the order in which they are written.
    queue: VecDeque<u64>,
    under_way: Vec<(WriteId, u64)>,
    /// Writes under way of pieces that were forgotten.
    stale: Vec<WriteId>,
    last_id: u64,
    /// Memory of the pieces.
    bytes: usize,
    spare: Vec<Vec<u8>>,
}

impl Pieces {
    pub(crate) fn new(piece_bytes: usize) -> Self {
        Self {
            piece_bytes,
            pieces: BTreeMap::new(),
            queue: VecDeque::new(),
            under_way: Vec::new(),
            stale: Vec::new(),
            last_id: 0,
            bytes: 0,
            spare: Vec::new(),
        }
    }

    pub(crate) fn push(&mut self, piece: Piece) {
        self.bytes += piece.bytes.capacity();
        self.queue.push_back(piece.offset);
        let before = self.pieces.insert(piece.offset, Arc::new(piece));
        debug_assert!(before.is_none(), "a segment is free only when all of it is written");
    }

    /// The next piece to write, unless `writes_max` are being written. While a write of a forgotten
    /// piece is under way, none: it could overwrite a newer one of the same pages.
    pub(crate) fn next_write(&mut self, writes_max: usize) -> Option<Write> {
        if self.under_way.len() >= writes_max || !self.stale.is_empty() {
            return None;
        }
        let offset = self.queue.pop_front()?;
        self.last_id += 1;
        let id = WriteId(self.last_id);
        self.under_way.push((id, offset));
        Some(Write { id, piece: Arc::clone(&self.pieces[&offset]) })
    }

    /// A write arrived: its piece leaves memory. The piece's segment, if it was not forgotten.
    pub(crate) fn written(&mut self, id: WriteId) -> Option<u32> {
        let offset = self.end(id)?;
        let piece = self.pieces.remove(&offset).expect("a piece stays until it is written");
        self.bytes -= piece.bytes.capacity();
        let segment = piece.segment;
        // The writer may still hold it; then its memory is freed later.
        if let Some(piece) = Arc::into_inner(piece) {
            self.keep(piece.bytes);
        }
        Some(segment)
    }

    /// A write failed: its piece is the next to be handed out.
    pub(crate) fn failed(&mut self, id: WriteId) {
        if let Some(offset) = self.end(id) {
            self.queue.push_front(offset);
        }
    }

    /// The offset of the piece of a write that ends now, if it was not forgotten.
    fn end(&mut self, id: WriteId) -> Option<u64> {
        self.stale.retain(|&stale| stale != id);
        let index = self.under_way.iter().position(|&(known, _)| known == id)?;
        Some(self.under_way.swap_remove(index).1)
    }

    /// The bytes from a place on, if it lies in one of the pieces.
    pub(crate) fn find(&self, place: Place) -> Option<&[u8]> {
        let (offset, piece) = self.pieces.range(..=place.offset()).next_back()?;
        piece.bytes.get((place.offset() - offset) as usize..).filter(|bytes| !bytes.is_empty())
    }

    /// The content of a record, if it lies in one of the pieces.
    pub(crate) fn share(&self, place: Place) -> Option<Shared> {
        let (offset, piece) = self.pieces.range(..=place.offset()).next_back()?;
        let start = (place.offset() - offset) as usize;
        let header = Header::of(piece.bytes.get(start..)?).ok()??;
        let from = start + HEADER_BYTES;
        let content = from..from + header.content_bytes();
        piece.bytes.get(content.clone())?;
        Some(Shared { piece: Arc::clone(piece), content })
    }

    /// An empty buffer for a piece.
    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.piece_bytes))
    }

    /// Keeps the memory of a piece for those to come, unless it was for a long record alone.
    fn keep(&mut self, mut buffer: Vec<u8>) {
        if buffer.capacity() == self.piece_bytes && self.spare.len() < SPARE_BUFFERS_MAX {
            buffer.clear();
            self.spare.push(buffer);
        }
    }

    /// Forgets all pieces, and what becomes of the writes under way.
    pub(crate) fn reset(&mut self) {
        self.stale.extend(self.under_way.drain(..).map(|(id, _)| id));
        self.pieces.clear();
        self.queue.clear();
        self.bytes = 0;
    }

    /// Memory of the pieces.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    #[cfg(any(test, feature = "twins"))]
    pub(crate) fn spare_bytes(&self) -> usize {
        self.spare.iter().map(Vec::capacity).sum()
    }
}
