//! Everything one reactor owns: the shard, the sessions, the registry, what clients asked for.
//!
//! Split by owner of state: [`crate::dispatch`] takes requests through gate and execution,
//! [`crate::blocked`] wakes waiting clients, [`crate::pubsub`] delivers messages,
//! [`crate::reactor`] turns the loop.

use crate::acl::Acl;
use crate::clock::ShardClock;
use crate::command::scripting::Scripts;
use crate::command::sentinel::Switches;
use crate::config::Config;
use crate::config::settings::{NodeSettings, engine_settings, node_settings};
use crate::cross_protocol::CrossProtocol;
use crate::feed::Feed;
use crate::latency::Latency;
use crate::limits::owed_bytes_max;
use crate::link::Link;
use crate::members::failover::Failover;
use crate::members::{Members, Progress};
use crate::metrics::Metrics;
use crate::migrate::Migrations;
use crate::pause::Pause;
use crate::reactor::LoneClient;
use crate::registry::Registry;
use crate::role::state::Roles;
use crate::session::Session;
use crate::sessions::Sessions;
use crate::shard::{Shard, Told};
use crate::slowlog::Slowlog;
use crate::snapshot::Snapshots;
use crate::statistics::{Persistence, Statistics};
use base::machine::Identity;
use base::{
    Clock, ConnectionId, Disk, Driver, Machine, Moment, MonotonicNanos, Seeds, Sequence, UnixMillis,
};
use engine::eviction::Room;
use engine::interest::Interest;
use engine::work::Work;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use txlog::Gate;

/// What the server was started with.
#[derive(Clone)]
pub struct Options {
    pub config: Config,
    /// The port on which connections are accepted, shown by INFO.
    pub port: u16,
    /// The clock that the driver reads, for the durations of commands.
    pub clock: Arc<dyn Clock>,
    /// Where CONFIG REWRITE finds the configuration file.
    pub disk: Arc<dyn Disk>,
    pub machine: Arc<dyn Machine>,
    /// Unpredictable bits, for ids and for nothing that must stay secret.
    pub entropy: u64,
    /// What stays secret.
    pub seeds: Seeds,
}

/// A rule that a test breaks on purpose, so that it can prove that it would notice.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// MIGRATE sends keys without a look at the lease.
    MigratesWithoutLease,
    /// A client whose wait a unit ends is told of it while the unit still runs.
    TellsEndOfWaitAtOnce,
}

