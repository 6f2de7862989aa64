//! A follower that executes what it is told holds what the primary holds, after every unit.
//!
//! Nothing ever expires there by itself: as on a replica, a key goes when its primary says so.

mod references;

use super::Word;
use crate::command::{Args, FAMILIES};
use crate::digest::Digest;
use crate::effect::{DeleteReason, Effect, End};
use crate::execute::Engine;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::random::Random;
use crate::settings::Settings;
use crate::testing::{Held, command, holdings};
use crate::unit::{Context, Overdue, Unit};
use base::{DatabaseId, HashKey, UnixMillis};
use resp::{ArgumentRanges, Decoded, Decoder, Reply};
use std::collections::BTreeSet;

/// Runs of each property; each takes a quarter of a second. 200 were tried once.
const SEEDS: u64 = 12;

/// An engine that is followed, and its follower.
struct Pair {
    primary: Engine,
    unit: Unit,
    interest: Interest,
    now: UnixMillis,
    follower: Engine,
    /// What the follower was told last, readable.
    told: Vec<String>,
}

impl Pair {
    fn new(seed: u64) -> Self {
        // Small thresholds, so that every encoding occurs.
        let settings = Settings {
            hash_max_listpack_entries: 4,
            set_max_intset_entries: 4,
            zset_max_listpack_entries: 4,
            list_max_listpack_size: 3,
            ..Settings::default()
        };
        let engine =
            |seed| Engine::new(Keyspace::new(settings.clone(), HashKey::fixed(seed)), seed);
        let mut unit = Unit::new(0);
        unit.feed.switch(true);
        let now = UnixMillis(1_700_000_000_000);
        let (follower, interest) = (engine(!seed), Interest::default());
        Self { primary: engine(seed), unit, interest, now, follower, told: Vec::new() }
    }

    /// Runs several requests as one unit on the primary, and what they amount to on the follower.
    fn transact(&mut self, database: DatabaseId, requests: &[Vec<Vec<u8>>]) {
        self.unit.clear();
        for words in requests {
            let context = Context { touch: true, ..Context::background(self.now, database) };
            let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
            let (bytes, ranges) = laid_out(&words);
            let (args, mut reply) = (Args::new(&bytes, &ranges), Reply::default());
            let function = &command(&words).function;
            // A refusal is an outcome like any other.
            let _ = self.primary.run(
                function,
                context,
                args,
                &mut reply,
                &mut self.unit,
                &mut self.interest,
            );
        }
        self.follow();
    }

    #[track_caller]
    fn run(&mut self, line: &str) -> Vec<String> {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        self.transact(DatabaseId(0), &[words]);
        self.told.clone()
    }

    fn change(&mut self, database: DatabaseId, key: &[u8], effect: Effect<'_>) {
        self.unit.clear();
        let context = Context::background(self.now, database);
        let mut tx = self.primary.tx(context, &mut self.unit, &mut self.interest);
        if effect.is_keyless() {
            tx.change_all(database, effect);
        } else {
            let _ = tx.change(key, effect);
        }
        self.unit.feed.end_call();
        self.follow();
    }

