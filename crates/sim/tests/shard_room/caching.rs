//! Clients that cache what they read (CLIENT TRACKING), while keys change, the log is slow and
//! primaries are replaced.

use crate::primary::{Primary, Tells};
use crate::three::Three;
use base::time::MILLISECOND;
use sim::network::SimClient;
use sim::random::Random;
use sim::reply::{Reply, parse};
use std::collections::{BTreeMap, VecDeque};

/// What a client of a lone primary receives in a few turns.
fn told(primary: &mut Primary, client: &SimClient, requests: &str) -> String {
    client.send(requests.as_bytes());
    primary.timeline.pass(MILLISECOND);
    for _ in 0..3 {
        primary.turn();
    }
    String::from_utf8(client.received()).expect("replies are text")
}

/// A client that caches, with what it read of `k`.
fn caching(primary: &mut Primary, options: &str) -> SimClient {
    let client = primary.network.connect("here");
    let requests = format!("HELLO 3\r\nCLIENT TRACKING ON {options}\r\nGET k\r\n");
    told(primary, &client, &requests);
    client
}

const DROPS_K: &str = ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n";

#[test]
fn who_cached_a_key_is_told_before_its_change_is_durable() {
    for options in ["", "BCAST"] {
        let mut primary = Primary::new();
        let cacher = caching(&mut primary, options);
        let writer = primary.network.connect("here");
        primary.tells.set(Tells::Nothing);
        assert_eq!(told(&mut primary, &writer, "SET k 1\r\n"), "");
        assert_eq!(told(&mut primary, &cacher, ""), DROPS_K, "{options}");
        assert_eq!(told(&mut primary, &writer, ""), "");
    }
}

#[test]
fn a_value_whose_reply_is_held_arrives_before_its_end() {
    let mut primary = Primary::new();
    let cacher = caching(&mut primary, "");
    let writer = primary.network.connect("here");
    primary.tells.set(Tells::Nothing);
    assert_eq!(told(&mut primary, &writer, "SET k 1\r\n"), "");
    assert_eq!(told(&mut primary, &cacher, "GET k\r\n"), DROPS_K);
    assert_eq!(told(&mut primary, &writer, "SET k 2\r\n"), "");
    assert_eq!(told(&mut primary, &cacher, "GET k\r\n"), "", "the value it is about comes first");
    primary.tells.set(Tells::All);
    let expected = format!("$1\r\n1\r\n{DROPS_K}$1\r\n2\r\n");
    assert_eq!(told(&mut primary, &cacher, ""), expected);
}

#[test]
fn over_another_connection_the_end_of_a_value_comes_no_sooner_than_the_value() {
    let mut primary = Primary::new();
    let ear = primary.network.connect("here");
    let id = told(&mut primary, &ear, "HELLO 3\r\nCLIENT ID\r\n");
    let id = id.rsplit(':').next().expect("the last line").trim().to_owned();
    let cacher = caching(&mut primary, &format!("REDIRECT {id}"));
    let writer = primary.network.connect("here");
    primary.tells.set(Tells::Nothing);
    told(&mut primary, &writer, "SET k 1\r\n");
    assert_eq!(told(&mut primary, &ear, ""), DROPS_K, "nothing of the cacher's is held");
    assert_eq!(told(&mut primary, &cacher, "GET k\r\n"), "");
    told(&mut primary, &writer, "SET k 2\r\n");
    assert_eq!(told(&mut primary, &ear, ""), "");
    primary.tells.set(Tells::All);
    primary.pass();
    assert_eq!(told(&mut primary, &cacher, ""), "$1\r\n1\r\n");
    assert_eq!(told(&mut primary, &ear, ""), DROPS_K);
}

#[test]
fn who_cached_a_key_is_told_that_it_is_hidden_although_no_effect_says_so() {
    let mut primary = Primary::new();
    let other = primary.network.connect("here");
    told(&mut primary, &other, "SET k v PX 3000\r\n");
    let cacher = caching(&mut primary, "");
    told(&mut primary, &other, "CLIENT PAUSE 100000 WRITE\r\n");
    assert_eq!(told(&mut primary, &cacher, ""), "");
    primary.timeline.pass(3000 * MILLISECOND);
    // Until a record shows the time, the key is there.
    let is_hidden = |primary: &mut Primary| told(primary, &other, "GET k\r\n") == "$-1\r\n";
    assert!((0..9).any(|_| is_hidden(&mut primary)));
    assert_eq!(told(&mut primary, &cacher, ""), DROPS_K);
}

/// A script as a request of a client, with these keys.
fn script(text: &str, keys: &[&str]) -> String {
    let (length, count) = (text.len(), keys.len());
    let request = format!("*{}\r\n$4\r\nEVAL\r\n${length}\r\n{text}\r\n", 3 + count);
    let keys = keys.iter().map(|key| format!("${}\r\n{key}\r\n", key.len()));
    format!("{request}$1\r\n{count}\r\n{}", keys.collect::<String>())
}

