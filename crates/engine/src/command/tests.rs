//! Replies that exceed their bound: reading stops, writing does not.

use crate::command::Args;
use crate::testing::{Bench, command};
use resp::Reply;

/// Runs a request whose reply may have `bytes_max` bytes; whether it was too long.
fn exceeds(bench: &mut Bench, line: &str, bytes_max: usize) -> bool {
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
    let is_over = reply.unbound();
    assert!(!is_over || reply.is_empty(), "{line}: a part was kept");
    is_over
}

fn filled() -> Bench {
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

#[test]
fn reads_end_where_the_reply_does() {
    let mut bench = filled();
    let all = (0..300).map(|number| format!(" k{number}")).collect::<String>();
    for line in [
        "SRANDMEMBER s -4000000",
        "HRANDFIELD h -4000000",
        "HRANDFIELD h -2000000 WITHVALUES",
        "ZRANDMEMBER z -4000000 WITHSCORES",
        "SRANDMEMBER s 299",
        "LRANGE l 0 -1",
        "SORT l ALPHA",
        "SORT l BY nosort GET # GET k* GET #",
        "SMEMBERS s",
        "SUNION s s",
        "SINTER s s",
        "SDIFF s none",
        "HGETALL h",
        "HKEYS h",
        "HVALS h",
        "ZRANGE z 0 -1",
        "ZREVRANGE z 0 -1 WITHSCORES",
        "ZUNION 1 z",
        "KEYS *",
        "GET k1",
        &format!("MGET{all}"),
        &format!("HMGET h{all}"),
    ] {
        let bytes_max = if line == "GET k1" { 50 } else { 1000 };
        let before = bench.engine.keyspace.work.taken();
        assert!(exceeds(&mut bench, line, bytes_max), "{line}");
        let steps = bench.engine.keyspace.work.taken() - before;
        // All 300 elements some times over: what is asked for millions of times is not looked for.
        assert!(steps < 10_000, "{line}: {steps} steps");
        assert!(line.contains("00000") || !exceeds(&mut bench, line, 1 << 20), "{line}");
    }
}

#[test]
fn writes_are_whole_though_nobody_will_hear_of_them() {
    let mut bench = filled();
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