    /// Executes what was told, and compares.
    #[track_caller]
    fn follow(&mut self) {
        self.told.clear();
        for (database, bytes) in self.unit.feed.commands() {
            let mut ranges = ArgumentRanges::default();
            let decoded = Decoder::default().next(bytes, &mut ranges);
            assert_eq!(decoded, Decoded::Request { consumed: bytes.len() });
            let args = Args::new(ranges.source(bytes), ranges.ranges());
            let words: Vec<&[u8]> = args.iter().collect();
            let text = words.iter().map(|word| String::from_utf8_lossy(word));
            self.told.push(text.collect::<Vec<_>>().join(" "));
            let context =
                Context { overdue: Overdue::Kept, ..Context::background(self.now, database) };
            let (mut unit, mut reply) = (Unit::new(0), Reply::default());
            let function = &command(&words).function;
            let ran = self.follower.run(
                function,
                context,
                args,
                &mut reply,
                &mut unit,
                &mut Interest::default(),
            );
            assert!(ran.is_ok(), "refused: {:?}: {ran:?}", self.told);
        }
        let [ours, theirs] = [&self.primary, &self.follower].map(|engine| &engine.keyspace);
        if Digest::of_keyspace(ours) != Digest::of_keyspace(theirs) {
            let (ours, theirs) = (unseen(ours), unseen(theirs));
            if ours == theirs {
                return;
            }
            let differs = |held: &(&_, &_), other: &std::collections::BTreeMap<_, _>| {
                other.get(held.0) != Some(held.1)
            };
            let here: Vec<_> = ours.iter().filter(|held| differs(held, &theirs)).collect();
            let there: Vec<_> = theirs.iter().filter(|held| differs(held, &ours)).collect();
            panic!("told {:?}\nprimary {here:?}\nfollower {there:?}", self.told);
        }
    }
}

/// What is held, but for when consumers of streams were last seen, which nobody is told.
fn unseen(keyspace: &Keyspace) -> std::collections::BTreeMap<(DatabaseId, Vec<u8>), Held> {
    let mut held = holdings(keyspace);
    for text in held.values_mut().flat_map(|held| &mut held.contents) {
        let shown = String::from_utf8_lossy(text).into_owned();
        if let Some((before, rest)) = shown.split_once(" seen: ") {
            let behind = rest.trim_start_matches(|it: char| it.is_ascii_digit());
            *text = [before, behind].concat().into_bytes();
        }
    }
    held
}

fn laid_out(words: &[&[u8]]) -> (Vec<u8>, Vec<(u32, u32)>) {
    let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
    for word in words {
        ranges.push((bytes.len() as u32, word.len() as u32));
        bytes.extend_from_slice(word);
    }
    (bytes, ranges)
}

