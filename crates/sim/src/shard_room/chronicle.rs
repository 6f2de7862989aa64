//! What the log holds, as an outsider sees it: the truth that nodes and clients are held against.
//!
//! It reads the service's records at the instant at which they are stored, asks no node, and judges
//! them by the chain. So it knows which epoch it is, where each unique value stands in the order of
//! all writes, and what a replica must hold behind each record that counts.

use crate::room::stream::Stream;
use crate::room::token::{self, Tokens};
use crate::timeline::Timeline;
use base::driver::ConnectionId;
use base::{Epoch, HashKey, Incarnation, Sequence};
use bytes::Bytes;
use encryption::Keys;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use shard::recovery::Replayer;
use std::collections::BTreeMap;
use txlog::record::ChainValue;
use txlog::remote::memory::MemoryService;
use txlog::{Chain, Consumed, Kind, Record, WriterId};

type Key = Vec<u8>;
type Token = Vec<u8>;

/// The order of a write among all writes that count, from 1; 0 is before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Order(pub u64);

/// What was stored, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stored {
    /// Records that count.
    pub counted: u64,
    /// Records that count for nobody, and of them those with data.
    pub void: u64,
    pub void_data: u64,
    pub leads: u64,
    pub yields: u64,
    /// Units that took several records.
    pub split: u64,
}

/// The log as it stands.
pub struct Chronicle {
    service: MemoryService,
    timeline: Timeline,
    engine: Engine,
    replayer: Replayer,
    pub tokens: Tokens,
    /// Who wrote the `Lead` of each epoch.
    leaders: BTreeMap<Epoch, WriterId>,
    /// What each writer's counter stood for.
    counters: BTreeMap<(WriterId, u64), Bytes>,
    /// What a replica holds behind the record at which the chain has this value.
    digests: BTreeMap<u64, Digest>,
    /// What a leader held behind records that are not stored yet.
    expected: BTreeMap<u64, (usize, Digest)>,
    /// Which key a unique value was written to.
    keys: BTreeMap<Token, Key>,
    /// The values that each key took, in order.
    versions: BTreeMap<Key, Vec<(Order, Token)>>,
    orders: u64,
    streams: BTreeMap<ConnectionId, Stream>,
    pub stored: Stored,
    /// The first promise that was broken.
    pub violation: Option<String>,
}

impl Chronicle {
    pub fn new(
        service: &MemoryService,
        log: Incarnation,
        timeline: &Timeline,
        settings: Settings,
        seed: u64,
    ) -> Self {
        let chain = Chain::start(log);
        let mut digests = BTreeMap::new();
        digests.insert(chain.value.0, Digest::default());
        Self {
            service: service.clone(),
            timeline: timeline.clone(),
            engine: Engine::new(Keyspace::new(settings, HashKey::fixed(seed)), seed),
            replayer: Replayer::new(Sequence::ZERO, chain),
            tokens: Tokens::new(seed),
            leaders: BTreeMap::new(),
            counters: BTreeMap::new(),
            digests,
            expected: BTreeMap::new(),
            keys: BTreeMap::new(),
            versions: BTreeMap::new(),
            orders: 0,
            streams: BTreeMap::new(),
            stored: Stored::default(),
            violation: None,
        }
    }

    /// Reads encrypted records with these keys.
    pub fn use_keys(&mut self, keys: Keys) {
        self.replayer.use_keys(keys);
    }

    pub fn fail(&mut self, why: String) {
        self.violation.get_or_insert(why);
    }

    /// A value that is written to this key and to no other.
    pub fn issue(&mut self, key: &[u8]) -> Token {
        let token = self.tokens.issue();
        self.keys.insert(token.clone(), key.to_vec());
        token
    }

    /// The number of values issued.
    pub fn issued(&self) -> usize {
        self.keys.len()
    }

    /// The epoch of the last `Lead` that counts.
    pub fn epoch(&self) -> Epoch {
        self.replayer.chain().epoch
    }

    pub fn chain(&self) -> ChainValue {
        self.replayer.chain().value
    }

    /// Looks at what was stored since the last time.
    pub fn observe(&mut self) {
        self.service.advance();
        while self.violation.is_none()
            && let Some(bytes) = self.service.record(self.replayer.at().next())
        {
            let at = self.replayer.at().next();
            if let Err(why) = self.read(at, &bytes) {
                self.fail(format!("record {at}: {why}"));
            }
        }
    }

    fn read(&mut self, at: Sequence, bytes: &Bytes) -> Result<(), String> {
        let header = Record::decode(bytes).map_err(|error| error.to_string())?.header;
        self.timeline.record("stored", bytes);
        let name = (header.writer, header.counter);
        if *self.counters.entry(name).or_insert_with(|| bytes.clone()) != *bytes {
            return Err("a counter has two meanings".to_owned());
        }
        let consumed = self.replayer.consume(&mut self.engine, at, bytes, &mut Interest::default());
        match consumed.map_err(|error| error.to_string())? {
            Consumed::Void => {
                self.stored.void += 1;
                self.stored.void_data += u64::from(header.kind == Kind::Data);
                return Ok(());
            }
            Consumed::Buffered => self.stored.split += u64::from(header.part == txlog::Part::First),
            Consumed::Record(record) => self.note(&record),
        }
        self.stored.counted += 1;
        let held = Digest::of_keyspace(&self.engine.keyspace);
        let chain = self.chain().0;
        self.digests.insert(chain, held);
        match self.expected.remove(&chain) {
            Some((node, expected)) if expected != held => {
                Err(format!("node {node} held what its records do not make"))
            }
            _ => Ok(()),
        }
    }

