//! One client: what it asks, and what it remembers of its connection.

use super::chronicle::{Chronicle, Order, text};
use super::volatile::Witnessed;
use crate::network::SimClient;
use crate::random::Random;
use std::collections::VecDeque;

type Bytes = Vec<u8>;

/// Keys of each sort. Few, so that everybody meets everybody.
const REGISTERS: u64 = 3;
const COUNTERS: u64 = 2;
const PAIRS: u64 = 2;
const VOLATILES: u64 = 5;

/// The volatile names that are fields of one hash, and the hash.
const VOLATILE_FIELDS: [&[u8]; 2] = [b"volatile:3", b"volatile:4"];
const HASH: &[u8] = b"volatile:hash";

/// Requests that a client has under way at most.
const OUTSTANDING_MAX: usize = 3;

/// One of the clients asks for a planned failover with one in so many requests.
const FAILOVER_PART: u64 = 100;

/// And for a pause of all writes with one in so many, for as many milliseconds.
const PAUSE_PART: u64 = 120;
const PAUSE_MILLIS: std::ops::Range<u64> = 50..600;

/// Time between two requests of a client, in nanoseconds, at most.
const REST_NANOS_MAX: u64 = 30_000_000;

/// How long a client waits for a reply, in nanoseconds, before it gives the connection up.
const PATIENCE_NANOS: std::ops::Range<u64> = 200_000_000..3_000_000_000;

/// What a request does, and what its reply tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// What it says first on a connection.
    Introduction,
    Set(Bytes),
    /// The reply is what was there before.
    Swap(Bytes),
    Get,
    /// Both keys of a pair at once.
    SetPair(Bytes),
    GetPair,
    Count,
    GetCount,
    /// For a key or a field that expires.
    SetVolatile(Bytes),
    GetVolatile,
    /// What comes of it is not looked at.
    Other,
}

/// From whom a client reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reads {
    Primary,
    /// From anybody, what there is.
    Replica,
    /// From anybody, the newest.
    Newest,
}

impl Reads {
    /// What is said first on a connection, each once the one before it was taken.
    fn introduction(self) -> &'static [&'static str] {
        match self {
            Self::Primary => &[],
            Self::Replica => &["READONLY"],
            Self::Newest => &["READONLY", "CLIENT READS LINEARIZABLE"],
        }
    }
}

/// A request without a reply.
pub struct Pending {
    pub key: Bytes,
    pub asked: Asked,
    pub at: u64,
    pub gives_up_at: u64,
}

/// A client, through all its connections.
pub struct Client {
    pub index: usize,
    pub reads: Reads,
    pub random: Random,
    pub connection: Option<SimClient>,
    pub target: usize,
    pub received: Bytes,
    pub pending: VecDeque<Pending>,
    /// How much of its introduction was taken on this connection.
    pub introduced: usize,
    /// It goes elsewhere once all is answered.
    pub is_leaving: bool,
    pub next_at: u64,
    /// Everything through this write was seen on this connection.
    pub reached: Order,
    /// What this connection was shown of keys that expire.
    pub volatile: Witnessed,
}

impl Client {
    pub fn new(index: usize, nodes: usize, seed: u64) -> Self {
        let mut random = Random::stream(seed, &format!("client{index}"));
        Self {
            index,
            reads: [Reads::Primary, Reads::Primary, Reads::Replica, Reads::Newest][index % 4],
            target: random.within(0..nodes as u64) as usize,
            random,
            connection: None,
            received: Vec::new(),
            pending: VecDeque::new(),
            introduced: 0,
            is_leaving: false,
            next_at: 0,
            reached: Order::default(),
            volatile: Witnessed::default(),
        }
    }

    /// Notes that this connection was shown a value: what it is shown next is no older.
    pub fn sees(
        &mut self,
        chronicle: &Chronicle,
        key: &[u8],
        value: Option<&[u8]>,
    ) -> Result<(), String> {
        let (since, until) = chronicle.span(key, value)?;
        if until.is_some_and(|until| until <= self.reached) {
            let shown = value.map_or_else(|| "nothing".to_owned(), text);
            return Err(format!(
                "{} was {shown} on a connection that had seen what came after that",
                text(key)
            ));
        }
        self.reached = self.reached.max(since);
        Ok(())
    }

    /// How many requests it may have under way.
    pub fn outstanding_max(&self) -> usize {
        let is_introduced = self.introduced == self.reads.introduction().len();
        if is_introduced { OUTSTANDING_MAX } else { 1 }
    }

