//! Watches what leaves the server and what the disk holds, and compares.
//!
//! The witness asks neither the tracker nor the log: it knows which unique values the disk has
//! synced, what each client sent, and what a power cut at each sync would leave.

use super::ledger::{Holdings, Ledger, QUERIES, is_refusal};
use super::machine::{LOG, Machine};
use super::news::News;
use super::queue::Queue;
use super::shadow::{Appended, Shadow, SharedTap};
use super::stream::{Expectation, Stream};
use super::token::Tokens;
use crate::disk::SimDisk;
use crate::random::Random;
use crate::reply::{Kind, Reply};
use archive::Candidate;
use base::driver::ConnectionId;
use engine::digest::Digest;
use node::Server;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::rc::Rc;

mod image;

type Bytes = Vec<u8>;

/// What was seen: a run in which something never happens says nothing about it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    /// Answers to requests, introductions left out.
    pub replies: u64,
    /// Those that were errors: a run of errors proves nothing.
    pub errors: u64,
    /// Those that say that the server does nothing now: the disk is full, memory is.
    pub refused: u64,
    /// Those of them that were LOADING.
    pub loading: u64,
    /// Messages and lines of MONITOR.
    pub messages: u64,
    /// Messages that came to somebody who had to hear them, in all lives but the last.
    pub arrived: u64,
    /// Power cuts that were tried.
    pub cuts: u64,
    /// Snapshots found in what a cut left, whole.
    pub snapshots: u64,
    /// Cuts that left one of several parts.
    pub in_parts: u64,
    /// Cuts after which the newest snapshot was damaged, and the one before it taken.
    pub passed_over: u64,
    /// Connections that were told that a value is lost.
    pub lost: u64,
    pub appended: Appended,
}

/// What the witness knows.
pub struct Witness {
    pub machine: Rc<Machine>,
    random: Random,
    pub tokens: Tokens,
    pub ledgers: Vec<Ledger>,
    pub queue: Queue,
    /// Keys are being evicted whatever they are.
    pub is_evicting: bool,
    /// Memory or disk were full in this life.
    is_refusing: bool,
    /// The errand of the room was answered.
    pub is_errand_done: bool,
    /// Keys that a client was told are gone, and that nobody makes again: those that may wait for
    /// their deletion, because they have expired, and those that may not.
    gone: BTreeSet<Bytes>,
    deleted: BTreeSet<Bytes>,
    /// How many values were durable when this was told.
    told: BTreeMap<Bytes, usize>,
    streams: BTreeMap<ConnectionId, Stream>,
    news: News,
    /// Pops without a reply in earlier lives, since the queue was last known.
    lost_pops: usize,
    /// What the server held after each record.
    digests: BTreeMap<u64, Digest>,
    shadow: Option<Shadow>,
    /// Snapshots seen, ever.
    pub published: BTreeSet<String>,
    /// The first promise that was broken.
    pub violation: Option<String>,
    pub seen: Seen,
    pub inline: u64,
}

/// Shared by the room, its users and the server's driver.
pub type SharedWitness = Rc<RefCell<Witness>>;

impl Witness {
    pub fn new(machine: Rc<Machine>, seed: u64, ledgers: usize) -> SharedWitness {
        machine.disk.watch();
        let mut digests = BTreeMap::new();
        digests.insert(0, Digest::default());
        Rc::new(RefCell::new(Self {
            machine,
            random: Random::stream(seed, "witness"),
            tokens: Tokens::new(seed),
            ledgers: (0..ledgers).map(Ledger::new).collect(),
            queue: Queue::default(),
            is_evicting: false,
            is_refusing: false,
            is_errand_done: false,
            gone: BTreeSet::new(),
            deleted: BTreeSet::new(),
            told: BTreeMap::new(),
            streams: BTreeMap::new(),
            news: News::default(),
            lost_pops: 0,
            digests,
            shadow: None,
            published: BTreeSet::new(),
            violation: None,
            seen: Seen::default(),
            inline: 0,
        }))
    }

