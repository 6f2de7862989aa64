//! Values that memory has no room for: nobody can tell from answers where they are, and a device
//! that loses them costs lives of the server, but no value.

use base::driver::Driver;
use base::time::MILLISECOND;
use base::{Clock, MonotonicNanos};
use engine::cold::{ColdLimits, ColdStore};
use engine::digest::Digest;
use node::{Limits, Scratch, Server, Stop};
use shard::tiering::TieringLimits;
use sim::campaign;
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::disk::nameless::ReadOdds;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::random::Random;
use sim::reply::{self, Reply};
use sim::room::generate::Generator;
use sim::room::token::Tokens;
use sim::room::{Broken, Device, Outcome, Plan, run};
use sim::tier::{self, Pressure, Tiered};
use sim::timeline::Timeline;

type Words = Vec<Vec<u8>>;

/// A run with a tier on a device that reads and writes wrongly.
fn on_bad_device(seed: u64) -> Result<Outcome, String> {
    let mut random = Random::stream(seed, "device");
    let tier = Some(Some(Tiered::drawn(&mut random)));
    let failed_writes = *random.choose(&[0, 20, 300]);
    let device = Device { reads: ReadOdds::draw(&mut random), failed_writes };
    run(seed, Plan { commands: 1500, lives: 3, tier, device, ..Plan::default() })
}

#[test]
fn a_device_that_reads_wrongly_costs_lives_and_no_value() {
    let seeds = campaign::seeds(|name| std::env::var(name).ok());
    let outcomes = campaign::survive(seeds, on_bad_device);
    let sum = |part: fn(&Outcome) -> u64| outcomes.iter().map(part).sum::<u64>();
    let happened = [
        ("lives that ended early", sum(|outcome| outcome.demotions)),
        ("values spilled", sum(|outcome| outcome.spilling.spilled)),
        ("values fetched", sum(|outcome| outcome.spilling.fetched)),
        ("blocking reads", sum(|outcome| outcome.spilling.blocking)),
        ("segments cleaned", sum(|outcome| outcome.spilling.cleaned_segments)),
        ("reads that failed", sum(|outcome| outcome.spilling.failed_reads)),
        ("writes that failed", sum(|outcome| outcome.spilling.failed_writes)),
    ];
    campaign::sum_up(" on bad devices", outcomes.len(), &happened);
}

#[test]
fn a_device_that_reads_nothing_rightly_ends_no_run() {
    for seed in 1..=4 {
        let tier =
            Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(seed)) };
        let reads = ReadOdds { failed: 1000, ..ReadOdds::default() };
        let device = Device { reads, failed_writes: 0 };
        let plan =
            Plan { commands: 600, lives: 2, tier: Some(Some(tier)), device, ..Plan::default() };
        let outcome = run(seed, plan).unwrap_or_else(|why| panic!("seed {seed}: {why}"));
        assert!(outcome.demotions > 0, "nothing was read");
    }
}

/// A run in which many long values change while they are encoded, over many turns, and which a rule
/// of the tier is broken in, or none.
fn with_long_encodings(seed: u64, broken: Broken) -> Result<Outcome, String> {
    // Of those that a seed draws, one with long records.
    let drawn = Tiered::drawn(&mut Random::stream(28, "device"));
    let cold = ColdLimits { slice_bytes: 64, ..drawn.limits.cold };
    let limits = TieringLimits { cold, encoded_per_turn: 64, ..drawn.limits };
    let tier = Some(Some(Tiered { pressure: Pressure::Memory(10_000), limits, ..drawn }));
    run(seed, Plan { commands: 3000, lives: 2, tier, broken, ..Plan::default() })
}

#[test]
fn a_long_value_that_goes_as_it_was_before_it_changed_is_caught() {
    let seeds = 1..=60;
    let mut complaints =
        seeds.filter_map(|seed| with_long_encodings(seed, Broken::KeepsEncoding).err());
    assert!(complaints.next().is_some(), "it goes unnoticed");
}

