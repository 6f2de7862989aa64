use crate::ids::WatcherId;
use crate::settings::Settings;
use crate::testing::Bench;
use crate::unit::TimeoutReply;
use base::{DatabaseId, UnixMillis};

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";
const NOT_AN_INTEGER: &str = "-ERR value is not an integer or out of range";

fn notifying() -> Bench {
    let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
    Bench::with_settings(settings)
}

#[test]
fn pushes_and_pops_work_at_both_ends() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("LPUSHX k a", ":0"),
        ("LPUSH k a b", ":2"),
        ("RPUSH k c 007 7", ":5"),
        ("RPUSHX k d", ":6"),
        ("LRANGE k 0 -1", "*6 $1 b $1 a $1 c $3 007 $1 7 $1 d"),
        ("LPOP k", "$1 b"),
        ("RPOP k 2", "*2 $1 d $1 7"),
        ("LPOP k 0", "*0"),
        ("LPOP k x", "-ERR value is out of range, must be positive"),
        ("LPOP k -1", "-ERR value is out of range, must be positive"),
        ("LPOP k 1 1", "-ERR wrong number of arguments for 'lpop' command"),
        ("LPOP k 100", "*3 $1 a $1 c $3 007"),
        ("LPOP k", "$-1"),
        ("LPOP k 3", "*-1"),
        ("LLEN k", ":0"),
        ("SET s x", "+OK"),
        ("LPUSH s a", WRONG_TYPE),
        ("LPUSHX s a", WRONG_TYPE),
        ("LPOP s", WRONG_TYPE),
        ("LLEN s", WRONG_TYPE),
    ]);
}

#[test]
fn indexes_count_from_either_end() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("RPUSH k a b c d e", ":5"),
        ("LINDEX k 0", "$1 a"),
        ("LINDEX k -1", "$1 e"),
        ("LINDEX k 5", "$-1"),
        ("LINDEX k -6", "$-1"),
        ("LINDEX k x", NOT_AN_INTEGER),
        ("LINDEX none x", "$-1"),
        ("LRANGE k 1 2", "*2 $1 b $1 c"),
        ("LRANGE k -2 100", "*2 $1 d $1 e"),
        ("LRANGE k -9223372036854775808 9223372036854775807", "*5 $1 a $1 b $1 c $1 d $1 e"),
        ("LRANGE k 3 1", "*0"),
        ("LRANGE none x 1", NOT_AN_INTEGER),
        ("LSET k -1 z", "+OK"),
        ("LSET k 5 z", "-ERR index out of range"),
        ("LSET none 0 z", "-ERR no such key"),
        ("LTRIM k 1 -2", "+OK"),
        ("LRANGE k 0 -1", "*3 $1 b $1 c $1 d"),
        ("LTRIM k 5 10", "+OK"),
        ("LLEN k", ":0"),
        ("LTRIM k 0 0", "+OK"),
    ]);
}

#[test]
fn elements_are_found_inserted_and_removed_by_value() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("RPUSH k a b c 1 2 3 c c", ":8"),
        ("LPOS k c", ":2"),
        ("LPOS k c RANK 2", ":6"),
        ("LPOS k c RANK -1", ":7"),
        ("LPOS k c COUNT 0", "*3 :2 :6 :7"),
        ("LPOS k c COUNT 2 RANK -1", "*2 :7 :6"),
        ("LPOS k c COUNT 1 MAXLEN 2", "*0"),
        ("LPOS k c MAXLEN 2", "$-1"),
        ("LPOS k c COUNT -1", "-ERR COUNT can't be negative"),
        ("LPOS k c RANK", "-ERR syntax error"),
        ("LPOS none c", "$-1"),
        ("LPOS none c COUNT 0", "*0"),
        ("LINSERT k BEFORE c x", ":9"),
        ("LINSERT k after 3 y", ":10"),
        ("LINSERT k AFTER c z", ":11"),
        ("LINSERT k AFTER none z", ":-1"),
        ("LINSERT none AFTER c z", ":0"),
        ("LINSERT k AROUND c z", "-ERR syntax error"),
        ("LRANGE k 0 -1", "*11 $1 a $1 b $1 x $1 c $1 z $1 1 $1 2 $1 3 $1 y $1 c $1 c"),
        ("LREM k -2 c", ":2"),
        ("LREM k 0 none", ":0"),
        ("LREM k x c", NOT_AN_INTEGER),
        ("RPUSH k x x b x", ":13"),
        ("LREM k 3 x", ":3"),
        ("LRANGE k 0 -1", "*10 $1 a $1 b $1 c $1 z $1 1 $1 2 $1 3 $1 y $1 b $1 x"),
        ("RPUSH same v v v", ":3"),
        ("LREM same 0 v", ":3"),
        ("LLEN same", ":0"),
    ]);
}

