//! Everything one reactor owns: the shard, the sessions, the registry, what clients asked for.
//!
//! Split by owner of state: [`crate::dispatch`] takes requests through gate and execution,
//! [`crate::blocked`] wakes waiting clients, [`crate::pubsub`] delivers messages,
//! [`crate::reactor`] turns the loop.

use crate::pubsub::PubSub;
use crate::registry::Registry;
use crate::session::Session;
use crate::shard::Shard;
use base::{ConnectionId, MonotonicNanos, Sequence, UnixMillis};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

/// What the server was started with, as far as the loop needs it. `config` owns the text form.
#[derive(Clone, Debug)]
pub struct Options {
    /// `requirepass`; empty: no password.
    pub password: String,
    /// `protected-mode`.
    pub is_protected: bool,
    /// `maxclients`.
    pub clients_max: usize,
    /// `timeout`, in seconds; 0: idle clients stay.
    pub idle_seconds_max: u64,
    /// Port shown by INFO and used in messages.
    pub port: u16,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            password: String::new(),
            is_protected: true,
            clients_max: 10_000,
            idle_seconds_max: 0,
            port: 6379,
        }
    }
}

/// Hashes connection ids, which are already well spread, and which nobody outside chooses. The
/// map's order is never used.
#[derive(Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u64(u64::from(*byte));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

type Sessions = HashMap<ConnectionId, Box<Session>, BuildHasherDefault<IdHasher>>;

/// One reactor's state.
pub struct Server {
    pub shard: Shard,
    pub registry: &'static Registry,
    pub options: Options,
    pub pubsub: PubSub,
    /// The sessions, but for the one whose command is running.
    pub(crate) sessions: Sessions,
    /// Sessions by CLIENT ID.
    pub(crate) by_id: BTreeMap<u64, ConnectionId>,
    pub(crate) sessions_created: u64,
    /// Sessions with input to execute, in the order in which it came.
    pub(crate) ready: VecDeque<ConnectionId>,
    /// Sessions with bytes that may be sent.
    pub(crate) flushing: Vec<ConnectionId>,
    /// Sessions that wait for a record, in the order of records.
    pub(crate) held: VecDeque<(Sequence, ConnectionId)>,
    /// Blocked sessions by deadline.
    pub(crate) deadlines: BTreeSet<(UnixMillis, ConnectionId)>,
    /// Sessions to be closed at the end of the turn.
    pub(crate) closing: Vec<ConnectionId>,
    /// Wall-clock time of this turn.
    pub now: UnixMillis,
    /// Monotonic time of this turn.
    pub monotonic: MonotonicNanos,
    pub statistics: Statistics,
    /// Reply bytes that wait for the log, over all sessions.
    pub held_bytes: usize,
    /// DEBUG SET-ACTIVE-EXPIRE: whether keys die at their time or when somebody looks.
    pub is_active_expiry_on: bool,
    /// Frees big values away from the loop.
    pub garbage: Box<dyn FnMut(Box<dyn Any + Send>)>,
    /// Set when the process is to stop: why.
    pub stopping: Option<Stop>,
}

/// Why the loop ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Asked for, by a signal or SHUTDOWN: everything executed is made durable first.
    Clean,
    /// SHUTDOWN NOSAVE, or the log is lost: at once.
    Now,
    /// The log failed; nothing more may be acknowledged.
    LogFailed(String),
}

/// Counters of the node; the engine counts what happens to keys.
#[derive(Default, Debug)]
pub struct Statistics {
    pub connections_received: u64,
    pub connections_rejected: u64,
    pub commands_processed: u64,
    pub input_bytes: u64,
    pub output_bytes: u64,
    pub error_replies: u64,
    /// Turns of the loop in which something was executed.
    pub turns: u64,
}

impl Server {
    /// `garbage` takes big values to free; it must not block.
    pub fn new(
        shard: Shard,
        options: Options,
        garbage: Box<dyn FnMut(Box<dyn Any + Send>)>,
    ) -> Self {
        Self {
            shard,
            registry: Registry::standard(),
            options,
            pubsub: PubSub::default(),
            sessions: Sessions::default(),
            by_id: BTreeMap::new(),
            sessions_created: 0,
            ready: VecDeque::new(),
            flushing: Vec::new(),
            held: VecDeque::new(),
            deadlines: BTreeSet::new(),
            closing: Vec::new(),
            now: UnixMillis(0),
            monotonic: MonotonicNanos(0),
            statistics: Statistics::default(),
            held_bytes: 0,
            is_active_expiry_on: true,
            garbage,
            stopping: None,
        }
    }

