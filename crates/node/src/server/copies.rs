//! Replicas as witnesses: WAIT counts those that have a write, `min-replicas-to-write` those that
//! are near enough. Replicas of Redis count as those of the log do.
//!
//! Neither is needed for durability, which is the log's. They tell that a copy elsewhere has it.

use crate::server::Server;
use crate::session::Blocked;
use base::{ConnectionId, MonotonicNanos, Sequence};

impl Server {
    /// How many replicas have executed the stream through `offset`, or applied the record `wrote`.
    pub(crate) fn copies(&self, offset: u64, wrote: Sequence) -> usize {
        self.feed.through(offset) + self.members.through(&self.core, wrote)
    }

    /// How many replicas were heard of within `min-replicas-max-lag`.
    pub(crate) fn near_replicas(&self) -> usize {
        let lag_max = u64::from(self.core.process.settings.min_replicas_max_lag);
        self.feed.near(&self.core, lag_max)
            + self.members.reports.near(lag_max, self.core.turn.monotonic)
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

    /// How far this server is, in what its replicas count: records if they are replicas of the log,
    /// else bytes of the stream of commands.
    pub(crate) fn offset_shown(&self) -> u64 {
        let is_log = self.members.reports.iter().len() > 0;
        let is_fed = self.feed.backlog().is_some();
        if is_log && !is_fed {
            self.core.shard.appended().sequence.0
        } else {
            self.core.stream.offset
        }
    }

    /// Leaves a client waiting until `wanted` replicas have what it wrote, and asks them.
    pub(crate) fn wait_for_replicas(
        &mut self,
        client: ConnectionId,
        wanted: i64,
        deadline: Option<MonotonicNanos>,
    ) {
        let session = self.core.clients.at(client);
        let (offset, wrote) = (session.fed_offset, session.wrote);
        self.core.clients.waiting_for_replicas.insert(client);
        self.core.block(client, Blocked::Replicas { offset, wrote, wanted, deadline });
        if self.core.shard.unit.feed.is_on() {
            self.core.stream.tell(&["REPLCONF", "GETACK", "*"]);
        }
    }

    /// Answers who waited for no more replicas than have it now.
    pub(crate) fn answer_waiters(&mut self) {
        for client in std::mem::take(&mut self.core.clients.waiting_for_replicas) {
            let session = self.core.clients.sessions.get(client);
            let blocked = session.and_then(|session| session.blocked.as_ref());
            // Who waits no longer is forgotten.
            let Some(Blocked::Replicas { offset, wrote, wanted, .. }) = blocked else { continue };
            let have = self.copies(*offset, *wrote);
            if have as i64 >= *wanted {
                self.answer_wait(client, have);
            } else {
                self.core.clients.waiting_for_replicas.insert(client);
            }
        }
    }

    /// Ends a client's WAIT with a count.
    fn answer_wait(&mut self, client: ConnectionId, count: usize) {
        self.core.unblock(client);
        let written = self.core.clients.at(client).output.end();
        self.core.clients.reply(client).integer(count as i64);
        self.core.finish_reply(client, written, Sequence::ZERO);
        self.core.enqueue(client);
    }
}