/// One reactor's state.
pub struct Server {
    pub shard: Shard,
    /// Connections that must hear of changes: they outlive the shard that a loading replaces.
    pub interest: Interest,
    pub registry: &'static Registry,
    pub options: Options,
    /// What the operator asked for, and the same as plain fields.
    pub config: Config,
    pub settings: NodeSettings,
    /// Users and what they may do.
    pub acl: Acl,
    pub identity: Identity,
    pub slowlog: Slowlog,
    pub scripts: Scripts,
    pub latency: Latency,
    pub persistence: Persistence,
    /// What this process is to the shard: primary or replica.
    pub roles: Roles,
    /// What subscribers were told of who leads.
    pub(crate) switches: Switches,
    /// How often this process has stood for leadership in this life.
    pub(crate) stands: u64,
    /// Since when somebody waits while the lease is over.
    pub(crate) unserved_since: Option<MonotonicNanos>,
    /// Clients were served since this holder's last record.
    pub(crate) has_served: bool,
    /// The lease was over when it was last looked at: nobody is served.
    pub(crate) is_lapsed: bool,
    /// The connection of a replica to its primary.
    pub(crate) members: Members,
    /// How the log has grown lately, for the lag of replicas.
    pub(crate) progress: Progress,
    /// A planned failover.
    pub(crate) failover: Option<Failover>,
    /// A buffer for what the log tells.
    pub(crate) told: Vec<Told>,
    /// The loading has more to do at once.
    pub(crate) has_more_to_load: bool,
    /// The link to a master, if this server follows one.
    pub link: Link,
    /// Keys on their way to other servers.
    pub(crate) migrations: Migrations,
    /// Sessions that run MONITOR.
    pub(crate) monitors: BTreeSet<ConnectionId>,
    /// CLIENT PAUSE.
    pub(crate) pause: Pause,
    /// Nothing executes before this (DEBUG SLEEP).
    pub(crate) asleep_until: MonotonicNanos,
    /// When the command that executes now began.
    pub(crate) lap: MonotonicNanos,
    /// How long the command that executes now pretended to work (DEBUG SLEEP).
    pub(crate) slept_nanos: u64,
    /// Makes the replication id, which DEBUG CHANGE-REPL-ID changes.
    pub(crate) replication_seed: u64,
    /// When the process started.
    pub started: MonotonicNanos,
    /// The sessions, but for the one whose command is running.
    pub(crate) sessions: Sessions,
    /// Sessions by CLIENT ID.
    pub(crate) by_id: BTreeMap<u64, ConnectionId>,
    pub(crate) sessions_created: u64,
    /// Sessions with input to execute, in the order in which it came.
    pub(crate) ready: VecDeque<ConnectionId>,
    /// Sessions with bytes that may be sent.
    pub(crate) flushing: Vec<ConnectionId>,
    /// Sessions that wait for a record, in the order of records.
    pub(crate) held: VecDeque<(Sequence, ConnectionId)>,
    /// Blocked sessions by deadline.
    pub(crate) deadlines: BTreeSet<(MonotonicNanos, ConnectionId)>,
    /// Sessions to be closed at the end of the turn.
    pub(crate) closing: Vec<ConnectionId>,
    /// Turns of the loop so far.
    pub(crate) turns: u64,
    /// The time of this turn, as Redis shows and stores it: the shard's on a primary, else that of
    /// this machine's wall clock. It jumps from the one to the other when this process takes over,
    /// so how long something takes is measured by `monotonic`.
    pub now: UnixMillis,
    pub(crate) clock: ShardClock,
    /// What the primary's clock showed when it was last heard running, and when that was.
    pub(crate) heard_clock: Option<crate::clock::Heard>,
    /// Whether this machine's wall clock may become the shard's.
    pub(crate) wall: crate::role::wall::Wall,
    /// This process follows, and the log would take nothing from it.
    pub(crate) is_in_trouble: bool,
    /// Monotonic time of this turn.
    pub monotonic: MonotonicNanos,
    /// Both clocks at the beginning of this turn.
    pub(crate) moment: Moment,
    pub statistics: Statistics,
    /// When a web page's attempt was last told of.
    pub(crate) cross_protocol: CrossProtocol,
    /// What another thread may read of all this.
    pub metrics: Arc<Metrics>,
    pub(crate) lone: LoneClient,
    /// Sessions whose wait the running unit ended, and where their replies begin.
    pub(crate) ended: Vec<(ConnectionId, u64)>,
    /// Reply bytes that wait for the log, over all sessions.
    pub held_bytes: usize,
    /// The last turn left keys over that must be evicted.
    pub(crate) has_more_to_evict: bool,
    /// DEBUG SET-ACTIVE-EXPIRE: whether keys die at their time or when somebody looks.
    pub is_active_expiry_on: bool,
    pub garbage: Garbage,
    /// Takes snapshots, if there is a place for them.
    pub(crate) snapshots: Option<Snapshots>,
    /// Replicas of Redis, and what they are told.
    pub feed: Feed,
    /// When a clean stop began to wait.
    pub(crate) stopping_since: Option<MonotonicNanos>,
    /// Set when the process is to stop: why.
    pub stopping: Option<Stop>,
    #[doc(hidden)]
    pub broken: Option<Broken>,
}

/// Frees big values away from the loop; it does not block.
pub type Garbage = Box<dyn FnMut(Box<dyn Any + Send>)>;

/// Keys evicted before one command. A guess: enough to outrun any writer of single keys, and below
/// a millisecond.
const EVICTED_KEYS_MAX: usize = 128;

/// Why the loop ends.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Stop {
    /// Asked for, by a signal or SHUTDOWN: everything executed is made durable first.
    Clean,
    /// SHUTDOWN NOSAVE, or the log is lost: at once.
    Now,
    /// The log failed; nothing more may be acknowledged.
    LogFailed(String),
    /// Another process may lead the shard: this one discards what it holds, and begins again as a
    /// replica.
    Demoted(String),
}

impl Server {
    /// The last thing that is asked of a server: the process ends.
    pub fn leave_memory(mut self) {
        self.shard.engine.leave_memory();
    }