/// One or more lines for every command that may change a key. Placeholders: K key, V value, M
/// member, F field, R a dumped value, N small number, I index, P positive number, S score, E end, L
/// side, B lexical bound, T milliseconds, U Unix time in milliseconds, D database, O offset.
const TEMPLATES: &[&str] = &[
    "APPEND K V",
    "BITOP OR K K K",
    "BITOP NOT K K",
    "BITFIELD K SET u8 O N INCRBY i5 O N",
    "BITFIELD K OVERFLOW FAIL INCRBY u2 O 1 GET u4 0",
    "BLMOVE K K L L 0",
    "BLMPOP 0 2 K K L COUNT P",
    "BLPOP K K 0",
    "BRPOP K 0",
    "BRPOPLPUSH K K 0",
    "BZMPOP 0 2 K K E COUNT P",
    "BZPOPMAX K K 0",
    "BZPOPMIN K 0",
    "COPY K K",
    "COPY K K DB D REPLACE",
    "DECR K",
    "DECRBY K N",
    "DEL K",
    "DEL K K K",
    "EXPIRE K 1",
    "EXPIRE K -1",
    "PEXPIRE K T",
    "PEXPIRE K T NX",
    "EXPIREAT K 1700000100",
    "PEXPIREAT K U",
    "PEXPIREAT K U GT",
    "FLUSHALL",
    "FLUSHDB ASYNC",
    "GEOADD K 13.3 38.1 M 15.0 37.5 M",
    "GEORADIUS K 15 37 500 km STORE K",
    "GEORADIUSBYMEMBER K M 500 km STOREDIST K",
    "GEOSEARCHSTORE K K FROMLONLAT 15 37 BYRADIUS 400 km ASC",
    "DELIFEQ K V",
    "MSETEX 2 K V K V",
    "MSETEX 1 K V PX T",
    "SET K V IFEQ V",
    "GETDEL K",
    "GETEX K PX T",
    "GETEX K PXAT U",
    "GETEX K PERSIST",
    "GETEX K EXAT 1",
    "GETSET K V",
    "HDEL K F F",
    "HINCRBY K F N",
    "HINCRBYFLOAT K F 0.25",
    "HMSET K F V F V",
    "HSET K F V",
    "HSET K F V F V F V",
    "HSETNX K F V",
    "HEXPIRE K 100 FIELDS 2 F F",
    "HEXPIREAT K 1700000100 NX FIELDS 1 F",
    "HGETDEL K FIELDS 2 F F",
    "HGETEX K PX T FIELDS 2 F F",
    "HGETEX K PERSIST FIELDS 2 F F",
    "HPERSIST K FIELDS 3 F F F",
    "HPEXPIRE K T FIELDS 3 F F F",
    "HPEXPIREAT K U GT FIELDS 2 F F",
    "HSETEX K PX T FIELDS 2 F V F V",
    "HSETEX K FXX PXAT U FIELDS 1 F V",
    "HSETEX K KEEPTTL FIELDS 2 F V F V",
    "INCR K",
    "INCRBY K N",
    "INCRBYFLOAT K 1.5",
    "LINSERT K BEFORE V V",
    "LINSERT K AFTER V V",
    "LMOVE K K L L",
    "LMPOP 2 K K L COUNT P",
    "LPOP K",
    "LPOP K P",
    "LPUSH K V V V",
    "LPUSHX K V",
    "LREM K N V",
    "LREM K 0 V",
    "LSET K I V",
    "LTRIM K I I",
    "MOVE K D",
    "MSET K V K V",
    "MSET K V",
    "MSETNX K V K V",
    "PERSIST K",
    "PFADD K M M M",
    "PFCOUNT K K",
    "PFDEBUG GETREG K",
    "PFMERGE K K K",
    "PSETEX K T V",
    "RENAME K K",
    "RENAMENX K K",
    "RPOP K",
    "RPOPLPUSH K K",
    "RPUSH K V V",
    "RPUSH K V V V V V",
    "RPUSHX K V V",
    "SADD K M",
    "SADD K M M M M",
    "SADD K N N N",
    "SDIFFSTORE K K K",
    "SET K V",
    "SET K V PX T",
    "SET K V PXAT U",
    "SET K N",
    "SET K V KEEPTTL",
    "SET K V NX GET",
    "SETBIT K O 1",
    "SETEX K 1 V",
    "SETNX K V",
    "SETRANGE K O V",
    "RESTORE K T R REPLACE",
    "RESTORE-ASKING K 0 R REPLACE",
    "SINTERSTORE K K K",
    "SMOVE K K M",
    "SORT K ALPHA STORE K",
    "SPOP K",
    "SPOP K P",
    "SREM K M M",
    "SUNIONSTORE K K K",
    "SWAPDB D D",
    "UNLINK K K",
    "ZADD K S M",
    "ZADD K S M S M S M",
    "ZADD K NX S M",
    "ZADD K XX GT CH S M",
    "ZADD K INCR S M",
    "ZDIFFSTORE K 2 K K",
    "ZINCRBY K S M",
    "ZINTERSTORE K 2 K K WEIGHTS 2 0.3",
    "ZMPOP 2 K K E COUNT P",
    "ZPOPMAX K P",
    "ZPOPMIN K",
    "ZRANGESTORE K K 0 P",
    "ZRANGESTORE K K -inf S BYSCORE",
    "ZREM K M M",
    "ZREMRANGEBYLEX K B B",
    "ZREMRANGEBYRANK K I I",
    "ZREMRANGEBYSCORE K -inf S",
    "ZUNIONSTORE K 2 K K AGGREGATE MAX",
    "XADD K * F V",
    "XADD K * F V",
    "XADD K P-* F V F V",
    "XADD K MAXLEN ~ P * F V F V",
    "XADD K NOMKSTREAM MINID = P * F V",
    "XTRIM K MAXLEN P",
    "XTRIM K MINID ~ P",
    "XADD K DELREF MAXLEN P * F V",
    "XTRIM K MINID P DELREF",
    "XTRIM K MAXLEN P ACKED",
    "XTRIM K MAXLEN ~ P ACKED",
    "XDELEX K DELREF IDS 2 P-0 P-1",
    "XDELEX K ACKED IDS 1 P-0",
    "XACKDEL K G IDS 2 P-0 P-1",
    "XACKDEL K G DELREF IDS 2 P-0 P-1",
    "XACKDEL K G ACKED IDS 1 P-0",
    "XDEL K P-0 P-1",
    "XSETID K U",
    "XSETID K U-3 ENTRIESADDED P MAXDELETEDID P-0",
    "XGROUP CREATE K G P-0 MKSTREAM",
    "XGROUP CREATE K G $ ENTRIESREAD P",
    "XGROUP SETID K G P-0 ENTRIESREAD N",
    "XGROUP DESTROY K G",
    "XGROUP CREATECONSUMER K G C",
    "XGROUP DELCONSUMER K G C",
    "XREADGROUP GROUP G C COUNT P STREAMS K >",
    "XREADGROUP GROUP G C STREAMS K >",
    "XREADGROUP GROUP G C NOACK STREAMS K K > >",
    "XREADGROUP GROUP G C STREAMS K 0",
    "XACK K G P-0 P-1 P-2",
    "XCLAIM K G C 0 P-0 P-1 FORCE",
    "XCLAIM K G C 0 P-0 IDLE P RETRYCOUNT P LASTID P-1",
    "XAUTOCLAIM K G C 0 0 COUNT P",
    "RESTORE X 0 Y REPLACE",
    "XDEL X 4-1 6-0",
    "XTRIM X MAXLEN P ACKED",
    "XACKDEL X g DELREF IDS 3 1-1 2-1 3-0",
    "XAUTOCLAIM X g C 0 0 COUNT P",
    // Reads that find keys past their time.
    "GET K",
    "MGET K K K",
    "EXISTS K",
    "SCAN 0",
    "RANDOMKEY",
    "TYPE K",
    "HGETALL K",
    "HLEN K",
    "PUBLISH V V",
    "SPUBLISH V V",
];

