//! The start of a server: the newest snapshot, then the log behind it, in slices.
//!
//! ```text
//! choose ─▶ snapshot ─▶ log ─▶ lead
//!    ▲──────────┘ damaged: refused by name, the one before it is taken
//! ```
//! Between the slices the loop turns, so that clients are told LOADING instead of nothing. A
//! snapshot is read once: its checksums are compared as it is loaded, and what was loaded of one
//! that turns out damaged is thrown away.

use crate::config::settings::engine_settings;
use crate::reactor::Scratch;
use crate::recovery::{Replayer, lead};
use crate::server::{Server, Stop};
use crate::shard::Shard;
use archive::{Candidate, PartReader, Snapshot, SnapshotStore};
use base::{Clock, Disk, Driver, Incarnation, MonotonicNanos, Position, Sequence, UnixMillis};
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use engine::rdb::{Loader, RdbError};
use engine::settings::Settings;
use std::collections::VecDeque;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use txlog::file::{FileLog, FileOptions, Queues};
use txlog::memory::MemoryLog;
use txlog::record::ChainValue;
use txlog::{Chain, Replay, Stamper, WriterId};

/// Time between two turns of the loop, in nanoseconds: what a client waits for its LOADING.
const SLICE_NANOS: u64 = 10_000_000;

/// How much a slice does.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Keys or records between two looks at the clock.
    pub step_keys: u64,
    pub step_records: usize,
    /// Steps of one slice, whatever the clock says: simulated clocks stand still within a turn.
    pub steps_max: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { step_keys: 4096, step_records: 64, steps_max: 256 }
    }
}

/// Bytes of the shortest entry of a snapshot: its type, and lengths of an empty key and value. A
/// manifest that claims more keys than there is room for takes no memory for them.
const ENTRY_BYTES_MIN: u64 = 3;

/// Time between two lines of progress, in nanoseconds.
const PROGRESS_NANOS: u64 = 1_000_000_000;

type Failure = Box<dyn Error>;

/// What a loading needs to know.
pub struct Sources<'a> {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub queues: Queues,
    pub log: &'a Path,
    pub log_options: FileOptions,
    /// The same that later keeps the server's snapshots: it learns here which are damaged.
    pub store: SnapshotStore,
    pub settings: Settings,
    /// Unpredictable bits: the seed of the keys' hash and the writer's id.
    pub entropy: u64,
}

/// A loading under way.
pub struct Loading {
    clock: Arc<dyn Clock>,
    store: SnapshotStore,
    settings: Settings,
    entropy: u64,
    /// Snapshots not yet tried, newest first.
    candidates: VecDeque<Candidate>,
    log: FileLog,
    found: txlog::Recovery,
    engine: Engine,
    stage: Stage,
    pace: Pace,
    /// Bytes of the stage, used and in all.
    pub used_bytes: u64,
    pub total_bytes: u64,
    /// Keys that the snapshot had.
    pub keys_loaded: u64,
    /// Bytes of log replayed.
    replayed_bytes: u64,
    began: MonotonicNanos,
    told: MonotonicNanos,
}

enum Stage {
    Choose,
    Snapshot(Box<(Snapshot, Loader<PartReader>)>),
    Log(Replay, Box<Replayer>),
    Done(Box<Replayer>),
}

