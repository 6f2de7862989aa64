//! However the bytes are cut, what is imported is what the file holds, and effects say all of it.

use super::super::tests::{sample, save};
use super::*;
use crate::keyspace::Keyspace;
use crate::testing::{Bench, holdings};
use crate::unit::{Context, Overdue};
use base::UnixMillis;

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// Imports a file whose bytes arrive so many at a time; what arrived behind its end.
fn import(bench: &mut Bench, bytes: &[u8], at_a_time: usize) -> Result<Vec<u8>, RdbError> {
    let mut importer = Importer::default();
    let mut pieces = bytes.chunks(at_a_time);
    loop {
        bench.unit.clear();
        let context = Context { overdue: Overdue::Kept, ..Context::background(NOW, DatabaseId(0)) };
        let mut tx = bench.engine.tx(context, &mut bench.unit);
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
    let mut twin = Keyspace::new(bench.engine.keyspace.settings.clone(), 3);
    let payload = bench.unit.effects.take();
    twin.apply_payload(&payload, NOW).expect("what was recorded can be applied");
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
    let refusal = |body: &[u8]| {
        let bytes = [b"REDIS0010", body].concat();
        import(&mut Bench::new(), &bytes, 50).expect_err("is refused").to_string()
    };
    assert_eq!(refusal(b"\x0f\x01k"), "a value of type 15 before byte 10 is not supported");
    assert_eq!(refusal(b"\xf5"), "a library of functions before byte 10 is not supported");
    assert_eq!(
        refusal(b"\xfe\x40\x20"),
        "database 32 (there are 16) before byte 12 is not supported"
    );
    assert_eq!(
        refusal(b"\0\x01k\x01v\0\x01k\x01w"),
        "a key that stands in the file twice before byte 19"
    );
}
