//! A record's payload: whatever its bytes, it is refused or it means one thing.

use super::{HASH_SEED, NOW, survives_a_snapshot};
use base::{DatabaseId, HashKey};
use engine::digest::Digest;
use engine::effect::{DeleteReason, Effect, EffectDecoder, EffectEncoder, End, Fields, Ids};
use engine::ids::{SubscriberId, WaiterId, WatcherId};
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use engine::stream_id::StreamId;
use engine::subscribers::Sort;

/// Longest stretch of zeroes that an input may ask for. A valid effect may ask for as much as a
/// string holds; a fuzzer that does so at every turn finds nothing else.
const ZEROES_BYTES_MAX: u64 = 1 << 16;

/// Copies that an input may ask for, for the same reason.
const COPIES_MAX: usize = 64;

/// Applies bytes as a record's payload to a keyspace that holds a value of each type. Applied to
/// another keyspace, one with another hash and with clients that listen, they do the same; what
/// they leave can be written to a snapshot and read back; and when its keys are gone, so is all
/// memory that was counted.
///
/// # Panics
/// If one of these does not hold: the finding.
pub fn apply_payload(input: &[u8]) {
    if !reads_back(input) {
        return;
    }
    let mut keyspace = sample(HASH_SEED);
    let applied = keyspace.apply_payload(input, NOW, &mut Interest::default());
    let mut other = sample(HASH_SEED + 1);
    other.settings.notify_keyspace_events = u32::MAX;
    let told = other.apply_payload(input, NOW, &mut listening());
    assert_eq!(applied, told, "the outcome follows from the bytes");
    let digest = Digest::of_keyspace(&keyspace);
    assert_eq!(digest, Digest::of_keyspace(&other), "the state follows from the bytes");
    assert_eq!(keyspace.replica_of(), other.replica_of(), "and so does whom it follows");
    survives_a_snapshot(&keyspace);
    other.reload(NOW).expect("what is in memory can be written and read");
    assert_eq!(digest, Digest::of_keyspace(&other), "a reload changes nothing");
    empty(keyspace);
}

/// Decodes all effects, and encodes them again to what decodes to the same. Whether the fuzzer may
/// apply them.
fn reads_back(input: &[u8]) -> bool {
    let mut decoder = EffectDecoder::new(input);
    let mut encoder = EffectEncoder::new(0);
    let mut effects = Vec::new();
    let mut units = Vec::new();
    while let Ok(Some(read)) = decoder.next_effect() {
        if units.last().is_some_and(|unit| *unit != decoder.unit()) {
            encoder.begin_unit();
        }
        encoder.push(read.0, read.1, &read.2);
        effects.push(read);
        units.push(decoder.unit());
    }
    let mut again = EffectDecoder::new(encoder.payload());
    for (effect, unit) in effects.iter().zip(units) {
        let read = again.next_effect().expect("what was encoded can be decoded");
        // Compared as text: a score that is no number is not equal to itself.
        assert_eq!(format!("{read:?}"), format!("{:?}", Some(effect)));
        assert_eq!(again.unit(), unit, "units are told apart alike");
    }
    let copies = effects.iter().filter(|(.., effect)| matches!(effect, Effect::Copy { .. }));
    copies.count() <= COPIES_MAX
        && effects.iter().all(|(.., effect)| match effect {
            // What no string can hold is refused before anything is reserved.
            Effect::SetRange { offset, .. } => {
                *offset <= ZEROES_BYTES_MAX || *offset > u64::from(u32::MAX)
            }
            _ => true,
        })
}

/// Clients that watch keys, wait for them and hear their events.
fn listening() -> Interest {
    let mut interest = Interest::default();
    for key in [b"s", b"l", b"e"] {
        interest.watchers.watch(WatcherId(1), DatabaseId(0), key, false);
        interest.waiters.add(WaiterId(2), DatabaseId(1), key, true);
    }
    interest.subscribers.subscribe(SubscriberId(3), Sort::Pattern, b"__key*");
    interest
}

/// A keyspace with a value of each type and encoding, under names that seeds use too.
fn sample(hash_seed: u64) -> Keyspace {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(hash_seed));
    let long = [b'x'; 100];
    let id = StreamId::new(1, 1);
    let fields = Fields::of(b"\x01\0\0\0f\x01\0\0\0v").expect("a field and its value");
    let id_bytes = [[1, 0, 0, 0, 0, 0, 0, 0]; 2].concat();
    let ids = Ids::of(&id_bytes).expect("one ID");
    let (group, consumer, seen) = (b"g", b"c", NOW.0);
    let deliver = Effect::StreamDeliver { group, consumer, seen, time: seen, count: 1, ids };
    let effects: [(&[u8], Effect<'_>); 22] = [
        (b"s", Effect::SetString { value: b"text", expire_at: None }),
        (b"n", Effect::SetInteger { value: 7 }),
        (b"r", Effect::Append { bytes: &long }),
        (b"e", Effect::SetString { value: b"soon", expire_at: Some(NOW.0 + 1) }),
        (b"l", Effect::ListPush { end: End::Tail, value: b"1" }),
        (b"l", Effect::ListPush { end: End::Head, value: &long }),
        (b"h", Effect::HashSet { field: b"f", value: b"v", expire_at: None }),
        (b"H", Effect::HashSet { field: b"f", value: &long, expire_at: None }),
        (b"x", Effect::HashSet { field: b"f", value: b"v", expire_at: Some(NOW.0 + 1) }),
        (b"x", Effect::HashSet { field: b"g", value: b"v", expire_at: None }),
        (b"X", Effect::HashSet { field: b"f", value: &long, expire_at: Some(NOW.0 + 1) }),
        (b"m", Effect::SetAdd { member: b"1" }),
        (b"M", Effect::SetAdd { member: b"a" }),
        (b"M", Effect::SetAdd { member: b"2" }),
        (b"z", Effect::SortedAdd { member: b"a", score: 1.5 }),
        (b"Z", Effect::SortedAdd { member: &long, score: -1.0 }),
        (b"Z", Effect::SortedAdd { member: b"b", score: f64::INFINITY }),
        (b"t", Effect::StreamAdd { id, fields }),
        (b"t", Effect::StreamGroupCreate { group, last: id, read: 1 }),
        (b"t", Effect::StreamConsumerCreate { group, consumer, seen }),
        (b"t", deliver),
        (b"T", Effect::StreamCreate),
    ];
    for (key, effect) in effects {
        keyspace.apply(DatabaseId(0), key, &effect).expect("every key takes its own type");
    }
    keyspace
}

/// Deletes every key. Whatever was counted while they came and changed is counted back.
pub(super) fn empty(mut keyspace: Keyspace) {
    let keys: Vec<_> = keyspace
        .databases()
        .flat_map(|(id, database)| database.table().iter().map(move |entry| (id, entry)))
        .map(|(id, entry)| (id, entry.key().to_vec()))
        .collect();
    for (database, key) in keys {
        let gone = Effect::Delete { reason: DeleteReason::Command };
        keyspace.apply(database, &key, &gone).expect("any key can be deleted");
    }
    assert!(keyspace.is_empty());
    for (_, database) in keyspace.databases() {
        assert!(database.has_no_expiries(), "nothing waits for the time of a key that is gone");
        assert!(database.field_expiries().is_empty(), "nor for that of its fields");
        assert_eq!(database.used_bytes(), database.table().allocated_bytes());
    }
}
