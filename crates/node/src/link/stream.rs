//! The stream of requests behind a master's data set. They are executed like a client's, by a
//! session that nothing is refused to and nothing is answered.
//!
//! A request that cannot be executed all the same (a command that Kiln does not have) ends the
//! link: what is here is no longer what the master has, and only all of its data would help.

use super::{Fault, Link, Phase};
use crate::core::Core;
use crate::core::tier_waits::Cause;
use crate::core::verdict::Dispatched;
use crate::session::{ClientKind, ReplyMode, Session};
use base::{ConnectionId, DatabaseId};
use engine::command::Args;
use engine::eviction::Room;
use peers::handshake::{MasterOffset, acknowledgement};
use txlog::Gate;

impl Link {
    /// The data set is here: what follows it is executed.
    pub(super) fn begin_stream(
        &mut self,
        core: &mut Core,
        place: MasterOffset,
        database: DatabaseId,
        rest: Vec<u8>,
    ) {
        let Some(connection) = self.line.hand_over() else { return };
        let count = core.shard.engine.keyspace.settings.databases;
        core.clients.created += 1;
        let mut session = Session::new(connection, core.clients.created, core.turn.monotonic);
        let master = self.peer.as_ref();
        session.who.peer =
            master.map_or_else(String::new, |m| format!("{}:{}", m.host(), m.port()));
        session.who.is_authenticated = true;
        session.kind = ClientKind::Master;
        session.reply_mode = ReplyMode::Off;
        session.database = DatabaseId(database.0.min(count - 1));
        self.received = place.offset + rest.len() as u64;
        session.input.bytes = rest;
        self.place = Some(place);
        self.phase = Phase::Streaming(connection);
        self.failures = 0;
        self.down_since = None;
        self.error = None;
        self.line.wait_from(core.turn.monotonic);
        // A slice may have ended with reading switched off.
        session.flow.reading_is_off = true;
        core.clients.by_id.insert(session.who.id, connection);
        core.clients.sessions.insert(connection, Box::new(session));
        core.enqueue(connection);
        core.flush_later(connection);
        tracing::info!("the link to the master is up");
        self.acknowledge(core, connection);
    }

    /// The master goes on where the last connection ended.
    pub(super) fn continue_stream(&mut self, core: &mut Core, id: Option<String>) {
        let Some(mut place) = self.place.take() else { return };
        if let Some(id) = id {
            place.id = id;
        }
        tracing::info!(offset = place.offset, "partial synchronization");
        let rest = std::mem::take(&mut self.line.input);
        let database = self.database;
        self.begin_stream(core, place, database, rest);
    }

    /// Bytes of the stream arrived.
    pub(crate) fn note_received(&mut self, core: &mut Core, count: usize) {
        self.received += count as u64;
        self.line.wait_from(core.turn.monotonic);
        core.process.statistics.link_input_bytes += count as u64;
    }

    /// Looks at one request of the stream; `None` if it is to be executed.
    pub(crate) fn judge(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        args: Args<'_>,
    ) -> Option<Dispatched> {
        if core.pause.paused().is_some() {
            // The stream itself may have begun it.
            return Some(Dispatched::Later);
        }
        if let Some(room) = core.spill() {
            // A master is never refused, so it waits for memory.
            if room == Room::Behind {
                core.put_off += 1;
                core.process.tier_waits.put_off(Cause::Room);
            }
            return Some(Dispatched::Later);
        }
        if args.is(0, "REPLCONF") {
            if args.len() > 1 && args.is(1, "GETACK") {
                self.acknowledge_from(core, client);
            }
            return Some(Dispatched::Done);
        }
        if let Gate::Refuse(why) = core.shard.gate() {
            // Nothing is applied, so that the next connection can go on from here.
            self.error = Some(format!("the transaction log takes no writes: {why}"));
            core.close_session(client);
            return Some(Dispatched::Stop);
        }
        None
    }

    /// A request of the stream was executed; whether it was refused, which ends the link.
    pub(crate) fn has_diverged(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        args: Args<'_>,
    ) -> bool {
        let Some(why) = core.master_refused.take() else { return false };
        let name: String = String::from_utf8_lossy(args.at(0)).chars().take(64).collect();
        let why = format!("a command of the master's stream cannot be applied: {name}: {why}");
        self.error = Some(why);
        self.is_diverged = true;
        core.close_session(client);
        true
    }

    /// A request of the stream was executed, and so many bytes behind it were not. A transaction
    /// counts when it has ended: until then the stream can only go on before it.
    pub(crate) fn note_applied(&mut self, core: &mut Core, client: ConnectionId, waiting: usize) {
        if core.clients.at(client).transaction.is_none()
            && let Some(place) = &mut self.place
        {
            place.offset = self.received - waiting as u64;
            self.database = core.clients.at(client).database;
        }
    }

    /// Tells the master how far this replica is.
    pub(super) fn acknowledge(&mut self, core: &mut Core, client: ConnectionId) {
        if core.clients.has(client) {
            self.acknowledge_from(core, client);
        }
    }

    /// The line leaves when everything executed until now is durable.
    fn acknowledge_from(&mut self, core: &mut Core, client: ConnectionId) {
        self.said = core.turn.monotonic;
        if core.clients.at(client).flow.reading_is_off || core.pause.paused().is_some() {
            // Nothing is heard because nothing is read.
            self.line.wait_from(core.turn.monotonic);
        }
        let Some(place) = &self.place else { return };
        let line = acknowledgement(place.offset);
        core.clients.reply(client).raw(&line);
        let newest = core.shard.tracker.newest();
        core.hold(client, newest);
    }

    /// The session of the link is gone, and its connection is being closed.
    pub(crate) fn forget(&mut self, core: &mut Core, connection: ConnectionId) {
        if !matches!(self.phase, Phase::Streaming(client) if client == connection) {
            return;
        }
        let fault = match std::mem::take(&mut self.is_diverged) {
            true => Fault::Data,
            false => Fault::Connection,
        };
        let why = self.error.take().unwrap_or_else(|| "the connection ended".to_owned());
        self.fail(core, &why, fault);
    }
}
