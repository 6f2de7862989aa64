//! Units taken apart, positions that a reading goes on behind, and lines.

use super::*;
use base::{Incarnation, Sequence, UnixMillis};
use bytes::{Bytes, BytesMut};
use engine::effect::{DeleteReason, EffectEncoder, End, Fields, Ids};
use engine::stream_id::StreamId;
use shard::role::member::MemberId;
use txlog::memory::{MemoryHandle, MemoryLog};
use txlog::reader::{Goal, Next, Reader, Start};
use txlog::record::{HEADER_BYTES, WriterId};
use txlog::resume::Resume;
use txlog::{Stamper, TransactionLog, empty_record};

pub(crate) const LOG: Incarnation = Incarnation(0x6d1f);

type Units = &'static [&'static [&'static [u8]]];

/// The payload of these units, each of keys that are deleted.
fn payload(units: Units) -> BytesMut {
    let mut encoder = EffectEncoder::new(HEADER_BYTES);
    for keys in units {
        encoder.begin_unit();
        for key in *keys {
            let effect = Effect::Delete { reason: DeleteReason::Command };
            encoder.push(DatabaseId(3), key, &effect);
        }
    }
    encoder.take()
}

fn member() -> Member {
    Member { id: MemberId([7; 20]), host: "10.0.0.1".to_owned(), port: 6379 }
}

/// A log of three units in one record, a split one with a renewal in it, and one more.
pub(crate) fn log() -> MemoryHandle {
    let log = MemoryLog::new(LOG);
    let mut handle = log.handle(1 << 20);
    let mut stamper = Stamper::new(WriterId(5), Chain::start(LOG), UnixMillis(0));
    let clock = UnixMillis(70);
    let mut records = vec![stamper.lead(1000, &member().encode(), clock, Sequence::ZERO)];
    let several = payload(&[&[b"a1", b"a2"], &[b"b1"], &[b"c1", b"c2", b"c3"]]);
    records.push(stamper.stamp(Kind::Data, Part::Whole, several, clock, Sequence::ZERO));
    let split = payload(&[&[b"d1", b"d2"]]);
    let (first, last) = split[HEADER_BYTES..].split_at(4);
    for (part, bytes) in [(Part::First, first), (Part::Last, last)] {
        let mut buffer = empty_record(bytes.len());
        buffer.extend_from_slice(bytes);
        records.push(stamper.stamp(Kind::Data, part, buffer, clock, Sequence::ZERO));
        if part == Part::First {
            records.push(stamper.renew(1000, &member().encode(), clock, Sequence::ZERO));
        }
    }
    let more = payload(&[&[b"e1"]]);
    records.push(stamper.stamp(Kind::Data, Part::Whole, more, clock, Sequence::ZERO));
    for record in records {
        handle.append(log.tail(), record);
        TransactionLog::poll(&mut handle, &mut Vec::new());
    }
    handle
}

/// Keys with the positions behind them.
pub(crate) fn read(
    log: &mut MemoryHandle,
    start: Start,
    mut changes: Changes,
) -> Vec<(String, UnitPosition)> {
    let mut reader = Reader::new(log, start, Goal::Tail);
    let mut found = Vec::new();
    loop {
        match reader.next(log).expect("the log is whole") {
            Next::Record(read) => {
                let shown = changes.show(&read, |change| {
                    let key = String::from_utf8(change.key.to_vec()).expect("text");
                    found.push((key, change.position));
                    Ok(())
                });
                shown.expect("effects");
            }
            Next::Wait => {}
            Next::Done => return found,
        }
    }
}

#[test]
fn a_reading_goes_on_behind_every_effect() {
    let mut log = log();
    let whole = read(&mut log, Start::Oldest(LOG), Changes::default());
    let keys: Vec<_> = whole.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["a1", "a2", "b1", "c1", "c2", "c3", "d1", "d2", "e1"]);
    let ends: Vec<_> =
        whole.iter().map(|(_, at)| (at.record.sequence.0, at.unit, at.effect)).collect();
    let expected = [
        (2, 0, Some(0)),
        (2, 0, None),
        (2, 1, None),
        (2, 2, Some(0)),
        (2, 2, Some(1)),
        (2, 2, None),
        // Amid a split unit the record in which it begins is named, behind it the one of its end.
        (3, 0, Some(0)),
        (5, 0, None),
        (6, 0, None),
    ];
    assert_eq!(ends, expected);
    for (index, (_, at)) in whole.iter().enumerate() {
        let mut resume = Resume::new(&mut log, LOG, *at).expect("the same log");
        let resumed = loop {
            if let Some(resumed) = resume.next(&mut log).expect("the same history") {
                break resumed;
            }
        };
        let rest = read(&mut log, resumed.start, Changes::behind(resumed.passes_over));
        assert_eq!(rest, whole[index + 1..], "behind {at}");
    }
}

#[test]
fn a_split_unit_that_was_shown_and_has_no_end_is_another_history() {
    let mut stamper = Stamper::new(WriterId(5), Chain::start(LOG), UnixMillis(0));
    let clock = UnixMillis(0);
    let mut records = vec![stamper.lead(1000, &[], clock, Sequence::ZERO)];
    let part = payload(&[&[b"d1", b"d2"]]);
    records.push(stamper.stamp(Kind::Data, Part::First, part, clock, Sequence::ZERO));
    records.push(stamper.lead(1000, &[], clock, Sequence::ZERO));
    let at = Position { incarnation: LOG, sequence: Sequence(2) };
    let chain = Chain::behind(&records[1]).expect("a record");
    let mut changes =
        Changes::behind(Some(UnitPosition { record: at, chain, unit: 0, effect: Some(0) }));
    let mut follower = txlog::Follower::new(Sequence::ZERO, Chain::start(LOG));
    let mut outcomes = Vec::new();
    for (sequence, bytes) in (1..).map(Sequence).zip(records) {
        let consumed = follower.consume(sequence, &bytes).expect("records in order");
        let read = Read { position: at.at(sequence), bytes, consumed };
        outcomes.push(changes.show(&read, |_| panic!("nothing is whole")).is_ok());
    }
    assert_eq!(outcomes, [true, true, false]);
}