#[test]
fn a_list_that_is_its_own_destination_keeps_its_expiry() {
    let mut bench = Bench::new();
    bench.run("RPUSH k a");
    let at = bench.context.now.0 + 1000;
    let mut tx = bench.engine.tx(bench.context, &mut bench.unit, &mut bench.interest);
    tx.change(b"k", crate::effect::Effect::Expire { at: Some(at) }).expect("any type may expire");
    bench.check("RPOPLPUSH k k", "$1 a");
    bench.context.now = UnixMillis(at);
    bench.check("LLEN k", ":0");
    bench.check_all(&[
        ("RPUSH k a b c", ":3"),
        ("LMOVE k k LEFT LEFT", "$1 a"),
        ("LMOVE k k LEFT RIGHT", "$1 a"),
        ("LMOVE k k RIGHT RIGHT", "$1 a"),
        ("LRANGE k 0 -1", "*3 $1 b $1 c $1 a"),
        ("LMOVE k l RIGHT LEFT", "$1 a"),
        ("LMOVE k l UP LEFT", "-ERR syntax error"),
        ("LMOVE none l LEFT LEFT", "$-1"),
        ("SET s x", "+OK"),
        ("RPOPLPUSH k s", WRONG_TYPE),
        ("RPOPLPUSH s k", WRONG_TYPE),
        ("LRANGE k 0 -1", "*2 $1 b $1 c"),
        ("LRANGE l 0 -1", "*1 $1 a"),
    ]);
}

#[test]
fn a_pop_of_many_takes_from_the_first_list_there_is() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("RPUSH b 1 2 3", ":3"),
        ("LMPOP 2 a b LEFT", "*2 $1 b *1 $1 1"),
        ("LMPOP 2 a b RIGHT COUNT 10", "*2 $1 b *2 $1 3 $1 2"),
        ("LMPOP 2 a b RIGHT COUNT 10", "*-1"),
        ("LMPOP 0 a LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP x a LEFT", "-ERR numkeys should be greater than 0"),
        ("LMPOP 2 a LEFT", "-ERR syntax error"),
        ("LMPOP 1 a LEFT COUNT", "-ERR syntax error"),
        ("LMPOP 1 a LEFT COUNT 0", "-ERR count should be greater than 0"),
        ("LMPOP 1 a LEFT COUNT 1 COUNT 1", "-ERR syntax error"),
        ("LMPOP 9223372036854775807 a LEFT", "-ERR syntax error"),
    ]);
}

