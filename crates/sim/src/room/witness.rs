//! Watches what leaves the server and what the disk holds, and compares.
//!
//! The witness asks neither the tracker nor the log: it knows which unique values the disk has
//! synced, what each client sent, and what a power cut at each sync would leave.

use super::ledger::{Holdings, Ledger, queries};
use super::machine::{Broken, Recovered, recover};
use super::token::Tokens;
use crate::disk::SimDisk;
use crate::driver::SimDriver;
use crate::reply::{self, Reply};
use crate::timeline::Timeline;
use base::DatabaseId;
use base::driver::{ConnectionId, Driver, Event, Received, Sent, Waker};
use base::time::{Clock, UnixMillis};
use engine::command::Args;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::unit::{Context, Unit};
use node::Registry;
use node::registry::Function;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

/// What the reply to a request must satisfy, beside revealing nothing that is not durable.
#[derive(Clone, Copy, Debug)]
pub enum Expectation {
    Anything,
    /// It answers the oldest pending change of this client's ledger.
    Change(usize),
    /// It is the EXEC that read this client's keys.
    Holdings(usize),
}

#[derive(Default)]
struct Stream {
    expected: VecDeque<Expectation>,
    unparsed: Vec<u8>,
}

/// What the witness knows.
pub struct Witness {
    disk: SimDisk,
    broken: Broken,
    pub tokens: Tokens,
    pub ledgers: Vec<Ledger>,
    streams: BTreeMap<ConnectionId, Stream>,
    /// What the server held after each record.
    digests: BTreeMap<u64, Digest>,
    /// The first promise that was broken.
    pub violation: Option<String>,
    pub replies: u64,
    pub errors: u64,
    pub cuts: u64,
}

/// Shared by the room, its users and the server's driver.
pub type SharedWitness = Rc<RefCell<Witness>>;

impl Witness {
    pub fn new(disk: &SimDisk, seed: u64, ledgers: usize, broken: Broken) -> SharedWitness {
        disk.watch();
        let mut digests = BTreeMap::new();
        digests.insert(0, Digest::default());
        Rc::new(RefCell::new(Self {
            disk: disk.clone(),
            broken,
            tokens: Tokens::new(seed),
            ledgers: std::iter::repeat_with(Ledger::default).take(ledgers).collect(),
            streams: BTreeMap::new(),
            digests,
            violation: None,
            replies: 0,
            errors: 0,
            cuts: 0,
        }))
    }

    /// A client sends a request.
    pub fn expect(&mut self, connection: ConnectionId, expectation: Expectation) {
        self.streams.entry(connection).or_default().expected.push_back(expectation);
    }

    pub fn fail(&mut self, why: String) {
        self.violation.get_or_insert(why);
    }

    /// The server holds this after appending this record.
    pub fn note_digest(&mut self, record: u64, digest: Digest) {
        self.digests.insert(record, digest);
    }

    /// A new server has recovered: what it found must be what an earlier one held. It goes on
    /// behind that with a record that changes nothing, its `Lead`.
    pub fn note_recovery(&mut self, tail: u64, found: Digest) {
        self.look_at_disk();
        if self.digests.get(&tail) != Some(&found) {
            self.fail(format!("a server recovered {tail} records and other contents"));
        }
        self.digests.retain(|record, _| *record <= tail);
        self.digests.insert(tail + 1, found);
        self.streams.clear();
    }

    /// Catches up with the disk: first what a power cut before each sync would have left.
    pub fn look_at_disk(&mut self) {
        let watched = self.disk.take_watched();
        for image in watched.images {
            self.cuts += 1;
            if let Err(why) = self.check_image(&image) {
                let cut = self.cuts;
                self.fail(format!("power cut {cut}: {why}"));
            }
        }
        for bytes in watched.synced {
            self.tokens.note_durable(&bytes);
        }
    }

    /// Starts from what a power cut would leave, on a machine of its own.
    fn check_image(&self, image: &SimDisk) -> Result<(), String> {
        let timeline = Timeline::new();
        let waker = Waker(Arc::new(|| {}));
        let recovered = recover(image, &timeline, self.cuts, self.broken, &waker)?;
        let Recovered { log: _log, recovery, mut replayed } = recovered;
        let tail = recovery.tail.sequence.0;
        let found = Digest::of_keyspace(&replayed.engine.keyspace);
        match self.digests.get(&tail) {
            None => return Err(format!("record {tail} was never appended")),
            Some(held) if *held != found => {
                return Err(format!("replay of {tail} records is not what the server held"));
            }
            Some(_) => {}
        }
        for (client, ledger) in self.ledgers.iter().enumerate() {
            let holdings = read_holdings(&mut replayed.engine, client)?;
            ledger.check(&holdings).map_err(|why| format!("client {client}: {why}"))?;
        }
        Ok(())
    }

