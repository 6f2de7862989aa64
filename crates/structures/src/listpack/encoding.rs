//! How one listpack entry is written and read.
//!
//! ```text
//! 0xxxxxxx                      integer 0..=127
//! 10llllll  bytes               string of up to 63 bytes
//! 110xxxxx xxxxxxxx             integer of 13 bits, signed
//! 1110llll llllllll  bytes      string of up to 4,095 bytes
//! 11110000 len:u32  bytes       longer string
//! 11110001 i16 | 11110010 i24 | 11110011 i32 | 11110100 i64      (little-endian)
//! 11111111                      end of the listpack
//! ```
//! Behind each entry stands its own length (*backlen*), so that a listpack can be walked from its
//! end: seven bits a byte, most significant first, and every byte but the first has its top bit
//! set. Reading backwards, the first byte without the top bit ends the number.

/// Marks the end of a listpack.
pub(super) const END: u8 = 0xFF;

/// The longest text that can be a 64-bit integer: `-9223372036854775808`.
const INTEGER_TEXT_BYTES_MAX: usize = 20;

/// Bytes of an entry without its backlen, which is then of one byte, by its first byte: for
/// integers and strings of up to 63 bytes. 0 for longer strings, and for what begins no entry.
pub(super) const SHORT_ENTRY_BYTES: [u8; 256] = {
    let mut bytes = [0; 256];
    let mut first = 0;
    while first < bytes.len() {
        bytes[first] = match first as u8 {
            0x00..=0x7F => 1,
            0x80..=0xBF => 1 + (first as u8 & 0x3F),
            0xC0..=0xDF => 2,
            0xF1 => 3,
            0xF2 => 4,
            0xF3 => 5,
            0xF4 => 9,
            _ => 0,
        };
        first += 1;
    }
    bytes
};

/// One element as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item<'a> {
    /// Text that is not a canonical integer.
    Bytes(&'a [u8]),
    /// Text that is the canonical decimal form of this number.
    Integer(i64),
}

impl<'a> Item<'a> {
    /// The element's text; an integer's is written to `buffer` first.
    pub fn bytes<'b>(self, buffer: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Integer(integer) => buffer.format(integer).as_bytes(),
        }
    }

    /// Appends the element's text to `out`.
    pub fn append_to(&self, out: &mut Vec<u8>) {
        match self {
            Self::Bytes(bytes) => out.extend_from_slice(bytes),
            Self::Integer(value) => {
                out.extend_from_slice(itoa::Buffer::new().format(*value).as_bytes())
            }
        }
    }

    /// The element's text in a buffer of its own.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.append_to(&mut out);
        out
    }

    /// Whether the element's text is `text`.
    pub fn equals(&self, text: &[u8]) -> bool {
        match self {
            Self::Bytes(bytes) => *bytes == text,
            Self::Integer(value) => parse_integer(text) == Some(*value),
        }
    }

    /// Length of the element's text in bytes.
    pub fn text_len(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Integer(value) => itoa::Buffer::new().format(*value).len(),
        }
    }
}

/// The number whose canonical decimal form is `text`: no sign but a leading `-`, no leading zero,
/// no `-0`, within 64 bits. Anything else has to be kept as text, or reading it back would differ.
#[inline]
pub fn parse_integer(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > INTEGER_TEXT_BYTES_MAX {
        return None;
    }
    let (negative, digits) = match text {
        [b'-', rest @ ..] => (true, rest),
        _ => (false, text),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] => {}
        _ => return None,
    }
    let mut magnitude: u64 = 0;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        magnitude = magnitude.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
    }
    if negative { 0i64.checked_sub_unsigned(magnitude) } else { i64::try_from(magnitude).ok() }
}

/// The fixed part of an encoded entry; a string's bytes follow it.
#[derive(Clone, Copy)]
pub(super) struct Encoded<'a> {
    head: [u8; 9],
    head_len: usize,
    body: &'a [u8],
}

