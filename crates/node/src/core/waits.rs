//! Clients that wait: for keys, for another server, for what their request needs before it can run.

use super::Core;
use crate::session::{Blocked, OwnedRequest, Why};
use base::{ConnectionId, MonotonicNanos, Sequence};
use engine::ids::WaiterId;
use engine::value::Awaited;

impl Core {
    /// Leaves a session waiting. A client that has hung up is not left waiting for a key: what
    /// came for it would be lost. Nor for replicas or the end of a pause, which may never come.
    pub(crate) fn block(&mut self, client: ConnectionId, blocked: Blocked) {
        let flow = &self.clients.at(client).flow;
        if (flow.peer_is_ending || flow.peer_has_closed) && blocked.ends_with_peer() {
            self.hang_up(client);
            return;
        }
        if let Blocked::Keys { wait, .. } = &blocked {
            let waiter = WaiterId(client.0);
            let hears_end = wait.awaited == Awaited::Group;
            for key in &wait.keys {
                self.shard.engine.keyspace.work.step();
                self.interest.waiters.add(waiter, wait.database, key, hears_end);
            }
        }
        if let Some(deadline) = blocked.deadline() {
            self.clients.deadlines.insert((deadline, client));
        }
        self.clients.at_mut(client).blocked = Some(blocked);
    }

    /// The peer sends nothing more, and its wait is over: closes now if no output is pending, else
    /// after it is sent.
    pub(crate) fn hang_up(&mut self, client: ConnectionId) {
        self.unblock(client);
        let session = self.clients.at_mut(client);
        session.flow.is_closing = true;
        if session.output.pending_bytes() == 0 {
            self.close_session(client);
        }
    }

    /// Leaves a client waiting with a request that is judged again from the gate once whatever
    /// it waits for has put the client into [`crate::core::Clients::resuming`].
    pub(crate) fn park(
        &mut self,
        client: ConnectionId,
        why: Why,
        request: OwnedRequest,
        deadline: Option<MonotonicNanos>,
    ) {
        let turn = self.turn.number;
        self.block(client, Blocked::Parked { why, request, deadline, turn });
    }

    /// Ends a session's wait, whatever comes next; what it waited for.
    pub(crate) fn unblock(&mut self, client: ConnectionId) -> Option<Blocked> {
        let blocked = self.clients.at_mut(client).blocked.take()?;
        if let Blocked::Keys { wait, .. } = &blocked {
            let waiter = WaiterId(client.0);
            for key in &wait.keys {
                self.shard.engine.keyspace.work.step();
                self.interest.waiters.remove(waiter, wait.database, key);
            }
        }
        if matches!(blocked, Blocked::Replicas { .. }) {
            self.clients.waiting_for_replicas.remove(&client);
        }
        if let Some(deadline) = blocked.deadline() {
            self.clients.deadlines.remove(&(deadline, client));
        }
        Some(blocked)
    }

    /// Holds the replies of those whose wait was ended since the last call, and goes on with them.
    /// That nothing came reveals every write to the keys so far. That a unit ended the wait reveals
    /// the unit, so this is called when the record that holds it is known: a unit that takes long
    /// or has many effects comes to stand behind others.
    pub(crate) fn hold_ended(&mut self, observed: Sequence) {
        for (connection, written) in std::mem::take(&mut self.clients.ended) {
            if !self.clients.has(connection) {
                continue;
            }
            self.finish_reply(connection, written, observed);
            self.enqueue(connection);
        }
    }
}
