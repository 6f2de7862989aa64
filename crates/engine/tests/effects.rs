//! The bytes of effects: golden, readable again, harmless when damaged.

use base::DatabaseId;
use engine::effect::{DeleteReason, Effect, EffectDecoder, EffectEncoder, End, Fields, Ids};
use engine::stream_id::StreamId;

fn every_effect() -> Vec<(u32, &'static [u8], Effect<'static>)> {
    let name = DatabaseId(3);
    let (group, consumer, id) = (b"g", b"c", StreamId::new(1, 2));
    let fields = Fields::of(b"\x01\0\0\0f\x02\0\0\0vw").expect("a field and its value");
    let ids = Ids::of(&[3; 32]).expect("two IDs");
    vec![
        (0, b"s", Effect::SetString { value: b"v", expire_at: None }),
        (0, b"s", Effect::SetString { value: b"v", expire_at: Some(1_700_000_000_123) }),
        (0, b"n", Effect::SetInteger { value: -7 }),
        (0, b"s", Effect::Append { bytes: b"tail" }),
        (0, b"s", Effect::SetRange { offset: 9, bytes: b"mid" }),
        (0, b"s", Effect::Delete { reason: DeleteReason::Command }),
        (1, b"s", Effect::Delete { reason: DeleteReason::Expired }),
        (1, b"t", Effect::Delete { reason: DeleteReason::Evicted }),
        (1, b"t", Effect::Expire { at: Some(-1) }),
        (1, b"t", Effect::Expire { at: None }),
        (1, b"t", Effect::Rename { to_database: name, to: b"u" }),
        (1, b"t", Effect::Copy { to_database: name, to: b"u" }),
        (2, b"l", Effect::ListPush { end: End::Head, value: b"h" }),
        (2, b"l", Effect::ListPush { end: End::Tail, value: b"t" }),
        (2, b"l", Effect::ListPop { end: End::Head, count: 2 }),
        (2, b"l", Effect::ListPop { end: End::Tail, count: 1 }),
        (2, b"l", Effect::ListSet { index: 4, value: b"x" }),
        (2, b"l", Effect::ListInsert { index: 5, value: b"y" }),
        (2, b"l", Effect::ListRemove { index: 6, count: 7 }),
        (2, b"h", Effect::HashSet { field: b"f", value: b"v", expire_at: None }),
        (2, b"h", Effect::HashDelete { field: b"f", is_expired: false }),
        (2, b"m", Effect::SetAdd { member: b"a" }),
        (2, b"m", Effect::SetRemove { member: b"a" }),
        (2, b"z", Effect::SortedAdd { member: b"a", score: 1.5 }),
        (2, b"z", Effect::SortedRemove { member: b"a" }),
        (2, b"", Effect::FlushDatabase),
        (2, b"", Effect::FlushAll),
        (2, b"", Effect::SwapDatabases { with: DatabaseId(9) }),
        (2, b"", Effect::TransferBegan),
        (2, b"", Effect::TransferEnded),
        (2, b"", Effect::ReplicaOf { host: "10.0.0.1", port: 6379 }),
        (2, b"", Effect::ReplicaOfNoOne),
        (2, b"h", Effect::HashSet { field: b"f", value: b"v", expire_at: Some(1_700_000_000_123) }),
        (2, b"h", Effect::HashExpire { field: b"f", at: Some(1_700_000_000_124) }),
        (2, b"h", Effect::HashExpire { field: b"f", at: None }),
        (2, b"h", Effect::HashDelete { field: b"f", is_expired: true }),
        (2, b"x", Effect::StreamCreate),
        (2, b"x", Effect::StreamAdd { id, fields }),
        (2, b"x", Effect::StreamDelete { ids }),
        (2, b"x", Effect::StreamTrim { below: StreamId::new(1, 3) }),
        (2, b"x", Effect::StreamSetId { last: id, added: 4, max_deleted: StreamId::MIN }),
        (2, b"x", Effect::StreamBlock { base: id, block: b"bytes" }),
        (2, b"x", Effect::StreamGroupCreate { group, last: id, read: -1 }),
        (2, b"x", Effect::StreamGroupSet { group, last: id, read: 5 }),
        (2, b"x", Effect::StreamGroupDelete { group }),
        (2, b"x", Effect::StreamConsumerCreate { group, consumer, seen: 6 }),
        (2, b"x", Effect::StreamConsumerDelete { group, consumer }),
        (2, b"x", Effect::StreamDeliver { group, consumer, seen: 6, time: 7, count: 8, ids }),
        (2, b"x", Effect::StreamAcknowledge { group, ids }),
        (2, b"", Effect::FunctionLoad { code: b"#!lua name=a\n" }),
        (2, b"", Effect::FunctionDelete { name: b"a" }),
        (2, b"", Effect::FunctionFlush),
        // Two more units: see `encoded`.
        (2, b"s", Effect::Delete { reason: DeleteReason::Command }),
        (2, b"s", Effect::SetInteger { value: 1 }),
    ]
}