impl<'a> Encoded<'a> {
    /// Encodes `text` as an integer if it is one, as a string otherwise.
    pub(super) fn of_text(text: &'a [u8]) -> Self {
        match parse_integer(text) {
            Some(value) => Self::of_integer(value),
            None => Self::of_string(text),
        }
    }

    pub(super) fn of_item(item: Item<'a>) -> Self {
        match item {
            Item::Bytes(text) => Self::of_text(text),
            Item::Integer(value) => Self::of_integer(value),
        }
    }

    pub(super) fn of_integer(value: i64) -> Self {
        let little = value.to_le_bytes();
        let mut head = [0; 9];
        let wide = |head: &mut [u8; 9], tag: u8, width: usize| {
            head[0] = tag;
            head[1..=width].copy_from_slice(&little[..width]);
            width + 1
        };
        let head_len = match value {
            0..=127 => {
                head[0] = little[0];
                1
            }
            -4096..=4095 => {
                head[0] = 0b1100_0000 | (little[1] & 0x1F);
                head[1] = little[0];
                2
            }
            -0x8000..=0x7FFF => wide(&mut head, 0xF1, 2),
            -0x80_0000..=0x7F_FFFF => wide(&mut head, 0xF2, 3),
            -0x8000_0000..=0x7FFF_FFFF => wide(&mut head, 0xF3, 4),
            _ => wide(&mut head, 0xF4, 8),
        };
        Self { head, head_len, body: &[] }
    }

    /// [`Self::total_len`] of an item, without encoding it.
    pub(super) fn len_of(item: Item<'_>) -> usize {
        let number = match item {
            Item::Integer(value) => Some(value),
            Item::Bytes(text) => parse_integer(text),
        };
        let entry_len = match (number, item) {
            (Some(0..=127), _) => 1,
            (Some(-4096..=4095), _) => 2,
            (Some(-0x8000..=0x7FFF), _) => 3,
            (Some(-0x80_0000..=0x7F_FFFF), _) => 4,
            (Some(-0x8000_0000..=0x7FFF_FFFF), _) => 5,
            (Some(_), _) | (None, Item::Integer(_)) => 9,
            (None, Item::Bytes(text)) => match text.len() {
                len @ 0..64 => len + 1,
                len @ 64..4096 => len + 2,
                len => len + 5,
            },
        };
        entry_len + backlen_len(entry_len)
    }

    fn of_string(text: &'a [u8]) -> Self {
        let mut head = [0; 9];
        let little = (text.len() as u64).to_le_bytes();
        let head_len = match text.len() {
            0..64 => {
                head[0] = 0b1000_0000 | little[0];
                1
            }
            64..4096 => {
                head[0] = 0b1110_0000 | little[1];
                head[1] = little[0];
                2
            }
            _ => {
                head[0] = 0xF0;
                head[1..5].copy_from_slice(&little[..4]);
                5
            }
        };
        Self { head, head_len, body: text }
    }

    /// Bytes of the entry without its backlen.
    pub(super) fn entry_len(&self) -> usize {
        self.head_len + self.body.len()
    }

    /// Bytes of the entry with its backlen.
    pub(super) fn total_len(&self) -> usize {
        self.entry_len() + backlen_len(self.entry_len())
    }

    /// Writes entry and backlen to `out`, which is [`Self::total_len`] bytes long.
    pub(super) fn write(&self, out: &mut [u8]) {
        let (head, rest) = out.split_at_mut(self.head_len);
        head.copy_from_slice(&self.head[..self.head_len]);
        let (body, back) = rest.split_at_mut(self.body.len());
        body.copy_from_slice(self.body);
        write_backlen(self.entry_len(), back);
    }
}

/// Bytes that the backlen of an entry of `entry_len` bytes takes. The limits are Redis's, and those
/// of two bytes and more leave the largest number that would fit unused.
pub(super) fn backlen_len(entry_len: usize) -> usize {
    match entry_len {
        0..=127 => 1,
        128..16_383 => 2,
        16_383..2_097_151 => 3,
        2_097_151..268_435_455 => 4,
        _ => 5,
    }
}

