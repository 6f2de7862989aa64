//! Replicas as witnesses: WAIT counts those that have a write, `min-replicas-to-write` those that
//! are near enough. Replicas of Redis count as those of the log do, but for WAITAOF, which counts
//! copies on stable storage: what a replica of the log applies is in the log.
//!
//! Neither is needed for durability, which is the log's. They tell that a copy elsewhere has it.

use crate::server::Server;
use crate::session::{Blocked, Written};
use base::{ConnectionId, Sequence};

impl Server {
    /// The position of a client's last write. `is_durable`: copies must be on stable storage.
    pub(crate) fn written_by(&self, client: ConnectionId, is_durable: bool) -> Written {
        let session = self.core.clients.at(client);
        Written { offset: session.fed_offset, record: session.wrote, is_durable }
    }

    /// The number of replicas that have this write.
    pub(crate) fn copies(&self, written: Written) -> usize {
        let fed = if written.is_durable { 0 } else { self.feed.through(written.offset) };
        fed + self.members.through(&self.core, written.record)
    }

    /// Answers with the number of replicas that have this write. WAITAOF also gets 1 for this
    /// server: its reply leaves only when the write is durable.
    pub(crate) fn reply_copies(&mut self, client: ConnectionId, written: Written) {
        let count = self.copies(written) as i64;
        let reply = self.core.clients.reply(client);
        if written.is_durable {
            reply.array(2);
            reply.integer(1);
        }
        reply.integer(count);
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
    /// else bytes of the stream of commands. Behind a master, how far it is in the master's stream.
    pub(crate) fn offset_shown(&self) -> u64 {
        if self.core.master().is_some()
            && let Some(offset) = self.link.offset()
        {
            return offset;
        }
        let is_log = self.members.reports.iter().len() > 0;
        let is_fed = self.feed.backlog().is_some();
        if is_log && !is_fed {
            self.core.shard.appended().sequence.0
        } else {
            self.core.stream.offset
        }
    }

    /// Answers a WAIT when `wanted` replicas have the write, and asks them; or when this many
    /// milliseconds have passed (0: no limit). Within a transaction it answers at once.
    pub(crate) fn wait_for_replicas(
        &mut self,
        client: ConnectionId,
        written: Written,
        wanted: i64,
        millis: u64,
    ) {
        if self.copies(written) as i64 >= wanted || self.core.clients.at(client).is_in_exec {
            self.reply_copies(client, written);
            return;
        }
        let deadline = (millis > 0).then_some(self.core.turn.monotonic.after_millis(millis));
        self.core.clients.waiting_for_replicas.insert(client);
        self.core.block(client, Blocked::Replicas { written, wanted, deadline });
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
            let Some(&Blocked::Replicas { written, wanted, .. }) = blocked else { continue };
            if self.copies(written) as i64 >= wanted {
                self.answer_wait(client, written);
            } else {
                self.core.clients.waiting_for_replicas.insert(client);
            }
        }
    }

    /// Answers a client's WAIT and ends it.
    fn answer_wait(&mut self, client: ConnectionId, written: Written) {
        self.core.unblock(client);
        let end = self.core.clients.at(client).output.end();
        self.reply_copies(client, written);
        self.core.finish_reply(client, end, Sequence::ZERO);
        self.core.enqueue(client);
    }
}
