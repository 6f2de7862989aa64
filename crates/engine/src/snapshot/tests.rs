//! A snapshot beside changes is what was there when it began.

use super::*;
use crate::digest::Digest;
use crate::effect::EffectEncoder;
use crate::interest::Interest;
use crate::load::Loader;
use crate::master::{Master, ReplicaOf};
use crate::save::checksum;
use crate::testing::{Bench, holdings};
use base::HashKey;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

fn load(bytes: &[u8]) -> Keyspace {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(77));
    load_into(&mut keyspace, bytes);
    keyspace
}

fn load_into(keyspace: &mut Keyspace, bytes: &[u8]) {
    let mut crc = crate::rdb::Crc64::default();
    crc.update(bytes);
    let file = [bytes, &checksum(crc)].concat();
    Loader::new(&file[..], NOW).load_all(keyspace).unwrap();
}

fn bench_of(keys: u32) -> Bench {
    let mut bench = Bench::new();
    for key in 0..keys {
        let (id, key) = (DatabaseId(key % 3), format!("key:{key}"));
        let effect = match key.len() % 2 {
            0 => Effect::SetString { value: key.as_bytes(), expire_at: Some(NOW.0 * 2) },
            _ => Effect::ListPush { end: crate::effect::End::Tail, value: key.as_bytes() },
        };
        bench.engine.keyspace.apply(id, key.as_bytes(), &effect).unwrap();
    }
    bench
}

/// Values of every type that are written in pieces, in three databases.
fn grow_big_ones(keyspace: &mut Keyspace) {
    for number in 0..6000u32 {
        let (id, text) = (DatabaseId(number % 3), format!("element:{number}:{}", "x".repeat(70)));
        let text = text.as_bytes();
        let score = f64::from(number % 100);
        for (key, effect) in [
            ("big:list", Effect::ListPush { end: crate::effect::End::Tail, value: text }),
            ("big:set", Effect::SetAdd { member: text }),
            ("big:hash", Effect::HashSet { field: text, value: b"value", expire_at: None }),
            ("big:sorted", Effect::SortedAdd { score, member: text }),
            ("big:text", Effect::Append { bytes: text }),
        ] {
            keyspace.apply(id, key.as_bytes(), &effect).expect("each key has one type");
        }
    }
}

/// As `change`, of a big value.
fn change_big(keyspace: &mut Keyspace, dice: &mut impl FnMut(u32) -> u32) {
    let id = DatabaseId(dice(3));
    let kinds = ["list", "set", "hash", "sorted", "text"];
    let key = format!("big:{}", kinds[dice(5) as usize]);
    let to = format!("big:{}", kinds[dice(5) as usize]);
    let to_database = DatabaseId(dice(3));
    let effect = match dice(12) {
        0 => Effect::Rename { to_database, to: to.as_bytes() },
        1 => Effect::Copy { to_database, to: to.as_bytes() },
        2 => Effect::Delete { reason: crate::effect::DeleteReason::Command },
        3 => Effect::Expire { at: Some(NOW.0 * 3) },
        4 => Effect::SwapDatabases { with: to_database },
        5 if dice(4) == 0 => Effect::FlushDatabase,
        6 => Effect::SetAdd { member: b"new" },
        7 => Effect::HashDelete { field: b"element:0", is_expired: false },
        8 => Effect::SortedAdd { score: 7.0, member: b"new" },
        _ => Effect::ListPop { end: crate::effect::End::Head, count: 3 },
    };
    // An effect may meet another type: then it changes nothing, and the value is kept early.
    let _ = keyspace.apply(id, key.as_bytes(), &effect);
}

/// A change of any kind, chosen by `dice`.
fn change(keyspace: &mut Keyspace, dice: &mut impl FnMut(u32) -> u32) {
    let id = DatabaseId(dice(3));
    let key = format!("key:{}", dice(3000));
    let to = format!("key:{}", dice(3000));
    let to_database = DatabaseId(dice(3));
    let effect = match dice(200) {
        0 => Effect::FlushDatabase,
        1 => Effect::SwapDatabases { with: to_database },
        2 if dice(10) == 0 => Effect::FlushAll,
        3..40 => Effect::Rename { to_database, to: to.as_bytes() },
        40..60 => Effect::Copy { to_database, to: to.as_bytes() },
        60..90 => Effect::Delete { reason: crate::effect::DeleteReason::Command },
        90..110 => Effect::Expire { at: Some(NOW.0 * 3) },
        _ => Effect::SetString { value: to.as_bytes(), expire_at: None },
    };
    // An effect may meet another type: then it changes nothing, and the cell is kept early.
    let _ = keyspace.apply(id, key.as_bytes(), &effect);
}

