//! What every feature of a server needs, and none owns: the shard, the clients, the configuration.
//!
//! A feature owns its state and is handed the core. The core knows no feature's type; what units
//! must tell features of (the stream for replicas, guarded keys, monitors) is gathered here.
//!
//! What it holds has three lifetimes, and each is a type: [`Process`] outlives demotions, [`Core`]
//! is one life of it, [`Turn`] is one turn of the loop.

pub(crate) mod asker;
mod checksum;
pub(crate) mod client_limits;
mod client_memory;
pub(crate) mod clients;
pub(crate) mod cold;
mod compaction;
mod demand;
pub(crate) mod describe;
mod expiry;
mod flush;
mod guards;
mod observe;
pub mod pause;
pub(crate) mod pubsub;
mod rights;
mod role;
mod sessions;
mod snapshots;
mod stopwatch;
mod stream;
pub(crate) mod tier_report;
pub(crate) mod tier_waits;
mod tracking;
mod transactions;
mod units;
pub(crate) mod verdict;
mod waits;

use crate::core::client_limits::owed_bytes_max;
use crate::cross_protocol::CrossProtocol;
use crate::limits::Limits;
use base::machine::Identity;
use base::{Clock, Disk, Driver, Machine, MonotonicNanos, Seeds, UnixMillis};
use catalog::Catalog;
use catalog::acl::Acl;
pub use clients::Clients;
use config::Config;
use config::settings::{NodeSettings, engine_settings, node_settings};
use engine::interest::Interest;
use engine::master::Master;
use engine::settings::Settings;
use engine::unit::Context;
use guards::Guards;
use pause::Pause;
use sha2::{Digest, Sha256};
use shard::loading::Progress;
use shard::snapshots::Snapshots;
use shard::tiering::OpenTier;
use shard::{Leadership, Shard};
use statistics::{Latency, Slowlog, Statistics};
use std::any::Any;
use std::sync::Arc;
use stopwatch::Stopwatch;
use stream::Stream;
use tier_waits::TierWaits;

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
    /// Makes the file of values that memory has no room for.
    pub tier: Arc<dyn OpenTier>,
    /// Unpredictable bits, for ids and for nothing that must stay secret.
    pub entropy: u64,
    /// What stays secret.
    pub seeds: Seeds,
    pub limits: Limits,
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

/// Frees big values away from the loop; it does not block.
pub type Garbage = Box<dyn FnMut(Box<dyn Any + Send>)>;

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

/// What a process has in all its lives: its configuration, its users, what it has counted.
pub struct Process {
    pub options: Options,
    /// What the operator asked for, and the same as plain fields.
    pub config: Config,
    pub settings: NodeSettings,
    /// Users and what they may do.
    pub acl: Acl,
    /// The commands, by the names that clients call them here.
    pub catalog: &'static Catalog,
    pub identity: Identity,
    pub slowlog: Slowlog,
    pub latency: Latency,
    pub statistics: Statistics,
    /// What sessions occupied at the last sample.
    pub(crate) clients_bytes: u64,
    /// When the division between ordinary and slow memory was last looked at.
    pub(crate) memory_checked: MonotonicNanos,
    pub(crate) tier_waits: TierWaits,
    /// How many clients the machine has file descriptors for.
    descriptors_max: usize,
    /// When the process started.
    pub started: MonotonicNanos,
    /// When a web page's attempt was last told of.
    pub(crate) cross_protocol: CrossProtocol,
    /// DEBUG SET-ACTIVE-EXPIRE: whether keys die at their time or when somebody looks.
    pub is_active_expiry_on: bool,
    /// DEBUG PAUSE-CRON: whether the periodic work is stopped.
    pub is_cron_paused: bool,
    /// DEBUG REPLYBUFFER RESIZING: whether outputs give room back that they do not need.
    pub(crate) trims_outputs: bool,
    pub garbage: Garbage,
}

