//! A record's bytes.
//!
//! ```text
//! 0         4                8              16
//! | crc32c  | content length | key hash     | content … | zeroes to a multiple of 16 |
//! ```
//!
//! All little-endian. The checksum covers, beside hash, length and content, the record's place and
//! the generation of its segment: a page that was written elsewhere, or before the segment was last
//! taken, has no right record. A content is never empty, so a header of zeroes is none: whoever
//! walks over records goes on at the next page there.

use crate::place::{Place, UNIT_BYTES};
use std::fmt;

/// Bytes before the content.
pub(crate) const HEADER_BYTES: usize = 16;

/// Why bytes of the file are not what was written there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Damaged {
    /// There are fewer bytes than were asked for.
    Short,
    /// The header says what no record says, or not what its place says.
    Malformed,
    /// The checksum is another one.
    Checksum,
}

impl fmt::Display for Damaged {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Short => "fewer bytes than were written",
            Self::Malformed => "a record's header that cannot be right",
            Self::Checksum => "a record's checksum that does not match",
        })
    }
}

impl std::error::Error for Damaged {}

/// Length of the record of a content: header, content and zeroes.
pub(crate) fn length(content_bytes: usize) -> usize {
    (HEADER_BYTES + content_bytes).next_multiple_of(UNIT_BYTES)
}

/// Appends the record of a content, which will lie at `place`.
pub(crate) fn append(into: &mut Vec<u8>, place: Place, generation: u32, hash: u64, content: &[u8]) {
    let end = into.len() + place.length();
    let checksum = checksum(place, generation, hash, content);
    into.extend_from_slice(&header(checksum, content.len(), hash));
    into.extend_from_slice(content);
    into.resize(end, 0);
}

/// What stands before a content of so many bytes, whose own checksum is `of_content`. Two checksums
/// are combined in a microsecond or two, in which a short content is computed several times over.
pub(crate) fn header_of_draft(
    place: Place,
    generation: u32,
    hash: u64,
    content_bytes: usize,
    of_content: u32,
) -> [u8; HEADER_BYTES] {
    let about = crc32c::crc32c(&about(place, generation, hash, content_bytes));
    header(crc32c::crc32c_combine(about, of_content, content_bytes), content_bytes, hash)
}

fn header(checksum: u32, content_bytes: usize, hash: u64) -> [u8; HEADER_BYTES] {
    let content_bytes = u32::try_from(content_bytes).expect("limits bound a content");
    let mut header = [0; HEADER_BYTES];
    header[..4].copy_from_slice(&checksum.to_le_bytes());
    header[4..8].copy_from_slice(&content_bytes.to_le_bytes());
    header[8..].copy_from_slice(&hash.to_le_bytes());
    header
}

/// What a header says, before anything of it is proven.
pub(crate) struct Header {
    checksum: u32,
    content_bytes: usize,
    hash: u64,
}

impl Header {
    /// The header that `bytes` begin with; none if they begin with zeroes.
    ///
    /// # Errors
    /// [`Damaged::Short`], and [`Damaged::Malformed`] for a record without content.
    pub(crate) fn of(bytes: &[u8]) -> Result<Option<Self>, Damaged> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Damaged::Short)?;
        let word = |at: usize| {
            u32::from_le_bytes(header[at..at + 4].try_into().expect("a header has four words"))
        };
        let hash = u64::from(word(8)) | (u64::from(word(12)) << 32);
        match word(4) {
            0 if word(0) == 0 && hash == 0 => Ok(None),
            0 => Err(Damaged::Malformed),
            length => Ok(Some(Self { checksum: word(0), content_bytes: length as usize, hash })),
        }
    }

    /// Length of the whole record, if the header is right.
    pub(crate) fn record_bytes(&self) -> usize {
        length(self.content_bytes)
    }

    /// Length of the content, if the header is right.
    pub(crate) fn content_bytes(&self) -> usize {
        self.content_bytes
    }

    /// The hash of the record's key, and how long its content is: proven by the checksum over
    /// `record`, which begins with this header.
    ///
    /// # Errors
    /// The record is not the one that was written at `place`.
    pub(crate) fn prove(
        &self,
        record: &[u8],
        place: Place,
        generation: u32,
    ) -> Result<(u64, usize), Damaged> {
        if self.record_bytes() != place.length() {
            return Err(Damaged::Malformed);
        }
        let end = HEADER_BYTES + self.content_bytes;
        let content = record.get(HEADER_BYTES..end).ok_or(Damaged::Short)?;
        if checksum(place, generation, self.hash, content) != self.checksum {
            return Err(Damaged::Checksum);
        }
        Ok((self.hash, self.content_bytes))
    }
}

/// What the checksum covers beside the content.
fn about(place: Place, generation: u32, hash: u64, content_bytes: usize) -> [u8; 24] {
    let mut about = [0; 24];
    about[..8].copy_from_slice(&place.bits().to_le_bytes());
    about[8..16].copy_from_slice(&hash.to_le_bytes());
    about[16..20].copy_from_slice(&generation.to_le_bytes());
    about[20..].copy_from_slice(&(content_bytes as u32).to_le_bytes());
    about
}

fn checksum(place: Place, generation: u32, hash: u64, content: &[u8]) -> u32 {
    let about = crc32c::crc32c(&about(place, generation, hash, content.len()));
    crc32c::crc32c_append(about, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(place: Place) -> Vec<u8> {
        let mut bytes = Vec::new();
        append(&mut bytes, place, 3, 0x1234_5678_9abc_def0, b"some content");
        bytes
    }

    #[test]
    fn a_record_is_what_its_place_says() {
        let place = Place::new(4096, length(12));
        let bytes = record(place);
        assert_eq!(bytes.len(), place.length());
        let header = Header::of(&bytes).unwrap().unwrap();
        assert_eq!(header.prove(&bytes, place, 3), Ok((0x1234_5678_9abc_def0, 12)));
        assert_eq!(header.prove(&bytes, place, 4), Err(Damaged::Checksum));
        let elsewhere = Place::new(8192, length(12));
        assert_eq!(header.prove(&bytes, elsewhere, 3), Err(Damaged::Checksum));
        let longer = Place::new(4096, length(17));
        assert_eq!(header.prove(&bytes, longer, 3), Err(Damaged::Malformed));
        assert_eq!(header.prove(&bytes[..20], place, 3), Err(Damaged::Short));
    }

    #[test]
    fn zeroes_are_no_record() {
        assert!(Header::of(&[0; 16]).unwrap().is_none());
        assert_eq!(Header::of(&[0; 15]).err(), Some(Damaged::Short));
        let mut bytes = record(Place::new(0, length(12)));
        bytes[4] = 0;
        assert_eq!(Header::of(&bytes).err(), Some(Damaged::Malformed));
    }
}
