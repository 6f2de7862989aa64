//! Every command of the engine either counts its work, in a long request that is listed here, or
//! is named as one that no request makes long. Work is counted so that the node is called amid a
//! long command, and renews the lease.

use super::Work;
use crate::command::{Command, DataFn, Declared, FAMILIES};
use crate::effect::{Effect, Fields, Ids};
use crate::keyspace::Keyspace;
use crate::settings::Settings;
use crate::stream_id::StreamId;
use crate::testing::{Bench, command};
use base::{DatabaseId, HashKey};
use std::collections::{BTreeMap, BTreeSet};

/// Elements of each collection. More than any compact encoding holds.
pub(crate) const ELEMENTS: usize = 1500;

/// Collections of so many elements, half of which the second of each sort shares.
pub(crate) fn filled() -> (Bench, Work) {
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
    bench.run_words(&[b"RESTORE", b"x0", b"0", &stream(0, 0)]);
    bench.run_words(&[b"RESTORE", b"x1", b"0", &stream(ELEMENTS, ELEMENTS)]);
    let places = numbered(0, |it| format!("0.{it} 0.{it} p{it}"));
    bench.run(&format!("GEOADD g {places}"));
    bench.run(&format!("MSET {}", numbered(0, |it| format!("k{it} {it}"))));
    bench.run(&format!("RPUSH same{}", " x".repeat(ELEMENTS)));
    bench.run("PFADD hll a b c");
    let text = vec![0; ELEMENTS << 10];
    bench.run_words(&[&b"SET"[..], b"long", &text]);
    let text = vec![b'x'; ELEMENTS];
    bench.run_words(&[&b"SET"[..], b"text", &text]);
    // What it shares with the other is many pieces.
    let text: Vec<u8> = b"xy".iter().copied().cycle().take(2 * ELEMENTS).collect();
    bench.run_words(&[&b"SET"[..], b"mixed", &text]);
    let work = bench.engine.keyspace.work.clone();
    (bench, work)
}

/// The DUMP payload of a stream. All entries are pending to the consumer `old` of group `g`;
/// nothing was delivered to the group `new`. There are `groups` more groups, and `consumers` more
/// consumers of `g`.
fn stream(groups: usize, consumers: usize) -> Vec<u8> {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
    let mut apply = |effect: Effect<'_>| {
        keyspace.apply(DatabaseId(0), b"x", &effect).expect("it is a stream");
    };
    let mut pending = Vec::new();
    for number in 1..=ELEMENTS as u64 {
        let id = StreamId::new(number, 0);
        let fields = Fields::of(b"\x01\0\0\0f\x01\0\0\0v").expect("a field and its value");
        apply(Effect::StreamAdd { id, fields });
        Ids::put(&mut pending, id);
    }
    let names = (0..groups).map(|number| format!("g{number}"));
    for name in names.chain(["g".to_owned(), "new".to_owned()]) {
        apply(Effect::StreamGroupCreate { group: name.as_bytes(), last: StreamId::MIN, read: 0 });
    }
    for name in (0..consumers).map(|number| format!("c{number}")).chain(["old".to_owned()]) {
        let consumer = name.as_bytes();
        apply(Effect::StreamConsumerCreate { group: b"g", consumer, seen: 0 });
    }
    let ids = Ids::of(&pending).expect("whole IDs");
    let (group, consumer, count) = (b"g", b"old", 1);
    apply(Effect::StreamDeliver { group, consumer, seen: 0, time: 0, count, ids });
    let entry = keyspace.database(DatabaseId(0)).find(keyspace.hash(b"x"), b"x");
    crate::dump::dump(entry.expect("it was made").value(), &keyspace.work)
}