/// What DUMP says of a key that holds 10 (Redis documentation, DUMP).
const DUMPED: &[u8] = b"\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb";

/// What redis-server dumps of a stream with groups.
fn stream_dumped() -> Vec<u8> {
    let hex = include_str!("../command/stream/tests/redis-7.0.15-type-19.hex");
    let digits: Vec<u32> = hex.chars().filter_map(|digit| digit.to_digit(16)).collect();
    digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
}

/// Draws requests, effects and pauses from a seed.
struct Chance(Random);

impl Chance {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len() as u64) as usize]
    }

    fn value(&mut self) -> Vec<u8> {
        match self.below(8) {
            0 => b"17".to_vec(),
            1 => b"-4".to_vec(),
            2 => b"with blanks\r\nand \xff\0".to_vec(),
            3 => vec![b'x'; 90],
            4 => b"kiln:0".to_vec(),
            _ => format!("v{}", self.below(6)).into_bytes(),
        }
    }

    fn word(&mut self, placeholder: &str, now: UnixMillis) -> Vec<u8> {
        let number = match placeholder {
            "K" => return format!("k{}", self.below(7)).into_bytes(),
            "G" => return self.pick(&["g", "h"]).into(),
            "C" => return self.pick(&["alice", "bob"]).into(),
            "X" => return b"restored".to_vec(),
            "Y" => return stream_dumped(),
            "V" => return self.value(),
            "M" => return format!("m{}", self.below(9)).into_bytes(),
            "F" => return format!("f{}", self.below(7)).into_bytes(),
            "S" => return self.pick(&["1", "2.5", "-inf", "inf", "0.1", "-3e-310", "-0"]).into(),
            "E" => return self.pick(&["MIN", "MAX"]).into(),
            "L" => return self.pick(&["LEFT", "RIGHT"]).into(),
            "R" => return DUMPED.to_vec(),
            "B" => return self.pick(&["-", "+", "[m3", "(m5"]).into(),
            "N" => self.below(9) as i64 - 4,
            "I" => self.below(7) as i64 - 3,
            "P" => self.below(4) as i64 + 1,
            "T" => self.below(60) as i64 + 1,
            "U" => now.0 + self.below(80) as i64 - 20,
            "D" => self.below(3) as i64,
            "O" => self.below(40) as i64,
            _ => return placeholder.as_bytes().to_vec(),
        };
        number.to_string().into_bytes()
    }

    /// A word in which placeholders stand beside others.
    fn words(&mut self, word: &str, now: UnixMillis) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = word.split('-').map(|it| self.word(it, now)).collect();
        if word.contains('-') && word != "-inf" { parts.join(&b'-') } else { self.word(word, now) }
    }

    fn request(&mut self, now: UnixMillis) -> Vec<Vec<u8>> {
        let mut template = self.pick(TEMPLATES);
        // What empties everything is drawn less often.
        while template.starts_with("FLUSH") && self.below(10) > 0 {
            template = self.pick(TEMPLATES);
        }
        template.split(' ').map(|placeholder| self.words(placeholder, now)).collect()
    }
}

