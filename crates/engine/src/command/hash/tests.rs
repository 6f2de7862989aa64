mod expiry;

use crate::settings::Settings;
use crate::testing::Bench;
use resp::Protocol;

const WRONG_TYPE: &str = "-WRONGTYPE Operation against a key holding the wrong kind of value";

#[test]
fn fields_are_set_read_and_deleted() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("HSET h a 1 b x a 2", ":2"),
        ("HSET h a", "-ERR wrong number of arguments for 'hset' command"),
        ("HMSET h a 1 b", "-ERR wrong number of arguments for 'hmset' command"),
        ("HMSET h c 007", "+OK"),
        ("HSETNX h a 9", ":0"),
        ("HSETNX h d 9", ":1"),
        ("HGET h a", "$1 2"),
        ("HGET h z", "$-1"),
        ("HMGET h a z c", "*3 $1 2 $-1 $3 007"),
        ("HGETALL h", "*8 $1 a $1 2 $1 b $1 x $1 c $3 007 $1 d $1 9"),
        ("HKEYS h", "*4 $1 a $1 b $1 c $1 d"),
        ("HVALS h", "*4 $1 2 $1 x $3 007 $1 9"),
        ("HLEN h", ":4"),
        ("HEXISTS h a", ":1"),
        ("HEXISTS h z", ":0"),
        ("HSTRLEN h c", ":3"),
        ("HSTRLEN h z", ":0"),
        ("HDEL h a a z", ":1"),
        ("HDEL h b c d e", ":3"),
        ("EXISTS h", ":0"),
        ("HGETALL h", "*0"),
        ("SET s x", "+OK"),
        ("HSET s a 1", WRONG_TYPE),
        ("HSETNX s a 1", WRONG_TYPE),
        ("HGET s a", WRONG_TYPE),
        ("HDEL s a", WRONG_TYPE),
    ]);
}

#[test]
fn numbers_in_fields_count() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("HINCRBY h n 5", ":5"),
        ("HINCRBY h n -7", ":-2"),
        ("HINCRBY h n x", "-ERR value is not an integer or out of range"),
        ("HSET h big 9223372036854775807 word 1x", ":2"),
        ("HINCRBY h big 1", "-ERR increment or decrement would overflow"),
        ("HINCRBY h word 1", "-ERR hash value is not an integer"),
        ("HINCRBYFLOAT h n 0.1", "$4 -1.9"),
        ("HINCRBYFLOAT h new 1.5e3", "$4 1500"),
        ("HINCRBYFLOAT h word 1", "-ERR hash value is not a float"),
        ("HINCRBYFLOAT h n x", "-ERR value is not a valid float"),
        ("HINCRBYFLOAT h n inf", "-ERR value is NaN or Infinity"),
        ("HINCRBY none n x", "-ERR value is not an integer or out of range"),
        ("EXISTS none", ":0"),
    ]);
}

#[test]
fn events_name_what_happened() {
    let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
    let mut bench = Bench::with_settings(settings);
    for (line, events) in [
        ("HSET h a 1 b 2", &["new h", "hset h"][..]),
        ("HSETNX h a 1", &[]),
        ("HSETNX h c 1", &["hset h"]),
        ("HINCRBY h a 1", &["hincrby h"]),
        ("HINCRBYFLOAT h a 1", &["hincrbyfloat h"]),
        ("HDEL h z", &[]),
        ("HDEL h a", &["hdel h"]),
        ("HDEL h b c", &["hdel h", "del h"]),
    ] {
        bench.run(line);
        assert_eq!(bench.events(), events, "{line}");
    }
}

#[test]
fn random_fields_are_distinct_unless_the_count_is_negative() {
    let mut bench = Bench::new();
    bench.check("HRANDFIELD h", "$-1");
    bench.check("HRANDFIELD h 3 WITHVALUES", "*0");
    bench.check("HSET h a 1", ":1");
    bench.check("HRANDFIELD h", "$1 a");
    bench.check("HRANDFIELD h -2 WITHVALUES", "*4 $1 a $1 1 $1 a $1 1");
    bench.check("HRANDFIELD h 2 NOVALUES", "-ERR syntax error");
    let too_many = "HRANDFIELD h -9223372036854770000 WITHVALUES";
    bench.check(too_many, "-ERR value is out of range");
    bench.protocol = Protocol::Resp3;
    bench.check("HRANDFIELD h 2 WITHVALUES", "*1 *2 $1 a $1 1");
    bench.protocol = Protocol::Resp2;
    for fields in [100, 600] {
        for i in 0..fields {
            bench.run(&format!("HSET h f{i} v"));
        }
        bench.run("HDEL h a");
        for count in [1, 5, 90, fields, fields + 1] {
            let reply = bench.run(&format!("HRANDFIELD h {count}"));
            let mut seen: Vec<&str> =
                reply.split(' ').filter(|word| word.starts_with('f')).collect();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count.min(fields));
        }
        assert!(bench.run("HRANDFIELD h -1000").starts_with("*1000 "));
    }
}

#[test]
fn a_scan_visits_every_field() {
    let mut bench = Bench::new();
    bench.check("HSET h a 1 b 2 1 3", ":3");
    bench.check("HSCAN h 0 COUNT 1 MATCH [a1]", "*2 $1 0 *4 $1 a $1 1 $1 1 $1 3");
    bench.check("HSCAN h 0 NOVALUES MATCH [a1] NOVALUES", "*2 $1 0 *2 $1 a $1 1");
    for (options, reply) in [
        ("NOVALUES x", "-ERR syntax error"),
        ("NOSCORES", "-ERR NOSCORES option can only be used in ZSCAN"),
    ] {
        bench.check(&format!("HSCAN h 0 {options}"), reply);
    }
    bench.check("HSCAN none 0", "*2 $1 0 *0");
    bench.check("HSCAN h -", "-ERR invalid cursor");
    for i in 0..600 {
        bench.run(&format!("HSET h f{i} v"));
    }
    let (mut cursor, mut seen) = ("0".to_owned(), std::collections::BTreeSet::new());
    loop {
        let reply = bench.run(&format!("HSCAN h {cursor} COUNT 50"));
        let words: Vec<&str> = reply.split(' ').collect();
        seen.extend(words.iter().filter(|word| word.starts_with('f')).map(|word| word.to_string()));
        cursor = words[2].to_owned();
        if cursor == "0" {
            break;
        }
    }
    assert_eq!(seen.len(), 600);
}