    /// A client sends a request.
    pub fn expect(&mut self, connection: ConnectionId, mut expectation: Expectation) {
        let stream = self.streams.entry(connection).or_default();
        match &expectation {
            Expectation::Published(message) => self.news.sends(connection, message),
            Expectation::Anything if stream.is_listening => {
                expectation = Expectation::Heard(self.news.published());
            }
            _ => {}
        }
        stream.expected.push_back(expectation);
    }

    /// On this connection comes what others write.
    pub fn listens(&mut self, connection: ConnectionId) {
        self.streams.entry(connection).or_default().is_listening = true;
    }

    pub fn fail(&mut self, why: String) {
        self.violation.get_or_insert(why);
    }

    /// A process begins: what was sent to the one before it has no reply any more.
    pub fn begin_life(&mut self) {
        self.lost_pops = self.unanswered_pops();
        self.streams.clear();
        self.seen.arrived += std::mem::take(&mut self.news).arrived;
        self.is_evicting = false;
        self.is_refusing = false;
    }

    /// Memory or disk may be full from now on.
    pub fn expect_refusals(&mut self) {
        self.is_refusing = true;
        self.ledgers.iter_mut().for_each(Ledger::expect_refusals);
    }

    /// A new server has recovered: what it found must be what an earlier one held. It goes on
    /// behind that with a record that changes nothing, its `Lead`. Returns the tap for its log.
    ///
    /// # Errors
    /// The machine's disk cannot be read by another one.
    pub fn note_recovery(&mut self, server: &Server) -> Result<SharedTap, String> {
        let led = server.core.shard.appended().sequence.0;
        let beside = self.machine.beside(&self.machine.disk.copy());
        let leads = beside.survey()?;
        let (mut engine, replayer) = beside.recover(self.random.draw())?;
        let found = self.machine.disk.read_rightly(|| super::machine::digest(server));
        if replayer.at().0 != led || Digest::of_keyspace(&engine.keyspace) != found {
            return Err(format!(
                "what was loaded through record {led} is not what lies on the disk through record {}",
                replayer.at()
            ));
        }
        if self.state_behind(led, &leads) != Some(found) {
            return Err(format!("a server recovered {led} records and other contents"));
        }
        self.digests.retain(|record, _| *record < led);
        self.digests.insert(led, found);
        self.queue_is(&mut engine)?;
        self.lost_pops = 0;
        self.tokens.begin_life();
        let shadow = Shadow::new(engine, replayer);
        let tap = shadow.tap.clone();
        self.shadow = Some(shadow);
        Ok(tap)
    }

    /// The server is dead.
    pub fn note_death(&mut self) {
        self.look_at_disk();
        if let Some(shadow) = self.shadow.take() {
            self.inline += shadow.tap.borrow().inline;
        }
    }

    /// What the server held behind this record: `Lead`s change nothing.
    fn state_behind(&self, record: u64, leads: &BTreeSet<u64>) -> Option<Digest> {
        let data = (0..=record).rev().find(|record| !leads.contains(record))?;
        self.digests.get(&data).copied()
    }

    /// Applies what was appended to the replica.
    fn catch_up(&mut self) {
        let Some(shadow) = &mut self.shadow else { return };
        let digests = &mut self.digests;
        let note = |record, digest| {
            digests.insert(record, digest);
        };
        let caught_up = shadow.catch_up(&mut self.tokens, &mut self.seen.appended, note);
        if let Err(why) = caught_up {
            self.fail(why);
        }
    }

    /// The server has appended all it executed, and holds this.
    pub fn note_digest(&mut self, record: u64, held: Digest) {
        self.catch_up();
        if self.digests.get(&record) != Some(&held) {
            self.fail(format!("record {record}: the server holds what its records do not make"));
        }
    }

