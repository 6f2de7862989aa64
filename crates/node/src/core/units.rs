//! The end of a unit and of a reply: what they must wait for, and whom they tell.

use super::Core;
use super::asker::Asker;
use super::client_limits::exceeds_output_limit;
use super::pause::Paused;
use crate::session::ClientKind;
use base::{ConnectionId, Sequence};
use catalog::Demand;
use engine::refusal::Refusal;

impl Core {
    /// Whether a request must wait for the end of the pause.
    pub(crate) fn must_pause(&self, asker: &Asker, demand: Demand) -> bool {
        let Some(paused) = self.pause.paused() else { return false };
        match asker.kind {
            // Who waits for them to catch up waits during a pause.
            ClientKind::Replica | ClientKind::Member => false,
            // Its requests wait in its input, where the place in the stream is known.
            ClientKind::Master => false,
            ClientKind::Client => match paused {
                Paused::All => true,
                Paused::Writes => demand.has(Demand::REPLICATION),
            },
        }
    }

    /// Replaces whatever the command wrote by its refusal.
    pub(crate) fn refuse(&mut self, client: ConnectionId, written: u64, refusal: &Refusal) {
        self.process.statistics.error(refusal.code());
        let session = self.clients.at(client);
        if session.is_master() && !session.is_in_script {
            self.master_refused.get_or_insert_with(|| refusal.0.to_string());
        }
        self.clients.at_mut(client).output.truncate(written);
        self.clients.reply(client).error(refusal.0.as_bytes());
    }

    /// The record that the unit's reply waits for; dirties the watchers of what it changed.
    pub(crate) fn settle_unit(&mut self) -> Sequence {
        let observed = self.shard.settle_unit(self.turn.now);
        self.stream.gather(&self.shard.unit);
        if !self.shard.unit.garbage.is_empty() {
            let garbage = std::mem::take(&mut self.shard.unit.garbage);
            self.discard(garbage);
        }
        if !self.clients.ended.is_empty() {
            self.hold_ended(observed.max(self.shard.newest_executed()));
        }
        // Behind the ends of waits: what CLIENT REPLY drops of them is not held yet.
        if !self.clients.monitored.lines.is_empty() {
            self.hold_monitors();
        }
        observed
    }

    /// Delivers a unit's messages, dirties the sessions that watch what it changed, and sends
    /// invalidations to caches.
    #[inline]
    pub(crate) fn spread(&mut self, observed: Sequence, sender: Option<ConnectionId>) {
        if self.interest.has_notices() {
            self.spread_notices(observed, sender);
        }
    }

    fn spread_notices(&mut self, observed: Sequence, sender: Option<ConnectionId>) {
        for watcher in std::mem::take(&mut self.interest.dirtied) {
            if self.guards.note_changed(watcher) {
                continue;
            }
            if let Some(session) = self.clients.sessions.get_mut(ConnectionId(watcher.0)) {
                session.is_dirty = true;
            }
        }
        let messages = std::mem::take(&mut self.interest.messages);
        if !messages.is_empty() {
            self.cut_overdrawn();
            self.publish(&messages, observed, sender);
        }
        if self.interest.caches.has_notices() {
            self.tell_invalidated(sender);
        }
    }

    /// Holds what was written behind the stream offset `written` until `observed` is durable, as
    /// CLIENT REPLY says.
    pub(crate) fn finish_reply(&mut self, client: ConnectionId, written: u64, observed: Sequence) {
        let Self { clients, process, turn, .. } = self;
        let session = clients.at_mut(client);
        let must_close = session.is_replica() && session.output.end() > written;
        if must_close {
            // It would stand between the commands that the replica is told.
            tracing::warn!(client = session.who.id, "a replica sent a request: disconnected");
            session.output.truncate(written);
        }
        let is_over = session.finish(written) || exceeds_output_limit(session, process, turn);
        if must_close {
            self.close_session(client);
        } else if is_over {
            self.cut_off(client);
        }
        self.keep(client, observed);
    }

    /// Changes of keys by units that have ended: another number if there was one since.
    pub(crate) fn changes(&self) -> u64 {
        self.shard.engine.keyspace.statistics.dirty.get()
    }

    /// The unit that ends is a client's, and changed something: its WAIT asks who has that.
    pub(crate) fn note_wrote(&mut self, client: ConnectionId, observed: Sequence) {
        if self.shard.unit.changes > 0 {
            let session = self.clients.at_mut(client);
            session.fed_offset = self.stream.offset;
            session.wrote = observed;
        }
    }

    /// Ends a unit that no client asked for.
    pub(crate) fn end_own_unit(&mut self) {
        if self.shard.unit.changes > 0 {
            let observed = self.settle_unit();
            self.spread(observed, None);
        }
        if self.shard.is_record_full() {
            self.shard.commit(self.turn.now);
        }
    }
}
