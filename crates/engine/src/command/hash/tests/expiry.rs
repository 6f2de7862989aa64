//! Fields that expire. The answers are those of a Valkey 9.1; where Redis 8 is known to differ,
//! they are Redis's.

use super::WRONG_TYPE;
use crate::settings::Settings;
use crate::testing::Bench;
use crate::unit::Overdue;
use base::UnixMillis;

const NUMBER: &str =
    "-ERR numfields should be greater than 0 and match the provided number of fields";
const NO_INTEGER: &str = "-ERR value is not an integer or out of range";
const SYNTAX: &str = "-ERR syntax error";

fn bench() -> Bench {
    Bench::with_settings(Settings { notify_keyspace_events: u32::MAX, ..Settings::default() })
}

#[test]
fn fields_take_and_lose_an_expiry() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("HEXPIRE none 10 FIELDS 2 a b", "*2 :-2 :-2"),
        ("HSET h a 1 b 2 c 3", ":3"),
        ("HTTL h FIELDS 2 a z", "*2 :-1 :-2"),
        ("HEXPIRE h 10 FIELDS 2 a z", "*2 :1 :-2"),
        ("OBJECT ENCODING h", "$10 listpackex"),
        ("HEXPIRE h 10 NX FIELDS 2 a b", "*2 :0 :1"),
        ("HEXPIRE h 20 XX FIELDS 3 a b c", "*3 :1 :1 :0"),
        ("HEXPIRE h 20 GT FIELDS 3 a b c", "*3 :0 :0 :0"),
        ("HEXPIRE h 30 gt fields 2 a c", "*2 :1 :0"),
        ("HEXPIRE h 25 LT FIELDS 3 a b c", "*3 :1 :0 :1"),
        ("HEXPIRE h 40 NX FIELDS 2 c c", "*2 :0 :0"),
        ("HTTL h FIELDS 3 a b c", "*3 :25 :20 :25"),
        ("HPTTL h FIELDS 1 a", "*1 :25000"),
        ("HEXPIRETIME h FIELDS 1 a", "*1 :1700000025"),
        ("HPEXPIRETIME h FIELDS 1 a", "*1 :1700000025000"),
        ("HPERSIST h FIELDS 3 a a z", "*3 :1 :-1 :-2"),
        ("HPEXPIRE h 1499 NX FIELDS 3 a a b", "*3 :1 :0 :0"),
        ("HTTL h FIELDS 1 a", "*1 :1"),
        ("HPEXPIREAT h 1700000001500 FIELDS 1 a", "*1 :1"),
        ("HTTL h FIELDS 1 a", "*1 :2"),
        ("HEXPIREAT h 9223372036854775 FIELDS 1 a", "*1 :1"),
        ("HPEXPIREAT h 9223372036854775807 FIELDS 1 a", "*1 :1"),
        ("HEXPIRETIME h FIELDS 1 a", "*1 :9223372036854776"),
        ("HEXPIRE h 0 FIELDS 3 a a z", "*3 :2 :-2 :-2"),
        ("HPEXPIREAT h 1 FIELDS 1 b", "*1 :2"),
        ("HEXPIREAT h 1 GT FIELDS 1 c", "*1 :0"),
        ("HEXPIREAT h 1 LT FIELDS 1 c", "*1 :2"),
        ("EXISTS h", ":0"),
    ]);
}

