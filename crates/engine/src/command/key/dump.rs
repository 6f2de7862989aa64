//! DUMP and RESTORE: one value as bytes, and back (Redis documentation, DUMP and RESTORE).
//!
//! A restored value is logged as what it consists of, element by element: replicas need not read
//! Redis's format, and it takes the encoding that the present settings give it.

use crate::access;
use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, read, write};
use crate::dump::{DumpError, dump as payload_of, with_value};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::rdb::kind;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::{Element, Recipe, Value};
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;
use structures::MemberBuffer;
use structures::entry::{Payload, ValueRef};

pub const DUMP: Command<DataFn> = read("DUMP key", dump)
    .tips(&["nondeterministic_output"])
    .doc("Returns a serialized representation of the value stored at a key.")
    .since("2.6.0")
    .cost(
        "O(1) to access the key and additional O(N*M) to serialize it, where N is the number of \
         Redis objects composing the value and M their average size. For small string values the \
         time complexity is thus O(1)+O(1*M) where M is small, so simply O(1).",
    )
    .with(Flags::KEYSPACE);

pub const RESTORE: Command<DataFn> = write(
    "RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    restore,
)
.key_use("OW+update")
.doc("Creates a key from the serialized representation of a value.")
.since("2.6.0")
.cost(RESTORE_COST)
.with(Flags::KEYSPACE.union(Flags::DANGEROUS).union(Flags::RESTORES))
.denyoom();

pub const RESTORE_ASKING: Command<DataFn> = write(
    "RESTORE-ASKING key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] \
     [FREQ frequency]",
    restore,
)
.key_use("OW+update")
.doc("An internal command for migrating keys in a cluster.")
.since("3.0.0")
.cost(RESTORE_COST)
.group(Group::Server)
.with(Flags::KEYSPACE.union(Flags::DANGEROUS).union(Flags::ASKING).union(Flags::RESTORES))
.denyoom();

const RESTORE_COST: &str = "O(1) to create the new key and additional O(N*M) to reconstruct the \
                            serialized value, where N is the number of Redis objects composing \
                            the value and M their average size. For small string values the time \
                            complexity is thus O(1)+O(1*M) where M is small, so simply O(1). \
                            However for sorted set values the complexity is O(N*M*log(N)) because \
                            inserting values into sorted sets is O(log(N)).";

fn dump(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    match view.find(args.at(1)) {
        Some(entry) => reply.bulk(payload_of(entry.value(), view.work())),
        None => reply.null(),
    }
    Ok(())
}

#[derive(Default)]
struct Options {
    replaces: bool,
    /// The time to live is a point in time.
    is_absolute: bool,
    idle_seconds: Option<u64>,
    frequency: Option<u8>,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut at = 4;
        while at < args.len() {
            let operand = args.get(at + 1);
            if args.is(at, "REPLACE") {
                options.replaces = true;
            } else if args.is(at, "ABSTTL") {
                options.is_absolute = true;
            } else if let Some(operand) = operand
                && args.is(at, "IDLETIME")
                && options.frequency.is_none()
            {
                let seconds = parse_i64(operand).ok_or(Refusal::NOT_AN_INTEGER)?;
                let refusal = Refusal::of("ERR Invalid IDLETIME value, must be >= 0");
                options.idle_seconds = Some(u64::try_from(seconds).map_err(|_| refusal)?);
                at += 1;
            } else if let Some(operand) = operand
                && args.is(at, "FREQ")
                && options.idle_seconds.is_none()
            {
                let counter = parse_i64(operand).ok_or(Refusal::NOT_AN_INTEGER)?;
                let refusal = Refusal::of("ERR Invalid FREQ value, must be >= 0 and <= 255");
                options.frequency = Some(u8::try_from(counter).map_err(|_| refusal)?);
                at += 1;
            } else {
                return Err(Refusal::SYNTAX);
            }
            at += 1;
        }
        Ok(options)
    }

    /// The access word that the options ask for, if it means something under the present policy.
    fn access(&self, tx: &Tx<'_>) -> Option<u32> {
        if tx.settings().maxmemory_policy.is_lfu() {
            self.frequency.map(|counter| access::of_frequency(counter, tx.now()))
        } else {
            self.idle_seconds.map(|seconds| access::of_idle(seconds, tx.now()))
        }
    }
}