#[test]
fn a_follower_holds_what_its_primary_holds() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed);
        let mut chance = Chance(Random::new(seed));
        for _ in 0..1500 {
            pair.now.0 += chance.below(6) as i64;
            let database = DatabaseId(chance.below(3) as u32);
            let count = if chance.below(4) == 0 { 1 + chance.below(5) } else { 1 };
            let requests: Vec<_> = (0..count).map(|_| chance.request(pair.now)).collect();
            pair.transact(database, &requests);
            if chance.below(20) == 0 {
                pair.unit.clear();
                pair.primary.expire_due(pair.now, 3, &mut pair.unit, &mut pair.interest);
                assert!(!pair.unit.feed.is_transaction());
                pair.follow();
            }
        }
        assert!(!pair.primary.keyspace.is_empty(), "seed {seed} leaves something to compare");
    }
}

#[test]
fn any_effect_can_be_told() {
    for seed in 0..SEEDS {
        let mut pair = Pair::new(seed);
        let mut chance = Chance(Random::new(seed));
        for _ in 0..3000 {
            let key = chance.word("K", pair.now);
            let (value, member) = (chance.value(), chance.word("M", pair.now));
            let to = chance.word("K", pair.now);
            let (small, other) = (chance.below(6), DatabaseId(chance.below(3) as u32));
            let end = if chance.below(2) == 0 { End::Head } else { End::Tail };
            let (to_database, to) = (other, to.as_slice());
            let (value, member) = (value.as_slice(), member.as_slice());
            let at = pair.now.0 + 1_000_000;
            let effect = match chance.below(60) {
                0 => Effect::SetString { value, expire_at: None },
                1 => Effect::SetString { value, expire_at: Some(at) },
                2 => Effect::SetInteger { value: small as i64 },
                3 => Effect::Append { bytes: value },
                4 => Effect::SetRange { offset: small * 9, bytes: value },
                5 => Effect::SetRange { offset: small * 9, bytes: b"" },
                6 => Effect::Delete { reason: DeleteReason::Command },
                7 => Effect::Delete { reason: DeleteReason::Evicted },
                8 => Effect::Expire { at: Some(at) },
                9 => Effect::Expire { at: None },
                10 if (other, to) != (DatabaseId(1), &key) => Effect::Rename { to_database, to },
                11 if (other, to) != (DatabaseId(1), &key) => Effect::Copy { to_database, to },
                12..22 => Effect::ListPush { end, value },
                22 => Effect::ListPop { end, count: small },
                23..25 => Effect::ListSet { index: small, value },
                25..29 => Effect::ListInsert { index: small, value },
                29..32 => Effect::ListRemove { index: small, count: 1 + small / 2 },
                32..36 => Effect::HashSet { field: member, value, expire_at: None },
                36..38 => Effect::HashDelete { field: member, is_expired: false },
                38..42 => Effect::SetAdd { member: value },
                42..44 => Effect::SetRemove { member: value },
                44..48 => Effect::SortedAdd { member, score: small as f64 / 7.0 },
                48..50 => Effect::SortedRemove { member },
                50 if small == 0 => Effect::FlushDatabase,
                51 if small == 0 => Effect::FlushAll,
                52 if other.0 != 1 => Effect::SwapDatabases { with: other },
                53 => Effect::HashSet { field: member, value, expire_at: Some(at) },
                54 => Effect::HashExpire { field: member, at: Some(at) },
                55 => Effect::HashExpire { field: member, at: None },
                56 => Effect::HashDelete { field: member, is_expired: true },
                _ => Effect::Delete { reason: DeleteReason::Expired },
            };
            pair.change(DatabaseId(1), &key, effect);
        }
    }
}