/// Requests that go through all of a collection, all of the keyspace or a long string.
const WHOLE: [&str; 95] = [
    "KEYS *",
    "KEYS none",
    "SCAN 0 COUNT 100000",
    "SCAN 0 COUNT 100000 MATCH none",
    "SORT l0 ALPHA",
    "SORT l0 ALPHA LIMIT 0 1",
    "SORT_RO s0 ALPHA",
    "SORT z0 BY nosuch GET # GET k* GET #",
    "SORT l0 BY k* GET k*",
    "SORT l0 ALPHA STORE to",
    "COPY s0 to REPLACE",
    "COPY h0 to REPLACE",
    "COPY z0 to REPLACE",
    "LRANGE l0 0 -1",
    "LPOS l0 none",
    "LPOS l0 none RANK -1",
    "LPOS l0 none COUNT 0",
    "LPOS same x COUNT 0",
    "LREM l0 0 none",
    "LREM l0 -1 none",
    "LINSERT l0 BEFORE none x",
    "LTRIM l0 -1 -1",
    "LTRIM l0 0 0",
    "SMEMBERS s0",
    "SSCAN s0 0 COUNT 100000",
    "SINTER s0 s1",
    "SINTERCARD 2 s0 s1",
    "SUNION s0 s1",
    "SDIFF s0 s1",
    "SINTERSTORE to s0 s1",
    "SUNIONSTORE to s0 s1",
    "SDIFFSTORE to s0 s1",
    "SPOP s0 100000",
    "HGETALL h0",
    "HKEYS h0",
    "HVALS h0",
    "HSCAN h0 0 COUNT 100000",
    "ZRANGE z0 0 -1",
    "ZRANGE z0 0 -1 WITHSCORES",
    "ZREVRANGE z0 0 -1",
    "ZRANGEBYSCORE z0 -inf +inf",
    "ZREVRANGEBYSCORE z0 +inf -inf",
    "ZRANGEBYLEX z0 - +",
    "ZREVRANGEBYLEX z0 + -",
    "ZRANGESTORE to z0 0 -1",
    "ZREMRANGEBYRANK z0 0 -1",
    "ZREMRANGEBYSCORE z0 -inf +inf",
    "ZREMRANGEBYLEX z0 - +",
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
    "GEOSEARCH g FROMMEMBER p1 BYBOX 20000 20000 KM WITHCOORD WITHDIST WITHHASH",
    "GEOSEARCHSTORE to g FROMLONLAT 0.5 0.5 BYBOX 20000 20000 KM",
    "GEORADIUS g 0.5 0.5 20000 KM DESC",
    "GEORADIUS_RO g 0.5 0.5 20000 KM",
    "GEORADIUSBYMEMBER g p1 20000 KM",
    "GEORADIUSBYMEMBER_RO g p1 20000 KM",
    "BITCOUNT long",
    "BITCOUNT long 1 -2",
    "BITPOS long 1",
    "BITOP OR to long text",
    "BITOP NOT to long",
    "LCS text text LEN",
    "LCS text mixed IDX",
    "LCS text mixed IDX WITHMATCHLEN",
    "GET long",
    "GETRANGE long 0 0",
    "SUBSTR long 0 0",
    "PFSELFTEST",
    "PFDEBUG GETREG hll",
    "BLMPOP 0 2 none l0 LEFT COUNT 100000",
    "BZMPOP 0 2 none z0 MIN COUNT 100000",
    "ZMPOP 2 none z0 MAX COUNT 100000",
    "COPY x0 to REPLACE",
    "XRANGE x0 - +",
    "XREVRANGE x0 + -",
    "XREAD STREAMS x0 0",
    "XREADGROUP GROUP new c STREAMS x0 >",
    "XREADGROUP GROUP g old STREAMS x0 0",
    "XAUTOCLAIM x0 g c 0 0 COUNT 100000",
    "XPENDING x0 g - + 100000",
    "XPENDING x1 g",
    "XINFO STREAM x0 FULL COUNT 0",
    "XINFO GROUPS x1",
    "XINFO CONSUMERS x1 g",
    "XTRIM x0 MAXLEN 0 DELREF",
    "XGROUP DESTROY x0 g",
    "XGROUP DELCONSUMER x0 g old",
];

