//! Encodings that Redis wrote before version 7, read only: ziplists and zipmaps.
//!
//! ```text
//! ziplist = bytes (u32) | offset of the last entry (u32) | entries (u16) | entry … | 0xff
//! entry   = length of the entry before it (1, or 0xfe and 4) | encoding | string or integer
//! zipmap  = fields (1) | length field length free value (free) … | 0xff
//! length  = 1 byte, or 0xfe and 4
//! ```
//! Integers are little-endian, but for the lengths of a ziplist's strings. Source: the description
//! at <https://rdb.fnordig.de/file_format.html>.

use super::{RdbError, Source, kind};
use crate::number::parse_f64;
use std::io::Read;
use structures::Listpack;

const END: u8 = 0xff;

/// Announces a length of four bytes.
const LONG: u8 = 0xfe;

/// Bytes before a ziplist's first entry.
const ZIPLIST_HEADER_BYTES: usize = 10;

/// The bytes of a value, read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.bytes(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    /// A length as both encodings write it; `None` also at the end mark.
    fn length(&mut self) -> Option<usize> {
        match self.byte()? {
            END => None,
            LONG => Some(u32::from_le_bytes(self.array()?) as usize),
            short => Some(usize::from(short)),
        }
    }
}

impl<R: Read> Source<R> {
    /// The elements of a packed value, or of one node of a list.
    ///
    /// # Errors
    /// [`RdbError`] if it is damaged.
    pub(crate) fn words(&mut self, kind: u8) -> Result<Vec<Vec<u8>>, RdbError> {
        let bytes = self.owned()?;
        match kind {
            kind::SET_LISTPACK
            | kind::HASH_LISTPACK
            | kind::HASH_LISTPACK_EX
            | kind::ZSET_LISTPACK => {
                let pack = Listpack::from_bytes(bytes);
                let pack = pack.map_err(|error| self.damaged(error.to_string()))?;
                Ok(pack.iter().map(|item| item.to_vec()).collect())
            }
            kind::HASH_ZIPMAP => zipmap(&bytes).ok_or_else(|| self.damaged("a damaged zipmap")),
            _ => ziplist(&bytes).ok_or_else(|| self.damaged("a damaged ziplist")),
        }
    }

    /// As [`Self::words`], of which there is an even number.
    ///
    /// # Errors
    /// As [`Self::words`].
    pub(crate) fn pairs_of_words(&mut self, kind: u8) -> Result<Vec<Vec<u8>>, RdbError> {
        let words = self.words(kind)?;
        match words.len() % 2 {
            0 => Ok(words),
            _ => Err(self.damaged("a packed value of pairs with an odd element")),
        }
    }

    /// A score as old releases wrote it: its text, or a length that means a number that has none.
    ///
    /// # Errors
    /// [`RdbError`] if it is no number.
    pub(crate) fn old_score(&mut self) -> Result<f64, RdbError> {
        match self.byte()? {
            255 => Ok(f64::NEG_INFINITY),
            254 => Ok(f64::INFINITY),
            253 => Err(self.damaged("a score that is not a number")),
            length => {
                let text = self.bytes(usize::from(length))?.to_vec();
                self.score_of(&text)
            }
        }
    }

    /// A score from its text.
    ///
    /// # Errors
    /// [`RdbError`] if it is no number.
    pub(crate) fn score_of(&self, text: &[u8]) -> Result<f64, RdbError> {
        parse_f64(text).ok_or_else(|| self.damaged("a score that is not a number"))
    }
}

/// The elements of a ziplist. `None` if it is damaged.
pub fn ziplist(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(bytes);
    let total = u32::from_le_bytes(reader.array()?) as usize;
    reader.bytes(ZIPLIST_HEADER_BYTES - 4)?;
    if total != bytes.len() {
        return None;
    }
    let mut elements = Vec::new();
    while *reader.0.first()? != END {
        reader.length()?;
        elements.push(ziplist_element(&mut reader)?);
    }
    (reader.0.len() == 1).then_some(elements)
}

