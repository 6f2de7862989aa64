//! Long values: encoded over several turns, whatever happens meanwhile, and decoded elsewhere.

use super::*;
use crate::effect::{Fields, Ids};
use crate::stream_id::StreamId;
use crate::value::stored::kind_of;
use base::time::SECOND;

/// Values of more than a few elements take several slices.
const SLICES: ColdLimits = ColdLimits {
    value_bytes_max: 7 << 20,
    expiring_bytes_max: 7 << 20,
    slice_bytes: 1 << 10,
    ..ALL_COLD
};

const HERE: DatabaseId = DatabaseId(0);

/// What goes to threads and comes back.
const _: () = {
    const fn is_sent<T: Send>() {}
    is_sent::<Builder>();
    is_sent::<Brought>();
};

fn apply(keyspace: &mut Keyspace, key: &str, effect: &Effect<'_>) {
    keyspace.apply(HERE, key.as_bytes(), effect).expect("each key has one type");
}

/// Gives keys a long value of each type, and of hashes also those of which fields expire.
fn fill(keyspace: &mut Keyspace, count: u32) {
    for number in 0..count {
        let text = format!("element-{number}-{}", "x".repeat(number as usize % 90));
        let text = text.as_bytes();
        apply(keyspace, "list", &Effect::ListPush { end: End::Tail, value: text });
        apply(keyspace, "set", &Effect::SetAdd { member: text });
        apply(keyspace, "integers", &Effect::SetAdd { member: number.to_string().as_bytes() });
        let expire_at = Some(NOW.0 + 1_000_000 + i64::from(number)).filter(|at| at % 3 != 0);
        let value = text;
        let set = Effect::HashSet { field: text, value, expire_at: None };
        apply(keyspace, "hash", &set);
        apply(keyspace, "timed", &Effect::HashSet { field: text, value, expire_at });
        let score = f64::from(number % 50);
        apply(keyspace, "sorted", &Effect::SortedAdd { score, member: text });
        let mut bytes = Vec::new();
        Fields::put(&mut bytes, text);
        Fields::put(&mut bytes, text);
        let fields = Fields::of(&bytes).expect("a field and its value");
        let id = StreamId::new(1 + u64::from(number), 0);
        apply(keyspace, "stream", &Effect::StreamAdd { id, fields });
        bytes.clear();
        Ids::put(&mut bytes, id);
        let ids = Ids::of(&bytes).expect("an ID");
        let (group, consumer, last) = (&b"g"[..], &text[..9], id);
        apply(keyspace, "stream", &Effect::StreamGroupCreate { group, last, read: -1 });
        let create = Effect::StreamConsumerCreate { group, consumer, seen: 1 };
        apply(keyspace, "stream", &create);
        let deliver = Effect::StreamDeliver { group, consumer, seen: 1, time: 2, count: 1, ids };
        apply(keyspace, "stream", &deliver);
    }
    let long = vec![b'y'; count as usize * 50];
    set(keyspace, 0, "text", &long);
}

/// Spills until nothing more goes, by at most so many bytes of long values a turn.
fn spill_in_turns(keyspace: &mut Keyspace, file: &MemoryFile, turn_bytes: usize) {
    let mut turns = 0;
    let mut spilled = Spilled::More;
    while spilled != Spilled::Nothing {
        keyspace.cold_mut().expect("it has a store").encoded_bytes_left = turn_bytes;
        spilled = keyspace.spill(usize::MAX, 64, NOW);
        file.write(keyspace);
        turns += 1;
        assert!(turns < 100_000, "it comes to an end");
    }
    check_places(keyspace);
}

