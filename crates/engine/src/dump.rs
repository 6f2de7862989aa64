//! One value as DUMP hands it out and RESTORE takes it.
//!
//! ```text
//! type (1) value | version of the format (u16) | crc64 of all before (u64)        (LE)
//! ```
//! Source: cluster.c of Redis 7.0.15, as its DUMP writes it.

use crate::rdb::timed::is_valkey;
use crate::rdb::{Crc64, RdbError, Source, VERSION, VERSION_TIMED, kind};
use crate::value::stored::{kind_of, put_value};
use crate::value::{Recipe, Value};
use crate::work::{BYTES_PER_STEP, Work};
use structures::entry::{Payload, ValueRef};

const VERSION_BYTES: usize = 2;
const CHECKSUM_BYTES: usize = 8;

/// An error of a payload that is not taken.
#[derive(Debug)]
pub enum DumpError {
    /// It is too short, of a later version, or its checksum is another.
    Footer,
    /// What stands in it is no value.
    Value(RdbError),
}

/// A value with its footer. Its version is the lowest that has the value's type.
pub fn dump(value: ValueRef<'_, Value>, work: &Work) -> Vec<u8> {
    let kind = kind_of(value);
    let version = if kind == kind::HASH_METADATA { VERSION_TIMED } else { VERSION };
    let mut out = vec![kind];
    put_value(&mut out, value, work);
    out.extend_from_slice(&(version as u16).to_le_bytes());
    let mut crc = Crc64::default();
    add_to(&mut crc, &out, work);
    out.extend_from_slice(&crc.value().to_le_bytes());
    out
}

fn add_to(crc: &mut Crc64, bytes: &[u8], work: &Work) {
    for piece in bytes.chunks(BYTES_PER_STEP) {
        crc.update(piece);
        work.step();
    }
}

/// The value in a payload, handed to `take` while it lives. Bytes between it and the footer are
/// passed over, as Redis does.
///
/// # Errors
/// [`DumpError`], whatever the bytes are; then `take` was not called.
pub fn with_value<T>(
    payload: &[u8],
    recipe: &Recipe<'_>,
    take: impl FnOnce(Payload<'_, Value>) -> T,
) -> Result<T, DumpError> {
    let (rest, checksum) = payload.split_last_chunk::<CHECKSUM_BYTES>().ok_or(DumpError::Footer)?;
    let (value, version) = rest.split_last_chunk::<VERSION_BYTES>().ok_or(DumpError::Footer)?;
    let mut crc = Crc64::default();
    add_to(&mut crc, rest, recipe.work);
    let is_whole = crc.value() == u64::from_le_bytes(*checksum);
    let is_valkey = is_valkey(u16::from_le_bytes(*version).into()).filter(|_| is_whole);
    let is_valkey = is_valkey.ok_or(DumpError::Footer)?;
    let mut source = Source::<std::io::Empty>::of_bytes(value);
    source.is_valkey = is_valkey;
    let kind = source.byte().map_err(DumpError::Value)?;
    source.value(kind, recipe).map(take).map_err(DumpError::Value)
}
