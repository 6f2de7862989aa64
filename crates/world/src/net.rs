//! `base::Driver` over epoll.
//!
//! A request and its reply cost one `epoll_wait` (shared by all that are ready), one `recv` and one
//! `send`. What keeps it so:
//!
//! - A connection is registered with epoll once, edge-triggered, and never again.
//! - The transport says whether a transfer used up what there was ([`transport`]), so that nobody
//!   asks the kernel in vain. Bytes that come later are a new edge.
//! - Readiness that the node did not use up is remembered here and reported by the next wait, so
//!   that edges are never lost and no connection can starve another.
//!
//! | file | holds |
//! |---|---|
//! | [`poller`] | epoll and the waker |
//! | [`listener`] | listening sockets and their addresses |
//! | [`connections`] | open connections by ids that are never reused |
//! | [`transport`] | how bytes pass through one connection, and what that shows of its readiness |
//! | [`handshakes`] | TLS handshakes that are under way |
//! | [`dial`] | connections that the server asks for |
//! | [`signals`] | SIGTERM and SIGINT as events |

mod connections;
mod dial;
mod handshakes;
#[cfg(any(test, feature = "hostile"))]
pub mod hostile;
mod listener;
mod poller;
mod signals;
#[cfg(test)]
mod tests;
mod transport;

use crate::clock::RealClock;
use crate::descriptors::Room;
use crate::tls::Tls;
use base::driver::{ConnectionId, Driver, Endpoint, Event, Received, Sent, Waker};
use base::time::{Clock, MonotonicNanos, SECOND};
use connections::{Connection, Connections, is_connection};
use dial::Dials;
use handshakes::{Handshakes, Side};
pub use listener::Listeners;
use listener::{Accepted, Listener};
use poller::{FIRST_LISTENER, Poller, SIGNALS, WAKER};
use rustix::event::epoll::EventFlags;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use signals::Signals;
use std::path::PathBuf;
use std::sync::Arc;
use transport::{TlsTransport, Transport};

pub use listener::NetError;

/// Connections accepted per listener and wait, so that a storm of them does not hold up requests.
/// A guess.
const ACCEPTS_PER_WAIT_MAX: usize = 128;

/// Between two lines in the log that say that there is no room for a connection.
const FULL_TOLD_NANOS: u64 = 60 * SECOND;

/// How long accepting rests after the system had no descriptor or memory for a connection. A
/// guess: short for a client, long for a processor.
const ACCEPT_REST_NANOS: u64 = 100_000_000;

/// What to listen on, in the words of redis.conf.
#[derive(Clone, Debug)]
pub struct NetOptions {
    /// `bind`: addresses; `*` and `::*` stand for all of a family; `-` before one makes it
    /// optional. None: no TCP.
    pub bind: Vec<String>,
    /// `port`. `None`: no TCP; 0: the kernel chooses, see [`NetDriver::local_port`].
    pub port: Option<u16>,
    /// `tls-port`. `None`: clients cannot connect over TLS; 0: the kernel chooses the port.
    pub tls_port: Option<u16>,
    /// The TLS configurations for accepted and dialed connections.
    pub tls: Arc<Tls>,
    /// `tcp-backlog`.
    pub backlog: u32,
    /// `tcp-keepalive`, seconds; 0: off.
    pub keepalive_seconds: u32,
    /// `unixsocket`. A file of that name is replaced.
    pub unix_socket: Option<PathBuf>,
    /// `unixsocketperm`, the file's mode; `None`: as the umask says.
    pub unix_socket_permissions: Option<u32>,
    /// The most connections open at a time, those of TLS handshakes too. `None`: as many as the
    /// system lets the process open, less a reserve for everything else.
    pub room: Option<Room>,
    /// Turn SIGTERM and SIGINT into [`Event::Shutdown`].
    pub catch_signals: bool,
}

impl Default for NetOptions {
    fn default() -> Self {
        Self {
            bind: vec!["*".to_owned(), "-::*".to_owned()],
            port: Some(6379),
            tls_port: None,
            tls: Arc::default(),
            backlog: 511,
            keepalive_seconds: 300,
            unix_socket: None,
            unix_socket_permissions: None,
            room: None,
            catch_signals: true,
        }
    }
}