fn restore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let options = Options::parse(args)?;
    if !options.replaces && tx.exists(key) {
        return Err(Refusal::of("BUSYKEY Target key name already exists."));
    }
    let ttl = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    if ttl < 0 {
        return Err(Refusal::of("ERR Invalid TTL value, must be >= 0"));
    }
    let since = if options.is_absolute { 0 } else { tx.now().0 };
    // What is beyond the end of time lies, as in Redis, before its beginning.
    let expire_at = (ttl > 0).then(|| ttl.wrapping_add(since));
    let settings = tx.settings().clone();
    let work = tx.work();
    let recipe = Recipe { settings: &settings, hasher: tx.keyspace().hasher(), work: &work };
    with_value(args.at(3), &recipe, |value| {
        let existed = tx.delete(key);
        if expire_at.is_some_and(|at| tx.is_overdue(at)) {
            if existed {
                tx.notify(Class::Generic, "del", key);
            }
            return Ok(());
        }
        let build = |tx: &mut Tx<'_>| {
            let is_there = put(tx, key, &value)?;
            if is_there && expire_at.is_some() {
                tx.change(key, Effect::Expire { at: expire_at })?;
            }
            Ok(is_there)
        };
        if !told_as_restored(tx, args, &value, expire_at, build)? {
            // All of its fields had expired, so the key does not exist.
            if existed {
                tx.notify(Class::Generic, "del", key);
            }
            return Ok(());
        }
        if let Some(word) = options.access(tx)
            && let Some(entry) = tx.find(key)
        {
            entry.set_access(word);
        }
        tx.notify(Class::Generic, "restore", key);
        Ok(())
    })
    .map_err(|error| match error {
        DumpError::Footer => Refusal::of("ERR DUMP payload version or checksum are wrong"),
        DumpError::Value(_) => Refusal::of("ERR Bad data format"),
    })??;
    reply.ok();
    Ok(())
}

