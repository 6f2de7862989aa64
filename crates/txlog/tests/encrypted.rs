//! Encrypted payloads: what a reader makes of them with the key, without it, and when they were
//! changed.

use base::{Incarnation, Sequence, UnixMillis};
use bytes::Bytes;
use encryption::{KeyError, Keyring, Keys};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use txlog::record::HEADER_BYTES;
use txlog::{
    Chain, Consumed, FollowError, Follower, Kind, LogSum, Part, Record, Stamper, WriterId,
    empty_record,
};

const LOG: Incarnation = Incarnation(7);
const ONE: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const TWO: &str = "ff0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

fn ring(text: &str) -> Arc<Keyring> {
    Arc::new(Keyring::parse(text.as_bytes()).expect("the keys are right"))
}

/// Keys whose chance counts from 0.
fn keys(text: &str) -> Keys {
    let count = AtomicU64::new(0);
    let entropy = move |bytes: &mut [u8]| {
        for piece in bytes.chunks_mut(8) {
            let next = count.fetch_add(1, Ordering::Relaxed).to_le_bytes();
            piece.copy_from_slice(&next[..piece.len()]);
        }
    };
    Keys::new(ring(text), Arc::new(entropy)).expect("the keys are local")
}

fn one() -> Keys {
    keys(&format!("one {ONE}"))
}

/// A writer and its `Lead`.
fn leader(keys: Keys) -> (Stamper, Bytes) {
    let mut stamper = Stamper::new(WriterId(1), Chain::start(LOG), UnixMillis(0));
    stamper.use_keys(keys);
    let lead = stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
    (stamper, lead)
}

fn data(stamper: &mut Stamper, part: Part, payload: &[u8]) -> Bytes {
    let mut buffer = empty_record(payload.len());
    buffer.extend_from_slice(payload);
    stamper.stamp(Kind::Data, part, buffer, UnixMillis(1), Sequence::ZERO)
}

/// The payloads of Data that a reader with these keys is handed, and the log's checksum.
fn followed(records: &[Bytes], keys: Keys) -> Result<(Vec<Bytes>, LogSum), FollowError> {
    let mut follower = Follower::new(Sequence::ZERO, Chain::start(LOG));
    follower.use_keys(keys);
    let mut seen = Vec::new();
    for (record, sequence) in records.iter().zip(1..) {
        if let Consumed::Record(record) = follower.consume(Sequence(sequence), record)?
            && record.header.kind == Kind::Data
        {
            assert!(!record.header.is_encrypted, "it was");
            seen.push(record.payload);
        }
    }
    Ok((seen, follower.sum().expect("the log was read from its beginning")))
}

