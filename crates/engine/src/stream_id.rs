//! The ID of a stream's entry: a time, and a number within its millisecond (Redis documentation,
//! "Redis Streams", entry IDs).
//!
//! IDs are ordered by time, then by number. IDs within a stream only grow, so they give the order
//! of its entries.

use std::fmt;

/// The longest text that is parsed as an ID, in bytes: Redis's limit.
const TEXT_BYTES_MAX: usize = 127;

/// An entry's ID. The time usually comes from a clock, but a client may choose any.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct StreamId {
    /// Milliseconds, usually since 1970.
    pub millis: u64,
    /// The number of the entry within its millisecond.
    pub sequence: u64,
}

impl StreamId {
    /// 0-0: smaller than the ID of any entry.
    pub const MIN: Self = Self { millis: 0, sequence: 0 };
    /// The greatest ID.
    pub const MAX: Self = Self { millis: u64::MAX, sequence: u64::MAX };
    /// Bytes of an ID in files and in the log.
    pub const BYTES: usize = 16;

    pub const fn new(millis: u64, sequence: u64) -> Self {
        Self { millis, sequence }
    }

    /// The next greater ID; `None` for the greatest.
    pub fn next(self) -> Option<Self> {
        let number = u128::from(self).checked_add(1)?;
        Some(number.into())
    }

    /// The next smaller ID; `None` for 0-0.
    pub fn previous(self) -> Option<Self> {
        let number = u128::from(self).checked_sub(1)?;
        Some(number.into())
    }

    /// The ID as bytes: both numbers big-endian, as in Redis's files. They sort as the IDs do.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        u128::from(self).to_be_bytes()
    }

    /// Reads what [`Self::to_bytes`] wrote.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        u128::from_be_bytes(bytes).into()
    }

    /// Reads `millis` or `millis-sequence`; `missing` is the sequence of the short form.
    pub fn parse(text: &[u8], missing: u64) -> Option<Self> {
        match Chosen::parse(text)? {
            Chosen::Time(millis) => Some(Self::new(millis, missing)),
            Chosen::Whole(id) => Some(id),
            Chosen::Numbered(_) => None,
        }
    }
}

/// The part of a new entry's ID that a client chose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Chosen {
    /// `millis`
    Time(u64),
    /// `millis-sequence`
    Whole(StreamId),
    /// `millis-*`: the stream chooses the sequence.
    Numbered(u64),
}

impl Chosen {
    /// Reads `millis`, `millis-sequence` or `millis-*`.
    pub fn parse(text: &[u8]) -> Option<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return None;
        }
        // Redis reads the text up to the first zero byte.
        let text = text.split(|byte| *byte == 0).next().unwrap_or_default();
        let Some(at) = text.iter().position(|byte| *byte == b'-') else {
            return unsigned(text).map(Self::Time);
        };
        let millis = unsigned(&text[..at])?;
        match &text[at + 1..] {
            b"*" => Some(Self::Numbered(millis)),
            sequence => unsigned(sequence).map(|it| Self::Whole(StreamId::new(millis, it))),
        }
    }
}

/// A number as C's `strtoull` reads it: blanks and zeroes may precede it. A plain negative number
/// is refused.
fn unsigned(text: &[u8]) -> Option<u64> {
    if let Some(number) = resp::integer::parse_u64(text) {
        return Some(number);
    }
    if resp::integer::parse_i64(text).is_some() {
        return None;
    }
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !blank(byte))?;
    let (is_negative, digits) = match &text[start..] {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let mut value = 0_u64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    let magnitude = (!digits.is_empty()).then_some(value)?;
    Some(if is_negative { magnitude.wrapping_neg() } else { magnitude })
}

impl From<StreamId> for u128 {
    fn from(id: StreamId) -> Self {
        Self::from(id.millis) << 64 | Self::from(id.sequence)
    }
}

impl From<u128> for StreamId {
    fn from(number: u128) -> Self {
        Self::new((number >> 64) as u64, number as u64)
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.millis, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_as_redis_reads_them() {
        for (text, expected) in [
            ("1-2", Some((1, 2))),
            ("1", Some((1, 7))),
            ("0-0", Some((0, 0))),
            ("18446744073709551615-18446744073709551615", Some((u64::MAX, u64::MAX))),
            (" 01-+5", Some((1, 5))),
            ("1\0x", Some((1, 7))),
            ("1--01", Some((1, u64::MAX))),
            ("1--1", None),
            ("18446744073709551616-0", None),
            ("", None),
            ("-", None),
            ("+", None),
            ("1-", None),
            ("1-*", None),
            ("1-2-3", None),
            ("1-x", None),
            ("a-1", None),
        ] {
            let id = StreamId::parse(text.as_bytes(), 7);
            assert_eq!(id.map(|id| (id.millis, id.sequence)), expected, "{text}");
        }
        assert_eq!(StreamId::parse(&[b'1'; 128], 0), None);
        assert_eq!(Chosen::parse(b"5-*"), Some(Chosen::Numbered(5)));
        assert_eq!(Chosen::parse(b"-*"), None);
    }

    #[test]
    fn neighbours_and_bytes_keep_the_order() {
        let id = StreamId::new(1, u64::MAX);
        assert_eq!(id.next(), Some(StreamId::new(2, 0)));
        assert_eq!(StreamId::new(2, 0).previous(), Some(id));
        assert_eq!((StreamId::MAX.next(), StreamId::MIN.previous()), (None, None));
        assert_eq!(StreamId::from_bytes(id.to_bytes()), id);
        assert!(id.to_bytes() < StreamId::new(2, 0).to_bytes());
        assert_eq!(id.to_string(), "1-18446744073709551615");
    }
}
