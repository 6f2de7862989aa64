//! Replies are what redis-server 7.0.15 answered to the same requests, one after another.

mod references;

use crate::dump::dump;
use crate::random::Random;
use crate::rdb::Crc64;
use crate::settings::Settings;
use crate::testing::Bench;
use base::DatabaseId;

/// A stream with three blocks, deleted entries, two groups and what is pending, as two servers dump
/// it; and without what files before 7.0 do not say, taken from the first by hand and accepted by
/// redis-server 7.0.15.
const DUMPED: [(&str, &str); 3] = [
    ("19", include_str!("tests/redis-7.0.15-type-19.hex")),
    ("21", include_str!("tests/valkey-9.1.2-type-21.hex")),
    ("15", include_str!("tests/type-15.hex")),
];

/// DEBUG DIGEST-VALUE of it.
const DIGEST: &str = "f97ddeec89da7a92ac2f08a902f3c469f4e3a87c";

/// Bytes of a payload behind the value: version and checksum.
const FOOTER_BYTES: usize = 10;

fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// A payload with another body.
fn with_footer(body: &[u8]) -> Vec<u8> {
    let mut out = [body, &[10, 0]].concat();
    let mut crc = Crc64::default();
    crc.update(&out);
    out.extend_from_slice(&crc.value().to_le_bytes());
    out
}

fn dumped(bench: &Bench, key: &[u8]) -> Vec<u8> {
    let keyspace = &bench.engine.keyspace;
    let entry = keyspace.database(DatabaseId(0)).find(keyspace.hash(key), key);
    dump(entry.expect("it was put").value(), &keyspace.work)
}

fn digest(bench: &Bench, key: &[u8]) -> String {
    let keyspace = &bench.engine.keyspace;
    let entry = keyspace.database(DatabaseId(0)).find(keyspace.hash(key), key);
    crate::debug_digest::of_value(entry.expect("it was put"), &keyspace.work).hex()
}

#[test]
fn streams_of_every_release_are_restored_and_dumped_in_redis_bytes() {
    let mut bench = Bench::new();
    for (kind, hex) in DUMPED {
        let payload = bytes_of(hex);
        let reply = bench.run_words(&[b"RESTORE", kind.as_bytes(), b"0", &payload]);
        assert_eq!(reply, "+OK", "type {kind}");
        assert_eq!(digest(&bench, kind.as_bytes()), DIGEST, "type {kind}");
        let count = bench.run(&format!("XLEN {kind}"));
        assert_eq!(count, ":6", "type {kind}");
        let pending = bench.run(&format!("XPENDING {kind} g"));
        assert_eq!(pending, "*4 :4 $3 1-1 $3 5-2 *2 *2 $5 alice $1 2 *2 $3 bob $1 2");
    }
    assert_eq!(dumped(&bench, b"19"), bytes_of(DUMPED[0].1));
    bench.check("COPY 19 copy", ":1");
    assert_eq!(dumped(&bench, b"copy"), bytes_of(DUMPED[0].1));
    let head = "*20 $6 length :6 $15 radix-tree-keys :3 $16 radix-tree-nodes :8 $17 \
                last-generated-id $3 9-0 $20 max-deleted-entry-id $3 9-0 $13 entries-added :8 \
                $23 recorded-first-entry-id $3 1-1 $6 groups :2 $11 first-entry";
    assert!(bench.run("XINFO STREAM 19").starts_with(head));
    let group = "*12 $4 name $1 g $9 consumers :2 $7 pending :4 $17 last-delivered-id $3 5-2 \
                 $12 entries-read :5 $3 lag $-1";
    assert!(bench.run("XINFO GROUPS 19").ends_with(group));
    // What 7.0 counts from then on.
    let group = "*12 $4 name $5 empty $9 consumers :1 $7 pending :0 $17 last-delivered-id $3 9-0 \
                 $12 entries-read :6 $3 lag :0";
    assert!(bench.run("XINFO GROUPS 15").contains(group));
}

