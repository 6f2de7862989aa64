//! Sorted sets: replies, events and effects. Every reply is that of Redis 7.0.15.

use crate::settings::Settings;
use crate::testing::Bench;
use resp::Protocol;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

fn notifying() -> Bench {
    let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
    Bench::with_settings(settings)
}

/// A bench whose sorted sets are all of the larger form, and one with the smaller.
fn both() -> [Bench; 2] {
    let settings = Settings { zset_max_listpack_entries: 0, ..Settings::default() };
    [Bench::new(), Bench::with_settings(settings)]
}

#[test]
fn scores_are_added_under_conditions() {
    for mut bench in both() {
        bench.check_all(&[
            ("ZADD z 1 a 2 b", ":2"),
            ("ZADD z 1 a 3 b", ":0"),
            ("ZADD z CH 1 a 4 b 5 c", ":2"),
            ("ZADD z NX CH 9 a 9 d", ":1"),
            ("ZADD z XX CH 2 a 9 e", ":1"),
            ("ZADD z GT CH 1 a 5 b 0 f", ":2"),
            ("ZADD z LT CH 1 a 6 b", ":1"),
            ("ZADD z INCR 2.5 a", "$3 3.5"),
            ("ZADD z NX INCR 1 a", "$-1"),
            ("ZADD z GT INCR -1 a", "$-1"),
            ("ZINCRBY z -1 g", "$2 -1"),
            ("ZADD none XX INCR 1 a", "$-1"),
            ("ZADD none XX 1 a", ":0"),
            ("EXISTS none", ":0"),
            (
                "ZRANGE z 0 -1 WITHSCORES",
                "*12 $1 g $2 -1 $1 f $1 0 $1 a $3 3.5 $1 b $1 5 $1 c $1 5 $1 d $1 9",
            ),
        ]);
    }
}

#[test]
fn minus_zero_is_zero_in_small_sorted_sets_and_in_results() {
    let [mut small, mut large] = both();
    for (bench, added) in [(&mut small, "$1 0"), (&mut large, "$2 -0")] {
        bench.check_all(&[
            ("ZADD z -0 a 1 b", ":2"),
            ("ZSCORE z a", added),
            ("ZADD z INCR -0 c", "$2 -0"),
            ("ZSCORE z c", added),
            ("ZADD z -0 b", ":0"),
            ("ZSCORE z b", added),
            ("ZUNIONSTORE sum 1 z WEIGHTS -1", ":3"),
            ("ZSCORE sum a", "$1 0"),
        ]);
    }
    let long = "m".repeat(65);
    small.check(&format!("ZADD z -0 {long}"), ":1");
    small.check(&format!("ZSCORE z {long}"), "$2 -0");
}

#[test]
fn refusals_change_nothing() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("SET s x", "+OK"),
        ("ZADD s 1 a", WRONG_TYPE),
        ("ZADD s x a", "-ERR value is not a valid float"),
        ("ZADD z 1 a x b", "-ERR value is not a valid float"),
        ("ZADD z nan a", "-ERR value is not a valid float"),
        ("EXISTS z", ":0"),
        ("ZADD z 1 a 2", "-ERR syntax error"),
        ("ZADD z NX XX 1 a", "-ERR XX and NX options at the same time are not compatible"),
        ("ZADD z NX GT 1 a", "-ERR GT, LT, and/or NX options at the same time are not compatible"),
        ("ZADD z INCR 1 a 2 b", "-ERR INCR option supports a single increment-element pair"),
        ("ZADD z inf a", ":1"),
        ("ZINCRBY z -inf a", "-ERR resulting score is not a number (NaN)"),
        ("ZSCORE z a", "$3 inf"),
        ("ZCOUNT z x 1", "-ERR min or max is not a float"),
        ("ZLEXCOUNT z a [b", "-ERR min or max not valid string range item"),
        (
            "ZRANGE z 0 1 LIMIT 0 1",
            "-ERR syntax error, LIMIT is only supported in combination \
                                    with either BYSCORE or BYLEX",
        ),
        (
            "ZRANGE z [a [b BYLEX WITHSCORES",
            "-ERR syntax error, WITHSCORES not supported in \
                                             combination with BYLEX",
        ),
        ("ZUNION 0 z", "-ERR at least 1 input key is needed for 'zunion' command"),
        ("ZINTER 1 z WEIGHTS x", "-ERR weight value is not a float"),
        ("ZINTERCARD 1 z LIMIT -1", "-ERR LIMIT can't be negative"),
        ("ZMPOP 0 z MIN", "-ERR numkeys should be greater than 0"),
        ("ZMPOP 1 z MIN COUNT 0", "-ERR count should be greater than 0"),
        ("ZPOPMIN z -1", "-ERR value is out of range, must be positive"),
    ]);
}