/// Has every value come as it does where a thread reads and decodes it.
fn fetch_all(keyspace: &mut Keyspace) {
    let keys: Vec<Vec<u8>> =
        keyspace.database(HERE).table().iter().map(|entry| entry.key().to_vec()).collect();
    for key in keys {
        let Some(place) = keyspace.cold_place(HERE, &key) else { continue };
        let cold = keyspace.cold().expect("it has a store");
        let content = cold.content_at(place.bits()).expect("it is there");
        let decoded = keyspace.builder().build(&content).expect("it is what was written");
        keyspace.put_brought(keyspace.hash(&key), place, decoded);
    }
    assert_eq!(keyspace.cold_keys(), 0);
    check_places(keyspace);
}

fn encoded_in_vain(keyspace: &Keyspace) -> u64 {
    keyspace.cold().expect("it has a store").statistics.encoded_in_vain.get()
}

fn is_encoding(keyspace: &Keyspace) -> bool {
    keyspace.cold().expect("it has a store").encoding.is_some()
}

#[test]
fn long_values_of_every_type_leave_over_several_turns_and_are_decoded_elsewhere() {
    for (count, turn_bytes) in [(600, 100), (600, usize::MAX), (5000, 20_000)] {
        let (mut keyspace, file) = keyspace(SLICES);
        fill(&mut keyspace, count);
        let (before, digest) = (holdings(&keyspace), Digest::of_keyspace(&keyspace));
        let entry_bytes = keyspace.database(HERE).entry_bytes;
        let kinds = |keyspace: &Keyspace| -> Vec<u8> {
            keyspace.database(HERE).table().iter().map(|entry| kind_of(entry.value())).collect()
        };
        let kinds_before = kinds(&keyspace);
        for _ in 0..2 {
            spill_in_turns(&mut keyspace, &file, turn_bytes);
            assert_eq!(keyspace.cold_keys(), keyspace.len(), "all of them go");
            assert_eq!(Digest::of_keyspace(&keyspace), digest);
            fetch_all(&mut keyspace);
            assert_eq!(holdings(&keyspace), before);
            assert_eq!(kinds(&keyspace), kinds_before);
        }
        let cold = keyspace.cold().expect("it has a store");
        assert_eq!(cold.statistics.spilled_by_writing.get(), before.len() as u64);
        assert_eq!((encoded_in_vain(&keyspace), cold.failure()), (0, None));
        assert!(keyspace.database(HERE).entry_bytes <= entry_bytes + entry_bytes / 4);
    }
}

#[test]
fn a_turn_encodes_no_more_than_it_may_and_who_needs_memory_waits_for_the_next() {
    let (mut keyspace, file) = keyspace(SLICES);
    fill(&mut keyspace, 3000);
    let used = keyspace.used_bytes();
    let buffered = |keyspace: &Keyspace| {
        keyspace.cold().expect("it has a store").tier.figures().buffered_bytes
    };
    for _ in 0..20 {
        keyspace.cold_mut().expect("it has a store").encoded_bytes_left = 500;
        let spills: Vec<Spilled> = (0..50).map(|_| keyspace.spill(1, 64, NOW)).collect();
        assert!(matches!(spills[49], Spilled::Behind | Spilled::Enough), "{:?}", spills[49]);
        let cold = keyspace.cold().expect("it has a store");
        assert_eq!(cold.encoded_bytes_left, 0);
        assert!(cold.encodes_next_turn() && cold.tier.figures().put_records == 0);
        assert_eq!(keyspace.used_bytes(), used, "the buffer was counted before");
    }
    assert!(buffered(&keyspace) > 10_000);
    // What was begun is finished though memory is not short any more.
    while keyspace.cold_keys() == 0 {
        keyspace.cold_mut().expect("it has a store").encoded_bytes_left = 500;
        keyspace.go_on_encoding();
    }
    assert!(!is_encoding(&keyspace));
    file.write(&mut keyspace);
    assert_eq!(buffered(&keyspace), 0);
    check_places(&keyspace);
}

