use super::COMMANDS;
use crate::command::Flags;
use crate::testing::Bench;

#[test]
fn elements_are_counted_once() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("PFADD h", ":1"),
        ("PFADD h", ":0"),
        ("PFCOUNT h", ":0"),
        ("PFADD h a b c a", ":1"),
        ("PFADD h c b a", ":0"),
        ("PFCOUNT h", ":3"),
        ("PFCOUNT none", ":0"),
        ("PFADD i c d", ":1"),
        ("PFCOUNT h i none", ":4"),
        ("PFMERGE t h i", "+OK"),
        ("PFCOUNT t", ":4"),
        ("STRLEN h", ":27"),
    ]);
}

#[test]
fn counting_stores_its_result_and_a_change_spoils_it() {
    let mut bench = Bench::new();
    let top_byte = |bench: &mut Bench| bench.run_words(&[b"BITCOUNT", b"h", b"15", b"15"]);
    bench.check("PFADD h a", ":1");
    assert_eq!(top_byte(&mut bench), ":1");
    bench.check("PFCOUNT h", ":1");
    assert!(bench.unit.changes > 0);
    assert_eq!(top_byte(&mut bench), ":0");
    bench.check("PFCOUNT h", ":1");
    assert_eq!(bench.unit.changes, 0);
}

#[test]
fn growing_dense_keeps_every_register() {
    let mut bench = Bench::new();
    for round in 0..300 {
        let words: Vec<String> = (0..10).map(|i| format!("e{}", round * 10 + i)).collect();
        bench.run(&format!("PFADD h {}", words.join(" ")));
    }
    bench.check("PFDEBUG ENCODING h", "+dense");
    bench.check("PFDEBUG TODENSE h", ":0");
    let count: u64 = bench.run("PFCOUNT h").trim_start_matches(':').parse().expect("a number");
    assert!((2900..=3100).contains(&count), "{count}");
    bench.check("PFSELFTEST", "+OK");
}

#[test]
fn whoever_may_not_write_may_not_count_within_a_script() {
    let count = COMMANDS.iter().find(|row| row.usage.starts_with("PFCOUNT")).expect("it is there");
    assert!(count.flags.contains(Flags::READONLY.union(Flags::MAY_REPLICATE)));
}

#[test]
fn other_strings_are_refused() {
    let mut bench = Bench::new();
    let wrong = "-WRONGTYPE Key is not a valid HyperLogLog string value.";
    bench.check_all(&[
        ("SET n 1", "+OK"),
        ("PFADD n a", wrong),
        ("PFCOUNT n", wrong),
        ("PFMERGE t n", wrong),
        ("RPUSH l 1", ":1"),
        ("PFADD l a", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("PFADD h a b", ":1"),
        ("APPEND h tail", ":28"),
        ("PFCOUNT h", "-INVALIDOBJ Corrupted HLL object detected"),
        ("PFDEBUG ENCODING none", "-ERR The specified key does not exist"),
        ("PFDEBUG NOPE h", "-ERR Unknown PFDEBUG subcommand 'NOPE'"),
    ]);
}
