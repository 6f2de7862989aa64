//! A part as a stream that checks itself.

use crate::archive::StoredPart;
use crate::manifest::Part;
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// Reads a part from its beginning to its end. The end is only reached if the bytes are those that
/// were published; otherwise the last read fails with `InvalidData`. Each read is one range.
#[derive(Clone)]
pub struct PartReader {
    stored: Arc<dyn StoredPart>,
    offset: u64,
    length: u64,
    crc: u32,
    expected: Option<u32>,
}

impl PartReader {
    pub(crate) fn new(stored: Arc<dyn StoredPart>, part: &Part) -> Self {
        Self { stored, offset: 0, length: part.bytes, crc: 0, expected: part.crc() }
    }

    /// Bytes of the whole part.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl Read for PartReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.stored.read_at(self.offset, &mut into[..wanted])?;
        if count == 0 {
            let what = format!("it ends after {} of {} bytes", self.offset, self.length);
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        self.crc = crc32c::crc32c_append(self.crc, &into[..count]);
        self.offset += count as u64;
        if self.offset == self.length && Some(self.crc) != self.expected {
            let what = "its bytes are not those that were written (CRC-32C)";
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}
