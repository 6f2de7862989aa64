//! The stream of requests behind a master's data set. They are executed like a client's, by a
//! session that nothing is refused to and nothing is answered.
//!
//! A request that cannot be executed all the same (a command that Kiln does not have) ends the
//! link: what is here is no longer what the master has, and only all of its data would help.

use super::transfer::acknowledgement;
use super::{Fault, Phase, Place};
use crate::dispatch::Dispatched;
use crate::server::Server;
use crate::session::{ClientKind, ReplyMode, Session};
use base::{ConnectionId, DatabaseId};
use catalog::CommandId;
use engine::command::Args;
use txlog::Gate;

impl Server {
    /// The data set is here: what follows it is executed.
    pub(super) fn begin_stream(&mut self, place: Place, database: DatabaseId, rest: Vec<u8>) {
        let Some(connection) = self.link.connection else { return };
        let count = self.core.shard.engine.keyspace.settings.databases;
        self.core.clients.created += 1;
        let mut session =
            Session::new(connection, self.core.clients.created, self.core.turn.monotonic);
        let master = self.link.peer.as_ref();
        session.peer = master.map_or_else(String::new, |m| format!("{}:{}", m.host(), m.port()));
        session.is_authenticated = true;
        session.kind = ClientKind::Master;
        session.reply_mode = ReplyMode::Off;
        session.database = DatabaseId(database.0.min(count - 1));
        self.link.received = place.offset + rest.len() as u64;
        session.input.bytes = rest;
        self.link.place = Some(place);
        self.link.phase = Phase::Streaming;
        self.link.failures = 0;
        self.link.down_since = None;
        self.link.error = None;
        self.link.heard = self.core.turn.monotonic;
        // A slice may have ended with reading switched off.
        session.is_paused = true;
        self.core.clients.by_id.insert(session.id, connection);
        self.core.clients.sessions.insert(connection, Box::new(session));
        self.core.enqueue(connection);
        self.core.flush_later(connection);
        tracing::info!("the link to the master is up");
        self.acknowledge();
    }

    /// The master goes on where the last connection ended.
    pub(super) fn continue_stream(&mut self, id: Option<String>) {
        let Some(mut place) = self.link.place.take() else { return };
        if let Some(id) = id {
            place.id = id;
        }
        tracing::info!(offset = place.offset, "partial synchronization");
        let rest = std::mem::take(&mut self.link.input);
        let database = self.link.database;
        self.begin_stream(place, database, rest);
    }

    /// Bytes of the stream arrived.
    pub(crate) fn link_received(&mut self, count: usize) {
        self.link.received += count as u64;
        self.link.heard = self.core.turn.monotonic;
        self.core.process.statistics.link_input_bytes += count as u64;
    }

    /// Executes one request of the stream.
    pub(crate) fn dispatch_link(
        &mut self,
        client: ConnectionId,
        command: Option<CommandId>,
        args: Args<'_>,
    ) -> Dispatched {
        if self.core.pause.paused().is_some() {
            // The stream itself may have begun it.
            return Dispatched::Later;
        }
        if args.is(0, "REPLCONF") {
            if args.len() > 1 && args.is(1, "GETACK") {
                self.acknowledge_from(client);
            }
            return Dispatched::Done;
        }
        if let Gate::Refuse(why) = self.core.shard.gate() {
            // Nothing is applied, so that the next connection can go on from here.
            self.link.error = Some(format!("the transaction log takes no writes: {why}"));
            self.core.close_session(client);
            return Dispatched::Stop;
        }
        let dispatched = self.dispatch(client, command, args);
        if dispatched == Dispatched::Later {
            return dispatched;
        }
        if let Some(why) = self.core.master_refused.take() {
            let name: String = String::from_utf8_lossy(args.at(0)).chars().take(64).collect();
            let why = format!("a command of the master's stream cannot be applied: {name}: {why}");
            self.link.error = Some(why);
            self.link.is_diverged = true;
            self.core.close_session(client);
            return Dispatched::Stop;
        }
        dispatched
    }

    /// A request of the stream was executed, and so many bytes behind it were not. A transaction
    /// counts when it has ended: until then the stream can only go on before it.
    pub(crate) fn link_applied(&mut self, client: ConnectionId, waiting: usize) {
        if self.core.clients.at(client).transaction.is_none()
            && let Some(place) = &mut self.link.place
        {
            place.offset = self.link.received - waiting as u64;
            self.link.database = self.core.clients.at(client).database;
        }
    }

    /// Tells the master how far this replica is.
    pub(super) fn acknowledge(&mut self) {
        let Some(connection) = self.link.connection else { return };
        if !self.core.clients.has(connection) {
            return;
        }
        self.acknowledge_from(connection);
    }

    /// The line leaves when everything executed until now is durable.
    fn acknowledge_from(&mut self, client: ConnectionId) {
        self.link.said = self.core.turn.monotonic;
        if self.core.clients.at(client).is_paused || self.core.pause.paused().is_some() {
            // Nothing is heard because nothing is read.
            self.link.heard = self.core.turn.monotonic;
        }
        let Some(place) = &self.link.place else { return };
        let line = acknowledgement(place.offset);
        self.core.clients.reply(client).raw(&line);
        let newest = self.core.shard.tracker.newest();
        self.core.hold(client, newest);
    }

    /// The session of the link is gone, and its connection is being closed.
    pub(crate) fn link_forgotten(&mut self, connection: ConnectionId) {
        if self.link.connection != Some(connection) || !self.link.is_up() {
            return;
        }
        // The driver closes it already.
        self.link.connection = None;
        let fault = match std::mem::take(&mut self.link.is_diverged) {
            true => Fault::Data,
            false => Fault::Connection,
        };
        let why = self.link.error.take().unwrap_or_else(|| "the connection ended".to_owned());
        self.fail_link(&why, fault);
    }
}