#[test]
fn requests_are_refused_as_valkey_refuses_them() {
    let mut bench = Bench::new();
    let invalid = |command: &str| format!("-ERR invalid expire time in '{command}' command");
    bench.check_all(&[
        ("HSET h a 1", ":1"),
        ("SET s 1", "+OK"),
        ("HEXPIRE h 10 FIELDS 0 a", NUMBER),
        ("HEXPIRE h 10 FIELDS 2 a", NUMBER),
        ("HEXPIRE h 10 FIELDS 1 a b", NUMBER),
        ("HEXPIRE h 10 FIELDS 9223372036854775807 a", NUMBER),
        ("HEXPIRE h x FIELDS 0 a", NUMBER),
        ("HEXPIRE h 5 NX FOO a", NUMBER),
        ("HEXPIRE h 10 FIELDS x a", NO_INTEGER),
        ("HEXPIRE h 10 FIELDS 01 a", NO_INTEGER),
        ("HEXPIRE h x FIELDS 1 a", NO_INTEGER),
        ("HEXPIRE s x FIELDS 1 a", NO_INTEGER),
        ("HEXPIRE s 10 FIELDS 1 a", WRONG_TYPE),
        ("HEXPIRE h 10 FOO FIELDS 1 a", "-ERR Unsupported option FOO"),
        (
            "HEXPIRE h 10 NX XX FIELDS x a",
            "-ERR NX and XX, GT or LT options at the same time are not compatible",
        ),
        (
            "HEXPIRE h 10 GT LT FIELDS 1 a",
            "-ERR GT and LT options at the same time are not compatible",
        ),
        ("HEXPIRE h -1 FIELDS 1 a", &invalid("hexpire")),
        ("HEXPIRE s -1 FIELDS 1 a", &invalid("hexpire")),
        ("HEXPIRE h 9223372036854775807 FIELDS 1 a", &invalid("hexpire")),
        ("HPEXPIRE h 9223372036854775807 FIELDS 1 a", &invalid("hpexpire")),
        ("HPEXPIREAT h -5 FIELDS 1 a", &invalid("hpexpireat")),
        ("HTTL h FIELDS 0 a", SYNTAX),
        ("HTTL h FIELDS 2 a", SYNTAX),
        ("HTTL h FIELD 1 a", SYNTAX),
        ("HTTL h FIELDS x a", NO_INTEGER),
        ("HTTL s FIELDS 1 a", WRONG_TYPE),
        ("HPERSIST h FIELDS 0 a", NUMBER),
        ("HPERSIST h FIELD 1 a", SYNTAX),
        ("HPERSIST s FIELDS 1 a", WRONG_TYPE),
        ("HSETEX h FXX FNX FIELDS 1 a 1", SYNTAX),
        ("HSETEX h NX XX FIELDS 1 a 1", SYNTAX),
        (
            "HSETEX h EX 10 KEEPTTL FIELDS 1 a 1",
            "-ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified",
        ),
        ("HSETEX h EX FIELDS 1 a 1", SYNTAX),
        ("HSETEX h PERSIST FIELDS 1 a 1", SYNTAX),
        ("HSETEX h EX 10 FIELDS 2 a 1", NUMBER),
        ("HSETEX h FIELDS 1 a 1 EX 10", NUMBER),
        ("HSETEX h EX x FIELDS 1 a 1", NO_INTEGER),
        ("HSETEX s EX -1 FIELDS 1 a 1", WRONG_TYPE),
        ("HSETEX h EX -1 FNX FIELDS 1 a 1", &invalid("hsetex")),
        ("HGETEX h EX 10 PERSIST FIELDS 1 a", SYNTAX),
        ("HGETEX h KEEPTTL FIELDS 1 a", SYNTAX),
        ("HGETEX h PERSIST FIELDS 1", NUMBER),
        ("HGETEX h a FIELDS 1", SYNTAX),
        ("HGETEX none EX -1 FIELDS 1 a", &invalid("hgetex")),
        ("HGETEX s EX x FIELDS 1 a", WRONG_TYPE),
        ("HGETDEL h FIELDS 2 a", NUMBER),
        ("HGETDEL s FIELDS 1 a", WRONG_TYPE),
        ("HGETALL h", "*2 $1 a $1 1"),
    ]);
}

