//! One record of the log: what a writer stamps on a payload, and how it looks as bytes.
//!
//! ```text
//!  0        4        8      10   11   12       16        24        32        40
//!  | length | crc32c | ver  |kind|flag| reader | epoch   | writer  | counter |
//!  40            48         56            64
//!  | predecessor | clock ms | durable mark | payload … length
//! ```
//!
//! All integers are little-endian. `docs/formats/record.md` is the normative description, and
//! `tests/golden/` holds one file per kind.

use base::{Epoch, Sequence, UnixMillis};
use bytes::{Bytes, BytesMut};
use encryption::Keys;
use std::fmt;
use std::ops::Range;

/// Bytes before the payload.
pub const HEADER_BYTES: usize = 64;

/// The record layout that this file writes.
pub const FORMAT_VERSION: u16 = 1;

/// The newest reader version that this build fulfils: a record that asks for more stops it. 2 reads
/// encrypted payloads.
pub const READER_VERSION: u32 = 2;

/// The bytes of a record to which its encrypted payload is bound: all of the header but what is
/// computed of the whole record.
pub(crate) const CONTEXT: Range<usize> = 8..HEADER_BYTES;

/// Names one writer's life: never used again by another process or after a restart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct WriterId(pub u64);

/// Names everything that the log holds up to and including one record; see [`crate::chain`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct ChainValue(pub u64);

/// What a record is for. The numbers are part of the format and never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[repr(u8)]
pub enum Kind {
    /// Effects: whole units, or one part of one unit.
    Data = 1,
    /// Begins an epoch. Payload: the lease.
    Lead = 2,
    /// Keeps a lease alive when nothing else is written. Payload: the lease.
    Renew = 3,
    /// Gives leadership up.
    Yield = 4,
    /// Marks a place, so that whoever reads it knows that it has read what came before.
    Barrier = 5,
    /// Digests of the log and of the data at this place, for snapshots to be checked against.
    Checksum = 6,
    /// Raises the format version.
    Version = 7,
    /// Gives or takes ownership of slots.
    Slot = 8,
    /// Says where the data of a log that did not begin empty comes from. Its first record.
    Origin = 9,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Data,
        Self::Lead,
        Self::Renew,
        Self::Yield,
        Self::Barrier,
        Self::Checksum,
        Self::Version,
        Self::Slot,
        Self::Origin,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == byte)
    }

    fn carries_lease(self) -> bool {
        matches!(self, Self::Lead | Self::Renew)
    }
}

/// The name in lower case, as tools show it.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Data => "data",
            Self::Lead => "lead",
            Self::Renew => "renew",
            Self::Yield => "yield",
            Self::Barrier => "barrier",
            Self::Checksum => "checksum",
            Self::Version => "version",
            Self::Slot => "slot",
            Self::Origin => "origin",
        })
    }
}

/// Which part of a unit a Data record holds. Bits 0 and 1 of the flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[repr(u8)]
pub enum Part {
    /// Whole units.
    #[default]
    Whole = 0,
    /// The first part of a unit too large for one record.
    First = 1,
    Middle = 2,
    /// The last part: the unit is applied when this is read.
    Last = 3,
}

/// Flag bits above the part. This one is reserved: no writer of this version sets it, and a reader
/// that meets it stops.
const FLAG_COMPRESSED: u8 = 1 << 2;

/// The payload is encrypted. Of Data only.
const FLAG_ENCRYPTED: u8 = 1 << 3;

/// A Lead sets the shard's clock, also back.
const FLAG_SETS_CLOCK: u8 = 1 << 4;

/// Everything a record says besides its payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    pub kind: Kind,
    pub part: Part,
    /// The payload is compressed. Reserved.
    pub is_compressed: bool,
    /// The payload is encrypted, as it is stored. Of Data only.
    pub is_encrypted: bool,
    /// The shard's clock is [`Self::clock`] from here on, though it was later before. Of a Lead
    /// only.
    pub sets_clock: bool,
    /// The lowest reader version that may apply this record.
    pub reader_version_min: u32,
    pub epoch: Epoch,
    pub writer: WriterId,
    /// Counts the writer's records from 1. Never reused for different bytes.
    pub counter: u64,
    /// The chain value of the last non-void record before this one.
    pub predecessor: ChainValue,
    /// The shard's clock. Never goes back along the chain, unless [`Self::sets_clock`].
    pub clock: UnixMillis,
    /// Everything through here was durable when the record was written.
    pub durable: Sequence,
}