/// The sockets of one loop.
pub struct NetDriver {
    clock: RealClock,
    poller: Poller,
    listeners: Arc<Listeners>,
    /// The change of the listeners that this follows.
    listeners_change: u64,
    /// The node wants connections.
    is_accepting: bool,
    /// The listeners are registered with the poller.
    is_watching_listeners: bool,
    /// When accepting goes on after the system was out of descriptors, on the monotonic clock.
    resting_until_nanos: Option<u64>,
    /// A descriptor to give up when there is no other: it lets a client be told by a close,
    /// rather than wait in a queue that keeps waking us.
    reserve: Option<OwnedFd>,
    connections: Connections,
    room: Room,
    /// When it was last said in the log that there is no room for a connection.
    told_full_at: Option<MonotonicNanos>,
    dials: Dials,
    handshakes: Handshakes,
    tls: Arc<Tls>,
    /// As `tcp-keepalive` says, for connections that the server asks for.
    keepalive_seconds: u32,
    /// Connections whose readiness may not be used up.
    listed: Vec<ConnectionId>,
    signals: Option<Signals>,
}

impl NetDriver {
    /// Listens.
    ///
    /// # Errors
    /// An address cannot be had, or the process is out of descriptors.
    pub fn bind(options: &NetOptions) -> Result<Self, NetError> {
        let fail = |error| NetError::new("any address", "cannot set up epoll", error);
        let poller = Poller::new().map_err(fail)?;
        let listeners = Listeners::open(options)?;
        let signals = if options.catch_signals {
            let signals = Signals::catch().map_err(fail)?;
            poller.add(&signals, SIGNALS, EventFlags::IN | EventFlags::ET).map_err(fail)?;
            Some(signals)
        } else {
            None
        };
        let mut driver = Self {
            clock: RealClock,
            poller,
            listeners: Arc::new(listeners),
            listeners_change: 0,
            is_accepting: true,
            is_watching_listeners: false,
            resting_until_nanos: None,
            reserve: spare_descriptor(),
            connections: Connections::default(),
            room: options.room.unwrap_or_else(Room::of_process),
            told_full_at: None,
            dials: Dials::default(),
            handshakes: Handshakes::default(),
            tls: Arc::clone(&options.tls),
            keepalive_seconds: options.keepalive_seconds,
            listed: Vec::new(),
            signals,
        };
        driver.watch_listeners(true);
        Ok(driver)
    }

    /// The port of the first TCP listener; that of a TLS listener if there is no other.
    pub fn local_port(&self) -> Option<u16> {
        self.listeners.with(|all| all.iter().find_map(Listener::port))
    }

    /// The port of the first TLS listener.
    pub fn local_tls_port(&self) -> Option<u16> {
        self.listeners
            .with(|all| all.iter().filter(|listener| listener.is_tls()).find_map(Listener::port))
    }

    /// The sockets that take connections, for whoever changes where it listens.
    pub fn listeners(&self) -> Arc<Listeners> {
        Arc::clone(&self.listeners)
    }

    /// Connections that are open.
    pub fn connections_count(&self) -> usize {
        self.connections.count()
    }

    fn watch_listeners(&mut self, watch: bool) {
        if watch == self.is_watching_listeners {
            return;
        }
        self.is_watching_listeners = watch;
        let poller = &self.poller;
        self.listeners.watch(watch, |listener| {
            // Level-triggered: what one wait leaves in the backlog, the next one reports.
            let datum = FIRST_LISTENER + listener.number();
            let outcome = if watch {
                poller.add(listener, datum, EventFlags::IN)
            } else {
                poller.remove(listener)
            };
            if let Err(error) = outcome {
                tracing::error!(%error, watch, "cannot change how a listener is watched");
            }
        });
    }

    /// Watches the listeners that were opened since the last wait. Those that were closed are
    /// watched no more.
    fn follow_listeners(&mut self) {
        let change = self.listeners.change();
        if std::mem::replace(&mut self.listeners_change, change) != change {
            // Some are watched, and those that are new are not.
            let watch = self.is_accepting && self.resting_until_nanos.is_none();
            self.is_watching_listeners = !watch;
            self.watch_listeners(watch);
        }
    }

    /// Reports again what the node did not use up. Whether there was anything.
    fn report_listed(&mut self, events: &mut Vec<Event>) -> bool {
        let events_before = events.len();
        let connections = &mut self.connections;
        self.listed.retain(|&id| {
            let Some(connection) = connections.find(id) else { return false };
            let stays = connection.is_readable && connection.is_reading;
            if stays {
                events.push(Event::Readable(id));
            } else {
                connection.is_listed = false;
            }
            stays
        });
        events.len() > events_before
    }

