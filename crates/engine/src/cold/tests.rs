//! Values that leave memory and come back: none is lost, changed, or kept where it should not be.

mod guests;
mod long;

use super::*;
use crate::digest::Digest;
use crate::effect::{DeleteReason, Effect, End};
use crate::settings::Settings;
use crate::testing::{ALL_COLD, Bench, MemoryFile, holdings};
use crate::unit::Overdue;
use crate::value::hash::next_expiry;
use base::{DatabaseId, HashKey, UnixMillis};

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

fn keyspace(limits: ColdLimits) -> (Keyspace, MemoryFile) {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
    keyspace.now = NOW;
    let file = MemoryFile::default();
    file.serve(&mut keyspace, limits);
    (keyspace, file)
}

fn set(keyspace: &mut Keyspace, database: u32, key: &str, value: &[u8]) {
    let effect = Effect::SetString { value, expire_at: None };
    keyspace.apply(DatabaseId(database), key.as_bytes(), &effect).expect("it is a string");
}

fn delete(keyspace: &mut Keyspace, database: u32, key: &str) {
    let effect = Effect::Delete { reason: DeleteReason::Command };
    keyspace.apply(DatabaseId(database), key.as_bytes(), &effect).expect("any key goes");
}

/// Asserts that what the store counts as live is what keys have there.
fn check_places(keyspace: &Keyspace) {
    let entries = keyspace.databases().flat_map(|(_, database)| database.table().iter());
    let places: Vec<Place> = entries.filter_map(place_of).filter_map(Place::from_bits).collect();
    let counted: usize = keyspace.databases().map(|(_, database)| database.placed).sum();
    assert_eq!(counted, places.len());
    keyspace.cold().expect("it has a store").tier.check(places.into_iter());
    for (_, database) in keyspace.databases() {
        let cold = database.table().iter().filter(|entry| entry.is_cold());
        assert_eq!(database.cold_entry_bytes, cold.map(entry_bytes).sum::<usize>());
    }
}

fn spill_all(keyspace: &mut Keyspace, file: &MemoryFile) {
    keyspace.spill_all(NOW);
    file.write(keyspace);
    check_places(keyspace);
}

#[test]
fn every_type_comes_back_as_it_went() {
    let mut bench = Bench::new();
    let long = "x".repeat(70);
    for line in [
        format!("SET text {long}"),
        format!("APPEND grown {long}"),
        format!("RPUSH list a b {long} 4"),
        format!("HSET pack f {long} g 2"),
        "SADD integers 1 2 3 4 5".to_owned(),
        format!("SADD set a b {long}"),
        format!("ZADD sorted 1 a 2 {long}"),
        format!("HSET timed f {} g 2", &long[..60]),
        "HPEXPIREAT timed 1800000000000 FIELDS 1 g".to_owned(),
        format!("XADD stream 1-1 f {long}"),
        "XGROUP CREATE stream g 0".to_owned(),
        "XREADGROUP GROUP g c COUNT 1 STREAMS stream >".to_owned(),
    ] {
        bench.run(&line);
    }
    // Tables that are as small as what has another encoding otherwise.
    for number in 0..600 {
        bench.run(&format!("HSET table f{number} {number}"));
        bench.run(&format!(
            "HSETEX expiring PXAT 18000000000{number:02} FIELDS 1 f{number} {number}"
        ));
        bench.run(&format!("ZADD tree {number} m{number}"));
        bench.run(&format!("RPUSH long {long}{number}"));
    }
    for number in 5..600 {
        bench.run(&format!("HDEL table f{number}"));
        bench.run(&format!("HDEL expiring f{number}"));
        bench.run(&format!("ZREM tree m{number}"));
    }
    bench.run("EXPIRE list 100");
    let keyspace = &mut bench.engine.keyspace;
    let file = MemoryFile::default();
    file.serve(keyspace, ColdLimits { value_bytes_max: 256 << 10, ..ALL_COLD });
    let (before, digest) = (holdings(keyspace), Digest::of_keyspace(keyspace));
    let used = keyspace.used_bytes();
    for _ in 0..3 {
        spill_all(keyspace, &file);
        assert_eq!(keyspace.cold_keys(), keyspace.len(), "all of them go");
        assert_eq!(holdings(keyspace), before);
        assert_eq!(Digest::of_keyspace(keyspace), digest);
        let keys: Vec<Vec<u8>> = before.keys().map(|(_, key)| key.clone()).collect();
        for key in &keys {
            keyspace.fetch_now(DatabaseId(0), key).expect("it is there");
        }
        assert_eq!(keyspace.cold_keys(), 0);
        check_places(keyspace);
        assert_eq!(holdings(keyspace), before);
    }
    let cold = keyspace.cold().expect("it has a store");
    let written = cold.statistics.spilled_by_writing.get();
    assert_eq!(written, before.len() as u64, "what did not change is written once");
    assert!(used > 0 && cold.failure().is_none());
}

