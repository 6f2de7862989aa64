//! Clients that wait for keys: first come, first served, after the unit that brought something.
//!
//! A blocked request is simply run again. If it finds something its reply belongs to the record of
//! the unit that woke it; if not, it goes on waiting at its old place in the queue. It runs between
//! the unit that woke it and the next request of that unit's own client, as in Redis: nobody ever
//! sees an element that somebody waits for.

use crate::core::Broken;
use crate::server::Server;
use crate::session::Blocked;
use base::{ConnectionId, DatabaseId};
use engine::unit::TimeoutReply;
use engine::value::Awaited;

const UNBLOCKED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

impl Server {
    /// Serves the clients that wait for keys which the last unit made ready; serving one may make
    /// further keys ready. While the server sleeps (DEBUG SLEEP) they wait: time has gone on for
    /// keys when they are served, as behind a unit that took so long.
    #[inline]
    pub(crate) fn wake_ready(&mut self) {
        let sleeps = self.core.turn.asleep_until > self.core.turn.monotonic;
        if !self.core.interest.ready.is_empty() && !sleeps {
            self.wake_all_ready();
        }
    }

    fn wake_all_ready(&mut self) {
        while !self.core.interest.ready.is_empty() {
            for (database, key) in std::mem::take(&mut self.core.interest.ready) {
                self.wake(database, &key);
            }
        }
    }

    /// Serves the clients that wait for one key, until nothing is left in it.
    fn wake(&mut self, database: DatabaseId, key: &[u8]) {
        let mut passed = 0;
        loop {
            let serves = self.core.shard.engine.keyspace.serves(database, key);
            if serves.is_none() && !self.core.interest.waiters.hears_end(database, key) {
                return;
            }
            let Some(waiter) = self.core.interest.waiters.nth(database, key, passed) else {
                return;
            };
            let connection = ConnectionId(waiter.0);
            // A request of many keys is not run again for each of them that it has no use for.
            let is_awaited = self.awaits(connection).is_some_and(|it| it.is_concerned(serves));
            if !is_awaited || !self.serve(connection, key) {
                self.core.shard.engine.keyspace.work.step();
                passed += 1;
            }
        }
    }

    /// The type of key that a session waits for, if it waits for keys.
    fn awaits(&self, connection: ConnectionId) -> Option<Awaited> {
        match &self.core.clients.sessions.get(connection)?.blocked {
            Some(Blocked::Keys { wait, .. }) => Some(wait.awaited),
            _ => None,
        }
    }

    /// Runs a blocked session's request again because `key` is ready; whether that ended its wait.
    fn serve(&mut self, connection: ConnectionId, key: &[u8]) -> bool {
        let Some(session) = self.core.clients.sessions.get_mut(connection) else { return false };
        let waits_for_keys = |blocked: &mut Blocked| matches!(blocked, Blocked::Keys { .. });
        let Some(Blocked::Keys { request, wait, deadline }) =
            session.blocked.take_if(waits_for_keys)
        else {
            return false;
        };
        self.core.shard.unit.clear();
        self.core.shard.unit.woken_by = Some(key.to_vec());
        self.core.shard.unit.resumed_since.clone_from(&wait.since);
        let mut context = self.core.context(&self.core.asker(connection));
        context.database = wait.database;
        context.retry = true;
        let written = self.core.clients.at(connection).output.end();
        self.core.begin_lap();
        let command = self.core.process.catalog.command(request.command);
        match self.core.denied(connection, command, request.args()) {
            // The right was taken from the user while the client waited.
            Some(denied) => self.core.refuse(connection, written, &denied.refusal(command)),
            None => self.call(connection, request.command, request.args(), context),
        }
        let is_served = self.core.shard.unit.wait.take().is_none();
        self.core.clients.at_mut(connection).blocked =
            Some(Blocked::Keys { request, wait, deadline });
        let observed = self.core.settle_unit();
        self.core.note_wrote(connection, observed);
        if is_served {
            self.core.unblock(connection);
            self.core.finish_reply(connection, written, observed);
            self.core.end_caching(connection, Some(command.id));
            self.core.enqueue(connection);
        }
        self.core.spread(observed, Some(connection));
        is_served
    }

    /// Answers the sessions whose time is up.
    pub(crate) fn time_out(&mut self) {
        while let Some(&(deadline, connection)) = self.core.clients.deadlines.first() {
            if deadline > self.core.turn.monotonic {
                break;
            }
            self.core.clients.deadlines.pop_first();
            self.end_wait(connection, None);
        }
        self.core.hold_ended(self.core.shard.newest_executed());
    }

    /// Ends a session's wait for keys or replicas, as if its time were up or with this error;
    /// whether it waited. Its reply is held by [`Core::hold_ended`](crate::core::Core::hold_ended).
    pub fn end_wait(&mut self, connection: ConnectionId, error: Option<&str>) -> bool {
        if !self.core.clients.has(connection) {
            return false;
        }
        let blocked = self.core.clients.at(connection).blocked.as_ref();
        let waits = blocked.is_some_and(Blocked::ends_by_time);
        let ended = if waits { self.core.unblock(connection) } else { None };
        if let Some(blocked) = &ended {
            let written = self.core.clients.at(connection).output.end();
            if let (None, Blocked::Replicas { written: what, .. }) = (error, blocked) {
                self.reply_copies(connection, *what);
            }
            if let Blocked::Keys { request, .. } = blocked {
                let command = self.core.process.catalog.command(request.command);
                let began = self.core.lap_time();
                self.core.count_call(connection, command, request.args(), began, error.is_some());
            }
            let reply = self.core.clients.reply(connection);
            match (error, blocked) {
                (Some(error), _) => reply.error(error),
                (None, Blocked::Keys { wait, .. }) => match wait.on_timeout {
                    TimeoutReply::Null => reply.null(),
                    TimeoutReply::NullArray => reply.null_array(),
                },
                (None, Blocked::Parked { why, .. }) => reply.error(why.timeout_error()),
                (None, Blocked::Replicas { .. } | Blocked::Snapshot) => {}
                (None, Blocked::Script | Blocked::Migration(_)) => {}
            }
            self.core.clients.ended.push((connection, written));
            self.core.end_caching(connection, None);
        }
        if self.core.broken == Some(Broken::TellsEndOfWaitAtOnce) {
            self.core.hold_ended(self.core.shard.newest_executed());
        }
        ended.is_some()
    }

    /// Clients that wait for keys would wait for what they may no longer take, and those that wait
    /// for replicas for what no longer comes.
    pub(crate) fn unblock_everybody(&mut self) {
        let waiting = self
            .core
            .sessions()
            .filter(|session| {
                let blocked = session.blocked.as_ref();
                blocked
                    .is_some_and(|it| matches!(it, Blocked::Keys { .. } | Blocked::Replicas { .. }))
            })
            .map(|session| session.connection);
        for connection in waiting.collect::<Vec<ConnectionId>>() {
            self.core.process.statistics.error("UNBLOCKED");
            self.end_wait(connection, Some(UNBLOCKED));
            if let Some(session) = self.core.clients.sessions.get_mut(connection) {
                session.flow.is_closing = true;
            }
        }
    }
}