#[test]
fn a_snapshot_is_what_was_there_when_it_began() {
    for seed in 0..30u64 {
        let mut state = seed;
        let mut dice = move |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as u32) % below
        };
        let mut bench = bench_of(3000);
        let keyspace = &mut bench.engine.keyspace;
        for round in 0..3 {
            let expected = holdings(keyspace);
            keyspace.begin_snapshot(NOW);
            let mut bytes = Vec::new();
            while !keyspace.walk_snapshot(40, 4096) {
                for _ in 0..dice(20) {
                    change(keyspace, &mut dice);
                }
                bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
            }
            bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
            assert_eq!(keyspace.snapshot_keys(), expected.len() as u64);
            keyspace.end_snapshot();
            let loaded = load(&bytes);
            assert!(holdings(&loaded) == expected, "seed {seed}, round {round}");
        }
    }
}

#[test]
fn a_big_value_that_changes_is_written_as_it_was() {
    let mut asides = 0;
    for seed in 0..12u64 {
        let mut state = seed;
        let mut dice = move |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as u32) % below
        };
        let mut bench = bench_of(300);
        let keyspace = &mut bench.engine.keyspace;
        grow_big_ones(keyspace);
        for round in 0..3 {
            let expected = holdings(keyspace);
            keyspace.begin_snapshot(NOW);
            let mut bytes = Vec::new();
            while !keyspace.walk_snapshot(40, 4096) {
                asides += u32::from(!keyspace.snapshot.as_ref().unwrap().writing.aside.is_empty());
                if dice(8) == 0 {
                    change_big(keyspace, &mut dice);
                    change(keyspace, &mut dice);
                }
                bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
            }
            bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
            assert_eq!(keyspace.snapshot_keys(), expected.len() as u64);
            keyspace.end_snapshot();
            assert!(holdings(&load(&bytes)) == expected, "seed {seed}, round {round}");
        }
    }
    assert!(asides > 100, "something came between the pieces: {asides}");
}

#[test]
fn files_that_a_snapshot_is_cut_into_hold_every_key_once_and_each_is_whole() {
    let (mut files, mut refused) = (0, 0);
    for seed in 0..12u64 {
        let mut state = seed;
        let mut dice = move |below: u32| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((state >> 33) as u32) % below
        };
        let mut bench = bench_of(300);
        let keyspace = &mut bench.engine.keyspace;
        keyspace.replica_of = ReplicaOf::parse("host 1").expect("a name and a port");
        grow_big_ones(keyspace);
        let expected = holdings(keyspace);
        keyspace.begin_snapshot(NOW);
        let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(77));
        let mut bytes = Vec::new();
        while !keyspace.walk_snapshot(40, 4096) {
            if dice(8) == 0 {
                change_big(keyspace, &mut dice);
                change(keyspace, &mut dice);
            }
            if dice(4) > 0 {
                continue;
            }
            if keyspace.can_cut_snapshot() {
                bytes.extend(keyspace.cut_snapshot(Vec::new()));
                // A key that is loaded already is an error of its own.
                load_into(&mut loaded, &std::mem::take(&mut bytes));
                files += 1;
            } else {
                keyspace.want_snapshot_cut();
                refused += 1;
            }
        }
        assert!(!keyspace.can_cut_snapshot(), "the last file is at its end");
        bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
        load_into(&mut loaded, &bytes);
        assert_eq!(keyspace.snapshot_keys(), expected.len() as u64);
        assert!(holdings(&loaded) == expected, "seed {seed}");
    }
    assert!(files > 50 && refused > 100, "{files} files, {refused} cuts amid a value");
}

#[test]
fn a_slice_of_a_big_value_is_small() {
    let mut bench = bench_of(10);
    let keyspace = &mut bench.engine.keyspace;
    grow_big_ones(keyspace);
    keyspace.begin_snapshot(NOW);
    let mut largest = 0;
    while !keyspace.walk_snapshot(40, 4096) {
        largest = largest.max(keyspace.take_snapshot_bytes(Vec::new()).len());
    }
    // A list's node of 8 KiB is written whole, and cells have more than one key.
    assert!(largest < 64 << 10, "{largest} bytes in one slice");
}

#[test]
fn an_empty_keyspace_has_a_snapshot_too() {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    keyspace.begin_snapshot(NOW);
    assert!(keyspace.walk_snapshot(1, 1));
    assert!(load(&keyspace.take_snapshot_bytes(Vec::new())).is_empty());
}

/// What a start finds in a snapshot of this.
fn taken(keyspace: &mut Keyspace) -> Keyspace {
    load(&written(keyspace))
}

fn written(keyspace: &mut Keyspace) -> Vec<u8> {
    keyspace.begin_snapshot(NOW);
    while !keyspace.walk_snapshot(40, 4096) {}
    let bytes = keyspace.take_snapshot_bytes(Vec::new());
    keyspace.end_snapshot();
    bytes
}

