//! Every command whose work grows with what it is asked, or with what it finds, counts that work:
//! only so is the node called amid it, and the lease renewed.

use super::Work;
use crate::testing::Bench;

/// Elements of each collection. More than any compact encoding holds.
const ELEMENTS: usize = 1500;

/// Collections of so many elements, half of which the second of each sort shares.
fn filled() -> (Bench, Work) {
    let mut bench = Bench::new();
    let numbered = |first: usize, form: fn(usize) -> String| {
        (first..first + ELEMENTS).map(form).collect::<Vec<_>>().join(" ")
    };
    for (index, first) in [1, ELEMENTS / 2].into_iter().enumerate() {
        bench.run(&format!("RPUSH l{index} {}", numbered(first, |it| format!("e{it}"))));
        bench.run(&format!("SADD s{index} {}", numbered(first, |it| format!("e{it}"))));
        bench.run(&format!("HSET h{index} {}", numbered(first, |it| format!("e{it} {it}"))));
        bench.run(&format!("ZADD z{index} {}", numbered(first, |it| format!("{it} e{it}"))));
    }
    let places = numbered(0, |it| format!("0.{it} 0.{it} p{it}"));
    bench.run(&format!("GEOADD g {places}"));
    bench.run(&format!("MSET {}", numbered(0, |it| format!("k{it} {it}"))));
    let text = vec![0; ELEMENTS << 10];
    bench.run_words(&[&b"SET"[..], b"long", &text]);
    let text = vec![b'x'; ELEMENTS];
    bench.run_words(&[&b"SET"[..], b"text", &text]);
    let work = bench.engine.keyspace.work.clone();
    (bench, work)
}

/// Commands that go through all of a collection, all of the keyspace or a long string.
const FIXED: [&str; 57] = [
    "KEYS none",
    "SCAN 0 COUNT 100000",
    "SCAN 0 COUNT 100000 MATCH none",
    "SORT l0 ALPHA LIMIT 0 1",
    "SORT_RO s0 ALPHA LIMIT 0 1",
    "SORT z0 BY nosuch GET #",
    "SORT l0 BY k* GET k*",
    "SORT l0 ALPHA STORE to",
    "COPY s0 to REPLACE",
    "COPY h0 to REPLACE",
    "COPY z0 to REPLACE",
    "LRANGE l0 0 -1",
    "LPOS l0 none",
    "LPOS l0 none RANK -1",
    "LPOS l0 none COUNT 0",
    "LREM l0 0 none",
    "LREM l0 -1 none",
    "LINSERT l0 BEFORE none x",
    "SMEMBERS s0",
    "SSCAN s0 0 COUNT 100000",
    "SINTER s0 s1",
    "SINTERCARD 2 s0 s1",
    "SUNION s0 s1",
    "SDIFF s0 s1",
    "SINTERSTORE to s0 s1",
    "SUNIONSTORE to s0 s1",
    "SDIFFSTORE to s0 s1",
    "HGETALL h0",
    "HKEYS h0",
    "HVALS h0",
    "HSCAN h0 0 COUNT 100000",
    "ZRANGE z0 0 -1",
    "ZREVRANGE z0 0 -1",
    "ZRANGEBYSCORE z0 -inf +inf",
    "ZRANGEBYLEX z0 - +",
    "ZRANGESTORE to z0 0 -1",
    "ZSCAN z0 0 COUNT 100000",
    "ZUNION 2 z0 z1",
    "ZINTER 2 z0 z1",
    "ZDIFF 2 z0 z1",
    "ZINTERCARD 2 z0 z1",
    "ZUNIONSTORE to 2 z0 z1",
    "ZINTERSTORE to 2 z0 z1",
    "ZDIFFSTORE to 2 z0 z1",
    "ZUNION 2 s0 s1",
    "GEOSEARCH g FROMLONLAT 0.5 0.5 BYRADIUS 20000 KM",
    "GEOSEARCHSTORE to g FROMLONLAT 0.5 0.5 BYBOX 20000 20000 KM",
    "GEORADIUS g 0.5 0.5 20000 KM DESC",
    "BITCOUNT long",
    "BITCOUNT long 1 -2",
    "BITPOS long 1",
    "BITOP OR to long text",
    "BITOP NOT to long",
    "LCS text text LEN",
    "GET long",
    "GETRANGE long 0 0",
    "PFSELFTEST",
];