/// Commands that are not compared: their answers are random, or depend on time or on the order of
/// what has none.
const LEFT_OUT: [&str; 16] = [
    "spop",
    "srandmember",
    "randomkey",
    "hrandfield",
    "zrandmember",
    "wait",
    "waitaof",
    "restore",
    "publish",
    "spublish",
    "sscan",
    "hscan",
    "zscan",
    "object freq",
    "object|tier",
    "pfselftest",
];

/// Commands whose answers have no order.
const UNORDERED: [&str; 12] = [
    "smembers", "sunion", "sinter", "sdiff", "hgetall", "hkeys", "hvals", "keys", "scan", "sort",
    "sort_ro", "dump",
];

/// Requests of a comparison, and how long after each other they are sent, in nanoseconds.
const REQUESTS: u64 = 1500;
const APART_NANOS: u64 = 20 * MILLISECOND;

/// More turns than an answer needs that waits for the file.
const TURNS_MAX: u32 = 400;

/// One server and its only client. Its clocks stand still while a request is answered.
struct Single {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    network: SimNetwork,
    client: SimClient,
    clock: SimClock,
    disk: SimDisk,
    timeline: Timeline,
    now: MonotonicNanos,
    received: Vec<u8>,
}

impl Single {
    fn new(tier: Option<Tiered>) -> Self {
        let single = Self::with_network(tier, NetworkFaults::benign());
        single.clock.hold_at(single.now);
        single
    }

    /// One whose clocks go on.
    fn with_network(tier: Option<Tiered>, faults: NetworkFaults) -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, faults);
        let clock = SimClock::new(&timeline);
        let now = timeline.now();
        let driver = SimDriver::listen(&network, "node", clock.clone(), 1);
        let config = tier.as_ref().map(|tier| tier.config(&[]));
        let mut limits = Limits::default();
        if let Some(tier) = &tier {
            tier.limit(&mut limits);
        }
        let config = config.unwrap_or_else(|| config::Config::new(std::path::Path::new("/data")));
        let disk = SimDisk::new(1);
        let server = lone::server_with(config, limits, &clock, &disk, driver.waker());
        let client = network.connect("node");
        let (scratch, received) = (Scratch::default(), Vec::new());
        Self { server, driver, scratch, network, client, clock, disk, timeline, now, received }
    }

    fn turn(&mut self) {
        self.timeline.pass(MILLISECOND);
        self.server.turn(&mut self.driver, &mut self.scratch);
    }

    fn advance(&mut self, nanos: u64) {
        self.now = MonotonicNanos(self.now.0 + nanos);
        self.clock.hold_at(self.now);
        // What has expired goes.
        (0..3).for_each(|_| self.turn());
    }

    /// The answer to a request. One that waits for a timeout is let have it.
    fn ask(&mut self, words: &[Vec<u8>]) -> Reply {
        self.client.send(&encoded(words));
        self.answer(words)
    }

    /// The answers to requests that are sent at once.
    fn ask_all(&mut self, requests: &[Words]) -> Vec<Reply> {
        let bytes: Vec<u8> = requests.iter().flat_map(|words| encoded(words)).collect();
        self.client.send(&bytes);
        requests.iter().map(|words| self.answer(words)).collect()
    }

    /// The next answer, which is to this request.
    fn answer(&mut self, words: &[Vec<u8>]) -> Reply {
        for turn in 0..100 * TURNS_MAX {
            self.received.extend(self.client.received());
            if let Some((reply, length)) = reply::parse(&self.received).expect("it is a reply") {
                self.received.drain(..length);
                return reply;
            }
            if turn % TURNS_MAX == TURNS_MAX - 1 {
                self.advance(100 * MILLISECOND);
            }
            self.turn();
        }
        let stopping = &self.server.core.stopping;
        panic!("no answer to {}, {stopping:?}", text(words));
    }

    fn line(&mut self, line: &str) -> Reply {
        self.ask(&words(line))
    }

    fn keyspace(&self) -> &engine::keyspace::Keyspace {
        &self.server.core.shard.engine.keyspace
    }
}

/// The words of a request.
fn words(line: &str) -> Words {
    line.split(' ').map(|word| word.as_bytes().to_vec()).collect()
}