    pub fn password(&self) -> &str {
        &self.options.password
    }

    /// How many clients are connected, the one whose command is running included.
    pub fn clients(&self) -> usize {
        self.by_id.len()
    }

    /// All sessions but the one whose command is running, by CLIENT ID.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.by_id.values().filter_map(|id| self.sessions.get(id)).map(|session| &**session)
    }

    /// A session by CLIENT ID, unless it is the one whose command is running.
    pub fn session_mut(&mut self, id: u64) -> Option<&mut Session> {
        let connection = self.by_id.get(&id)?;
        self.sessions.get_mut(connection).map(|session| &mut **session)
    }

    /// Frees big values away from the loop.
    pub(crate) fn discard(&mut self, garbage: Vec<Box<dyn Any + Send>>) {
        for value in garbage {
            (self.garbage)(value);
        }
    }

    /// Whether `maxmemory` is reached.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        let keyspace = &self.shard.engine.keyspace;
        let limit = keyspace.settings.maxmemory;
        limit > 0 && keyspace.used_bytes() as u64 > limit
    }

    /// Takes in a new connection; `None` if it must be turned away, with the line to say.
    pub(crate) fn welcome(
        &mut self,
        connection: ConnectionId,
        peer: String,
        local: String,
        is_local: bool,
    ) -> Result<(), &'static str> {
        self.statistics.connections_received += 1;
        if self.by_id.len() >= self.options.clients_max {
            self.statistics.connections_rejected += 1;
            return Err("-ERR max number of clients reached\r\n");
        }
        if self.options.is_protected && self.options.password.is_empty() && !is_local {
            self.statistics.connections_rejected += 1;
            return Err(PROTECTED);
        }
        self.sessions_created += 1;
        let mut session = Session::new(connection, self.sessions_created, self.now);
        session.peer = peer;
        session.local = local;
        session.is_authenticated = self.options.password.is_empty();
        self.by_id.insert(session.id, connection);
        self.sessions.insert(connection, Box::new(session));
        Ok(())
    }

    /// Forgets a connection and all it asked for. The driver closes it apart.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        let Some(mut session) = self.sessions.remove(&connection) else { return };
        self.by_id.remove(&session.id);
        self.held_bytes -= session.output.held_bytes();
        self.discard_transaction(&mut session);
        self.forget_subscriptions(&mut session);
        self.unblock(&mut session);
    }

    /// Closes a session once the turn ends, whatever it still has to say.
    pub fn close(&mut self, connection: ConnectionId) {
        if !self.closing.contains(&connection) {
            self.closing.push(connection);
        }
    }

    /// Puts a session in the queue of those with input to execute.
    pub(crate) fn enqueue(&mut self, session: &mut Session) {
        if !session.is_queued {
            session.is_queued = true;
            self.ready.push_back(session.connection);
        }
    }

    /// What was written to a session waits for `observed`; it is sent when that is durable.
    pub(crate) fn hold(&mut self, session: &mut Session, observed: Sequence) {
        let durable = self.shard.tracker.durable();
        let before = session.output.held_bytes();
        let waits_for = session.output.hold(observed, durable);
        self.held_bytes += session.output.held_bytes() - before;
        match waits_for {
            Some(sequence) if sequence > session.waits_for => {
                session.waits_for = sequence;
                self.held.push_back((sequence, session.connection));
            }
            Some(_) => {}
            None => self.flush_later(session),
        }
    }

    fn flush_later(&mut self, session: &mut Session) {
        if !session.is_flushing {
            session.is_flushing = true;
            self.flushing.push(session.connection);
        }
    }

    /// The log became durable further: what waited for it may leave.
    pub(crate) fn release(&mut self) {
        let durable = self.shard.tracker.durable();
        while let Some(&(sequence, connection)) = self.held.front() {
            if sequence > durable {
                break;
            }
            self.held.pop_front();
            let Some(mut session) = self.sessions.remove(&connection) else { continue };
            let before = session.output.held_bytes();
            let has_bytes = session.output.release(durable);
            self.held_bytes -= before - session.output.held_bytes();
            if has_bytes {
                self.flush_later(&mut session);
            }
            self.sessions.insert(connection, session);
        }
    }
}

const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is \
    enabled and no password is set for the default user. In this mode connections are only \
    accepted from the loopback interface. To accept others, set a password with 'requirepass' in \
    the configuration file or with CONFIG SET, bind only trusted interfaces and set \
    'protected-mode no', or start the server with '--protected-mode no'.\r\n";
