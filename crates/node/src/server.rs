//! Everything one reactor owns: the shard, the sessions, the commands, what clients asked for.
//!
//! Split by owner of state: [`crate::dispatch`] takes requests through gate and execution,
//! [`crate::blocked`] wakes waiting clients, [`crate::pubsub`] delivers messages,
//! [`crate::reactor`] turns the loop.

use crate::command::scripting::Scripts;
use crate::command::sentinel::Switches;
use crate::core::limits::owed_bytes_max;
use crate::core::{Core, Process};
use crate::feed::Feed;
use crate::functions::Functions;
use crate::link::Link;
use crate::members::Members;
use crate::members::failover::Failover;
use crate::migrate::Migrations;
use crate::reactor::LoneClient;
use crate::session::Session;
use base::{ConnectionId, Driver, MonotonicNanos, Sequence};
use config::Config;
use config::settings::{engine_settings, node_settings};
use engine::eviction::Room;
use engine::work::Work;
use shard::snapshots::Snapshots;
use shard::{Leadership, News};
use std::any::Any;
use std::sync::Arc;
use txlog::Gate;

/// One reactor's state: the core, and each feature's own.
pub struct Server {
    pub core: Core,
    /// What commands do.
    pub(crate) functions: &'static Functions,
    pub scripts: Scripts,
    /// What subscribers were told of who leads.
    pub(crate) switches: Switches,
    /// Since when somebody waits while the lease is over.
    pub(crate) unserved_since: Option<MonotonicNanos>,
    /// The connection of a replica to its primary.
    pub(crate) members: Members,
    /// A planned failover.
    pub(crate) failover: Option<Failover>,
    /// The loading has more to do at once.
    pub(crate) has_more_to_load: bool,
    /// The link to a master, if this server follows one.
    pub link: Link,
    /// Keys on their way to other servers.
    pub(crate) migrations: Migrations,
    pub(crate) lone: LoneClient,
    /// The last turn left keys over that must be evicted.
    pub(crate) has_more_to_evict: bool,
    /// Takes snapshots, if there is a place for them.
    pub(crate) snapshots: Option<Snapshots>,
    /// Connections whose SAVE waits for the snapshot under way.
    pub(crate) saves_waiting: Vec<ConnectionId>,
    /// A buffer for what happens to the shard.
    pub(crate) news: Vec<News>,
    /// Replicas of Redis, and what they are told.
    pub feed: Feed,
}

/// Keys evicted before one command. A guess: enough to outrun any writer of single keys, and below
/// a millisecond.
const EVICTED_KEYS_MAX: usize = 128;