/// A request as it is sent.
fn encoded(words: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).bytes());
        bytes.extend_from_slice(word);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn text(words: &[Vec<u8>]) -> String {
    words.iter().map(|word| String::from_utf8_lossy(word)).collect::<Vec<_>>().join(" ")
}

/// What is sent, one by one.
fn requests(seed: u64) -> Vec<Words> {
    let mut random = Random::stream(seed, "compared");
    let mut tokens = Tokens::new(seed);
    let mut generator = Generator::without(&LEFT_OUT, Random::stream(seed, "generator"));
    let mut requests = Vec::new();
    while requests.len() < REQUESTS as usize {
        let number = random.within(0..3);
        let key = |family: u64| format!("key:{family}:{number}");
        let words = match random.within(0..100) {
            0..=11 => larger(&mut random, &mut tokens, number),
            12..=25 => {
                let asks = ["DUMP", "OBJECT ENCODING", "TTL", "STRLEN", "TYPE", "PEXPIRETIME"];
                let asks = *random.choose(&asks);
                let mut words: Words =
                    asks.split(' ').map(|word| word.as_bytes().to_vec()).collect();
                words.push(key(random.within(0..11)).into_bytes());
                words
            }
            _ => generator.request(&mut tokens),
        };
        requests.push(words);
    }
    requests
}

/// A request that makes a value larger, so that it is worth moving.
fn larger(random: &mut Random, tokens: &mut Tokens, number: u64) -> Words {
    let (name, family) =
        *random.choose(&[("SET", 10), ("RPUSH", 5), ("SADD", 7), ("HSET", 2), ("ZADD", 8)]);
    let mut words = vec![name.as_bytes().to_vec(), format!("key:{family}:{number}").into_bytes()];
    if name == "SET" {
        let bytes = *random.choose(&[100, 1000, 5000, 20_000]);
        words.push(tokens.issue_large(bytes));
        return words;
    }
    for rank in 0..*random.choose(&[3, 20, 150]) {
        match name {
            "HSET" => words.extend([format!("f{rank}").into_bytes(), tokens.issue()]),
            "ZADD" => words.extend([rank.to_string().into_bytes(), tokens.issue()]),
            _ => words.push(tokens.issue()),
        }
    }
    words
}

/// An answer without the order that means nothing.
fn plain(words: &[Vec<u8>], reply: Reply) -> Reply {
    let name = String::from_utf8_lossy(&words[0]).to_lowercase();
    if !UNORDERED.contains(&name.as_str()) {
        return reply;
    }
    match reply {
        // The last 10 bytes say the version and the checksum.
        Reply::Bulk(mut bytes) if name == "dump" => {
            bytes.truncate(bytes.len() - 10);
            bytes.sort_unstable();
            Reply::Bulk(bytes)
        }
        Reply::Array(elements) => {
            let width = if name == "hgetall" { 2 } else { 1 };
            let mut elements: Vec<String> =
                elements.chunks(width).map(|chunk| format!("{chunk:?}")).collect();
            elements.sort_unstable();
            Reply::Bulk(elements.join(" ").into_bytes())
        }
        reply => reply,
    }
}

/// Answers of one server to all requests, and the digest in the end.
fn answers(requests: &[Words], tier: Option<Tiered>) -> (Vec<Reply>, Digest, u64) {
    let mut single = Single::new(tier);
    let memory = tier.map(|tier| tier.maxmemory()).filter(|bytes| *bytes > 0);
    let mut answers = Vec::new();
    for (number, words) in requests.iter().enumerate() {
        single.advance(APART_NANOS);
        let mut reply = single.ask(words);
        // Keys and what may not be spilled take what they take.
        let mut limit = memory.unwrap_or_default();
        while memory.is_some() && has_no_memory(&reply) {
            limit += 20_000;
            single.line(&format!("CONFIG SET maxmemory {limit}"));
            reply = single.ask(words);
        }
        if let Some(memory) = memory.filter(|_| number % 20 == 0) {
            single.line(&format!("CONFIG SET maxmemory {memory}"));
        }
        answers.push(plain(words, reply));
        if number % 50 == 0 {
            tier::check(single.keyspace()).unwrap_or_else(|why| panic!("{number}: {why}"));
        }
    }
    let digest = Digest::of_keyspace(single.keyspace());
    let spilled = single.keyspace().cold().map_or(0, |cold| cold.statistics.spilled.get());
    (answers, digest, spilled)
}

