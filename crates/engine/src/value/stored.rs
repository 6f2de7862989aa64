//! Values as RDB files and DUMP payloads hold them: one string, or a count and as many elements.
//! The latter can be written in pieces, while the value stands still in between.
//!
//! ```text
//! put_count ─▶ put_piece, put_piece … ─▶ true
//! ```
//! The pieces add up to what [`put_value`] writes at once, but for short strings, which that may
//! write as integers.

use super::{Value, ValueType, each_type, stream};
use crate::rdb::kind;
use crate::rdb::length::{put_integer, put_length, put_string};
use crate::work::Work;
use structures::entry::ValueRef;
use structures::listpack::Item;

/// Bytes of a collection that count as a step: about an element.
pub(crate) const ELEMENT_BYTES: usize = 32;

/// Elements between two looks at the bound of a piece.
pub(super) const STEP_ELEMENTS: usize = 16;

/// Bytes of a value that is written without a pause, from one count of the work to the next.
const COUNTED_BYTES: usize = 16 << 10;

/// The form of a value in a file: the byte of its type, and what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stored<'a> {
    /// A small encoding: one string.
    Packed(u8, &'a [u8]),
    /// A count, then as many elements, nodes or bytes.
    InPieces(u8, usize),
}

/// The progress of writing a value: bytes of a string, nodes of a list, members of a sorted set
/// from the greatest down, the cursor of a set's or a hash's scan, the place in a stream.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Cursor(pub(super) u64, pub(super) stream::StreamCursor);

impl Value {
    pub(super) fn stored(&self) -> Stored<'_> {
        each_type!(self, value => ValueType::stored(value))
    }

    /// Whether the value can be written in pieces.
    pub fn is_divisible(&self) -> bool {
        matches!(self.stored(), Stored::InPieces(..))
    }
}

/// The type byte of a value.
pub fn kind_of(value: ValueRef<'_, Value>) -> u8 {
    match value {
        ValueRef::Integer(_) | ValueRef::Bytes(_) => kind::STRING,
        ValueRef::Boxed(value) => match value.stored() {
            Stored::Packed(kind, _) | Stored::InPieces(kind, _) => kind,
        },
        // Its entry's tag says it.
        ValueRef::Cold(_) => unreachable!("who writes a cold value reads it first"),
    }
}

/// Appends a value, without its type byte.
pub fn put_value(out: &mut Vec<u8>, value: ValueRef<'_, Value>, work: &Work) {
    match value {
        ValueRef::Integer(integer) => put_integer(out, integer),
        ValueRef::Bytes(bytes) => put_string(out, bytes),
        ValueRef::Boxed(Value::Text(text)) => put_string(out, text),
        ValueRef::Boxed(value) => match value.stored() {
            Stored::Packed(_, bytes) => put_string(out, bytes),
            Stored::InPieces(..) => {
                put_count(out, value);
                put_pieces(out, value, &mut Cursor::default(), work);
            }
        },
        ValueRef::Cold(_) => unreachable!("who writes a cold value reads it first"),
    }
}

/// What stands before the pieces. Small encodings, which are one string, have none.
pub fn put_count(out: &mut Vec<u8>, value: &Value) {
    if let Stored::InPieces(_, count) = value.stored() {
        each_type!(value, value => ValueType::put_head(value, out));
        put_length(out, count as u64);
    }
}

/// Writes all of a value from `cursor` on.
pub fn put_pieces(out: &mut Vec<u8>, value: &Value, cursor: &mut Cursor, work: &Work) {
    loop {
        let before = out.len();
        let is_done = put_piece(out, value, cursor, COUNTED_BYTES);
        work.steps((out.len() - before) / ELEMENT_BYTES);
        if is_done {
            return;
        }
    }
}

/// Goes on from `cursor` until about `bytes_max` more are written: an element, or a list's node, is
/// written whole. Whether that was the end.
pub fn put_piece(out: &mut Vec<u8>, value: &Value, cursor: &mut Cursor, bytes_max: usize) -> bool {
    each_type!(value, value => value.put_piece(out, cursor, bytes_max))
}

