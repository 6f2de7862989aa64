//! The link to a master: how data moves from a Redis or Valkey server into this one while clients
//! go on using the other.
//!
//! ```text
//! REPLICAOF ─▶ waiting ─▶ dialing ─▶ handshake ─▶ transfer ─▶ streaming ─▶ NO ONE: a primary
//!                 ▲                      │ +CONTINUE ──────────▲   │
//!                 └── any failure: again, a little later ──────────┘
//! ```
//! Everything taken becomes durable like a client's write: the transfer is a FLUSHALL and then the
//! effects of each key, the stream is executed like any client's requests. What is acknowledged to
//! the master is durable here. Whom the shard follows is in the log too, so whichever process leads
//! goes on. The position in the stream is kept in memory only: a process that starts anew, or leads
//! anew, asks for everything.
//!
//! The unit of the FLUSHALL says too that a transfer began, and the last unit of the transfer that
//! it ended. In between the keyspace is a part of a data set
//! ([`engine::keyspace::Keyspace::is_partial`]), whatever happens to the link and the process, and
//! requests about it are refused.
//!
//! | file | holds |
//! |---|---|
//! | [`transfer`] | the data set, as its bytes arrive |
//! | `stream` | the requests behind it, and what is acknowledged |
//! | `replicaof` | whom the shard follows, as its log says |

mod replicaof;
mod stream;
pub mod transfer;

use crate::core::Core;
use base::driver::{Endpoint, Received, Sent};
use base::{ConnectionId, DatabaseId, Driver, MonotonicNanos};
use engine::master::Master;
use peers::handshake::{Asks, Handshake, MasterOffset, Next};
use transfer::Transfer;

/// Time until the first new attempt, in nanoseconds; it doubles with each failure in a row.
const RETRY_NANOS: u64 = 1_000_000_000;

/// Longest time between two attempts when the master cannot be reached, in nanoseconds. Short: it
/// costs one connection.
const RETRY_NANOS_MAX: u64 = 8_000_000_000;

/// The same when the master's data could not be taken, in nanoseconds: each attempt costs the
/// master a full synchronization.
const DISTRUST_NANOS_MAX: u64 = 60_000_000_000;

/// Bytes received at a time before the stream begins.
const RECEIVE_BYTES: usize = 256 << 10;

/// Time between two signs of life to the master, in nanoseconds. As Redis.
const ACKNOWLEDGE_NANOS: u64 = 1_000_000_000;

/// How far the link is.
#[derive(Default)]
enum Phase {
    /// There is no connection; the next attempt comes at `retry_at`.
    #[default]
    Waiting,
    Dialing,
    Handshake(Handshake),
    Transfer(Box<Transfer>),
    /// The connection has a session.
    Streaming,
}

/// The link to the master, if there is one.
#[derive(Default)]
pub struct Link {
    /// Whose connection and place these are. Whom the shard follows is said by its log
    /// ([`Core::master`]); the link turns to that one.
    peer: Option<Master>,
    /// It was decided whether the configuration's `replicaof` counts.
    has_judged_configuration: bool,
    phase: Phase,
    connection: Option<ConnectionId>,
    /// Connections given up, to be closed.
    dropped: Vec<ConnectionId>,
    /// Where the stream stands; `None`: only all the data helps.
    place: Option<MasterOffset>,
    /// Offset of the last byte received.
    received: u64,
    /// What arrived before the stream began, and what is still to be sent.
    input: Vec<u8>,
    output: Vec<u8>,
    retry_at: MonotonicNanos,
    failures: u32,
    /// Failures for reasons that lie in the master's data.
    distrust: u32,
    /// When something was last heard, and last said.
    heard: MonotonicNanos,
    said: MonotonicNanos,
    /// When the link went down; `None`: it is up, or never was.
    down_since: Option<MonotonicNanos>,
    /// Why the last attempt failed.
    error: Option<String>,
    /// A request was refused: what is here is not what the master has.
    is_diverged: bool,
    /// The database that the stream has selected.
    database: DatabaseId,
}

/// Whose fault a failure is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// The connection's: the next one may go on where this one ended.
    Connection,
    /// The data's: what is here cannot be continued.
    Data,
}

impl Link {
    /// The link to another master, of whose stream nothing is known.
    fn anew(&mut self, peer: Option<Master>) -> Self {
        Self {
            peer,
            has_judged_configuration: self.has_judged_configuration,
            dropped: std::mem::take(&mut self.dropped),
            ..Self::default()
        }
    }

