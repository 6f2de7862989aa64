//! What is written is read back, and what is damaged is refused.

mod recorded;

use super::{Crc64, RdbError, VERSION};
use crate::digest::Digest;
use crate::effect::Effect;
use crate::keyspace::Keyspace;
use crate::load::Loader;
use crate::save::{checksum, put_database, put_end, put_entry, put_header, put_sizes};
use crate::settings::{EvictionPolicy, Settings};
use crate::testing::{Bench, holdings};
use base::{DatabaseId, HashKey, UnixMillis};

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

pub(crate) fn save(keyspace: &Keyspace) -> Vec<u8> {
    let mut out = Vec::new();
    put_header(&mut out, VERSION, &[("redis-ver", "7.0.15"), ("redis-bits", "64")]);
    for (id, database) in keyspace.databases().filter(|(_, database)| !database.is_empty()) {
        put_database(&mut out, id);
        put_sizes(&mut out, database.len(), database.expiries().len());
        for entry in database.table().iter() {
            put_entry(&mut out, entry, NOW, &keyspace.settings, &keyspace.work);
        }
    }
    put_end(&mut out);
    let mut crc = Crc64::default();
    crc.update(&out);
    out.extend_from_slice(&checksum(crc));
    out
}

fn load(bytes: &[u8]) -> Result<Keyspace, RdbError> {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(99));
    let mut loader = Loader::new(bytes, NOW);
    while !loader.load(&mut keyspace, 3)? {}
    Ok(keyspace)
}

/// The values of three fields, and when these expire.
type Timed<'a> = [(&'a [u8], Option<i64>); 3];