    /// These bytes left the server.
    fn released(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some(mut stream) = self.streams.remove(&connection) else {
            return self.fail("bytes on a connection that nobody wrote to".to_owned());
        };
        stream.unparsed.extend_from_slice(bytes);
        // An error may repeat the request's own words.
        let mut lines = stream.unparsed.split(|byte| *byte == b'\n');
        let revealed = lines.find_map(|line| match line.first() {
            Some(b'-') => None,
            _ => self.tokens.not_durable(line),
        });
        if let Some(token) = revealed {
            let bytes = String::from_utf8_lossy(&stream.unparsed).into_owned();
            self.fail(format!("a reply left before {token} was durable: {bytes}"));
        }
        loop {
            match reply::parse(&stream.unparsed) {
                Ok(Some((reply, length))) => {
                    stream.unparsed.drain(..length);
                    let expected = stream.expected.pop_front();
                    if let Err(why) = self.judge(expected, reply) {
                        self.fail(why);
                    }
                }
                Ok(None) => break,
                Err(why) => {
                    self.fail(why);
                    break;
                }
            }
        }
        self.streams.insert(connection, stream);
    }

    fn judge(&mut self, expected: Option<Expectation>, reply: Reply) -> Result<(), String> {
        self.replies += 1;
        self.errors += u64::from(matches!(reply, Reply::Error(_)));
        match expected {
            None => Err(format!("a reply to nothing: {reply:?}")),
            Some(Expectation::Anything) => Ok(()),
            Some(Expectation::Change(client)) => {
                let Some(change) = self.ledgers[client].acknowledge(&reply)? else { return Ok(()) };
                let early = change.values().into_iter().find_map(|v| self.tokens.not_durable(v));
                early.map_or(Ok(()), |token| {
                    Err(format!("the write of {token} was acknowledged before it was durable"))
                })
            }
            Some(Expectation::Holdings(client)) => {
                let Reply::Array(replies) = reply else {
                    return Err(format!("client {client} could not read its keys: {reply:?}"));
                };
                let resolved = self.ledgers[client].resolve(Holdings::read(&replies)?);
                resolved.map_err(|why| format!("client {client} came back: {why}"))
            }
        }
    }
}

/// Reads a client's keys as the commands of a server would.
fn read_holdings(engine: &mut Engine, client: usize) -> Result<Holdings, String> {
    let mut replies = Vec::new();
    for words in queries(client) {
        let command = Registry::standard().find(&words[0], None).ok_or("unknown command")?;
        let Function::Data(function) = command.row.function else {
            return Err("not a command on keys".to_owned());
        };
        let (mut bytes, mut ranges) = (Vec::new(), Vec::new());
        for word in &words {
            ranges.push((bytes.len() as u32, word.len() as u32));
            bytes.extend_from_slice(word);
        }
        let mut out = resp::Reply::default();
        let mut unit = Unit::new(0);
        let context = Context::background(UnixMillis(0), DatabaseId(0));
        let outcome =
            engine.run(&function, context, Args::new(&bytes, &ranges), &mut out, &mut unit);
        outcome.map_err(|refusal| refusal.0.to_string())?;
        let parsed = reply::parse(out.bytes())?.ok_or("half a reply")?;
        replies.push(parsed.0);
    }
    Holdings::read(&replies)
}

/// The server's driver, under the eyes of the witness.
pub struct WatchedDriver {
    pub driver: SimDriver,
    pub witness: SharedWitness,
    pub disk: SimDisk,
}

impl Driver for WatchedDriver {
    fn clock(&self) -> &dyn Clock {
        self.driver.clock()
    }

    fn wait(&mut self, timeout_nanos: Option<u64>, events: &mut Vec<Event>) {
        self.driver.wait(timeout_nanos, events);
        self.witness.borrow_mut().look_at_disk();
    }

    fn connect(&mut self, host: &str, port: u16) -> ConnectionId {
        self.driver.connect(host, port)
    }

    fn receive(&mut self, id: ConnectionId, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        self.driver.receive(id, into, bytes_max)
    }

    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Sent {
        if self.disk.is_off() {
            // The machine has lost its power: its process only does not know it yet.
            return Sent::Closed;
        }
        let mut witness = self.witness.borrow_mut();
        witness.look_at_disk();
        let sent = self.driver.send(connection, bytes);
        if let Sent::Bytes(count) = sent {
            witness.released(connection, &bytes[..count]);
        }
        sent
    }

    fn set_reading(&mut self, connection: ConnectionId, reading: bool) {
        self.driver.set_reading(connection, reading);
    }

    fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    fn set_accepting(&mut self, accepting: bool) {
        self.driver.set_accepting(accepting);
    }

    fn waker(&self) -> Waker {
        self.driver.waker()
    }

    fn entropy(&mut self) -> u64 {
        self.driver.entropy()
    }
}