    /// Asks for something.
    pub fn send(&mut self, chronicle: &mut Chronicle, now: u64) {
        self.next_at = now + self.random.within(0..REST_NANOS_MAX);
        let (key, asked, words) = match self.reads.introduction().get(self.introduced) {
            Some(line) => {
                let words = line.split(' ').map(|word| word.as_bytes().to_vec());
                (Vec::new(), Asked::Introduction, words.collect())
            }
            None => {
                let (key, asked, words) = self.request(chronicle);
                let is_scripted =
                    !key.is_empty() && chronicle.issued().is_multiple_of(SCRIPTED_EVERY);
                (key, asked, if is_scripted { scripted(words) } else { words })
            }
        };
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(&word);
            bytes.extend_from_slice(b"\r\n");
        }
        if let Some(connection) = &self.connection {
            connection.send(&bytes);
        }
        let gives_up_at = now + self.random.within(PATIENCE_NANOS);
        self.pending.push_back(Pending { key, asked, at: now, gives_up_at });
    }

    fn request(&mut self, chronicle: &mut Chronicle) -> (Bytes, Asked, Vec<Bytes>) {
        let random = &mut self.random;
        let words = |words: &[&[u8]]| words.iter().map(|word| word.to_vec()).collect::<Vec<_>>();
        let mut key =
            |name: &str, count: u64| format!("{name}:{}", random.within(0..count)).into_bytes();
        let (register, counter) = (key("register", REGISTERS), key("counter", COUNTERS));
        let (pair, volatile) = (key("pair", PAIRS), key("volatile", VOLATILES));
        let other = [&pair[..], b":other"].concat();
        if self.index == 0 && random.within(0..FAILOVER_PART) == 0 {
            return (Vec::new(), Asked::Other, words(&[b"FAILOVER"]));
        }
        if self.index == 0 && random.within(0..PAUSE_PART) == 0 {
            let millis = random.within(PAUSE_MILLIS).to_string();
            let words = words(&[b"CLIENT", b"PAUSE", millis.as_bytes(), b"WRITE"]);
            return (Vec::new(), Asked::Other, words);
        }
        match random.within(if self.reads == Reads::Primary { 0..26 } else { 0..12 }) {
            0..6 => (register.clone(), Asked::Get, words(&[b"GET", &register])),
            6..8 => (pair.clone(), Asked::GetPair, words(&[b"MGET", &pair, &other])),
            8 => (counter.clone(), Asked::GetCount, words(&[b"GET", &counter])),
            9..12 => {
                let words = match VOLATILE_FIELDS.contains(&&volatile[..]) {
                    true => words(&[b"HGET", HASH, &volatile]),
                    false => words(&[b"GET", &volatile]),
                };
                (volatile, Asked::GetVolatile, words)
            }
            12..18 => {
                let value = chronicle.issue(&register);
                (register.clone(), Asked::Set(value.clone()), words(&[b"SET", &register, &value]))
            }
            18..20 => {
                let value = chronicle.issue(&register);
                let words = words(&[b"SET", &register, &value, b"GET"]);
                (register, Asked::Swap(value), words)
            }
            20..22 => {
                let value = chronicle.issue(&pair);
                let mut long = value.clone();
                if random.chance(20) {
                    long.resize(random.within(20..5_000) as usize, b'.');
                }
                let words = words(&[b"MSET", &pair, &long, &other, &long]);
                (pair, Asked::SetPair(value), words)
            }
            22..24 => (counter.clone(), Asked::Count, words(&[b"INCR", &counter])),
            _ => {
                let value = chronicle.issue(&volatile);
                let millis = random.within(1..400).to_string();
                let millis = millis.as_bytes();
                let words = match VOLATILE_FIELDS.contains(&&volatile[..]) {
                    true => {
                        let field = [&b"FIELDS"[..], b"1", &volatile, &value];
                        words(&[&[b"HSETEX", HASH, b"PX", millis], &field[..]].concat())
                    }
                    false => words(&[b"SET", &volatile, &value, b"PX", millis]),
                };
                (volatile, Asked::SetVolatile(value), words)
            }
        }
    }
}

/// The same request as a script that writes several keys one by one, with pauses in between.
fn scripted(words: Vec<Bytes>) -> Vec<Bytes> {
    let (script, keys): (&[u8], _) = match &words[..] {
        [name, pair, long, other, _] if name == b"MSET" => {
            let values = vec![pair.clone(), other.clone(), long.clone()];
            (WRITES_PAIR, [vec![b"2".to_vec()], values].concat())
        }
        [name, key, rest @ ..] => {
            let called = vec![b"1".to_vec(), key.clone(), name.clone()];
            (CALLS, [called, rest.to_vec()].concat())
        }
        _ => return words,
    };
    [vec![b"EVAL".to_vec(), script.to_vec()], keys].concat()
}

/// Every this many values issued, requests are sent as scripts until the next value.
const SCRIPTED_EVERY: usize = 6;
const CALLS: &[u8] = b"return redis.call(ARGV[1], KEYS[1], unpack(ARGV, 2))";
const WRITES_PAIR: &[u8] = b"redis.call('SET', KEYS[1], ARGV[1]) \
                             for i = 1, 20000 do local x = i end \
                             return redis.call('SET', KEYS[2], ARGV[1])";

/// A long value begins with its token.
pub fn token_of(value: &[u8]) -> Bytes {
    value[..value.len().min(crate::room::token::BYTES)].to_vec()
}