/// One value of each type and encoding.
pub(crate) fn sample() -> Bench {
    let mut bench = Bench::new();
    for line in [
        "SET small 7",
        "SET byte -128",
        "SET short 32767",
        "SET word -2147483648",
        "SET long 9223372036854775807",
        "SET text hello",
        "SET due soon PXAT 1800000000000",
        "RPUSH list a 1 b 2 c 300000",
        "XADD stream 1-1 a 1 b 2",
        "XADD stream 1-2 c 3",
        "XADD stream 5-0 a 4 b 2",
        "XDEL stream 1-2",
        "XGROUP CREATE stream g 0",
        "XREADGROUP GROUP g c STREAMS stream >",
        "XGROUP CREATE none g $ MKSTREAM",
    ] {
        assert!(!bench.run(line).starts_with('-'), "{line}");
    }
    bench.run_words(&[b"SET", b"raw", &[7; 5000]]);
    for _ in 0..100 {
        bench.run_words(&[b"RPUSH", b"nodes", &[b'x'; 700], b"17"]);
    }
    bench.context.database = DatabaseId(9);
    bench.run("SET other database");
    let wide = [b'v'; 100];
    let members: [(&[u8], &[u8]); 7] = [
        (b"integers", b"1"),
        (b"integers", b"-70000"),
        (b"integers", b"3"),
        (b"words", b"a"),
        (b"words", b"17"),
        (b"words", b"b"),
        (b"wide", &wide),
    ];
    for (key, member) in members {
        change(&mut bench, key, &Effect::SetAdd { member });
    }
    let fields: [(&[u8], &[u8], &[u8]); 5] = [
        (b"pack", b"a", b"1"),
        (b"pack", b"2", b"hello"),
        (b"table", b"a", &wide),
        (b"table", b"b", b"12"),
        (b"table", b"3", b""),
    ];
    for (key, field, value) in fields {
        change(&mut bench, key, &Effect::HashSet { field, value, expire_at: None });
    }
    let timed: [(&[u8], Timed<'_>); 2] = [
        (b"a", [(b"1", Some(1_900_000_000_000)), (b"hello", None), (b"", Some(1_800_000_000_000))]),
        (b"b", [(&wide, Some(i64::MAX)), (b"12", Some(1)), (b"", None)]),
    ];
    for (name, fields) in timed {
        let key = [b"timed-", name].concat();
        for ((value, expire_at), field) in fields.into_iter().zip([b"a", b"2", b"c"]) {
            change(&mut bench, &key, &Effect::HashSet { field, value, expire_at });
        }
    }
    let scores: [(&[u8], &[u8], f64); 6] = [
        (b"ranks", b"a", 1.0),
        (b"ranks", b"12", 0.5),
        (b"tree", &wide, f64::INFINITY),
        (b"tree", b"b", -1e300),
        (b"tree", b"7", 0.1),
        (b"tree", b"", 7.0),
    ];
    for (key, member, score) in scores {
        change(&mut bench, key, &Effect::SortedAdd { member, score });
    }
    bench
}

fn change(bench: &mut Bench, key: &[u8], effect: &Effect<'_>) {
    bench.engine.keyspace.apply(DatabaseId(0), key, effect).unwrap();
}

#[test]
fn what_is_written_is_read_back() {
    let bench = sample();
    let bytes = save(&bench.engine.keyspace);
    let loaded = load(&bytes).unwrap();
    assert_eq!(holdings(&loaded), holdings(&bench.engine.keyspace));
    let mut own = Keyspace::new(Settings::default(), HashKey::fixed(98));
    Loader::of_own_file(&bytes[..], 9, NOW).load_all(&mut own).unwrap();
    assert_eq!(holdings(&own), holdings(&bench.engine.keyspace));
    assert!(own.used_bytes() > 0 && loaded.used_bytes() > 0);
    let due = loaded.databases().flat_map(|(_, database)| database.expiries().iter());
    assert_eq!(due.map(|(at, _)| at).collect::<Vec<_>>(), [1_800_000_000_000]);
    let due = loaded.databases().flat_map(|(_, database)| database.field_expiries().iter());
    assert_eq!(due.map(|(at, _)| at).collect::<Vec<_>>(), [1, 1_800_000_000_000]);
}

/// Large sorted sets have it, and small ones that were large.
#[test]
fn minus_zero_is_written_and_read_back() {
    let mut bench = Bench::new();
    let wide = [b'w'; 100];
    let mut add = |key: &[u8], member: &[u8], score: f64| {
        change(&mut bench, key, &Effect::SortedAdd { member, score });
    };
    for number in 0..200 {
        add(b"many", number.to_string().as_bytes(), f64::from(number));
    }
    for number in 0..150 {
        add(b"many", number.to_string().as_bytes(), -0.0);
    }
    add(b"few", &wide, 1.0);
    add(b"few", b"m", -0.0);
    change(&mut bench, b"few", &Effect::SortedRemove { member: &wide });
    let loaded = load(&save(&bench.engine.keyspace)).unwrap();
    assert_eq!(Digest::of_keyspace(&loaded), Digest::of_keyspace(&bench.engine.keyspace));
}

#[test]
fn tables_are_laid_out_for_the_keys_there_are_whatever_the_file_says() {
    let mut bench = Bench::new();
    for key in 0..1000 {
        bench.run(&format!("SET key:{key} {key}"));
    }
    let mut bytes = Vec::new();
    put_header(&mut bytes, VERSION, &[]);
    for database in [0, 3, 5] {
        put_database(&mut bytes, DatabaseId(database));
        put_sizes(&mut bytes, usize::MAX, usize::MAX);
    }
    put_database(&mut bytes, DatabaseId(0));
    for entry in bench.engine.keyspace.database(DatabaseId(0)).table().iter() {
        let Keyspace { settings, work, .. } = &bench.engine.keyspace;
        put_entry(&mut bytes, entry, NOW, settings, work);
    }
    put_end(&mut bytes);
    bytes.extend_from_slice(&[0; 8]);
    let mut known = Keyspace::new(Settings::default(), HashKey::fixed(98));
    Loader::of_own_file(&bytes[..], 1000, NOW).load_all(&mut known).unwrap();
    let grown = load(&bytes).unwrap();
    assert_eq!(holdings(&known), holdings(&grown));
    let table =
        |keyspace: &Keyspace, id| keyspace.database(DatabaseId(id)).table().allocated_bytes();
    assert!(table(&known, 0) <= 14_000 && table(&grown, 0) <= 14_000);
    assert_eq!(table(&known, 3) + table(&known, 5), 0);
}

#[test]
fn every_damaged_byte_is_noticed() {
    let mut bench = Bench::new();
    bench.run("SET text hello PXAT 1800000000000");
    bench.run("RPUSH list a 1 b 2");
    let bytes = save(&bench.engine.keyspace);
    for at in 0..bytes.len() {
        for mask in [1, 0x80] {
            let mut damaged = bytes.clone();
            damaged[at] ^= mask;
            assert!(load(&damaged).is_err(), "byte {at}");
        }
        assert!(load(&bytes[..at]).is_err(), "cut at {at}");
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(load(&longer).is_err());
}

#[test]
fn access_words_survive_as_far_as_the_format_carries_them() {
    for policy in [EvictionPolicy::AllKeysLru, EvictionPolicy::AllKeysLfu] {
        let settings = Settings { maxmemory_policy: policy, ..Settings::default() };
        let mut bench = Bench::with_settings(settings.clone());
        bench.run("SET a 1");
        let mut keyspace = Keyspace::new(settings, HashKey::fixed(5));
        let later = UnixMillis(NOW.0 + 60_000);
        let mut out = Vec::new();
        put_header(&mut out, VERSION, &[]);
        for entry in bench.engine.keyspace.database(DatabaseId(0)).table().iter() {
            let Keyspace { settings, work, .. } = &bench.engine.keyspace;
            put_entry(&mut out, entry, later, settings, work);
        }
        put_end(&mut out);
        out.extend_from_slice(&[0; 8]);
        Loader::new(&out[..], later).load_all(&mut keyspace).unwrap();
        let entry = keyspace.database(DatabaseId(0)).table().iter().next().unwrap();
        match policy {
            EvictionPolicy::AllKeysLru => {
                assert_eq!(crate::access::idle_seconds(entry.access(), later), 60);
            }
            _ => {
                assert_eq!(crate::access::lfu_counter(entry.access(), later, &keyspace.settings), 4)
            }
        }
    }
}

#[test]
fn a_file_of_redis_is_read() {
    // Written by redis-server 7.0.15: SET n 5, SET z <100 times "a">, RPUSH l a b.
    let bytes = include_bytes!("tests/redis-7.0.15.rdb");
    let keyspace = load(bytes).unwrap();
    let mut bench = Bench::new();
    bench.run("SET n 5");
    bench.run_words(&[b"SET", b"z", &[b'a'; 100]]);
    bench.run("RPUSH l a b");
    assert_eq!(holdings(&keyspace), holdings(&bench.engine.keyspace));
}