#[test]
fn fields_are_set_and_read_with_their_expiry() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("HSETEX h FIELDS 2 a 1 b 2", ":1"),
        ("HSETEX h FNX FIELDS 2 a 9 z 9", ":0"),
        ("HSETEX h FXX FIELDS 2 a 9 z 9", ":0"),
        ("HSETEX h NX FIELDS 1 c 1", ":0"),
        ("HSETEX none XX EX -1 FIELDS 1 c 1", ":0"),
        ("HSETEX h XX FXX EX 5 EX 10 FIELDS 2 a 3 a 4", ":1"),
        ("HTTL h FIELDS 2 a b", "*2 :10 :-1"),
        ("HSETEX h KEEPTTL FIELDS 3 a 5 b 6 c 7", ":1"),
        ("HTTL h FIELDS 3 a b c", "*3 :10 :-1 :-1"),
        ("HINCRBY h a 1", ":6"),
        ("HINCRBYFLOAT h a 0.5", "$3 6.5"),
        ("HSETNX h a 1", ":0"),
        ("HTTL h FIELDS 1 a", "*1 :10"),
        ("HSET h a 1", ":0"),
        ("HTTL h FIELDS 1 a", "*1 :-1"),
        ("OBJECT ENCODING h", "$8 listpack"),
        ("HGETEX h PX 500 FIELDS 3 a z b", "*3 $1 1 $-1 $1 6"),
        ("HPTTL h FIELDS 3 a z b", "*3 :500 :-2 :500"),
        ("HGETEX h PERSIST FIELDS 2 b c", "*2 $1 6 $1 7"),
        ("HGETEX h FIELDS 1 a", "*1 $1 1"),
        ("HPTTL h FIELDS 2 a b", "*2 :500 :-1"),
        ("HGETEX h EXAT 1 FIELDS 2 a a", "*2 $1 1 $-1"),
        ("HGETDEL h FIELDS 3 c c z", "*3 $1 7 $-1 $-1"),
        ("HGETALL h", "*2 $1 b $1 6"),
        ("HSETEX h PXAT 1 FIELDS 2 b 1 new 2", ":1"),
        ("EXISTS h", ":0"),
        ("HGETDEL h FIELDS 1 b", "*1 $-1"),
        ("HGETEX h EX 10 FIELDS 1 b", "*1 $-1"),
    ]);
}

#[test]
fn events_name_what_became_of_fields() {
    let mut bench = bench();
    for (line, events, of_replica) in [
        (
            "HSETEX h EX 10 FIELDS 2 a 1 b 2",
            &["new h", "hset h", "hexpire h"][..],
            // An effect has one event.
            Some(&["new h", "hset h"][..]),
        ),
        ("HSETEX h KEEPTTL FIELDS 1 a 1", &["hset h"], None),
        ("HINCRBY h a 1", &["hincrby h"], Some(&["hset h"])),
        ("HEXPIRE h 20 FIELDS 2 a b", &["hexpire h"], None),
        ("HEXPIRE h 20 NX FIELDS 2 a b", &[], None),
        ("HPERSIST h FIELDS 2 a z", &["hpersist h"], None),
        ("HPERSIST h FIELDS 1 a", &[], None),
        ("HGETEX h EX 5 FIELDS 2 a z", &["hexpire h"], None),
        ("HGETEX h PERSIST FIELDS 1 a", &["hpersist h"], None),
        ("HEXPIRE h 0 FIELDS 1 a", &["hdel h"], None),
        ("HSETEX h PX 0 FIELDS 1 c 1", &["hset h", "hdel h"], Some(&[])),
        ("HGETEX h EXAT 1 FIELDS 1 b", &["hdel h", "del h"], None),
        ("HSET h a 1", &["new h", "hset h"], None),
        ("HGETDEL h FIELDS 1 a", &["hdel h", "del h"], None),
        ("HGETDEL h FIELDS 1 a", &[], None),
    ]
    .map(|(line, events, replica)| (line, events, replica.unwrap_or(events)))
    {
        bench.run(line);
        assert_eq!(bench.events(), events, "{line}");
        assert_eq!(bench.twin_events(), of_replica, "{line}");
    }
}

/// Fields a, b and c, of which the first two expire in 10 ms, and an instant at which they have;
/// in a small hash, or in one that is a table because of another field.
fn overdue(is_large: bool) -> Bench {
    let mut bench = bench();
    bench.run("HSET h a 1 b 2 c 3");
    if is_large {
        bench.run(&format!("HSET h large {}", "x".repeat(100)));
        bench.run("HDEL h large");
    }
    bench.run("HPEXPIRE h 10 FIELDS 2 a b");
    bench.context.now.0 += 10;
    bench
}

