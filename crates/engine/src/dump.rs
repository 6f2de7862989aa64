//! One value as DUMP hands it out and RESTORE takes it.
//!
//! ```text
//! type (1) value | version of the format (u16) | crc64 of all before (u64)        (LE)
//! ```
//! Source: cluster.c of Redis 7.0.15, as its DUMP writes it.

use crate::functions::Libraries;
use crate::rdb::timed::is_valkey;
use crate::rdb::{Crc64, RdbError, Source, VERSION, VERSION_TIMED, kind, opcode};
use crate::save::{checksum, put_end, put_header, put_libraries};
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
    end(out, version, work)
}

fn add_to(crc: &mut Crc64, bytes: &[u8], work: &Work) {
    for piece in bytes.chunks(BYTES_PER_STEP) {
        crc.update(piece);
        work.step();
    }
}

/// Why a payload of FUNCTION RESTORE is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LibrariesError {
    /// The payload is too short, its version is newer, or its checksum is wrong.
    Footer,
    /// It has a library in the format of Redis 7.0's release candidates.
    Preview,
    /// It has an entry that is no library.
    Other,
    /// It ends within a library.
    Torn,
}

/// The payload of FUNCTION DUMP: all libraries, as in an RDB file, and a footer.
pub fn dump_libraries(libraries: &Libraries, work: &Work) -> Vec<u8> {
    let mut out = Vec::new();
    put_libraries(&mut out, libraries);
    end(out, VERSION, work)
}

/// An RDB file with libraries alone; `None`: with nothing.
pub fn functions_file(libraries: Option<&Libraries>, work: &Work) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, VERSION, &[("redis-ver", "7.0.15"), ("redis-bits", "64")]);
    if let Some(libraries) = libraries {
        put_libraries(&mut out, libraries);
    }
    put_end(&mut out);
    let mut crc = Crc64::default();
    add_to(&mut crc, &out, work);
    out.extend_from_slice(&checksum(crc));
    out
}

/// The code of each library in a payload of FUNCTION RESTORE.
///
/// # Errors
/// [`LibrariesError`]. No bytes cause a panic.
pub fn libraries_of(payload: &[u8], work: &Work) -> Result<Vec<Vec<u8>>, LibrariesError> {
    let footed = without_footer(payload, work);
    let known = footed.filter(|(_, version)| is_valkey(*version).is_some());
    let (value, _) = known.ok_or(LibrariesError::Footer)?;
    let mut source = Source::<std::io::Empty>::of_bytes(value);
    let mut codes = Vec::new();
    while !source.is_at_end().map_err(|_| LibrariesError::Torn)? {
        work.step();
        match source.byte().map_err(|_| LibrariesError::Torn)? {
            opcode::FUNCTION => {
                codes.push(source.owned().map_err(|_| LibrariesError::Torn)?);
            }
            opcode::FUNCTION_PREVIEW => return Err(LibrariesError::Preview),
            _ => return Err(LibrariesError::Other),
        }
    }
    Ok(codes)
}

/// Appends the footer: version and checksum.
fn end(mut out: Vec<u8>, version: u32, work: &Work) -> Vec<u8> {
    out.extend_from_slice(&(version as u16).to_le_bytes());
    let mut crc = Crc64::default();
    add_to(&mut crc, &out, work);
    out.extend_from_slice(&crc.value().to_le_bytes());
    out
}

/// The bytes before the footer, and the footer's version; `None` if the checksum is wrong.
fn without_footer<'a>(payload: &'a [u8], work: &Work) -> Option<(&'a [u8], u32)> {
    let (rest, checksum) = payload.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (value, version) = rest.split_last_chunk::<VERSION_BYTES>()?;
    let mut crc = Crc64::default();
    add_to(&mut crc, rest, work);
    let is_whole = crc.value() == u64::from_le_bytes(*checksum);
    is_whole.then_some((value, u16::from_le_bytes(*version).into()))
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
    let (value, version) = without_footer(payload, recipe.work).ok_or(DumpError::Footer)?;
    let is_valkey = is_valkey(version).ok_or(DumpError::Footer)?;
    let mut source = Source::<std::io::Empty>::of_bytes(value);
    source.is_valkey = is_valkey;
    let kind = source.byte().map_err(DumpError::Value)?;
    source.value(kind, recipe).map(take).map_err(DumpError::Value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes were recorded from redis-server 7.0.15, which also restores them.
    #[test]
    fn libraries_are_dumped_and_read_back() {
        let mut libraries = Libraries::default();
        let work = Work::default();
        let empty = dump_libraries(&libraries, &work);
        assert_eq!(empty, b"\x0a\0\x5d\x9b\x5c\x40\x0f\x7f\xa2\xda"[..].to_vec());
        libraries.load(b"#!lua name=a\n1").expect("it has a name");
        let payload = dump_libraries(&libraries, &work);
        assert_eq!(libraries_of(&payload, &work), Ok(vec![b"#!lua name=a\n1".to_vec()]));
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 1;
            assert_eq!(libraries_of(&damaged, &work), Err(LibrariesError::Footer), "byte {at}");
        }
        for (body, error) in [
            (&b"\xf6"[..], LibrariesError::Preview),
            (b"\0", LibrariesError::Other),
            (b"\xf5\x05ab", LibrariesError::Torn),
        ] {
            assert_eq!(libraries_of(&end(body.to_vec(), VERSION, &work), &work), Err(error));
        }
    }
}