fn has_no_memory(reply: &Reply) -> bool {
    match reply {
        Reply::Array(replies) => replies.iter().any(has_no_memory),
        reply => reply.is_error("OOM"),
    }
}

#[test]
fn nobody_can_tell_from_answers_where_values_are() {
    let seeds = campaign::seeds_or(12, |name| std::env::var(name).ok());
    let compare = |seed| {
        let requests = requests(seed);
        let (expected, digest, _) = answers(&requests, None);
        let mut random = Random::stream(seed, "tier");
        let mut moved = 0;
        for pressure in [Pressure::AllCold, Pressure::Memory(30_000)] {
            let tier = Tiered { pressure, bytes_max: 64 << 20, ..Tiered::drawn(&mut random) };
            let (found, found_digest, spilled) = answers(&requests, Some(tier));
            moved += spilled;
            for (number, words) in requests.iter().enumerate() {
                if found[number] != expected[number] {
                    let (found, expected) = (&found[number], &expected[number]);
                    let what = text(words);
                    return Err(format!(
                        "{tier:?}, request {number}: {what}\nfound    {found:?}\n\
                         expected {expected:?}"
                    ));
                }
            }
            if found_digest != digest {
                return Err(format!("{tier:?}: the data differ in the end"));
            }
        }
        Ok(moved)
    };
    let moved = campaign::survive(seeds, compare);
    let sum = moved.iter().sum();
    campaign::sum_up(" of answers compared", moved.len(), &[("values spilled", sum)]);
}

/// Values are fetched for a pipeline before its requests are judged.
#[test]
fn requests_with_too_few_arguments_are_refused_in_a_pipeline_as_well() {
    let tier = Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(1)) };
    let mut single = Single::new(Some(tier));
    single.line(&format!("SET key {}", "v".repeat(300)));
    let mut requests: Vec<Words> = Vec::new();
    for command in single.server.core.process.catalog.iter() {
        let name = command.name().split('|').map(|word| word.as_bytes().to_vec());
        let mut words: Words = name.collect();
        while !command.admits(words.len()) && words.len() < 6 {
            requests.push(words.clone());
            words.push(b"key".to_vec());
        }
    }
    assert!(requests.len() > 300, "only {} requests", requests.len());
    for batch in requests.chunks(20) {
        for (words, reply) in batch.iter().zip(single.ask_all(batch)) {
            assert!(reply.is_error("ERR wrong number"), "{}: {reply:?}", text(words));
        }
    }
}

#[test]
fn a_value_that_is_lost_amid_a_transaction_is_no_other_one() {
    let tier = Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(1)) };
    let mut single = Single::new(Some(tier));
    single.line(&format!("SET key {}", "v".repeat(300)));
    (0..50).for_each(|_| single.turn());
    single.disk.set_read_odds(ReadOdds { failed: 1000, ..ReadOdds::default() });
    // Scripts that do not declare what they need.
    let append = "EVAL redis.call('APPEND','key','w') 0";
    let get = "EVAL return(redis.call('GET','key')) 0";
    for line in ["MULTI", "STRLEN key", append, get] {
        single.line(line);
    }
    let reply = single.line("EXEC");
    assert!(reply.is_error("ERR the value was lost"), "{reply:?}");
    single.turn();
    let stopping = &single.server.core.stopping;
    assert!(matches!(stopping, Some(Stop::Demoted(_))), "{stopping:?}");
}

#[test]
fn a_transaction_that_selects_a_database_waits_for_the_values_it_needs_there() {
    let tier = Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(1)) };
    let mut single = Single::new(Some(tier));
    for database in 0..2 {
        single.line(&format!("SELECT {database}"));
        single.line(&format!("SET key{database} {}", "v".repeat(300)));
    }
    (0..50).for_each(|_| single.turn());
    assert_eq!(single.keyspace().cold_keys(), 2);
    for line in ["MULTI", "SELECT 99", "APPEND key1 w", "SELECT 0", "APPEND key0 w"] {
        single.line(line);
    }
    let refused = Reply::Error(b"ERR DB index is out of range".to_vec());
    let appended = Reply::Integer(301);
    let expected = vec![refused, appended.clone(), Reply::Simple(b"OK".to_vec()), appended];
    assert_eq!(single.line("EXEC"), Reply::Array(expected));
    let cold = single.keyspace().cold().expect("it has a tier");
    assert_eq!(cold.statistics.blocking_reads.get(), 0);
}