#[test]
fn a_few_keys_that_have_nearly_all_the_bytes_do_not_keep_them_in_memory() {
    let (mut keyspace, file) = keyspace(ColdLimits { value_bytes_max: 256 << 10, ..ALL_COLD });
    for number in 0..2000 {
        set(&mut keyspace, 0, &format!("small{number}"), &[1; 100]);
    }
    let large: Vec<String> = (0..40).map(|number| format!("large{number}")).collect();
    for key in &large {
        set(&mut keyspace, 0, key, &[2; 50_000]);
    }
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), keyspace.len());
    keyspace.settings.maxmemory = keyspace.used_bytes() as u64 + 800_000;
    for key in &large {
        keyspace.fetch_now(DatabaseId(0), key.as_bytes()).expect("it is there");
        // It is used again and again, so it is no guest.
        for _ in 0..3 {
            let entry = keyspace
                .database(DatabaseId(0))
                .find(keyspace.hash(key.as_bytes()), key.as_bytes());
            keyspace.touch(entry.expect("it is there"), NOW);
        }
    }
    let mut tries = 0;
    while keyspace.bytes_over_limit(0) > 0 {
        let spilled = keyspace.spill(keyspace.bytes_over_limit(0), 10_000, NOW);
        assert_ne!(spilled, spill::Spilled::Nothing, "it takes more than is allowed");
        file.write(&mut keyspace);
        tries += 1;
        assert!(tries < 1000, "nothing goes");
    }
    check_places(&keyspace);
}

#[test]
fn fields_of_hashes_that_are_not_in_memory_expire() {
    let mut bench = Bench::new();
    let start = bench.context.now;
    let long = "x".repeat(60);
    for number in 0..40 {
        bench.run(&format!("HSET key{number} f {long} g {long}"));
        bench.run(&format!("HPEXPIRE key{number} {} FIELDS 1 f", 10 + number));
    }
    bench.run(&format!("HSETEX gone PX 10 FIELDS 2 f {long} g {long}"));
    let file = MemoryFile::default();
    file.serve(&mut bench.engine.keyspace, ALL_COLD);
    spill_all(&mut bench.engine.keyspace, &file);
    assert_eq!(bench.engine.keyspace.cold_keys(), 41);
    assert_eq!(bench.run("HLEN key39"), ":2");
    assert_eq!(bench.run("OBJECT ENCODING key39"), "$10 listpackex");
    assert_eq!(bench.engine.keyspace.cold_keys(), 41, "what is known needs no value");
    // Nobody has deleted it yet.
    bench.context.now = UnixMillis(start.0 + 20);
    bench.context.overdue = Overdue::Hidden;
    assert_eq!(bench.run("EXISTS gone"), ":0");
    assert_eq!(bench.run("HLEN key0"), ":1");
    bench.context.overdue = Overdue::Deleted;
    let now = UnixMillis(start.0 + 30);
    bench.unit.clear();
    while bench.engine.expire_due(now, 7, &mut bench.unit, &mut bench.interest) {}
    let keyspace = &bench.engine.keyspace;
    assert!(!keyspace.exists(DatabaseId(0), b"gone"));
    assert_eq!(keyspace.database(DatabaseId(0)).field_expiries().len(), 19);
    let counts: Vec<usize> =
        holdings(keyspace).into_values().map(|held| held.contents.len()).collect();
    let most = counts.iter().max().expect("there are some");
    assert_eq!(counts.iter().filter(|count| *count < most).count(), 21, "each has a field less");
    let database = keyspace.database(DatabaseId(0));
    let mut timed: Vec<i64> = database.table().iter().filter_map(next_expiry).collect();
    timed.sort_unstable();
    assert!(database.field_expiries().iter().map(|(at, _)| at).eq(timed));
    assert_eq!(keyspace.cold_keys(), 19, "the others were not read");
    check_places(keyspace);
}