    /// Catches up with the disk: first what a power cut before each sync would have left.
    pub fn look_at_disk(&mut self) {
        self.catch_up();
        let watched = self.machine.disk.take_watched();
        for image in watched.images {
            self.seen.cuts += 1;
            if let Err(why) = self.check_image(&image) {
                let cut = self.seen.cuts;
                self.fail(format!("power cut {cut}: {why}"));
            }
        }
        // Only the log makes anything durable: a snapshot may never be published.
        let in_log = watched.synced.iter().filter(|(path, _)| path.starts_with(Path::new(LOG)));
        for (_, bytes) in in_log {
            self.tokens.note_durable(bytes);
        }
    }

    fn unanswered_pops(&self) -> usize {
        let expected = self.streams.values().flat_map(|stream| &stream.expected);
        let here = expected.filter(|expectation| **expectation == Expectation::Popped).count();
        here + self.lost_pops
    }

    /// These bytes left the server.
    pub fn released(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some(mut stream) = self.streams.remove(&connection) else {
            return self.fail("bytes on a connection that nobody wrote to".to_owned());
        };
        if let Some(token) = stream.take(bytes, &self.tokens) {
            let bytes = String::from_utf8_lossy(bytes).into_owned();
            self.fail(format!("bytes left before {token} was durable: {bytes}"));
        }
        loop {
            let judged = match stream.next_reply() {
                Ok(None) => break,
                Ok(Some(reply)) if stream.is_over || is_lost(&reply) => {
                    self.seen.lost += u64::from(!stream.is_over);
                    stream.is_over = true;
                    continue;
                }
                Ok(Some(reply)) if stream.is_listening && reply.kind() == Kind::Message => {
                    self.note_message(connection, &reply)
                }
                Ok(Some(reply)) => self.judge(connection, stream.expected.pop_front(), reply),
                Err(why) => Err(why),
            };
            if let Err(why) = judged {
                self.fail(why);
                break;
            }
        }
        self.streams.insert(connection, stream);
    }

    /// A message has left: what it says of keys must hold from now on.
    fn note_message(&mut self, connection: ConnectionId, message: &Reply) -> Result<(), String> {
        self.seen.messages += 1;
        let (Reply::Array(parts) | Reply::Push(parts)) = message else { return Ok(()) };
        let [.., Reply::Bulk(channel), Reply::Bulk(payload)] = &parts[..] else { return Ok(()) };
        let ends = [&b":del"[..], b":expired", b":evicted"];
        let is_event = channel.starts_with(b"__keyevent@");
        if is_event && payload.starts_with(b"k:tok") && ends.iter().any(|e| channel.ends_with(e)) {
            self.deleted.insert(payload.clone());
        }
        if payload.starts_with(b"told:") {
            self.told.insert(payload.clone(), self.tokens.durable_count());
        }
        if channel == b"news" { self.news.hears(connection, payload) } else { Ok(()) }
    }

