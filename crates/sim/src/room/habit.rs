//! What clients do.

use super::generate::Generator;
use super::ledger::{Change, databases, readings};
use super::queue::DATABASE;
use super::stream::Expectation;
use super::token::Tokens;
use super::witness::SharedWitness;
use crate::random::Random;
use std::collections::VecDeque;

type Bytes = Vec<u8>;
type Words = Vec<Bytes>;

/// Requests without a reply at most: clients pipeline.
const OUTSTANDING_MAX: usize = 12;

/// Values that one client makes and looks at again.
const REMEMBERED_MAX: usize = 8;

/// One request, and what its reply must satisfy.
pub struct Request {
    pub words: Words,
    pub expectation: Expectation,
}

impl Request {
    pub fn new(words: Words, expectation: Expectation) -> Self {
        Self { words, expectation }
    }

    /// The words of a line.
    pub fn line(line: &str, expectation: Expectation) -> Self {
        let words = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Self { words, expectation }
    }

    fn any(line: &str) -> Self {
        Self::line(line, Expectation::Anything)
    }
}

/// What a client does.
pub enum Habit {
    /// Changes its own keys, and knows what they must hold. Large values have about this size.
    Keeps {
        client: usize,
        large_bytes: usize,
        /// Entries of a stream that were sent.
        entries: u64,
    },
    /// Sends what the generator makes, in a database without ledgers.
    Roams {
        generator: Box<Generator>,
        database: u32,
    },
    /// Pushes to a queue, and pops from it.
    Hands,
    /// Makes keys that expire, and tells subscribers of what it writes and reads.
    Tells {
        made: VecDeque<Bytes>,
        count: u64,
    },
    /// Listens to messages and keyspace events.
    Subscribes,
    Monitors,
    /// Asks for snapshots, pauses clients, looks around.
    Operates {
        /// Values go to a tier, because `maxmemory` is now this little and now that.
        limits_memory: bool,
    },
}

impl Habit {
    /// Whether someone counts on what its keys hold.
    pub fn has_ledger(&self) -> bool {
        matches!(self, Self::Keeps { .. } | Self::Hands)
    }

    pub fn is_listening(&self) -> bool {
        matches!(self, Self::Subscribes | Self::Monitors)
    }

    pub fn outstanding_max(&self) -> usize {
        match self {
            Self::Subscribes | Self::Operates { .. } => 2,
            Self::Hands => 4,
            _ => OUTSTANDING_MAX,
        }
    }

    /// What it says first on a connection, behind its HELLO.
    pub fn introduction(&self) -> Vec<Request> {
        let select = |database| Request::line(&format!("SELECT {database}"), Expectation::Nothing);
        let nothing = |line| Request::line(line, Expectation::Nothing);
        match self {
            Self::Keeps { client, .. } => {
                let mut requests = vec![select(databases(*client)[0].0), nothing("MULTI")];
                let readings = readings(*client).into_iter();
                requests.extend(readings.map(|words| Request::new(words, Expectation::Nothing)));
                requests.push(Request::line("EXEC", Expectation::Holdings(*client)));
                requests
            }
            Self::Roams { database, .. } => vec![select(*database)],
            Self::Hands | Self::Tells { .. } => vec![select(DATABASE)],
            Self::Subscribes => {
                let subscribes = Request::line("SUBSCRIBE news", Expectation::Subscribed);
                vec![subscribes, nothing("PSUBSCRIBE __key*__:*")]
            }
            Self::Monitors => vec![nothing("MONITOR")],
            Self::Operates { .. } => vec![nothing("CONFIG SET notify-keyspace-events KEA")],
        }
    }

