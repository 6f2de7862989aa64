//! XDELEX, XACKDEL, and KEEPREF, DELREF and ACKED of XADD and XTRIM. Replies are what redis-server
//! 8.2.3 answered.

use super::{dumped, events_of, replay};
use crate::settings::Settings;
use crate::testing::Bench;

fn bench(entries_max: u64) -> Bench {
    Bench::with_settings(Settings {
        stream_node_max_entries: entries_max,
        notify_keyspace_events: u32::MAX,
        ..Settings::default()
    })
}

#[test]
fn entries_and_references_go_as_in_redis() {
    replay(include_str!("redis-8.2.3-references.tsv"));
}

/// Trimming with ~ takes whole blocks. Redis 8.2.3 deletes nothing, which is a bug
/// (redis/redis#14656).
#[test]
fn whole_blocks_go_with_what_refers_to_them_or_if_nothing_does() {
    let mut bench = bench(3);
    for number in 1..=10 {
        bench.run(&format!("XADD s {number}-1 f v"));
    }
    bench.run("XGROUP CREATE s g 0");
    bench.run("XREADGROUP GROUP g c COUNT 8 STREAMS s >");
    bench.check("XTRIM s MAXLEN ~ 1 ACKED", ":0");
    bench.run("XACK s g 4-1 5-1 6-1");
    bench.check("XTRIM s MAXLEN ~ 8 ACKED", ":0");
    bench.check("XTRIM s MAXLEN ~ 1 LIMIT 5 ACKED", ":0");
    bench.check("XTRIM s MAXLEN ~ 1 ACKED", ":3");
    assert_eq!(bench.events(), ["xtrim s"]);
    assert_eq!(bench.twin_events(), ["xdel s", "xsetid s"]);
    assert!(bench.run("XINFO STREAM s").contains("max-deleted-entry-id $3 0-1"));
    bench.check("XTRIM s MAXLEN ~ 4 LIMIT 2 DELREF", ":0");
    bench.check("XTRIM s MAXLEN ~ 4 DELREF", ":3");
    bench.check("XPENDING s g", "*4 :2 $3 7-1 $3 8-1 *1 *2 $1 c $1 2");
    bench.run("XACK s g 7-1 8-1");
    bench.check("XTRIM s MINID ~ 10 ACKED", ":0");
    bench.run("XGROUP SETID s g 9");
    bench.check("XTRIM s MINID ~ 10 ACKED", ":0");
    bench.run("XGROUP SETID s g 9-1");
    bench.check("XADD s ACKED MINID ~ 10 11-1 f v", "$4 11-1");
    assert_eq!(bench.events(), ["xadd s", "xtrim s"]);
    bench.check("XLEN s", ":2");
}

#[test]
fn references_that_go_leave_the_same_bytes_as_xack_and_xdel() {
    let fill = |bench: &mut Bench| {
        for line in ["XADD s 1-1 f v", "XADD s 2-1 f v", "XADD s 3-1 f v"] {
            bench.run(line);
        }
        for group in ["g", "h"] {
            bench.run(&format!("XGROUP CREATE s {group} 0"));
            bench.run(&format!("XREADGROUP GROUP {group} c STREAMS s >"));
        }
    };
    for (line, lines) in [
        ("XDELEX s IDS 2 1-1 3-1", &["XDEL s 1-1 3-1"][..]),
        ("XDELEX s DELREF IDS 1 2-1", &["XDEL s 2-1", "XACK s g 2-1", "XACK s h 2-1"]),
        ("XACKDEL s g IDS 1 2-1", &["XACK s g 2-1", "XDEL s 2-1"]),
        ("XACKDEL s g DELREF IDS 1 3-1", &["XACK s g 3-1", "XACK s h 3-1", "XDEL s 3-1"]),
        ("XACKDEL s g ACKED IDS 1 1-1", &["XACK s g 1-1"]),
        ("XTRIM s MAXLEN 2 DELREF", &["XTRIM s MAXLEN 2", "XACK s g 1-1", "XACK s h 1-1"]),
    ] {
        let [mut one, mut other] = [bench(100), bench(100)];
        fill(&mut one);
        fill(&mut other);
        one.run(line);
        lines.iter().for_each(|line| drop(other.run(line)));
        assert_eq!(dumped(&one, b"s"), dumped(&other, b"s"), "{line}");
    }
}

#[test]
fn events_are_those_of_redis() {
    let mut bench = bench(100);
    for number in 1..=7 {
        bench.run(&format!("XADD s {number}-1 f v"));
    }
    for group in ["g", "h"] {
        bench.run(&format!("XGROUP CREATE s {group} 0"));
        bench.run(&format!("XREADGROUP GROUP {group} c STREAMS s >"));
    }
    let xdel = &["xdel s"][..];
    events_of(
        &mut bench,
        &[
            ("XDELEX s DELREF IDS 2 1-1 2-1", xdel, xdel),
            ("XDELEX s ACKED IDS 1 3-1", &[], &[]),
            ("XACKDEL s g ACKED IDS 1 3-1", &[], &[]),
            ("XACKDEL s h ACKED IDS 1 3-1", xdel, xdel),
            ("XACKDEL s h IDS 1 4-1", xdel, xdel),
            ("XACKDEL s g IDS 1 4-1", &[], &[]),
            ("XDEL s 5-1", xdel, xdel),
            ("XDELEX s DELREF IDS 1 5-1", &[], &[]),
            ("XACKDEL s g DELREF IDS 1 6-1", xdel, xdel),
            ("XTRIM s MAXLEN 0 DELREF", &["xtrim s"], &["xtrim s"]),
            ("XADD s ACKED MAXLEN 0 8-1 f v", &["xadd s"], &["xadd s"]),
            ("XADD s DELREF MAXLEN 0 9-1 f v", &["xadd s", "xtrim s"], &["xadd s", "xtrim s"]),
        ],
    );
}