/// What happens to a value amid its encoding, and whether that makes it stay.
type Amid = (&'static str, fn(&mut Keyspace), bool);

const AMID: [Amid; 14] = [
    ("nothing", |_| (), false),
    ("a new field", |it| put_field(it, "hash"), true),
    ("a field less", |it| drop_field(it, "hash"), true),
    ("a field of another key", |it| put_field(it, "other"), false),
    ("deleted", |it| delete(it, 0, "hash"), true),
    ("overwritten", |it| set(it, 0, "hash", b"string"), true),
    ("renamed", |it| apply(it, "hash", &Effect::Rename { to_database: HERE, to: b"new" }), true),
    ("and back", rename_and_back, true),
    ("replaced", |it| apply(it, "other", &Effect::Copy { to_database: HERE, to: b"hash" }), true),
    ("flushed", |it| apply(it, "", &Effect::FlushDatabase), true),
    ("all flushed", |it| apply(it, "", &Effect::FlushAll), true),
    ("swapped", |it| apply(it, "", &Effect::SwapDatabases { with: DatabaseId(1) }), true),
    ("it expires", |it| apply(it, "hash", &Effect::Expire { at: Some(NOW.0 + 5) }), true),
    ("reloaded", |it| it.reload(NOW).expect("nothing is lost"), true),
];

fn put_field(keyspace: &mut Keyspace, key: &str) {
    let set = Effect::HashSet { field: b"field", value: b"value", expire_at: None };
    apply(keyspace, key, &set);
}

fn drop_field(keyspace: &mut Keyspace, key: &str) {
    apply(keyspace, key, &Effect::HashDelete { field: b"f7", is_expired: false });
}

fn rename_and_back(keyspace: &mut Keyspace) {
    let rename = |to: &'static [u8]| Effect::Rename { to_database: HERE, to };
    apply(keyspace, "hash", &rename(b"new"));
    apply(keyspace, "new", &rename(b"hash"));
}

/// A keyspace with a long hash, amid its encoding, and a short one.
fn amid_encoding() -> (Keyspace, MemoryFile) {
    let (mut keyspace, file) = keyspace(SLICES);
    for number in 0..700 {
        let (field, value) = (format!("f{number}"), [b'v'; 50]);
        let (field, expire_at) = (field.as_bytes(), None);
        apply(&mut keyspace, "hash", &Effect::HashSet { field, value: &value, expire_at });
    }
    put_field(&mut keyspace, "other");
    for _ in 0..5 {
        keyspace.cold_mut().expect("it has a store").encoded_bytes_left = 1000;
        keyspace.spill(1000, 64, NOW);
    }
    assert!(is_encoding(&keyspace));
    (keyspace, file)
}

#[test]
fn an_encoding_is_in_vain_if_the_value_is_touched_amid_it_and_no_byte_of_it_is_kept() {
    for (what, happen, is_in_vain) in AMID {
        let (mut keyspace, file) = amid_encoding();
        happen(&mut keyspace);
        assert_eq!(is_encoding(&keyspace), !is_in_vain, "{what}");
        assert_eq!(encoded_in_vain(&keyspace), u64::from(is_in_vain), "{what}");
        if is_in_vain {
            let cold = keyspace.cold().expect("it has a store");
            let piece_bytes = cold.tier.limits().piece_bytes as u64;
            assert!(cold.tier.figures().buffered_bytes <= piece_bytes, "{what}");
        }
        let (before, digest) = (holdings(&keyspace), Digest::of_keyspace(&keyspace));
        spill_in_turns(&mut keyspace, &file, 1000);
        assert_eq!(holdings(&keyspace), before, "{what}");
        assert_eq!(Digest::of_keyspace(&keyspace), digest, "{what}");
        while keyspace.release_flushed(7) {}
        check_places(&keyspace);
        let cold = keyspace.cold().expect("it has a store");
        assert_eq!(cold.tier.figures().buffered_bytes, 0, "{what}");
    }
}

#[test]
fn an_encoding_is_in_vain_if_the_value_was_used_or_is_needed_amid_it() {
    let entry_of = |keyspace: &Keyspace, then: &dyn Fn(crate::value::EntryRef<'_>)| {
        let hash = keyspace.hash(b"hash");
        then(keyspace.database(HERE).find(hash, b"hash").expect("it is there"));
    };
    let go_on = |keyspace: &mut Keyspace| {
        keyspace.cold_mut().expect("it has a store").encoded_bytes_left = 1000;
        keyspace.go_on_encoding();
    };
    // Somebody reads it.
    let (mut keyspace, _) = amid_encoding();
    let later = UnixMillis(NOW.0 + 100_000);
    entry_of(&keyspace, &|entry| keyspace.touch(entry, later));
    go_on(&mut keyspace);
    assert_eq!((is_encoding(&keyspace), encoded_in_vain(&keyspace)), (false, 1));
    // A request waits for others beside it.
    let (mut keyspace, _) = amid_encoding();
    let hash = keyspace.hash(b"hash");
    keyspace.cold_mut().expect("it has a store").pin(hash);
    go_on(&mut keyspace);
    assert_eq!((is_encoding(&keyspace), encoded_in_vain(&keyspace)), (false, 1));
    // It left memory in another way, and came back.
    let (mut keyspace, file) = amid_encoding();
    spill_all(&mut keyspace, &file);
    keyspace.fetch_now(HERE, b"hash").expect("it is there");
    go_on(&mut keyspace);
    assert_eq!((is_encoding(&keyspace), encoded_in_vain(&keyspace)), (false, 1));
    check_places(&keyspace);
}

#[test]
fn a_snapshot_that_begins_amid_an_encoding_has_the_value_and_it_goes_later() {
    for whole_value_bytes_max in [1000, 1 << 20] {
        let (mut keyspace, file) = amid_encoding();
        keyspace.settings.limits.whole_value_bytes_max = whole_value_bytes_max;
        let digest = Digest::of_keyspace(&keyspace);
        keyspace.begin_snapshot(NOW);
        let mut bytes = Vec::new();
        loop {
            keyspace.cold_mut().expect("it has a store").encoded_bytes_left = 1000;
            keyspace.spill(1000, 64, NOW);
            file.write(&mut keyspace);
            let is_done = keyspace.walk_snapshot(1, 100);
            keyspace.read_snapshot_values();
            bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
            if is_done {
                break;
            }
        }
        keyspace.end_snapshot();
        let mut crc = crate::rdb::Crc64::default();
        crc.update(&bytes);
        bytes.extend_from_slice(&crate::save::checksum(crc));
        let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(8));
        crate::load::Loader::new(&bytes[..], NOW).load_all(&mut loaded).expect("it is whole");
        assert_eq!(Digest::of_keyspace(&loaded), digest);
        // It was encoded in vain before.
        keyspace.cold_mut().expect("it has a store").now = MonotonicNanos(2 * SECOND);
        spill_in_turns(&mut keyspace, &file, 1000);
        assert!(keyspace.cold_place(HERE, b"hash").is_some());
        assert_eq!(Digest::of_keyspace(&keyspace), digest);
    }
}