impl Core {
    /// How many clients are connected.
    pub fn clients(&self) -> usize {
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

    /// Whether `maxmemory` is reached.
    pub(crate) fn is_out_of_memory(&self) -> bool {
        !self.ignores_memory_limit() && self.shard.engine.keyspace.is_over_limit()
    }

    /// Evicts keys while `maxmemory` is exceeded, a bounded number of them. Evicting is writing:
    /// nothing goes while writes are paused or the log takes none, which the gate tells those who
    /// want to write. `sender` is the client whose request asks.
    pub(crate) fn make_room(&mut self, sender: Option<ConnectionId>) -> Room {
        if !self.is_out_of_memory() {
            return Room::Enough;
        }
        let stands_still = self.pause.paused().is_some() || self.persistence.is_loading;
        if stands_still || !matches!(self.shard.gate(), Gate::Open) {
            return Room::Later;
        }
        self.shard.unit.clear();
        let room = self.shard.engine.evict(
            self.turn.now,
            EVICTED_KEYS_MAX,
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
        self.clients.at_mut(client).is_closing = true;
        self.clients.close_later(client);
    }

    /// Puts a session in the queue of those with input to execute.
    pub(crate) fn enqueue(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if !std::mem::replace(&mut session.is_queued, true) {
            self.clients.ready.push_back(client);
        }
    }

    /// What was written to a session waits for `observed`; it is sent when that is durable.
    pub(crate) fn hold(&mut self, client: ConnectionId, observed: Sequence) {
        self.check_output(client);
        let durable = self.shard.tracker.durable();
        let waits = self.clients.hold(client, observed, durable);
        self.count_memory(client);
        if !waits {
            self.flush_later(client);
        }
    }

    /// Puts a session in the list of those with bytes that may be sent, or to be read from again.
    pub(crate) fn flush_later(&mut self, client: ConnectionId) {
        let session = self.clients.at_mut(client);
        if !std::mem::replace(&mut session.is_flushing, true) {
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
            let goes_on = has_bytes || session.is_closing;
            self.clients.held_bytes -= released;
            if goes_on {
                self.flush_later(connection);
            }
        }
    }
}

impl Server {
    /// The last thing that is asked of a server: the process ends.
    pub fn leave_memory(mut self) {
        self.core.shard.engine.leave_memory();
    }

    /// One that has just begun, and has loaded nothing.
    pub(crate) fn new(process: Process, functions: &'static Functions) -> Self {
        let options = &process.options;
        let leadership = Leadership::new(Arc::clone(&options.clock), options.entropy);
        Self::living(process, functions, leadership)
    }

    fn living(process: Process, functions: &'static Functions, leadership: Leadership) -> Self {
        let history = !process.options.entropy;
        Self {
            core: Core::new(process, leadership),
            functions,
            scripts: Scripts::default(),
            switches: Switches::default(),
            unserved_since: None,
            members: Members::default(),
            failover: None,
            has_more_to_load: false,
            link: Link::default(),
            migrations: Migrations::default(),
            lone: LoneClient::default(),
            has_more_to_evict: false,
            snapshots: None,
            saves_waiting: Vec::new(),
            news: Vec::new(),
            feed: Feed::new(history),
        }
    }

    /// The same process in its next life: it has lost what it held and its connections, and keeps
    /// its configuration, its users and what it has counted.
    #[must_use]
    pub fn begin_again(self, driver: &mut dyn Driver) -> Self {
        for connection in self.connections() {
            driver.close(connection);
        }
        let process = self.core.process.in_next_life(driver);
        let created = self.core.clients.created;
        let leadership = self.core.leadership.in_next_life(process.options.entropy);
        let mut next = Self::living(process, self.functions, leadership);
        next.core.clients.created = created;
        next
    }

    /// Every connection that this server has, those that it asked for included.
    fn connections(&self) -> Vec<ConnectionId> {
        let own = self.link.connections().chain(self.migrations.connections());
        let own = own.chain(self.members.connections());
        self.core.clients.by_id.values().copied().chain(own).collect()
    }

    /// Puts a configuration in force.
    pub fn adopt(&mut self, config: Config) {
        let (before, _) = self.core.process.config.acl_defaults();
        let (requirepass, all_channels) = config.acl_defaults();
        let changed = (requirepass != before).then_some(requirepass);
        let work = self.core.work();
        self.core.process.acl.reconfigure(changed, all_channels, &work);
        self.core.process.settings = node_settings(&config);
        self.core.interest.owed_bytes_max = owed_bytes_max(&self.core.process.settings);
        self.core.shard.engine.keyspace.settings = engine_settings(&config);
        self.core.process.config = config;
        self.set_policy();
    }

    /// Takes in a new connection; `None` if it must be turned away, with the line to say.
    pub(crate) fn welcome(
        &mut self,
        connection: ConnectionId,
        peer: String,
        local: String,
        is_local: bool,
    ) -> Result<(), &'static str> {
        self.core.process.statistics.connections_received += 1;
        if self.core.clients.by_id.len() >= self.core.process.settings.maxclients as usize {
            self.core.process.statistics.connections_rejected += 1;
            return Err("-ERR max number of clients reached\r\n");
        }
        if self.core.process.turns_strangers_away() && !is_local {
            self.core.process.statistics.connections_rejected += 1;
            return Err(PROTECTED);
        }
        self.core.clients.created += 1;
        let mut session =
            Session::new(connection, self.core.clients.created, self.core.turn.monotonic);
        session.peer = peer;
        session.local = local;
        session.is_local = is_local;
        self.core.clients.by_id.insert(session.id, connection);
        self.core.clients.sessions.insert(connection, Box::new(session));
        self.core.make_default_user(connection);
        Ok(())
    }

    /// Forgets a connection and all it asked for. The driver closes it apart.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if !self.core.clients.has(connection) {
            return;
        }
        if self.core.clients.at(connection).is_master() {
            self.link_forgotten(connection);
        }
        self.core.forget_memory(connection);
        self.core.clients.monitors.remove(&connection);
        self.feed.forget(&self.core, connection);
        self.note_departed(connection);
        self.core.discard_transaction(connection);
        self.core.forget_subscriptions(connection);
        self.core.unblock(connection);
        if let Some(session) = self.core.clients.sessions.remove(connection) {
            self.core.clients.by_id.remove(&session.id);
            self.core.clients.held_bytes -= session.output.held_bytes();
        }
    }
}

const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is \
    enabled and no password is set for the default user. In this mode connections are only \
    accepted from the loopback interface. To accept others, set a password with 'requirepass' in \
    the configuration file or with CONFIG SET, bind only trusted interfaces and set \
    'protected-mode no', or start the server with '--protected-mode no'.\r\n";
