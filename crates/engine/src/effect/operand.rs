//! The operands of effects: the bytes and the text of each type.

use super::{EffectDecoder, EffectError};
use crate::master;
use base::DatabaseId;
use bytes::BytesMut;
use std::fmt;

/// Bytes of a string that are shown; the rest is only counted.
const SHOWN_BYTES_MAX: usize = 64;

/// A value that stands in an effect.
pub(super) trait Operand<'a>: Sized {
    /// Appends the bytes.
    fn put(self, out: &mut BytesMut);

    /// Reads what [`Self::put`] wrote.
    ///
    /// # Errors
    /// The payload ends before, or these bytes are no such value.
    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError>;

    /// Readable, for whoever looks at a log.
    fn shown(self) -> impl fmt::Display;
}

/// Numbers, little-endian and of fixed width.
macro_rules! numbers {
    ($($number:ty)*) => {
        $(impl<'a> Operand<'a> for $number {
            fn put(self, out: &mut BytesMut) {
                out.extend_from_slice(&self.to_le_bytes());
            }

            fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
                decoder.fixed().map(Self::from_le_bytes)
            }

            fn shown(self) -> impl fmt::Display {
                self
            }
        })*
    };
}

numbers!(u16 u32 u64 i64 f64);

impl<'a> Operand<'a> for DatabaseId {
    fn put(self, out: &mut BytesMut) {
        self.0.put(out);
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        u32::take(decoder).map(Self)
    }

    fn shown(self) -> impl fmt::Display {
        self.0
    }
}

impl<'a> Operand<'a> for &'a [u8] {
    fn put(self, out: &mut BytesMut) {
        // Requests, RDB files and `proto-max-bulk-len` are limited to it, and no command makes a
        // string that is longer than the longest it was given, but for those that look at
        // `proto-max-bulk-len`.
        let length = u32::try_from(self.len()).expect("no string is longer: STRING_BYTES_MAX");
        length.put(out);
        out.extend_from_slice(self);
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        decoder.bytes()
    }

    fn shown(self) -> impl fmt::Display {
        Quoted(self)
    }
}

/// Bytes shown as text in quotes; of long ones the beginning, and how many there are.
pub struct Quoted<'a>(pub &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = &self.0[..self.0.len().min(SHOWN_BYTES_MAX)];
        write!(f, "\"{}\"", shown.escape_ascii())?;
        if shown.len() < self.0.len() {
            write!(f, "… ({} bytes)", self.0.len())?;
        }
        Ok(())
    }
}

/// The name of a host.
impl<'a> Operand<'a> for &'a str {
    fn put(self, out: &mut BytesMut) {
        self.as_bytes().put(out);
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        let host = decoder.bytes()?;
        let text = std::str::from_utf8(host).ok().filter(|_| master::is_host(host));
        text.ok_or_else(|| decoder.error("no name of a host"))
    }

    fn shown(self) -> impl fmt::Display {
        self
    }
}
