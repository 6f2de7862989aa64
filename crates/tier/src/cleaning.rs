//! One segment, read back in chunks so that its live records move to another one.
//!
//! A chunk is as long as a piece, and whoever has read it says where the next one begins: at the
//! first record that did not lie wholly in it. So the table of segments remembers no pieces, and a
//! thread reads, decrypts and proves a chunk while the loop moves the records of the one before:
//!
//! 1. [`crate::Tier::begin_cleaning`] tells the segment, [`Cleaning::first`] the first chunk.
//! 2. A thread reads the chunk's bytes and calls [`Chunk::open`], which finds the records.
//! 3. The loop looks up each record's key by its hash. If the key has this very place, the loop
//!    calls [`crate::Tier::put_survivor`], gives the key the new place and releases the old one.
//!    When that is behind, the loop goes on with the same records after the next write.
//! 4. After the last chunk [`crate::Tier::end_cleaning`] frees the segment.

use crate::limits::PAGE_BYTES;
use crate::place::Place;
use crate::record::{Damaged, HEADER_BYTES, Header};
use crate::seal::Sealer;
use crate::segment::Taken;
use std::ops::Range;

/// A segment whose live records are to move.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cleaning {
    taken: Taken,
    offset: u64,
    used: usize,
    chunk_bytes: usize,
}

/// A part of such a segment, to be read at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    generation: u32,
    /// Where the first record begins, in bytes of the file.
    from: u64,
    /// Where the bytes to read end, at the end of a page.
    to: u64,
    /// Where the segment's pieces end.
    end: u64,
    chunk_bytes: usize,
}

/// A record that a chunk has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// Where it lies.
    pub place: Place,
    /// The hash with which it was put.
    pub hash: u64,
    /// Where in the bytes of the chunk its content is.
    pub content: Range<usize>,
}

impl Cleaning {
    pub(crate) fn new(taken: Taken, offset: u64, used: usize, chunk_bytes: usize) -> Self {
        Self { taken, offset, used, chunk_bytes }
    }

    pub(crate) fn taken(&self) -> Taken {
        self.taken
    }

    /// Where in the file its pieces lie, in bytes.
    #[cfg(test)]
    pub(crate) fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.used as u64
    }

    /// The first chunk.
    pub fn first(&self) -> Chunk {
        let end = self.offset + self.used as u64;
        Chunk {
            generation: self.taken.generation,
            from: self.offset,
            to: end.min(self.offset + self.chunk_bytes as u64),
            end,
            chunk_bytes: self.chunk_bytes,
        }
    }
}

impl Chunk {
    /// Where in the file it begins, in bytes: a multiple of [`PAGE_BYTES`].
    pub fn offset(&self) -> u64 {
        self.from - self.skipped() as u64
    }

    /// How many bytes to read: a multiple of [`PAGE_BYTES`]. More than a piece only where one
    /// record is longer.
    pub fn length(&self) -> usize {
        (self.to - self.offset()) as usize
    }

    /// Bytes of the first page before the first record.
    fn skipped(&self) -> usize {
        (self.from % PAGE_BYTES as u64) as usize
    }

    /// Decrypts the bytes that were read, in place, appends the records that lie wholly in them to
    /// `records`, and tells the next chunk; none after the last.
    ///
    /// # Errors
    /// The bytes are not what was written there; `records` has those before the damage. No fault of
    /// the disk if the tier was reset meanwhile: see [`crate::Tier::is_being_cleaned`].
    pub fn open(
        &self,
        sealer: &Sealer,
        bytes: &mut [u8],
        records: &mut Vec<Found>,
    ) -> Result<Option<Self>, Damaged> {
        let bytes = bytes.get_mut(..self.length()).ok_or(Damaged::Short)?;
        let first = self.offset() / PAGE_BYTES as u64;
        sealer.open(first, self.generation, bytes, self.skipped()..self.length());
        let mut at = self.skipped();
        while at < bytes.len() {
            let Some(header) = Header::of(&bytes[at..])? else {
                at = (at + 1).next_multiple_of(PAGE_BYTES);
                continue;
            };
            let from = self.offset() + at as u64;
            let length = header.record_bytes();
            if length as u64 > self.end - from {
                return Err(Damaged::Malformed);
            }
            if length > bytes.len() - at {
                return Ok(Some(self.next(from, length)));
            }
            let place = Place::new(from, length);
            let record = &bytes[at..at + length];
            let (hash, content_bytes) = header.prove(record, place, self.generation)?;
            let start = at + HEADER_BYTES;
            records.push(Found { place, hash, content: start..start + content_bytes });
            at += length;
        }
        Ok((self.to < self.end).then(|| self.next(self.to, 0)))
    }

    /// The chunk that begins with a record at `from`, and holds as many bytes at least.
    fn next(&self, from: u64, bytes_min: usize) -> Self {
        let page = PAGE_BYTES as u64;
        let usual = from - from % page + self.chunk_bytes as u64;
        let needed = (from + bytes_min as u64).next_multiple_of(page);
        Self { from, to: usual.max(needed).min(self.end), ..*self }
    }
}