#[test]
fn blocking_commands_wait_until_their_key_is_ready() {
    let mut bench = Bench::new();
    bench.check("BLPOP a b 1.5", "(waits)");
    let wait = bench.unit.wait.take().expect("it waits");
    assert_eq!(wait.keys, [b"a".to_vec(), b"b".to_vec()]);
    assert_eq!(wait.wait_millis, Some(1500));
    assert_eq!(wait.on_timeout, TimeoutReply::NullArray);
    bench.check_all(&[
        ("BLMPOP 0 2 a b LEFT COUNT 2", "(waits)"),
        ("BRPOPLPUSH a b 0", "(waits)"),
        ("BLMOVE a b LEFT RIGHT 0", "(waits)"),
        ("BLPOP a b -1", "-ERR timeout is negative"),
        ("BRPOP a b x", "-ERR timeout is not a float or out of range"),
        ("SET a x", "+OK"),
        ("BLPOP a b 0", WRONG_TYPE),
        ("BLMOVE a b LEFT RIGHT 0", WRONG_TYPE),
        ("RPUSH b 1 2 3 4", ":4"),
    ]);
    bench.context.retry = true;
    bench.check_all(&[
        ("BLPOP a b 0", "*2 $1 b $1 1"),
        ("BLMPOP 0 2 a b RIGHT COUNT 2", "*2 $1 b *2 $1 4 $1 3"),
        ("BLMOVE a b LEFT RIGHT 0", "(waits)"),
        ("BRPOPLPUSH b a 0", WRONG_TYPE),
    ]);
    bench.context.retry = false;
    bench.context.may_block = false;
    bench.check_all(&[
        ("BLPOP none 0", "*-1"),
        ("BLMPOP 0 1 none LEFT", "*-1"),
        ("BLMOVE none b LEFT RIGHT 0", "$-1"),
        ("BRPOP b 0", "*2 $1 b $1 2"),
    ]);
}

#[test]
fn events_come_in_the_order_of_redis() {
    let mut bench = notifying();
    for (line, events) in [
        ("RPUSH k a b c d e", &["new k", "rpush k"][..]),
        ("LPOP k", &["lpop k"]),
        ("LSET k 0 x", &["lset k"]),
        ("LINSERT k BEFORE x y", &["linsert k"]),
        ("LREM k 1 y", &["lrem k"]),
        ("LREM k 1 y", &[]),
        ("LTRIM k 0 -1", &["ltrim k"]),
        ("LTRIM k 0 0", &["ltrim k"]),
        ("LMOVE k l LEFT RIGHT", &["new l", "rpush l", "lpop k", "del k"]),
        ("RPOPLPUSH l l", &["lpush l", "rpop l"]),
        ("LMPOP 1 l RIGHT COUNT 5", &["rpop l", "del l"]),
        ("RPUSH k a", &["new k", "rpush k"]),
        ("LREM k 0 a", &["lrem k", "del k"]),
        ("RPUSH k a", &["new k", "rpush k"]),
        ("LTRIM k 1 0", &["ltrim k", "del k"]),
        ("LLEN k", &["keymiss k"]),
    ] {
        bench.run(line);
        assert_eq!(bench.events(), events, "{line}");
    }
}

#[test]
fn elements_stay_whole_in_nodes_of_any_size() {
    for size in [-5, -1, 1, 3, 100] {
        let settings = Settings { list_max_listpack_size: size, ..Settings::default() };
        let mut bench = Bench::with_settings(settings);
        let long = "x".repeat(9000);
        for round in 0..40 {
            bench.run(&format!("RPUSH k {round} {long} value:{round}"));
            bench.run(&format!("LINSERT k AFTER {round} {}", round * 1000));
            bench.run(&format!("LSET k {round} {}", long.len()));
        }
        bench.check("LLEN k", ":160");
        bench.check("LREM k 0 none", ":0");
        bench.run("LTRIM k 20 -20");
        bench.check("LLEN k", ":121");
    }
}

#[test]
fn a_copy_dirties_only_its_destination() {
    let mut bench = Bench::new();
    bench.run("RPUSH a x");
    let watchers = &mut bench.interest.watchers;
    watchers.watch(WatcherId(1), DatabaseId(0), b"a", false);
    watchers.watch(WatcherId(2), DatabaseId(0), b"b", false);
    bench.check("COPY a b", ":1");
    assert_eq!(bench.interest.dirtied, [WatcherId(2)]);
    bench.check("LTRIM a 0 -1", "+OK");
    assert_eq!(bench.interest.dirtied, [WatcherId(1)]);
}