/// [`WHOLE`], and requests with as many arguments or results as a collection has elements.
pub(crate) fn long_requests() -> Vec<String> {
    let all = ELEMENTS;
    let half = ELEMENTS / 2;
    let each = |form: &dyn Fn(usize) -> String| -> String { (0..ELEMENTS).map(form).collect() };
    let keys = each(&|it| format!(" k{it}"));
    let absent = each(&|it| format!(" none{it}"));
    let members = each(&|it| format!(" e{it}"));
    let places = each(&|it| format!(" p{it}"));
    let pairs = each(&|it| format!(" none{it} v{it}"));
    let scored = each(&|it| format!(" {it} new{it}"));
    let placed = each(&|it| format!(" 0.{it} 0.{it} new{it}"));
    let mut lines: Vec<String> = WHOLE.map(str::to_owned).into();
    for (name, key) in [("SRANDMEMBER", "s0"), ("HRANDFIELD", "h0"), ("ZRANDMEMBER", "z0")] {
        lines.extend([-(all as i64), all as i64].map(|count| format!("{name} {key} {count}")));
    }
    for (form, arguments) in [
        ("MGET EXISTS TOUCH UNLINK DEL", &keys),
        ("PFCOUNT PFMERGE", &absent),
        ("SMISMEMBER=s0 SADD=s0 SREM=s0 HMGET=h0 HDEL=h0 ZMSCORE=z0 ZREM=z0", &members),
        ("LPUSH=l0 RPUSH=l0 LPUSHX=l0 RPUSHX=l0 PFADD=hll", &members),
        ("GEOPOS=g GEOHASH=g", &places),
        ("MSET MSETNX HSET=h0 HMSET=h0", &pairs),
        ("ZADD=z0", &scored),
        ("GEOADD=g", &placed),
    ] {
        let names = form.split(' ').map(|name| name.replace('=', " "));
        lines.extend(names.map(|name| format!("{name}{arguments}")));
    }
    let fields = format!(" FIELDS {all}{members}");
    for name in ["HTTL", "HPTTL", "HEXPIRETIME", "HPEXPIRETIME", "HPERSIST", "HGETEX", "HGETDEL"] {
        lines.push(format!("{name} h0{fields}"));
    }
    for request in ["HEXPIRE h0 100", "HPEXPIRE h0 100000"] {
        lines.push(format!("{request}{fields}"));
    }
    for request in ["HEXPIREAT h0 1900000000", "HPEXPIREAT h0 1900000000000"] {
        lines.push(format!("{request} NX{fields}"));
    }
    lines.push(format!("HSETEX h0 FNX EX 100 FIELDS {all}{pairs}"));
    let ids: String = (1..=all).map(|it| format!(" {it}")).collect();
    lines.push(format!("XADD x0 *{pairs}"));
    lines.push(format!("XDEL x0{ids}"));
    lines.push(format!("XACK x0 g{ids}"));
    lines.push(format!("XCLAIM x0 g c 0{ids}"));
    lines.push(format!("XDELEX x0 DELREF IDS {all}{ids}"));
    lines.push(format!("XACKDEL x0 g ACKED IDS {all}{ids}"));
    for name in ["BLPOP", "BRPOP", "BZPOPMIN", "BZPOPMAX"] {
        lines.push(format!("{name}{absent} 0"));
    }
    lines.push(format!("BITFIELD text{}", " GET u8 0".repeat(all)));
    lines.push(format!("BITFIELD to{}", " SET u8 0 1".repeat(all)));
    lines.push(format!("BITFIELD_RO text{}", " GET u8 0".repeat(all)));
    lines.push(format!("MSETEX {all}{pairs}"));
    lines.push(format!("MSETEX {all}{pairs} NX EX 100"));
    lines.push(format!("LPOP l0 {half}"));
    lines.push(format!("RPOP l0 {half}"));
    lines.push(format!("LMPOP 1 l1 RIGHT COUNT {all}"));
    lines.push(format!("SPOP s0 {half}"));
    lines.push(format!("ZPOPMIN z0 {half}"));
    lines.push(format!("ZPOPMAX z0 {half}"));
    lines
}

/// Commands that no request makes long, or that are tried elsewhere; beside those whose complexity
/// says it ([`is_constant`]).
const OTHERS: [(&str, &str); 11] = [
    ("dump", "counted: see the value that goes to another server"),
    ("restore", "counted: see the value that goes to another server"),
    ("restore-asking", "counted: see the value that goes to another server"),
    ("publish", "its patterns and deliveries are counted: see the patterns"),
    ("spublish", "its deliveries are counted, by the node"),
    ("flushdb", "old tables are freed elsewhere; watched keys are counted: see the watched keys"),
    ("flushall", "old tables are freed elsewhere; watched keys are counted: see the watched keys"),
    ("swapdb", "exchanges two tables; watched keys are counted: see the watched keys"),
    ("lindex", "goes by the counts of chunks and nodes, each of many elements"),
    ("lset", "goes by the counts of chunks and nodes, each of many elements"),
    ("setrange", "one copy of its argument"),
];