/// A server with values that are all cold, on a device that cannot read them any more.
fn with_lost_values() -> Single {
    let tier = Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(1)) };
    let mut single = Single::new(Some(tier));
    for number in 0..50 {
        single.line(&format!("SET key{number} {}", "v".repeat(300)));
        single.line(&format!("RPUSH list {number}"));
    }
    (0..50).for_each(|_| single.turn());
    single.disk.set_read_odds(ReadOdds { failed: 1000, ..ReadOdds::default() });
    single
}

#[test]
fn what_looks_at_a_lost_value_says_so_and_nothing_else() {
    for line in
        ["SORT list GET key*", "SORT list BY key*", "EVAL return{redis.pcall('GET','key1'),1} 0"]
    {
        let mut single = with_lost_values();
        let reply = single.line(line);
        assert!(reply.is_error("ERR the value was lost"), "{line}: {reply:?}");
        single.turn();
        let stopping = &single.server.core.stopping;
        assert!(matches!(stopping, Some(Stop::Demoted(_))), "{line}: {stopping:?}");
    }
}

#[test]
fn the_value_of_a_key_past_its_time_is_not_read() {
    let tier = Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(1)) };
    let mut single = Single::new(Some(tier));
    single.server.core.process.is_active_expiry_on = false;
    for number in 0..20 {
        single.line(&format!("SET key{number} {} PX 500", "v".repeat(300)));
    }
    (0..50).for_each(|_| single.turn());
    assert_eq!(single.keyspace().cold_keys(), 20);
    single.advance(1000 * MILLISECOND);
    let reads = |single: &Single| {
        let tiering = single.server.core.shard.tiering.as_ref().expect("it has a tier");
        let cold = single.keyspace().cold().expect("it has a tier");
        tiering.statistics.reads + cold.statistics.blocking_reads.get()
    };
    let before = reads(&single);
    assert_eq!(single.line("GET key0"), Reply::Null);
    assert_eq!(single.line("MGET key1 key2"), Reply::Array(vec![Reply::Null, Reply::Null]));
    assert_eq!(single.line("APPEND key3 w"), Reply::Integer(1));
    for line in ["MULTI", "GET key4", "APPEND key5 w"] {
        single.line(line);
    }
    assert_eq!(single.line("EXEC"), Reply::Array(vec![Reply::Null, Reply::Integer(1)]));
    let script = "EVAL return(redis.call('GET',KEYS[1])) 1 key6";
    assert_eq!(single.line(script), Reply::Null);
    assert_eq!(reads(&single), before);
}

/// A server with little memory and a hundred values of 10 KB each, most of which are not in memory.
fn with_large_values() -> Single {
    let limits = TieringLimits::default();
    let pressure = Pressure::Memory(LARGE_MEMORY);
    let tier = Tiered::large(pressure, limits);
    let mut single = Single::new(Some(tier));
    for number in 0..2000 {
        single.line(&format!("SET key{number} {}", "v".repeat(10_000)));
    }
    assert!(single.keyspace().cold_keys() > 1000);
    single
}

const LARGE_MEMORY: u64 = 8 << 20;

fn used_bytes_over(single: &Single) -> u64 {
    let keyspace = single.keyspace();
    (keyspace.used_bytes() as u64).saturating_sub(keyspace.settings.maxmemory)
}