#[test]
fn lengths_types_and_encodings_are_known_without_the_value() {
    let mut bench = Bench::new();
    bench.run(&format!("SET text {}", "x".repeat(300)));
    bench.run("RPUSH list a b c");
    bench.run("HSET hash f v g w");
    bench.run("SADD set a b");
    bench.run("ZADD sorted 1 a");
    bench.run("XADD stream 1-1 f v");
    let file = MemoryFile::default();
    file.serve(&mut bench.engine.keyspace, ALL_COLD);
    spill_all(&mut bench.engine.keyspace, &file);
    // Whatever is read now is not what was written.
    file.bytes.borrow_mut().fill(0);
    for (line, reply) in [
        ("STRLEN text", ":300"),
        ("LLEN list", ":3"),
        ("HLEN hash", ":2"),
        ("SCARD set", ":2"),
        ("ZCARD sorted", ":1"),
        ("XLEN stream", ":1"),
        ("LLEN text", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("TYPE sorted", "+zset"),
        ("OBJECT ENCODING hash", "$8 listpack"),
        ("EXISTS text list none", ":2"),
        ("EXPIRE text 10", ":1"),
        ("TTL text", ":10"),
        ("PERSIST text", ":1"),
        ("MOVE list 1", ":1"),
        ("SET text new", "+OK"),
        ("DEL set sorted stream hash", ":4"),
    ] {
        let keyspace = &bench.engine.keyspace;
        assert_eq!(keyspace.cold_failure(), None);
        // The twin of these tests is on the other side of a log that it has not seen here.
        assert_eq!(bench.run_alone(line), reply, "{line}");
    }
    assert_eq!(bench.engine.keyspace.cold_failure(), None);
    assert_eq!(bench.engine.keyspace.cold_keys(), 1, "the list that was moved");
    check_places(&bench.engine.keyspace);
}

#[test]
fn a_lost_value_is_noted_and_never_answered() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    set(&mut keyspace, 0, "a", &[b'a'; 100]);
    spill_all(&mut keyspace, &file);
    for at in [0, 40, 100] {
        file.bytes.borrow_mut()[at] ^= 1;
    }
    assert!(keyspace.fetch_now(DatabaseId(0), b"a").is_err());
    assert!(keyspace.cold_failure().is_some());
    assert_eq!(keyspace.cold_keys(), 1, "it is not taken for absent");
    let append = Effect::Append { bytes: b"x" };
    assert!(keyspace.apply(DatabaseId(0), b"a", &append).is_err());
}

#[test]
fn what_changes_leaves_no_copy_and_what_goes_leaves_no_place() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    let value = [b'v'; 200];
    for number in 0..100 {
        set(&mut keyspace, number % 2, &format!("key{number}"), &value);
    }
    spill_all(&mut keyspace, &file);
    for number in 0..50 {
        let key = format!("key{number}");
        keyspace.fetch_now(DatabaseId(number % 2), key.as_bytes()).expect("it is there");
    }
    check_places(&keyspace);
    for number in 0..100 {
        let (database, key) = (DatabaseId(number % 2), format!("key{number}"));
        let mut apply = |effect| {
            keyspace.apply(database, key.as_bytes(), &effect).expect("they are strings");
        };
        match number % 10 {
            0 => apply(Effect::Append { bytes: b"x" }),
            1 => apply(Effect::SetString { value: &[b'w'; 200], expire_at: None }),
            2 => apply(Effect::SetString { value: b"1", expire_at: None }),
            3 => apply(Effect::SetInteger { value: 5 }),
            4 => apply(Effect::Delete { reason: DeleteReason::Command }),
            5 => apply(Effect::Expire { at: Some(NOW.0 + 1000) }),
            6 => apply(Effect::Rename { to_database: DatabaseId(3), to: key.as_bytes() }),
            7 => apply(Effect::Rename { to_database: database, to: b"other" }),
            8 => apply(Effect::Copy { to_database: DatabaseId(4), to: key.as_bytes() }),
            _ => apply(Effect::SetRange { offset: 3, bytes: b"xyz" }),
        }
        check_places(&keyspace);
    }
    let digest = Digest::of_keyspace(&keyspace);
    spill_all(&mut keyspace, &file);
    assert_eq!(Digest::of_keyspace(&keyspace), digest);
    for id in 0..16 {
        let flush = Effect::FlushDatabase;
        keyspace.apply(DatabaseId(id), b"", &flush).expect("it is about no type");
        check_flushed(&mut keyspace);
    }
    let cold = keyspace.cold().expect("it has a store");
    assert_eq!(cold.tier.figures().live_records, 0);
}

#[test]
fn databases_that_are_flushed_together_leave_nothing_to_be_given_back() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    for (database, key) in (0..3).flat_map(|database| (0..50).map(move |key| (database, key))) {
        set(&mut keyspace, database, &format!("key{key}"), &[1; 100]);
    }
    spill_all(&mut keyspace, &file);
    keyspace.apply(DatabaseId(0), b"", &Effect::FlushAll).expect("it is no type's");
    assert!(!keyspace.has_flushed());
    check_places(&keyspace);
}

#[test]
fn a_flushed_database_counts_as_memory_until_its_places_are_given_back() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    for key in 0..500 {
        set(&mut keyspace, 0, &format!("key{key}"), &[1; 100]);
    }
    set(&mut keyspace, 1, "another", &[1; 100]);
    spill_all(&mut keyspace, &file);
    let (before, its) = (keyspace.used_bytes(), keyspace.database(DatabaseId(0)).used_bytes());
    keyspace.apply(DatabaseId(0), b"", &Effect::FlushDatabase).expect("it is no type's");
    assert!(keyspace.has_flushed() && keyspace.used_bytes() >= before);
    check_flushed(&mut keyspace);
    assert!(keyspace.used_bytes() < before - its / 2);
}

/// Gives the places of flushed databases back, bit by bit, and compares.
fn check_flushed(keyspace: &mut Keyspace) {
    let mut steps = 0;
    while keyspace.release_flushed(7) {
        steps += 1;
        assert!(steps < 1000, "it comes to an end");
    }
    check_places(keyspace);
}