#[test]
fn what_a_script_read_comes_before_its_end_however_long_the_script_runs() {
    let mut primary = Primary::new();
    primary.server.core.process.options.limits.script_pauses_max = 1;
    let cacher = caching(&mut primary, "");
    told(&mut primary, &cacher, "SET k 1\r\n");
    let text = "local v = redis.call('GET', 'k'); redis.call('SET', 'k', '2'); \
                for i = 1, 100000 do end; return v";
    cacher.send(script(text, &["k"]).as_bytes());
    primary.timeline.pass(MILLISECOND);
    primary.turn();
    assert!(cacher.received().is_empty(), "it lies suspended");
    primary.pass();
    let received = String::from_utf8(cacher.received()).expect("replies are text");
    assert_eq!(received, format!("$1\r\n1\r\n{DROPS_K}"));
}

#[test]
fn a_script_that_reads_may_have_read_whatever_it_was_given() {
    let mut primary = Primary::new();
    let cacher = caching(&mut primary, "");
    let writer = primary.network.connect("here");
    told(&mut primary, &cacher, &script("return redis.call('PING')", &["k", "l"]));
    told(&mut primary, &writer, "SET l 1\r\n");
    assert_eq!(told(&mut primary, &cacher, ""), "", "it read nothing");
    told(&mut primary, &cacher, &script("return redis.call('GET', 'm')", &["k", "l"]));
    told(&mut primary, &writer, "MSET l 2 m 2 n 2\r\n");
    let dropped = told(&mut primary, &cacher, "");
    let keys: Vec<&str> = dropped.lines().filter(|line| line.len() == 1).collect();
    assert_eq!(keys, ["l", "m"], "{dropped}");
}

/// What a cache asked for.
enum Asked {
    Value(usize),
    /// That it is up to date: with what had been acknowledged or shown when it asked.
    Pong([u64; KEYS]),
    Else,
}

const KEYS: usize = 4;

/// A client that caches values that only grow.
struct Cache {
    member: usize,
    client: SimClient,
    received: Vec<u8>,
    asked: VecDeque<Asked>,
    values: BTreeMap<usize, u64>,
    pongs: u64,
    dropped: u64,
}

impl Cache {
    fn new(three: &Three, member: usize) -> Self {
        let client = three.connect(member);
        client.send(b"HELLO 3\r\nREADONLY\r\nCLIENT TRACKING ON\r\n");
        let asked = (0..3).map(|_| Asked::Else).collect();
        let (received, values) = (Vec::new(), BTreeMap::new());
        Self { member, client, received, asked, values, pongs: 0, dropped: 0 }
    }

    /// Takes what came. `shown` is the newest value of each key that a client of its member saw.
    fn take(&mut self, shown: &mut [u64; KEYS]) -> Result<(), String> {
        self.received.extend(self.client.received());
        while let Some((reply, length)) = parse(&self.received)? {
            self.received.drain(..length);
            match reply {
                Reply::Push(words) => self.drop_cached(&words[1]),
                reply => self.take_answer(&reply, shown)?,
            }
        }
        Ok(())
    }

    fn drop_cached(&mut self, what: &Reply) {
        self.dropped += 1;
        match what {
            Reply::Array(keys) => keys.iter().for_each(|key| {
                let Reply::Bulk(name) = key else { return };
                self.values.remove(&usize::from(name[1] - b'0'));
            }),
            _ => self.values.clear(),
        }
    }

