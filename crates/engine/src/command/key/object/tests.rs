//! OBJECT TIER, of values in memory and out of it.

use super::*;
use crate::cold::{ColdLimits, ColdSource, ColdStore};
use crate::testing::Bench;
use base::UnixMillis;
use tier::{Limits, Read, Tier};

/// Has nothing: what is spilled here stays in pieces that are not written.
struct Nowhere;

impl ColdSource for Nowhere {
    fn read(&self, _: &Read) -> Result<Vec<u8>, String> {
        Err("nothing was written".to_owned())
    }
}

fn store() -> ColdStore {
    let tier = Tier::new(Limits::default(), 1 << 30);
    ColdStore::new(tier, Box::new(Nowhere), ColdLimits::default())
}

/// A bench whose key `long` is cold. The key `short` is too short for that.
fn bench() -> Bench {
    let mut bench = Bench::new();
    bench.engine.keyspace.open_cold(store());
    let long = "x".repeat(1000);
    bench.run_words(&[b"SET", b"long", long.as_bytes()]);
    bench.run("SET short x");
    let now = bench.context.now;
    bench.engine.keyspace.spill_all(now);
    assert_eq!(bench.engine.keyspace.cold_keys(), 1);
    bench
}

/// What a subcommand answers about a key. The bench's own way looks into every value.
fn ask(bench: &mut Bench, subcommand: &Command<DataFn>, key: &str) -> String {
    let request = format!("OBJECTSUB{key}");
    let ranges = [(0, 6), (6, 3), (9, key.len() as u32)];
    let args = Args::new(request.as_bytes(), &ranges);
    let mut reply = Reply::new(bench.protocol);
    let Bench { engine, unit, interest, context, .. } = bench;
    let outcome = engine.run(&subcommand.function, *context, args, &mut reply, unit, interest);
    outcome.expect("no subcommand refuses a key");
    String::from_utf8_lossy(reply.bytes()).replace("\r\n", " ").trim_end().to_owned()
}

#[test]
fn tells_where_a_value_lies_and_does_not_count_as_a_use() {
    let mut bench = bench();
    bench.context.now = UnixMillis(bench.context.now.0 + 1000 * 1000);
    assert_eq!(ask(&mut bench, &TIER, "long"), "$3 ssd");
    assert_eq!(ask(&mut bench, &TIER, "short"), "$6 memory");
    assert_eq!(ask(&mut bench, &TIER, "none"), "$-1");
    assert_eq!(ask(&mut bench, &IDLETIME, "long"), ":1000");
    assert_eq!(bench.engine.keyspace.cold_keys(), 1);
}

#[test]
fn a_store_goes_when_nothing_lies_in_it() {
    let mut bench = bench();
    assert!(!bench.engine.keyspace.can_change_cold());
    bench.run("DEL long");
    assert!(bench.engine.keyspace.can_change_cold());
    bench.engine.keyspace.close_cold();
    bench.engine.keyspace.open_cold(store());
}

#[test]
#[should_panic(expected = "would be lost")]
fn a_store_with_values_does_not_go() {
    bench().engine.keyspace.close_cold();
}
