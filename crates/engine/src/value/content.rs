//! A value as the bytes of a record of the tier, and back.
//!
//! ```text
//! tag (1) | a string: its bytes | anything else: as in RDB files
//! ```
//! The tag is the type as in RDB files, which have one for all hashes of which fields expire: here
//! a bit tells those that are tables.
//!
//! What comes back has the encoding that went: nothing that a client sees tells that a value was
//! away.

use crate::rdb::{RdbError, Source, kind};
use crate::value::stored::{Cursor, kind_of, put_count, put_piece, put_value};
use crate::value::text::payload_of;
use crate::value::{Hash, Recipe, Value};
use crate::work::Work;
use std::io::Empty;
use structures::Cold;
use structures::entry::{Payload, ValueRef};

/// Set in the tag of a hash of which fields expire that is a table.
const TABLE: u8 = 0x80;
const TIMED_TABLE: u8 = kind::HASH_METADATA | TABLE;

/// Of short members: a set of numbers of 16 bits takes 3 bytes for each in its record, and 12 in
/// memory.
const TABLE_GROWTH: usize = 4;

/// Appends the bytes of a value.
pub(crate) fn put_content(out: &mut Vec<u8>, value: ValueRef<'_, Value>, work: &Work) {
    out.push(tag_of(value));
    match value {
        ValueRef::Bytes(text) => out.extend_from_slice(text),
        ValueRef::Boxed(Value::Text(text)) => out.extend_from_slice(text),
        value => put_value(out, value, work),
    }
}

/// Appends what the bytes of a value in its own box begin with: with the parts that follow
/// ([`put_part`]) they are what [`put_content`] writes at once.
pub(crate) fn put_beginning(out: &mut Vec<u8>, value: &Value) {
    out.push(tag_of(ValueRef::Boxed(value)));
    if !matches!(value, Value::Text(_)) {
        put_count(out, value);
    }
}

/// Goes on from `cursor` with the bytes of a value, by about `bytes_max`, or by all of them where
/// they are one string. Whether that was the end.
pub(crate) fn put_part(
    out: &mut Vec<u8>,
    value: &Value,
    cursor: &mut Cursor,
    bytes_max: usize,
    work: &Work,
) -> bool {
    if value.is_divisible() {
        return put_piece(out, value, cursor, bytes_max);
    }
    put_value(out, ValueRef::Boxed(value), work);
    true
}

/// What an entry's tag says of a cold value, and the first byte of its record: its type and its
/// encoding.
pub(crate) fn tag_of(value: ValueRef<'_, Value>) -> u8 {
    match value {
        ValueRef::Boxed(Value::Hash(Hash::TimedTable(_))) => kind_of(value) | TABLE,
        value => kind_of(value),
    }
}

/// The type that an RDB file has of a cold value with this tag.
pub(crate) fn kind_of_tag(tag: u8) -> u8 {
    tag & !TABLE
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
    let (tag, bytes) = match content {
        [kind::STRING, text @ ..] => return Ok(take(payload_of(text))),
        [tag, bytes @ ..] => (*tag, bytes),
        [] => (kind::MODULE, content),
    };
    let mut source = Source::<Empty>::of_bytes(bytes);
    source.keeps_encodings = true;
    let mut payload = source.value(kind_of_tag(tag), recipe)?;
    if tag & TABLE != 0
        && let Payload::Boxed(value) = &mut payload
        && let Value::Hash(hash) = &mut **value
    {
        hash.make_timed_table(recipe);
    }
    Ok(take(payload))
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

/// Whether a value of this type may be spilled, if it is in memory.
pub(crate) fn may_go(value: ValueRef<'_, Value>) -> bool {
    !matches!(value, ValueRef::Integer(_) | ValueRef::Cold(_))
}

/// How many times the bytes of its record a cold value with this tag may take in memory: in a table
/// each element has pointers and slack beside it.
pub(crate) fn growth_of(tag: u8) -> usize {
    match tag {
        TIMED_TABLE | kind::SET | kind::HASH | kind::ZSET_2 => TABLE_GROWTH,
        _ => 1,
    }
}

/// The type of a cold value by its tag, as TYPE names it, and its encoding, as OBJECT ENCODING
/// names it.
pub(crate) fn tag_is(tag: u8) -> (&'static str, &'static str) {
    match tag {
        TIMED_TABLE => ("hash", "hashtable"),
        kind::HASH_METADATA => ("hash", "listpackex"),
        kind::STRING => ("string", "raw"),
        kind::LIST_QUICKLIST_2 => ("list", "quicklist"),
        kind::SET => ("set", "hashtable"),
        kind::SET_INTSET => ("set", "intset"),
        kind::HASH => ("hash", "hashtable"),
        kind::HASH_LISTPACK => ("hash", "listpack"),
        kind::ZSET_2 => ("zset", "skiplist"),
        kind::ZSET_LISTPACK => ("zset", "listpack"),
        kind::STREAM_LISTPACKS_2 => ("stream", "stream"),
        // Tags are this process's own: whoever adds a type of values names it here.
        other => unreachable!("no value of tag {other} leaves memory"),
    }
}