    fn take_answer(&mut self, reply: &Reply, shown: &mut [u64; KEYS]) -> Result<(), String> {
        match (self.asked.pop_front().ok_or("an answer to nothing")?, reply) {
            (Asked::Value(key), Reply::Bulk(value)) => {
                let value = String::from_utf8_lossy(value).parse().map_err(|_| "no number")?;
                shown[key] = shown[key].max(value);
                self.values.insert(key, value);
            }
            (Asked::Pong(then), Reply::Simple(pong)) if pong == b"PONG" => {
                self.pongs += 1;
                for (key, value) in &self.values {
                    if *value < then[*key] {
                        let (member, then) = (self.member, then[*key]);
                        return Err(format!("member {member}: k{key} {value} behind {then}"));
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// A run: caches of each member, a writer, and members that end, or stand still for a while.
struct Run {
    three: Three,
    random: Random,
    caches: Vec<Cache>,
    /// What clients of each member were shown of each key.
    shown: [[u64; KEYS]; 3],
    writer: (usize, SimClient),
    answers: Vec<u8>,
    written: u64,
    /// What the writer sent and has no answer to; and what it was told is there.
    sent: VecDeque<(usize, u64)>,
    acknowledged: [u64; KEYS],
}

impl Run {
    fn new(seed: u64) -> Self {
        let mut three = Three::new(&[]);
        let leader = three.leader_after(3).expect("one leads");
        let caches = (0..6).map(|number| Cache::new(&three, number % 3)).collect();
        let writer = (leader, three.connect(leader));
        let random = Random::from_seed(seed);
        Self {
            three,
            random,
            caches,
            shown: [[0; KEYS]; 3],
            writer,
            answers: Vec::new(),
            written: 0,
            sent: VecDeque::new(),
            acknowledged: [0; KEYS],
        }
    }

    fn step(&mut self) -> Result<(), String> {
        if self.random.within(0..3) == 0 && self.sent.len() < 5 {
            let key = self.random.within(0..KEYS as u64) as usize;
            self.written += 1;
            self.writer.1.send(format!("SET k{key} {}\r\n", self.written).as_bytes());
            self.sent.push_back((key, self.written));
        }
        for at in 0..self.caches.len() {
            self.ask(at);
        }
        self.three.pass(1);
        self.answers.extend(self.writer.1.received());
        while let Some((answer, length)) = parse(&self.answers)? {
            self.answers.drain(..length);
            let (key, value) = self.sent.pop_front().ok_or("an answer to nothing")?;
            if answer == Reply::ok() {
                self.acknowledged[key] = self.acknowledged[key].max(value);
            }
        }
        for cache in &mut self.caches {
            cache.take(&mut self.shown[cache.member])?;
        }
        Ok(())
    }

    fn ask(&mut self, at: usize) {
        let key = self.random.within(0..KEYS as u64) as usize;
        let is_ping = self.random.within(0..6) == 0;
        let cache = &mut self.caches[at];
        if is_ping {
            // Of a replica only what it has shown itself is asked: it may be behind.
            let is_primary = cache.member == self.writer.0;
            let newest = if is_primary { self.acknowledged } else { self.shown[cache.member] };
            cache.asked.push_back(Asked::Pong(newest));
            cache.client.send(b"PING\r\n");
        } else if !cache.values.contains_key(&key) && cache.asked.len() < 4 {
            cache.asked.push_back(Asked::Value(key));
            cache.client.send(format!("GET k{key}\r\n").as_bytes());
        }
    }

    /// Another member leads; clients of the one that led ask anew, having cached nothing.
    fn replace_primary(&mut self) -> Result<(), String> {
        let before = self.writer.0;
        self.three.end(before);
        let leader = (0..60)
            .find_map(|_| {
                let leader = self.three.leader_after(1);
                for cache in self.caches.iter_mut().filter(|cache| cache.member != before) {
                    cache.take(&mut self.shown[cache.member]).ok()?;
                }
                leader
            })
            .ok_or("nobody leads")?;
        self.sent.clear();
        self.answers.clear();
        self.writer = (leader, self.three.connect(leader));
        self.three.restart(before as u8, 0, &[]);
        self.shown[before] = [0; KEYS];
        for at in 0..self.caches.len() {
            if self.caches[at].member == before {
                self.caches[at] = Cache::new(&self.three, before);
            }
        }
        Ok(())
    }
}

/// What caches were told to drop, and how often one was up to date, over some failovers.
fn run(seed: u64, breaks: impl Fn(&mut Three)) -> Result<(u64, u64), String> {
    let mut run = Run::new(seed);
    let (mut dropped, mut pongs) = (0, 0);
    for _ in 0..4 {
        breaks(&mut run.three);
        for _ in 0..250 {
            run.step()?;
        }
        dropped += run.caches.iter().map(|cache| cache.dropped).sum::<u64>();
        pongs += run.caches.iter().map(|cache| cache.pongs).sum::<u64>();
        run.replace_primary()?;
    }
    Ok((dropped, pongs))
}

#[test]
fn a_cache_that_was_answered_holds_nothing_that_was_replaced_before_it_asked() {
    for seed in 1..=10 {
        let (dropped, pongs) = run(seed, |_| {}).unwrap_or_else(|why| panic!("{seed}: {why}"));
        assert!(dropped > 200 && pongs > 200, "{seed}: {dropped} dropped, {pongs} answers");
    }
}

/// Otherwise the test before would prove nothing.
#[test]
fn replicas_that_tell_nobody_what_they_apply_are_noticed() {
    let is_noticed = (1..=5).any(|seed| {
        let deafened = |three: &mut Three| {
            (0..3).for_each(|number| three.member(number).core.interest.ignore_applied());
        };
        run(seed, deafened).is_err_and(|why| why.contains(" behind "))
    });
    assert!(is_noticed);
}

#[test]
fn whoever_cached_on_a_replica_drops_all_when_it_becomes_the_primary() {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    let cacher = three.connect(1);
    cacher.send(b"HELLO 3\r\nREADONLY\r\nCLIENT TRACKING ON\r\nGET k\r\n");
    three.pass(100);
    cacher.received();
    three.end(0);
    assert_eq!(three.leader_after(4), Some(1));
    let told = String::from_utf8(cacher.received()).expect("text");
    assert_eq!(told, ">2\r\n$10\r\ninvalidate\r\n_\r\n");
}