fn write_backlen(entry_len: usize, out: &mut [u8]) {
    let mut rest = entry_len;
    for byte in out.iter_mut().rev() {
        *byte = 0x80 | (rest & 0x7F) as u8;
        rest >>= 7;
    }
    out[0] &= 0x7F;
}

/// Reads the backlen that ends right before `end`: `(entry length, bytes of the backlen)`.
/// `None` if it runs over the front of `bytes` or is longer than five bytes.
pub(super) fn read_backlen(bytes: &[u8], end: usize) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for taken in 0..5 {
        let byte = *bytes.get(end.checked_sub(taken + 1)?)?;
        value |= usize::from(byte & 0x7F) << (7 * taken);
        if byte & 0x80 == 0 {
            return Some((value, taken + 1));
        }
    }
    None
}

/// Reads the entry at `at`: the element and the entry's length without its backlen. `None` if the
/// encoding is unknown, is the end mark, or does not fit into `bytes`.
#[inline]
pub(super) fn decode(bytes: &[u8], at: usize) -> Option<(Item<'_>, usize)> {
    // Most entries are of the first two forms.
    match *bytes.get(at)? {
        first @ 0x00..=0x7F => Some((Item::Integer(i64::from(first)), 1)),
        first @ 0x80..=0xBF => {
            let entry = 1 + usize::from(first & 0x3F);
            Some((Item::Bytes(bytes.get(at + 1..at + entry)?), entry))
        }
        first => decode_wide(first, &bytes[at..]),
    }
}

/// [`decode`] for what begins with this byte and is neither a number of 7 bits nor a string of up
/// to 63 bytes.
fn decode_wide(first: u8, entry: &[u8]) -> Option<(Item<'_>, usize)> {
    let signed = |width: usize| -> Option<(Item<'_>, usize)> {
        let raw = entry.get(1..=width)?;
        let mut wide = if raw[width - 1] & 0x80 == 0 { [0; 8] } else { [0xFF; 8] };
        wide[..width].copy_from_slice(raw);
        Some((Item::Integer(i64::from_le_bytes(wide)), width + 1))
    };
    let string = |head: usize, len: usize| -> Option<(Item<'_>, usize)> {
        Some((Item::Bytes(entry.get(head..head.checked_add(len)?)?), head + len))
    };
    match first {
        0xC0..=0xDF => {
            let raw = u16::from_be_bytes([first & 0x1F, *entry.get(1)?]);
            // Moves the sign from bit 12 to bit 15 and back.
            Some((Item::Integer(i64::from((raw << 3) as i16 >> 3)), 2))
        }
        0xE0..=0xEF => string(2, usize::from(first & 0x0F) << 8 | usize::from(*entry.get(1)?)),
        0xF0 => {
            let len = u32::from_le_bytes(entry.get(1..5)?.try_into().ok()?);
            string(5, len as usize)
        }
        0xF1 => signed(2),
        0xF2 => signed(3),
        0xF3 => signed(4),
        0xF4 => signed(8),
        _ => None,
    }
}

/// The length of the entry at `at` without its backlen, without building the element. `bytes` is
/// valid there.
pub(super) fn entry_len(bytes: &[u8], at: usize) -> usize {
    match bytes[at] {
        0x00..=0x7F => 1,
        head @ 0x80..=0xBF => 1 + usize::from(head & 0x3F),
        0xC0..=0xDF => 2,
        head @ 0xE0..=0xEF => 2 + (usize::from(head & 0x0F) << 8 | usize::from(bytes[at + 1])),
        0xF0 => {
            let len = [bytes[at + 1], bytes[at + 2], bytes[at + 3], bytes[at + 4]];
            5 + u32::from_le_bytes(len) as usize
        }
        0xF1 => 3,
        0xF2 => 4,
        0xF3 => 5,
        0xF4 => 9,
        other => unreachable!("no listpack entry starts with {other:#x}"),
    }
}