    fn note(&mut self, record: &Record) {
        match record.header.kind {
            Kind::Lead => {
                self.stored.leads += 1;
                self.leaders.insert(record.header.epoch, record.header.writer);
            }
            Kind::Yield => self.stored.yields += 1,
            _ => {}
        }
        self.tokens.note_durable(&record.payload);
        for token in token::all(&record.payload) {
            let Some(key) = self.keys.get(&token) else { continue };
            let versions = self.versions.entry(key.clone()).or_default();
            if versions.last().is_none_or(|(_, last)| *last != token) {
                self.orders += 1;
                versions.push((Order(self.orders), token));
            }
        }
    }

    /// The values of a key, in the order in which it took them.
    pub fn versions(&self, key: &[u8]) -> &[(Order, Token)] {
        self.versions.get(key).map_or(&[], Vec::as_slice)
    }

    /// Whether a value was ever written.
    pub fn counts(&self, token: &[u8]) -> bool {
        let key = self.keys.get(token);
        let versions = key.map_or(&[][..], |key| self.versions(key));
        versions.iter().any(|(_, version)| version == token)
    }

    /// From where to where in the order of writes a key had this value, or none; `None` for an end
    /// that has not come.
    ///
    /// # Errors
    /// The key never had it.
    pub fn span(&self, key: &[u8], value: Option<&[u8]>) -> Result<(Order, Option<Order>), String> {
        let versions = self.versions(key);
        let index = match value {
            None => 0,
            Some(value) => {
                let found = versions.iter().position(|(_, version)| version == value);
                1 + found.ok_or_else(|| format!("{} was never written", text(value)))?
            }
        };
        let order = |index: usize| versions.get(index).map(|(order, _)| *order);
        let since = index.checked_sub(1).and_then(order).unwrap_or_default();
        Ok((since, order(index)))
    }

    /// A process says that it leads an epoch.
    pub fn note_leader(&mut self, epoch: Epoch, writer: WriterId) {
        self.observe();
        if self.leaders.get(&epoch) != Some(&writer) {
            self.fail(format!("a process leads epoch {}, and the log names another", epoch.0));
        }
    }

    /// A follower holds this where it says that the chain has this value.
    pub fn note_follower(&mut self, node: usize, chain: ChainValue, held: Digest) {
        self.observe();
        match self.digests.get(&chain.0) {
            Some(digest) if *digest == held => {}
            Some(_) => self.fail(format!("node {node} holds no prefix of the log")),
            None => self.fail(format!("node {node} applied what does not count")),
        }
    }

    /// Somebody went back to where the chain has this value, and found this.
    ///
    /// # Errors
    /// The log does not make that.
    pub fn judge_moment(&mut self, chain: ChainValue, held: Digest) -> Result<(), String> {
        self.observe();
        match self.digests.get(&chain.0) {
            Some(digest) if *digest == held => Ok(()),
            Some(_) => Err("a moment is not what it was".to_owned()),
            None => Err("a moment is one that never was".to_owned()),
        }
    }

    /// A leader holds this behind what it has appended so far.
    pub fn note_leading(&mut self, node: usize, chain: ChainValue, held: Digest) {
        self.observe();
        match self.digests.get(&chain.0) {
            Some(digest) if *digest == held => {}
            Some(_) => self.fail(format!("node {node} leads and holds what the log does not make")),
            None => {
                self.expected.insert(chain.0, (node, held));
            }
        }
    }

    /// These bytes leave a node, which leads this epoch or follows. `true` epoch: the one in which
    /// it last could know whether it holds the lease.
    pub fn released(
        &mut self,
        node: usize,
        leads: Option<Epoch>,
        then: Epoch,
        id: ConnectionId,
        bytes: &[u8],
    ) {
        self.observe();
        if let Some(epoch) = leads.filter(|epoch| *epoch != then) {
            let (epoch, then) = (epoch.0, then.0);
            self.fail(format!(
                "node {node} answers as the primary of epoch {epoch} in epoch {then}: {}",
                text(bytes)
            ));
        }
        let stream = self.streams.entry(id).or_default();
        if let Some(token) = stream.take(bytes, &self.tokens) {
            self.fail(format!("node {node} reveals {token} before it is durable: {}", text(bytes)));
            return;
        }
        let stream = self.streams.entry(id).or_default();
        while let Ok(Some(_)) = stream.next_reply() {}
    }

    /// A connection is over.
    pub fn forget(&mut self, id: ConnectionId) {
        self.streams.remove(&id);
    }
}

/// Bytes for a message.
pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).trim_end().replace("\r\n", " ")
}
