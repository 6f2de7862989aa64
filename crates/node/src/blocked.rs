//! Clients that wait for keys: first come, first served, after the unit that brought something.
//!
//! A blocked request is simply run again. If it finds something its reply belongs to the record of
//! the unit that woke it; if not, it goes on waiting at its old place in the queue.

use crate::server::Server;
use crate::session::{Blocked, Session};
use base::ConnectionId;
use engine::unit::{TimeoutReply, WaiterId};

impl Server {
    /// Leaves a session waiting.
    pub(crate) fn block(&mut self, session: &mut Session, blocked: Blocked) {
        if let Blocked::Keys { wait, .. } = &blocked {
            let waiter = WaiterId(session.connection.0);
            for key in &wait.keys {
                self.shard.engine.keyspace.waiters.add(waiter, wait.database, key);
            }
            if let Some(deadline) = wait.deadline {
                self.deadlines.insert((deadline, session.connection));
            }
        }
        session.blocked = Some(blocked);
    }

    /// Ends a session's wait, whatever comes next; what it waited for.
    pub(crate) fn unblock(&mut self, session: &mut Session) -> Option<Blocked> {
        let blocked = session.blocked.take()?;
        if let Blocked::Keys { wait, .. } = &blocked {
            let waiter = WaiterId(session.connection.0);
            for key in &wait.keys {
                self.shard.engine.keyspace.waiters.remove(waiter, wait.database, key);
            }
            if let Some(deadline) = wait.deadline {
                self.deadlines.remove(&(deadline, session.connection));
            }
        }
        Some(blocked)
    }

    /// Serves the clients that wait for keys which the last unit made ready; serving one may make
    /// further keys ready.
    pub(crate) fn wake_ready(&mut self) {
        while !self.shard.unit.ready.is_empty() {
            for (database, key) in std::mem::take(&mut self.shard.unit.ready) {
                for waiter in self.shard.engine.keyspace.waiters.queue(database, &key) {
                    self.serve(ConnectionId(waiter.0));
                }
            }
        }
    }

    /// Runs a blocked session's request again.
    fn serve(&mut self, connection: ConnectionId) {
        let Some(mut session) = self.sessions.remove(&connection) else { return };
        let Some(blocked) = session.blocked.take() else {
            self.sessions.insert(connection, session);
            return;
        };
        let Blocked::Keys { request, wait } = blocked else {
            session.blocked = Some(blocked);
            self.sessions.insert(connection, session);
            return;
        };
        let ready = std::mem::take(&mut self.shard.unit.ready);
        self.shard.unit.clear();
        self.shard.unit.ready = ready;
        let mut context = session.context(self.now);
        context.database = wait.database;
        context.retry = true;
        let written = session.output.reply.len();
        self.lap = self.options.clock.monotonic();
        self.call(&mut session, request.command, request.args(), context);
        let waits_on = self.shard.unit.wait.take().is_some();
        session.blocked = Some(Blocked::Keys { request, wait });
        if !waits_on {
            self.unblock(&mut session);
            let observed = self.settle_unit();
            self.finish_reply(&mut session, written, observed);
            self.spread(observed, Some(&mut session));
            self.enqueue(&mut session);
        }
        self.sessions.insert(connection, session);
    }

    /// Answers the sessions whose time is up.
    pub(crate) fn time_out(&mut self) {
        while let Some(&(deadline, connection)) = self.deadlines.first() {
            if deadline > self.now {
                break;
            }
            self.deadlines.pop_first();
            self.end_wait(connection, |session, on_timeout| match on_timeout {
                TimeoutReply::Null => session.reply().null(),
                TimeoutReply::NullArray => session.reply().null_array(),
            });
        }
    }

    /// Ends a session's wait for keys with a reply of the caller's; whether it waited.
    pub fn end_wait(
        &mut self,
        connection: ConnectionId,
        answer: impl FnOnce(&mut Session, TimeoutReply),
    ) -> bool {
        let Some(mut session) = self.sessions.remove(&connection) else { return false };
        let waited = matches!(session.blocked, Some(Blocked::Keys { .. }));
        if waited && let Some(Blocked::Keys { wait, .. }) = self.unblock(&mut session) {
            let written = session.output.reply.len();
            answer(&mut session, wait.on_timeout);
            // That nothing came reveals every write to the keys so far.
            let observed = self.shard.tracker.newest();
            self.finish_reply(&mut session, written, observed);
            self.enqueue(&mut session);
        }
        self.sessions.insert(connection, session);
        waited
    }
}
