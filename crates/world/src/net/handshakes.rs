//! TLS handshakes that are under way.
//!
//! The node hears of a connection when its handshake is over; before that it is nobody's client. A
//! handshake goes on when its socket is ready, a few in each wait, because each costs a signature.
//! A handshake that takes too long is closed, sooner if many others wait.

use super::NetDriver;
use super::transport::Handshake;
use crate::tls::name::common_name;
use base::driver::{ConnectionId, Event, Peer};
use base::time::Clock;
use std::collections::VecDeque;

/// Limits of handshakes.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Longest time of a handshake, in nanoseconds. A client on a slow line needs a second; a
    /// guess.
    pub nanos_max: u64,
    /// Handshakes under way at a time. Beyond that the oldest is closed. Each holds some 20 KB. A
    /// guess.
    pub count_max: usize,
    /// Handshakes that go on in one wait: a step may take a millisecond (a signature by RSA).
    pub steps_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { nanos_max: 10_000_000_000, count_max: 1024, steps_max: 4 }
    }
}

/// The handshakes under way, and which of their sockets are ready.
#[derive(Default)]
pub struct Handshakes {
    pub limits: Limits,
    /// In the order in which they began.
    under_way: VecDeque<UnderWay>,
    ready: VecDeque<ConnectionId>,
}

/// Which side began a connection: the other one (accepted), or this server (dialed).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    Accepted,
    Dialed,
}

struct UnderWay {
    id: ConnectionId,
    side: Side,
    peer: Peer,
    deadline_nanos: u64,
}

impl Handshakes {
    /// Notes that a connection's socket is ready.
    pub fn note_ready(&mut self, id: ConnectionId) {
        if !self.ready.contains(&id) {
            self.ready.push_back(id);
        }
    }

    pub fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Shortens a wait to the end of the oldest handshake's time.
    pub fn wait_nanos(&self, now_nanos: u64, timeout_nanos: Option<u64>) -> Option<u64> {
        let Some(oldest) = self.under_way.front() else { return timeout_nanos };
        let left = oldest.deadline_nanos.saturating_sub(now_nanos);
        Some(timeout_nanos.map_or(left, |timeout| timeout.min(left)))
    }

    /// Drops the handshake of a connection, if there is one: the node closes the connection.
    pub fn forget(&mut self, id: ConnectionId) {
        if !self.under_way.is_empty() {
            self.take(id);
        }
    }

    fn take(&mut self, id: ConnectionId) -> Option<UnderWay> {
        let at = self.under_way.iter().position(|it| it.id == id)?;
        self.under_way.remove(at)
    }
}

impl NetDriver {
    /// Begins the handshake of a connection.
    pub(super) fn begin_handshake(&mut self, id: ConnectionId, peer: Peer, side: Side) {
        if self.handshakes.under_way.len() >= self.handshakes.limits.count_max
            && let Some(oldest) = self.handshakes.under_way.pop_front()
        {
            self.give_up_handshake(oldest, "many others came");
        }
        let deadline_nanos = self.clock.monotonic().0 + self.handshakes.limits.nanos_max;
        self.handshakes.under_way.push_back(UnderWay { id, side, peer, deadline_nanos });
        self.handshakes.note_ready(id);
    }

    /// Closes a connection whose handshake failed. The node hears of it if it had dialed.
    fn give_up_handshake(&mut self, handshake: UnderWay, why: &str) {
        let UnderWay { id, side, peer, .. } = handshake;
        self.connections.remove(id);
        match side {
            Side::Accepted => tracing::debug!(peer = peer.address, why, "a handshake failed"),
            Side::Dialed => self.dials.fail(id, format!("{}: {why}", peer.address)),
        }
    }

    /// Goes on with the handshakes whose sockets are ready, and ends those whose time is up.
    pub(super) fn advance_handshakes(&mut self, events: &mut Vec<Event>) {
        for _ in 0..self.handshakes.limits.steps_max {
            let Some(id) = self.handshakes.ready.pop_front() else { break };
            let Some(connection) = self.connections.find(id) else { continue };
            match connection.transport.shake() {
                Handshake::Pending => {}
                Handshake::Done => self.end_handshake(id, events),
                Handshake::Failed(why) => {
                    if let Some(handshake) = self.handshakes.take(id) {
                        self.give_up_handshake(handshake, &why);
                    }
                }
            }
        }
        let Some(oldest) = self.handshakes.under_way.front() else { return };
        if oldest.deadline_nanos <= self.clock.monotonic().0
            && let Some(late) = self.handshakes.under_way.pop_front()
        {
            self.give_up_handshake(late, "the handshake took too long");
        }
    }

    /// Hands a connection to the node after its handshake, with the bytes that have come already.
    fn end_handshake(&mut self, id: ConnectionId, events: &mut Vec<Event>) {
        let Some(UnderWay { side, mut peer, .. }) = self.handshakes.take(id) else { return };
        let Some(connection) = self.connections.find(id) else { return };
        connection.is_handshaking = false;
        let certificate = connection.transport.peer_certificate();
        peer.common_name = certificate.and_then(common_name).map(<[u8]>::to_vec);
        connection.is_readable = true;
        connection.is_listed = true;
        let has_ended = connection.is_ending;
        self.listed.push(id);
        events.push(match side {
            Side::Accepted => Event::Accepted { connection: id, peer },
            Side::Dialed => Event::Connected { connection: id, peer },
        });
        events.push(Event::Readable(id));
        if has_ended {
            events.push(Event::Ended(id));
        }
    }
}
