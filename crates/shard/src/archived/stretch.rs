//! The records of one stretch, one after the other.

use archive::{PartReader, Stretch};
use base::{Incarnation, Position, Sequence};
use bytes::{Bytes, BytesMut};
use std::io::{self, ErrorKind, Read};
use txlog::record::{self, HEADER_BYTES};

/// Reads a stretch. Each record is checked by its own checksum, and by the stretch's with the last.
pub struct StretchReader {
    name: String,
    part: PartReader,
    incarnation: Incarnation,
    next: Sequence,
    last: Sequence,
}

impl StretchReader {
    pub fn new(stretch: &Stretch, part: PartReader) -> Self {
        let first = stretch.facts.first;
        Self {
            name: stretch.name.clone(),
            part,
            incarnation: first.incarnation,
            next: first.sequence,
            last: stretch.facts.last,
        }
    }

    /// The next record; `None` behind the last.
    ///
    /// # Errors
    /// The archive's; `InvalidData` if what stands there is no record, with the stretch's name.
    pub fn next(&mut self) -> io::Result<Option<(Position, Bytes)>> {
        let read = self.read();
        read.map_err(|error| {
            let what = format!("archived record {} ({}): {error}", self.next, self.name);
            io::Error::new(error.kind(), what)
        })
    }

    fn read(&mut self) -> io::Result<Option<(Position, Bytes)>> {
        let left = self.part.length() - self.part.offset();
        if self.next > self.last {
            return if left == 0 { Ok(None) } else { Err(invalid("more follows behind the last")) };
        }
        let mut header = [0; HEADER_BYTES];
        if left < HEADER_BYTES as u64 {
            return Err(invalid("it is not there"));
        }
        self.part.read_exact(&mut header)?;
        // A length that was damaged must not take memory.
        let length = record::stated_length(&header)
            .filter(|length| *length >= HEADER_BYTES && *length as u64 <= left)
            .ok_or_else(|| invalid("its length is wrong"))?;
        let mut bytes = BytesMut::zeroed(length);
        bytes[..HEADER_BYTES].copy_from_slice(&header);
        self.part.read_exact(&mut bytes[HEADER_BYTES..])?;
        let bytes = bytes.freeze();
        record::decode_header(&bytes, true).map_err(|error| invalid(&error.to_string()))?;
        let position = Position { incarnation: self.incarnation, sequence: self.next };
        self.next = self.next.next();
        Ok(Some((position, bytes)))
    }
}

fn invalid(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}