#[test]
fn a_request_that_needs_more_than_there_is_memory_for_is_refused_and_harms_nobody() {
    let mut single = with_large_values();
    let keys: Vec<String> = (0..2000).map(|number| format!("key{number}")).collect();
    for request in ["EVAL return(1) 2000", "EVAL return(redis.call('MGET',unpack(ARGV))) 0", "MGET"]
    {
        let line = format!("{request} {}", keys.join(" "));
        let reply = single.line(&line);
        assert!(reply.is_error("OOM command not allowed"), "{reply:?}");
    }
    let some = keys[..200].join(" ");
    assert_eq!(single.line(&format!("EVAL return(1) 200 {some}")), Reply::Integer(1));
    assert_eq!(single.line("SET key1 v"), Reply::Simple(b"OK".to_vec()));
    assert_eq!(used_bytes_over(&single), 0);
    assert_eq!(single.line("DBSIZE"), Reply::Integer(2000));
}

#[test]
fn the_longest_value_there_may_be_can_always_be_read() {
    let mut single = with_large_values();
    single.line(&format!("CONFIG SET maxmemory {}", LARGE_MEMORY + (16 << 20)));
    // A table, which may grow in memory to several times its record.
    let field = "v".repeat(10_000);
    let fields: Vec<String> = (0..500).map(|number| format!("f{number} {field}")).collect();
    single.line(&format!("HSET table {}", fields.join(" ")));
    for number in 0..2000 {
        single.line(&format!("SET key{number} {}", "w".repeat(10_000)));
    }
    assert_eq!(single.line("OBJECT TIER table"), Reply::Bulk(b"ssd".to_vec()));
    assert_eq!(single.line("HGET table f7"), Reply::Bulk(field.clone().into_bytes()));
    let script = "EVAL return(redis.call('HGET','table','f8')) 0";
    for number in 0..2000 {
        single.line(&format!("SET key{number} {}", "w".repeat(10_000)));
    }
    assert_eq!(single.line(script), Reply::Bulk(field.into_bytes()));
}

#[test]
fn a_script_that_reads_what_it_did_not_declare_keeps_to_the_memory_there_is() {
    let mut single = with_large_values();
    let script = "local n, most = 0, 0
        for i = 0, 1999 do
            n = n + #redis.call('GET', 'key' .. i)
            most = math.max(most, tonumber(redis.call('INFO', 'memory'):match('used_memory:(%d+)')))
        end
        return {n, most}";
    let words = ["EVAL", script, "0"].map(|word| word.as_bytes().to_vec());
    let Reply::Array(found) = single.ask(&words) else { panic!("it reads all of them") };
    let [Reply::Integer(length), Reply::Integer(most)] = found[..] else { panic!("{found:?}") };
    assert_eq!(length, 2000 * 10_000);
    let limit = single.keyspace().settings.maxmemory as i64;
    assert!(most < limit + limit / 10, "{most} of {limit}");
}

#[test]
fn a_call_amid_a_script_that_needs_many_values_has_room_made_for_them() {
    let mut single = with_large_values();
    let script = "redis.call('MGET', unpack(ARGV))
        return tonumber(redis.call('INFO', 'memory'):match('used_memory:(%d+)'))";
    let words = ["EVAL", script, "0"].map(|word| word.as_bytes().to_vec()).into_iter();
    let keys = (0..150).map(|number| format!("key{number}").into_bytes());
    let words: Words = words.chain(keys).collect();
    let Reply::Integer(used) = single.ask(&words) else { panic!("there is room for these") };
    let limit = single.keyspace().settings.maxmemory as i64;
    assert!(used < limit + limit / 100, "{used} of {limit}");
}

#[test]
fn a_call_amid_a_script_has_room_made_by_long_values_too() {
    let limits = TieringLimits { encoded_per_turn: 1 << 10, ..TieringLimits::default() };
    let pressure = Pressure::Memory(LARGE_MEMORY);
    let mut single = Single::new(Some(Tiered::large(pressure, limits)));
    for number in 0..400 {
        single.line(&format!("SET long{number} {}", "v".repeat(100_000)));
    }
    let script = "redis.call('MGET', unpack(ARGV))
        return tonumber(redis.call('INFO', 'memory'):match('used_memory:(%d+)'))";
    let words = ["EVAL", script, "0"].map(|word| word.as_bytes().to_vec()).into_iter();
    let keys = (0..15).map(|number| format!("long{number}").into_bytes());
    let words: Words = words.chain(keys).collect();
    let Reply::Integer(used) = single.ask(&words) else { panic!("there is room for these") };
    let limit = single.keyspace().settings.maxmemory as i64;
    assert!(used < limit + limit / 100, "{used} of {limit}");
}

