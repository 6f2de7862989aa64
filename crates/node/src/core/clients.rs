//! The clients of a loop: their sessions, the queues in which they stand, and how they come to be
//! closed.

use super::Core;
use super::sessions::Sessions;
use crate::session::Session;
use base::{ConnectionId, MonotonicNanos, Sequence};
use engine::eviction::Room;
use engine::work::Work;
use resp::Reply;
use shard::tiering::RoomFor;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use txlog::Gate;

/// The clients of a loop, and in which queues of it they stand.
#[derive(Default)]
pub struct Clients {
    /// The sessions, by connection.
    pub(crate) sessions: Sessions,
    /// Sessions by CLIENT ID.
    pub(crate) by_id: BTreeMap<u64, ConnectionId>,
    /// Sessions so far, in all lives: the newest CLIENT ID.
    pub(crate) created: u64,
    /// Sessions with bytes to receive, in the order in which they came.
    pub(crate) receiving: VecDeque<ConnectionId>,
    /// Sessions with input to execute, in the order in which it came.
    pub(crate) ready: VecDeque<ConnectionId>,
    /// Sessions with bytes that may be sent.
    pub(crate) flushing: Vec<ConnectionId>,
    /// Sessions that wait for a record, in the order of records.
    pub(crate) held: VecDeque<(Sequence, ConnectionId)>,
    /// Blocked sessions by deadline.
    pub(crate) deadlines: BTreeSet<(MonotonicNanos, ConnectionId)>,
    /// Sessions that run WAIT.
    pub(crate) waiting_for_replicas: BTreeSet<ConnectionId>,
    /// Sessions whose parked request is judged again.
    pub(crate) resuming: VecDeque<ConnectionId>,
    /// Sessions to be closed at the end of the turn.
    pub(crate) closing: Vec<ConnectionId>,
    /// Sessions whose wait the running unit ended, and where their replies begin.
    pub(crate) ended: Vec<(ConnectionId, u64)>,
    /// Sessions that run MONITOR.
    pub(crate) monitors: BTreeSet<ConnectionId>,
    /// Lines that the running unit has for them.
    pub(crate) monitored: Monitored,
    /// Reply bytes that wait for the log, over all sessions.
    pub held_bytes: usize,
}

/// Lines for MONITOR, with the sender of each command, until their unit ends.
#[derive(Default)]
pub(crate) struct Monitored {
    pub lines: Vec<(ConnectionId, String)>,
    pub bytes: usize,
}

impl Clients {
    /// Closes a connection at the end of the turn.
    pub(crate) fn close_later(&mut self, connection: ConnectionId) {
        if !self.closing.contains(&connection) {
            self.closing.push(connection);
        }
    }

    /// What was written to a session waits for `observed`; it is sent if that is durable.
    fn hold(&mut self, client: ConnectionId, observed: Sequence, durable: Sequence) {
        let session = self.sessions.get_mut(client).expect(HERE);
        let before = session.output.held_bytes();
        let waits_for = session.output.hold(observed, durable);
        self.held_bytes += session.output.held_bytes() - before;
        match waits_for {
            Some(sequence) if sequence > session.flow.waits_for => {
                session.flow.waits_for = sequence;
                self.held.push_back((sequence, client));
            }
            Some(_) => {}
            None if session.flow.is_flushing => {}
            None => {
                session.flow.is_flushing = true;
                self.flushing.push(client);
            }
        }
    }

    /// Whether a connection's session is here.
    pub(crate) fn has(&self, client: ConnectionId) -> bool {
        self.sessions.get(client).is_some()
    }

    /// The session of a client that is here: whose request runs, or who was just looked up. Who
    /// may have gone is asked for by [`Sessions::get`].
    pub(crate) fn at(&self, client: ConnectionId) -> &Session {
        self.sessions.get(client).expect(HERE)
    }

    /// As [`Self::at`], to change it.
    pub(crate) fn at_mut(&mut self, client: ConnectionId) -> &mut Session {
        self.sessions.get_mut(client).expect(HERE)
    }

    /// Where a client's reply is written, as [`Self::at`].
    pub(crate) fn reply(&mut self, client: ConnectionId) -> &mut Reply {
        self.at_mut(client).reply()
    }
}

impl Core {
    /// How many clients are connected.
    pub fn client_count(&self) -> usize {
        self.clients.by_id.len()
    }