#[test]
fn a_field_past_its_time_is_nowhere_to_be_seen() {
    for is_large in [false, true] {
        for (line, reply) in [
            ("HGET h a", "$-1"),
            ("HMGET h a b c", "*3 $-1 $-1 $1 3"),
            ("HGETALL h", "*2 $1 c $1 3"),
            ("HKEYS h", "*1 $1 c"),
            ("HVALS h", "*1 $1 3"),
            ("HLEN h", ":1"),
            ("HEXISTS h a", ":0"),
            ("HSTRLEN h a", ":0"),
            ("HSCAN h 0 COUNT 100", "*2 $1 0 *2 $1 c $1 3"),
            ("HRANDFIELD h", "$1 c"),
            ("HRANDFIELD h 5", "*1 $1 c"),
            ("HRANDFIELD h -3", "*3 $1 c $1 c $1 c"),
            ("HTTL h FIELDS 2 a c", "*2 :-2 :-1"),
            ("SORT none BY h->a", "*0"),
            ("HSET h a 9", ":1"),
            ("HSETNX h a 9", ":1"),
            ("HINCRBY h a 5", ":5"),
            ("HDEL h a c", ":1"),
            ("HEXPIRE h 5 FIELDS 2 a c", "*2 :-2 :1"),
            ("HPERSIST h FIELDS 1 a", "*1 :-2"),
            ("HSETEX h FXX FIELDS 1 a 1", ":0"),
            ("HSETEX h FNX FIELDS 1 a 1", ":1"),
            ("HSETEX h KEEPTTL FIELDS 1 a 1", ":1"),
            ("HGETEX h PERSIST FIELDS 2 a c", "*2 $-1 $1 3"),
            ("HGETDEL h FIELDS 2 a c", "*2 $-1 $1 3"),
            ("COPY h to", ":1"),
        ] {
            let mut bench = overdue(is_large);
            bench.check(line, reply);
            if !line.starts_with("SORT") {
                assert_eq!(bench.events()[0], "hexpired h", "{line}");
                assert_eq!(bench.engine.keyspace.statistics.expired_fields.get(), 2, "{line}");
                bench.check("HTTL h FIELDS 1 b", "*1 :-2");
                assert_eq!(bench.unit.changes, 0, "it is gone already: {line}");
            }
        }
    }
}

#[test]
fn where_no_deletion_is_recorded_fields_go_by_the_clock_that_stands_still() {
    for (is_large, overdue_as) in [
        (false, Overdue::Left),
        (true, Overdue::Left),
        (false, Overdue::Hidden),
        (true, Overdue::Hidden),
    ] {
        let mut bench = overdue(is_large);
        let now = bench.context.now.0;
        bench.context.overdue = overdue_as;
        bench.context.stands_at = Some(UnixMillis(now - 1));
        for (line, reply) in
            [("HLEN h", ":3"), ("HGET h a", "$1 1"), ("HPTTL h FIELDS 1 a", "*1 :0")]
        {
            bench.check(line, reply);
            assert!(!bench.unit.rests_on_clock, "{line}");
        }
        bench.context.stands_at = Some(UnixMillis(now));
        for (line, reply) in [("HLEN h", ":1"), ("HGET h a", "$-1"), ("HGETALL h", "*2 $1 c $1 3")]
        {
            bench.check(line, reply);
            assert!(bench.unit.rests_on_clock, "{line}");
            assert_eq!(bench.unit.changes, 0, "{line}");
        }
    }
}

#[test]
fn a_master_says_itself_when_a_field_goes() {
    let mut bench = overdue(false);
    bench.context.overdue = Overdue::Kept;
    bench.check("HLEN h", ":3");
    bench.check("HPEXPIREAT h 5 FIELDS 1 c", "*1 :1");
    bench.check("HSETEX h PXAT 7 FIELDS 1 d 1", ":1");
    bench.check("HPEXPIRETIME h FIELDS 2 c d", "*2 :5 :7");
    bench.context.overdue = Overdue::Deleted;
    bench.check("EXISTS h", ":0");
}

#[test]
fn a_hash_goes_with_the_last_of_its_fields() {
    for is_large in [false, true] {
        for line in ["EXISTS h", "HLEN h", "TYPE h", "KEYS *", "SCAN 0", "RANDOMKEY", "HDEL h a"] {
            let mut bench = overdue(is_large);
            bench.context.now.0 -= 10;
            bench.run("HDEL h c");
            bench.context.now.0 += 10;
            let reply = bench.run(line);
            assert!(!reply.contains('h') && !reply.contains(":1"), "{line}: {reply}");
            assert!(bench.events().starts_with(&["hexpired h".into(), "del h".into()]), "{line}");
            assert!(bench.engine.keyspace.is_empty() && bench.twin.is_empty(), "{line}");
        }
    }
}