    /// One that has just begun, with what it is to serve.
    pub fn new(shard: Shard, options: Options, garbage: Garbage) -> Self {
        let registry = Registry::with_names(&options.config.renamed_commands);
        Self {
            shard,
            interest: Interest::bounded(owed_bytes_max(&node_settings(&options.config))),
            registry,
            settings: node_settings(&options.config),
            config: options.config.clone(),
            acl: Acl::configured(&options.config).expect("checked when the file was read"),
            identity: options.machine.identity(),
            slowlog: Slowlog::default(),
            scripts: Scripts::default(),
            latency: Latency::default(),
            persistence: Persistence::new(options.clock.unix_millis()),
            roles: Roles::alone(),
            switches: Switches::default(),
            stands: 0,
            unserved_since: None,
            has_served: false,
            is_lapsed: false,
            members: Members::default(),
            progress: Progress::default(),
            failover: None,
            told: Vec::new(),
            has_more_to_load: false,
            link: Link::default(),
            migrations: Migrations::default(),
            monitors: BTreeSet::new(),
            pause: Pause::default(),
            asleep_until: MonotonicNanos(0),
            lap: options.clock.monotonic(),
            slept_nanos: 0,
            replication_seed: !options.entropy,
            started: options.clock.monotonic(),
            options,
            sessions: Sessions::default(),
            by_id: BTreeMap::new(),
            sessions_created: 0,
            ready: VecDeque::new(),
            flushing: Vec::new(),
            held: VecDeque::new(),
            deadlines: BTreeSet::new(),
            closing: Vec::new(),
            turns: 0,
            now: UnixMillis(0),
            clock: ShardClock::default(),
            heard_clock: None,
            wall: crate::role::wall::Wall::default(),
            is_in_trouble: false,
            monotonic: MonotonicNanos(0),
            moment: Moment::default(),
            statistics: Statistics::new(registry.len()),
            cross_protocol: CrossProtocol::default(),
            metrics: Arc::default(),
            lone: LoneClient::default(),
            ended: Vec::new(),
            held_bytes: 0,
            has_more_to_evict: false,
            is_active_expiry_on: true,
            garbage,
            snapshots: None,
            feed: Feed::default(),
            stopping_since: None,
            stopping: None,
            broken: None,
        }
    }

    /// The same server in its next life: it has lost what it held and its connections, and keeps
    /// its configuration, its users and what it has counted.
    #[must_use]
    pub fn begin_again(self, driver: &mut dyn Driver) -> Self {
        for connection in self.connections() {
            driver.close(connection);
        }
        let options = Options {
            config: self.config.clone(),
            entropy: driver.entropy(),
            seeds: Seeds::draw(driver),
            ..self.options.clone()
        };
        let shard = Shard::without_data(engine_settings(&self.config), options.seeds);
        let before = self;
        Self {
            acl: before.acl,
            identity: before.identity,
            slowlog: before.slowlog,
            latency: before.latency,
            wall: before.wall.in_next_life(),
            started: before.started,
            statistics: before.statistics,
            cross_protocol: before.cross_protocol,
            metrics: before.metrics,
            sessions_created: before.sessions_created,
            is_active_expiry_on: before.is_active_expiry_on,
            ..Self::new(shard, options, before.garbage)
        }
    }

    /// Every connection that this server has, those that it asked for included.
    fn connections(&self) -> Vec<ConnectionId> {
        let own = self.link.connections().chain(self.migrations.connections());
        let own = own.chain(self.members.connections());
        self.by_id.values().copied().chain(own).collect()
    }

    /// Puts a configuration in force.
    pub fn adopt(&mut self, config: Config) {
        let (before, _) = self.config.acl_defaults();
        let (requirepass, all_channels) = config.acl_defaults();
        let changed = (requirepass != before).then_some(requirepass);
        let work = self.work();
        self.acl.reconfigure(changed, all_channels, &work);
        self.settings = node_settings(&config);
        self.interest.owed_bytes_max = owed_bytes_max(&self.settings);
        self.shard.engine.keyspace.settings = engine_settings(&config);
        self.config = config;
    }

    /// How many clients are connected, the one whose command is running included.
    pub fn clients(&self) -> usize {
        self.by_id.len()
    }