    /// Every connection to a master.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.connection.into_iter().chain(self.dropped.iter().copied())
    }

    /// Whether the stream flows.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Streaming)
    }

    /// The phase as ROLE names it.
    pub fn state(&self) -> &'static str {
        match self.phase {
            Phase::Waiting => "connect",
            Phase::Dialing => "connecting",
            Phase::Handshake(_) => "handshake",
            Phase::Transfer(_) => "sync",
            Phase::Streaming => "connected",
        }
    }

    /// How far the stream is applied, if it is known at all.
    pub fn offset(&self) -> Option<u64> {
        self.place.as_ref().map(|place| place.offset)
    }

    /// How far the stream was received.
    pub fn offset_received(&self) -> Option<u64> {
        if self.is_up() { Some(self.received) } else { self.offset() }
    }

    /// The transfer under way, if one is.
    pub fn transfer(&self) -> Option<&Transfer> {
        match &self.phase {
            Phase::Transfer(transfer) => Some(transfer),
            _ => None,
        }
    }

    /// How long nothing was heard of the master.
    pub fn silence_nanos(&self, now: MonotonicNanos) -> u64 {
        now.since(self.heard)
    }

    pub fn down_since(&self) -> Option<MonotonicNanos> {
        self.down_since
    }

    /// Why the last attempt failed.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Whether the data set is being replaced.
    pub fn is_loading(&self) -> bool {
        matches!(&self.phase, Phase::Transfer(transfer) if transfer.has_begun())
    }

    /// Whether the connection is the link's and has no session.
    fn is_own(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection) && !self.is_up()
    }

    /// How long until the link wants to do something by itself, if there is a master; `None`: as
    /// long as you like.
    pub(crate) fn wait_nanos(&self, now: MonotonicNanos) -> Option<u64> {
        match &self.phase {
            Phase::Waiting => Some(self.retry_at.since(now)),
            Phase::Transfer(transfer) if transfer.has_work() => Some(0),
            _ => None,
        }
    }

    /// Ends whatever is under way.
    fn hang_up(&mut self) {
        self.phase = Phase::Waiting;
        self.dropped.extend(self.connection.take());
        self.input.clear();
        self.output.clear();
    }

    /// When to try again after one more failure.
    fn schedule_retry(&mut self, fault: Fault, now: MonotonicNanos) {
        let (count, nanos_max) = match fault {
            Fault::Connection => (&mut self.failures, RETRY_NANOS_MAX),
            Fault::Data => (&mut self.distrust, DISTRUST_NANOS_MAX),
        };
        let nanos = RETRY_NANOS.saturating_mul(1 << (*count).min(16)).min(nanos_max);
        *count += 1;
        self.retry_at = MonotonicNanos(now.0 + nanos);
    }
}

impl Link {
    /// Whether a connection that stands is the link's; then it is taken.
    pub(crate) fn connected(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.is_own(connection) {
            return false;
        }
        let (handshake, first) = Handshake::begin();
        self.phase = Phase::Handshake(handshake);
        self.heard = core.turn.monotonic;
        self.output.extend_from_slice(&first);
        self.flush(core, driver);
        true
    }

    /// As [`Self::connected`], for one that could not be had.
    pub(crate) fn unreachable(
        &mut self,
        core: &mut Core,
        connection: ConnectionId,
        why: &str,
    ) -> bool {
        if !self.is_own(connection) {
            return false;
        }
        self.connection = None;
        self.fail(core, &format!("cannot connect: {why}"), Fault::Connection);
        true
    }

    /// Whether an event of a connection is the link's; then it is dealt with.
    pub(crate) fn readable(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.is_own(connection) {
            return false;
        }
        let received = driver.receive(connection, &mut self.input, RECEIVE_BYTES);
        if let Received::Bytes { count, .. } = received {
            self.heard = core.turn.monotonic;
            core.process.statistics.link_input_bytes += count as u64;
        }
        self.take_input(core, driver);
        if received == Received::Closed && self.is_own(connection) {
            self.fail(core, "the master closed the connection", Fault::Connection);
        }
        true
    }

    /// As [`Self::readable`], for a connection that broke.
    pub(crate) fn broken(&mut self, core: &mut Core, connection: ConnectionId) -> bool {
        let is_own = self.is_own(connection);
        if is_own {
            self.fail(core, "the connection broke", Fault::Connection);
        }
        is_own
    }

    /// As [`Self::readable`], for a connection that takes bytes again.
    pub(crate) fn writable(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        let is_own = self.is_own(connection);
        if is_own {
            self.flush(core, driver);
        }
        is_own
    }

