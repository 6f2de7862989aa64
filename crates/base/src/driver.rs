//! The execution loop's only seam to the world: sockets, timers, signals and wake-ups.
//!
//! `node` owns every byte until it sends it, so that a reply can be withheld until the last moment.
//! Bytes that [`Driver::send`] took leave in order, whatever becomes of the loop. A driver that
//! keeps some of it (to encrypt it, or for another thread to send it) takes no more than a kernel's
//! buffer would.
//!
//! Bytes pass in buffers of the loop's own, which the driver may exchange for others: so neither a
//! transport that works in whole buffers nor a thread that goes on with them needs a copy. A
//! connection of which bytes are left is reported again by the next wait, which then does not
//! block: one [`Driver::receive`] per event is enough, and a loop that wants no more from a
//! connection says so with [`Driver::set_reading`].

use crate::time::Clock;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Names one connection, accepted or asked for. Never reused within a process.
///
/// Its low bits are small, and no other connection open at the same time has the same: who keeps
/// something for each connection finds it by them as an index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ConnectionId(pub u64);

impl ConnectionId {
    /// How many low bits: far more connections than there are file descriptors.
    pub const SLOT_BITS: u32 = 24;

    /// What the low bits say.
    pub const fn slot(self) -> usize {
        (self.0 & ((1 << Self::SLOT_BITS) - 1)) as usize
    }
}

/// Where to connect to, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Endpoint {
    /// An address or a name.
    pub host: String,
    pub port: u16,
    /// Whether the connection uses TLS. The other side must then send a trusted certificate.
    pub is_encrypted: bool,
    /// The address of this machine that the connection comes from, if that is chosen.
    pub source: Option<String>,
}

impl Endpoint {
    /// A server that speaks plainly over TCP.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port, is_encrypted: false, source: None }
    }

    /// The same endpoint, with TLS or without.
    #[must_use]
    pub fn encrypted(self, is_encrypted: bool) -> Self {
        Self { is_encrypted, ..self }
    }

    /// The same, reached from this address of the machine.
    #[must_use]
    pub fn from_address(self, source: Option<String>) -> Self {
        Self { source, ..self }
    }
}

/// Both ends of a connection, as CLIENT LIST shows them, and what else is known of the other one.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Peer {
    /// The other end: an address with its port, or the path of a Unix socket with `:0`.
    pub address: String,
    /// This end, in the same form.
    pub local: String,
    /// The other end is on the loopback interface or a Unix socket: protected mode lets it in.
    pub is_local: bool,
    /// The common name in the other end's certificate. `None` without TLS, or if it sent no
    /// certificate.
    pub common_name: Option<Vec<u8>>,
}

/// What happened while the loop waited.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// A client connected.
    Accepted { connection: ConnectionId, peer: Peer },
    /// A connection that [`Driver::connect`] was asked for stands.
    Connected { connection: ConnectionId, peer: Peer },
    /// A connection that [`Driver::connect`] was asked for cannot be had, and why. It is gone.
    Unreachable { connection: ConnectionId, why: String },
    /// Bytes (or the end of the stream) wait to be received.
    Readable(ConnectionId),
    /// The peer sends nothing more. Told once, also of a connection that is not read from: what it
    /// sent, and the end of the stream, may still wait to be received.
    Ended(ConnectionId),
    /// A connection whose `send` came back short takes bytes again.
    Writable(ConnectionId),
    /// The peer is gone; the connection answers nothing more and must still be closed.
    Broken(ConnectionId),
    /// The process was asked to stop (SIGTERM, SIGINT).
    Shutdown,
}

impl Event {
    /// The connection that it is about.
    pub fn connection(&self) -> Option<ConnectionId> {
        match self {
            Self::Accepted { connection, .. }
            | Self::Connected { connection, .. }
            | Self::Unreachable { connection, .. }
            | Self::Readable(connection)
            | Self::Ended(connection)
            | Self::Writable(connection)
            | Self::Broken(connection) => Some(*connection),
            Self::Shutdown => None,
        }
    }
}

/// The outcome of one receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Received {
    /// `count` bytes were appended. If there is not `more`, another receive would be in vain until
    /// an event tells of it. Only the transport knows that: fewer bytes than were asked for may
    /// well be followed by others at once, where they come in records.
    Bytes { count: usize, more: bool },
    /// Nothing waits; a `Readable` event will tell.
    WouldBlock,
    /// The peer closed or the connection failed.
    Closed,
}

/// The outcome of one send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sent {
    /// This many bytes were taken. If fewer than offered, a `Writable` event follows.
    Bytes(usize),
    /// The connection failed; nothing more can be sent.
    Closed,
}

/// Ends the current or the next [`Driver::wait`] early. Callable from any thread.
#[derive(Clone)]
pub struct Waker(pub Arc<dyn Fn() + Send + Sync>);

impl Waker {
    /// Ends the loop's wait, from whatever thread. The loop looks at its queues then.
    pub fn wake(&self) {
        (self.0)();
    }
}

impl fmt::Debug for Waker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waker")
    }
}

/// Sockets, timers and wake-ups for one loop.
pub trait Driver {
    /// The clock that this loop reads.
    fn clock(&self) -> &dyn Clock;

    /// Waits until something happens, `timeout_nanos` have passed (`None`: without limit) or the
    /// waker was called, and appends what happened. 0 polls.
    fn wait(&mut self, timeout_nanos: Option<u64>, events: &mut Vec<Event>);

    /// Starts to connect and returns at once. One [`Event::Connected`] or [`Event::Unreachable`]
    /// follows, unless [`Self::close`] comes before. How long that may take is for the caller to
    /// limit.
    fn connect(&mut self, endpoint: &Endpoint) -> ConnectionId;

    /// Appends at most `bytes_max` received bytes to `into`. For an `into` without bytes the driver
    /// may put in a buffer of its own, and keep the other one.
    fn receive(
        &mut self,
        connection: ConnectionId,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Received;

    /// Offers bytes to the kernel without blocking.
    fn send(&mut self, connection: ConnectionId, bytes: &[u8]) -> Sent;

    /// As [`Self::send`], for a range of a buffer. If nothing is behind the range, and all of it
    /// counts as sent, the driver may have taken the buffer, and put an empty one in its place.
    fn send_buffer(
        &mut self,
        connection: ConnectionId,
        buffer: &mut Vec<u8>,
        range: Range<usize>,
    ) -> Sent {
        self.send(connection, &buffer[range])
    }

    /// Stops or resumes reporting `Readable` for a connection (a client that outruns the limits
    /// is not read from until it drains).
    fn set_reading(&mut self, connection: ConnectionId, reading: bool);

    /// Closes a connection. No event about it follows.
    fn close(&mut self, connection: ConnectionId);

    /// Stops or resumes accepting connections.
    fn set_accepting(&mut self, accepting: bool);

    /// A handle that ends `wait` early.
    fn waker(&self) -> Waker;

    /// Unpredictable bits, others at each call. The simulator derives them from its seed.
    fn entropy(&mut self) -> u64;
}