#[test]
fn damaged_streams_are_taken_or_refused() {
    let mut random = Random::new(7);
    let (mut taken, mut refused) = (0, 0);
    for (_, hex) in DUMPED {
        let payload = bytes_of(hex);
        let body = &payload[..payload.len() - FOOTER_BYTES];
        for cut in 1..body.len() {
            let cut = with_footer(&body[..cut]);
            let reply = Bench::new().run_words(&[b"RESTORE", b"s", b"0", &cut]);
            assert_eq!(reply, "-ERR Bad data format");
        }
        for _ in 0..2000 {
            let mut body = body.to_vec();
            for _ in 0..random.word() % 3 + 1 {
                let at = random.word() as usize % (body.len() - 1) + 1;
                body[at] = random.word() as u8;
            }
            let mut bench = Bench::new();
            match bench.run_words(&[b"RESTORE", b"s", b"0", &with_footer(&body)]).as_str() {
                "+OK" => taken += 1,
                "-ERR Bad data format" => {
                    refused += 1;
                    continue;
                }
                other => panic!("{other}"),
            }
            // Whatever was taken can be used.
            for line in [
                "XINFO STREAM s FULL COUNT 0",
                "XREVRANGE s + -",
                "XAUTOCLAIM s g alice 0 -",
                "XREADGROUP GROUP g bob STREAMS s >",
                "XADD s MAXLEN ~ 3 * a b",
                "XDEL s 3-0 4-1",
                "XTRIM s MINID 6",
            ] {
                bench.run(line);
            }
        }
    }
    assert!(taken > 100 && refused > 100, "{taken} taken, {refused} refused");
}

#[test]
fn entries_come_and_go() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("XADD s NOMKSTREAM * a 1", "$-1"),
        ("XADD s 1-1 a 1 b two", "$3 1-1"),
        ("XADD s 1-* a 3 b x", "$3 1-2"),
        ("XADD s 1 a 1", SMALL),
        ("XADD s 0-0 a 1", "-ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD s 0 a 1", "-ERR The ID specified in XADD must be greater than 0-0"),
        ("XADD s x a 1", INVALID),
        ("XADD s 5-1 a", "-ERR wrong number of arguments for 'xadd' command"),
        ("XADD s * a 4", "$15 1700000000000-0"),
        ("XADD s * a 4", "$15 1700000000000-1"),
        ("XADD s 1700000000001-18446744073709551615 a 5", "$34 1700000000001-18446744073709551615"),
        ("XADD s 1700000000001-* a 5", SMALL),
        ("XADD s * a 6", "$15 1700000000002-0"),
        ("XLEN s", ":6"),
        ("XRANGE s - + COUNT 1", "*1 *2 $3 1-1 *4 $1 a $1 1 $1 b $3 two"),
        ("XRANGE s (1-1 (1700000000000-0", "*1 *2 $3 1-2 *4 $1 a $1 3 $1 b $1 x"),
        (
            "XREVRANGE s 1 1",
            "*2 *2 $3 1-2 *4 $1 a $1 3 $1 b $1 x *2 $3 1-1 *4 $1 a $1 1 $1 b $3 two",
        ),
        ("XRANGE s 2 1", "*0"),
        ("XRANGE s - + COUNT 0", "*-1"),
        ("XRANGE none - + COUNT 0", "*0"),
        ("XRANGE s (18446744073709551615-18446744073709551615 +", INVALID_START),
        ("XRANGE s - (0", "*0"),
        ("XRANGE s - (0-0", "-ERR invalid end ID for the interval"),
        ("XDEL s 1-2 1-2 7-7", ":1"),
        ("XDEL s 1-2 x", INVALID),
        ("XDEL none x", ":0"),
        ("XTRIM s MAXLEN 3", ":2"),
        ("XTRIM s MINID 1700000000001", ":1"),
        ("XTRIM s MAXLEN ~ 0 LIMIT 1", ":0"),
        ("XTRIM s MAXLEN ~ 0", ":2"),
        ("XLEN s", ":0"),
        ("EXISTS s", ":1"),
        ("XADD s 5 a 1", SMALL),
        ("XSETID s 3-3 ENTRIESADDED 9 MAXDELETEDID 2-2", "+OK"),
        (
            "XADD s 18446744073709551615-18446744073709551615 a 1",
            "$41 18446744073709551615-18446744073709551615",
        ),
        (
            "XADD s * a 1",
            "-ERR The stream has exhausted the last possible ID, unable to add more items",
        ),
        (
            "XSETID s 3-4",
            "-ERR The ID specified in XSETID is smaller than the target stream top item",
        ),
        ("XTRIM s MINID 18446744073709551615-18446744073709551615", ":0"),
        ("XTRIM s MAXLEN 0", ":1"),
    ]);
}