    /// Does what is due on the link: one bounded piece a turn.
    pub(crate) fn advance(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.dropped) {
            driver.close(connection);
        }
        if core.persistence.is_loading || !core.leadership.roles.leads() || core.stopping.is_some()
        {
            return;
        }
        self.turn_to_master(core);
        let Some(master) = core.master() else { return };
        if let Phase::Waiting = self.phase {
            if self.retry_at <= core.turn.monotonic {
                let (host, port) = (master.host(), master.port());
                tracing::info!(host, port, "connecting to the master");
                self.connection = Some(driver.connect(&Endpoint::tcp(host, port)));
                self.phase = Phase::Dialing;
                self.heard = core.turn.monotonic;
            }
            return;
        }
        if let Phase::Transfer(_) = self.phase {
            self.import(core, driver);
        }
        self.say_alive(core, driver);
        let silence = core.turn.monotonic.since(self.heard);
        if silence > u64::from(core.process.settings.repl_timeout) * 1_000_000_000 {
            self.lose(core, "the master is silent for longer than repl-timeout");
        }
    }

    /// Tells the master, once a second, that this replica lives, and how far it is.
    fn say_alive(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        if core.turn.monotonic.since(self.said) < ACKNOWLEDGE_NANOS {
            return;
        }
        match self.phase {
            Phase::Streaming => self.acknowledge(core),
            Phase::Transfer(_) => {
                self.said = core.turn.monotonic;
                self.output.push(b'\n');
                self.flush(core, driver);
            }
            _ => {}
        }
    }

    /// Takes what arrived, as the phase wants it.
    fn take_input(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        while let Phase::Handshake(handshake) = &mut self.phase {
            let line = match resp::client::take_line(&mut self.input) {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(why) => {
                    self.fail(core, why, Fault::Connection);
                    return;
                }
            };
            let asks = Asks {
                user: &core.process.settings.masteruser,
                password: &core.process.settings.masterauth,
                port: match core.process.settings.replica_announce_port {
                    0 => core.process.options.port,
                    port => port,
                },
                address: &core.process.settings.replica_announce_ip,
                place: self.place.as_ref(),
            };
            match handshake.hear(&line, &asks) {
                Ok(Next::Wait) => {}
                Ok(Next::Say(bytes)) => {
                    self.output.extend_from_slice(&bytes);
                    self.flush(core, driver);
                }
                Ok(Next::Transfer(place)) => {
                    tracing::info!(id = place.id, offset = place.offset, "full synchronization");
                    self.place = None;
                    self.phase = Phase::Transfer(Box::new(Transfer::new(place)));
                }
                Ok(Next::Continue(id)) => self.continue_stream(core, id),
                Err(why) => {
                    self.fail(core, &why, Fault::Connection);
                    return;
                }
            }
        }
        self.feed_transfer(core, driver);
    }

    /// Sends what is to be said before the stream begins.
    fn flush(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        let Some(connection) = self.connection else { return };
        match driver.send(connection, &self.output) {
            Sent::Bytes(count) => drop(self.output.drain(..count)),
            Sent::Closed => self.fail(core, "the connection broke", Fault::Connection),
        }
    }

    /// Gives up a connection, whatever its phase; the next attempt goes on where this one ended.
    fn lose(&mut self, core: &mut Core, why: &str) {
        match (&self.phase, self.connection) {
            // Its session goes first, and reports back through [`Self::forget`].
            (Phase::Streaming, Some(connection)) => {
                self.error = Some(why.to_owned());
                core.close(connection);
            }
            _ => self.fail(core, why, Fault::Connection),
        }
    }

    /// The attempt failed: drops what it brought and tries again later.
    fn fail(&mut self, core: &mut Core, why: &str, fault: Fault) {
        tracing::warn!("the link to the master is down: {why}");
        self.abandon_transfer(core);
        self.error = Some(why.to_owned());
        self.down_since.get_or_insert(core.turn.monotonic);
        if fault == Fault::Data {
            self.place = None;
        }
        self.hang_up();
        self.schedule_retry(fault, core.turn.monotonic);
    }

    /// What a transfer brought before it failed is no data set, and goes. Nobody reads it even if
    /// the log takes no writes now: it is known to be a part.
    fn abandon_transfer(&mut self, core: &mut Core) {
        if self.must_make_way(core) {
            core.shard.unit.clear();
            self.make_way(core);
            core.end_own_unit();
        }
    }
}
