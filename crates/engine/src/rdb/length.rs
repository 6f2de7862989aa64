//! How lengths and strings are written.
//!
//! ```text
//! 00xxxxxx                  6 bits          01xxxxxx xxxxxxxx   14 bits
//! 10000000 u32 (BE)         32 bits         10000001 u64 (BE)   64 bits
//! 110000xx i8, i16, i32 (LE)                a string that is an integer
//! 11000011 length length bytes              a string compressed with LZF
//! ```

use super::{RdbError, Source, lzf};
use resp::integer::parse_i64;
use std::io::Read;

const BITS_14: u8 = 0x40;
const BITS_32: u8 = 0x80;
const BITS_64: u8 = 0x81;
const INTEGER_8: u8 = 0xc0;
const INTEGER_16: u8 = 0xc1;
const INTEGER_32: u8 = 0xc2;
const LZF: u8 = 0xc3;

/// Longest string, in bytes, whatever `proto-max-bulk-len` says: effects and RDB files give lengths
/// in 32 bits. What was longer could be made, and then neither logged nor read from a snapshot.
pub const STRING_BYTES_MAX: u64 = u32::MAX as u64;

/// Bytes from which on a string may be read in pieces. Shorter ones take 0.1 ms or so.
const LONG_BYTES_MIN: u64 = 128 << 10;

pub fn put_length(out: &mut Vec<u8>, length: u64) {
    match length {
        0..0x40 => out.push(length as u8),
        0x40..0x4000 => out.extend_from_slice(&[BITS_14 | (length >> 8) as u8, length as u8]),
        0x4000..=0xffff_ffff => {
            out.push(BITS_32);
            out.extend_from_slice(&(length as u32).to_be_bytes());
        }
        _ => {
            out.push(BITS_64);
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
}

/// Longest text of an integer of 32 bits, in bytes.
const INTEGER_BYTES_MAX: usize = 11;

/// A string; one that says an integer is written as that, as Redis does.
pub fn put_string(out: &mut Vec<u8>, bytes: &[u8]) {
    if bytes.len() <= INTEGER_BYTES_MAX
        && let Some(integer) = parse_i64(bytes)
        && i32::try_from(integer).is_ok()
    {
        return put_integer(out, integer);
    }
    put_length(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// A string that is an integer, in its shortest form.
pub fn put_integer(out: &mut Vec<u8>, integer: i64) {
    if let Ok(short) = i8::try_from(integer) {
        out.extend_from_slice(&[INTEGER_8, short as u8]);
    } else if let Ok(short) = i16::try_from(integer) {
        out.push(INTEGER_16);
        out.extend_from_slice(&short.to_le_bytes());
    } else if let Ok(short) = i32::try_from(integer) {
        out.push(INTEGER_32);
        out.extend_from_slice(&short.to_le_bytes());
    } else {
        put_string(out, itoa::Buffer::new().format(integer).as_bytes());
    }
}

/// A string as it was written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Text<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

impl Text<'_> {
    /// Appends the string's bytes.
    pub fn append_to(self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Integer(integer) => {
                out.extend_from_slice(itoa::Buffer::new().format(integer).as_bytes());
            }
        }
    }
}

/// The form of a length or a string, which its first byte announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Head {
    Length(u64),
    Integer(i64),
    Compressed,
}

impl Head {
    /// The length of a string that may be read in pieces.
    pub(crate) fn long(self) -> Option<u64> {
        match self {
            Self::Length(length) if length >= LONG_BYTES_MIN => Some(length),
            _ => None,
        }
    }
}

impl<R: Read> Source<R> {
    /// What a length or a string begins with.
    pub(crate) fn head(&mut self) -> Result<Head, RdbError> {
        let first = self.byte()?;
        Ok(match (first & 0xc0, first) {
            (0, _) => Head::Length(u64::from(first)),
            (BITS_14, _) => Head::Length(u64::from(first & 0x3f) << 8 | u64::from(self.byte()?)),
            (_, BITS_32) => Head::Length(u64::from(u32::from_be_bytes(self.array()?))),
            (_, BITS_64) => Head::Length(u64::from_be_bytes(self.array()?)),
            (_, INTEGER_8) => Head::Integer(i64::from(i8::from_le_bytes(self.array()?))),
            (_, INTEGER_16) => Head::Integer(i64::from(i16::from_le_bytes(self.array()?))),
            (_, INTEGER_32) => Head::Integer(i64::from(i32::from_le_bytes(self.array()?))),
            (_, LZF) => Head::Compressed,
            _ => return Err(self.damaged("a length of unknown form")),
        })
    }

    /// A plain number.
    pub fn length(&mut self) -> Result<u64, RdbError> {
        match self.head()? {
            Head::Length(length) => Ok(length),
            _ => Err(self.damaged("a string where a length should be")),
        }
    }

    /// A string. It lives until the next read.
    pub fn text(&mut self) -> Result<Text<'_>, RdbError> {
        let head = self.head()?;
        self.text_behind(head)
    }

    /// The rest of a string that begins with `head`. It lives until the next read.
    pub(crate) fn text_behind(&mut self, head: Head) -> Result<Text<'_>, RdbError> {
        match head {
            Head::Integer(integer) => Ok(Text::Integer(integer)),
            Head::Length(length) => {
                let length = self.checked(length)?;
                Ok(Text::Bytes(self.bytes(length)?))
            }
            Head::Compressed => {
                let compressed = self.length()?;
                let compressed = self.checked(compressed)?;
                let plain = self.length()?;
                let plain = self.checked(plain)?;
                let mut out = std::mem::take(&mut self.inflated);
                out.clear();
                let fits = lzf::inflate(self.bytes(compressed)?, plain, &mut out);
                self.inflated = out;
                if !fits {
                    return Err(self.damaged("a compressed string of another length"));
                }
                Ok(Text::Bytes(&self.inflated))
            }
        }
    }

    /// Reads a string into `out`, replacing what was in it.
    pub fn text_into(&mut self, out: &mut Vec<u8>) -> Result<(), RdbError> {
        out.clear();
        self.text()?.append_to(out);
        Ok(())
    }

    /// A string in a buffer of its own.
    pub fn owned(&mut self) -> Result<Vec<u8>, RdbError> {
        let text = self.text()?;
        let mut out = match text {
            Text::Bytes(bytes) => Vec::with_capacity(bytes.len()),
            Text::Integer(_) => Vec::new(),
        };
        text.append_to(&mut out);
        Ok(out)
    }

    /// The length of a string, if one can be as long.
    pub(crate) fn checked(&self, length: u64) -> Result<usize, RdbError> {
        if length > STRING_BYTES_MAX {
            return Err(self.damaged("a string that is too long"));
        }
        usize::try_from(length).map_err(|_| self.damaged("a string that is too long"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_string_that_no_effect_can_hold_is_damage() {
        let eight = |head: &[u8], length: u64| [head, &[BITS_64], &length.to_be_bytes()].concat();
        let whole = eight(&[], 1 << 32);
        // Three bytes that say that they become so many.
        let compressed = eight(&[LZF, 3], 1 << 32);
        for bytes in [whole, compressed] {
            let mut source = Source::<std::io::Empty>::of_bytes(&[&bytes[..], b"abc"].concat());
            let error = source.text().map(drop).expect_err("it is too long");
            assert!(error.to_string().contains("too long"), "{error}");
        }
    }
}