/// Builds a value of which those who follow are told by RESTORE, with the time at which it expires.
/// Its payload is written anew: not every Redis that follows reads each encoding that is read here,
/// or forgives what is forgiven here. Streams tell themselves.
fn told_as_restored(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    value: &Payload<'_, Value>,
    expire_at: Option<i64>,
    build: impl FnOnce(&mut Tx<'_>) -> Result<bool, Refusal>,
) -> Result<bool, Refusal> {
    let value = match value {
        Payload::Bytes(bytes) => ValueRef::Bytes(bytes),
        Payload::Integer(integer) => ValueRef::Integer(*integer),
        Payload::Boxed(boxed) => ValueRef::Boxed(&**boxed),
        Payload::Cold(_) => return Err(Refusal::NOT_IN_MEMORY),
    };
    let is_stream = matches!(value, ValueRef::Boxed(Value::Stream(_)));
    if is_stream || !tx.unit.feed.is_on() {
        return build(tx);
    }
    let payload = payload_of(value, &tx.work());
    if payload.first().is_none_or(|kind| *kind > FOLLOWED_KIND_MAX) {
        return build(tx);
    }
    let absolute = (4..args.len()).find(|at| args.is(*at, "ABSTTL")).map(|at| args.at(at));
    let words = [
        Word::Text(b"RESTORE"),
        Word::Text(args.at(1)),
        Word::Number(expire_at.unwrap_or(0)),
        Word::Text(&payload),
        Word::Text(absolute.unwrap_or(b"ABSTTL")),
    ];
    let mut is_there = false;
    tx.told_as(&words, |tx| {
        is_there = build(tx)?;
        Ok(())
    })?;
    Ok(is_there)
}

/// The newest type of a value in RDB that every Redis reads which can follow: 7.0's own.
const FOLLOWED_KIND_MAX: u8 = kind::STREAM_LISTPACKS_2;

/// Builds a value at a free key, without fields whose time has come. Returns whether the key exists
/// then: not if all fields had expired.
fn put(tx: &mut Tx<'_>, key: &[u8], value: &Payload<'_, Value>) -> Result<bool, Refusal> {
    let mut buffer = MemberBuffer::new();
    let boxed = match value {
        Payload::Integer(integer) => {
            let value = buffer.format(*integer).as_bytes();
            tx.change(key, Effect::SetString { value, expire_at: None })?;
            return Ok(true);
        }
        Payload::Bytes(value) => {
            tx.change(key, Effect::SetString { value, expire_at: None })?;
            return Ok(true);
        }
        Payload::Boxed(boxed) => &**boxed,
        Payload::Cold(_) => return Err(Refusal::NOT_IN_MEMORY),
    };
    if let Value::Stream(_) = boxed {
        return put_stream(tx, key, boxed).map(|()| true);
    }
    let mut is_there = false;
    boxed.try_each(|element| {
        if let Element::Pair(_, _, Some(at)) = element
            && tx.is_overdue(at)
        {
            tx.work().step();
            return Ok(());
        }
        is_there = true;
        tx.change(key, element.effect()).map(drop)
    })?;
    Ok(is_there)
}

/// Builds a stream. Replicas of Redis are told the RESTORE itself: no other commands would arrange
/// the blocks in the same way, or keep a pending entry whose stream entry is deleted.
fn put_stream(tx: &mut Tx<'_>, key: &[u8], stream: &Value) -> Outcome {
    let build = |tx: &mut Tx<'_>| stream.try_each(|it| tx.change(key, it.effect()).map(drop));
    if !tx.unit.feed.is_on() {
        return build(tx);
    }
    let payload = payload_of(ValueRef::Boxed(stream), &tx.work());
    let [name, never] = [Word::Text(key), Word::Number(0)];
    tx.told_as(&[Word::Text(b"RESTORE"), name, never, Word::Text(&payload)], build)
}

#[cfg(test)]
mod tests {
    use crate::random::Random;
    use crate::rdb::Crc64;
    use crate::settings::Settings;
    use crate::testing::Bench;
    use structures::Listpack;

    /// What Redis 7.0 dumps for `SET a 10`.
    const TEN: &[u8] = b"\x00\xc0\n\n\x00n\x9fWE\x0e\xaec\xbb";

    fn restore(bench: &mut Bench, words: &[&[u8]]) -> String {
        let words: Vec<&[u8]> =
            [&b"RESTORE"[..]].into_iter().chain(words.iter().copied()).collect();
        bench.run_words(&words)
    }

    #[test]
    fn options_are_judged_as_redis_judges_them() {
        let mut bench = Bench::new();
        let refused: [(&[&[u8]], &str); 9] = [
            (&[b"a", b"0", b"...", b"NOSUCH"], "-ERR syntax error"),
            (&[b"a", b"0", b"...", b"IDLETIME"], "-ERR syntax error"),
            (&[b"a", b"0", b"...", b"IDLETIME", b"1", b"FREQ", b"1"], "-ERR syntax error"),
            (
                &[b"a", b"0", b"...", b"IDLETIME", b"-1"],
                "-ERR Invalid IDLETIME value, must be >= 0",
            ),
            (
                &[b"a", b"0", b"...", b"FREQ", b"256"],
                "-ERR Invalid FREQ value, must be >= 0 and <= 255",
            ),
            (&[b"there", b"x", b"..."], "-BUSYKEY Target key name already exists."),
            (&[b"a", b"x", b"..."], "-ERR value is not an integer or out of range"),
            (&[b"a", b"-1", b"..."], "-ERR Invalid TTL value, must be >= 0"),
            (&[b"a", b"0", b"..."], "-ERR DUMP payload version or checksum are wrong"),
        ];
        bench.run("SET there 1");
        for (words, expected) in refused {
            assert_eq!(restore(&mut bench, words), expected, "{words:?}");
        }
        bench.check("EXISTS a", ":0");
    }

    #[test]
    fn a_restored_key_is_told_of_expires_and_replaces() {
        let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
        let mut bench = Bench::with_settings(settings);
        bench.run("RPUSH a 1 2");
        assert_eq!(restore(&mut bench, &[b"a", b"5000", TEN, b"REPLACE"]), "+OK");
        assert_eq!(bench.events(), ["new a", "restore a"]);
        bench.check("GET a", "$2 10");
        bench.check("PTTL a", ":5000");
        assert_eq!(restore(&mut bench, &[b"a", b"1", TEN, b"REPLACE", b"ABSTTL"]), "+OK");
        assert_eq!(bench.events(), ["del a"]);
        bench.check("EXISTS a", ":0");
        assert_eq!(restore(&mut bench, &[b"a", b"0", TEN, b"IDLETIME", b"1000"]), "+OK");
        bench.check("OBJECT IDLETIME a", ":1000");
    }

    /// A payload as a release of this version of the format dumps it.
    fn payload(kind: u8, version: u16, body: &[u8]) -> Vec<u8> {
        let mut out = vec![kind];
        out.extend_from_slice(body);
        out.extend_from_slice(&version.to_le_bytes());
        let mut crc = Crc64::default();
        crc.update(&out);
        out.extend_from_slice(&crc.value().to_le_bytes());
        out
    }

    fn ziplist(elements: &[&str]) -> Vec<u8> {
        let mut entries = Vec::new();
        let mut before = 0;
        for element in elements {
            entries.extend_from_slice(&[before, element.len() as u8]);
            entries.extend_from_slice(element.as_bytes());
            before = 2 + element.len() as u8;
        }
        let mut out = (entries.len() as u32 + 11).to_le_bytes().to_vec();
        out.extend_from_slice(&(entries.len() as u32 + 10 - u32::from(before)).to_le_bytes());
        out.extend_from_slice(&(elements.len() as u16).to_le_bytes());
        out.extend_from_slice(&entries);
        out.push(0xff);
        out
    }

    fn listpack(elements: &[&str]) -> Vec<u8> {
        let mut pack = Listpack::new();
        elements.iter().for_each(|element| pack.push_back(element.as_bytes()));
        pack.bytes().to_vec()
    }

    /// A string, with its length in front.
    fn string(bytes: &[u8]) -> Vec<u8> {
        [&[bytes.len() as u8][..], bytes].concat()
    }

    /// RDB type, RDB version, bytes, and a request with its expected answer.
    type Dumped = (u8, u16, Vec<u8>, &'static str, &'static str);

    /// One value in each encoding of older releases, a set of 7.2, and hashes with field expiries.
    fn dumped() -> [Dumped; 11] {
        let times = "HPEXPIRETIME k FIELDS 2 a b";
        let expected = "*2 :1900000000005 :-1";
        let (at, earliest) = (1_900_000_000_005_i64.to_le_bytes(), 1_900_000_000_001_i64);
        let behind = [&b"\x02\x01a\x011"[..], &at, b"\x01b\x012", &(-1_i64).to_le_bytes()].concat();
        let before = [&earliest.to_le_bytes()[..], b"\x02\x05\x01a\x011\x00\x01b\x012"].concat();
        let packed = string(&listpack(&["a", "1", "1900000000005", "b", "2", "0"]));
        let packed = [&earliest.to_le_bytes()[..], &packed].concat();
        let nodes = [&[2][..], &string(&ziplist(&["a", "b"])), &string(&ziplist(&["c"]))].concat();
        let zipmap = b"\x02\x01a\x02\x00xy\x01b\x01\x00z\xff";
        [
            (1, 6, b"\x02\x01a\x01b".to_vec(), "LRANGE k 0 -1", "*2 $1 a $1 b"),
            (
                3,
                6,
                b"\x03\x01a\x031.5\x01b\xfe\x01c\xff".to_vec(),
                "ZRANGE k 0 -1 WITHSCORES",
                "*6 $1 c $4 -inf $1 a $3 1.5 $1 b $3 inf",
            ),
            (9, 6, string(zipmap), "HGETALL k", "*4 $1 a $2 xy $1 b $1 z"),
            (10, 6, string(&ziplist(&["a", "12"])), "LRANGE k 0 -1", "*2 $1 a $2 12"),
            (
                12,
                9,
                string(&ziplist(&["a", "1", "b", "2.5"])),
                "ZRANGE k 0 -1 WITHSCORES",
                "*4 $1 a $1 1 $1 b $3 2.5",
            ),
            (13, 9, string(&ziplist(&["f", "v"])), "HGETALL k", "*2 $1 f $1 v"),
            (14, 9, nodes, "LRANGE k 0 -1", "*3 $1 a $1 b $1 c"),
            (20, 11, string(&listpack(&["a", "b"])), "SMEMBERS k", "*2 $1 a $1 b"),
            (22, 80, behind, times, expected),
            (24, 12, before, times, expected),
            (25, 12, packed, times, expected),
        ]
    }

    #[test]
    fn what_any_release_dumped_is_restored() {
        for (kind, version, body, request, expected) in dumped() {
            let mut bench = Bench::new();
            let whole = payload(kind, version, &body);
            assert_eq!(restore(&mut bench, &[b"k", b"0", &whole]), "+OK", "type {kind}");
            bench.check(request, expected);
            for cut in 1..body.len() {
                let cut = payload(kind, version, &body[..cut]);
                let said = restore(&mut bench, &[b"cut", b"0", &cut]);
                assert_eq!(said, "-ERR Bad data format", "type {kind}");
            }
        }
    }

    #[test]
    fn damaged_values_are_taken_or_refused() {
        let mut random = Random::new(1);
        for (kind, version, body, ..) in dumped() {
            let (mut taken, mut refused) = (0, 0);
            for _ in 0..2_000 {
                let mut body = body.clone();
                for _ in 0..random.word() % 3 + 1 {
                    let at = random.word() as usize % body.len();
                    body[at] = random.word() as u8;
                }
                let mut bench = Bench::new();
                match restore(&mut bench, &[b"k", b"0", &payload(kind, version, &body)]).as_str() {
                    "+OK" => taken += 1,
                    "-ERR Bad data format" => refused += 1,
                    other => panic!("type {kind}: {other}"),
                }
            }
            assert!(taken > 0 && refused > 0, "type {kind}: {taken} taken, {refused} refused");
        }
    }

    #[test]
    fn what_no_release_dumped_is_refused() {
        let mut bench = Bench::new();
        let nan = b"\x01\x01a\xfd".to_vec();
        let none = b"\x00".to_vec();
        let kinds: [(u8, Vec<u8>); 8] = [
            (3, nan),
            (3, b"\x02\x01a\x011\x01a\x012".to_vec()),
            (9, string(b"\x02\x01a\x01\x00x\x01a\x01\x00z\xff")),
            (12, string(&ziplist(&["a", "1", "a", "2"]))),
            (12, string(&ziplist(&["a", "x"]))),
            (13, string(&ziplist(&["f", "v", "g"]))),
            (1, none),
            (20, string(&listpack(&["a", "a"]))),
        ];
        for (kind, body) in kinds {
            let said = restore(&mut bench, &[b"k", b"0", &payload(kind, 9, &body)]);
            assert_eq!(said, "-ERR Bad data format", "type {kind}");
        }
        // The version decides what type 22 means. Redis used the number in no release.
        let fields = [&b"\x01\x01a\x011"[..], &(-1_i64).to_le_bytes()].concat();
        let said = restore(&mut bench, &[b"k", b"0", &payload(22, 12, &fields)]);
        assert_eq!(said, "-ERR Bad data format");
        let times = [
            (24, 12, &b"\0\0\0\0\0\0\0\0\x01\x01\x01a\x011"[..]),
            (24, 12, b"\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x02\x01a\x011"),
            (22, 80, b"\x01\x01a\x011\0\0\0\0\0\0\0\0"),
        ];
        for (kind, version, body) in times {
            let said = restore(&mut bench, &[b"k", b"0", &payload(kind, version, body)]);
            assert_eq!(said, "-ERR Bad data format", "a time that cannot be: type {kind}");
        }
        for version in [13, 79, 81] {
            let later = payload(0, version, b"\x01a");
            let said = restore(&mut bench, &[b"k", b"0", &later]);
            assert_eq!(said, "-ERR DUMP payload version or checksum are wrong");
        }
        bench.check("DBSIZE", ":0");
    }

    #[test]
    fn what_a_valkey_dumped_is_restored() {
        let hex = |hex: &str| -> Vec<u8> {
            let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("digits");
            (0..hex.len()).step_by(2).map(digits).collect()
        };
        let mut bench = Bench::new();
        // Dumped by a Valkey 9.1.2: HSET a 1 b hello c 3, a and b with HPEXPIREAT.
        let some = hex(
            "16030161c00100e04cda8f1d000001620568656c6c6f7be04cda8f1d00000163c003ffffffffffffffff\
             5000b4765ea02fa1ffc7",
        );
        assert_eq!(restore(&mut bench, &[b"some", b"0", &some]), "+OK");
        bench.check("HGETALL some", "*6 $1 a $1 1 $1 b $5 hello $1 c $1 3");
        bench.check("HPEXPIRETIME some FIELDS 3 a b c", "*3 :32503680000000 :32503680000123 :-1");
        // HSETEX PXAT 32503680000001 x -5 y 70000; and a hash whose only field no longer expires.
        let all =
            hex("16020178c0fb01e04cda8f1d00000179c27011010001e04cda8f1d0000500088b31d764ed4d8ff");
        let none = hex("04010161c00150008fbbd3015555ecb1");
        assert_eq!(restore(&mut bench, &[b"all", b"0", &all]), "+OK");
        bench.check("HPEXPIRETIME all FIELDS 2 x y", "*2 :32503680000001 :32503680000001");
        assert_eq!(restore(&mut bench, &[b"none", b"0", &none]), "+OK");
        bench.check("HTTL none FIELDS 1 a", "*1 :-1");
    }

    #[test]
    fn a_time_beyond_the_end_of_time_is_past() {
        let mut bench = Bench::new();
        let most = i64::MAX.to_string();
        assert_eq!(restore(&mut bench, &[b"k", most.as_bytes(), b"..."]).get(..4), Some("-ERR"));
        assert_eq!(restore(&mut bench, &[b"k", most.as_bytes(), TEN]), "+OK");
        bench.check("EXISTS k", ":0");
        assert_eq!(restore(&mut bench, &[b"k", most.as_bytes(), TEN, b"ABSTTL"]), "+OK");
        bench.check("EXISTS k", ":1");
    }
}
