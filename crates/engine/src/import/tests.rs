//! However the bytes are cut, what is imported is what the file holds, and effects say all of it.

use super::*;
use crate::digest::Digest;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::rdb::tests::{sample, save};
use crate::testing::{Bench, holdings};
use crate::unit::{Context, Overdue};
use base::{HashKey, UnixMillis};

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// Imports a file whose bytes arrive so many at a time; what arrived behind its end.
fn import(bench: &mut Bench, bytes: &[u8], at_a_time: usize) -> Result<Vec<u8>, RdbError> {
    let mut importer = Importer::default();
    let mut pieces = bytes.chunks(at_a_time);
    loop {
        bench.unit.clear();
        let context = Context { overdue: Overdue::Kept, ..Context::background(NOW, DatabaseId(0)) };
        let mut tx = bench.engine.tx(context, &mut bench.unit, &mut bench.interest);
        match importer.step(&mut tx)? {
            Step::Done => {}
            Step::Starved => match pieces.next() {
                Some(piece) => importer.feed(piece),
                None => return Err(importer.source.damaged("the end")),
            },
            Step::Finished => break,
        }
    }
    let mut rest = importer.into_rest();
    pieces.for_each(|piece| rest.extend_from_slice(piece));
    Ok(rest)
}

fn replayed(bench: &mut Bench) -> Keyspace {
    let mut twin = Keyspace::new(bench.engine.keyspace.settings.clone(), HashKey::fixed(3));
    let payload = bench.unit.effects.take();
    twin.apply_payload(&payload, NOW, &mut Interest::default())
        .expect("what was recorded can be applied");
    twin
}

#[test]
fn a_file_is_imported_however_its_bytes_are_cut() {
    let sample = sample();
    let mut bytes = save(&sample.engine.keyspace);
    bytes.extend_from_slice(b"*1\r\n$4\r\nPING\r\n");
    for at_a_time in [1, 7, 64, 4096, 1 << 20] {
        let mut bench = Bench::new();
        let rest = import(&mut bench, &bytes, at_a_time).expect("the file is whole");
        assert_eq!(rest, b"*1\r\n$4\r\nPING\r\n");
        let imported = holdings(&bench.engine.keyspace);
        let contents = |holdings: &std::collections::BTreeMap<_, crate::testing::Held>| {
            let held = holdings.iter().map(|(key, held): (&(DatabaseId, Vec<u8>), _)| {
                let mut contents = held.contents.clone();
                // Sets and hashes have no order; lists and sorted sets are compared by others.
                contents.sort();
                (key.clone(), held.type_name, held.expire_at, contents)
            });
            held.collect::<Vec<_>>()
        };
        assert_eq!(contents(&imported), contents(&holdings(&sample.engine.keyspace)));
        assert_eq!(holdings(&replayed(&mut bench)), imported);
    }
}

#[test]
fn a_file_of_valkey_is_imported() {
    // Written by a Valkey 9.1.2: see the requests below, and a field that does not expire.
    let bytes = include_bytes!("../rdb/tests/valkey-9.1.2.rdb");
    let (mut bench, mut made) = (Bench::new(), Bench::new());
    import(&mut bench, bytes, 5).expect("the file is whole");
    for line in [
        "SET s text PXAT 32503680000000",
        "HSET plain a 1 b 2",
        "HSETEX timed PXAT 32503680000000 FIELDS 2 a 1 b 2",
        "HSET timed c 3",
        "RPUSH l 1 2",
        "SADD m a b",
        "ZADD z 1 a",
    ] {
        made.run(line);
    }
    assert_eq!(holdings(&bench.engine.keyspace), holdings(&made.engine.keyspace));
    // The same type in a file of Redis is one of no release.
    let mut other = bytes.to_vec();
    other[..9].copy_from_slice(b"REDIS0012");
    let error = import(&mut Bench::new(), &other, 64).expect_err("it is another type there");
    assert!(error.to_string().contains("a value of type 22"), "{error}");
    for head in [b"VALKEY011", b"VALKEY081", b"REDIS0080", b"REDIS0013"] {
        other[..9].copy_from_slice(head);
        let error = import(&mut Bench::new(), &other, 64).expect_err("no such file is known");
        assert!(error.to_string().contains("RDB version"), "{error}");
    }
}

#[test]
fn the_order_of_lists_is_kept() {
    let sample = sample();
    let mut bench = Bench::new();
    import(&mut bench, &save(&sample.engine.keyspace), 100).expect("the file is whole");
    bench.check("LRANGE list 0 -1", "*6 $1 a $1 1 $1 b $1 2 $1 c $6 300000");
    bench.check("LLEN nodes", ":200");
}

#[test]
fn a_key_past_its_time_is_kept_for_the_master_to_delete() {
    let mut old = Bench::new();
    old.run("SET text hello PXAT 1800000000000");
    old.run("RPUSH list a b");
    old.run("PEXPIREAT list 1800000000000");
    let bytes = save(&old.engine.keyspace);
    let mut bench = Bench::new();
    bench.context.now = UnixMillis(1_900_000_000_000);
    import(&mut bench, &bytes, 1000).expect("the file is whole");
    bench.context.overdue = Overdue::Hidden;
    bench.check("EXISTS text list", ":0");
    bench.context.overdue = Overdue::Kept;
    bench.check("LRANGE list 0 -1", "*2 $1 a $1 b");
    bench.check("RPUSH list c", ":3");
    bench.check("PERSIST list", ":1");
    bench.context.overdue = Overdue::Deleted;
    bench.check("EXISTS text list", ":1");
}

