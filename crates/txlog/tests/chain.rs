//! The void rule and split units, as a reader sees them.

use base::{Incarnation, Sequence, UnixMillis};
use bytes::Bytes;
use txlog::{
    Chain, Consumed, FollowError, Follower, Kind, Part, Record, Stamper, WriterId, empty_record,
};

const LOG: Incarnation = Incarnation(7);

fn stamper(writer: u64, chain: Chain) -> Stamper {
    Stamper::new(WriterId(writer), chain, UnixMillis(0))
}

fn lead(stamper: &mut Stamper) -> Bytes {
    stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO)
}

fn part(stamper: &mut Stamper, part: Part, payload: &[u8]) -> Bytes {
    let mut buffer = empty_record(payload.len());
    buffer.extend_from_slice(payload);
    stamper.stamp(Kind::Data, part, buffer, UnixMillis(1), Sequence::ZERO)
}

fn data(stamper: &mut Stamper, payload: &[u8]) -> Bytes {
    part(stamper, Part::Whole, payload)
}

/// What a reader makes of records: payloads of those that count, `None` for void ones; parts that
/// are buffered are left out.
fn followed(records: &[Bytes]) -> Result<Vec<Option<Bytes>>, FollowError> {
    let mut follower = Follower::new(Sequence::ZERO, Chain::start(LOG));
    let mut seen = Vec::new();
    for (record, sequence) in records.iter().zip(1..) {
        match follower.consume(Sequence(sequence), record)? {
            Consumed::Void => seen.push(None),
            Consumed::Buffered => {}
            Consumed::Record(record) if record.header.kind == Kind::Data => {
                seen.push(Some(record.payload));
            }
            Consumed::Record(_) => {}
        }
    }
    Ok(seen)
}

fn text(payload: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(payload.as_bytes()))
}

#[test]
fn a_deposed_writers_pipeline_is_void() {
    let mut old = stamper(1, Chain::start(LOG));
    let mut log = vec![lead(&mut old), data(&mut old, b"a")];
    let mut new = stamper(2, old.chain());
    let _lost = data(&mut old, b"lost");
    log.push(lead(&mut new));
    log.push(data(&mut old, b"void"));
    log.push(data(&mut old, b"void"));
    log.push(data(&mut new, b"b"));
    assert_eq!(
        followed(&log).expect("these records can be followed"),
        [text("a"), None, None, text("b")]
    );
}

#[test]
fn a_record_that_does_not_follow_the_last_one_that_counts_is_void() {
    let mut writer = stamper(1, Chain::start(LOG));
    let lead = lead(&mut writer);
    let _lost = data(&mut writer, b"lost");
    let late = data(&mut writer, b"late");
    assert_eq!(followed(&[lead, late]).expect("these records can be followed"), [None]);
}

#[test]
fn a_lead_of_the_same_or_an_older_epoch_is_void() {
    let mut first = stamper(1, Chain::start(LOG));
    let mut rival = stamper(2, Chain::start(LOG));
    let log =
        [lead(&mut first), lead(&mut rival), data(&mut rival, b"void"), data(&mut first, b"a")];
    assert_eq!(followed(&log).expect("these records can be followed"), [None, None, text("a")]);
}

#[test]
fn a_later_epoch_that_does_not_continue_the_chain_is_another_history() {
    let other = Err(FollowError::AnotherHistory);
    let mut stranger = stamper(1, Chain::start(Incarnation(8)));
    assert_eq!(followed(&[lead(&mut stranger)]), other);
    // A log was restored from a backup behind "a", and others led it on. Who had applied "b" reads
    // what stands at the next number.
    let mut writer = stamper(1, Chain::start(LOG));
    let (begin, a) = (lead(&mut writer), data(&mut writer, b"a"));
    let mut next = stamper(2, writer.chain());
    let b = data(&mut writer, b"b");
    let (lead, c) = (lead(&mut next), data(&mut next, b"c"));
    assert_eq!(followed(&[begin.clone(), a.clone(), b.clone(), lead]), other);
    assert_eq!(followed(&[begin, a, b, c]), other);
}

#[test]
fn a_record_says_where_the_chain_stands_behind_it() {
    let mut writer = stamper(1, Chain::start(LOG));
    for record in [lead(&mut writer), data(&mut writer, b"a"), data(&mut writer, b"b")] {
        assert_ne!(Chain::behind(&record), Some(Chain::start(LOG)));
        let last = record.clone();
        assert_eq!(Chain::behind(&last).map(|chain| chain.epoch.0), Some(1));
    }
    let last = data(&mut writer, b"c");
    assert_eq!(Chain::behind(&last), Some(writer.chain()));
    assert_eq!(Chain::behind(&last[1..]), None);
}

#[test]
fn a_split_unit_is_applied_with_its_last_part() {
    let mut writer = stamper(1, Chain::start(LOG));
    let log = [
        lead(&mut writer),
        part(&mut writer, Part::First, b"one "),
        writer.renew(1000, &[], UnixMillis(2), Sequence(1)),
        part(&mut writer, Part::Middle, b"two "),
        part(&mut writer, Part::Last, b"three"),
        data(&mut writer, b"next"),
    ];
    assert_eq!(
        followed(&log).expect("these records can be followed"),
        [text("one two three"), text("next")]
    );
    assert_eq!(followed(&log[..4]).expect("these records can be followed"), []);
}