    /// What it sends next.
    pub fn next(&mut self, random: &mut Random, witness: &SharedWitness) -> Vec<Request> {
        let witness = &mut *witness.borrow_mut();
        match self {
            Self::Keeps { client, large_bytes, entries } => {
                let change = change(random, &mut witness.tokens, *large_bytes, entries, true);
                let requests = change.requests(*client).into_iter();
                let anything = |words| Request::new(words, Expectation::Anything);
                let mut requests: Vec<Request> = requests.map(anything).collect();
                // Only the last reply tells.
                if let Some(last) = requests.last_mut() {
                    last.expectation = Expectation::Change(*client);
                }
                witness.ledgers[*client].submit(change);
                requests
            }
            Self::Roams { generator, .. } => roam(generator, random, &mut witness.tokens),
            Self::Hands => vec![hand(random, &mut witness.tokens)],
            Self::Tells { made, count } => tell(made, count, random, &mut witness.tokens),
            Self::Subscribes => subscribe(random),
            Self::Monitors => Vec::new(),
            Self::Operates { limits_memory } => operate(random, *limits_memory),
        }
    }
}

fn roam(generator: &mut Generator, random: &mut Random, tokens: &mut Tokens) -> Vec<Request> {
    let mut requests = Vec::new();
    let mut make = |count: u64| -> Vec<Request> {
        let words = (0..count).map(|_| generator.request(tokens));
        words.map(|words| Request::new(words, Expectation::Anything)).collect()
    };
    if random.chance(10) {
        if random.chance(30) {
            requests.push(Request::any(&format!("WATCH key:4:{}", random.within(0..3))));
            requests.append(&mut make(1));
        }
        requests.push(Request::any("MULTI"));
        requests.append(&mut make(random.within(1..5)));
        requests.push(Request::any(random.choose::<&str>(&["EXEC", "EXEC", "EXEC", "DISCARD"])));
    } else if random.chance(1) {
        requests.push(Request::any("SWAPDB 1 2"));
    } else {
        requests.append(&mut make(1));
    }
    requests
}

fn hand(random: &mut Random, tokens: &mut Tokens) -> Request {
    let pops = [
        "BLPOP queue 0.03",
        "BRPOP done queue 0.01",
        "LPOP queue",
        "RPOP done",
        "BLMPOP 0.01 1 nowhere LEFT",
    ];
    match random.within(0..10) {
        0..=4 => {
            let values: Vec<Bytes> = (0..random.within(1..3)).map(|_| tokens.issue()).collect();
            let name = *random.choose(&["RPUSH queue", "LPUSH queue"]);
            let mut request = Request::line(name, Expectation::Pushed(values.clone()));
            request.words.extend(values);
            request
        }
        5 => Request::any("BLMOVE queue done LEFT RIGHT 0.02"),
        6 => Request::any("LMOVE queue done RIGHT LEFT"),
        _ => Request::line(random.choose::<&str>(&pops), Expectation::Popped),
    }
}

fn tell(
    made: &mut VecDeque<Bytes>,
    count: &mut u64,
    random: &mut Random,
    tokens: &mut Tokens,
) -> Vec<Request> {
    let key = |token: &[u8]| [b"k:", token].concat();
    let words = |name: &str, rest: &[&[u8]]| {
        let words = std::iter::once(name.as_bytes()).chain(rest.iter().copied());
        words.map(<[u8]>::to_vec).collect::<Words>()
    };
    let any = |words| Request::new(words, Expectation::Anything);
    let token = tokens.issue();
    match random.within(0..10) {
        0..=2 => {
            // Each such key is made once.
            let key = key(&token);
            made.push_back(key.clone());
            if made.len() > REMEMBERED_MAX {
                made.pop_front();
            }
            let millis = random.within(1..300).to_string().into_bytes();
            match random.within(0..3) {
                0 => vec![any(words("SET", &[&key, &token]))],
                _ => vec![any(words("SET", &[&key, &token, b"PX", &millis]))],
            }
        }
        3..=5 if !made.is_empty() => {
            let key = made[random.within(0..made.len() as u64) as usize].clone();
            if random.chance(20) {
                return vec![any(words("DEL", &[&key]))];
            }
            let asks = words("GET", &[&key]);
            vec![Request::new(asks, Expectation::Gone(key))]
        }
        6 => vec![Request::new(
            words("PUBLISH", &[b"news", &token]),
            Expectation::Published(token.clone()),
        )],
        7 | 8 => vec![
            Request::any("MULTI"),
            any(words("SET", &[b"k:news", &token])),
            any(words("PUBLISH", &[b"news", &token])),
            Request::line("EXEC", Expectation::Published(token.clone())),
        ],
        _ => {
            *count += 1;
            let marker = format!("told:{count}").into_bytes();
            vec![
                Request::any("MULTI"),
                Request::any("LINDEX queue -1"),
                any(words("PUBLISH", &[b"news", &marker])),
                Request::line("EXEC", Expectation::Told(marker)),
            ]
        }
    }
}

