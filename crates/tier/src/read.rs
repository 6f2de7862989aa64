//! One record, read back from the file.

use crate::limits::PAGE_BYTES;
use crate::place::Place;
use crate::record::{Damaged, HEADER_BYTES, Header};
use crate::seal::Sealer;
use crate::segment::Taken;
use std::ops::Range;

/// What to read for one record. It may be sent to a thread, which reads the pages and opens them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Read {
    place: Place,
    generation: u32,
    segment: u32,
}

impl Read {
    pub(crate) fn new(place: Place, taken: Taken) -> Self {
        Self { place, generation: taken.generation, segment: taken.index }
    }

    pub(crate) fn taken(&self) -> Taken {
        Taken { index: self.segment, generation: self.generation }
    }

    /// The place of the record.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Where in the file the pages begin, in bytes: a multiple of [`PAGE_BYTES`].
    pub fn offset(&self) -> u64 {
        self.place.offset() - self.skipped() as u64
    }

    /// How many bytes to read: a multiple of [`PAGE_BYTES`].
    pub fn length(&self) -> usize {
        (self.skipped() + self.place.length()).next_multiple_of(PAGE_BYTES)
    }

    /// Bytes of the first page before the record.
    fn skipped(&self) -> usize {
        (self.place.offset() % PAGE_BYTES as u64) as usize
    }

    /// Decrypts the record in place, in the pages that were read, and proves it. Where in them its
    /// content is.
    ///
    /// # Errors
    /// The pages do not hold the record that was put at this place. That is no fault of the disk if
    /// the record was released meanwhile: see [`crate::Tier::is_current`].
    pub fn open(&self, sealer: &Sealer, pages: &mut [u8]) -> Result<Range<usize>, Damaged> {
        if pages.len() < self.length() {
            return Err(Damaged::Short);
        }
        let start = self.skipped();
        let range = start..start + self.place.length();
        sealer.open(self.offset() / PAGE_BYTES as u64, self.generation, pages, range.clone());
        let record = &pages[range];
        let header = Header::of(record)?.ok_or(Damaged::Malformed)?;
        let (_, content_bytes) = header.prove(record, self.place, self.generation)?;
        let start = start + HEADER_BYTES;
        Ok(start..start + content_bytes)
    }
}