impl Loading {
    /// Opens the log and looks for snapshots. Blocks.
    ///
    /// # Errors
    /// The log is damaged, lost, or written by another process; the disk fails.
    pub fn open(sources: Sources<'_>) -> Result<Self, Failure> {
        let Sources { disk, clock, queues, log: path, mut log_options, store, settings, entropy } =
            sources;
        let candidates = store.list()?;
        let newest = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot.place.position),
            Candidate::Damaged { .. } => None,
        });
        log_options.known = newest.max_by_key(|position| position.sequence);
        // A damaged snapshot says no more than that there was a log; that is enough.
        log_options.must_exist = !candidates.is_empty();
        let (log, found) = FileLog::open(disk, Arc::clone(&clock), queues, path, log_options)?;
        if !found.is_writer {
            let path = path.display();
            return Err(format!("another process writes the transaction log {path}").into());
        }
        // Only now: the log's lock says that no other process writes snapshots here.
        store.remove_unpublished()?;
        let began = clock.monotonic();
        Ok(Self {
            engine: Engine::new(Keyspace::new(settings.clone(), entropy), entropy),
            clock,
            store,
            settings,
            entropy,
            candidates: candidates.into(),
            log,
            found,
            stage: Stage::Choose,
            pace: Pace::default(),
            used_bytes: 0,
            total_bytes: 0,
            keys_loaded: 0,
            replayed_bytes: 0,
            began,
            told: began,
        })
    }

    /// Lets slices be smaller, so that a short simulated run has several.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Goes on for one slice; whether everything is loaded.
    ///
    /// # Errors
    /// The data cannot be had back: the log is damaged, or does not reach back to any snapshot.
    pub fn step(&mut self) -> Result<bool, Failure> {
        let began = self.clock.monotonic();
        for _ in 0..self.pace.steps_max {
            let stage = std::mem::replace(&mut self.stage, Stage::Choose);
            self.stage = match stage {
                Stage::Choose => self.choose()?,
                Stage::Snapshot(loading) => self.load(loading)?,
                Stage::Log(replay, replayer) => self.replay(replay, replayer)?,
                done @ Stage::Done(_) => {
                    self.stage = done;
                    return Ok(true);
                }
            };
            let now = self.clock.monotonic();
            self.tell(now);
            if now.since(began) >= SLICE_NANOS {
                break;
            }
        }
        Ok(false)
    }

    fn choose(&mut self) -> Result<Stage, Failure> {
        match self.candidates.pop_front() {
            Some(Candidate::Damaged { name, why }) => {
                tracing::error!("snapshot {name} is damaged and not used: {why}");
                Ok(Stage::Choose)
            }
            Some(Candidate::Whole(snapshot)) if snapshot.manifest.parts.len() == 1 => {
                tracing::info!(name = snapshot.name, keys = snapshot.manifest.keys, "loading");
                let part = self.store.open_part(&snapshot, 0)?;
                self.total_bytes = part.length();
                let keys = snapshot.manifest.keys.min(part.length() / ENTRY_BYTES_MIN);
                let loader = Loader::of_own_file(part, keys, self.clock.unix_millis());
                Ok(Stage::Snapshot(Box::new((snapshot, loader))))
            }
            Some(Candidate::Whole(snapshot)) => {
                let parts = snapshot.manifest.parts.len();
                Err(format!("snapshot {} has {parts} parts, not one", snapshot.name).into())
            }
            None if self.found.first.sequence > Sequence(1) => {
                let first = self.found.first.sequence;
                let what = "no snapshot can be used, and the transaction log begins";
                Err(format!("{what} at record {first}: the data before it is gone").into())
            }
            None => self.begin_log(Replayer::new(Sequence::ZERO, self.log.first_chain())),
        }
    }

    fn load(&mut self, mut loading: Box<(Snapshot, Loader<PartReader>)>) -> Result<Stage, Failure> {
        let (snapshot, loader) = &mut *loading;
        let outcome = loader.load(&mut self.engine.keyspace, self.pace.step_keys);
        self.used_bytes = loader.offset();
        let keys = snapshot.manifest.keys;
        let why = match outcome {
            Ok(false) => return Ok(Stage::Snapshot(loading)),
            Ok(true) if loader.keys_loaded == keys => {
                self.keys_loaded = keys;
                return self.begin_log_behind(snapshot);
            }
            Ok(true) => format!("it holds {} keys instead of {keys}", loader.keys_loaded),
            Err(error @ RdbError::Unsupported { .. }) => {
                return Err(format!("snapshot {}: {error}", snapshot.name).into());
            }
            Err(error) => error.to_string(),
        };
        tracing::error!("snapshot {} is damaged and not used: {why}", snapshot.name);
        self.store.refuse(&snapshot.name, &why);
        let keyspace = Keyspace::new(self.settings.clone(), self.entropy);
        self.engine = Engine::new(keyspace, self.entropy);
        Ok(Stage::Choose)
    }

    fn begin_log_behind(&mut self, snapshot: &Snapshot) -> Result<Stage, Failure> {
        let place = &snapshot.place;
        let chain = Chain { value: ChainValue(place.chain), epoch: place.epoch };
        let mut replayer = Replayer::new(place.position.sequence, chain);
        replayer.clock_at_least(place.clock);
        self.begin_log(replayer)
    }

    fn begin_log(&mut self, replayer: Replayer) -> Result<Stage, Failure> {
        let replay = self.log.replay(replayer.at().next())?;
        self.total_bytes = replay.progress().total_bytes;
        Ok(Stage::Log(replay, Box::new(replayer)))
    }

    fn replay(
        &mut self,
        mut replay: Replay,
        mut replayer: Box<Replayer>,
    ) -> Result<Stage, Failure> {
        for _ in 0..self.pace.step_records {
            let Some((position, bytes)) = replay.next_record()? else {
                return Ok(Stage::Done(replayer));
            };
            self.replayed_bytes += bytes.len() as u64;
            replayer.consume(&mut self.engine, position.sequence, &bytes)?;
        }
        self.used_bytes = replay.progress().read_bytes;
        Ok(Stage::Log(replay, replayer))
    }

    fn tell(&mut self, now: MonotonicNanos) {
        if now.since(self.told) < PROGRESS_NANOS {
            return;
        }
        self.told = now;
        let percent = self.used_bytes * 100 / self.total_bytes.max(1);
        let what = match self.stage {
            Stage::Log(..) | Stage::Done(_) => "replaying the log",
            _ => "loading the snapshot",
        };
        tracing::info!(percent, keys = self.engine.keyspace.len(), "{what}");
    }

    /// What was loaded, for who only looks at it: the log is let go. `None` while still loading.
    pub fn into_loaded(self) -> Option<(Engine, Replayer)> {
        match self.stage {
            Stage::Done(replayer) => Some((self.engine, *replayer)),
            _ => None,
        }
    }

    /// Takes the lead of the log. Blocks until that is durable.
    ///
    /// # Errors
    /// The log refuses, or not everything was loaded.
    pub fn finish(self, wait: impl FnMut()) -> Result<Shard, Failure> {
        let Stage::Done(replayer) = self.stage else { return Err("still loading".into()) };
        let millis = self.clock.monotonic().since(self.began) / 1_000_000;
        tracing::info!(
            snapshot_keys = self.keys_loaded,
            log_bytes = self.replayed_bytes,
            effects = replayer.effects,
            keys = self.engine.keyspace.len(),
            millis,
            "loaded"
        );
        let log = Box::new(self.log);
        let incarnation = self.found.tail.incarnation;
        let writer = WriterId(self.entropy | 1);
        let now = self.clock.unix_millis();
        let mut shard = lead(self.engine, log, &replayer, incarnation, writer, now, wait)?;
        shard.bytes_since_snapshot = self.replayed_bytes;
        Ok(shard)
    }
}

