//! Reads the frames of one segment in large pieces, and says precisely why it stops.

use super::layout::{FRAME_ALIGN, FRAME_BYTES, PAGE_BYTES, framed_bytes};
use crate::record::{self, HEADER_BYTES, Header, u64_at};
use base::Sequence;
use base::disk::DiskFile;
use bytes::{Bytes, BytesMut};
use std::io;
use std::sync::Arc;

/// Bytes read per call at most: large enough that the call does not matter, small enough for the
/// cache of one core to help the parser. A guess: revisit with docs/measurements.
const CHUNK_BYTES: usize = 1 << 20;

/// Bytes of the first call at a place, doubled with each further one: at the tail of a log that is
/// being written, what follows are zeroes. Some milliseconds of a busy writer's records.
const FIRST_CHUNK_BYTES: usize = 64 << 10;

/// What lies at the reader's place.
#[derive(Debug)]
pub(crate) enum Frame {
    Record {
        sequence: Sequence,
        header: Header,
        bytes: Bytes,
    },
    /// Nothing was written here: zeroes or the end of the file.
    Empty {
        offset: u64,
    },
    /// Something was, and it is not the next record.
    Invalid {
        offset: u64,
        what: String,
    },
}

/// A place in a segment.
pub(crate) struct FrameReader {
    file: Arc<dyn DiskFile>,
    salt: u64,
    next: Sequence,
    offset: u64,
    chunk: Bytes,
    chunk_at: u64,
    /// What the next call reads.
    chunk_bytes: usize,
}

impl FrameReader {
    /// Starts at the segment's first record.
    pub(crate) fn new(file: Arc<dyn DiskFile>, salt: u64, first: Sequence) -> Self {
        let offset = PAGE_BYTES as u64;
        let (chunk, chunk_bytes) = (Bytes::new(), FIRST_CHUNK_BYTES);
        Self { file, salt, next: first, offset, chunk, chunk_at: offset, chunk_bytes }
    }

    /// For who has read the segment and does not come back: a log is longer than memory, and who
    /// follows it would push everything else out of the page cache. Others that are behind on this
    /// machine read the disk then.
    pub(crate) fn release_cache(&self) {
        self.file.release_cache();
    }

    /// Where the next frame begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// The sequence of the next frame.
    pub(crate) fn next_sequence(&self) -> Sequence {
        self.next
    }

    /// Reads the disk anew: a tail may have grown since the last piece was read.
    pub(crate) fn refresh(&mut self) {
        self.chunk = Bytes::new();
        self.chunk_at = self.offset;
        self.chunk_bytes = FIRST_CHUNK_BYTES;
    }

    /// Reads the next frame. After anything but a record, the reader stays where it is and reads
    /// the disk anew when asked again: a tail may have grown.
    pub(crate) fn next(&mut self) -> io::Result<Frame> {
        let frame = self.read_frame()?;
        match &frame {
            Frame::Record { bytes, .. } => {
                self.offset += framed_bytes(bytes.len()) as u64;
                self.next = self.next.next();
            }
            _ => self.refresh(),
        }
        Ok(frame)
    }

    fn read_frame(&mut self) -> io::Result<Frame> {
        let offset = self.offset;
        let prefix = self.bytes(FRAME_BYTES + HEADER_BYTES)?;
        if prefix.iter().all(|byte| *byte == 0) {
            return Ok(Frame::Empty { offset });
        }
        let (sequence, salt) = (u64_at(&prefix, 0), u64_at(&prefix, 8));
        if salt != Some(self.salt) || sequence != Some(self.next.0) {
            return Ok(self.invalid("no frame of the expected record begins here"));
        }
        let Some(length) = record::stated_length(&prefix[FRAME_BYTES..]) else {
            return Ok(self.invalid("the record is cut short"));
        };
        // The length is not to be trusted with memory: what is larger than a chunk must be in the
        // file. Asking for the file's length costs its writer (see `Disk::exists` of `world`).
        let is_modest = FRAME_BYTES + length <= CHUNK_BYTES;
        let end = offset + (FRAME_BYTES + length) as u64;
        if length < HEADER_BYTES || (!is_modest && end > self.file.length()?) {
            return Ok(self.invalid("the record's length points outside the file"));
        }
        let framed = self.bytes(FRAME_BYTES + length)?;
        if framed.len() < FRAME_BYTES + length {
            return Ok(self.invalid("the record's length points outside the file"));
        }
        let bytes = framed.slice(FRAME_BYTES..);
        match record::decode_header(&bytes, true) {
            Ok(header) => Ok(Frame::Record { sequence: self.next, header, bytes }),
            Err(error) => Ok(self.invalid(&error.to_string())),
        }
    }

    fn invalid(&self, what: &str) -> Frame {
        Frame::Invalid { offset: self.offset, what: what.to_owned() }
    }

    /// Whether the chunk holds `count` bytes at the reader's offset.
    fn has(&self, count: usize) -> bool {
        (self.offset - self.chunk_at) as usize + count <= self.chunk.len()
    }

    /// `count` bytes at the reader's offset, fewer at the end of the file.
    fn bytes(&mut self, count: usize) -> io::Result<Bytes> {
        let start = (self.offset - self.chunk_at) as usize;
        if !self.has(count) {
            self.chunk = read_piece(&*self.file, self.offset, count.max(self.chunk_bytes))?;
            self.chunk_at = self.offset;
            self.chunk_bytes = CHUNK_BYTES.min(2 * self.chunk_bytes);
            return Ok(self.chunk.slice(..count.min(self.chunk.len())));
        }
        Ok(self.chunk.slice(start..start + count))
    }

    /// Searches the rest of the segment for a frame that proves that the record at the reader's
    /// place was durable: a later, valid record whose writer already knew it to be.
    pub(crate) fn later_proof(&self) -> io::Result<Option<Sequence>> {
        let length = self.file.length()?;
        let salt = self.salt.to_le_bytes();
        let mut at = self.offset + FRAME_ALIGN as u64;
        while at < length {
            let piece = read_piece(&*self.file, at, CHUNK_BYTES)?;
            for (index, word) in piece.chunks_exact(FRAME_ALIGN).enumerate() {
                if word != salt {
                    continue;
                }
                let frame_at = at + (index * FRAME_ALIGN) as u64 - 8;
                if let Some((sequence, header)) = self.frame_at(frame_at, length)?
                    && sequence > self.next
                    && header.durable >= self.next
                {
                    return Ok(Some(sequence));
                }
            }
            at += CHUNK_BYTES as u64;
        }
        Ok(None)
    }

    fn frame_at(&self, at: u64, length: u64) -> io::Result<Option<(Sequence, Header)>> {
        let prefix = read_piece(&*self.file, at, FRAME_BYTES + HEADER_BYTES)?;
        let Some(sequence) = u64_at(&prefix, 0) else { return Ok(None) };
        let stated = prefix.get(FRAME_BYTES..).and_then(record::stated_length);
        let Some(stated) = stated else { return Ok(None) };
        if at + (FRAME_BYTES + stated) as u64 > length {
            return Ok(None);
        }
        let bytes = read_piece(&*self.file, at + FRAME_BYTES as u64, stated)?;
        let header = record::decode_header(&bytes, true);
        Ok(header.ok().map(|header| (Sequence(sequence), header)))
    }
}

fn read_piece(file: &dyn DiskFile, offset: u64, count: usize) -> io::Result<Bytes> {
    let mut piece = BytesMut::zeroed(count);
    let read = file.read_at(offset, &mut piece)?;
    piece.truncate(read);
    Ok(piece.freeze())
}