#[test]
fn ranges_are_cut_by_rank_score_and_member() {
    for mut bench in both() {
        bench.check_all(&[
            ("ZADD z 1 a 2 b 3 c 4 d", ":4"),
            ("ZRANGE z 1 2", "*2 $1 b $1 c"),
            ("ZRANGE z -2 -1 REV", "*2 $1 b $1 a"),
            ("ZREVRANGE z 0 1 WITHSCORES", "*4 $1 d $1 4 $1 c $1 3"),
            ("ZRANGE z 3 1", "*0"),
            ("ZRANGEBYSCORE z (1 3", "*2 $1 b $1 c"),
            ("ZRANGEBYSCORE z -inf +inf LIMIT 1 2", "*2 $1 b $1 c"),
            ("ZRANGEBYSCORE z -inf +inf LIMIT -1 2", "*0"),
            ("ZREVRANGEBYSCORE z 3 (1 LIMIT 0 1", "*1 $1 c"),
            ("ZRANGE z 3 2 BYSCORE REV WITHSCORES", "*4 $1 c $1 3 $1 b $1 2"),
            ("ZCOUNT z (1 +inf", ":3"),
            ("ZRANK z c", ":2"),
            ("ZREVRANK z c", ":1"),
            ("ZRANK z x", "$-1"),
            ("ZRANK z c WITHSCORE", "*2 :2 $1 3"),
            ("ZREVRANK z c WITHSCORE", "*2 :1 $1 3"),
            ("ZRANK z x WITHSCORE", "*-1"),
            ("ZRANK none x withscore", "*-1"),
            ("ZRANK z c SCORE", "-ERR syntax error"),
            ("ZREVRANK z c WITHSCORE x", "-ERR wrong number of arguments for 'zrevrank' command"),
            ("ZSCAN z 0 MATCH [ab] NOSCORES", "*2 $1 0 *2 $1 a $1 b"),
            ("ZSCAN z 0 NOVALUES", "-ERR NOVALUES option can only be used in HSCAN"),
            ("ZMSCORE z a x d", "*3 $1 1 $-1 $1 4"),
            ("ZRANGESTORE to z 1 2", ":2"),
            ("ZRANGE to 0 -1", "*2 $1 b $1 c"),
            ("ZRANGESTORE to none 0 -1", ":0"),
            ("EXISTS to", ":0"),
            ("ZADD l 0 a 0 b 0 c", ":3"),
            ("ZRANGEBYLEX l - (c", "*2 $1 a $1 b"),
            ("ZREVRANGEBYLEX l + [b", "*2 $1 c $1 b"),
            ("ZLEXCOUNT l (a +", ":2"),
            ("ZREMRANGEBYLEX l [b [b", ":1"),
            ("ZREMRANGEBYRANK l 0 0", ":1"),
            ("ZREMRANGEBYSCORE z 2 (4", ":2"),
            ("ZRANGE z 0 -1", "*2 $1 a $1 d"),
        ]);
        bench.protocol = Protocol::Resp3;
        bench.check("ZRANGE z 0 0 WITHSCORES", "*1 *2 $1 a ,1");
        bench.check("ZPOPMAX z 1", "*1 *2 $1 d ,4");
        bench.check("ZPOPMIN z", "*2 $1 a ,1");
    }
}