#[test]
fn libraries_of_functions_come_with_the_data() {
    let mut old = Bench::new();
    let load = Effect::FunctionLoad { code: b"#!lua name=lib\ncode" };
    old.engine.keyspace.apply(DatabaseId(0), b"", &load).expect("it has a name");
    let mut bytes = b"REDIS0010".to_vec();
    crate::save::put_libraries(&mut bytes, old.engine.keyspace.libraries());
    bytes.push(0xff);
    let mut crc = crate::rdb::Crc64::default();
    crc.update(&bytes);
    bytes.extend_from_slice(&crate::save::checksum(crc));
    let mut bench = Bench::new();
    import(&mut bench, &bytes, 5).expect("the file is whole");
    let digest = Digest::of_keyspace(&old.engine.keyspace);
    assert_eq!(Digest::of_keyspace(&bench.engine.keyspace), digest);
    assert_ne!(digest, Digest::default());
}

#[test]
fn a_damaged_or_foreign_file_is_refused_and_never_believed() {
    let mut old = Bench::new();
    old.run("SET text hello PXAT 1800000000000");
    old.run("RPUSH list a 1 b 2");
    let bytes = save(&old.engine.keyspace);
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1;
        assert!(import(&mut Bench::new(), &damaged, 50).is_err(), "byte {at}");
        assert!(import(&mut Bench::new(), &bytes[..at], 50).is_err(), "cut at {at}");
    }
    let newer = import(&mut Bench::new(), b"REDIS0013\xff", 50).expect_err("is refused");
    assert_eq!(newer.to_string(), "RDB version 13 before byte 9 is not supported");
    let refusal = |body: &[u8]| {
        let bytes = [b"REDIS0010", body].concat();
        import(&mut Bench::new(), &bytes, 50).expect_err("is refused").to_string()
    };
    assert_eq!(refusal(b"\x16\x01k"), "a value of type 22 before byte 10 is not supported");
    assert_eq!(
        refusal(b"\xf6"),
        "a library of functions of 7.0's previews before byte 10 is not supported"
    );
    assert_eq!(refusal(b"\xf5\x04code"), "a library of functions without a name before byte 15");
    assert_eq!(
        refusal(b"\xfe\x40\x20"),
        "database 32 (there are 16) before byte 12 is not supported"
    );
    assert_eq!(
        refusal(b"\0\x01k\x01v\0\x01k\x01w"),
        "a key that stands in the file twice before byte 19"
    );
}

#[test]
fn old_encodings_are_read() {
    // Version 4: neither sizes nor a checksum.
    let ziplist = |entries: &[u8]| {
        let total = (11 + entries.len()) as u8;
        [&[total][..], &[total, 0, 0, 0, 0, 0, 0, 0, 0, 0], entries, b"\xff"].concat()
    };
    let pairs = ziplist(b"\x00\x01a\x03\xf2");
    let elements = ziplist(b"\x00\x01x\x03\xfe\x05");
    let file = [
        &b"REDIS0004\xfe\x00"[..],
        b"\x01\x01l\x02\x01a\x01b",
        b"\x03\x01z\x03\x01a\x031.5\x01b\xfe\x01c\xff",
        b"\x09\x01m\x08\x01\x01f\x02\x00xy\xff",
        b"\x0a\x01p",
        &elements,
        b"\x0c\x01s",
        &pairs,
        b"\x0d\x01h",
        &pairs,
        b"\x0e\x01q\x02",
        &elements,
        &elements,
        b"\xff",
    ]
    .concat();
    for at_a_time in [1, 1000] {
        let mut bench = Bench::new();
        import(&mut bench, &file, at_a_time).expect("the file is whole");
        bench.check("LRANGE l 0 -1", "*2 $1 a $1 b");
        bench.check("ZRANGE z 0 -1 WITHSCORES", "*6 $1 c $4 -inf $1 a $3 1.5 $1 b $3 inf");
        bench.check("HGETALL m", "*2 $1 f $2 xy");
        bench.check("LRANGE p 0 -1", "*2 $1 x $1 5");
        bench.check("ZRANGE s 0 -1 WITHSCORES", "*2 $1 a $1 1");
        bench.check("HGETALL h", "*2 $1 a $1 1");
        bench.check("LRANGE q 0 -1", "*4 $1 x $1 5 $1 x $1 5");
    }
}

#[test]
fn sets_of_newer_releases_are_read() {
    let pack = b"\x0c\0\0\0\x02\0\x81a\x02\x07\x01\xff";
    let file = [&b"REDIS0012"[..], b"\xf4\x01\x02\x03", b"\x14\x01s\x0c", pack, b"\xff", &[0; 8]];
    let mut bench = Bench::new();
    import(&mut bench, &file.concat(), 3).expect("the file is whole");
    bench.check("SORT s ALPHA", "*2 $1 7 $1 a");
}