impl Process {
    pub(crate) fn new(
        options: Options,
        catalog: &'static Catalog,
        acl: Acl,
        garbage: Garbage,
    ) -> Self {
        Self {
            settings: node_settings(&options.config),
            config: options.config.clone(),
            acl,
            catalog,
            identity: options.machine.identity(),
            slowlog: Slowlog::default(),
            latency: Latency::default(),
            statistics: Statistics::new(catalog.len()),
            clients_bytes: 0,
            memory_checked: options.clock.monotonic(),
            tier_waits: TierWaits::default(),
            descriptors_max: options.machine.clients_max(),
            started: options.clock.monotonic(),
            cross_protocol: CrossProtocol::default(),
            is_active_expiry_on: true,
            is_cron_paused: false,
            trims_outputs: true,
            garbage,
            options,
        }
    }

    /// Requests that ran while others were answered, because their values had come: the simulator
    /// asks whether it has met some.
    #[doc(hidden)]
    pub fn ran_amid_sending(&self) -> u64 {
        self.tier_waits.amid_sending
    }

    /// The most clients that are taken in: `maxclients`, or as many as there are descriptors for.
    pub(crate) fn clients_max(&self) -> usize {
        (self.settings.maxclients as usize).min(self.descriptors_max)
    }

    /// What the configuration and the limits say to the engine.
    pub(crate) fn engine_settings(&self) -> Settings {
        Settings { limits: self.options.limits.engine, ..engine_settings(&self.config) }
    }

    /// For the next life: ids and secrets are drawn anew.
    pub(crate) fn in_next_life(mut self, driver: &mut dyn Driver) -> Self {
        self.options.config = self.config.clone();
        self.options.entropy = driver.entropy();
        self.options.seeds = Seeds::draw(driver);
        self
    }
}

/// The instants of one turn of the loop.
#[derive(Default)]
pub struct Turn {
    /// Turns of the loop so far.
    pub number: u64,
    /// The time of this turn, as Redis shows and stores it: the shard's on a primary, else that of
    /// this machine's wall clock. It jumps from the one to the other when this process takes over,
    /// so how long something takes is measured by `monotonic`.
    pub now: UnixMillis,
    /// Monotonic time of this turn.
    pub monotonic: MonotonicNanos,
    /// The time of the loop's thread when it began, in nanoseconds, where there is a tier: its
    /// turns have a limit for which that counts. It would be a few per cent of a short turn.
    pub(crate) cpu_began: Option<u64>,
    /// When the command that executes now began.
    pub(crate) lap: MonotonicNanos,
    /// The running command answers an error that was counted already, as an error of a script may
    /// be.
    pub(crate) has_failed: bool,
    /// How long the command that executes now pretended to work (DEBUG SLEEP).
    pub(crate) slept_nanos: u64,
    /// Nothing executes before this (DEBUG SLEEP).
    pub(crate) asleep_until: MonotonicNanos,
}

/// The start, as INFO persistence shows it. Snapshots have their own
/// [`Status`](shard::snapshots::Status).
#[derive(Clone, Debug)]
pub struct Persistence {
    /// The data set is still being loaded.
    pub is_loading: bool,
    /// When this life began: INFO shows it as the time of the last snapshot, while there is none.
    pub began: UnixMillis,
    /// Keys that the snapshot had.
    pub keys_loaded: u64,
    /// How far the loading is.
    pub progress: Progress,
}

impl Persistence {
    /// Nothing loaded yet by a process that started then.
    pub fn new(began: UnixMillis) -> Self {
        Self { is_loading: false, began, keys_loaded: 0, progress: Progress::default() }
    }
}

