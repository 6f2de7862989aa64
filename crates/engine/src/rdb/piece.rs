//! A collection or a long string, written in pieces, while the value stands still in between.
//!
//! ```text
//! put_count ─▶ put_piece, put_piece … ─▶ true
//! ```
//! The pieces add up to what [`super::value::put_value`] writes at once, but for short strings,
//! which that may write as integers.

use super::length::{put_length, put_string};
use super::value::{NODE_PACKED, NODE_PLAIN, put_item};
use crate::value::{Hash, Set, Sorted, Value};
use crate::work::Work;
use structures::MemberBuffer;
use structures::quicklist::NodeRef;

/// Elements between two looks at the bound.
const STEP_ELEMENTS: usize = 16;

/// Bytes of a collection that count as a step: about an element.
pub(crate) const ELEMENT_BYTES: usize = 32;

/// Bytes of a value that is written without a pause, from one count of the work to the next.
const COUNTED_BYTES: usize = 16 << 10;

/// How far a value has been written: bytes of a string, nodes of a list, members of a sorted set
/// from the greatest down, the cursor of a set's or a hash's scan.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Place(u64);

/// What stands before the pieces. Small encodings, which are one string, have none.
pub fn put_count(out: &mut Vec<u8>, value: &Value) {
    put_length(out, count(value) as u64);
}

fn count(value: &Value) -> usize {
    match value {
        Value::Text(text) => text.len(),
        Value::List(list) => list.node_count(),
        Value::Set(set) => set.len(),
        Value::Hash(hash) => hash.len(),
        Value::Sorted(sorted) => sorted.len(),
    }
}

/// Writes all of a value from `place` on.
pub fn put_pieces(out: &mut Vec<u8>, value: &Value, place: &mut Place, work: &Work) {
    loop {
        let before = out.len();
        let is_done = put_piece(out, value, place, COUNTED_BYTES);
        work.steps((out.len() - before) / ELEMENT_BYTES);
        if is_done {
            return;
        }
    }
}

/// Goes on from `place` until about `bytes_max` more are written: an element, or a list's node, is
/// written whole. Whether that was the end.
pub fn put_piece(out: &mut Vec<u8>, value: &Value, place: &mut Place, bytes_max: usize) -> bool {
    let bytes_until = out.len().saturating_add(bytes_max);
    match value {
        Value::Text(text) => {
            let rest = &text[place.0 as usize..];
            let piece = &rest[..rest.len().min(bytes_max)];
            out.extend_from_slice(piece);
            place.0 += piece.len() as u64;
            piece.len() == rest.len()
        }
        Value::List(list) => {
            for node in list.nodes_behind(place.0 as usize) {
                if out.len() >= bytes_until {
                    return false;
                }
                put_node(out, node);
                place.0 += 1;
            }
            true
        }
        Value::Set(set) => {
            scan(out, place, bytes_until, |out, cursor| put_members(out, set, cursor))
        }
        Value::Hash(hash) => {
            scan(out, place, bytes_until, |out, cursor| put_fields(out, hash, cursor))
        }
        Value::Sorted(sorted) => put_ranks(out, sorted, place, bytes_until),
    }
}

fn put_node(out: &mut Vec<u8>, node: NodeRef<'_>) {
    match node {
        NodeRef::Packed(pack) => {
            put_length(out, NODE_PACKED);
            put_string(out, pack.bytes());
        }
        NodeRef::Plain(element) => {
            put_length(out, NODE_PLAIN);
            put_string(out, element);
        }
    }
}

/// Steps through a scan, whose cursor 0 is its beginning and its end.
fn scan(
    out: &mut Vec<u8>,
    place: &mut Place,
    bytes_until: usize,
    step: impl Fn(&mut Vec<u8>, u64) -> u64,
) -> bool {
    loop {
        place.0 = step(out, place.0);
        if place.0 == 0 {
            return true;
        }
        if out.len() >= bytes_until {
            return false;
        }
    }
}

fn put_members(out: &mut Vec<u8>, set: &Set, cursor: u64) -> u64 {
    let mut buffer = MemberBuffer::new();
    set.scan(cursor, STEP_ELEMENTS, |member| put_string(out, member.bytes(&mut buffer)))
}

fn put_fields(out: &mut Vec<u8>, hash: &Hash, cursor: u64) -> u64 {
    hash.scan(cursor, STEP_ELEMENTS, |field, value| {
        put_item(out, field);
        put_item(out, value);
    })
}

/// From the greatest down, as Redis writes them.
fn put_ranks(out: &mut Vec<u8>, sorted: &Sorted, place: &mut Place, bytes_until: usize) -> bool {
    let left = sorted.len() - place.0 as usize;
    for (member, score) in sorted.descending(0..left) {
        if out.len() >= bytes_until {
            return false;
        }
        put_item(out, member);
        out.extend_from_slice(&score.to_le_bytes());
        place.0 += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Effect, End};
    use crate::keyspace::Keyspace;
    use crate::rdb::value::put_value;
    use crate::settings::Settings;
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
            apply("hash", &Effect::HashSet { field: text, value: text });
            apply("sorted", &Effect::SortedAdd { score: f64::from(number % 50), member: text });
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
                    let (mut pieces, mut place) = (Vec::new(), Place::default());
                    put_count(&mut pieces, value);
                    while !put_piece(&mut pieces, value, &mut place, bytes_max) {}
                    let key = String::from_utf8_lossy(entry.key());
                    assert!(pieces == whole, "{key} of {count} by {bytes_max}");
                }
                seen += 1;
            }
            assert_eq!(seen, 6);
        }
    }
}