fn holds(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

#[test]
fn an_encrypted_record_is_the_one_of_the_golden_file() {
    let (mut writer, _) = leader(one());
    let record = data(&mut writer, Part::Whole, b"effects");
    let hex: String = record.iter().map(|byte| format!("{byte:02x}")).collect();
    let golden = include_str!("golden/data-encrypted.hex").replace('\n', "");
    assert_eq!(hex, golden);
    let header = Record::decode(&record).expect("it is whole").header;
    assert!(header.is_encrypted);
    assert_eq!(header.reader_version_min, 2, "an older release stops at it");
}

#[test]
fn units_are_read_as_they_were_written_whole_and_in_parts_and_plain_ones_before_them() {
    let (mut writer, lead) = leader(Keys::none());
    let mut log = vec![lead, data(&mut writer, Part::Whole, b"plain words")];
    writer.use_keys(one());
    log.push(data(&mut writer, Part::Whole, b"secret words"));
    log.push(data(&mut writer, Part::First, b"secret "));
    log.push(writer.renew(1000, &[], UnixMillis(1), Sequence::ZERO));
    log.push(data(&mut writer, Part::Middle, b""));
    log.push(data(&mut writer, Part::Last, b"parts"));
    log.push(writer.checksum(3, UnixMillis(1), Sequence::ZERO));
    assert!(log.iter().all(|record| !holds(record, b"secret")));
    let (seen, sum) = followed(&log, one()).expect("the key is there");
    assert_eq!(seen, ["plain words", "secret words", "secret parts"]);
    assert_eq!(Some(sum), writer.sum(), "both count what is stored");
    assert!(writer.overhead_bytes_max() >= log[2].len() - HEADER_BYTES - "secret words".len());
}

#[test]
fn whoever_only_looks_what_counts_needs_no_key() {
    let (mut old, lead) = leader(one());
    let mut new = Stamper::new(WriterId(2), old.chain(), UnixMillis(0));
    let other = new.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
    let straggler = data(&mut old, Part::Whole, b"void");
    let log = [lead, other, straggler];
    assert_eq!(followed(&log, Keys::none()).expect("nothing is to be decrypted").0.len(), 0);
}

#[test]
fn without_the_key_a_reader_stops_and_names_it() {
    let (mut writer, lead) = leader(one());
    let log = [lead, data(&mut writer, Part::Whole, b"words")];
    let needed = || "one".to_owned();
    let cases = [
        (Keys::none(), KeyError::None { needed: needed() }),
        (keys(&format!("two {TWO}")), KeyError::Unknown { needed: needed() }),
        (keys(&format!("one {TWO}")), KeyError::Wrong { name: needed() }),
    ];
    for (keys, error) in cases {
        assert!(error.to_string().contains("'one'"));
        assert_eq!(followed(&log, keys).expect_err("it is lost"), FollowError::Encrypted(error));
    }
}

#[test]
fn a_payload_belongs_to_its_place_and_every_change_of_it_is_found() {
    let (mut writer, lead) = leader(one());
    let record = data(&mut writer, Part::Whole, b"words");
    // Whoever can write to the log makes the checksum anew.
    let stamped = |header: &txlog::Header, payload: &[u8]| {
        let mut buffer = empty_record(payload.len());
        buffer.extend_from_slice(payload);
        txlog::record::encode_in_place(header, &mut buffer);
        buffer.freeze()
    };
    let Record { header, payload } = Record::decode(&record).expect("it is whole");
    assert_eq!(stamped(&header, &payload), record);
    let is_refused = |record: Bytes| {
        let error = followed(&[lead.clone(), record], one()).expect_err("it was changed");
        matches!(error, FollowError::Encrypted(_) | FollowError::SplitUnit)
    };
    for bit in 0..payload.len() * 8 {
        let mut changed = payload.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(is_refused(stamped(&header, &changed)), "bit {bit}");
    }
    for length in 0..payload.len() {
        assert!(is_refused(stamped(&header, &payload[..length])), "{length} bytes");
    }
    let moved = [
        txlog::Header { counter: 9, ..header },
        txlog::Header { clock: UnixMillis(9), ..header },
        txlog::Header { writer: WriterId(9), ..header },
        txlog::Header { part: Part::First, ..header },
        txlog::Header { durable: Sequence(1), ..header },
        txlog::Header { reader_version_min: 1, ..header },
    ];
    for header in moved {
        assert!(is_refused(stamped(&header, &payload)), "{header:?}");
    }
    let kind = txlog::Header { kind: Kind::Barrier, ..header };
    let error = followed(&[lead, stamped(&kind, &payload)], one()).expect_err("no Data");
    assert_eq!(error, FollowError::Unsupported);
}

#[test]
fn the_keys_are_replaced_between_two_records() {
    let keys = one();
    let (mut writer, lead) = leader(keys.clone());
    let mut log = vec![lead, data(&mut writer, Part::Whole, b"before")];
    keys.replace(ring(&format!("two {TWO}\none {ONE}"))).expect("they are local");
    log.push(data(&mut writer, Part::Whole, b"behind"));
    assert_eq!(followed(&log, keys).expect("both are there").0, ["before", "behind"]);
    let error = followed(&log, one()).expect_err("the new one is not there");
    assert_eq!(error, FollowError::Encrypted(KeyError::Unknown { needed: "two".to_owned() }));
}