impl Shard {
    /// A shard without data, whose writes lead nowhere: what a server has while it loads.
    pub fn without_data(settings: Settings, entropy: u64) -> Self {
        let engine = Engine::new(Keyspace::new(settings, entropy), entropy);
        let log = MemoryLog::new(Incarnation(0)).handle(1 << 20);
        let chain = Chain::start(Incarnation(0));
        let stamper = Stamper::new(WriterId(0), chain, UnixMillis(0));
        Self::new(engine, Box::new(log), stamper, Position::default())
    }
}

impl Server {
    /// Loads everything while clients are told to wait, then serves it. `Some` if the server was
    /// told to stop before it was done.
    ///
    /// # Errors
    /// The data cannot be had back.
    pub fn load(
        &mut self,
        driver: &mut dyn Driver,
        mut loading: Loading,
        wait: impl FnMut(),
    ) -> Result<Option<Stop>, Failure> {
        let mut scratch = Scratch::default();
        self.persistence.is_loading = true;
        while !loading.step()? {
            self.persistence.bytes_loaded = loading.used_bytes;
            self.persistence.bytes_to_load = loading.total_bytes;
            self.turn(driver, &mut scratch);
            if let Some(stop) = self.stopping.clone() {
                return Ok(Some(stop));
            }
        }
        self.persistence.keys_loaded = loading.keys_loaded;
        let mut shard = loading.finish(wait)?;
        let before = &mut self.shard.engine.keyspace;
        let keyspace = &mut shard.engine.keyspace;
        // Clients may have begun to watch keys.
        keyspace.watchers = std::mem::take(&mut before.watchers);
        keyspace.waiters = std::mem::take(&mut before.waiters);
        keyspace.settings = engine_settings(&self.config);
        if keyspace.is_partial() {
            tracing::error!(
                keys = keyspace.len(),
                "the transfer of a master's data set was cut short: what is here is a part of it, \
                 and requests are refused until REPLICAOF or FLUSHALL"
            );
        }
        self.shard = shard;
        self.persistence.is_loading = false;
        Ok(None)
    }
}