#[test]
fn a_part_of_a_master_s_data_is_known_to_be_one_from_log_and_snapshot() {
    let mut bench = bench_of(10);
    let keyspace = &mut bench.engine.keyspace;
    let mut encoder = EffectEncoder::new(0);
    encoder.push(DatabaseId(0), b"", &Effect::FlushAll);
    encoder.push(DatabaseId(0), b"", &Effect::TransferBegan);
    encoder.push(DatabaseId(0), b"key", &Effect::SetInteger { value: 7 });
    keyspace
        .apply_payload(encoder.payload(), NOW, &mut Interest::default())
        .expect("the effects fit");
    assert!(keyspace.is_partial() && keyspace.len() == 1);
    let loaded = taken(keyspace);
    assert!(loaded.is_partial() && loaded.len() == 1);
    for end in [Effect::FlushAll, Effect::TransferEnded] {
        let mut loaded = taken(keyspace);
        loaded.apply(DatabaseId(0), b"", &end).expect("it meets no type");
        assert!(!loaded.is_partial() && !taken(&mut loaded).is_partial(), "{end:?}");
    }
    let flush = Effect::FlushDatabase;
    keyspace.apply(DatabaseId(0), b"", &flush).expect("it meets no type");
    assert!(keyspace.is_partial(), "other databases hold a part too");
}

#[test]
fn log_and_snapshot_say_whom_the_shard_follows() {
    let apply = |keyspace: &mut Keyspace, effect: Effect<'_>| {
        let mut encoder = EffectEncoder::new(0);
        encoder.push(DatabaseId(0), b"", &effect);
        keyspace
            .apply_payload(encoder.payload(), NOW, &mut Interest::default())
            .expect("the effect fits");
    };
    let mut keyspace = bench_of(10).engine.keyspace;
    assert_eq!(taken(&mut keyspace).replica_of(), &ReplicaOf::Unset, "nothing was said");
    assert_eq!(taken(&mut keyspace).master(), None);
    apply(&mut keyspace, Effect::ReplicaOf { host: "::1", port: 6379 });
    let master = Master::new("::1", 6379);
    let digest = Digest::of_keyspace(&keyspace);
    for kept in [Effect::FlushAll, Effect::TransferBegan, Effect::TransferEnded] {
        let mut loaded = taken(&mut keyspace);
        assert_eq!(Digest::of_keyspace(&loaded), digest);
        apply(&mut loaded, kept);
        assert_eq!(loaded.master(), master.as_ref(), "{kept:?}");
        assert_eq!(taken(&mut loaded).master(), master.as_ref(), "{kept:?}");
    }
    apply(&mut keyspace, Effect::ReplicaOf { host: "other", port: 1 });
    assert_eq!(keyspace.master(), Master::new("other", 1).as_ref());
    apply(&mut keyspace, Effect::TransferBegan);
    apply(&mut keyspace, Effect::ReplicaOfNoOne);
    assert!(!keyspace.is_partial(), "what is here counts from now on");
    assert_eq!(taken(&mut keyspace).replica_of(), &ReplicaOf::NoOne);
    assert_eq!(Digest::of_keyspace(&keyspace), digest, "it is no part of the data");
}

#[test]
fn libraries_of_functions_survive_snapshots_and_what_empties_databases() {
    let apply = |keyspace: &mut Keyspace, effect: Effect<'_>| {
        keyspace.apply(DatabaseId(0), b"", &effect).expect("it fits")
    };
    let mut keyspace = bench_of(3).engine.keyspace;
    apply(&mut keyspace, Effect::FunctionLoad { code: b"#!lua name=a\n1" });
    apply(&mut keyspace, Effect::FunctionLoad { code: b"#!lua name=b\n2" });
    let digest = Digest::of_keyspace(&keyspace);
    let mut loaded = taken(&mut keyspace);
    assert_eq!(Digest::of_keyspace(&loaded), digest);
    assert_eq!(loaded.libraries().len(), 2);
    apply(&mut loaded, Effect::FlushAll);
    apply(&mut loaded, Effect::FunctionDelete { name: b"a" });
    let names: Vec<Vec<u8>> = loaded.libraries().iter().map(|(name, _)| name.to_vec()).collect();
    assert_eq!(names, [b"b"]);
    apply(&mut loaded, Effect::FunctionFlush);
    assert_eq!(Digest::of_keyspace(&taken(&mut loaded)), Digest::default());
    let nameless = Effect::FunctionLoad { code: b"code" };
    assert!(loaded.apply(DatabaseId(0), b"", &nameless).is_err());
}

#[test]
fn a_field_of_our_own_that_is_not_known_or_senseless_is_refused() {
    let mut keyspace = bench_of(1).engine.keyspace;
    keyspace.apply(DatabaseId(0), b"", &Effect::ReplicaOfNoOne).expect("it meets no type");
    let bytes = written(&mut keyspace);
    let refused = |from: &[u8], to: &[u8]| {
        let at = bytes.windows(from.len()).position(|it| it == from).expect("it is there");
        let mut bytes = bytes.clone();
        bytes[at..at + from.len()].copy_from_slice(to);
        let mut fresh = Keyspace::new(Settings::default(), HashKey::fixed(5));
        let keys = bytes.len() as u64;
        let loaded = Loader::of_own_file(&bytes[..], 1, NOW).load(&mut fresh, keys);
        loaded.expect_err("is refused").to_string()
    };
    let why = refused(b"kiln-replicaof", b"kiln-new-field");
    assert!(why.contains("the field kiln-new-field"), "{why}");
    let why = refused(b"no one", b"no-one");
    assert!(why.contains("kiln-replicaof"), "{why}");
}