#[test]
fn the_hand_takes_what_was_idle_for_longest_and_nothing_that_is_pinned() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..2000 {
        keyspace.now = UnixMillis(NOW.0 + if number % 2 == 0 { 0 } else { 500_000 });
        set(&mut keyspace, 0, &format!("key{number}"), &[b'v'; 500]);
    }
    let pinned = keyspace.hash(b"key0");
    keyspace.cold_mut().expect("it has a store").pin(pinned);
    let (used, now) = (keyspace.used_bytes(), UnixMillis(NOW.0 + 600_000));
    // A third of what is left is taken, as a sample tells: of more, some were in use lately.
    let wanted = used - 320 * 495;
    while keyspace.used_bytes() > wanted {
        let spilled = keyspace.spill(keyspace.used_bytes() - wanted, 64, now);
        assert!(matches!(spilled, Spilled::Enough | Spilled::More), "{spilled:?}");
        file.write(&mut keyspace);
    }
    let is_cold = |key: String| keyspace.cold_place(DatabaseId(0), key.as_bytes()).is_some();
    let recent = (0..2000).filter(|n| n % 2 == 1 && is_cold(format!("key{n}"))).count();
    let idle = (0..2000).filter(|n| n % 2 == 0 && is_cold(format!("key{n}"))).count();
    assert!(idle > 300 && recent == 0, "{idle} idle and {recent} recent ones went");
    assert!(!is_cold("key0".into()));
    check_places(&keyspace);
}

#[test]
fn what_goes_by_a_hash_is_no_other_key_that_shares_the_table_s_part_of_it() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    let long: Vec<String> = (0..400).map(|number| format!("long{number}")).collect();
    for key in &long {
        set(&mut keyspace, 0, key, &[1; 100]);
    }
    let is_shared = |hash: KeyHash| {
        let table = keyspace.database(DatabaseId(0)).table();
        table.find_likely(hash, |_| true).is_some()
    };
    let hashes = (0_u32..).map(|number| keyspace.hash(format!("short{number}").as_bytes()));
    let alike = hashes.into_iter().find(|hash| is_shared(*hash)).expect("there are many");
    keyspace.spill_keys(&[alike], NOW);
    assert_eq!(keyspace.cold_keys(), 0, "no key has this hash");
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), long.len());
}

#[test]
fn where_nothing_may_go_that_is_said() {
    let (mut keyspace, _) = keyspace(ColdLimits::default());
    assert_eq!(keyspace.spill(1, 64, NOW), Spilled::Nothing);
    for number in 0..500 {
        set(&mut keyspace, 0, &format!("key{number}"), b"short");
    }
    let mut spilled = Spilled::More;
    let mut steps = 0;
    while spilled == Spilled::More {
        spilled = keyspace.spill(1000, 64, NOW);
        steps += 1;
        assert!(steps < 100, "it comes to an end");
    }
    assert_eq!(spilled, Spilled::Nothing);
    // Something that may go is found all the same.
    set(&mut keyspace, 0, "long", &[b'v'; 5000]);
    let spilled = (0..10).map(|_| keyspace.spill(1000, 64, NOW)).find(|it| *it == Spilled::Enough);
    assert!(spilled.is_some());
}

#[test]
fn memory_in_which_next_to_nothing_may_go_is_searched_no_further_than_that_shows() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..20_000 {
        set(&mut keyspace, 0, &format!("key{number}"), b"a short value");
    }
    let spilled =
        |keyspace: &Keyspace| keyspace.cold().expect("it has a store").statistics.spilled.get();
    let mut came = 0;
    let mut outcomes = Vec::new();
    for turn in 0..2000 {
        // One that may go comes now and then, and is no reason to look for more.
        if turn % 40 == 0 {
            set(&mut keyspace, 0, &format!("long{came}"), &[7; 500]);
            came += 1;
        }
        let over = keyspace.used_bytes();
        outcomes.push(keyspace.spill(over, 64, NOW));
        file.write(&mut keyspace);
    }
    let more = outcomes.iter().filter(|it| **it == Spilled::More).count();
    assert!(more <= 60, "{more} of 2000 times it was to be called again");
    assert!(spilled(&keyspace) > came / 2, "{} of {came} went", spilled(&keyspace));
    // And when there is something, it goes at once.
    for number in 0..5000 {
        set(&mut keyspace, 0, &format!("new{number}"), &[7; 500]);
    }
    let before = keyspace.cold_keys();
    for _ in 0..200 {
        keyspace.spill(1 << 20, 64, NOW);
        file.write(&mut keyspace);
    }
    assert!(keyspace.cold_keys() > before + 1000, "{} from {before}", keyspace.cold_keys());
}