/// A change of key "k" in database 3, as a line.
fn line(form: Form, key: &[u8], effect: Effect<'_>) -> String {
    let mut buffer = empty_record(0);
    let mut stamper = Stamper::new(WriterId(5), Chain::start(LOG), UnixMillis(0));
    buffer.extend_from_slice(b"x");
    let bytes: Bytes =
        stamper.stamp(Kind::Data, Part::Whole, buffer, UnixMillis(70), Sequence::ZERO);
    let record = Position { incarnation: LOG, sequence: Sequence(2) };
    let chain = Chain::start(LOG);
    let member = member();
    let change = Change {
        position: UnitPosition { record, chain, unit: 1, effect: None },
        record,
        header: txlog::record::decode_header(&bytes, true).expect("a record"),
        leader: Some(&member),
        database: DatabaseId(3),
        key,
        effect,
    };
    let mut output = Vec::new();
    form.write(&change, &mut output).expect("a vector takes everything");
    String::from_utf8(output).expect("text")
}

const JSON: Form = Form { is_json: true, tells_writer: true };

#[test]
fn a_line_begins_with_its_position() {
    let position = UnitPosition {
        record: Position { incarnation: LOG, sequence: Sequence(2) },
        chain: Chain::start(LOG),
        unit: 1,
        effect: None,
    };
    let plain = Form::default();
    let set = Effect::SetInteger { value: 7 };
    assert_eq!(line(plain, b"k", set), format!("{position} clock 70 db 3 \"k\" set-integer 7\n"));
    assert_eq!(line(plain, b"", Effect::FlushAll), format!("{position} clock 70 db 3 flush-all\n"));
    let told = Form { tells_writer: true, ..plain };
    assert_eq!(
        line(told, b"k", set),
        format!(
            "{position} clock 70 epoch 0 writer 0000000000000005 at 10.0.0.1:6379 db 3 \"k\" \
             set-integer 7\n"
        )
    );
}

#[test]
fn json_holds_all_bytes() {
    let object = |key: &[u8], effect| -> serde_json::Value {
        let line = line(JSON, key, effect);
        assert!(line.ends_with("}\n") && line.lines().count() == 1, "{line}");
        serde_json::from_str(&line).expect("one object")
    };
    let long = "\u{1}\"\n é".repeat(100);
    let set = Effect::SetString { value: long.as_bytes(), expire_at: Some(5) };
    let found = object(b"k", set);
    assert_eq!(found["sequence"], 2);
    assert_eq!(found["unit"], 1);
    assert_eq!(found["ends_unit"], true);
    assert_eq!(found["clock_ms"], 70);
    assert_eq!(found["writer"], "0000000000000005");
    assert_eq!(found["leader"], "10.0.0.1:6379");
    assert_eq!(found["leader_id"], "07".repeat(20));
    assert_eq!(found["database"], 3);
    assert_eq!(found["key"], "k");
    assert_eq!(found["effect"], "set-string");
    assert_eq!(found["operands"]["value"], long);
    assert_eq!(found["operands"]["expire_at"], 5);
    let silent = line(Form { tells_writer: false, ..JSON }, b"k", set);
    assert!(!silent.contains("leader"), "it would depend on where the reading began: {silent}");
    let found = object(b"\xff\0", Effect::Append { bytes: b"\x80" });
    assert_eq!(found["key"], serde_json::Value::Null);
    assert_eq!(found["key_base64"], "/wA=");
    assert_eq!(found["operands"]["bytes_base64"], "gA==");
}

#[test]
fn json_has_each_sort_of_operand() {
    let operands = |effect| {
        let line = line(JSON, b"k", effect);
        let found: serde_json::Value = serde_json::from_str(&line).expect("one object");
        found["operands"].to_string()
    };
    let id = StreamId::new(1, 2);
    let ids = [1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0].repeat(2);
    let ids = Ids::of(&ids).expect("two IDs");
    let fields = Fields::of(b"\x01\0\0\0f\x01\0\0\0\xff").expect("a field and its value");
    for (effect, expected) in [
        (Effect::Expire { at: None }, r#"{"at":null}"#),
        (Effect::Delete { reason: DeleteReason::Expired }, r#"{"reason":"expired"}"#),
        (Effect::ListPop { end: End::Tail, count: 2 }, r#"{"count":2,"end":"tail"}"#),
        (Effect::SortedAdd { member: b"m", score: 1e300 }, r#"{"member":"m","score":1e+300}"#),
        (
            Effect::SortedAdd { member: b"m", score: f64::NEG_INFINITY },
            r#"{"member":"m","score":"-inf"}"#,
        ),
        (Effect::StreamDelete { ids }, r#"{"ids":["1-2","1-2"]}"#),
        (
            Effect::StreamAdd { id, fields },
            r#"{"fields":[{"field":"f","value_base64":"/w=="}],"id":"1-2"}"#,
        ),
        (
            Effect::HashDelete { field: b"f", is_expired: true },
            r#"{"field":"f","is_expired":true}"#,
        ),
        (Effect::StreamCreate, "{}"),
    ] {
        assert_eq!(operands(effect), expected);
    }
}