const SMALL: &str =
    "-ERR The ID specified in XADD is equal or smaller than the target stream top item";
const INVALID: &str = "-ERR Invalid stream ID specified as stream command argument";
const INVALID_START: &str = "-ERR invalid start ID for the interval";

#[test]
fn a_block_ends_by_entries_or_bytes_and_goes_whole() {
    let settings =
        Settings { stream_node_max_entries: 3, stream_node_max_bytes: 100, ..Settings::default() };
    let mut bench = Bench::with_settings(settings);
    for id in 1..=7 {
        bench.run(&format!("XADD s {id} f v"));
    }
    bench.run(&format!("XADD s 8 f {}", "x".repeat(60)));
    let keys = |bench: &mut Bench| {
        let reply = bench.run("XINFO STREAM s");
        reply.split(' ').nth(6).map(str::to_owned)
    };
    assert_eq!(keys(&mut bench).as_deref(), Some(":3"));
    bench.run(&format!("XADD s 9 f {}", "x".repeat(60)));
    assert_eq!(keys(&mut bench).as_deref(), Some(":4"));
    bench.check("XTRIM s MAXLEN ~ 5", ":3");
    bench.check("XTRIM s MINID = 5", ":1");
    bench.check("XDEL s 5 6", ":2");
    assert_eq!(keys(&mut bench).as_deref(), Some(":2"));
    bench.check("XRANGE s - + COUNT 1", "*1 *2 $3 7-0 *2 $1 f $1 v");
}