    fn judge(
        &mut self,
        connection: ConnectionId,
        expected: Option<Expectation>,
        reply: Reply,
    ) -> Result<(), String> {
        let Some(expected) = expected else { return Err(format!("a reply to nothing: {reply:?}")) };
        if !matches!(expected, Expectation::Nothing | Expectation::Subscribed) {
            self.seen.replies += 1;
            self.seen.errors += u64::from(matches!(reply, Reply::Error(_)));
            self.seen.refused += u64::from(is_refusal(&reply));
            self.seen.loading += u64::from(reply.is_error("LOADING"));
        }
        let is_error = matches!(reply, Reply::Error(_));
        match expected {
            Expectation::Nothing | Expectation::Anything => Ok(()),
            Expectation::Change(client) => self.judge_change(client, &reply),
            Expectation::Holdings(_) if is_refusal(&reply) => Ok(()),
            Expectation::Holdings(client) => {
                let Reply::Array(replies) = reply else {
                    return Err(format!("client {client} could not read its keys: {reply:?}"));
                };
                let halves = (replies.get(..QUERIES), replies.get(QUERIES + 1..2 * QUERIES + 1));
                let (Some(here), Some(there)) = halves else {
                    return Err(format!("client {client} read {} replies", replies.len()));
                };
                let found = Holdings::read(here, there)?;
                let resolved =
                    self.ledgers[client].resolve(found, self.is_evicting, self.is_refusing);
                resolved.map_err(|why| format!("client {client} came back: {why}"))
            }
            Expectation::Pushed(_) | Expectation::Popped | Expectation::Gone(_) if is_error => {
                Ok(())
            }
            Expectation::Pushed(values) => {
                self.queue.pushed(&values);
                Ok(())
            }
            Expectation::Popped => self.queue.popped(&reply),
            Expectation::Gone(key) => {
                if reply == Reply::Null {
                    self.gone.insert(key);
                }
                Ok(())
            }
            Expectation::Subscribed | Expectation::Published(_) if is_error => Ok(()),
            news
            @ (Expectation::Subscribed | Expectation::Published(_) | Expectation::Heard(_)) => {
                self.judge_news(connection, news)
            }
            Expectation::Told(marker) => self.judge_told(&marker, &reply),
            Expectation::Swept => {
                for ledger in &mut self.ledgers {
                    ledger.acknowledge(&reply)?;
                }
                if is_error {
                    self.queue.is_flushing = false;
                } else {
                    self.queue.flushed();
                }
                self.is_errand_done = true;
                Ok(())
            }
            Expectation::Errand if is_error => Err(format!("an errand failed: {reply:?}")),
            Expectation::Errand => {
                self.is_errand_done = true;
                Ok(())
            }
        }
    }

    fn judge_news(&mut self, asked_by: ConnectionId, news: Expectation) -> Result<(), String> {
        match news {
            Expectation::Subscribed => self.news.subscribes(asked_by),
            Expectation::Published(message) => self.news.publishes(message),
            Expectation::Heard(published) => return self.news.answered(asked_by, published),
            _ => {}
        }
        Ok(())
    }

    fn judge_change(&mut self, client: usize, reply: &Reply) -> Result<(), String> {
        let Some(change) = self.ledgers[client].acknowledge(reply)? else { return Ok(()) };
        let early = change.values().into_iter().find_map(|v| self.tokens.not_durable(v));
        early.map_or(Ok(()), |token| {
            Err(format!("the write of {token} was acknowledged before it was durable"))
        })
    }

    /// What the transaction read, it read before it told of it: the message must have waited.
    fn judge_told(&mut self, marker: &Bytes, reply: &Reply) -> Result<(), String> {
        let (Reply::Array(replies), Some(count)) = (reply, self.told.remove(marker)) else {
            return Ok(());
        };
        let Some(Reply::Bulk(value)) = replies.first() else { return Ok(()) };
        self.tokens.not_durable_then(value, count).map_or(Ok(()), |token| {
            Err(format!("a message left before {token} was durable, which its unit read"))
        })
    }
}

/// Whether a reply says that a value was lost by the tier.
fn is_lost(reply: &Reply) -> bool {
    match reply {
        Reply::Array(replies) => replies.iter().any(is_lost),
        Reply::Error(line) => {
            let line = String::from_utf8_lossy(line);
            line.contains("the value was lost by the tier")
        }
        _ => false,
    }
}

impl Witness {
    /// Looks at the snapshots of a disk.
    fn note_snapshots(&mut self, disk: &SimDisk) -> Result<(), String> {
        let candidates = self.machine.beside(disk).snapshots()?;
        let has_parts = |candidate: &Candidate| match candidate {
            Candidate::Whole(snapshot) => snapshot.manifest.parts.len() > 1,
            Candidate::Damaged { .. } => false,
        };
        self.seen.snapshots += u64::from(!candidates.is_empty());
        self.seen.in_parts += u64::from(candidates.iter().any(has_parts));
        self.published.extend(candidates.iter().map(|candidate| candidate.name().to_owned()));
        Ok(())
    }
}
