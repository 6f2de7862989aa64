//! A value as the bytes of a record of the tier, and back.
//!
//! ```text
//! type (1, as in RDB files) | a string: its bytes | anything else: as in RDB files
//! ```
//! What comes back has the encoding that went: nothing that a client sees tells that a value was
//! away.

use crate::rdb::{RdbError, Source, kind};
use crate::value::stored::{kind_of, put_value};
use crate::value::text::payload_of;
use crate::value::{Hash, Recipe, Value};
use crate::work::Work;
use std::io::Empty;
use structures::Cold;
use structures::entry::{Payload, ValueRef};

/// Appends the bytes of a value.
pub(crate) fn put_content(out: &mut Vec<u8>, value: ValueRef<'_, Value>, work: &Work) {
    out.push(kind_of(value));
    match value {
        ValueRef::Bytes(text) => out.extend_from_slice(text),
        ValueRef::Boxed(Value::Text(text)) => out.extend_from_slice(text),
        value => put_value(out, value, work),
    }
}

/// The value in a record's bytes.
///
/// # Errors
/// They are none that [`put_content`] wrote.
pub(crate) fn with_payload<T>(
    content: &[u8],
    recipe: &Recipe<'_>,
    take: impl FnOnce(Payload<'_, Value>) -> T,
) -> Result<T, RdbError> {
    let (kind, bytes) = match content {
        [kind::STRING, text @ ..] => return Ok(take(payload_of(text))),
        [kind, bytes @ ..] => (*kind, bytes),
        [] => (kind::MODULE, content),
    };
    let mut source = Source::<Empty>::of_bytes(bytes);
    source.keeps_encodings = true;
    source.value(kind, recipe).map(take)
}

/// Appends the bytes of a record as an RDB file has the value, without its type.
pub(crate) fn put_stored(out: &mut Vec<u8>, content: &[u8]) {
    match content {
        [kind::STRING, text @ ..] => crate::rdb::length::put_string(out, text),
        [_, bytes @ ..] => out.extend_from_slice(bytes),
        [] => {}
    }
}

/// The count of a value that goes: elements, or bytes of a string.
pub(crate) fn count_of(value: ValueRef<'_, Value>) -> u16 {
    let count = match value {
        ValueRef::Bytes(text) => text.len(),
        ValueRef::Boxed(Value::Text(text)) => text.len(),
        ValueRef::Boxed(value) => value.elements_shown(),
        ValueRef::Integer(_) | ValueRef::Cold(_) => return Cold::COUNT_UNKNOWN,
    };
    u16::try_from(count).unwrap_or(Cold::COUNT_UNKNOWN)
}

/// Whether a value of this type may be spilled. One of which fields expire may not: when they do
/// must be known without it.
pub(crate) fn may_go(value: ValueRef<'_, Value>) -> bool {
    !matches!(
        value,
        ValueRef::Integer(_)
            | ValueRef::Cold(_)
            | ValueRef::Boxed(Value::Hash(Hash::TimedPack(_) | Hash::TimedTable(_)))
    )
}

/// The type of a value by the byte of its record, as TYPE names it, and its encoding, as OBJECT
/// ENCODING names it.
pub(crate) fn kind_is(kind: u8) -> (&'static str, &'static str) {
    match kind {
        kind::STRING => ("string", "raw"),
        kind::LIST_QUICKLIST_2 => ("list", "quicklist"),
        kind::SET => ("set", "hashtable"),
        kind::SET_INTSET => ("set", "intset"),
        kind::HASH => ("hash", "hashtable"),
        kind::HASH_LISTPACK => ("hash", "listpack"),
        kind::ZSET_2 => ("zset", "skiplist"),
        kind::ZSET_LISTPACK => ("zset", "listpack"),
        _ => ("stream", "stream"),
    }
}