/// One life of a process: from a loading to a demotion.
pub struct Core {
    pub process: Process,
    pub shard: Shard,
    /// Takes snapshots, if there is a place for them.
    pub(crate) snapshots: Option<Snapshots>,
    /// Connections that must hear of changes: they outlive the shard that a loading replaces.
    pub interest: Interest,
    pub clients: Clients,
    pub turn: Turn,
    /// Tells how long commands take. Set when a turn begins.
    pub(crate) stopwatch: Stopwatch,
    /// CLIENT PAUSE, and what else lets writes wait.
    pub(crate) pause: Pause,
    /// What replicas of Redis are told.
    pub(crate) stream: Stream,
    /// Keys that the server itself watches.
    pub(crate) guards: Guards,
    /// The context of the running unit: its time does not advance while it runs.
    pub(crate) begun: Option<Context>,
    /// Whether memory was over its limit, and nothing could be evicted, when the running request
    /// passed the gate.
    pub(crate) is_short_of_room: bool,
    /// Requests that were put off, in this turn and in those just before it that executed none:
    /// values leave memory no faster, or a snapshot is behind.
    pub(crate) put_off: usize,
    /// A rule that a test breaks: this master is followed whenever this process leads.
    pub(crate) forced_master: Option<Option<Master>>,
    /// Why a request of the master's stream was refused, the first since the link last asked.
    pub(crate) master_refused: Option<String>,
    /// What this process is to the shard: primary or replica.
    pub leadership: Leadership,
    pub persistence: Persistence,
    /// When a clean stop began to wait.
    pub(crate) stopping_since: Option<MonotonicNanos>,
    /// Set when the process is to stop: why.
    pub stopping: Option<Stop>,
    #[doc(hidden)]
    pub broken: Option<Broken>,
}

impl Core {
    /// The present by the stopwatch: exact enough for how long commands take, and for when they
    /// have used up a turn. Not for leases and deadlines.
    pub(crate) fn lap_time(&self) -> MonotonicNanos {
        self.stopwatch.read(&*self.process.options.clock)
    }

    /// A command begins now.
    pub(crate) fn begin_lap(&mut self) {
        self.turn.lap = self.lap_time();
    }

    /// Bytes that replicas of Redis were told: `master_repl_offset`.
    pub fn stream_offset(&self) -> u64 {
        self.stream.offset
    }

    pub(crate) fn new(process: Process, leadership: Leadership) -> Self {
        let lap = process.options.clock.monotonic();
        // The first reading of the counter may open a file of the system's: not amid a turn.
        let mut stopwatch = Stopwatch::default();
        stopwatch.set(lap, &*process.options.clock);
        Self {
            shard: Shard::loading(process.engine_settings(), process.options.seeds),
            snapshots: None,
            interest: Interest::bounded(owed_bytes_max(&process.settings)),
            clients: Clients::default(),
            turn: Turn { lap, ..Turn::default() },
            stopwatch,
            pause: Pause::default(),
            stream: Stream::default(),
            guards: Guards::default(),
            begun: None,
            is_short_of_room: false,
            put_off: 0,
            forced_master: None,
            master_refused: None,
            leadership,
            persistence: Persistence::new(process.options.clock.unix_millis()),
            stopping_since: None,
            stopping: None,
            broken: None,
            process,
        }
    }

    /// Begins a clean stop, which a client or a signal asks for, unless the process ends already.
    pub(crate) fn stop_when_durable(&mut self, asked_by: &str) {
        if self.stopping.is_none() {
            tracing::info!("{asked_by}: stopping once everything executed is durable");
            self.stopping = Some(Stop::Clean);
        }
    }

    /// Says in the server's log how a stop that was asked for has ended: a process's last line.
    pub fn tell_stopped(&self) {
        let sequence = self.shard.durable().sequence.0;
        if self.persistence.is_loading {
            tracing::info!("stopped while loading");
        } else if self.shard.is_in_flight() {
            tracing::warn!(sequence, "stopped: what is behind this was acknowledged to nobody");
        } else {
            tracing::info!(sequence, "stopped: everything executed is durable");
        }
    }
}

/// 40 hexadecimal digits from bits, as Redis's run ids look. From the digits nobody can compute the
/// bits, of which a log may have made more than its identity.
pub fn hex_id(bits: u64) -> String {
    let digest = Sha256::digest(bits.to_le_bytes());
    digest.iter().take(20).map(|byte| format!("{byte:02x}")).collect()
}
