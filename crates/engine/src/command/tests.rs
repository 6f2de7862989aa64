//! Replies that exceed their bound: reading stops, writing does not.

use crate::command::{Args, DataFn};
use crate::testing::{Bench, command};
use crate::work::long::{every_command, filled, long_requests, name_of};
use resp::Reply;
use std::collections::BTreeSet;

/// Runs a request whose reply may have `bytes_max` bytes; whether it was too long.
fn exceeds(bench: &mut Bench, line: &str, bytes_max: usize) -> bool {
    run_bounded(bench, line, bytes_max) > 0
}

/// As [`exceeds`]; how many values the reply did not take.
fn run_bounded(bench: &mut Bench, line: &str, bytes_max: usize) -> usize {
    let (mut buffer, mut ranges) = (Vec::new(), Vec::new());
    for word in line.split(' ') {
        ranges.push((buffer.len() as u32, word.len() as u32));
        buffer.extend_from_slice(word.as_bytes());
    }
    let mut reply = Reply::new(bench.protocol);
    reply.bound(bytes_max);
    bench.unit.clear();
    let function = &command(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>()).function;
    let args = Args::new(&buffer, &ranges);
    let (context, unit, interest) = (bench.context, &mut bench.unit, &mut bench.interest);
    let outcome = bench.engine.run(function, context, args, &mut reply, unit, interest);
    outcome.unwrap_or_else(|refusal| panic!("{line}: {}", refusal.0));
    bench.compare();
    let refused = reply.refused();
    let is_over = reply.unbound();
    assert!(!is_over || reply.is_empty(), "{line}: a part was kept");
    refused
}

fn filled_with_long() -> Bench {
    let mut bench = Bench::new();
    let long = "x".repeat(100);
    for number in 0..300 {
        bench.run(&format!("RPUSH l {number}{long}"));
        bench.run(&format!("SADD s {number}{long}"));
        bench.run(&format!("HSET h {number}{long} {long}"));
        bench.run(&format!("ZADD z {number} {number}{long}"));
        bench.run(&format!("SET k{number} {long}"));
    }
    bench
}

/// Reads whose reply no request makes long, among those that are tried at length.
const SHORT_REPLIES: [(&str, &str); 9] = [
    ("bitcount", "a count"),
    ("bitpos", "a place"),
    ("exists", "a count"),
    ("getrange", "the range that was asked for: tried by GET"),
    ("pfselftest", "OK"),
    ("sintercard", "a count"),
    ("substr", "the range that was asked for: tried by GET"),
    ("touch", "a count"),
    ("zintercard", "a count"),
];

/// Writes that only read if they are asked so: in what follows, if they change nothing.
const READING_WRITES: [&str; 5] = ["sort", "georadius", "georadiusbymember", "bitfield", "pfdebug"];

/// Values that whoever replies may offer in vain: one element's, and what closes the reply.
const REFUSED_MAX: usize = 8;

#[test]
fn every_read_ends_where_its_reply_does() {
    let (mut bench, _) = filled();
    let every = every_command();
    let (mut read, mut exceeded) = (BTreeSet::new(), BTreeSet::new());
    let mut too_late = Vec::new();
    for line in long_requests() {
        let name = name_of(&line);
        let is_read = matches!(every[&name].function, DataFn::Read(_));
        if !is_read && !READING_WRITES.contains(&name.as_str()) {
            continue;
        }
        if !is_read && (line.contains("STORE") || line.contains("SET")) {
            continue;
        }
        let shown = line.chars().take(60).collect::<String>();
        // At its header, and in the midst of its elements.
        for bytes_max in [1000, 6000] {
            let refused = run_bounded(&mut bench, &line, bytes_max);
            if refused > REFUSED_MAX {
                too_late.push((refused, shown.clone()));
            }
            if refused > 0 {
                exceeded.insert(name.clone());
            }
        }
        read.insert(name);
    }
    assert!(too_late.is_empty(), "values offered in vain, and by whom: {too_late:#?}");
    let short: BTreeSet<&str> = SHORT_REPLIES.iter().map(|(name, _)| *name).collect();
    for name in &read {
        assert!(exceeded.contains(name) != short.contains(name.as_str()), "{name}: long or short?");
    }
    let unknown = short.iter().find(|name| !read.contains(**name));
    assert_eq!(unknown, None, "is not tried");
}