    /// What a report of the kernel about a connection means to the node.
    fn report_connection(&mut self, id: ConnectionId, flags: EventFlags, events: &mut Vec<Event>) {
        let is_dialing = self.connections.find(id).is_some_and(|connection| connection.is_dialing);
        if is_dialing && !self.end_dial(id, events) {
            return;
        }
        let Some(connection) = self.connections.find(id) else { return };
        if connection.is_handshaking {
            connection.is_ending |= flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
            self.handshakes.note_ready(id);
            return;
        }
        if flags.contains(EventFlags::ERR) && !connection.is_broken {
            connection.is_broken = true;
            events.push(Event::Broken(id));
            return;
        }
        let has_ended = flags.intersects(EventFlags::RDHUP | EventFlags::HUP);
        let is_news = has_ended && !std::mem::replace(&mut connection.is_ending, true);
        if flags.intersects(EventFlags::IN | EventFlags::RDHUP | EventFlags::HUP) {
            connection.is_readable = true;
            if connection.is_reading && !connection.is_listed {
                connection.is_listed = true;
                self.listed.push(id);
                events.push(Event::Readable(id));
            }
        }
        if is_news {
            events.push(Event::Ended(id));
        }
        if flags.contains(EventFlags::OUT) {
            connection.transport.flush();
        }
        if flags.contains(EventFlags::OUT) && connection.is_send_short {
            connection.is_send_short = false;
            if connection.is_unix {
                watch_unix(&self.poller, id, connection);
            }
            events.push(Event::Writable(id));
        }
    }

    fn accept(&mut self, listener: u64, events: &mut Vec<Event>) {
        for _ in 0..ACCEPTS_PER_WAIT_MAX {
            match self.listeners.accept(listener) {
                Ok(accepted) => self.take_in(accepted, events),
                Err(Errno::AGAIN) => return,
                // The client went away while it waited, or its packets were filtered.
                Err(Errno::CONNABORTED | Errno::PROTO | Errno::PERM | Errno::INTR) => {}
                Err(Errno::MFILE | Errno::NFILE) if self.reserve.take().is_some() => {
                    drop(self.listeners.accept(listener));
                    self.reserve = spare_descriptor();
                    tracing::warn!("closed a new connection: out of file descriptors");
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept connections; resting");
                    self.reserve = self.reserve.take().or_else(spare_descriptor);
                    let now = self.clock.monotonic().0;
                    self.resting_until_nanos = Some(now + ACCEPT_REST_NANOS);
                    self.watch_listeners(false);
                    return;
                }
            }
        }
    }

    fn take_in(&mut self, accepted: Accepted, events: &mut Vec<Event>) {
        let Accepted { socket, peer, is_unix, is_tls } = accepted;
        if self.connections.count() >= self.room.accepting_max {
            self.tell_full(&peer.address);
            return;
        }
        let Some(transport) = self.transport(socket, is_tls) else { return };
        let Ok(id) = self.connections.insert(Connection::over(transport, is_unix)) else {
            self.tell_full(&peer.address);
            return;
        };
        let Some(connection) = self.connections.find(id) else { return };
        if let Err(error) = self.poller.add(&connection.transport, id.0, watched(connection)) {
            let peer = peer.address;
            tracing::warn!(%error, peer, "closed a new connection: epoll does not take it");
            self.connections.remove(id);
            return;
        }
        if is_tls {
            self.begin_handshake(id, peer, Side::Accepted);
        } else {
            events.push(Event::Accepted { connection: id, peer });
        }
    }

    /// Says that a connection was closed because there is no room for it: now and then only, since
    /// anybody may connect, any number of times.
    fn tell_full(&mut self, peer: &str) {
        let now = self.clock.monotonic();
        if self.told_full_at.is_some_and(|told| now.since(told) < FULL_TOLD_NANOS) {
            return;
        }
        self.told_full_at = Some(now);
        let open = self.connections.count();
        tracing::warn!(peer, open, "closed a new connection: the limit of open files (ulimit -n)");
    }