/// A keyspace whose store has so little room, in bytes.
fn small_store(record_bytes_max: usize, capacity_bytes: u64) -> (Keyspace, MemoryFile) {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    keyspace.now = NOW;
    let limits = tier::Limits {
        segment_bytes: 64 << 10,
        piece_bytes: 8 << 10,
        packed_bytes_max: 4 << 10,
        record_bytes_max,
        buffered_bytes_max: record_bytes_max + (24 << 10),
        ..tier::Limits::default()
    };
    let (file, tier) = (MemoryFile::default(), Tier::new(limits, capacity_bytes));
    keyspace.open_cold(ColdStore::new(tier, Box::new(file.clone()), SLICES));
    (keyspace, file)
}

#[test]
fn a_full_store_has_no_long_value_encoded_in_vain_and_takes_short_ones() {
    // Four of six segments are kept free.
    let (mut keyspace, file) = small_store(60 << 10, 6 * (64 << 10));
    for key in ["a", "b", "c", "d"] {
        set(&mut keyspace, 0, key, &[7; 40_000]);
    }
    spill_in_turns(&mut keyspace, &file, usize::MAX);
    assert_eq!((keyspace.cold_keys(), encoded_in_vain(&keyspace)), (2, 0));
    set(&mut keyspace, 0, "short", &[7; 500]);
    spill_in_turns(&mut keyspace, &file, usize::MAX);
    assert_eq!((keyspace.cold_keys(), encoded_in_vain(&keyspace)), (3, 0));
}