#[test]
fn inputs_may_be_sets_and_scores_are_brought_together() {
    for mut bench in both() {
        bench.check_all(&[
            ("ZADD a 1 x 2 y", ":2"),
            ("ZADD b 10 y 20 z", ":2"),
            ("SADD s y w", ":2"),
            ("ZUNION 3 a b s WITHSCORES", "*8 $1 w $1 1 $1 x $1 1 $1 y $2 13 $1 z $2 20"),
            ("ZINTER 2 a s WITHSCORES", "*2 $1 y $1 3"),
            ("ZINTER 2 a b WEIGHTS 2 0.5 AGGREGATE MAX WITHSCORES", "*2 $1 y $1 5"),
            ("ZDIFF 2 a s WITHSCORES", "*2 $1 x $1 1"),
            ("ZINTERCARD 3 a b s", ":1"),
            ("ZADD i inf x", ":1"),
            ("ZUNION 1 i WEIGHTS 0 WITHSCORES", "*2 $1 x $1 0"),
            ("ZUNION 2 i i WEIGHTS 1 -1 WITHSCORES", "*2 $1 x $1 0"),
            ("ZUNIONSTORE a 2 a b", ":3"),
            ("ZRANGE a 0 -1", "*3 $1 x $1 y $1 z"),
            ("ZINTERSTORE a 2 a none", ":0"),
            ("EXISTS a", ":0"),
        ]);
    }
}

#[test]
fn events_name_what_happened() {
    let mut bench = notifying();
    let lines: &[(&str, &str, &[&str])] = &[
        ("ZADD z 1 a 2 b 3 c", ":3", &["new z", "zadd z"]),
        ("ZADD z 1 a", ":0", &[]),
        ("ZINCRBY z 1 a", "$1 2", &["zincr z"]),
        ("ZREM z a x", ":1", &["zrem z"]),
        ("ZPOPMIN z", "*2 $1 b $1 2", &["zpopmin z"]),
        ("ZRANGESTORE d z 0 -1", ":1", &["new d", "zrangestore d"]),
        ("ZDIFFSTORE d 2 z z", ":0", &["del d"]),
        ("ZREMRANGEBYRANK z 0 -1", ":1", &["zremrangebyrank z", "del z"]),
    ];
    for (line, reply, events) in lines {
        bench.check(line, reply);
        assert_eq!(bench.events(), *events, "{line}");
    }
}

#[test]
fn blocking_pops_wait_and_are_served() {
    let mut bench = Bench::new();
    bench.check("BZPOPMIN a b 0", "(waits)");
    bench.check("ZADD b 1 x 2 y 3 z", ":3");
    bench.context.retry = true;
    bench.check("BZPOPMIN a b 0", "*3 $1 b $1 x $1 1");
    bench.context.retry = false;
    bench.check("BZMPOP 0 2 a b MAX COUNT 9", "*2 $1 b *2 *2 $1 z $1 3 *2 $1 y $1 2");
    bench.context.may_block = false;
    bench.check("BZPOPMAX a b 0", "*-1");
    bench.check("SET a x", "+OK");
    bench.check("BZPOPMAX a b 0", WRONG_TYPE);
    bench.context.retry = true;
    bench.check("BZPOPMAX a b 0", "*-1");
}

#[test]
fn chosen_members_are_different_unless_they_may_repeat() {
    for mut bench in both() {
        bench.check("ZADD z 1 a 2 b 3 c 4 d", ":4");
        for _ in 0..20 {
            let reply = bench.run("ZRANDMEMBER z 3");
            let mut words: Vec<_> = reply.split(' ').skip(2).step_by(2).collect();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), 3, "{reply}");
        }
        assert!(bench.run("ZRANDMEMBER z -9 WITHSCORES").starts_with("*18 "));
        assert!(bench.run("ZRANDMEMBER z 9").starts_with("*4 "));
        bench.check_all(&[
            ("ZRANDMEMBER z 0", "*0"),
            ("ZRANDMEMBER none", "$-1"),
            ("ZRANDMEMBER none 2", "*0"),
            ("ZRANDMEMBER z 1 x", "-ERR syntax error"),
        ]);
    }
}