/// Each of the last two effects is a unit of its own.
fn encoded() -> Vec<u8> {
    let (effects, mut encoder) = (every_effect(), EffectEncoder::new(0));
    for (index, (database, key, effect)) in effects.iter().enumerate() {
        if index + 2 >= effects.len() {
            encoder.begin_unit();
        }
        encoder.push(DatabaseId(*database), key, effect);
    }
    encoder.payload().to_vec()
}

fn decode_all(payload: &[u8]) -> usize {
    let mut decoder = EffectDecoder::new(payload);
    let mut count = 0;
    while let Ok(Some(_)) = decoder.next_effect() {
        count += 1;
    }
    count
}

#[test]
fn every_effect_reads_back_as_it_was_written() {
    let payload = encoded();
    let mut decoder = EffectDecoder::new(&payload);
    for (database, key, effect) in every_effect() {
        let read = decoder.next_effect().expect("valid").expect("one more");
        assert_eq!(read, (DatabaseId(database), key, effect));
    }
    assert_eq!(decoder.next_effect(), Ok(None));
    assert_eq!(decoder.unit(), 2);
}

#[test]
fn units_are_told_apart_though_they_change_databases_or_repeat_keys() {
    let set = Effect::SetInteger { value: 1 };
    let mut encoder = EffectEncoder::new(0);
    let mut lengths = Vec::new();
    for _ in 0..2 {
        // A unit that does nothing leaves nothing.
        encoder.begin_unit();
        encoder.begin_unit();
        for database in [4, 4, 5] {
            encoder.push(DatabaseId(database), b"k", &set);
        }
        lengths.push(encoder.len());
    }
    assert_eq!(lengths[1], 2 * lengths[0] + 1, "a further unit costs a byte");
    let mut decoder = EffectDecoder::new(encoder.payload());
    let mut units = Vec::new();
    while decoder.next_effect().expect("valid").is_some() {
        units.push(decoder.unit());
    }
    assert_eq!(units, [0, 0, 0, 1, 1, 1]);
}

#[test]
fn a_unit_without_effects_is_an_error() {
    let flush = [0x80 | 27, 0, 0, 0, 0];
    for payload in [&[53][..], &[&flush[..], &[53]].concat(), &[&flush[..], &[53, 53]].concat()] {
        let mut decoder = EffectDecoder::new(payload);
        let error = (0..2).find_map(|_| decoder.next_effect().err()).expect("an error");
        assert!(error.what.contains("unit") || error.what.contains("database"), "{error:?}");
    }
    // An effect names its database anew behind it, and its key.
    for opcode in [27, 0x40 | 6, 0x80 | 0x40 | 6] {
        let payload = [&flush[..], &[53, opcode, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let mut decoder = EffectDecoder::new(&payload);
        decoder.next_effect().expect("it was flushed");
        assert!(decoder.next_effect().is_err(), "{opcode}");
    }
}

#[test]
fn bytes_are_those_of_the_golden_file() {
    let golden = include_str!("golden/effects.hex");
    let hex: String = encoded().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(hex, golden.split_ascii_whitespace().collect::<String>());
}

#[test]
fn what_a_newer_version_wrote_is_an_error() {
    // 54 is the first free number. 53 stands between units, alone.
    for code in [0x80 | 53, 0x40 | 53, 0x80 | 54, 0x80 | 63] {
        let payload = [code, 0, 0, 0, 0, 1, 0, 0, 0, b'x', 0, 0];
        assert!(EffectDecoder::new(&payload).next_effect().is_err(), "{code}");
    }
}

#[test]
fn a_master_s_host_that_is_none_is_an_error() {
    for host in [&b""[..], b"a b", b"a\nb", b"\xff", &[b'x'; 256]] {
        let mut payload = vec![0x80 | 31, 0, 0, 0, 0];
        payload.extend_from_slice(&(host.len() as u32).to_le_bytes());
        payload.extend_from_slice(host);
        payload.extend_from_slice(&6379_u16.to_le_bytes());
        let error = EffectDecoder::new(&payload).next_effect().expect_err("no host");
        assert_eq!(error.what, "no name of a host");
    }
}

#[test]
fn damage_is_an_error_never_a_panic() {
    let payload = encoded();
    for cut in 0..payload.len() {
        decode_all(&payload[..cut]);
    }
    let mut state = 1_u64;
    for _ in 0..20_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let mut damaged = payload.clone();
        let at = (state >> 33) as usize % damaged.len();
        damaged[at] ^= 1 << (state >> 61);
        assert!(decode_all(&damaged) <= payload.len());
    }
}
