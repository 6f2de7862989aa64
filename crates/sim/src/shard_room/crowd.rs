//! The clients of a shard: they write to whoever is the primary, and read from anybody.
//!
//! A client knows nothing but what replies say: it goes where MOVED sends it, tries another node if
//! one refuses, and gives up a connection that does not answer. What it asked and was told it
//! writes down, to be held against the log.

use super::account::{Account, Entry};
use super::chronicle::{Chronicle, Order, text};
use super::client::{Asked, Client, Pending, Reads, token_of};
use super::history::Span;
use super::name_of;
use super::volatile::Volatiles;
use crate::network::{ClientState, SimClient, SimNetwork};
use crate::reply::{self, Reply};
use base::MonotonicNanos;

type Bytes = Vec<u8>;

/// How long a client waits before it connects again, in nanoseconds, at most.
const RETRY_NANOS_MAX: u64 = 60_000_000;

/// What clients were told, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Served {
    pub writes: u64,
    pub reads: u64,
    /// Reads by clients that said READONLY, and by those that want the newest.
    pub replica_reads: u64,
    pub newest_reads: u64,
    /// Keys that were shown to be gone because their time had come, or another took their place.
    pub expired: u64,
    pub moved: u64,
    pub loading: u64,
    /// Other errors, each for a reason that the server gives.
    pub refused: u64,
    /// Requests that were never answered.
    pub unanswered: u64,
}

/// All clients.
pub struct Crowd {
    clients: Vec<Client>,
    nodes: usize,
    pub is_sending: bool,
    pub served: Served,
    /// What they asked and were told.
    pub account: Account,
    volatiles: Volatiles,
}

impl Crowd {
    pub fn new(clients: usize, nodes: usize, seed: u64) -> Self {
        let clients = (0..clients).map(|index| Client::new(index, nodes, seed));
        Self {
            clients: clients.collect(),
            nodes,
            is_sending: true,
            served: Served::default(),
            account: Account::default(),
            volatiles: Volatiles::default(),
        }
    }

    /// Nobody waits for a reply.
    pub fn is_idle(&self) -> bool {
        self.clients.iter().all(|client| client.pending.is_empty())
    }

    /// When a client does something though nothing comes.
    pub fn next_at(&self) -> Option<MonotonicNanos> {
        let sends =
            |client: &&Client| self.is_sending && client.pending.len() < client.outstanding_max();
        let next = self.clients.iter().filter(sends).map(|client| client.next_at);
        let patience = self.clients.iter().filter_map(|client| client.pending.front());
        next.chain(patience.map(|pending| pending.gives_up_at)).min().map(MonotonicNanos)
    }

    /// Everyone does what is to be done at this instant.
    pub fn act(&mut self, network: &SimNetwork, chronicle: &mut Chronicle, now: MonotonicNanos) {
        let mut clients = std::mem::take(&mut self.clients);
        for client in &mut clients {
            self.act_as(client, network, chronicle, now.0);
        }
        self.clients = clients;
    }

    fn act_as(
        &mut self,
        client: &mut Client,
        network: &SimNetwork,
        chronicle: &mut Chronicle,
        now: u64,
    ) {
        match client.connection.as_ref().map(SimClient::state) {
            Some(ClientState::Open) => {}
            Some(ClientState::Connecting) => return,
            Some(ClientState::Refused | ClientState::Closed | ClientState::Reset) => {
                // What came before the end counts.
                self.receive(client, chronicle, now);
                return self.leave(client, chronicle, now);
            }
            None if now >= client.next_at && self.is_sending => {
                client.connection = Some(network.connect(&name_of(client.target)));
                return;
            }
            None => return,
        }
        self.receive(client, chronicle, now);
        let is_over = client.pending.front().is_some_and(|pending| now >= pending.gives_up_at);
        if is_over || client.is_leaving && client.pending.is_empty() {
            return self.leave(client, chronicle, now);
        }
        while self.is_sending
            && !client.is_leaving
            && client.pending.len() < client.outstanding_max()
            && now >= client.next_at
        {
            client.send(chronicle, now);
        }
    }

    /// Gives a connection up. What was asked on it may still happen.
    fn leave(&mut self, client: &mut Client, chronicle: &mut Chronicle, now: u64) {
        if let Some(connection) = client.connection.take() {
            connection.reset();
            chronicle.forget(connection.id());
        }
        for pending in std::mem::take(&mut client.pending) {
            self.served.unanswered += 1;
            let span = Span { asked: pending.at, answered: None };
            self.write_down(client.index, pending, span, None, None);
        }
        if !client.is_leaving {
            client.target = client.random.within(0..self.nodes as u64) as usize;
        }
        client.received.clear();
        client.introduced = 0;
        client.is_leaving = false;
        client.reached = Order::default();
        client.volatile.clear();
        client.next_at = now + client.random.within(0..RETRY_NANOS_MAX);
    }

    fn write_down(
        &mut self,
        client: usize,
        pending: Pending,
        span: Span,
        found: Option<Bytes>,
        count: Option<i64>,
    ) {
        let entry = Entry { client, asked: pending.asked, span, found, count };
        self.account.write_down(pending.key, entry);
    }