#[test]
fn every_command_that_may_write_is_tried() {
    let tried: BTreeSet<&str> =
        TEMPLATES.iter().filter_map(|template| template.split(' ').next()).collect();
    let rows = FAMILIES.iter().flat_map(|family| family.iter());
    let writing = rows.filter(|row| matches!(row.function, crate::command::DataFn::Write(_)));
    let names = writing.filter_map(|row| row.usage.split(' ').next());
    let untried: Vec<&str> = names.filter(|name| !tried.contains(name)).collect();
    assert!(untried.is_empty(), "add a line to TEMPLATES for {untried:?}");
}

#[test]
fn calls_are_told_as_a_replica_of_redis_expects_them() {
    let mut pair = Pair::new(1);
    for (line, told) in [
        ("MSET a 1 b 2", &["MSET a 1 b 2"][..]),
        ("SET a 1 PX 100", &["SET a 1 PXAT 1700000000100"]),
        ("INCR a", &["INCR a"]),
        ("DECRBY a 5", &["INCRBY a -5"]),
        ("GETEX a PERSIST", &["PERSIST a"]),
        ("GETEX a EXAT 1", &["DEL a"]),
        ("SET f 1.5 PX 100", &["SET f 1.5 PXAT 1700000000100"]),
        ("INCRBYFLOAT f 1", &["SET f 2.5 KEEPTTL"]),
        ("SET f x KEEPTTL", &["SET f x KEEPTTL"]),
        ("RPUSH l a b c", &["RPUSH l a b c"]),
        ("LMPOP 1 l LEFT COUNT 2", &["LPOP l 2"]),
        ("ZADD z 1 one 2 two 3 three", &["ZADD z 1 one 2 two 3 three"]),
        ("ZMPOP 1 z MAX COUNT 9", &["ZPOPMAX z 3"]),
        ("DEL nothing", &[]),
        ("HSET h f v g w", &["HSET h f v g w"]),
        ("HPEXPIRE h 30 FIELDS 2 f g", &["HPEXPIREAT h 1700000000030 FIELDS 2 f g"]),
        ("HPERSIST h FIELDS 1 f", &["HPERSIST h FIELDS 1 f"]),
        ("HINCRBY h n 1", &["HSET h n 1"]),
        ("HSETEX h PX 20 FIELDS 1 n 1", &["HSET h n 1", "HPEXPIREAT h 1700000000020 FIELDS 1 n"]),
        ("HINCRBY h n 1", &["HSET h n 2", "HPEXPIREAT h 1700000000020 FIELDS 1 n"]),
        ("HGETEX h PXAT 1 FIELDS 2 n g", &["HDEL h n g"]),
        ("PEXPIRE h 40", &["PEXPIREAT h 1700000000040"]),
        ("MOVE h 1", &["MOVE h 1"]),
        ("PUBLISH c m", &["PUBLISH c m"]),
        ("SADD s a b", &["SADD s a b"]),
        ("SDIFFSTORE t s h", &["SADD t a b"]),
        ("GET nothing", &[]),
        ("XADD x MAXLEN ~ 9 * f v", &["XADD x 1700000000000-0 f v"]),
        (
            "XADD x MAXLEN 1 * f v",
            &["XADD x 1700000000000-1 f v", "XTRIM x MINID = 1700000000000-1"],
        ),
        ("XGROUP CREATE y g $ MKSTREAM", &["XGROUP CREATE y g 0-0 MKSTREAM ENTRIESREAD -1"]),
        ("XGROUP CREATE x g 0", &["XGROUP CREATE x g 0-0 ENTRIESREAD -1"]),
        (
            "XREADGROUP GROUP g c STREAMS x >",
            &[
                "XGROUP CREATECONSUMER x g c",
                "XCLAIM x g c 0 1700000000000-1 TIME 1700000000000 RETRYCOUNT 1 FORCE JUSTID",
                "XGROUP SETID x g 1700000000000-1 ENTRIESREAD 2",
            ],
        ),
        ("XACK x g 1700000000000-1 5-5", &["XACK x g 1700000000000-1"]),
    ] {
        assert_eq!(pair.run(line), told, "{line}");
    }
    pair.now.0 += 50;
    pair.run("SET a 1 PX 10");
    pair.now.0 += 50;
    assert_eq!(pair.run("INCR a"), ["DEL a", "INCR a"]);
    assert!(pair.unit.feed.is_transaction());
}

