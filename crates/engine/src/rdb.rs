//! The format of Redis 7.0 (RDB version 10): its numbers, strings and checksums.
//!
//! Snapshots are valid RDB files, so that any Redis tool reads them and nobody is locked in.
//!
//! ```text
//! "REDIS0010" | aux fields | per database: select, sizes, entries … | 0xFF | crc64 (LE)
//! entry = [expiry] [idle time or frequency] type (1) key value
//! ```
//! Everything here works on bytes and streams: where they come from and go to is the caller's
//! business. What is read is not trusted: every length is checked against what is there.
//!
//! | module | holds |
//! |---|---|
//! | `crc64` | the checksum |
//! | `length` | lengths and strings |
//! | `lzf` | compressed strings, read only |
//! | `source` | a stream, buffered and digested |
//! | `old` | encodings of old releases, read only |
//! | `timed` | hashes whose fields expire; Valkey's numbers |
//!
//! What a value looks like in it, its type says ([`crate::value`]). Files and payloads are written
//! and read by [`crate::save`], [`crate::load`], [`crate::import`] and [`crate::dump`].
//!
//! Source: the format as Redis 7.0.15 writes it (rdb.c), and
//! <https://rdb.fnordig.de/file_format.html>.

pub(crate) mod crc64;
pub(crate) mod length;
pub(crate) mod lzf;
pub(crate) mod names;
pub(crate) mod old;
pub(crate) mod source;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod timed;

pub use crc64::Crc64;
pub use source::Source;

use std::fmt;
use std::io;

/// The version of the format that is written, and read in files of our own.
pub const VERSION: u32 = 10;

/// The version of files in which a field of a hash expires, which older versions cannot express:
/// that of Redis 7.4.
pub const VERSION_TIMED: u32 = 12;

/// The version of Valkey 9, whose own type numbers follow those of Redis 7.2.
pub const VERSION_VALKEY: u32 = 80;

/// The newest version of which something is taken from others: of Redis 7.4. What it holds that is
/// not known here is refused where it stands.
pub const VERSION_READ: u32 = 12;

/// What the names of our own auxiliary fields begin with.
pub const OWN_FIELDS: &str = "kiln-";

/// The auxiliary field of our own that says [`crate::keyspace::Keyspace::is_partial`].
pub const PARTIAL: &str = "kiln-partial";

/// Types of values, as the byte before the key names them.
pub(crate) mod kind {
    pub const STRING: u8 = 0;
    pub const LIST: u8 = 1;
    pub const SET: u8 = 2;
    /// Scores as text.
    pub const ZSET: u8 = 3;
    pub const HASH: u8 = 4;
    /// Scores as binary doubles.
    pub const ZSET_2: u8 = 5;
    /// A value of a module's own type.
    pub const MODULE: u8 = 6;
    pub const MODULE_2: u8 = 7;
    pub const HASH_ZIPMAP: u8 = 9;
    pub const LIST_ZIPLIST: u8 = 10;
    pub const SET_INTSET: u8 = 11;
    pub const ZSET_ZIPLIST: u8 = 12;
    pub const HASH_ZIPLIST: u8 = 13;
    /// Nodes that are ziplists.
    pub const LIST_QUICKLIST: u8 = 14;
    /// A stream of Redis before 7.0.
    pub const STREAM_LISTPACKS: u8 = 15;
    pub const HASH_LISTPACK: u8 = 16;
    pub const ZSET_LISTPACK: u8 = 17;
    /// Nodes that are listpacks or plain elements.
    pub const LIST_QUICKLIST_2: u8 = 18;
    pub const STREAM_LISTPACKS_2: u8 = 19;
    /// Since Redis 7.2.
    pub const SET_LISTPACK: u8 = 20;
    /// A stream of Redis since 7.2.
    pub const STREAM_LISTPACKS_3: u8 = 21;
    /// A hash with field expiries, of Valkey since 9.0. Redis used the number in no release.
    pub const HASH_2: u8 = 22;
    /// A hash with field expiries, of Redis since 7.4.
    pub const HASH_METADATA: u8 = 24;
    /// The same as one listpack: fields, values and times, sorted by time.
    pub const HASH_LISTPACK_EX: u8 = 25;

    pub fn is_stream(kind: u8) -> bool {
        matches!(kind, STREAM_LISTPACKS | STREAM_LISTPACKS_2 | STREAM_LISTPACKS_3)
    }
}

/// Bytes that stand where a type could, and say something else.
pub(crate) mod opcode {
    /// How many keys a slot has, since Redis 7.4.
    pub const SLOT_INFO: u8 = 244;
    pub const FUNCTION: u8 = 245;
    pub const FUNCTION_PREVIEW: u8 = 246;
    pub const MODULE_AUX: u8 = 247;
    pub const IDLE: u8 = 248;
    pub const FREQUENCY: u8 = 249;
    pub const AUX: u8 = 250;
    pub const RESIZE_DATABASE: u8 = 251;
    pub const EXPIRE_MILLIS: u8 = 252;
    pub const EXPIRE_SECONDS: u8 = 253;
    pub const SELECT_DATABASE: u8 = 254;
    pub const EOF: u8 = 255;
}

/// An error of a file that cannot be read.
#[derive(Debug)]
pub enum RdbError {
    /// The stream failed.
    Io(io::Error),
    /// The bytes before this offset are no RDB file, or one that was damaged.
    Damaged { offset: u64, what: String },
    /// The file holds what this build does not know.
    Unsupported { offset: u64, what: String },
}

impl fmt::Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => error.fmt(f),
            Self::Damaged { offset, what } => write!(f, "{what} before byte {offset}"),
            Self::Unsupported { offset, what } => {
                write!(f, "{what} before byte {offset} is not supported")
            }
        }
    }
}

impl std::error::Error for RdbError {}

impl From<io::Error> for RdbError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