#[test]
fn what_is_flushed_gives_its_space_back() {
    for (seed, line) in (1..=6).zip(["FLUSHALL", "FLUSHALL ASYNC", "FLUSHDB"].into_iter().cycle()) {
        let tier =
            Tiered { pressure: Pressure::AllCold, ..Tiered::drawn(&mut Random::from_seed(seed)) };
        let mut single = Single::new(Some(tier));
        let live = |single: &Single| {
            let cold = single.keyspace().cold().expect("it has a tier");
            cold.tier.figures().live_records
        };
        for number in 0..200 {
            single.line(&format!("SET key{number} {}", "v".repeat(300)));
        }
        assert!(live(&single) > 100, "{}", live(&single));
        single.line(line);
        (0..400).for_each(|_| single.turn());
        assert_eq!(live(&single), 0, "{line}");
        tier::check(single.keyspace()).expect("nothing is there");
    }
}

/// A server that answers so slowly that a value comes meanwhile, and those that it answers beside
/// its client. They have asked for nothing, its client for this; the values of its keys are cold.
fn with_value_amid_sending(lines: &[&str]) -> (Single, Vec<SimClient>) {
    let tier = Tiered::large(Pressure::AllCold, TieringLimits::default());
    let tier = Tiered { sends_per_look: 1, ..tier };
    let mut single = Single::with_network(Some(tier), NetworkFaults::whole());
    single.line(&format!("SET text {}", "v".repeat(40)));
    let members: Vec<_> = (0..100).map(|number| number.to_string()).collect();
    single.line(&format!("PFADD many {}", members.join(" ")));
    let others: Vec<_> = (0..8).map(|_| single.network.connect("node")).collect();
    // The values reach the tier.
    (0..100).for_each(|_| single.turn());
    others.iter().for_each(|other| other.send(b"PING\r\n"));
    lines.iter().for_each(|line| single.client.send(&encoded(&words(line))));
    // The requests arrive; no turn has judged them.
    single.timeline.pass(100 * MILLISECOND);
    single.driver.send_nanos = 100 * MILLISECOND;
    (single, others)
}

/// The answer to a request whose value comes while other clients are answered in the turn that
/// judged it, and whether it leaves in that turn.
fn answered_amid_sending(line: &str) -> (String, bool) {
    let (mut single, others) = with_value_amid_sending(&[line]);
    single.turn();
    single.timeline.pass(100 * MILLISECOND);
    assert!(others.iter().all(|other| !other.received().is_empty()));
    assert!(!single.server.core.shard.has_gathered(), "nothing was written amid sending");
    let mut answer = single.client.received();
    let is_at_once = !answer.is_empty();
    (0..10).for_each(|_| single.turn());
    answer.extend(single.client.received());
    (String::from_utf8(answer).expect("text"), is_at_once)
}

#[test]
fn who_reads_is_answered_amid_sending_and_others_in_the_next_turn() {
    let number = |number: u32| format!(":{number}\r\n");
    assert_eq!(answered_amid_sending("GETRANGE text 39 50"), ("$1\r\nv\r\n".to_owned(), true));
    assert_eq!(answered_amid_sending("APPEND text v"), (number(41), false));
    assert_eq!(answered_amid_sending("PFCOUNT many"), (number(100), false));
    let script = "EVAL_RO return(redis.call('STRLEN',KEYS[1])) 1 text";
    assert_eq!(answered_amid_sending(script), (number(40), false));
}