#[test]
fn a_limit_is_refused_where_it_means_nothing() {
    let mut bench = Bench::new();
    bench.run("XADD s 1 f v");
    for (line, expected) in [
        ("XTRIM s MAXLEN", "-ERR syntax error"),
        (
            "XTRIM s LIMIT 5",
            "-ERR syntax error, LIMIT cannot be used without specifying a trimming strategy",
        ),
        ("XTRIM s LIMIT 0", "-ERR syntax error, XTRIM must be called with a trimming strategy"),
        (
            "XTRIM s MAXLEN 1 LIMIT 5",
            "-ERR syntax error, LIMIT cannot be used without the special ~ option",
        ),
        (
            "XTRIM s MAXLEN 1 MINID 5",
            "-ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        ),
        ("XTRIM s MAXLEN -1", "-ERR The MAXLEN argument must be >= 0."),
        ("XTRIM s MAXLEN ~ 1 LIMIT -1", "-ERR The LIMIT argument must be >= 0."),
        ("XTRIM s MAXLEN x", "-ERR value is not an integer or out of range"),
        ("XTRIM s MINID x", INVALID),
        (
            "XADD s LIMIT 0 * f v",
            "-ERR syntax error, LIMIT cannot be used without the special ~ option",
        ),
        ("XADD s MAXLEN = 0 * f v", "$15 1700000000000-0"),
        ("XLEN s", ":0"),
    ] {
        bench.check(line, expected);
    }
}

#[test]
fn a_reader_waits_for_what_comes_behind_the_last_entry() {
    let mut bench = Bench::new();
    bench.run("XADD s 1-1 f v");
    bench.check("XREAD STREAMS s none 0 0", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 f $1 v");
    bench.check("XREAD STREAMS s $", "*-1");
    bench.check("XREAD STREAMS s +", "*1 *2 $1 s *1 *2 $3 1-1 *2 $1 f $1 v");
    bench.check("XREAD BLOCK 0 STREAMS none +", "(waits)");
    bench.check("XREAD BLOCK 5 STREAMS s none $ 0", "(waits)");
    let since = bench.unit.wait.as_ref().expect("it waits").since.clone();
    bench.run("XADD s 2-1 f w");
    bench.context.retry = true;
    bench.resume(b"s", since);
    bench.check("XREAD BLOCK 5 STREAMS s none $ 0", "*1 *2 $1 s *1 *2 $3 2-1 *2 $1 f $1 w");
    bench.context.retry = false;
    bench.context.may_block = false;
    bench.check("XREAD BLOCK 0 STREAMS s $", "*-1");
    for (line, expected) in [
        (
            "XREAD STREAMS s",
            "-ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.",
        ),
        ("XREAD COUNT 1", "-ERR syntax error"),
        ("XREAD BLOCK x STREAMS s 0", "-ERR timeout is not an integer or out of range"),
        ("XREAD BLOCK -1 STREAMS s 0", "-ERR timeout is negative"),
        (
            "XREAD GROUP g c STREAMS s 0",
            "-ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        (
            "XREAD NOACK STREAMS s 0",
            "-ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.",
        ),
        (
            "XREAD STREAMS s >",
            "-ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.",
        ),
    ] {
        bench.check(line, expected);
    }
}

#[test]
fn a_group_gives_each_entry_once_until_it_is_claimed() {
    let mut bench = Bench::new();
    bench.check_all(&[
        ("XGROUP CREATE s g $", NO_KEY),
        ("XGROUP CREATE s g $ MKSTREAM", "+OK"),
        ("XGROUP CREATE s g $ MKSTREAM", "-BUSYGROUP Consumer Group name already exists"),
        ("XADD s 1-0 f a", "$3 1-0"),
        ("XADD s 2-0 f b", "$3 2-0"),
        ("XADD s 3-0 f c", "$3 3-0"),
        ("XREADGROUP GROUP g alice COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-0 *2 $1 f $1 a"),
        ("XREADGROUP GROUP g bob COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 2-0 *2 $1 f $1 b"),
        ("XREADGROUP GROUP g bob NOACK STREAMS s >", "*1 *2 $1 s *1 *2 $3 3-0 *2 $1 f $1 c"),
        ("XREADGROUP GROUP g bob STREAMS s >", "*-1"),
        ("XREADGROUP GROUP g bob STREAMS s 18446744073709551615-18446744073709551615", "*-1"),
        ("XREADGROUP GROUP g bob BLOCK 0 STREAMS s >", "(waits)"),
        ("XREADGROUP GROUP g bob STREAMS s 0", "*1 *2 $1 s *1 *2 $3 2-0 *2 $1 f $1 b"),
        ("XPENDING s g", "*4 :2 $3 1-0 $3 2-0 *2 *2 $5 alice $1 1 *2 $3 bob $1 1"),
        ("XPENDING s g - + 9", "*2 *4 $3 1-0 $5 alice :0 :1 *4 $3 2-0 $3 bob :0 :2"),
        ("XPENDING s g IDLE 1 - + 9", "*0"),
        ("XPENDING s g - + 9 bob", "*1 *4 $3 2-0 $3 bob :0 :2"),
        ("XPENDING s g - + 9 carol", "*0"),
        ("XCLAIM s g carol 0 1-0 3-0 JUSTID", "*1 $3 1-0"),
        ("XCLAIM s g carol 0 3-0 FORCE", "*1 *2 $3 3-0 *2 $1 f $1 c"),
        ("XPENDING s g - + 9 carol", "*2 *4 $3 1-0 $5 carol :0 :1 *4 $3 3-0 $5 carol :0 :2"),
        ("XCLAIM s g carol 1000 2-0", "*0"),
        ("XDEL s 2-0", ":1"),
        ("XREADGROUP GROUP g bob STREAMS s 0", "*1 *2 $1 s *1 *2 $3 2-0 *-1"),
        ("XAUTOCLAIM s g bob 0 - COUNT 2", "*3 $3 3-0 *1 *2 $3 1-0 *2 $1 f $1 a *1 $3 2-0"),
        ("XACK s g 1-0 2-0 7-7", ":1"),
        ("XACK s none x", ":0"),
        ("XACK s g x", INVALID),
        ("XGROUP SETID s g 0 ENTRIESREAD 5", "+OK"),
        ("XREADGROUP GROUP g bob COUNT 1 STREAMS s >", "*1 *2 $1 s *1 *2 $3 1-0 *2 $1 f $1 a"),
        ("XGROUP CREATECONSUMER s g dave", ":1"),
        ("XGROUP CREATECONSUMER s g dave", ":0"),
        ("XGROUP DELCONSUMER s g bob", ":1"),
        ("XGROUP DELCONSUMER s g nobody", ":0"),
        ("XINFO CONSUMERS s g", CONSUMERS),
        ("XGROUP DESTROY s g", ":1"),
        ("XGROUP DESTROY s g", ":0"),
        ("XGROUP SETID s g 0", "-NOGROUP No such consumer group 'g' for key name 's'"),
        ("XPENDING s g", "-NOGROUP No such key 's' or consumer group 'g'"),
        ("XREADGROUP GROUP g bob STREAMS s >", NO_GROUP),
        ("XCLAIM s g bob 0 x", "-NOGROUP No such key 's' or consumer group 'g'"),
    ]);
}

const CONSUMERS: &str = "*3 *6 $4 name $5 alice $7 pending :0 $4 idle :0 *6 $4 name $5 carol \
                         $7 pending :1 $4 idle :0 *6 $4 name $4 dave $7 pending :0 $4 idle :0";
const NO_GROUP: &str =
    "-NOGROUP No such key 's' or consumer group 'g' in XREADGROUP with GROUP option";
const NO_KEY: &str = "-ERR The XGROUP subcommand requires the key to exist. Note that for CREATE \
                      you may want to use the MKSTREAM option to create an empty stream \
                      automatically.";

#[test]
fn who_waits_for_a_group_is_told_of_its_end() {
    let mut bench = Bench::new();
    let line = "XREADGROUP GROUP g bob BLOCK 0 STREAMS s >";
    let gone = "-UNBLOCKED the stream key no longer exists";
    let no_group = "-NOGROUP the consumer group this client was blocked on no longer exists";
    for (end, expected) in [("XGROUP DESTROY s g", no_group), ("DEL s", gone), ("SET s x", gone)] {
        bench.run("DEL s");
        bench.run("XGROUP CREATE s g $ MKSTREAM");
        bench.check(line, "(waits)");
        bench.run(end);
        bench.context.retry = true;
        bench.resume(b"s", Vec::new());
        bench.check(line, expected);
        bench.context.retry = false;
    }
}

#[test]
fn events_are_those_of_redis_on_the_primary_and_on_replicas() {
    let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
    let mut bench = Bench::with_settings(settings);
    let lines: [Told<'_>; 12] = [
        ("XADD s 1-0 f v", &["new s", "xadd s"], &["new s", "xadd s"]),
        ("XADD s MAXLEN 1 2-0 f v", &["xadd s", "xtrim s"], &["xadd s", "xtrim s"]),
        ("XSETID s 5-0", &["xsetid s"], &["xsetid s"]),
        ("XGROUP CREATE s g 0", &["xgroup-create s"], &["xgroup-create s"]),
        ("XGROUP SETID s g 0", &["xgroup-setid s"], &[]),
        (
            "XREADGROUP GROUP g a STREAMS s >",
            &["xgroup-createconsumer s"],
            &["xgroup-createconsumer s"],
        ),
        ("XACK s g 2-0", &[], &[]),
        ("XGROUP DELCONSUMER s g a", &["xgroup-delconsumer s"], &["xgroup-delconsumer s"]),
        ("XGROUP DESTROY s g", &["xgroup-destroy s"], &["xgroup-destroy s"]),
        ("XDEL s 2-0", &["xdel s"], &["xdel s"]),
        ("XTRIM s MAXLEN 0", &[], &[]),
        (
            "XGROUP CREATE t g $ MKSTREAM",
            &["new t", "xgroup-create t"],
            &["new t", "xgroup-create t"],
        ),
    ];
    events_of(&mut bench, &lines);
}

/// A request, and its events on the primary and on a replica.
type Told<'a> = (&'a str, &'a [&'a str], &'a [&'a str]);