/// Spills until so many keys are cold, as a server does that is over its limit, turn by turn.
fn spill_until(keyspace: &mut Keyspace, file: &MemoryFile, cold_keys: usize) {
    let mut turns = 0;
    while keyspace.cold_keys() < cold_keys {
        if let Some(cold) = keyspace.cold_mut() {
            cold.encoded_bytes_left = 128 << 10;
        }
        let spilled = keyspace.spill(1 << 30, 64, NOW);
        let is_over = keyspace.cold_keys() >= cold_keys || spilled != Spilled::Nothing;
        assert!(is_over, "{} of {cold_keys} went", keyspace.cold_keys());
        file.write(keyspace);
        turns += 1;
        assert!(turns < 100_000, "it goes on and on: {}", keyspace.cold_keys());
    }
}

#[test]
fn a_few_long_values_among_many_short_ones_all_go() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..100_000 {
        set(&mut keyspace, 0, &format!("short{number}"), b"a short value");
    }
    for number in 0..100 {
        set(&mut keyspace, 0, &format!("long{number}"), &[7; 100_000]);
    }
    // Behind that there is next to nothing to be had.
    spill_until(&mut keyspace, &file, 80);
}

#[test]
fn long_values_go_on_leaving_where_nothing_else_may() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..500 {
        set(&mut keyspace, 0, &format!("short{number}"), b"a short value");
    }
    for number in 0..50 {
        set(&mut keyspace, 0, &format!("long{number}"), &[number; 100_000]);
        spill_until(&mut keyspace, &file, usize::from(number) + 1);
    }
}

#[test]
fn a_database_in_use_does_not_hide_what_is_idle_in_another() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..20_000 {
        set(&mut keyspace, 0, &format!("idle{number}"), &[7; 200]);
    }
    for number in 0..18_000 {
        set(&mut keyspace, 1, &format!("used{number}"), &[7; 200]);
    }
    let earlier = UnixMillis(NOW.0 - 1_000_000);
    for (id, database) in keyspace.databases() {
        database.table().iter().for_each(|entry| {
            keyspace.touch(entry, if id.0 == 0 { earlier } else { NOW });
        });
    }
    spill_until(&mut keyspace, &file, 15_000);
    let idle = keyspace.database(DatabaseId(0)).cold_keys();
    assert!(idle > 12_000, "{idle} of them were idle");
}

#[test]
fn a_few_large_values_are_found_among_many_that_are_not_in_memory() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..40_000 {
        set(&mut keyspace, 0, &format!("cold{number}"), &[7; 100]);
    }
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), 40_000);
    for number in 0..40 {
        set(&mut keyspace, 0, &format!("warm{number}"), &[7; 20_000]);
    }
    spill_until(&mut keyspace, &file, 40_040);
}

#[test]
fn a_long_value_that_changes_all_the_time_is_not_all_that_is_tried() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    set(&mut keyspace, 0, "hot", &vec![7; 1 << 20]);
    for number in 0..2000 {
        set(&mut keyspace, 0, &format!("short{number}"), b"a short value");
    }
    let mut behind = 0;
    for turn in 0..1000 {
        if let Some(cold) = keyspace.cold_mut() {
            cold.encoded_bytes_left = 128 << 10;
        }
        let spilled = keyspace.spill(1 << 30, 64, NOW);
        behind += usize::from(spilled == Spilled::Behind);
        let effect = Effect::SetRange { offset: 0, bytes: &[turn as u8] };
        keyspace.apply(DatabaseId(0), b"hot", &effect).expect("it is a string");
        file.write(&mut keyspace);
    }
    assert!(behind < 100, "{behind} of 1000 times others were to wait for it");
}

#[test]
fn what_is_idle_and_pinned_does_not_keep_the_others_from_going() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..100 {
        set(&mut keyspace, 0, &format!("key{number}"), &[7; 500]);
    }
    let earlier = UnixMillis(NOW.0 - 1_000_000);
    for number in 0..100 {
        let key = format!("key{number}");
        let hash = keyspace.hash(key.as_bytes());
        let entry = keyspace.database(DatabaseId(0)).find(hash, key.as_bytes());
        let is_pinned = number % 2 == 0;
        keyspace.touch(entry.expect("it is there"), if is_pinned { earlier } else { NOW });
        if is_pinned {
            keyspace.cold_mut().expect("it has a store").pin(hash);
        }
    }
    keyspace.cold_mut().expect("it has a store").set_own_pins(50);
    let mut steps = 0;
    while keyspace.spill(1 << 20, 64, NOW) == Spilled::More {
        file.write(&mut keyspace);
        steps += 1;
        assert!(steps < 100, "it goes on and on");
    }
    assert_eq!(keyspace.cold_keys(), 50);
}

#[test]
fn guests_leave_a_few_at_a_time_and_no_more_than_need_to() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    for number in 0..5000 {
        set(&mut keyspace, 0, &format!("key{number}"), &[7; 500]);
    }
    spill_all(&mut keyspace, &file);
    for number in 0..5000 {
        keyspace.fetch_now(DatabaseId(0), format!("key{number}").as_bytes()).expect("it is there");
    }
    assert_eq!(keyspace.cold_keys(), 0);
    let spilled = keyspace.spill(10_000, 64, NOW);
    assert_eq!(spilled, Spilled::Enough);
    assert!((10..40).contains(&keyspace.cold_keys()), "{}", keyspace.cold_keys());
    let before = keyspace.cold_keys();
    assert_eq!(keyspace.spill(1 << 20, 64, NOW), Spilled::More);
    assert!(keyspace.cold_keys() <= before + 64, "one step is short");
    check_places(&keyspace);
}