fn ziplist_element(reader: &mut Reader<'_>) -> Option<Vec<u8>> {
    let encoding = reader.byte()?;
    let low = encoding & 0x3f;
    let length = match encoding >> 6 {
        0 => usize::from(low),
        1 => usize::from(low) << 8 | usize::from(reader.byte()?),
        2 => u32::from_be_bytes(reader.array()?) as usize,
        _ => {
            let integer = ziplist_integer(encoding, reader)?;
            return Some(itoa::Buffer::new().format(integer).as_bytes().to_vec());
        }
    };
    reader.bytes(length).map(<[u8]>::to_vec)
}

fn ziplist_integer(encoding: u8, reader: &mut Reader<'_>) -> Option<i64> {
    Some(match encoding {
        0xc0 => i64::from(i16::from_le_bytes(reader.array()?)),
        0xd0 => i64::from(i32::from_le_bytes(reader.array()?)),
        0xe0 => i64::from_le_bytes(reader.array()?),
        0xf0 => {
            let [low, middle, high] = reader.array()?;
            i64::from(i32::from_le_bytes([0, low, middle, high]) >> 8)
        }
        0xfe => i64::from(i8::from_le_bytes(reader.array()?)),
        0xf1..=0xfd => i64::from(encoding & 0x0f) - 1,
        _ => return None,
    })
}

/// The fields of a zipmap, each followed by its value. `None` if it is damaged.
pub fn zipmap(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut reader = Reader(bytes);
    // Says how many fields there are, unless there are many: the end mark always tells.
    reader.byte()?;
    let mut words = Vec::new();
    while *reader.0.first()? != END {
        let length = reader.length()?;
        words.push(reader.bytes(length)?.to_vec());
        let length = reader.length()?;
        let free = reader.byte()?;
        words.push(reader.bytes(length)?.to_vec());
        reader.bytes(usize::from(free))?;
    }
    (reader.0.len() == 1).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(elements: Option<Vec<Vec<u8>>>) -> Vec<String> {
        let elements = elements.expect("is whole");
        elements.iter().map(|element| String::from_utf8_lossy(element).into_owned()).collect()
    }

    fn packed(entries: &[u8]) -> Vec<u8> {
        let total = (ZIPLIST_HEADER_BYTES + entries.len() + 1) as u32;
        let mut bytes = total.to_le_bytes().to_vec();
        bytes.extend_from_slice(&[0; 6]);
        bytes.extend_from_slice(entries);
        bytes.push(END);
        bytes
    }

    #[test]
    fn every_form_of_a_ziplists_element_is_read() {
        let mut entries = b"\x00\x02ab".to_vec();
        entries.extend_from_slice(b"\x04\x40\x03xyz");
        entries.extend_from_slice(b"\xfe\x05\0\0\0\x80\0\0\0\x01q");
        entries.extend_from_slice(b"\x0b\xc0\x00\x80");
        entries.extend_from_slice(b"\x04\xd0\xff\xff\xff\x7f");
        entries.extend_from_slice(b"\x06\xe0\0\0\0\0\0\0\0\x80");
        entries.extend_from_slice(b"\x0a\xf0\xff\xff\xff");
        entries.extend_from_slice(b"\x05\xf0\x00\x00\x40");
        entries.extend_from_slice(b"\x05\xfe\x80\x03\xf1\x02\xfd");
        let expected = [
            "ab",
            "xyz",
            "q",
            "-32768",
            "2147483647",
            "-9223372036854775808",
            "-1",
            "4194304",
            "-128",
            "0",
            "12",
        ];
        assert_eq!(texts(ziplist(&packed(&entries))), expected);
    }

    #[test]
    fn a_zipmap_has_room_behind_its_values() {
        let bytes = b"\x02\x01a\x02\x00xy\xfe\x01\0\0\0b\x01\x03z---\xff";
        assert_eq!(texts(zipmap(bytes)), ["a", "xy", "b", "z"]);
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let whole = packed(b"\x00\x02ab\x04\xc0\x01\x02");
        assert!(ziplist(&whole).is_some());
        let map = b"\x01\x01a\x02\x00xy\xff";
        for at in 0..whole.len() {
            assert!(ziplist(&whole[..at]).is_none(), "cut at {at}");
        }
        for at in 0..map.len() {
            assert!(zipmap(&map[..at]).is_none(), "cut at {at}");
        }
        assert!(ziplist(&packed(b"\x00\xff")).is_none(), "an encoding that there is none of");
        assert!(ziplist(&packed(b"\x00\x3fab")).is_none(), "longer than what is there");
    }
}
