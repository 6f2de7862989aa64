//! Which changes touch a key.

use super::*;
use base::{Incarnation, Position, Sequence, UnixMillis};
use engine::effect::DeleteReason;
use txlog::{Chain, Kind, Part, Stamper, UnitPosition, WriterId, empty_record, record};

fn touches(key: &[u8], database: Option<u32>, on: (u32, &[u8]), effect: Effect<'_>) -> bool {
    let log = Incarnation(1);
    let chain = Chain::start(log);
    let position = Position { incarnation: log, sequence: Sequence(1) };
    let mut stamper = Stamper::new(WriterId(5), chain, UnixMillis(0));
    let (payload, clock) = (empty_record(0), UnixMillis(0));
    let bytes = stamper.stamp(Kind::Data, Part::Whole, payload, clock, Sequence::ZERO);
    let change = Change {
        position: UnitPosition { record: position, chain, unit: 0, effect: None },
        record: position,
        header: record::decode_header(&bytes, true).expect("a record"),
        leader: None,
        database: DatabaseId(on.0),
        key: on.1,
        effect,
    };
    let database = database.map(DatabaseId);
    Find { log: "", archive: None, key_file: None, key: key.to_vec(), database, is_json: false }
        .touches(&change)
}

#[test]
fn a_key_is_touched_by_what_is_on_it_or_takes_it_along() {
    let delete = Effect::Delete { reason: DeleteReason::Command };
    let rename = Effect::Rename { to_database: DatabaseId(2), to: b"to" };
    let swap = Effect::SwapDatabases { with: DatabaseId(2) };
    for (key, database, on, effect, expected) in [
        (&b"k"[..], None, (1, &b"k"[..]), delete, true),
        (b"k", Some(1), (1, b"k"), delete, true),
        (b"k", Some(2), (1, b"k"), delete, false),
        (b"k", None, (1, b"kk"), delete, false),
        (b"to", None, (1, b"k"), rename, true),
        (b"to", Some(2), (1, b"k"), rename, true),
        (b"to", Some(1), (1, b"k"), rename, false),
        (b"k", Some(1), (1, b"k"), rename, true),
        (b"k", Some(2), (1, b"k"), rename, false),
        (b"k", Some(1), (9, b""), Effect::FlushAll, true),
        (b"k", Some(1), (1, b""), Effect::FlushDatabase, true),
        (b"k", Some(1), (2, b""), Effect::FlushDatabase, false),
        (b"k", None, (2, b""), Effect::FlushDatabase, true),
        (b"k", Some(2), (1, b""), swap, true),
        (b"k", Some(3), (1, b""), swap, false),
        // What names no key is on none, the empty one neither.
        (b"", None, (1, b""), Effect::FunctionFlush, false),
        (b"", None, (1, b""), delete, true),
    ] {
        assert_eq!(touches(key, database, on, effect), expected, "{key:?} {on:?} {effect:?}");
    }
}