/// [`FIXED`], and commands with as many arguments or results as a collection has elements.
fn long_commands() -> Vec<String> {
    let all = ELEMENTS;
    let half = ELEMENTS / 2;
    let keys = (0..ELEMENTS).map(|it| format!(" k{it}")).collect::<String>();
    let members = (0..ELEMENTS).map(|it| format!(" e{it}")).collect::<String>();
    let mut lines: Vec<String> = FIXED.map(str::to_owned).into();
    for (name, key) in [("SRANDMEMBER", "s0"), ("HRANDFIELD", "h0"), ("ZRANDMEMBER", "z0")] {
        lines.extend([-(all as i64), all as i64].map(|count| format!("{name} {key} {count}")));
    }
    lines.extend(["MGET", "EXISTS", "TOUCH", "UNLINK"].map(|name| format!("{name}{keys}")));
    lines.push(format!("SADD s0{members}"));
    lines.push(format!("GEOPOS g{members}"));
    lines.push(format!("GEOHASH g{members}"));
    lines.push(format!("BITFIELD text{}", " GET u8 0".repeat(all)));
    lines.push(format!("BITFIELD to{}", " SET u8 0 1".repeat(all)));
    lines
        .extend(["SMISMEMBER s0", "HMGET h0", "ZMSCORE z0"].map(|name| format!("{name}{members}")));
    lines.extend(
        ["SREM s1", "HDEL h1", "ZREM z1", "PFADD hll"].map(|name| format!("{name}{members}")),
    );
    lines.push(format!("LPOP l0 {half}"));
    lines.push(format!("LMPOP 1 l1 RIGHT COUNT {all}"));
    lines.push(format!("SPOP s0 {half}"));
    lines.push("SPOP s0 100000".to_owned());
    lines.push(format!("ZPOPMIN z0 {half}"));
    lines.push("ZREMRANGEBYRANK z0 0 -1".to_owned());
    lines
}

#[test]
fn long_commands_count_their_steps() {
    let (mut bench, work) = filled();
    let mut silent = Vec::new();
    for line in long_commands() {
        work.0.taken.set(0);
        let reply = bench.run(&line);
        assert!(!reply.starts_with('-'), "{line}: {reply}");
        let counted = work.0.taken.get();
        // Those that share or take a half have a half to look at.
        if counted < ELEMENTS / 2 - 1 {
            silent.push((counted, line.chars().take(60).collect::<String>()));
        }
    }
    assert!(silent.is_empty(), "steps, and who took so few: {silent:#?}");
}

#[test]
fn a_value_that_goes_to_another_server_is_counted() {
    for key in ["l0", "s0", "h0", "z0"] {
        let (mut bench, work) = filled();
        let hash = bench.engine.keyspace.hash(key.as_bytes());
        let entry = bench.engine.keyspace.database(base::DatabaseId(0)).find(hash, key.as_bytes());
        let payload = crate::rdb::dump::dump(entry.expect("it was filled").value(), &work);
        // Many elements to a step.
        assert!(work.0.taken.get() > ELEMENTS / 10, "{key}: {}", work.0.taken.get());
        work.0.taken.set(0);
        assert_eq!(bench.run_words(&[&b"RESTORE"[..], b"to", b"0", &payload]), "+OK");
        // What was read is an effect for each element.
        assert!(work.0.taken.get() > ELEMENTS, "{key}: {}", work.0.taken.get());
    }
}
