//! Everything one reactor owns: the core, and each feature's state.
//!
//! What is done here is the way of a request, a file for each step: [`reactor`] turns the loop,
//! `gate` refuses, `dispatch` executes, `blocked` wakes waiting clients; and what several features
//! answer together, as `copies` does.

mod blocked;
mod copies;
mod dispatch;
pub mod functions;
mod gate;
mod gathering;
mod lease;
mod lone;
mod news;
pub(crate) mod nodes;
pub(crate) mod queue;
pub mod reactor;
mod saves;
pub(crate) mod script;
pub mod start;
mod tick;
mod values;

use crate::core::client_limits::owed_bytes_max;
use crate::core::{Clients, Core, Process};
use crate::feed::Feed;
use crate::fetches::Fetches;
use crate::libraries::CompiledLibraries;
use crate::link::Link;
use crate::members::Members;
use crate::metrics::metrics;
use crate::migrate::Migrations;
use crate::scripts::Scripts;
use crate::server::functions::Functions;
use crate::session::Session;
use crate::switches::Switches;
use base::driver::Peer;
use base::{ConnectionId, Driver, Event, MonotonicNanos};
use config::Config;
use config::settings::node_settings;
use gathering::Gathering;
use lone::LoneClient;
use script::suspended::Suspended;
use shard::{Leadership, News};
use statistics::Metrics;
use std::sync::Arc;
use tier::Place;

/// One reactor's state: the core, and each feature's own.
pub struct Server {
    pub core: Core,
    /// What commands do.
    pub(crate) functions: &'static Functions,
    /// What another thread may read of all this.
    pub metrics: Arc<Metrics>,
    pub scripts: Scripts,
    pub libraries: CompiledLibraries,
    /// The suspended unit of a script that runs for longer than it may at once.
    pub(crate) suspended: Option<Box<Suspended>>,
    /// Events of connections that the server dialed, kept until the script has ended.
    deferred: Vec<Event>,
    /// What subscribers were told of who leads.
    pub(crate) switches: Switches,
    /// Since when somebody waits while the lease is over.
    pub(crate) unserved_since: Option<MonotonicNanos>,
    /// Replicas of the log and their primary: reports both ways, linearizable reads, a planned
    /// failover.
    pub(crate) members: Members,
    /// The loading has more to do at once.
    pub(crate) has_more_to_load: bool,
    /// The link to a master, if this server follows one.
    pub link: Link,
    /// Keys on their way to other servers.
    pub(crate) migrations: Migrations,
    pub(crate) lone: LoneClient,
    pub(crate) gathering: Gathering,
    /// The last turn left keys over that must be evicted.
    pub(crate) has_more_to_evict: bool,
    /// More keys are still recorded for caches than there may be.
    pub(crate) has_more_to_untrack: bool,
    /// Connections whose SAVE waits for the snapshot under way.
    pub(crate) saves_waiting: Vec<ConnectionId>,
    /// A buffer for what happens to the shard.
    pub(crate) news: Vec<News>,
    /// Replicas of Redis, and what they are told.
    pub feed: Feed,
    /// Requests that wait for values that are not in memory.
    pub(crate) fetches: Fetches,
    /// A buffer for places of values that have come.
    pub(crate) arrived: Vec<Place>,
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
        let (mut scripts, mut libraries) = (Scripts::default(), CompiledLibraries::default());
        for interpreter in [&mut scripts.interpreter, &mut libraries.interpreter] {
            interpreter.set_clock(Arc::clone(&process.options.clock));
            let mut secret = [0; 16];
            process.options.machine.fill_random(&mut secret);
            interpreter.set_secret(u128::from_ne_bytes(secret));
            if process.settings.lua_enable_deprecated_api {
                interpreter.offer_deprecated();
            }
        }
        Self {
            core: Core::new(process, leadership),
            functions,
            metrics: Arc::new(metrics()),
            scripts,
            libraries,
            suspended: None,
            deferred: Vec::new(),
            switches: Switches::default(),
            unserved_since: None,
            members: Members::default(),
            has_more_to_load: false,
            link: Link::default(),
            migrations: Migrations::default(),
            lone: LoneClient::default(),
            gathering: Gathering::default(),
            has_more_to_evict: false,
            has_more_to_untrack: false,
            saves_waiting: Vec::new(),
            news: Vec::new(),
            feed: Feed::new(history),
            fetches: Fetches::default(),
            arrived: Vec::new(),
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
        next.metrics = self.metrics;
        next.core.clients.created = created;
        next
    }