#[test]
fn what_is_drawn_millions_of_times_is_not_drawn_for_nobody() {
    let mut bench = filled_with_long();
    for line in [
        "SRANDMEMBER s -4000000",
        "HRANDFIELD h -4000000",
        "HRANDFIELD h -2000000 WITHVALUES",
        "ZRANDMEMBER z -4000000 WITHSCORES",
    ] {
        let before = bench.engine.keyspace.work.taken();
        assert!(exceeds(&mut bench, line, 1 << 24), "{line}");
        let steps = bench.engine.keyspace.work.taken() - before;
        assert!(steps < 1 << 18, "{line}: {steps} steps");
    }
}

#[test]
fn writes_are_whole_though_nobody_will_hear_of_them() {
    let mut bench = filled_with_long();
    for (line, then, expected) in [
        ("SPOP s 200", "SCARD s", ":100"),
        ("LPOP l 200", "LLEN l", ":100"),
        ("ZPOPMIN z 200", "ZCARD z", ":100"),
        ("GETDEL k1", "EXISTS k1", ":0"),
        ("SET k2 new GET", "GET k2", "$3 new"),
        ("GETSET k3 new", "GET k3", "$3 new"),
        ("SPOP s 1000", "EXISTS s", ":0"),
    ] {
        assert!(exceeds(&mut bench, line, 100), "{line}");
        bench.check(then, expected);
    }
}

#[test]
fn a_string_is_compared_before_it_is_set_or_deleted() {
    let mut bench = Bench::new();
    for (line, expected) in [
        ("SET a x IFEQ y", "$-1"),
        ("EXISTS a", ":0"),
        ("SET a 10", "+OK"),
        ("SET a y IFEQ 1", "$-1"),
        ("SET a y IFEQ +10", "$-1"),
        ("SET a y IFEQ 10 GET PX 5000", "$2 10"),
        ("PTTL a", ":5000"),
        ("SET a z IFEQ x GET", "$1 y"),
        ("GET a", "$1 y"),
        ("SET a z IFEQ y NX", "-ERR syntax error"),
        ("SET a z XX IFEQ y", "-ERR syntax error"),
        ("SET a z IFEQ", "-ERR syntax error"),
        ("SET a z NX XX", "-ERR syntax error"),
        ("SET a z XX NX", "-ERR syntax error"),
        ("SET a z XX XX", "+OK"),
        ("DELIFEQ a y", ":0"),
        ("DELIFEQ a z", ":1"),
        ("DELIFEQ a z", ":0"),
        ("RPUSH l 1", ":1"),
        ("DELIFEQ l 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
        ("SET l 1 IFEQ 1", "-WRONGTYPE Operation against a key holding the wrong kind of value"),
    ] {
        bench.check(line, expected);
    }
}

#[test]
fn several_strings_are_set_with_one_expiry() {
    let mut bench = Bench::new();
    for (line, expected) in [
        ("MSETEX 2 a 1 b 2", ":1"),
        ("MSETEX 2 a 1 c 2 NX", ":0"),
        ("MSETEX 2 c 1 d 2 NX PX 100000", ":1"),
        ("PTTL d", ":100000"),
        ("MSETEX 2 c 1 z 2 XX", ":0"),
        ("MSETEX 1 c 9 XX KEEPTTL", ":1"),
        ("PTTL c", ":100000"),
        ("MSETEX 1 c 9", ":1"),
        ("PTTL c", ":-1"),
        ("MSETEX 0 a 1", "-ERR invalid numkeys value or out of range"),
        ("MSETEX -1 a 1", "-ERR invalid numkeys value or out of range"),
        ("MSETEX x a 1", "-ERR invalid numkeys value or out of range"),
        ("MSETEX 99999999999 a 1", "-ERR invalid numkeys value or out of range"),
        ("MSETEX 2147483647 a 1", "-ERR syntax error"),
        ("MSETEX 3 a 1 b 2", "-ERR syntax error"),
        ("MSETEX 1 a 1 FOO", "-ERR syntax error"),
        ("MSETEX 1 a 1 NX XX", "-ERR syntax error"),
        ("MSETEX 1 a 1 GET", "-ERR syntax error"),
        ("MSETEX 1 a 1 IFEQ 1", "-ERR syntax error"),
        ("MSETEX 1 a 1 EX 1 PX 2", "-ERR syntax error"),
        ("MSETEX 1 a 1 EX 0", "-ERR invalid expire time in 'msetex' command"),
        ("MSETEX 1 a 1 EX x", "-ERR value is not an integer or out of range"),
        ("GET a", "$1 1"),
        ("MSETEX 1 a 1 PXAT 1", ":1"),
        ("EXISTS a", ":0"),
        ("MSETEX 2 a 1 a 2", ":1"),
        ("GET a", "$1 2"),
    ] {
        bench.check(line, expected);
    }
}
