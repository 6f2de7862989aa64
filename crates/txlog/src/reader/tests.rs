//! A reader over the log in memory, by every start and goal, and what it makes of a log's faults.

use super::*;
use crate::chain::{Stamper, empty_record};
use crate::memory::{MemoryHandle, MemoryLog};
use crate::record::{Kind, Part, WriterId};

const LOG: Incarnation = Incarnation(9);

/// Asks in vain after which a reader is taken to wait for ever.
const ASKS_MAX: usize = 4;

fn at(sequence: u64) -> Position {
    Position { incarnation: LOG, sequence: Sequence(sequence) }
}

fn writer(id: u64, chain: Chain) -> Stamper {
    Stamper::new(WriterId(id), chain, UnixMillis(0))
}

fn lead(stamper: &mut Stamper) -> Bytes {
    stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO)
}

fn data(stamper: &mut Stamper, part: Part, payload: &[u8], clock: i64) -> Bytes {
    let mut buffer = empty_record(payload.len());
    buffer.extend_from_slice(payload);
    stamper.stamp(Kind::Data, part, buffer, UnixMillis(clock), Sequence::ZERO)
}

/// A log of these records.
fn log_of(records: &[Bytes]) -> (MemoryLog, MemoryHandle) {
    let log = MemoryLog::new(LOG);
    let mut handle = log.handle(1 << 20);
    append(&mut handle, &log, records);
    (log, handle)
}

fn append(handle: &mut MemoryHandle, log: &MemoryLog, records: &[Bytes]) {
    for record in records {
        handle.append(log.tail(), record.clone());
        TransactionLog::poll(handle, &mut Vec::new());
    }
}

/// A log in which one writer deposes another, whose last record is void, and splits a unit: `Lead`,
/// "a", `Lead`, a void "x", the parts of "bcd", "e".
fn records() -> Vec<Bytes> {
    let mut old = writer(1, Chain::start(LOG));
    let mut records = vec![lead(&mut old), data(&mut old, Part::Whole, b"a", 10)];
    let mut new = writer(2, old.chain());
    records.push(lead(&mut new));
    records.push(data(&mut old, Part::Whole, b"x", 11));
    for (part, payload) in [(Part::First, b"b"), (Part::Middle, b"c"), (Part::Last, b"d")] {
        records.push(data(&mut new, part, payload, 20));
    }
    records.push(data(&mut new, Part::Whole, b"e", 30));
    records
}

/// What is read until the goal is reached, or in vain: of each record its number and what it means.
fn seen(handle: &mut MemoryHandle, start: Start, goal: Goal) -> (Vec<String>, bool) {
    let mut reader = Reader::new(handle, start, goal);
    let (mut seen, mut asks) = (Vec::new(), 0);
    while asks < ASKS_MAX {
        match reader.next(handle) {
            Ok(Next::Record(read)) => seen.push(told(&read)),
            Ok(Next::Wait) => asks += 1,
            Ok(Next::Done) => return (seen, true),
            Err(error) => {
                seen.push(error.to_string());
                return (seen, false);
            }
        }
    }
    (seen, false)
}

fn told(read: &Read) -> String {
    let sequence = read.position.sequence;
    match &read.consumed {
        Consumed::Void => format!("{sequence} void"),
        Consumed::Buffered => format!("{sequence} …"),
        Consumed::Record(record) if record.header.kind == Kind::Data => {
            format!("{sequence} {}", record.payload.escape_ascii())
        }
        Consumed::Record(record) => format!("{sequence} {:?}", record.header.kind),
    }
}

const ALL: [&str; 8] = ["1 Lead", "2 a", "3 Lead", "4 void", "5 …", "6 …", "7 bcd", "8 e"];

#[test]
fn every_record_is_read_with_what_it_means() {
    let (_log, mut handle) = log_of(&records());
    let (all, is_done) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(all, ALL);
    assert!(is_done);
    let origin = Start::Behind(at(0), Chain::start(LOG));
    assert_eq!(seen(&mut handle, origin, Goal::Tail), (all, true));
}

#[test]
fn a_reading_goes_on_behind_a_record_whose_chain_is_known() {
    let records = records();
    let (_log, mut handle) = log_of(&records);
    let chain = Chain::behind(&records[2]).expect("it is a record");
    let (seen, _) = seen(&mut handle, Start::Behind(at(3), chain), Goal::Tail);
    assert_eq!(seen, ALL[3..]);
}

#[test]
fn a_reading_ends_with_its_goal() {
    let (_log, mut handle) = log_of(&records());
    let start = Start::Oldest(LOG);
    let cases = [
        (Goal::Through(Sequence(4)), 4, true),
        // It will come.
        (Goal::Through(Sequence(9)), 8, false),
        (Goal::Clock(UnixMillis(9)), 1, true),
        (Goal::Clock(UnixMillis(10)), 4, true),
        (Goal::Clock(UnixMillis(20)), 7, true),
        (Goal::Clock(UnixMillis(99)), 8, true),
    ];
    for (goal, count, is_reached) in cases {
        let (seen, is_done) = seen(&mut handle, start, goal);
        assert_eq!(seen, ALL[..count], "{goal:?}");
        assert_eq!(is_done, is_reached, "{goal:?}");
    }
    assert_eq!(seen(&mut log_of(&[]).1, start, Goal::Tail), (Vec::new(), true));
}