fn subscribe(random: &mut Random) -> Vec<Request> {
    let lines = ["PING", "UNSUBSCRIBE other", "SUBSCRIBE other", "PUNSUBSCRIBE other"];
    if random.chance(2) { vec![Request::any(random.choose::<&str>(&lines))] } else { Vec::new() }
}

fn operate(random: &mut Random, limits_memory: bool) -> Vec<Request> {
    if !random.chance(6) {
        return Vec::new();
    }
    if limits_memory && random.chance(30) {
        let bytes = *random.choose(&[0, 15_000, 30_000, 60_000, 120_000, 300_000]);
        return vec![Request::any(&format!("CONFIG SET maxmemory {bytes}"))];
    }
    let lines = [
        "BGSAVE",
        "BGSAVE",
        "BGSAVE SCHEDULE",
        "SAVE",
        "CLIENT PAUSE 20 WRITE",
        "CLIENT PAUSE 5 ALL",
        "CLIENT UNPAUSE",
        "CLIENT LIST",
        "DBSIZE",
        "INFO everything",
        "LASTSAVE",
        "MEMORY STATS",
        "RANDOMKEY",
        "SCAN 0 COUNT 100",
        "CONFIG GET maxmemory*",
    ];
    vec![Request::any(random.choose::<&str>(&lines))]
}

/// A value, now and then a large one.
fn value(random: &mut Random, tokens: &mut Tokens, large_bytes: usize) -> Bytes {
    if random.within(0..100) < 3 {
        // At times more than the log keeps room for in advance.
        let records = if random.chance(20) { 8 } else { 2 };
        let bytes = random.within(large_bytes as u64 / 8..records * large_bytes as u64);
        return tokens.issue_large(bytes as usize);
    }
    tokens.issue()
}

fn change(
    random: &mut Random,
    tokens: &mut Tokens,
    large_bytes: usize,
    entries: &mut u64,
    may_group: bool,
) -> Change {
    let name = |random: &mut Random| format!("m{}", random.within(0..5)).into_bytes();
    let value = |random: &mut Random, tokens: &mut Tokens| value(random, tokens, large_bytes);
    match random.within(0..if may_group { 27 } else { 24 }) {
        0..=2 => Change::Set(value(random, tokens)),
        3 => Change::Delete,
        4 => Change::Count(random.within(1..9) as i64),
        5 | 6 => Change::PushHead(value(random, tokens)),
        7 => Change::PushTail(value(random, tokens)),
        8 | 9 => Change::PopHead,
        10 => Change::PopTail,
        11 => Change::PopBlocking,
        12 => Change::Add(name(random)),
        13 => Change::Remove(name(random)),
        14 => Change::SetField(name(random), value(random, tokens)),
        15 => Change::DeleteField(name(random)),
        16 => Change::Move,
        17 => Change::Copy,
        18 => Change::Swap,
        19 => {
            if random.chance(30) {
                Change::Flush
            } else {
                Change::Delete
            }
        }
        20 | 21 => {
            *entries += 1;
            Change::Append(*entries, value(random, tokens))
        }
        22 => Change::DeleteEntry(entries.saturating_sub(random.within(0..8))),
        23 => Change::Trim(random.within(0..6)),
        _ => {
            let is_script = random.chance(40);
            let count = random.within(1..5);
            let changes = (0..count).map(|_| change(random, tokens, large_bytes, entries, false));
            if is_script {
                // Commands do not block in scripts.
                let waits = |change: &Change| matches!(change, Change::PopBlocking);
                Change::Scripted(changes.filter(|change| !waits(change)).collect())
            } else {
                Change::Together(changes.collect())
            }
        }
    }
}
