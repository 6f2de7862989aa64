//! The memory of clients, which counts for two limits: if all together occupy more than
//! `maxmemory-clients` (Redis 7.0, "Client eviction"), the largest are disconnected; and if they
//! and the data occupy more than `maxmemory`, keys are evicted.
//!
//! What a session occupies is counted again wherever it may have changed, which takes no walk; the
//! sum is looked at once a turn, and before a command that needs memory. Without a limit nothing is
//! counted.

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
/// replicas of any kind do not, nor does one that is about to be closed for its size.
fn is_client(session: &Session) -> bool {
    !session.is_master() && !session.is_any_replica() && !session.flow.is_cut
}

impl Core {
    /// Counts anew what a session occupies.
    #[inline]
    pub(crate) fn count_memory(&mut self, client: ConnectionId) {
        if self.counts_clients() {
            self.count_memory_anew(client);
        }
    }

    fn count_memory_anew(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        let bytes = if is_client(session) { session.memory_bytes() } else { 0 };
        let counted = std::mem::replace(&mut session.flow.counted_bytes, bytes);
        self.clients.sessions.memory.bytes += bytes;
        self.clients.sessions.memory.bytes -= counted;
    }

    /// Whether there is a limit that counts what clients occupy.
    pub(crate) fn counts_clients(&self) -> bool {
        let settings = &self.process.settings;
        settings.maxmemory_clients > 0 || self.shard.engine.keyspace.settings.maxmemory > 0
    }

    /// What clients occupy, as far as a limit has them counted, in bytes.
    pub(crate) fn client_bytes(&self) -> u64 {
        self.clients.sessions.memory.bytes as u64
    }

    /// Counts what all sessions occupy: a limit has changed.
    pub(crate) fn count_everybody(&mut self) {
        for connection in self.clients.by_id.values().copied().collect::<Vec<_>>() {
            if self.clients.has(connection) {
                self.count_memory(connection);
            }
        }
    }

    /// A session goes.
    pub(crate) fn forget_memory(&mut self, client: ConnectionId) {
        self.clients.sessions.memory.bytes -= self.clients.at(client).flow.counted_bytes;
    }

    /// Disconnects the largest clients while all together occupy more than `maxmemory-clients`.
    pub(crate) fn evict_clients(&mut self) {
        let limit = self.process.settings.maxmemory_clients;
        if limit == 0 || self.client_bytes() <= limit.max(LIMIT_BYTES_MIN) {
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
            if is_client(session) && !session.no_evict {
                candidates.push((session.flow.counted_bytes, connection));
            }
        }
        candidates.sort_unstable();
        let mut left = self.clients.sessions.memory.bytes as u64;
        while left > limit {
            let Some((bytes, connection)) = candidates.pop() else { break };
            left -= bytes as u64;
            self.evict_client(connection, bytes);
        }
        let was_futile = self.clients.sessions.memory.futile_since.take().is_some();
        if left > limit {
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
        // It counts no more, though its memory is freed at the end of the turn only.
        self.count_memory(connection);
    }
}