    /// All sessions but the one whose command is running, by CLIENT ID.
    pub fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.by_id.values().filter_map(|id| self.sessions.get(id))
    }

    /// A session by CLIENT ID, unless it is the one whose command is running.
    pub fn session_mut(&mut self, id: u64) -> Option<&mut Session> {
        let connection = self.by_id.get(&id)?;
        self.sessions.get_mut(connection)
    }

    /// Frees big values away from the loop.
    pub(crate) fn discard(&mut self, garbage: Vec<Box<dyn Any + Send>>) {
        for value in garbage {
            (self.garbage)(value);
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
    /// want to write. `current` is the session whose request asks, which the map does not hold: it
    /// may watch what goes.
    pub(crate) fn make_room(&mut self, current: Option<&mut Session>) -> Room {
        if !self.is_out_of_memory() {
            return Room::Enough;
        }
        let stands_still = self.pause.paused().is_some() || self.persistence.is_loading;
        if stands_still || !matches!(self.shard.gate(), Gate::Open) {
            return Room::Later;
        }
        self.shard.unit.clear();
        let room = self.shard.engine.evict(
            self.now,
            EVICTED_KEYS_MAX,
            &mut self.shard.unit,
            &mut self.interest,
        );
        if self.shard.unit.changes > 0 {
            let observed = self.settle_unit();
            self.spread(observed, current);
        }
        room
    }

    /// Protected mode: whoever comes from another machine is turned away, because nobody would be
    /// asked for a password.
    pub(crate) fn turns_strangers_away(&self) -> bool {
        self.settings.protected_mode && self.acl.default_user().has_no_password()
    }

    /// Takes in a new connection; `None` if it must be turned away, with the line to say.
    pub(crate) fn welcome(
        &mut self,
        connection: ConnectionId,
        peer: String,
        local: String,
        is_local: bool,
    ) -> Result<(), &'static str> {
        self.statistics.connections_received += 1;
        if self.by_id.len() >= self.settings.maxclients as usize {
            self.statistics.connections_rejected += 1;
            return Err("-ERR max number of clients reached\r\n");
        }
        if self.turns_strangers_away() && !is_local {
            self.statistics.connections_rejected += 1;
            return Err(PROTECTED);
        }
        self.sessions_created += 1;
        let mut session = Session::new(connection, self.sessions_created, self.monotonic);
        session.peer = peer;
        session.local = local;
        self.make_default_user(&mut session);
        session.is_local = is_local;
        self.by_id.insert(session.id, connection);
        self.sessions.insert(connection, Box::new(session));
        Ok(())
    }

    /// Forgets a connection and all it asked for. The driver closes it apart.
    pub(crate) fn forget(&mut self, connection: ConnectionId) {
        let Some(mut session) = self.sessions.remove(&connection) else { return };
        if session.is_link {
            self.link_forgotten(connection);
        }
        self.by_id.remove(&session.id);
        self.held_bytes -= session.output.held_bytes();
        self.forget_memory(&session);
        self.monitors.remove(&connection);
        self.forget_replica(connection);
        self.note_departed(&session);
        self.discard_transaction(&mut session);
        self.forget_subscriptions(&mut session);
        self.unblock(&mut session);
    }

    /// Closes a session once the turn ends, whatever it still has to say.
    pub fn close(&mut self, connection: ConnectionId) {
        if let Some(mut session) = self.sessions.remove(&connection) {
            self.close_session(&mut session);
            self.sessions.insert(connection, session);
        } else if !self.closing.contains(&connection) {
            self.closing.push(connection);
        }
    }

    /// As [`Self::close`], for a session that the map does not hold. It waits for nothing any
    /// more: what comes until the end of the turn is for others.
    pub(crate) fn close_session(&mut self, session: &mut Session) {
        self.unblock(session);
        session.is_closing = true;
        if !self.closing.contains(&session.connection) {
            self.closing.push(session.connection);
        }
    }

    /// Puts a session in the queue of those with input to execute.
    pub(crate) fn enqueue(&mut self, session: &mut Session) {
        if !session.is_queued {
            session.is_queued = true;
            self.ready.push_back(session.connection);
        }
    }

    /// What was written to a session waits for `observed`; it is sent when that is durable.
    pub(crate) fn hold(&mut self, session: &mut Session, observed: Sequence) {
        self.check_output(session);
        let durable = self.shard.tracker.durable();
        let before = session.output.held_bytes();
        let waits_for = session.output.hold(observed, durable);
        self.held_bytes += session.output.held_bytes() - before;
        self.count_memory(session);
        match waits_for {
            Some(sequence) if sequence > session.waits_for => {
                session.waits_for = sequence;
                self.held.push_back((sequence, session.connection));
            }
            Some(_) => {}
            None => self.flush_later(session),
        }
    }

    /// Puts a session in the list of those with bytes that may be sent, or to be read from again.
    pub(crate) fn flush_later(&mut self, session: &mut Session) {
        if !session.is_flushing {
            session.is_flushing = true;
            self.flushing.push(session.connection);
        }
    }

    /// The log became durable further: what waited for it may leave.
    pub(crate) fn release(&mut self) {
        let durable = self.shard.tracker.durable();
        self.migrations.is_due = true;
        while let Some(&(sequence, connection)) = self.held.front() {
            if sequence > durable {
                break;
            }
            self.held.pop_front();
            let Some(mut session) = self.sessions.remove(&connection) else { continue };
            let before = session.output.held_bytes();
            let has_bytes = session.output.release(durable);
            self.held_bytes -= before - session.output.held_bytes();
            if has_bytes || session.is_closing {
                self.flush_later(&mut session);
            }
            self.sessions.insert(connection, session);
        }
    }
}

const PROTECTED: &str = "-DENIED Redis is running in protected mode because protected mode is \
    enabled and no password is set for the default user. In this mode connections are only \
    accepted from the loopback interface. To accept others, set a password with 'requirepass' in \
    the configuration file or with CONFIG SET, bind only trusted interfaces and set \
    'protected-mode no', or start the server with '--protected-mode no'.\r\n";
