//! Replicas as witnesses: WAIT counts those that have a write, `min-replicas-to-write` those that
//! are near enough.
//!
//! Neither is needed for durability, which is the log's. They tell that a copy elsewhere has it.

use super::Server;
use crate::session::Blocked;
use base::{ConnectionId, MonotonicNanos, Sequence};

impl Server {
    /// How many replicas have executed the stream through `offset`.
    fn replicas_through(&self, offset: u64) -> usize {
        let replicas = self.feed.replicas.iter().filter_map(|connection| {
            let session = self.core.clients.sessions.get(*connection)?;
            session.replica.as_ref()
        });
        replicas.filter(|it| it.is_online() && it.acknowledged >= offset).count()
    }

    /// How many replicas have executed the stream through `offset`, or applied the record `wrote`.
    pub(crate) fn copies(&self, offset: u64, wrote: Sequence) -> usize {
        self.replicas_through(offset) + self.members_through(wrote)
    }

    /// How many replicas were heard of within `min-replicas-max-lag`.
    pub(crate) fn near_replicas(&self) -> usize {
        let lag_max = u64::from(self.core.process.settings.min_replicas_max_lag);
        let is_near = |connection: &&ConnectionId| {
            let session = self.core.clients.sessions.get(**connection);
            let replica = session.and_then(|session| session.replica.as_ref());
            replica.is_some_and(|it| {
                it.is_online()
                    && self.core.turn.monotonic.seconds_since(it.acknowledged_at) <= lag_max
            })
        };
        let members = self.near_members(lag_max);
        self.feed.replicas.iter().filter(is_near).count() + members
    }

    /// Whether writes must be refused because too few replicas are near.
    pub(crate) fn lacks_replicas(&self) -> bool {
        if self.core.is_replica() {
            return false;
        }
        let wanted = self.core.process.settings.min_replicas_to_write as usize;
        wanted > 0
            && self.core.process.settings.min_replicas_max_lag > 0
            && self.near_replicas() < wanted
    }

    /// Leaves a session waiting until `wanted` replicas have what it wrote, and asks them.
    pub(crate) fn wait_for_replicas(
        &mut self,
        client: ConnectionId,
        wanted: i64,
        deadline: Option<MonotonicNanos>,
    ) {
        let (offset, wrote) =
            (self.core.clients.at(client).fed_offset, self.core.clients.at(client).wrote);
        self.feed.waiters.insert(client);
        self.core.block(client, Blocked::Replicas { offset, wrote, wanted, deadline });
        if self.core.shard.unit.feed.is_on() {
            self.core.stream.tell(&["REPLCONF", "GETACK", "*"]);
        }
    }

    /// A replica has acknowledged: answers whom that was enough for.
    pub(crate) fn note_acknowledged(&mut self, client: ConnectionId, offset: u64) {
        let now = self.core.turn.monotonic;
        let Some(replica) = &mut self.core.clients.at_mut(client).replica else { return };
        replica.acknowledged = replica.acknowledged.max(offset);
        replica.acknowledged_at = now;
        self.answer_waiters();
    }

    /// Answers who waited for no more replicas than have it now.
    pub(crate) fn answer_waiters(&mut self) {
        for connection in std::mem::take(&mut self.feed.waiters) {
            let session = self.core.clients.sessions.get(connection);
            let blocked = session.and_then(|session| session.blocked.as_ref());
            // Who waits no longer is forgotten.
            let Some(Blocked::Replicas { offset, wrote, wanted, .. }) = blocked else { continue };
            let have = self.copies(*offset, *wrote);
            if have as i64 >= *wanted {
                self.answer_wait(connection, have);
            } else {
                self.feed.waiters.insert(connection);
            }
        }
    }

    /// Ends a session's WAIT with a count.
    pub(crate) fn answer_wait(&mut self, client: ConnectionId, count: usize) {
        self.core.unblock(client);
        let written = self.core.clients.at(client).output.end();
        self.core.clients.reply(client).integer(count as i64);
        self.core.finish_reply(client, written, base::Sequence::ZERO);
        self.core.enqueue(client);
    }
}
