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
use crate::core::cold::ROOM_NANOS;
use base::driver::Endpoint;
use base::{ConnectionId, DatabaseId, Driver, Event, MonotonicNanos};
use engine::master::Master;
use peers::handshake::{Asks, Handshake, MasterOffset, Next};
use peers::outgoing::{End, Happened, Outgoing, Retry};
use resp::client::take_filled_line;
use transfer::Transfer;

/// Time until the next attempt when the master cannot be reached. Short: it costs one connection.
const RETRY: Retry = Retry { first_nanos: 1_000_000_000, nanos_max: 8_000_000_000 };

/// The same when the master's data could not be taken: each attempt costs the master a full
/// synchronization.
const DISTRUST: Retry = Retry { first_nanos: 1_000_000_000, nanos_max: 60_000_000_000 };

/// Time between two signs of life to the master, in nanoseconds. As Redis.
const ACKNOWLEDGE_NANOS: u64 = 1_000_000_000;

/// How far the link is.
#[derive(Default)]
enum Phase {
    /// There is no connection that stands.
    #[default]
    Apart,
    Handshake(Handshake),
    Transfer(Box<Transfer>),
    /// The connection is this session's.
    Streaming(ConnectionId),
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
    /// The connection before the stream begins. The master is waited for since its last sign of
    /// life, during the stream too.
    line: Outgoing,
    /// Where the stream stands; `None`: only all the data helps.
    place: Option<MasterOffset>,
    /// Offset of the last byte received.
    received: u64,
    /// Failures in a row to keep up a connection.
    failures: u32,
    /// Failures for reasons that lie in the master's data.
    distrust: u32,
    /// When a sign of life was last given.
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
    fn anew(&self, peer: Option<Master>) -> Self {
        Self { peer, has_judged_configuration: self.has_judged_configuration, ..Self::default() }
    }

    /// The connection to the master, unless it is a session's.
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        self.line.connection()
    }

    /// Whether the stream flows.
    pub fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Streaming(_))
    }

    /// The phase as ROLE names it.
    pub fn state(&self) -> &'static str {
        match self.phase {
            Phase::Apart if self.line.is_dialing() => "connecting",
            Phase::Apart => "connect",
            Phase::Handshake(_) => "handshake",
            Phase::Transfer(_) => "sync",
            Phase::Streaming(_) => "connected",
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
        self.line.waited_nanos(now)
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

    /// How long until the link wants to do something by itself, if there is a master; `None`: as
    /// long as you like.
    pub(crate) fn wait_nanos(&self, now: MonotonicNanos) -> Option<u64> {
        match &self.phase {
            Phase::Apart if self.line.is_apart() => Some(self.line.nanos_to_retry(now)),
            Phase::Transfer(transfer) if transfer.lacks_room => Some(ROOM_NANOS),
            Phase::Transfer(transfer) if transfer.has_work() => Some(0),
            _ => None,
        }
    }

    /// Ends whatever is under way, but for a stream.
    fn hang_up(&mut self, core: &mut Core) {
        self.phase = Phase::Apart;
        if let Some(connection) = self.line.hang_up() {
            core.clients.close_later(connection);
        }
    }

    /// When to try again after one more failure.
    fn schedule_retry(&mut self, fault: Fault, now: MonotonicNanos) {
        let (count, retry) = match fault {
            Fault::Connection => (&mut self.failures, RETRY),
            Fault::Data => (&mut self.distrust, DISTRUST),
        };
        self.line.retry_later(&retry, *count, now);
        *count += 1;
    }
}

impl Link {
    /// Takes an event, if it is about the link's connection and that has no session; whether it
    /// is.
    pub(crate) fn hear(&mut self, core: &mut Core, driver: &mut dyn Driver, event: &Event) -> bool {
        let bytes_max = core.process.options.limits.link_received_bytes_max;
        let Some(happened) = self.line.take(driver, event, bytes_max) else { return false };
        match happened {
            Happened::Connected => {
                let (handshake, first) = Handshake::begin();
                self.phase = Phase::Handshake(handshake);
                self.line.wait_from(core.turn.monotonic);
                self.say(core, driver, &first);
            }
            Happened::Received(count) => {
                if count > 0 {
                    self.line.wait_from(core.turn.monotonic);
                    core.process.statistics.link_input_bytes += count as u64;
                }
                self.take_input(core, driver);
            }
            Happened::Sent => {}
            Happened::Ended(End::Unreachable(why)) => {
                self.fail(core, &format!("cannot connect: {why}"), Fault::Connection);
            }
            Happened::Ended(End::Closed) => {
                self.fail(core, "the master closed the connection", Fault::Connection);
            }
            Happened::Ended(End::Broken) => {
                self.fail(core, "the connection broke", Fault::Connection);
            }
        }
        true
    }

    /// Does what is due on the link: one bounded piece a turn.
    pub(crate) fn advance(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        if core.persistence.is_loading || !core.leadership.roles.leads() || core.stopping.is_some()
        {
            return;
        }
        self.turn_to_master(core);
        let Some(master) = core.master() else { return };
        let now = core.turn.monotonic;
        if matches!(self.phase, Phase::Apart) && self.line.is_apart() {
            if self.line.nanos_to_retry(now) == 0 {
                let (host, port) = (master.host(), master.port());
                tracing::info!(host, port, "connecting to the master");
                let is_encrypted = core.process.settings.tls_replication;
                let source = core.process.settings.bind_source_addr.clone();
                let endpoint = Endpoint::tcp(host, port).encrypted(is_encrypted);
                self.line.dial(driver, &endpoint.from_address(source), now);
            }
            return;
        }
        if let Phase::Transfer(_) = self.phase {
            self.import(core, driver);
        }
        self.say_alive(core, driver);
        if self.silence_nanos(now) > u64::from(core.process.settings.repl_timeout) * 1_000_000_000 {
            self.lose(core, "the master is silent for longer than repl-timeout");
        }
    }

    /// Tells the master, once a second, that this replica lives, and how far it is.
    fn say_alive(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        if core.turn.monotonic.since(self.said) < ACKNOWLEDGE_NANOS {
            return;
        }
        match self.phase {
            Phase::Streaming(client) => self.acknowledge(core, client),
            Phase::Transfer(_) => {
                self.said = core.turn.monotonic;
                self.say(core, driver, b"\n");
            }
            _ => {}
        }
    }

    /// Takes what arrived, as the phase wants it.
    fn take_input(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        while let Phase::Handshake(handshake) = &mut self.phase {
            let line = match take_filled_line(&mut self.line.input) {
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
                    0 => core.process.port_for_others(),
                    port => port,
                },
                address: &core.process.settings.replica_announce_ip,
                place: self.place.as_ref(),
            };
            match handshake.hear(&line, &asks) {
                Ok(Next::Wait) => {}
                Ok(Next::Say(bytes)) => self.say(core, driver, &bytes),
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

    /// Says something before the stream begins.
    fn say(&mut self, core: &mut Core, driver: &mut dyn Driver, bytes: &[u8]) {
        self.line.output.extend_from_slice(bytes);
        if self.line.flush(driver).is_err() {
            self.fail(core, "the connection broke", Fault::Connection);
        }
    }

    /// Gives up a connection, whatever its phase; the next attempt goes on where this one ended.
    fn lose(&mut self, core: &mut Core, why: &str) {
        if let Phase::Streaming(client) = self.phase {
            // Its session goes first, and reports back through [`Self::forget`].
            self.error = Some(why.to_owned());
            core.close(client);
        } else {
            self.fail(core, why, Fault::Connection);
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
        self.hang_up(core);
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