#[test]
fn a_key_of_the_same_name_elsewhere_does_not_keep_a_long_value_from_leaving() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    let long = vec![7; 5 << 20];
    set(&mut keyspace, 0, "key", &long);
    for turn in 0..200 {
        keyspace.spill(1 << 20, 64, NOW);
        if let Some(cold) = keyspace.cold_mut() {
            cold.encoded_bytes_left = 128 << 10;
        }
        set(&mut keyspace, 1, "key", &[turn; 10]);
        file.write(&mut keyspace);
    }
    assert_eq!(keyspace.cold_keys(), 1);
    assert_eq!(keyspace.cold().expect("it has a store").statistics.encoded_in_vain.get(), 0);
}

#[test]
fn a_guest_that_is_not_used_again_goes_first_and_is_not_written_again() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    for number in 0..100 {
        set(&mut keyspace, 0, &format!("key{number}"), &[b'v'; 500]);
    }
    spill_all(&mut keyspace, &file);
    for key in ["key1", "key2", "key3"] {
        keyspace.fetch_now(DatabaseId(0), key.as_bytes()).expect("it is there");
    }
    let entry = keyspace.database(DatabaseId(0)).find(keyspace.hash(b"key2"), b"key2");
    let entry = entry.expect("it is there");
    keyspace.touch(entry, NOW);
    keyspace.touch(entry, NOW);
    keyspace.dismiss_guests(0);
    let is_cold = |key: &str| keyspace.cold_place(DatabaseId(0), key.as_bytes()).is_some();
    assert!(is_cold("key1") && !is_cold("key2") && is_cold("key3"));
    let cold = keyspace.cold().expect("it has a store");
    assert_eq!(cold.statistics.spilled_by_writing.get(), 100);
    check_places(&keyspace);
}

#[test]
fn a_snapshot_has_cold_values_as_they_were_when_it_began() {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    let push = |keyspace: &mut Keyspace, key: &str| {
        for _ in 0..20 {
            let effect = Effect::ListPush { end: End::Tail, value: &[b'e'; 20] };
            keyspace.apply(DatabaseId(0), key.as_bytes(), &effect).expect("it is a list");
        }
    };
    for number in 0..300 {
        set(&mut keyspace, number % 3, &format!("key{number}"), &[b'v'; 300]);
        push(&mut keyspace, &format!("list{number}"));
    }
    spill_all(&mut keyspace, &file);
    for number in 0..40 {
        keyspace.fetch_now(DatabaseId(0), format!("list{number}").as_bytes()).expect("it is there");
    }
    let digest = Digest::of_keyspace(&keyspace);
    keyspace.begin_snapshot(NOW);
    let mut bytes = Vec::new();
    for step in 0.. {
        let is_done = keyspace.walk_snapshot(16, 4096);
        keyspace.read_snapshot_values();
        bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
        if is_done {
            break;
        }
        // Everything goes on beside it.
        delete(&mut keyspace, step % 3, &format!("key{step}"));
        push(&mut keyspace, &format!("list{}", step * 7 % 300));
        set(&mut keyspace, 0, &format!("new{step}"), &[b'n'; 100]);
        if step == 20 {
            keyspace.apply(DatabaseId(1), b"", &Effect::FlushDatabase).expect("it has no type");
        }
        if step % 5 == 0 {
            keyspace.spill_all(NOW);
            file.write(&mut keyspace);
        }
    }
    keyspace.end_snapshot();
    check_flushed(&mut keyspace);
    let mut crc = crate::rdb::Crc64::default();
    crc.update(&bytes);
    bytes.extend_from_slice(&crate::save::checksum(crc));
    let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(8));
    crate::load::Loader::new(&bytes[..], NOW).load_all(&mut loaded).expect("it is whole");
    assert_eq!(Digest::of_keyspace(&loaded), digest);
    let cold = keyspace.cold().expect("it has a store");
    assert_eq!(cold.tier.figures().held_bytes, 0);
}

#[test]
fn a_snapshot_lets_space_go_as_it_reads_what_lay_there() {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let limits = ColdLimits { changed_bytes: 64 << 10, ..ALL_COLD };
    let file = MemoryFile::default();
    keyspace.open_cold(ColdStore::new(Tier::new(SMALL, 1 << 30), Box::new(file.clone()), limits));
    let mut keys: Vec<String> = (0..3000).map(|number| format!("key{number}")).collect();
    for key in &keys {
        set(&mut keyspace, 0, key, &[7; 1000]);
        keyspace.spill_all(NOW);
        file.write(&mut keyspace);
    }
    keys.sort_by_key(|key| keyspace.cold_place(DatabaseId(0), key.as_bytes()).map(Place::bits));
    keyspace.begin_snapshot(NOW);
    let mut held = Vec::new();
    for key in &keys {
        delete(&mut keyspace, 0, key);
        // There is always some that was noted and is not read yet.
        if keyspace.snapshot_is_overfull() {
            keyspace.read_snapshot_window();
            held.push(keyspace.cold().expect("it has a store").tier.figures().held_bytes >> 16);
        }
    }
    assert!(held.len() > 20, "{held:?}");
    // In the end many become empty at once.
    let most = held[..held.len() / 4 * 3].iter().max();
    assert!(most <= Some(&4), "{held:?}");
}