#[test]
fn a_lead_abandons_an_unfinished_unit() {
    let mut old = stamper(1, Chain::start(LOG));
    let mut log = vec![lead(&mut old), part(&mut old, Part::First, b"half ")];
    let mut new = stamper(2, old.chain());
    log.push(lead(&mut new));
    log.push(part(&mut old, Part::Last, b"void"));
    log.push(data(&mut new, b"whole"));
    assert_eq!(followed(&log).expect("these records can be followed"), [None, text("whole")]);
}

#[test]
fn a_unit_split_against_the_rules_stops_the_reader() {
    let mut writer = stamper(1, Chain::start(LOG));
    let lead = lead(&mut writer);
    let mut orphan = writer.clone();
    let log = [lead.clone(), part(&mut orphan, Part::Last, b"x")];
    assert_eq!(followed(&log), Err(FollowError::SplitUnit));
    let log = [lead, part(&mut writer, Part::First, b"x"), data(&mut writer, b"between")];
    assert_eq!(followed(&log), Err(FollowError::SplitUnit));
}

#[test]
fn a_reader_stops_at_what_it_does_not_know() {
    let mut writer = stamper(1, Chain::start(LOG));
    let mut newer = Record::decode(&lead(&mut writer)).expect("it was just encoded");
    newer.header.reader_version_min = 3;
    let error = followed(&[newer.encode()]).unwrap_err();
    assert_eq!(error, FollowError::ReaderVersion { needed: 3 });
    let mut packed =
        Record::decode(&lead(&mut stamper(1, Chain::start(LOG)))).expect("it was just encoded");
    packed.header.is_compressed = true;
    assert_eq!(followed(&[packed.encode()]), Err(FollowError::Unsupported));
}

#[test]
fn a_gap_is_told_and_not_skipped() {
    let mut follower = Follower::new(Sequence(4), Chain::start(LOG));
    let error = follower.consume(Sequence(6), &Bytes::new()).unwrap_err();
    assert_eq!(error, FollowError::Gap { expected: Sequence(5), given: Sequence(6) });
}

#[test]
fn the_shards_clock_never_goes_back() {
    let mut writer = stamper(1, Chain::start(LOG));
    writer.lead(1000, &[], UnixMillis(50), Sequence::ZERO);
    let record = Record::decode(&writer.renew(1000, &[], UnixMillis(20), Sequence::ZERO))
        .expect("it was just encoded");
    assert_eq!(record.header.clock, UnixMillis(50));
    assert_eq!((record.header.counter, record.lease_millis()), (2, Some(1000)));
}

#[test]
fn a_checksum_covers_everything_that_was_applied_and_stops_who_missed_some_of_it() {
    let mut writer = stamper(1, Chain::start(LOG));
    let mut log = vec![lead(&mut writer), data(&mut writer, b"a")];
    log.push(part(&mut writer, Part::First, b"b"));
    let mut next = stamper(2, writer.chain());
    next.continue_sum(writer.sum());
    // The unit that never ended counts for nobody.
    log.push(lead(&mut next));
    log.push(part(&mut next, Part::First, b"c"));
    log.push(part(&mut next, Part::Last, b"d"));
    log.push(next.checksum(2, UnixMillis(1), Sequence::ZERO));
    log.push(data(&mut next, b"e"));
    log.push(next.checksum(3, UnixMillis(1), Sequence::ZERO));
    followed(&log).expect("all of it was read");
    // A reader that starts behind something else than what stands there.
    let mut missing = Follower::new(Sequence(7), Chain::behind(&log[6]).expect("it is a record"));
    missing.continue_sum(12345);
    missing.consume(Sequence(8), &log[7]).expect("nothing to compare");
    let error = missing.consume(Sequence(9), &log[8]).unwrap_err();
    assert!(matches!(error, FollowError::Checksum { .. }), "{error}");
    assert!(error.to_string().contains("was not read as it was written"), "{error}");
}

#[test]
fn a_checksum_that_nobody_knew_begins_anew_and_is_known_from_then_on() {
    let mut writer = stamper(1, Chain::start(LOG));
    let mut log = vec![lead(&mut writer)];
    writer.continue_sum(None);
    log.push(data(&mut writer, b"a"));
    log.push(writer.checksum(1, UnixMillis(1), Sequence::ZERO));
    log.push(data(&mut writer, b"b"));
    log.push(writer.checksum(2, UnixMillis(1), Sequence::ZERO));
    followed(&log).expect("the first one is taken, the second one compared");
    let mut reader = Follower::new(Sequence(1), Chain::behind(&log[0]).expect("it is a record"));
    assert_eq!(reader.sum(), None);
    for (record, sequence) in log[1..].iter().zip(2..) {
        reader.consume(Sequence(sequence), record).expect("it takes the one that it meets");
    }
    assert_eq!(reader.sum(), writer.sum());
}
