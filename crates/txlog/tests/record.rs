//! The bytes of records: golden files, round trips, and hostile input.

use base::{Epoch, Sequence, UnixMillis};
use bytes::Bytes;
use proptest::prelude::*;
use txlog::record::{ChainValue, HEADER_BYTES};
use txlog::{Header, Kind, Part, Record, RecordError, WriterId};

/// One golden file per kind, as hexadecimal text. They are never changed, only added to: a newer
/// release reads everything an older one wrote.
const GOLDEN: [(Kind, Part, &str, &str); 10] = [
    (Kind::Data, Part::Whole, "effects", include_str!("golden/data.hex")),
    (Kind::Data, Part::Last, "the end", include_str!("golden/data-last.hex")),
    (Kind::Lead, Part::Whole, "\x10\x27\0\0\0\0\0\0", include_str!("golden/lead.hex")),
    (Kind::Renew, Part::Whole, "\x10\x27\0\0\0\0\0\0", include_str!("golden/renew.hex")),
    (Kind::Yield, Part::Whole, "", include_str!("golden/yield.hex")),
    (Kind::Barrier, Part::Whole, "", include_str!("golden/barrier.hex")),
    (Kind::Checksum, Part::Whole, "digest", include_str!("golden/checksum.hex")),
    (Kind::Version, Part::Whole, "\x02\0\0\0", include_str!("golden/version.hex")),
    (Kind::Slot, Part::Whole, "slot", include_str!("golden/slot.hex")),
    (Kind::Origin, Part::Whole, "origin", include_str!("golden/origin.hex")),
];

fn sample(kind: Kind, part: Part, payload: &'static str) -> Record {
    let header = Header {
        kind,
        part,
        is_compressed: false,
        is_encrypted: false,
        sets_clock: false,
        reader_version_min: 1,
        epoch: Epoch(3),
        writer: WriterId(0x0102_0304_0506_0708),
        counter: 42,
        predecessor: ChainValue(0x1122_3344_5566_7788),
        clock: UnixMillis(1_767_225_600_000),
        durable: Sequence(41),
    };
    Record { header, payload: Bytes::from_static(payload.as_bytes()) }
}

fn hex(bytes: &[u8]) -> String {
    let lines = bytes.chunks(16).map(|line| line.iter().map(|b| format!("{b:02x}")).collect());
    let lines: Vec<String> = lines.collect();
    lines.join("\n") + "\n"
}

fn unhex(text: &str) -> Bytes {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let pair = |pair: &[u8]| {
        u8::from_str_radix(std::str::from_utf8(pair).expect("hexadecimal digits"), 16)
            .expect("hexadecimal digits")
    };
    digits.chunks(2).map(pair).collect::<Vec<u8>>().into()
}

#[test]
fn records_are_written_and_read_as_the_golden_files_say() {
    for (kind, part, payload, golden) in GOLDEN {
        let record = sample(kind, part, payload);
        assert_eq!(hex(&record.encode()), golden, "{kind:?} {part:?}");
        assert_eq!(Record::decode(&unhex(golden)), Ok(record), "{kind:?} {part:?}");
    }
}

#[test]
fn a_lead_that_sets_the_clock_says_so_and_nothing_else_can() {
    let golden = include_str!("golden/lead-sets-clock.hex");
    let mut record = sample(Kind::Lead, Part::Whole, "\x10\x27\0\0\0\0\0\0");
    record.header.sets_clock = true;
    assert_eq!(hex(&record.encode()), golden);
    assert_eq!(Record::decode(&unhex(golden)), Ok(record));
    for kind in [Kind::Data, Kind::Renew, Kind::Yield] {
        let mut record = sample(kind, Part::Whole, "\x10\x27\0\0\0\0\0\0");
        record.header.sets_clock = true;
        assert_eq!(Record::decode(&record.encode()), Err(RecordError::Flags(1 << 4)));
    }
}

#[test]
fn every_changed_bit_is_noticed() {
    let bytes = sample(Kind::Data, Part::Whole, "payload").encode();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.to_vec();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(Record::decode(&changed.into()).is_err(), "bit {bit}");
    }
}

#[test]
fn every_missing_byte_is_noticed() {
    let bytes = sample(Kind::Data, Part::Whole, "payload").encode();
    for length in 0..bytes.len() {
        let error = Record::decode(&bytes.slice(..length)).unwrap_err();
        assert!(matches!(error, RecordError::Truncated { .. }), "{length}: {error}");
    }
    let mut longer = bytes.to_vec();
    longer.push(0);
    let stated = bytes.len();
    let has = stated + 1;
    assert_eq!(Record::decode(&longer.into()), Err(RecordError::Length { stated, has }));
}

fn any_record() -> impl Strategy<Value = Record> {
    let kinds = prop_oneof![Just(Kind::Data), Just(Kind::Yield), Just(Kind::Slot)];
    let words = (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>());
    let payload = prop::collection::vec(any::<u8>(), 0..300);
    (kinds, words, any::<i64>(), any::<u32>(), any::<bool>(), payload).prop_map(
        |(kind, words, clock, reader_version_min, is_encrypted, payload)| Record {
            header: Header {
                kind,
                part: if kind == Kind::Data { Part::Middle } else { Part::Whole },
                is_compressed: false,
                is_encrypted,
                sets_clock: false,
                reader_version_min,
                epoch: Epoch(words.0),
                writer: WriterId(words.1),
                counter: words.2,
                predecessor: ChainValue(words.3),
                clock: UnixMillis(clock),
                durable: Sequence(words.4),
            },
            payload: payload.into(),
        },
    )
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_itself(record in any_record()) {
        let bytes = record.encode();
        prop_assert_eq!(bytes.len(), HEADER_BYTES + record.payload.len());
        prop_assert_eq!(Record::decode(&bytes), Ok(record));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Record::decode(&bytes.into()).is_err());
    }
}