    fn receive(&mut self, client: &mut Client, chronicle: &mut Chronicle, now: u64) {
        if let Some(connection) = &client.connection {
            client.received.extend(connection.received());
        }
        loop {
            match reply::parse(&client.received) {
                Ok(None) => return,
                Ok(Some((reply, length))) => {
                    client.received.drain(..length);
                    let Some(pending) = client.pending.pop_front() else {
                        return chronicle.fail(format!("a reply to nothing: {reply:?}"));
                    };
                    if let Err(why) = self.judge_reply(client, pending, reply, chronicle, now) {
                        return chronicle.fail(format!("client {}: {why}", client.index));
                    }
                }
                Err(why) => return chronicle.fail(why),
            }
        }
    }

    fn judge_reply(
        &mut self,
        client: &mut Client,
        pending: Pending,
        reply: Reply,
        chronicle: &Chronicle,
        now: u64,
    ) -> Result<(), String> {
        if let Reply::Error(line) = &reply {
            self.refuse(client, pending, line);
            return Ok(());
        }
        if matches!(pending.asked, Asked::SetVolatile(_) | Asked::GetVolatile) {
            return self.judge_volatile(client, &pending, reply, now);
        }
        let span = Span { asked: pending.at, answered: Some(now) };
        let (mut found, mut count) = (None, None);
        match (&pending.asked, reply) {
            (Asked::Introduction, _) => {
                client.introduced += 1;
                return Ok(());
            }
            (Asked::Other, _) => return Ok(()),
            (Asked::Set(_) | Asked::SetPair(_), Reply::Simple(_)) => self.served.writes += 1,
            (Asked::Swap(_), Reply::Null) => self.served.writes += 1,
            (Asked::Swap(_), Reply::Bulk(old)) => {
                self.served.writes += 1;
                found = Some(old);
            }
            (Asked::Get, Reply::Null) => client.sees(chronicle, &pending.key, None)?,
            (Asked::Get, Reply::Bulk(value)) => {
                client.sees(chronicle, &pending.key, Some(&value))?;
                found = Some(value);
            }
            (Asked::GetPair, Reply::Array(both)) => {
                let value = one_of_pair(&both)?;
                client.sees(chronicle, &pending.key, value.as_deref())?;
                found = value;
            }
            (Asked::Count, Reply::Integer(number)) => {
                self.served.writes += 1;
                count = Some(number);
            }
            (Asked::GetCount, Reply::Null) => count = Some(0),
            (Asked::GetCount, Reply::Bulk(digits)) => {
                let number = std::str::from_utf8(&digits).ok().and_then(|text| text.parse().ok());
                count = Some(number.ok_or_else(|| format!("no number: {}", text(&digits)))?);
            }
            (asked, reply) => return Err(format!("{asked:?} was answered by {reply:?}")),
        }
        if self.is_newest(client, &pending.asked) {
            self.write_down(client.index, pending, span, found, count);
        }
        Ok(())
    }

    /// Counts a reply; whether what it shows must be the newest. What a replica holds may be old,
    /// and was compared with the log as it was seen.
    fn is_newest(&mut self, client: &Client, asked: &Asked) -> bool {
        if matches!(asked, Asked::Get | Asked::GetPair | Asked::GetCount) {
            match client.reads {
                Reads::Primary => self.served.reads += 1,
                Reads::Newest => self.served.newest_reads += 1,
                Reads::Replica => self.served.replica_reads += 1,
            }
            return client.reads != Reads::Replica;
        }
        true
    }

    /// As [`Self::judge_reply`], of a key that expires.
    fn judge_volatile(
        &mut self,
        client: &mut Client,
        pending: &Pending,
        reply: Reply,
        now: u64,
    ) -> Result<(), String> {
        let (key, asked) = (&pending.key, (pending.at, now));
        let newest = client.reads != Reads::Replica;
        let seen = &mut client.volatile;
        match (&pending.asked, reply) {
            (Asked::SetVolatile(value), Reply::Simple(_) | Reply::Integer(1)) => {
                self.served.writes += 1;
                self.served.expired += self.volatiles.written(key, value, asked);
            }
            (Asked::GetVolatile, Reply::Null) => {
                self.served.expired += self.volatiles.gone(key, asked, seen, newest);
            }
            (Asked::GetVolatile, Reply::Bulk(value)) => {
                return self.volatiles.there(key, &value, asked, seen, newest);
            }
            (asked, reply) => return Err(format!("{asked:?} was answered by {reply:?}")),
        }
        Ok(())
    }

    /// An error: nothing was done, and the client may have to go elsewhere.
    fn refuse(&mut self, client: &mut Client, pending: Pending, line: &[u8]) {
        let line = String::from_utf8_lossy(line);
        let mut words = line.split(' ');
        client.is_leaving = true;
        client.target = client.random.within(0..self.nodes as u64) as usize;
        match words.next() {
            Some("MOVED") => {
                self.served.moved += 1;
                let host = words.nth(1).and_then(|address| address.split(':').next());
                let named = (0..self.nodes).find(|index| Some(&name_of(*index)[..]) == host);
                client.target = named.unwrap_or(client.target);
            }
            Some("LOADING") => self.served.loading += 1,
            _ => {
                self.served.refused += 1;
                // A log that takes nothing now is no reason to look for another node at once.
                client.is_leaving = client.random.chance(20);
            }
        }
        self.account.refuse(&pending.asked);
    }
}

/// The value of both keys of a pair, which one transaction always writes together.
fn one_of_pair(both: &[Reply]) -> Result<Option<Bytes>, String> {
    match both {
        [Reply::Null, Reply::Null] => Ok(None),
        [Reply::Bulk(one), Reply::Bulk(other)] if one == other => Ok(Some(token_of(one))),
        _ => Err("half a transaction was read".to_owned()),
    }
}