#[test]
fn there_is_an_end_to_looking_for_values_if_none_fits_into_a_record() {
    let limits = tier::Limits::default();
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let short = tier::Limits { record_bytes_max: limits.packed_bytes_max, ..limits };
    let tier = Tier::new(short, 1 << 30);
    let source = Box::new(MemoryFile::default());
    keyspace.open_cold(ColdStore::new(tier, source, ColdLimits::default()));
    for number in 0..20 {
        set(&mut keyspace, 0, &format!("long{number}"), &[7; 20_000]);
    }
    let spills = (0..100).map(|_| keyspace.spill(1000, 64, NOW));
    assert_eq!(spills.last(), Some(Spilled::Nothing), "others must be told that memory is short");
    set(&mut keyspace, 0, "short", &[7; 2000]);
    let spills = (0..100).map(|_| keyspace.spill(1000, 64, NOW));
    assert!(spills.into_iter().any(|spilled| spilled == Spilled::Enough), "this one can go");
}

/// A tier of short records.
const SMALL: tier::Limits = tier::Limits {
    segment_bytes: 64 << 10,
    piece_bytes: 8 << 10,
    packed_bytes_max: 4 << 10,
    record_bytes_max: 8 << 10,
    buffered_bytes_max: 32 << 10,
    ..tier::Limits::DEFAULT
};

/// A keyspace of 400 values of 1000 bytes, whose store has room for few that are not written.
fn with_small_buffers() -> (Keyspace, MemoryFile) {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let file = MemoryFile::default();
    let tier = Tier::new(SMALL, 1 << 30);
    keyspace.open_cold(ColdStore::new(tier, Box::new(file.clone()), ColdLimits::default()));
    for number in 0..400 {
        set(&mut keyspace, 0, &format!("key{number}"), &[7; 1000]);
    }
    (keyspace, file)
}

#[test]
fn a_store_that_is_behind_does_not_count_as_full_however_often_it_is_asked() {
    let (mut keyspace, file) = with_small_buffers();
    let spill = |keyspace: &mut Keyspace| keyspace.spill(100_000, 64, NOW);
    for _ in 0..5 {
        let before = keyspace.cold_keys();
        let spills: Vec<Spilled> = (0..500).map(|_| spill(&mut keyspace)).collect();
        assert_eq!(spills[499], Spilled::Behind);
        assert!(!spills.contains(&Spilled::Nothing));
        assert!(keyspace.cold_keys() > before, "what was written made room");
        file.write(&mut keyspace);
    }
    check_places(&keyspace);
}

#[test]
fn what_has_a_copy_leaves_though_the_store_takes_nothing() {
    let (mut keyspace, file) = with_small_buffers();
    for _ in 0..100 {
        keyspace.spill(400_000, 64, NOW);
        file.write(&mut keyspace);
    }
    // Used again and again: they are no guests.
    for number in 0..400 {
        let key = format!("key{number}");
        keyspace.fetch_now(DatabaseId(0), key.as_bytes()).expect("it is there");
        let entry =
            keyspace.database(DatabaseId(0)).find(keyspace.hash(key.as_bytes()), key.as_bytes());
        let entry = entry.expect("it is there");
        (0..3).for_each(|_| keyspace.touch(entry, NOW));
    }
    assert_eq!(keyspace.cold_keys(), 0);
    for number in 0..200 {
        set(&mut keyspace, 0, &format!("new{number}"), &[7; 1000]);
    }
    let (written, used) = (
        |keyspace: &Keyspace| {
            keyspace.cold().expect("it has a store").statistics.spilled_by_writing.get()
        },
        keyspace.used_bytes(),
    );
    while keyspace.spill(400_000, 64, NOW) != Spilled::Behind {}
    let before = written(&keyspace);
    for _ in 0..20 {
        keyspace.spill(400_000, 64, NOW);
    }
    assert_eq!(written(&keyspace), before);
    assert!(keyspace.used_bytes() < used - 250_000, "{} of {used}", keyspace.used_bytes());
    check_places(&keyspace);
}