    /// All sessions, by CLIENT ID.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.clients.by_id.values().filter_map(|it| self.clients.sessions.get(*it))
    }

    /// Frees big values away from the loop.
    pub(crate) fn discard(&mut self, garbage: Vec<Box<dyn Any + Send>>) {
        for value in garbage {
            (self.process.garbage)(value);
        }
    }

    /// Counts steps of long work, as commands of the engine do.
    pub(crate) fn work(&self) -> Work {
        self.shard.engine.keyspace.work.clone()
    }

    /// Whether `maxmemory` is reached, by the data and what clients occupy.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        !self.ignores_memory_limit()
            && self.shard.engine.keyspace.is_over_limit(self.client_bytes())
    }

    /// Makes room while `maxmemory` is exceeded, a bounded part: values go to the tier, or if
    /// none can, or there is none, keys are evicted. Evicting is writing: no key goes while writes
    /// are paused or the log takes none, which the gate tells those who want to write. `sender`
    /// is the client whose request asks; for whom it is counts where there is a tier.
    pub(crate) fn make_room(&mut self, sender: Option<ConnectionId>, room_for: RoomFor) -> Room {
        if let Some(room) = self.spill_part(room_for) {
            return room;
        }
        if !self.is_out_of_memory() {
            return Room::Enough;
        }
        let stands_still = self.pause.paused().is_some()
            || self.persistence.is_loading
            || self.is_snapshot_behind();
        if stands_still || !matches!(self.shard.gate(), Gate::Open) {
            return Room::Later;
        }
        // What a client too many occupies costs no keys.
        self.evict_clients();
        let beside = self.client_bytes();
        self.shard.unit.clear();
        let room = self.shard.engine.evict(
            self.turn.now,
            self.process.options.limits.evicted_keys_max,
            beside,
            &mut self.shard.unit,
            &mut self.interest,
        );
        if self.shard.unit.changes > 0 {
            let observed = self.settle_unit();
            self.spread(observed, sender);
        }
        room
    }

    /// Closes a session once the turn ends, whatever it still has to say.
    pub fn close(&mut self, connection: ConnectionId) {
        if self.clients.has(connection) {
            self.close_session(connection);
        } else {
            self.clients.close_later(connection);
        }
    }

    /// As [`Self::close`], for a session that is here. It waits for nothing any more: what comes
    /// until the end of the turn is for others.
    pub(crate) fn close_session(&mut self, client: ConnectionId) {
        self.unblock(client);
        self.clients.at_mut(client).flow.is_closing = true;
        self.clients.close_later(client);
    }

    /// Puts a session in the queue of those with bytes to receive.
    pub(crate) fn receive_later(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if !std::mem::replace(&mut session.flow.is_receiving, true) {
            self.clients.receiving.push_back(client);
        }
    }

    /// Puts a session in the queue of those with input to execute.
    pub(crate) fn enqueue(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if !std::mem::replace(&mut session.flow.is_queued, true) {
            self.clients.ready.push_back(client);
        }
    }

    /// What was written to a session waits for `observed`; it is sent when that is durable.
    pub(crate) fn hold(&mut self, client: ConnectionId, observed: Sequence) {
        self.check_output(client);
        self.keep(client, observed);
    }

    /// As [`Self::hold`], for an output that was compared with its limit.
    pub(super) fn keep(&mut self, client: ConnectionId, observed: Sequence) {
        self.clients.hold(client, observed, self.shard.tracker.durable());
        self.count_memory(client);
    }

    /// Puts a session in the list of those with bytes that may be sent, or to be read from again.
    pub(crate) fn flush_later(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if !std::mem::replace(&mut session.flow.is_flushing, true) {
            self.clients.flushing.push(client);
        }
    }

    /// The log became durable further: what waited for it may leave.
    pub(crate) fn release(&mut self) {
        let durable = self.shard.tracker.durable();
        while let Some(&(sequence, connection)) = self.clients.held.front() {
            if sequence > durable {
                break;
            }
            self.clients.held.pop_front();
            let Some(session) = self.clients.sessions.get_mut(connection) else { continue };
            let before = session.output.held_bytes();
            let has_bytes = session.output.release(durable);
            let released = before - session.output.held_bytes();
            let goes_on = has_bytes || session.flow.is_closing;
            self.clients.held_bytes -= released;
            if goes_on {
                self.flush_later(connection);
            }
        }
    }
}

/// Sessions end when the turn does, in `Server::close_sessions`, and by nothing else.
const HERE: &str = "a session is there until the end of the turn in which it closes";