#[test]
fn what_nobody_asks_for_goes_in_slices() {
    let mut bench = bench();
    for hash in 0..5 {
        for field in 0..20 {
            bench.run(&format!("HSETEX h{hash} PX {} FIELDS 1 f{field} v", 10 + field / 10));
        }
        bench.run(&format!("HSET h{hash} stays v"));
    }
    bench.run("HSETEX alone PX 10 FIELDS 2 a 1 b 2");
    bench.run("SET key v PX 10");
    let due = |bench: &Bench| bench.engine.has_due(bench.context.now);
    assert!(!due(&bench));
    bench.context.now.0 += 10;
    assert!(due(&bench));
    let mut slices = 0;
    while {
        bench.unit.clear();
        let now = bench.context.now;
        let more = bench.engine.expire_due(now, 7, &mut bench.unit, &mut bench.interest);
        bench.compare();
        more
    } {
        slices += 1;
        assert!(bench.unit.changes <= 7 && slices < 20);
    }
    // Ten of each hash, two of one that goes as a whole, and a key.
    assert_eq!(slices, (5 * 10 + 2 + 1) / 7);
    assert!(!due(&bench));
    bench.check("DBSIZE", ":5");
    bench.check("HLEN h0", ":11");
    bench.context.now.0 += 1;
    bench.check("HGET h0 f19", "$-1");
    bench.check("HLEN h0", ":1");
}

#[test]
fn a_read_deletes_a_part_and_a_write_all_that_is_due() {
    let mut bench = bench();
    for field in 0..600 {
        bench.run(&format!("HSETEX h PX 10 FIELDS 1 f{field} v"));
    }
    bench.run("HSET h stays v");
    bench.context.now.0 += 10;
    bench.check("HLEN h", ":1");
    assert!((1..=64).contains(&bench.unit.changes));
    bench.check("HRANDFIELD h 9", "*1 $5 stays");
    bench.check("HSET h other v", ":1");
    bench.check("HGETALL h", "*4 $5 other $1 v $5 stays $1 v");
    assert_eq!(bench.unit.changes, 0);
}

#[test]
fn expiries_go_wherever_the_hash_goes() {
    for is_large in [false, true] {
        let mut bench = overdue(is_large);
        bench.context.now.0 -= 10;
        bench.run("RENAME h g");
        bench.run("COPY g c");
        bench.run("MOVE c 1");
        let dumped = bench.run("DUMP g");
        assert!(dumped.len() > 20);
        let hash = bench.engine.keyspace.hash(b"g");
        let entry = bench.engine.keyspace.database(base::DatabaseId(0)).find(hash, b"g");
        let payload = crate::dump::dump(entry.expect("it is there").value(), &Default::default());
        assert_eq!((payload[0], payload[payload.len() - 10]), (24, 12), "type and version");
        assert_eq!(bench.run_words(&[b"RESTORE", b"r", b"0", &payload]), "+OK");
        bench.check("HPTTL r FIELDS 3 a b c", "*3 :10 :10 :-1");
        bench.context.now.0 += 10;
        assert_eq!(bench.run_words(&[b"RESTORE", b"late", b"0", &payload]), "+OK");
        for key in ["g", "r", "late"] {
            bench.check(&format!("HGETALL {key}"), "*2 $1 c $1 3");
        }
        bench.context.database = base::DatabaseId(1);
        bench.check("HGETALL c", "*2 $1 c $1 3");
    }
    let mut bench = bench();
    bench.run("HSETEX h PX 10 FIELDS 1 a 1");
    let hash = bench.engine.keyspace.hash(b"h");
    let entry = bench.engine.keyspace.database(base::DatabaseId(0)).find(hash, b"h");
    let payload = crate::dump::dump(entry.expect("it is there").value(), &Default::default());
    bench.context.now.0 += 10;
    assert_eq!(bench.run_words(&[b"RESTORE", b"r", b"500", &payload]), "+OK");
    bench.check("EXISTS r", ":0");
}