#[test]
fn libraries_of_functions_are_told_as_what_loads_them() {
    let mut pair = Pair::new(1);
    for (effect, told) in [
        (
            Effect::FunctionLoad { code: b"#!lua name=a\n" },
            &["FUNCTION", "LOAD", "REPLACE", "#!lua name=a\n"][..],
        ),
        (Effect::FunctionDelete { name: b"a" }, &["FUNCTION", "DELETE", "a"]),
        (Effect::FunctionFlush, &["FUNCTION", "FLUSH"]),
    ] {
        pair.unit.clear();
        let context = Context::background(pair.now, DatabaseId(0));
        let mut tx = pair.primary.tx(context, &mut pair.unit, &mut pair.interest);
        tx.change_all(DatabaseId(0), effect);
        pair.unit.feed.end_call();
        let words: Vec<&[u8]> = told.iter().map(|word| word.as_bytes()).collect();
        let said: Vec<u8> =
            pair.unit.feed.commands().flat_map(|(_, bytes)| bytes.to_vec()).collect();
        let expected = [resp::client::request(&[b"SELECT", b"0"]), resp::client::request(&words)];
        let is_said = said == expected[1] || said == expected.concat();
        assert!(is_said, "{}", String::from_utf8_lossy(&said));
    }
}

#[test]
fn nothing_is_told_while_nobody_follows() {
    let mut pair = Pair::new(1);
    pair.unit.feed.switch(false);
    let context = Context::background(pair.now, DatabaseId(0));
    let mut tx = pair.primary.tx(context, &mut pair.unit, &mut pair.interest);
    tx.change(b"a", Effect::SetInteger { value: 1 }).expect("it is no other type");
    tx.told_as(&[Word::Text(b"X")], |_| Ok(())).expect("it does nothing");
    pair.unit.feed.end_call();
    assert!(pair.unit.feed.is_empty());
}

/// A Redis 7.0 that follows reads no set in a listpack, whatever version a payload claims.
#[test]
fn a_restored_value_is_told_as_every_follower_reads_it() {
    let mut pair = Pair::new(1);
    let mut payload = b"\x14\x0d\x0d\0\0\0\x02\0\x81a\x02\x81b\x02\xff\x0a\0".to_vec();
    let mut crc = crate::rdb::Crc64::default();
    crc.update(&payload);
    payload.extend_from_slice(&crc.value().to_le_bytes());
    let words: [&[u8]; 4] = [b"RESTORE", b"set", b"0", &payload];
    pair.transact(DatabaseId(0), &[words.map(<[u8]>::to_vec).to_vec()]);
    assert_eq!(pair.told.len(), 1);
    assert!(pair.told[0].starts_with("RESTORE set 0 \x02\x02\x01"), "{:?}", pair.told);
}