/// A header and its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub header: Header,
    pub payload: Bytes,
}

/// Why bytes are not a record that this build can read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordError {
    /// Fewer bytes than a header, or than the length field says.
    Truncated {
        needed: usize,
        has: usize,
    },
    /// The length field contradicts the bytes given, or is smaller than a header.
    Length {
        stated: usize,
        has: usize,
    },
    Checksum {
        stated: u32,
        computed: u32,
    },
    /// Written by a newer release.
    FormatVersion(u16),
    Kind(u8),
    Flags(u8),
    /// A Lead or Renew without a lease.
    NoLease,
}

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { needed, has } => {
                write!(f, "a record needs {needed} bytes, {has} are there")
            }
            Self::Length { stated, has } => {
                write!(f, "the record's length field says {stated}, {has} bytes are there")
            }
            Self::Checksum { stated, computed } => {
                write!(f, "checksum {computed:08x}, the record says {stated:08x}")
            }
            Self::FormatVersion(version) => write!(f, "unknown record format version {version}"),
            Self::Kind(kind) => write!(f, "unknown record kind {kind}"),
            Self::Flags(flags) => write!(f, "unknown record flags {flags:#04x}"),
            Self::NoLease => f.write_str("a record that carries a lease has none"),
        }
    }
}

impl Record {
    /// The record as bytes.
    pub fn encode(&self) -> Bytes {
        let mut bytes = BytesMut::with_capacity(HEADER_BYTES + self.payload.len());
        bytes.resize(HEADER_BYTES, 0);
        bytes.extend_from_slice(&self.payload);
        encode_in_place(&self.header, &mut bytes);
        bytes.freeze()
    }

    /// Reads one whole record; the payload shares the bytes.
    ///
    /// # Errors
    /// Whatever is wrong first: length, version, checksum, then the fields.
    pub fn decode(bytes: &Bytes) -> Result<Self, RecordError> {
        let header = decode_header(bytes, true)?;
        Ok(Self { header, payload: bytes.slice(HEADER_BYTES..) })
    }

    /// The lease in milliseconds that a Lead or Renew grants.
    pub fn lease_millis(&self) -> Option<u64> {
        if self.header.kind.carries_lease() { u64_at(&self.payload, 0) } else { None }
    }
}

/// Stamps a header on a buffer whose first [`HEADER_BYTES`] are reserved for it and whose rest is
/// the payload: the engine's effects become a record without being copied.
///
/// # Panics
/// If the buffer is shorter than a header, or longer than 4 GiB (limits are far below).
pub fn encode_in_place(header: &Header, bytes: &mut [u8]) {
    put_fields(header, bytes);
    put_length_and_checksum(bytes);
}

/// The same, with the payload encrypted where it lies; what is needed to read it comes behind it.
///
/// # Panics
/// As [`encode_in_place`]; or there are no keys.
pub(crate) fn encode_encrypted(header: &Header, buffer: &mut BytesMut, keys: &Keys) {
    put_fields(header, buffer);
    let mut context = [0; CONTEXT.end - CONTEXT.start];
    context.copy_from_slice(&buffer[CONTEXT]);
    keys.encrypt_payload(&context, buffer, HEADER_BYTES);
    put_length_and_checksum(buffer);
}

fn put_length_and_checksum(bytes: &mut [u8]) {
    let length = u32::try_from(bytes.len()).expect("a record is smaller than 4 GiB");
    bytes[0..4].copy_from_slice(&length.to_le_bytes());
    let checksum = checksum_of(bytes);
    bytes[4..8].copy_from_slice(&checksum.to_le_bytes());
}