#[test]
fn nothing_leaves_once_the_lease_is_over_amid_sending() {
    let (mut single, others) = with_value_amid_sending(&["PING", "GETRANGE text 39 50"]);
    lone::lead(&mut single.server, single.clock.moment(), 1000 * MILLISECOND);
    single.driver.send_nanos = 1000 * MILLISECOND;
    single.turn();
    assert!(single.server.core.leadership.is_lapsed, "it was judged amid sending");
    assert_eq!(single.server.core.process.ran_amid_sending(), 1);
    single.driver.send_nanos = 0;
    single.timeline.pass(100 * MILLISECOND);
    let value = b"$1\r\nv\r\n";
    assert!(!single.client.received().ends_with(value), "it was read under no lease");
    let told = others.iter().filter(|other| !other.received().is_empty()).count();
    assert!(told < others.len(), "answers leave as long as there are some");
    (0..100).for_each(|_| single.turn());
    assert!(single.client.received().ends_with(value), "the lease is renewed");
    let told = told + others.iter().filter(|other| !other.received().is_empty()).count();
    assert_eq!(told, others.len());
}

#[test]
fn who_waits_for_memory_lets_the_loop_sleep() {
    for command in ["SET", "EVAL return(redis.call('SET',KEYS[1],ARGV[1])) 1"] {
        let mut single = waits_for_memory(command);
        for _ in 0..100 {
            single.turn();
            let wait = single.server.wait_nanos().expect("there is always a tick");
            assert!(wait > 0, "the loop turns and turns");
        }
        single.disk.set_failed_writes(0);
        for _ in 0..TURNS_MAX {
            single.advance(10 * MILLISECOND);
            single.received.extend(single.client.received());
        }
        assert_eq!(single.received, b"+OK\r\n", "it had its turn");
    }
}

#[test]
fn who_is_refused_anyway_does_not_wait_for_memory_first() {
    let mut single = waits_for_memory("SET");
    let other = single.network.connect("node");
    let words = "CONFIG SET min-replicas-to-write 1".split(' ');
    let words: Words = words.map(|word| word.as_bytes().to_vec()).collect();
    other.send(&encoded(&words));
    (0..4).for_each(|_| single.turn());
    assert_eq!(other.received(), b"+OK\r\n");
    let told = String::from_utf8(single.client.received()).expect("a line");
    assert_eq!(told, "-NOREPLICAS Not enough good replicas to write.\r\n");
}

/// A server whose client waits with a write, because values leave memory no faster. The clock
/// stands still: the device counts as slow, and not yet as one that takes nothing.
fn waits_for_memory(command: &str) -> Single {
    let mut single = with_large_values();
    single.disk.set_failed_writes(1000);
    for number in 0..2000 {
        let words = format!("{command} more{number} {}", "v".repeat(10_000));
        let words: Words = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        single.client.send(&encoded(&words));
        (0..4).for_each(|_| single.turn());
        if single.client.received().is_empty() {
            return single;
        }
    }
    panic!("there is room for all of them");
}

#[test]
fn a_long_value_on_its_way_is_finished_at_once_though_memory_is_not_short_any_more() {
    let cold = ColdLimits { slice_bytes: 4 << 10, ..ColdLimits::default() };
    let limits = TieringLimits { cold, encoded_per_turn: 1 << 10, ..TieringLimits::default() };
    let pressure = Pressure::Memory(LARGE_MEMORY);
    let tier = Tiered::large(pressure, limits);
    let mut single = Single::new(Some(tier));
    for _ in 0..20 {
        single.line(&format!("RPUSH list{}", format!(" {}", "v".repeat(100)).repeat(100)));
    }
    let encodes = |single: &Single| {
        let cold = single.keyspace().cold();
        cold.is_some_and(ColdStore::encodes_next_turn)
    };
    assert!(!encodes(&single));
    let used = single.keyspace().used_bytes();
    single.line(&format!("CONFIG SET maxmemory {}", used - 1000));
    assert!(encodes(&single));
    single.line(&format!("CONFIG SET maxmemory {}", 2 * used));
    let mut turns = 0;
    while encodes(&single) {
        assert_eq!(single.server.wait_nanos(), Some(0), "it takes a tick for each slice");
        single.turn();
        turns += 1;
    }
    assert!(turns > 10, "{turns}");
    assert_eq!(single.keyspace().cold_keys(), 1);
    (0..10).for_each(|_| single.turn());
    assert!(single.server.wait_nanos() > Some(0), "nothing is left to do");
    assert_eq!(single.line("LLEN list"), Reply::Integer(2000));
}
