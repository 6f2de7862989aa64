//! Operands of effects on streams: the fields of an entry, and lists of IDs.
//!
//! ```text
//! fields = length of all that follows (u32) | bytes of a field | bytes of its value …
//! ids    = length of all that follows (u32) | millis (u64) | sequence (u64) …      little-endian
//! ```
//! Both borrow their bytes from the payload, and were validated when they were decoded: reading
//! them cannot fail.

use super::operand::{Operand, Quoted};
use super::{EffectDecoder, EffectError};
use crate::stream_id::StreamId;
use bytes::BytesMut;
use std::fmt;

/// Bytes of the length before a field or a value.
const LENGTH_BYTES: usize = size_of::<u32>();

/// Elements of a list that `kiln log inspect` shows; it only counts the rest.
const SHOWN_MAX: usize = 16;

/// Fields and their values, in the order in which they were given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fields<'a> {
    bytes: &'a [u8],
    pairs: usize,
}

impl<'a> Fields<'a> {
    /// Bytes that [`Self::put`] writes beside a text.
    pub const HEAD_BYTES: usize = size_of::<u32>();

    /// Appends a field or a value to bytes that [`Self::of`] will read.
    pub fn put(bytes: &mut Vec<u8>, text: &[u8]) {
        let length = u32::try_from(text.len()).expect("no string is longer: STRING_BYTES_MAX");
        bytes.extend_from_slice(&length.to_le_bytes());
        bytes.extend_from_slice(text);
    }

    /// Reads fields and values that [`Self::put`] wrote, in turn; `None` if there are none, or if a
    /// value is missing.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        let (mut rest, mut texts) = (bytes, 0);
        while !rest.is_empty() {
            (_, rest) = split(rest)?;
            texts += 1;
        }
        (texts > 0 && texts % 2 == 0).then_some(Self { bytes, pairs: texts / 2 })
    }

    /// The number of fields; never 0.
    #[allow(clippy::len_without_is_empty, reason = "there is always one")]
    pub fn len(&self) -> usize {
        self.pairs
    }

    /// Each field with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + Clone + use<'a> {
        let mut rest = self.bytes;
        std::iter::from_fn(move || {
            let (field, behind) = split(rest)?;
            let (value, behind) = split(behind)?;
            rest = behind;
            Some((field, value))
        })
    }
}

/// The first text, and what follows it.
fn split(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH_BYTES>()?;
    rest.split_at_checked(u32::from_le_bytes(*length) as usize)
}

impl<'a> Operand<'a> for Fields<'a> {
    fn put(self, out: &mut BytesMut) {
        self.bytes.put(out);
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        let bytes = decoder.bytes()?;
        Self::of(bytes).ok_or_else(|| decoder.error("no fields with values"))
    }

    fn shown(self) -> impl fmt::Display {
        let texts = self.iter().flat_map(|(field, value)| [field, value]);
        let mut shown: Vec<String> =
            texts.take(SHOWN_MAX).map(|text| Quoted(text).to_string()).collect();
        if 2 * self.pairs > shown.len() {
            shown.push(format!("… ({} fields)", self.pairs));
        }
        shown.join(" ")
    }
}

/// IDs of entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ids<'a>(&'a [u8]);

impl<'a> Ids<'a> {
    /// Appends an ID to bytes that [`Self::of`] will read.
    pub fn put(bytes: &mut Vec<u8>, id: StreamId) {
        bytes.extend_from_slice(&to_bytes(id));
    }

    /// Reads IDs that [`Self::put`] wrote; `None` if the last one is cut off.
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        bytes.len().is_multiple_of(StreamId::BYTES).then_some(Self(bytes))
    }

    pub fn iter(&self) -> impl Iterator<Item = StreamId> + use<'a> {
        self.0.as_chunks().0.iter().map(from_bytes)
    }

    pub fn len(&self) -> usize {
        self.0.len() / StreamId::BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn to_bytes(id: StreamId) -> [u8; StreamId::BYTES] {
    let mut bytes = [0; StreamId::BYTES];
    let (millis, sequence) = bytes.split_at_mut(size_of::<u64>());
    millis.copy_from_slice(&id.millis.to_le_bytes());
    sequence.copy_from_slice(&id.sequence.to_le_bytes());
    bytes
}

fn from_bytes(bytes: &[u8; StreamId::BYTES]) -> StreamId {
    let number = u128::from_le_bytes(*bytes);
    StreamId::new(number as u64, (number >> 64) as u64)
}

impl<'a> Operand<'a> for Ids<'a> {
    fn put(self, out: &mut BytesMut) {
        self.0.put(out);
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        let bytes = decoder.bytes()?;
        Self::of(bytes).ok_or_else(|| decoder.error("an ID that is cut off"))
    }

    fn shown(self) -> impl fmt::Display {
        let mut shown: Vec<String> = self.iter().take(SHOWN_MAX).map(|id| id.to_string()).collect();
        if self.len() > shown.len() {
            shown.push(format!("… ({} IDs)", self.len()));
        }
        shown.join(" ")
    }
}

impl<'a> Operand<'a> for StreamId {
    fn put(self, out: &mut BytesMut) {
        out.extend_from_slice(&to_bytes(self));
    }

    fn take(decoder: &mut EffectDecoder<'a>) -> Result<Self, EffectError> {
        decoder.fixed().map(|bytes| from_bytes(&bytes))
    }

    fn shown(self) -> impl fmt::Display {
        self
    }
}