fn put_fields(header: &Header, bytes: &mut [u8]) {
    bytes[8..10].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
    bytes[10] = header.kind as u8;
    bytes[11] = flags_of(header);
    bytes[12..16].copy_from_slice(&header.reader_version_min.to_le_bytes());
    bytes[16..24].copy_from_slice(&header.epoch.0.to_le_bytes());
    bytes[24..32].copy_from_slice(&header.writer.0.to_le_bytes());
    bytes[32..40].copy_from_slice(&header.counter.to_le_bytes());
    bytes[40..48].copy_from_slice(&header.predecessor.0.to_le_bytes());
    bytes[48..56].copy_from_slice(&header.clock.0.to_le_bytes());
    bytes[56..64].copy_from_slice(&header.durable.0.to_le_bytes());
}

/// Reads the header of a whole record. With `verify` false the checksum is taken on trust: for
/// bytes that this process stamped itself.
///
/// # Errors
/// As [`Record::decode`].
pub fn decode_header(bytes: &[u8], verify: bool) -> Result<Header, RecordError> {
    let has = bytes.len();
    if has < HEADER_BYTES {
        return Err(RecordError::Truncated { needed: HEADER_BYTES, has });
    }
    let stated = stated_length(bytes).unwrap_or(0);
    if stated > has {
        return Err(RecordError::Truncated { needed: stated, has });
    }
    if stated != has {
        return Err(RecordError::Length { stated, has });
    }
    let version = u16::from_le_bytes([bytes[8], bytes[9]]);
    if version != FORMAT_VERSION {
        return Err(RecordError::FormatVersion(version));
    }
    if verify {
        let (stated, computed) = (checksum_field(bytes), checksum_of(bytes));
        if stated != computed {
            return Err(RecordError::Checksum { stated, computed });
        }
    }
    decode_fields(bytes)
}

/// The length field of a record whose first four bytes are there.
pub fn stated_length(bytes: &[u8]) -> Option<usize> {
    Some(u32_at(bytes, 0)? as usize)
}

/// The checksum field; 0 for bytes that are too short.
pub(crate) fn checksum_field(bytes: &[u8]) -> u32 {
    u32_at(bytes, 4).unwrap_or(0)
}

/// The checksum covers everything but itself.
fn checksum_of(bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..4]), &bytes[8..])
}

fn decode_fields(bytes: &[u8]) -> Result<Header, RecordError> {
    let word = |offset| u64_at(bytes, offset).unwrap_or(0);
    let kind = Kind::from_byte(bytes[10]).ok_or(RecordError::Kind(bytes[10]))?;
    let flags = bytes[11];
    if flags & !(3 | FLAG_COMPRESSED | FLAG_ENCRYPTED | FLAG_SETS_CLOCK) != 0 {
        return Err(RecordError::Flags(flags));
    }
    let part = match flags & 3 {
        0 => Part::Whole,
        1 => Part::First,
        2 => Part::Middle,
        _ => Part::Last,
    };
    if part != Part::Whole && kind != Kind::Data {
        return Err(RecordError::Flags(flags));
    }
    let sets_clock = flags & FLAG_SETS_CLOCK != 0;
    if sets_clock && kind != Kind::Lead {
        return Err(RecordError::Flags(flags));
    }
    if kind.carries_lease() && bytes.len() < HEADER_BYTES + 8 {
        return Err(RecordError::NoLease);
    }
    Ok(Header {
        kind,
        part,
        is_compressed: flags & FLAG_COMPRESSED != 0,
        is_encrypted: flags & FLAG_ENCRYPTED != 0,
        sets_clock,
        reader_version_min: u32_at(bytes, 12).unwrap_or(u32::MAX),
        epoch: Epoch(word(16)),
        writer: WriterId(word(24)),
        counter: word(32),
        predecessor: ChainValue(word(40)),
        clock: UnixMillis(word(48).cast_signed()),
        durable: Sequence(word(56)),
    })
}

fn flags_of(header: &Header) -> u8 {
    let mut flags = header.part as u8;
    if header.is_compressed {
        flags |= FLAG_COMPRESSED;
    }
    if header.is_encrypted {
        flags |= FLAG_ENCRYPTED;
    }
    if header.sets_clock {
        flags |= FLAG_SETS_CLOCK;
    }
    flags
}

pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(offset..)?.first_chunk()?))
}