#[test]
fn what_is_pinned_is_waited_for() {
    let (mut keyspace, file) = with_small_buffers();
    let hashes: Vec<KeyHash> =
        (0..400).map(|number| keyspace.hash(format!("key{number}").as_bytes())).collect();
    let cold = keyspace.cold_mut().expect("it has a store");
    hashes.iter().for_each(|hash| cold.pin(*hash));
    let spilled = (0..100).map(|_| keyspace.spill(1000, 64, NOW)).last();
    assert_eq!(spilled, Some(Spilled::Behind), "nobody is told that the store is full");
    let cold = keyspace.cold_mut().expect("it has a store");
    cold.set_own_pins(400);
    let spilled = (0..100).map(|_| keyspace.spill(1000, 64, NOW)).last();
    assert_eq!(spilled, Some(Spilled::Nothing), "nobody waits for himself");
    let cold = keyspace.cold_mut().expect("it has a store");
    hashes.iter().for_each(|hash| cold.unpin(*hash));
    assert_eq!(keyspace.spill(1000, 64, NOW), Spilled::Enough);
    file.write(&mut keyspace);
}

#[test]
fn what_a_record_needs_is_read_in_parts_if_it_is_much() {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let file = MemoryFile::default();
    file.serve(&mut keyspace, ColdLimits::default());
    let keys: Vec<String> = (0..30).map(|number| format!("key{number}")).collect();
    for key in &keys {
        set(&mut keyspace, 0, key, &[7; 100_000]);
    }
    keyspace.spill_all(NOW);
    file.write(&mut keyspace);
    let more = Effect::Append { bytes: b"more" };
    let effects: Vec<_> = keys.iter().map(|key| (DatabaseId(0), key.as_bytes(), more)).collect();
    let covered = keyspace.fetch_for_effects(&effects).expect("nothing is lost");
    assert_eq!((covered, keyspace.cold_keys()), (10, 20));
    assert_eq!(keyspace.fetch_for_effects(&effects[..3]).expect("nothing is lost"), 3);
}

#[test]
fn a_snapshot_says_when_it_has_noted_too_many_values_that_are_not_in_memory() {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let file = MemoryFile::default();
    file.serve(&mut keyspace, ColdLimits::default());
    for number in 0..40_000 {
        set(&mut keyspace, 0, &format!("key{number}"), &[7; 100]);
        if number % 1000 == 0 {
            spill_all(&mut keyspace, &file);
        }
    }
    spill_all(&mut keyspace, &file);
    keyspace.begin_snapshot(NOW);
    let mut number = 0;
    while !keyspace.snapshot_is_overfull() {
        delete(&mut keyspace, 0, &format!("key{number}"));
        number += 1;
        assert!(number < 40_000, "it notes all of them");
    }
    // What the walk comes to does not wait for what is about to be changed.
    let keys = keyspace.snapshot_keys();
    keyspace.walk_snapshot(1000, 1 << 20);
    assert!(keyspace.snapshot_keys() >= keys + 1000);
    keyspace.read_snapshot_values();
    assert!(!keyspace.snapshot_is_overfull());
}

#[test]
fn what_a_snapshot_writes_in_pieces_stays_though_it_was_fetched_for_one_use() {
    let mut settings = Settings::default();
    settings.limits.whole_value_bytes_max = 1000;
    let mut keyspace = Keyspace::new(settings, HashKey::fixed(1));
    let file = MemoryFile::default();
    file.serve(&mut keyspace, ALL_COLD);
    for number in 0..100 {
        let element = format!("{number}").repeat(50);
        let effect = Effect::ListPush { end: End::Tail, value: element.as_bytes() };
        keyspace.apply(DatabaseId(0), b"list", &effect).expect("it is a list");
    }
    spill_all(&mut keyspace, &file);
    keyspace.fetch_now(DatabaseId(0), b"list").expect("it is there");
    keyspace.begin_snapshot(NOW);
    assert!(!keyspace.walk_snapshot(1, 1), "it is begun");
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), 0);
    while !keyspace.walk_snapshot(100, 1 << 20) {}
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), 1, "it is written");
    // What the walk has not come to may go as ever: it notes the place.
    keyspace.fetch_now(DatabaseId(0), b"list").expect("it is there");
    keyspace.begin_snapshot(NOW);
    spill_all(&mut keyspace, &file);
    assert_eq!(keyspace.cold_keys(), 1);
    while !keyspace.walk_snapshot(100, 1 << 20) {
        keyspace.read_snapshot_values();
    }
    assert_eq!(keyspace.snapshot_keys(), 1);
}

#[test]
fn idle_values_that_must_stay_hide_none_that_may_go() {
    let (mut keyspace, file) = keyspace(ColdLimits::default());
    for number in 0..3000 {
        set(&mut keyspace, 0, &format!("short{number}"), &[b's'; 20]);
    }
    keyspace.now = UnixMillis(NOW.0 + 3_600_000);
    for number in 0..300 {
        set(&mut keyspace, 0, &format!("long{number}"), &[b'l'; 500]);
    }
    let wanted = keyspace.used_bytes() - 100_000;
    while keyspace.used_bytes() > wanted {
        let over = keyspace.used_bytes() - wanted;
        assert_ne!(keyspace.spill(over, 64, keyspace.now), Spilled::Nothing);
        file.write(&mut keyspace);
    }
}
