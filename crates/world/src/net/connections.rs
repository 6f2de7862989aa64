//! The open connections: a slab whose keys are never used twice.
//!
//! ```text
//! ConnectionId: | serial of the connection: 40 bits | slot: 24 bits |
//! ```
//! The slot finds the connection without hashing, the serial tells a late mention of a closed
//! connection from the one that has its slot now. Serial 0 names no connection: the poller's own
//! sources (listeners, waker, signals) use those numbers.

use super::transport::Transport;
use base::driver::{ConnectionId, Received, Sent};

const SLOT_BITS: u32 = ConnectionId::SLOT_BITS;

/// Connections open at once. File descriptors run out long before.
const CONNECTIONS_MAX: usize = 1 << SLOT_BITS;

/// One connection and what is known of its readiness.
#[derive(Debug)]
pub struct Connection {
    pub transport: Transport,
    /// Unix sockets signal "writable" after every reply that the peer takes, so that they are
    /// watched for it only while a send is incomplete.
    pub is_unix: bool,
    /// The transport may have bytes (or the end of the stream) for us.
    pub is_readable: bool,
    /// The peer has ended its stream, or all of it: read until 0 bytes come.
    pub is_ending: bool,
    /// A send came back short; the next "writable" is passed on.
    pub is_send_short: bool,
    /// The node wants to hear of bytes.
    pub is_reading: bool,
    /// A `Broken` was reported; it is not reported twice.
    pub is_broken: bool,
    /// This connection stands in the list of those to look at again in the next wait.
    pub is_listed: bool,
    /// The kernel is still connecting it.
    pub is_dialing: bool,
    /// Whether its TLS handshake is still under way.
    pub is_handshaking: bool,
}

impl Connection {
    /// A connection over a transport.
    pub fn over(transport: Transport, is_unix: bool) -> Self {
        Self {
            is_handshaking: matches!(transport, Transport::Tls(_)),
            transport,
            is_unix,
            is_readable: false,
            is_ending: false,
            is_send_short: false,
            is_reading: true,
            is_broken: false,
            is_listed: false,
            is_dialing: false,
        }
    }

    /// As [`base::Driver::receive`].
    pub fn receive(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        if !self.is_readable || bytes_max == 0 {
            return Received::WouldBlock;
        }
        let received = self.transport.receive(into, bytes_max);
        // The end of the stream, of which the kernel has told already, gets no report of its own.
        self.is_readable = match received {
            Received::Bytes { more, .. } => more || self.is_ending,
            Received::WouldBlock => self.is_ending,
            Received::Closed => true,
        };
        received
    }

    /// As [`base::Driver::send`].
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        let sent = self.transport.send(bytes);
        if let Sent::Bytes(count) = sent {
            self.is_send_short |= count < bytes.len();
        }
        sent
    }
}

#[derive(Default, Debug)]
pub struct Connections {
    /// A slot that is taken has an id; one that is only reserved has no connection yet.
    slots: Vec<Option<(ConnectionId, Option<Connection>)>>,
    free: Vec<usize>,
    serials: u64,
}

impl Connections {
    /// Takes a connection in; gives it back if [`CONNECTIONS_MAX`] are open.
    pub fn insert(&mut self, connection: Connection) -> Result<ConnectionId, Connection> {
        let Some(id) = self.reserve() else { return Err(connection) };
        self.put(id, connection);
        Ok(id)
    }

    /// An id for a connection that is still to be had; `None` if [`CONNECTIONS_MAX`] are open.
    pub fn reserve(&mut self) -> Option<ConnectionId> {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None if self.slots.len() < CONNECTIONS_MAX => {
                self.slots.push(None);
                self.slots.len() - 1
            }
            None => return None,
        };
        let id = self.new_id(slot);
        self.slots[slot] = Some((id, None));
        Some(id)
    }

    /// An id that no connection has or will have: for what failed before it had one.
    pub fn vacant_id(&mut self) -> ConnectionId {
        self.new_id(0)
    }

    fn new_id(&mut self, slot: usize) -> ConnectionId {
        self.serials += 1;
        assert!(self.serials < 1 << (64 - SLOT_BITS), "connection serials are used up");
        ConnectionId(self.serials << SLOT_BITS | slot as u64)
    }

    /// The connection of an id that is held, in place of the one it had.
    pub fn put(&mut self, id: ConnectionId, connection: Connection) {
        if let Some(Some((holder, place))) = self.slots.get_mut(id.slot())
            && *holder == id
        {
            *place = Some(connection);
        }
    }

    pub fn find(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        match self.slots.get_mut(id.slot()) {
            Some(Some((holder, connection))) if *holder == id => connection.as_mut(),
            _ => None,
        }
    }

    /// Gives an id up, with its connection if it has one.
    pub fn remove(&mut self, id: ConnectionId) -> Option<Connection> {
        let slot = id.slot();
        match self.slots.get(slot) {
            Some(Some((holder, _))) if *holder == id => {}
            _ => return None,
        }
        self.free.push(slot);
        self.slots[slot].take().and_then(|(_, connection)| connection)
    }

    /// Connections that are open or being had.
    pub fn count(&self) -> usize {
        self.slots.len() - self.free.len()
    }
}

/// Whether an epoll datum names a connection; the other numbers name the poller's own sources.
pub const fn is_connection(datum: u64) -> bool {
    datum >> SLOT_BITS > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use std::collections::BTreeSet;

    fn connection() -> Connection {
        let any_descriptor = eventfd(0, EventfdFlags::CLOEXEC).expect("a descriptor");
        Connection::over(Transport::Plain(any_descriptor), false)
    }

    #[test]
    fn ids_are_never_reused_while_slots_are() {
        let mut connections = Connections::default();
        let mut seen = BTreeSet::new();
        for _ in 0..1_000 {
            let id = connections.insert(connection()).expect("room");
            assert!(is_connection(id.0));
            assert!(seen.insert(id));
            assert!(connections.remove(id).is_some());
            assert!(connections.find(id).is_none());
            assert!(connections.remove(id).is_none());
        }
        assert_eq!(connections.slots.len(), 1);
        assert_eq!(connections.count(), 0);
    }

    #[test]
    fn a_vacant_id_is_nobodys() {
        let mut connections = Connections::default();
        let first = connections.insert(connection()).expect("room");
        let vacant = [connections.vacant_id(), connections.vacant_id()];
        assert_ne!(vacant[0], vacant[1]);
        for id in vacant {
            assert!(connections.find(id).is_none());
            connections.put(id, connection());
            assert!(connections.remove(id).is_none());
        }
        assert!(connections.find(first).is_some());
        assert_eq!(connections.count(), 1);
    }

    #[test]
    fn a_reserved_id_is_held_until_it_is_removed() {
        let mut connections = Connections::default();
        let id = connections.reserve().expect("room");
        assert!(connections.find(id).is_none());
        assert_ne!(connections.insert(connection()).expect("room"), id);
        connections.put(id, connection());
        assert!(connections.find(id).is_some());
        assert!(connections.remove(id).is_some());
        connections.put(id, connection());
        assert!(connections.find(id).is_none(), "an id that was given up takes nothing");
        assert_eq!(connections.count(), 1);
    }
}