/// Whether a complexity says that neither the request nor what it finds makes a command long.
fn is_constant(complexity: &str) -> bool {
    complexity == "O(1)" || complexity.starts_with("O(log(N))") && !complexity.contains("each")
}

/// Every command of the engine, by its name.
pub(crate) fn every_command() -> BTreeMap<String, &'static Command<DataFn>> {
    let rows = FAMILIES.iter().flat_map(|family| family.iter());
    rows.map(|row| (Declared::new(row.usage, row.arity, row.keys).name, row)).collect()
}

/// The name of a request's command.
pub(crate) fn name_of(request: &str) -> String {
    let row = command(&request.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    Declared::new(row.usage, row.arity, row.keys).name
}

#[test]
fn every_command_is_tried_at_length_or_named_as_short() {
    let tried: BTreeSet<String> = long_requests().iter().map(|it| name_of(it)).collect();
    let every = every_command();
    for (name, row) in &every {
        let is_named = OTHERS.iter().any(|(other, _)| other == name);
        let is_short = is_constant(row.complexity) || is_named;
        // A long string makes some long whose complexity does not count bytes.
        assert!(tried.contains(name) || is_short, "{name}: try it at length, or say why not");
        assert!(!(tried.contains(name) && is_named), "{name} is tried: it needs no word");
    }
    for (name, _) in OTHERS {
        let row = every.get(name).unwrap_or_else(|| panic!("{name} is no command"));
        assert!(!is_constant(row.complexity), "{name}: its complexity says so already");
    }
}

#[test]
fn long_commands_count_their_steps() {
    let (mut bench, mut work) = filled();
    let mut silent = Vec::new();
    for line in long_requests() {
        work.0.taken.set(0);
        let reply = bench.run(&line);
        let shown = line.chars().take(60).collect::<String>();
        assert!(!reply.starts_with('-'), "{shown}: {reply}");
        let counted = work.0.taken.get();
        // Those that share or take a half have a half to look at.
        if counted < ELEMENTS / 2 - 1 {
            silent.push((counted, shown));
        }
        if bench.unit.changes > 0 {
            (bench, work) = filled();
        }
    }
    assert!(silent.is_empty(), "steps, and who took so few: {silent:#?}");
}

#[test]
fn watched_keys_and_patterns_are_counted() {
    let (mut bench, work) = filled();
    let watcher = crate::ids::WatcherId(7);
    for number in 0..ELEMENTS {
        let database = DatabaseId(0);
        let name = format!("k{number}*");
        bench.interest.watchers.watch(watcher, database, name.as_bytes(), false);
        let subscriber = crate::ids::SubscriberId(7);
        let sort = crate::subscribers::Sort::Pattern;
        bench.interest.subscribers.subscribe(subscriber, sort, name.as_bytes());
    }
    for line in ["PUBLISH none x", "SWAPDB 0 1", "FLUSHDB", "SWAPDB 0 1", "FLUSHALL"] {
        work.0.taken.set(0);
        bench.run(line);
        assert!(work.0.taken.get() >= ELEMENTS, "{line}: {}", work.0.taken.get());
    }
}

#[test]
fn a_value_that_goes_to_another_server_is_counted() {
    for key in ["l0", "s0", "h0", "z0", "x0"] {
        let (mut bench, work) = filled();
        let hash = bench.engine.keyspace.hash(key.as_bytes());
        let entry = bench.engine.keyspace.database(DatabaseId(0)).find(hash, key.as_bytes());
        let payload = crate::dump::dump(entry.expect("it was filled").value(), &work);
        // Many elements to a step.
        assert!(work.0.taken.get() > ELEMENTS / 10, "{key}: {}", work.0.taken.get());
        work.0.taken.set(0);
        assert_eq!(bench.run_words(&[&b"RESTORE"[..], b"to", b"0", &payload]), "+OK");
        // What was read is an effect for each element.
        assert!(work.0.taken.get() > ELEMENTS, "{key}: {}", work.0.taken.get());
    }
}