    /// The transport for an accepted socket; `None`: TLS is not set up, and the socket is closed.
    fn transport(&self, socket: OwnedFd, is_tls: bool) -> Option<Transport> {
        if !is_tls {
            return Some(Transport::Plain(socket));
        }
        let made = match self.tls.server() {
            Some(config) => TlsTransport::accepted(socket, config).map_err(|why| why.to_string()),
            None => Err("no certificate is set up".to_owned()),
        };
        let tls = made.inspect_err(|why| {
            tracing::warn!(why, "closed a new connection: it cannot be encrypted");
        });
        Some(Transport::Tls(Box::new(tls.ok()?)))
    }

    /// Goes on accepting when the rest is over; otherwise shortens the wait to its end.
    fn end_rest(&mut self, timeout_nanos: Option<u64>) -> Option<u64> {
        let Some(until) = self.resting_until_nanos else { return timeout_nanos };
        let left = until.saturating_sub(self.clock.monotonic().0);
        if left > 0 {
            return Some(timeout_nanos.map_or(left, |timeout| timeout.min(left)));
        }
        self.resting_until_nanos = None;
        self.watch_listeners(self.is_accepting);
        timeout_nanos
    }
}

impl Driver for NetDriver {
    fn clock(&self) -> &dyn Clock {
        &self.clock
    }

    fn wait(&mut self, timeout_nanos: Option<u64>, events: &mut Vec<Event>) {
        self.follow_listeners();
        let mut timeout_nanos = self.end_rest(timeout_nanos);
        timeout_nanos = self.handshakes.wait_nanos(self.clock.monotonic().0, timeout_nanos);
        let has_more = self.dials.has_failed() || self.handshakes.has_ready();
        if self.report_listed(events) || has_more {
            timeout_nanos = Some(0);
        }
        let reports = self.poller.wait(timeout_nanos);
        for index in 0..reports {
            match self.poller.report(index) {
                (datum, flags) if is_connection(datum) => {
                    self.report_connection(ConnectionId(datum), flags, events);
                }
                (WAKER, _) => {}
                (SIGNALS, _) => {
                    if self.signals.as_mut().is_some_and(Signals::take) {
                        events.push(Event::Shutdown);
                    }
                }
                (listener, _) => self.accept(listener - FIRST_LISTENER, events),
            }
        }
        self.advance_handshakes(events);
        self.take_answers();
        self.report_failed_dials(events);
    }

    fn connect(&mut self, endpoint: &Endpoint) -> ConnectionId {
        self.dial(endpoint)
    }

    fn receive(
        &mut self,
        connection: ConnectionId,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Received {
        match self.connections.find(connection) {
            Some(connection) => connection.receive(into, bytes_max),
            None => Received::Closed,
        }
    }

    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Sent {
        let id = connection;
        let Some(connection) = self.connections.find(id) else { return Sent::Closed };
        let was_short = connection.is_send_short;
        let sent = connection.send(bytes);
        if connection.is_send_short && !was_short && connection.is_unix {
            watch_unix(&self.poller, id, connection);
        }
        sent
    }

    fn set_reading(&mut self, connection: ConnectionId, reading: bool) {
        let id = connection;
        let Some(connection) = self.connections.find(id) else { return };
        connection.is_reading = reading;
        if reading && connection.is_readable && !connection.is_listed {
            connection.is_listed = true;
            self.listed.push(id);
        }
    }

    fn close(&mut self, connection: ConnectionId) {
        if let Some(connection) = self.connections.find(connection) {
            connection.transport.say_goodbye();
        }
        // Closing the descriptor, of which there is no copy, ends its registration.
        self.connections.remove(connection);
        self.dials.forget(connection);
        self.handshakes.forget(connection);
    }

    fn set_accepting(&mut self, accepting: bool) {
        self.is_accepting = accepting;
        self.watch_listeners(accepting && self.resting_until_nanos.is_none());
    }

    fn waker(&self) -> Waker {
        self.poller.waker()
    }

    fn entropy(&mut self) -> u64 {
        crate::entropy::entropy()
    }
}

/// What epoll watches a connection for.
fn watched(connection: &Connection) -> EventFlags {
    let flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if connection.is_unix && !connection.is_send_short { flags } else { flags | EventFlags::OUT }
}

fn watch_unix(poller: &Poller, id: ConnectionId, connection: &Connection) {
    if let Err(error) = poller.modify(&connection.transport, id.0, watched(connection)) {
        tracing::error!(%error, "cannot change how a connection is watched");
    }
}

fn spare_descriptor() -> Option<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC).ok()
}
