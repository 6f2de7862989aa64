//! Strings: bytes inside the entry, an integer inside the entry, or a boxed growing string.

mod as_value;

pub use crate::rdb::length::STRING_BYTES_MAX;
use crate::refusal::Refusal;
use crate::value::{EntryRef, Value, not_of};
use structures::entry::{Payload, ValueRef};

/// A string as commands read it. Integers keep their number until somebody wants bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StringValue<'a> {
    Bytes(&'a [u8]),
    Integer(i64),
}

/// Room for the decimal digits of an integer.
pub type Digits = itoa::Buffer;

impl<'a> StringValue<'a> {
    /// The string in an entry.
    ///
    /// # Errors
    /// WRONGTYPE if the entry holds a collection.
    #[inline]
    pub fn of(entry: EntryRef<'a>) -> Result<Self, Refusal> {
        match entry.value() {
            ValueRef::Bytes(bytes) => Ok(Self::Bytes(bytes)),
            ValueRef::Boxed(Value::Text(text)) => Ok(Self::Bytes(text)),
            ValueRef::Integer(integer) => Ok(Self::Integer(integer)),
            ValueRef::Boxed(_) => Err(Refusal::WRONG_TYPE),
            ValueRef::Cold(_) => Err(not_of(entry, "string")),
        }
    }

    /// The bytes; an integer is formatted into `digits`.
    pub fn bytes<'b>(&self, digits: &'b mut Digits) -> &'b [u8]
    where
        'a: 'b,
    {
        match *self {
            Self::Bytes(bytes) => bytes,
            Self::Integer(integer) => digits.format(integer).as_bytes(),
        }
    }

    /// The length of the bytes.
    pub fn len(&self) -> usize {
        self.bytes(&mut Digits::new()).len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn to_vec(&self) -> Vec<u8> {
        self.bytes(&mut Digits::new()).to_vec()
    }
}

/// Longest string that OBJECT ENCODING calls `embstr`, in bytes (Redis 7.0, object.c).
pub const EMBSTR_BYTES_MAX: usize = 44;

/// Longest string kept inside its entry, in bytes. Longer ones are boxed, so that APPEND and
/// SETRANGE grow them in place and a table segment's entries stay cheap to move. A guess.
pub const EMBEDDED_BYTES_MAX: usize = 4096;

/// The integer whose canonical decimal form these bytes are: such strings are kept as numbers.
pub fn canonical_integer(bytes: &[u8]) -> Option<i64> {
    let (negative, digits) = match bytes {
        [b'-', digits @ ..] => (true, digits),
        digits => (false, digits),
    };
    match digits {
        [b'0'] if !negative => return Some(0),
        [b'1'..=b'9', ..] if digits.len() <= 19 => {}
        _ => return None,
    }
    let mut value: i64 = 0;
    for &digit in digits {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        let digit = i64::from(digit);
        value = value.checked_mul(10)?;
        value = if negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

/// How a string is stored: as a number if it is one, in the entry if short, boxed if long.
pub(crate) fn payload_of(value: &[u8]) -> Payload<'_, Value> {
    if value.len() <= 20
        && let Some(integer) = canonical_integer(value)
    {
        return Payload::Integer(integer);
    }
    if value.len() <= EMBEDDED_BYTES_MAX {
        Payload::Bytes(value)
    } else {
        Payload::Boxed(Box::new(Value::Text(value.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::canonical_integer;

    #[test]
    fn only_canonical_decimals_are_integers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-0", None),
            ("01", None),
            ("+1", None),
            ("1 ", None),
            ("", None),
            ("-", None),
            ("9223372036854775807", Some(i64::MAX)),
            ("9223372036854775808", None),
            ("-9223372036854775808", Some(i64::MIN)),
            ("-9223372036854775809", None),
        ] {
            assert_eq!(canonical_integer(text.as_bytes()), expected, "{text}");
        }
    }
}