#[test]
fn what_fits_into_no_record_is_tried_once_and_again_when_it_has_changed() {
    let (mut keyspace, file) = small_store(16 << 10, 4 << 20);
    for number in 0..300 {
        let (field, value) = (format!("f{number}"), [b'v'; 80]);
        let (field, expire_at) = (field.as_bytes(), None);
        apply(&mut keyspace, "hash", &Effect::HashSet { field, value: &value, expire_at });
    }
    set(&mut keyspace, 0, "text", &[7; 20_000]);
    for at_once in [false, true] {
        for _ in 0..3 {
            match at_once {
                false => spill_in_turns(&mut keyspace, &file, 1000),
                true => spill_all(&mut keyspace, &file),
            }
        }
        assert_eq!((keyspace.cold_keys(), encoded_in_vain(&keyspace)), (0, 2));
    }
    for number in 0..200 {
        let field = format!("f{number}");
        let delete = Effect::HashDelete { field: field.as_bytes(), is_expired: false };
        apply(&mut keyspace, "hash", &delete);
    }
    set(&mut keyspace, 0, "text", &[7; 15_000]);
    spill_in_turns(&mut keyspace, &file, 1000);
    assert_eq!((keyspace.cold_keys(), encoded_in_vain(&keyspace)), (2, 2));
}

#[test]
fn a_long_hash_of_which_fields_expire_stays_because_its_deletion_would_read_it_at_once() {
    let limits = ColdLimits { expiring_bytes_max: 4 << 10, ..SLICES };
    let (mut keyspace, file) = keyspace(limits);
    fill(&mut keyspace, 600);
    spill_in_turns(&mut keyspace, &file, usize::MAX);
    assert!(keyspace.cold_place(HERE, b"timed").is_none());
    assert_eq!(keyspace.cold_keys(), keyspace.len() - 1);
    apply(&mut keyspace, "hash", &Effect::HashExpire { field: b"element-0-", at: Some(NOW.0 + 9) });
    spill_in_turns(&mut keyspace, &file, usize::MAX);
    assert!(keyspace.cold_place(HERE, b"hash").is_none());
}

#[test]
fn long_values_wait_for_room_among_what_is_not_written_and_short_ones_go_on() {
    let (mut keyspace, file) = keyspace(SLICES);
    let value: Vec<u8> = vec![7; 3 << 20];
    for key in ["a", "b", "c", "d"] {
        set(&mut keyspace, 0, key, &value);
    }
    let mut spilled = Vec::new();
    for _ in 0..2000 {
        spilled.push(keyspace.spill(usize::MAX, 64, NOW));
    }
    assert_eq!(spilled.last(), Some(&Spilled::Behind), "nothing was written");
    assert_eq!(keyspace.cold_keys(), 2, "two fit into the buffers");
    set(&mut keyspace, 0, "short", &[7; 300]);
    for _ in 0..20 {
        keyspace.spill(usize::MAX, 64, NOW);
    }
    assert!(keyspace.cold_place(HERE, b"short").is_some());
    spill_in_turns(&mut keyspace, &file, usize::MAX);
    assert_eq!(keyspace.cold_keys(), 5);
    fetch_all(&mut keyspace);
    check_places(&keyspace);
}
