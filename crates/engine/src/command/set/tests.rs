use crate::settings::Settings;
use crate::testing::Bench;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

fn notifying() -> Bench {
    let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
    Bench::with_settings(settings)
}

#[test]
fn members_join_and_leave() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SADD k 3 1 2 1", ":3"),
        ("SMEMBERS k", "*3 $1 1 $1 2 $1 3"),
        ("OBJECT ENCODING k", "$6 intset"),
        ("SADD k 1 01", ":1"),
        ("OBJECT ENCODING k", "$9 hashtable"),
        ("SCARD k", ":4"),
        ("SMISMEMBER k 1 01 4", "*3 :1 :1 :0"),
        ("SISMEMBER k 4", ":0"),
        ("SREM k 1 1 01 9", ":2"),
        ("SREM k 2 3", ":2"),
        ("EXISTS k", ":0"),
        ("SREM k 2", ":0"),
        ("SMEMBERS k", "*0"),
        ("SET s x", "+OK"),
        ("SADD s a", WRONG_TYPE),
        ("SMISMEMBER s a", WRONG_TYPE),
    ]);
}

#[test]
fn a_member_moves_unless_it_is_there_already() {
    let mut bench = notifying();
    bench.check_all(&[("SADD a 1 x", ":2"), ("SADD b 1", ":1"), ("SET s x", "+OK")]);
    bench.check_all(&[
        ("SMOVE none s x", ":0"),
        ("SMOVE a s x", WRONG_TYPE),
        ("SMOVE s a x", WRONG_TYPE),
        ("SMOVE a a x", ":1"),
        ("SMOVE a a y", ":0"),
    ]);
    assert!(bench.events().is_empty());
    bench.check("SMOVE a b 1", ":1");
    assert_eq!(bench.events(), ["srem a"]);
    bench.check("SMOVE a c x", ":1");
    assert_eq!(bench.events(), ["srem a", "del a", "new c", "sadd c"]);
    bench.check("SMEMBERS c", "*1 $1 x");
}

#[test]
fn sets_are_combined() {
    let mut bench = notifying();
    bench.check_all(&[("SADD a 1 2 3 4", ":4"), ("SADD b 2 3 x", ":3"), ("SADD c 3", ":1")]);
    bench.check_all(&[
        ("SINTER a b c", "*1 $1 3"),
        ("SINTER a none", "*0"),
        ("SINTERCARD 2 a b", ":2"),
        ("SINTERCARD 2 a b LIMIT 1", ":1"),
        ("SINTERCARD 3 a b", "-ERR Number of keys can't be greater than number of args"),
        ("SINTERCARD 0 a", "-ERR numkeys should be greater than 0"),
        ("SINTERCARD 1 a LIMIT -1", "-ERR LIMIT can't be negative"),
        ("SINTERCARD 1 a LIMIT", "-ERR syntax error"),
        ("SDIFF a b c", "*2 $1 1 $1 4"),
        ("SDIFF a b a", "*0"),
        ("SDIFF none a", "*0"),
        ("SUNION a c none", "*4 $1 1 $1 2 $1 3 $1 4"),
        ("SINTERSTORE d a b", ":2"),
        ("SMEMBERS d", "*2 $1 2 $1 3"),
        ("SUNIONSTORE d d c", ":2"),
        ("SDIFFSTORE a a b", ":2"),
        ("SMEMBERS a", "*2 $1 1 $1 4"),
    ]);
    bench.check("SINTERSTORE d a c", ":0");
    assert_eq!(bench.events(), ["del d"]);
    bench.check_all(&[("SET d x", "+OK"), ("SINTER a d", WRONG_TYPE)]);
    bench.check("SUNIONSTORE d a", ":2");
    bench.check("SUNIONSTORE e d a", ":2");
    assert_eq!(bench.events(), ["new e", "sunionstore e"]);
}

#[test]
fn popped_members_are_gone() {
    let mut bench = notifying();
    bench.check("SPOP k", "$-1");
    bench.check("SPOP k 3", "*0");
    bench.check("SPOP k -1", "-ERR value is out of range, must be positive");
    bench.check("SPOP k 1 1", "-ERR syntax error");
    for count in [1, 7, 450, 499, 500, 600] {
        for prefix in ["", "m"] {
            for i in 0..500 {
                bench.run(&format!("SADD k {prefix}{i}"));
            }
            let reply = bench.run(&format!("SPOP k {count}"));
            let left = 500 - count.min(500);
            assert!(reply.starts_with(&format!("*{} ", 500 - left)));
            let events: &[&str] = if left == 0 { &["spop k", "del k"] } else { &["spop k"] };
            assert_eq!(bench.events(), events);
            bench.check("SCARD k", &format!(":{left}"));
            bench.run("DEL k");
        }
    }
    bench.check_all(&[("SADD k a", ":1"), ("SPOP k", "$1 a")]);
    assert_eq!(bench.events(), ["spop k", "del k"]);
}

#[test]
fn random_members_are_distinct_unless_the_count_is_negative() {
    let mut bench = Bench::new();
    bench.check("SRANDMEMBER k", "$-1");
    bench.check("SRANDMEMBER k -5", "*0");
    for i in 0..100 {
        bench.run(&format!("SADD k m{i}"));
    }
    for count in [1, 5, 50, 99, 100, 200] {
        let reply = bench.run(&format!("SRANDMEMBER k {count}"));
        let mut members: Vec<&str> =
            reply.split(' ').filter(|word| word.starts_with('m')).collect();
        assert_eq!(members.len(), count.min(100));
        members.sort_unstable();
        members.dedup();
        assert_eq!(members.len(), count.min(100));
    }
    assert!(bench.run("SRANDMEMBER k -200").starts_with("*200 "));
    bench.check("SRANDMEMBER k 0", "*0");
    bench.check("SRANDMEMBER k -9223372036854775807", "-ERR value is out of range");
    bench.check("SRANDMEMBER k x", "-ERR value is not an integer or out of range");
}

#[test]
fn a_scan_of_an_intset_gives_all() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SADD k 1 2 12", ":3"),
        ("SSCAN k 0 COUNT 1 MATCH 1*", "*2 $1 0 *2 $1 1 $2 12"),
        ("SSCAN k x", "-ERR invalid cursor"),
        ("SSCAN k -", "-ERR invalid cursor"),
        ("SSCAN k 18446744073709551616", "-ERR invalid cursor"),
        ("SSCAN k -1 MATCH 2", "*2 $1 0 *1 $1 2"),
        ("SSCAN k +007 MATCH 2", "*2 $1 0 *1 $1 2"),
        ("SSCAN k  MATCH 2", "*2 $1 0 *1 $1 2"),
        ("SSCAN k 0 COUNT 0", "-ERR syntax error"),
        ("SSCAN k 0 TYPE set", "-ERR syntax error"),
        ("SSCAN none 0 NONSENSE", "*2 $1 0 *0"),
    ]);
}