#[track_caller]
fn events_of(bench: &mut Bench, lines: &[Told<'_>]) {
    for (line, events, twin_events) in lines {
        bench.run(line);
        assert_eq!(bench.events(), *events, "{line}");
        assert_eq!(bench.twin_events(), *twin_events, "{line}");
    }
}

/// Sends recorded requests in turn, each with its reply behind a tab. A line
/// `# Blocks of … entries.` begins anew.
#[track_caller]
fn replay(recorded: &str) {
    let mut bench = Bench::new();
    for line in recorded.lines() {
        if let Some(entries) = line.strip_prefix("# Blocks of ") {
            let (entries, _) = entries.split_once(' ').expect("a number and a word");
            let stream_node_max_entries = entries.parse().expect("a number");
            bench =
                Bench::with_settings(Settings { stream_node_max_entries, ..Settings::default() });
            continue;
        }
        let (request, reply) = line.split_once('\t').expect("a request and its reply");
        bench.check(request, reply);
    }
}

#[test]
fn entries_lie_in_blocks_as_in_redis() {
    replay(include_str!("tests/redis-7.0.15-blocks.tsv"));
}

#[test]
fn ids_that_come_behind_a_greater_deleted_one_keep_their_place() {
    let settings = Settings { stream_node_max_entries: 3, ..Settings::default() };
    let mut bench = Bench::with_settings(settings);
    for line in ["XADD s 1 f v", "XADD s 2 f v", "XADD s 9 f v", "XDEL s 9", "XSETID s 5"] {
        bench.run(line);
    }
    bench.check("XADD s 6 f v", "$3 6-0");
    bench.check("XADD s 7 f v", "$3 7-0");
    bench.check("XRANGE s 3 6", "*1 *2 $3 6-0 *2 $1 f $1 v");
    bench.check("XREVRANGE s 8 6 COUNT 1", "*1 *2 $3 7-0 *2 $1 f $1 v");
    let payload = dumped(&bench, b"s");
    assert_eq!(bench.run_words(&[b"RESTORE", b"again", b"0", &payload]), "+OK");
    bench.check("XLEN again", ":4");
    bench.check("XTRIM again MINID 7", ":3");
    bench.check("XRANGE again - +", "*1 *2 $3 7-0 *2 $1 f $1 v");
    bench.check("XTRIM s MAXLEN ~ 2", ":2");
    bench.check("XTRIM s MAXLEN 2", ":0");
    bench.check("XRANGE s - + COUNT 1", "*1 *2 $3 6-0 *2 $1 f $1 v");
    // No block stays behind those that went.
    assert!(bench.run("XINFO STREAM s").contains("radix-tree-keys :1"));
    bench.check("XDEL s 7 6", ":2");
    assert!(bench.run("XINFO STREAM s").contains("radix-tree-keys :0"));
    bench.check("XTRIM s MAXLEN 0", ":0");
}

#[test]
fn entries_are_claimed_many_at_a_time_as_one_by_one() {
    let mut bench = Bench::new();
    for id in 1..=3000 {
        bench.run(&format!("XADD s {id} f v"));
    }
    bench.run("XGROUP CREATE s g 0");
    bench.run("XREADGROUP GROUP g a COUNT 3000 STREAMS s >");
    // Three delivery counts, and entries that are gone in between.
    bench.run("XCLAIM s g a 0 7 8 RETRYCOUNT 5 JUSTID");
    bench.check("XDEL s 3 4 2000", ":3");
    bench.check("XAUTOCLAIM s g b 1000000000 0 COUNT 1", "*3 $3 4-0 *0 *1 $3 3-0");
    let claimed: String = [1, 2, 5, 6, 7, 8].map(|id| format!(" $3 {id}-0")).concat();
    let reply = format!("*3 $3 9-0 *6{claimed} *1 $3 4-0");
    bench.check("XAUTOCLAIM s g b 0 0 COUNT 7 JUSTID", &reply);
    bench.check("XPENDING s g 7 8 2 b", "*2 *4 $3 7-0 $1 b :0 :5 *4 $3 8-0 $1 b :0 :5");
    let rest = bench.run("XAUTOCLAIM s g b 0 8 COUNT 3000 JUSTID");
    assert!(rest.starts_with("*3 $3 0-0 *2992 $3 8-0 $3 9-0"), "{}", &rest[..60]);
    assert!(rest.ends_with("$6 3000-0 *1 $6 2000-0"), "{}", &rest[rest.len() - 60..]);
    bench.check("XPENDING s g", "*4 :2997 $3 1-0 $6 3000-0 *1 *2 $1 b $4 2997");
    for count in ["8796093022208", "576460752303423487"] {
        let text = "-ERR Insufficient memory, failed allocating transient memory, COUNT too high.";
        bench.check(&format!("XAUTOCLAIM s g b 0 0 COUNT {count}"), text);
        let missing = bench.run(&format!("XAUTOCLAIM s none b 0 0 COUNT {count}"));
        assert!(missing.starts_with("-NOGROUP"), "{missing}");
    }
    bench.check("XAUTOCLAIM s g b 0 0 COUNT 576460752303423488", "-ERR COUNT must be > 0");
}