    /// Every connection that this server has, those that it asked for included.
    fn connections(&self) -> Vec<ConnectionId> {
        let own = self.link.connection().into_iter().chain(self.migrations.connections());
        let own = own.chain(self.members.connection());
        let Clients { by_id, closing, sessions, .. } = &self.core.clients;
        let given_up =
            closing.iter().copied().filter(|connection| sessions.get(*connection).is_none());
        by_id.values().copied().chain(own).chain(given_up).collect()
    }

    /// Puts a configuration in force.
    pub fn adopt(&mut self, config: Config) {
        let (before, _) = self.core.process.config.acl_defaults();
        let (requirepass, all_channels) = config.acl_defaults();
        let changed = (requirepass != before).then_some(requirepass);
        let work = self.core.work();
        self.core.process.acl.reconfigure(changed, all_channels, &work);
        let counted = self.core.counts_clients();
        let policy = self.core.process.settings.slow_memory.policy;
        self.core.process.settings = node_settings(&config);
        if policy != self.core.process.settings.slow_memory.policy
            && let Some(memory) = self.core.process.options.machine.slow_memory()
        {
            memory.divide_by(self.core.process.settings.slow_memory.policy);
        }
        self.core.interest.owed_bytes_max = owed_bytes_max(&self.core.process.settings);
        self.core.process.config = config;
        self.core.shard.engine.keyspace.settings = self.core.process.engine_settings();
        if counted != self.core.counts_clients() {
            self.core.count_everybody();
        }
        self.core.set_compaction();
        self.set_policy();
    }

    /// Takes in a new connection.
    ///
    /// # Errors
    /// What to say to one that must be turned away.
    pub(crate) fn welcome(
        &mut self,
        connection: ConnectionId,
        peer: Peer,
    ) -> Result<(), &'static str> {
        if self.core.clients.by_id.len() >= self.core.process.clients_max() {
            self.core.process.statistics.connections_rejected += 1;
            return Err("-ERR max number of clients reached\r\n");
        }
        if self.core.process.turns_strangers_away() && !peer.is_local {
            self.core.process.statistics.connections_rejected += 1;
            return Err(PROTECTED);
        }
        self.core.process.statistics.connections_received += 1;
        self.core.clients.created += 1;
        let mut session =
            Session::new(connection, self.core.clients.created, self.core.turn.monotonic);
        if !self.core.process.trims_outputs {
            session.output.fill_up();
        }
        session.who.peer = peer.address;
        session.who.local = peer.local;
        session.who.is_local = peer.is_local;
        self.core.clients.by_id.insert(session.who.id, connection);
        self.core.clients.sessions.insert(connection, Box::new(session));
        self.core.make_default_user(connection);
        if let Some(name) = peer.common_name {
            self.core.take_certified_name(connection, &name);
        }
        Ok(())
    }

    /// Forgets a connection and all it asked for. The driver closes it apart.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        if !self.core.clients.has(connection) {
            return;
        }
        if self.core.clients.at(connection).is_master() {
            self.link.forget(&mut self.core, connection);
        }
        self.core.forget_memory(connection);
        self.core.clients.monitors.remove(&connection);
        self.feed.forget(&mut self.core, connection);
        self.note_departed(connection);
        self.core.discard_transaction(connection);
        self.core.forget_subscriptions(connection);
        self.core.untrack(connection);
        self.core.unblock(connection);
        self.forget_fetches(connection);
        if let Some(session) = self.core.clients.sessions.remove(connection) {
            self.core.clients.by_id.remove(&session.who.id);
            self.core.clients.held_bytes -= session.output.held_bytes();
        }
    }
}

const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is \
    enabled and no password is set for the default user. In this mode connections are only \
    accepted from the loopback interface. To accept others, set a password with 'requirepass' in \
    the configuration file or with CONFIG SET, bind only trusted interfaces and set \
    'protected-mode no', or start the server with '--protected-mode no'.\r\n";