pub(super) fn put_item(out: &mut Vec<u8>, item: Item<'_>) {
    match item {
        Item::Bytes(bytes) => put_string(out, bytes),
        Item::Integer(integer) => put_integer(out, integer),
    }
}

/// Steps through a scan, whose cursor 0 is its beginning and its end.
pub(super) fn put_scanned(
    out: &mut Vec<u8>,
    cursor: &mut Cursor,
    bytes_max: usize,
    mut step: impl FnMut(&mut Vec<u8>, u64) -> u64,
) -> bool {
    let bytes_until = out.len().saturating_add(bytes_max);
    loop {
        cursor.0 = step(out, cursor.0);
        if cursor.0 == 0 {
            return true;
        }
        if out.len() >= bytes_until {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Effect, End, Fields, Ids};
    use crate::keyspace::Keyspace;
    use crate::settings::Settings;
    use crate::stream_id::StreamId;
    use base::{DatabaseId, HashKey};
    use structures::entry::ValueRef;

    /// One big value of every type that has pieces, of `count` elements.
    fn keyspace(count: u32) -> Keyspace {
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
        let mut apply = |key: &str, effect: &Effect<'_>| {
            keyspace.apply(DatabaseId(0), key.as_bytes(), effect).expect("each key has one type");
        };
        for number in 0..count {
            let text = format!("element-{number}-{}", "x".repeat(number as usize % 90));
            let text = text.as_bytes();
            apply("list", &Effect::ListPush { end: End::Tail, value: text });
            apply("set", &Effect::SetAdd { member: text });
            apply("integers", &Effect::SetAdd { member: number.to_string().as_bytes() });
            let expire_at = Some(1_000_000 - i64::from(number));
            apply("hash", &Effect::HashSet { field: text, value: text, expire_at: None });
            let expire_at = expire_at.filter(|at| at % 3 != 0);
            apply("timed", &Effect::HashSet { field: text, value: text, expire_at });
            apply("sorted", &Effect::SortedAdd { score: f64::from(number % 50), member: text });
            let mut bytes = Vec::new();
            Fields::put(&mut bytes, text);
            Fields::put(&mut bytes, text);
            let fields = Fields::of(&bytes).expect("a field and its value");
            let id = StreamId::new(1 + u64::from(number), 0);
            apply("stream", &Effect::StreamAdd { id, fields });
            bytes.clear();
            Ids::put(&mut bytes, id);
            let ids = Ids::of(&bytes).expect("an ID");
            let group: &[u8] = if number % 7 == 0 { b"g" } else { b"h" };
            let consumer = if number % 3 == 0 { &text[..9] } else { b"c" };
            let (last, seen, time, count) = (id, 1, 2, u64::from(number % 100));
            apply("stream", &Effect::StreamGroupCreate { group, last, read: -1 });
            apply("stream", &Effect::StreamConsumerCreate { group, consumer, seen });
            let deliver = Effect::StreamDeliver { group, consumer, seen, time, count, ids };
            apply("stream", &deliver);
        }
        apply(
            "text",
            &Effect::SetString { value: &vec![b'y'; count as usize * 50], expire_at: None },
        );
        keyspace
    }

    #[test]
    fn pieces_add_up_to_the_whole() {
        for count in [600, 5000] {
            let keyspace = keyspace(count);
            let mut seen = 0;
            for entry in keyspace.database(DatabaseId(0)).table.iter() {
                let ValueRef::Boxed(value) = entry.value() else { continue };
                let mut whole = Vec::new();
                put_value(&mut whole, entry.value(), &Work::default());
                for bytes_max in [1, 100, 4096, usize::MAX] {
                    let (mut pieces, mut cursor) = (Vec::new(), Cursor::default());
                    put_count(&mut pieces, value);
                    while !put_piece(&mut pieces, value, &mut cursor, bytes_max) {}
                    let key = String::from_utf8_lossy(entry.key());
                    assert!(pieces == whole, "{key} of {count} by {bytes_max}");
                }
                seen += 1;
            }
            assert_eq!(seen, 8);
        }
    }
}