/// What comes while the reader is at work is not the end that it found.
#[test]
fn records_behind_the_end_that_was_found_are_not_read() {
    let records = records();
    let (log, mut handle) = log_of(&records[..7]);
    let mut reader = Reader::new(&mut handle, Start::Oldest(LOG), Goal::Tail);
    for _ in 0..6 {
        assert!(matches!(reader.next(&mut handle), Ok(Next::Record(_))));
    }
    append(&mut log.handle(1 << 20), &log, &records[7..]);
    let Ok(Next::Record(last)) = reader.next(&mut handle) else { panic!("the seventh") };
    assert_eq!(told(&last), "7 bcd");
    assert_eq!(reader.next(&mut handle), Ok(Next::Done));
}

#[test]
fn a_trimmed_log_is_read_from_its_oldest_record_amid_a_unit_or_not() {
    let (log, mut handle) = log_of(&records());
    handle.trim(at(1));
    assert_eq!(seen(&mut handle, Start::Oldest(LOG), Goal::Tail).0, ALL[1..]);
    handle.trim(at(5));
    let (rest, is_done) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(rest, ["6 …", "7 …", "8 e"]);
    assert!(is_done);
    let origin = Start::Behind(at(0), Chain::start(LOG));
    let (none, is_done) = seen(&mut handle, origin, Goal::Tail);
    assert_eq!(none, ["the log was trimmed and begins at record 6"]);
    assert!(!is_done);
    assert_eq!(log.tail(), at(8));
}

/// The chain must not be taken from a deposed writer's record.
#[test]
fn void_records_at_the_beginning_of_a_trimmed_log_are_known_as_such() {
    let mut old = writer(1, Chain::start(LOG));
    let mut records = vec![lead(&mut old), data(&mut old, Part::Whole, b"a", 1)];
    let mut new = writer(2, old.chain());
    records.push(lead(&mut new));
    records.extend([b"x", b"y"].map(|payload| data(&mut old, Part::Whole, payload, 1)));
    records.push(data(&mut new, Part::Whole, b"b", 1));
    let (_log, mut handle) = log_of(&records);
    handle.trim(at(3));
    let (rest, _) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(rest, ["4 void", "5 void", "6 b"]);
    // The same before a `Lead` that continues what was trimmed.
    let (log, mut handle) = log_of(&records[..5]);
    let mut third = writer(3, new_chain(&records[..3]));
    append(&mut handle, &log, &[lead(&mut third), data(&mut third, Part::Whole, b"c", 1)]);
    handle.trim(at(3));
    let (rest, _) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(rest, ["4 void", "5 void", "6 Lead", "7 c"]);
}

fn new_chain(records: &[Bytes]) -> Chain {
    Chain::behind(records.last().expect("there are some")).expect("it is a record")
}

/// A log longer than what is held to find the chain is read to its end.
#[test]
fn a_long_log_is_read_beyond_the_records_that_were_held() {
    let mut writer = writer(1, Chain::start(LOG));
    let mut records = vec![lead(&mut writer)];
    let count = 3 * HELD_RECORDS_MAX as u64;
    records.extend((1..count).map(|_| data(&mut writer, Part::Whole, b"a", 1)));
    let (_log, mut handle) = log_of(&records);
    handle.trim(at(1));
    let (seen, is_done) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(seen, (2..=count).map(|sequence| format!("{sequence} a")).collect::<Vec<_>>());
    assert!(is_done);
}

#[test]
fn a_log_that_is_lost_or_damaged_ends_the_reading_by_name() {
    let (log, mut handle) = log_of(&records());
    log.recreate(Incarnation(10));
    let lost = ["the log was cut, deleted or created anew"];
    assert_eq!(seen(&mut handle, Start::Oldest(LOG), Goal::Tail).0, lost);
    let mut damaged = records();
    damaged[1] = Bytes::from_static(b"no record");
    let (_log, mut handle) = log_of(&damaged);
    let (seen, _) = seen(&mut handle, Start::Oldest(LOG), Goal::Tail);
    assert_eq!(seen.len(), 2);
    assert!(seen[1].starts_with("record 2 of the log: "), "{seen:?}");
}

#[test]
fn another_history_is_not_read_on() {
    let records = records();
    let (_log, mut handle) = log_of(&records);
    let other = Chain { value: record::ChainValue(1), ..new_chain(&records[..2]) };
    let (seen, _) = seen(&mut handle, Start::Behind(at(2), other), Goal::Tail);
    assert!(seen[0].contains("another history"), "{seen:?}");
}

#[test]
fn a_reading_at_a_record_finds_the_chain_there() {
    let (_, mut handle) = log_of(&records());
    for (from, expected) in [(2, "a, bcd, e"), (5, "bcd, e"), (6, "e"), (8, "e")] {
        let mut reader = Reader::new(&mut handle, Start::At(at(from)), Goal::Tail);
        let mut read = Vec::new();
        loop {
            match reader.next(&mut handle).expect("the log is whole") {
                Next::Record(next) => match next.consumed {
                    Consumed::Record(record) if record.header.kind == Kind::Data => {
                        read.push(String::from_utf8(record.payload.to_vec()).expect("text"));
                    }
                    _ => {}
                },
                Next::Wait => {}
                Next::Done => break,
            }
        }
        assert_eq!(read.join(", "), expected, "from {from}");
    }
}

#[test]
fn a_reading_without_a_goal_goes_on_as_the_log_grows() {
    let records = records();
    let (log, mut writing) = log_of(&records[..2]);
    let mut handle = log.handle(1 << 20);
    let mut reader = Reader::new(&mut handle, Start::Oldest(LOG), Goal::NEVER);
    let mut count = 0;
    for grown in 2..records.len() {
        for _ in 0..ASKS_MAX {
            while matches!(reader.next(&mut handle), Ok(Next::Record(_))) {
                count += 1;
            }
        }
        assert_eq!(count, grown);
        assert_eq!(reader.end(), Some(Sequence(2)));
        append(&mut writing, &log, &records[grown..=grown]);
    }
}
