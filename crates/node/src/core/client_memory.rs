//! The limit `maxmemory-clients` (Redis 7.0, "Client eviction"): if all clients together occupy
//! more memory, the largest are disconnected.
//!
//! What a session occupies is counted again wherever it may have changed, which takes no walk; the
//! sum is looked at once a turn. Without the limit nothing is counted.

use crate::core::Core;
use crate::session::Session;
use base::{ConnectionId, MonotonicNanos};

/// The least limit that is obeyed, in bytes, as in Redis: below it nobody could connect to set
/// another.
const LIMIT_BYTES_MIN: u64 = 128 << 10;

/// Nanoseconds until clients are looked through again when those who may be disconnected were not
/// enough. As long as between two samples of all sessions.
const FUTILE_NANOS: u64 = 100_000_000;

/// What the clients occupy together, as far as it was counted.
#[derive(Default)]
pub(crate) struct ClientMemory {
    bytes: usize,
    /// Everybody who may be disconnected was, at that time, and it was not enough.
    futile_since: Option<MonotonicNanos>,
}

/// Whether a session counts: a normal client or a subscriber, as Redis calls them. Masters and
/// replicas of any kind do not.
fn is_client(session: &Session) -> bool {
    !session.is_master() && !session.is_any_replica()
}

impl Core {
    /// Counts anew what a session occupies.
    pub(crate) fn count_memory(&mut self, client: ConnectionId) {
        if self.process.settings.maxmemory_clients > 0 {
            let session = self.clients.at_mut(client);
            let bytes = if is_client(session) { session.memory_bytes() } else { 0 };
            let counted = std::mem::replace(&mut session.flow.counted_bytes, bytes);
            self.clients.sessions.memory.bytes += bytes;
            self.clients.sessions.memory.bytes -= counted;
        }
    }

    /// A session goes.
    pub(crate) fn forget_memory(&mut self, client: ConnectionId) {
        self.clients.sessions.memory.bytes -= self.clients.at(client).flow.counted_bytes;
    }

    /// Disconnects the largest clients while all together occupy as much as `maxmemory-clients`.
    pub(crate) fn evict_clients(&mut self) {
        let limit = self.process.settings.maxmemory_clients;
        if limit == 0 || (self.clients.sessions.memory.bytes as u64) < limit.max(LIMIT_BYTES_MIN) {
            return;
        }
        let futile = self.clients.sessions.memory.futile_since;
        if futile.is_some_and(|then| self.turn.monotonic.since(then) < FUTILE_NANOS) {
            return;
        }
        self.evict_largest(limit.max(LIMIT_BYTES_MIN));
    }

    #[cold]
    fn evict_largest(&mut self, limit: u64) {
        let mut candidates: Vec<(usize, ConnectionId)> = Vec::new();
        for connection in self.clients.by_id.values().copied().collect::<Vec<_>>() {
            if !self.clients.has(connection) {
                continue;
            }
            // What was sent since it was counted is gone.
            self.count_memory(connection);
            let session = self.clients.at(connection);
            if is_client(session) && !session.no_evict && !session.flow.is_cut {
                candidates.push((session.flow.counted_bytes, connection));
            }
        }
        candidates.sort_unstable();
        let mut left = self.clients.sessions.memory.bytes as u64;
        while left >= limit {
            let Some((bytes, connection)) = candidates.pop() else { break };
            left -= bytes as u64;
            self.evict_client(connection, bytes);
        }
        let was_futile = self.clients.sessions.memory.futile_since.take().is_some();
        if left >= limit {
            self.clients.sessions.memory.futile_since = Some(self.turn.monotonic);
            if !was_futile {
                tracing::warn!(
                    bytes = left,
                    "clients that may not be evicted occupy more than maxmemory-clients"
                );
            }
        }
    }

    fn evict_client(&mut self, connection: ConnectionId, bytes: usize) {
        if !self.clients.has(connection) {
            return;
        }
        tracing::info!(
            client = self.clients.at(connection).who.id,
            peer = self.clients.at(connection).who.peer,
            bytes,
            "evicts a client"
        );
        self.process.statistics.evicted_clients += 1;
        self.clients.at_mut(connection).flow.is_cut = true;
        self.close_session(connection);
    }
}
