//! Positions against the history that they were taken of, and against others.

use super::*;
use crate::chain::{Stamper, empty_record};
use crate::memory::{MemoryHandle, MemoryLog};
use crate::reader::{Goal, Next, Reader};
use crate::record::{Kind, WriterId};
use base::{Position, UnixMillis};

const LOG: Incarnation = Incarnation(9);

/// Asks in vain after which an answer is taken never to come.
const ASKS_MAX: usize = 4;

/// A `Lead`, "a", the parts of "bc", "d".
fn records(writer: u64) -> Vec<Bytes> {
    let mut stamper = Stamper::new(WriterId(writer), Chain::start(LOG), UnixMillis(0));
    let mut records = vec![stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO)];
    let units = [(Part::Whole, b"a"), (Part::First, b"b"), (Part::Last, b"c"), (Part::Whole, b"d")];
    for (part, payload) in units {
        let mut buffer = empty_record(1);
        buffer.extend_from_slice(payload);
        records.push(stamper.stamp(Kind::Data, part, buffer, UnixMillis(2), Sequence::ZERO));
    }
    records
}

fn log_of(records: &[Bytes]) -> MemoryHandle {
    let log = MemoryLog::new(LOG);
    let mut handle = log.handle(1 << 20);
    for record in records {
        handle.append(log.tail(), record.clone());
        TransactionLog::poll(&mut handle, &mut Vec::new());
    }
    handle
}

/// Behind a record with these bytes at this place.
fn behind(sequence: usize, bytes: &Bytes) -> UnitPosition {
    let record = Position { incarnation: LOG, sequence: Sequence(sequence as u64) };
    let chain = Chain::behind(bytes).expect("a record");
    UnitPosition { record, chain, unit: 0, effect: None }
}

fn resumed(log: &mut MemoryHandle, at: UnitPosition) -> Result<Resumed, ResumeError> {
    let mut resume = Resume::new(log, LOG, at)?;
    for _ in 0..ASKS_MAX {
        if let Some(resumed) = resume.next(log)? {
            return Ok(resumed);
        }
    }
    panic!("no answer comes");
}

/// The payloads of what is read behind it, with the record that is passed over in part.
fn read(log: &mut MemoryHandle, start: Start) -> Vec<Bytes> {
    let mut reader = Reader::new(log, start, Goal::Tail);
    let mut payloads = Vec::new();
    loop {
        match reader.next(log).expect("the log is whole") {
            Next::Record(read) => {
                if let crate::Consumed::Record(record) = read.consumed {
                    payloads.push(record.payload);
                }
            }
            Next::Wait => {}
            Next::Done => return payloads,
        }
    }
}

#[test]
fn a_reading_goes_on_at_the_record_of_its_position() {
    let records = records(1);
    let mut log = log_of(&records);
    for (sequence, expected, passes_over) in
        [(2, &[&b"a"[..], b"bc", b"d"][..], true), (3, &[b"bc", b"d"], true), (4, &[b"d"], false)]
    {
        let at = behind(sequence, &records[sequence - 1]);
        let found = resumed(&mut log, at).expect("the same history");
        assert_eq!(found.passes_over, passes_over.then_some(at), "{sequence}");
        assert_eq!(read(&mut log, found.start), expected, "{sequence}");
    }
}

#[test]
fn another_history_is_named() {
    let (ours, others) = (records(1), records(2));
    let mut log = log_of(&others);
    let at = behind(2, &ours[1]);
    assert_eq!(resumed(&mut log, at), Err(ResumeError::AnotherHistory(Sequence(2))));
    let elsewhere =
        UnitPosition { record: Position { incarnation: Incarnation(8), ..at.record }, ..at };
    let (named, found) = (Incarnation(8), LOG);
    assert_eq!(resumed(&mut log, elsewhere), Err(ResumeError::AnotherLog { named, found }));
}

#[test]
fn a_log_that_ends_before_or_begins_behind_is_named() {
    let records = records(1);
    let at = behind(5, &records[4]);
    let mut short = log_of(&records[..3]);
    assert_eq!(resumed(&mut short, at), Err(ResumeError::Lost(Sequence(5))));
    let mut trimmed = log_of(&records);
    trimmed.trim(at.record.at(Sequence(3)));
    let at = behind(2, &records[1]);
    assert!(
        matches!(resumed(&mut trimmed, at), Err(ResumeError::Trimmed { at: Sequence(2), .. })),
        "{:?}",
        resumed(&mut trimmed, at)
    );
}
