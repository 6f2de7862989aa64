//! One simulated machine: its disk, and the server process that runs on it.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::disk_queue::SimDiskQueue;
use crate::limits::Limits;
use crate::random::Random;
use crate::tier::{SimTier, Tiered};
use crate::timeline::Timeline;
use archive::{Candidate, SnapshotStore};
use base::Seeds;
use base::disk::DiskQueue;
use base::driver::Waker;
use base::machine::UnknownMachine;
use config::Config;
use config::settings::engine_settings;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::settings::Settings;
use node::{Options, Server};
use shard::loading::{FileLogOpener, Loading, SliceLimits, Sources};
use shard::recovery::Replayer;
use shard::snapshots;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use txlog::Kind;
use txlog::file::{FileOptions, Queues, inspect};

pub const LOG: &str = "/data/log";
const STORE: &str = "/data/snapshots";

/// How long a disk job takes at least.
pub const DISK_NANOS: u64 = 50_000;

/// A build that is broken on purpose, so that a test can prove that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Broken {
    #[default]
    Nothing,
    /// Replies leave before what they reveal is durable.
    HoldsNothing,
    /// The log acknowledges before it syncs.
    AcknowledgesBeforeSync,
    /// Syncs succeed and do nothing.
    StubsSync,
    /// Records of one writer carry one counter.
    ReusesCounters,
    /// Snapshots are published before their position is durable.
    PublishesEarly,
    /// The log is trimmed through the newest snapshot, not the oldest that is retained.
    TrimsThroughNewest,
    /// Who subscribed while the server loaded is forgotten when it has.
    ForgetsSubscribers,
    /// A long value that changes while it is encoded for the tier goes as it was.
    KeepsEncoding,
}

/// One machine. Its clock and its time may be those of others.
pub struct Machine {
    pub disk: SimDisk,
    pub timeline: Timeline,
    pub clock: SimClock,
    pub broken: Broken,
    /// The largest record: what is larger is split.
    pub record_bytes_max: usize,
    pub limits: Limits,
    /// Where values go that memory has no room for, if they go.
    pub tier: Option<Tiered>,
}

impl Machine {
    /// Another machine with its own time and this disk.
    pub fn beside(&self, disk: &SimDisk) -> Self {
        let timeline = Timeline::new();
        let clock = SimClock::new(&timeline);
        let Self { broken, record_bytes_max, limits, tier, .. } = *self;
        Self { disk: disk.clone(), timeline, clock, broken, record_bytes_max, limits, tier }
    }

    /// Small sizes, so that a short run rolls several times.
    fn file_options(&self, entropy: u64) -> FileOptions {
        let mut options = FileOptions::new(entropy);
        options.record_bytes_max = self.record_bytes_max;
        options.batch_bytes_max = self.record_bytes_max + (8 << 10);
        options.segment_bytes = 2 * options.batch_bytes_max as u64 + (16 << 10);
        options.first_segment_bytes = options.segment_bytes - (8 << 10);
        options.in_flight_bytes_max = 2 * options.batch_bytes_max;
        if let Some(bytes) = self.limits.piece_bytes_max {
            options.piece_bytes_max = bytes;
        }
        options.acknowledges_before_sync = self.broken == Broken::AcknowledgesBeforeSync;
        options
    }

    fn config(&self) -> Config {
        match &self.tier {
            Some(tier) => tier.config(&[]),
            None => Config::new(Path::new("/data")),
        }
    }

    fn queue(&self, entropy: u64, name: &str, waker: &Waker) -> Box<dyn DiskQueue> {
        let mut random = Random::stream(entropy, name);
        // A disk may be slow for one sort of work: what seems to come long after may come first.
        let slower = *random.choose(&[1, 1, 1, 20, 400]);
        let nanos = DISK_NANOS * slower;
        Box::new(SimDiskQueue::new(&self.timeline, random, nanos, waker.clone()))
    }

    /// Where the snapshots are.
    ///
    /// # Errors
    /// The disk's.
    pub fn store(&self) -> Result<SnapshotStore, String> {
        let store = SnapshotStore::open(Arc::new(self.disk.for_process()), Path::new(STORE));
        Ok(store.map_err(text)?.with_limits(self.limits.snapshots))
    }

    /// The log on the disk, as a starting server opens it.
    fn log(&self, entropy: u64, waker: &Waker) -> FileLogOpener {
        FileLogOpener {
            disk: Arc::new(self.disk.for_process()),
            clock: Arc::new(self.clock.clone()),
            queues: Queues {
                commits: self.queue(entropy, "commits", waker),
                background: self.queue(entropy, "background", waker),
            },
            directory: Path::new(LOG).to_owned(),
            options: self.file_options(entropy),
        }
    }

    /// What a start would load.
    ///
    /// # Errors
    /// What the server would say.
    pub fn recover(&self, entropy: u64) -> Result<(Engine, Replayer), String> {
        let sources = Sources {
            clock: Arc::new(self.clock.clone()),
            store: self.store()?,
            settings: Settings {
                limits: self.limits.node.engine,
                ..engine_settings(&self.config())
            },
            seeds: Seeds::fixed(entropy),
        };
        let log = self.log(entropy, &Waker(Arc::new(|| {})));
        let mut loading = Loading::open(sources, |known| log.open(known)).map_err(text)?;
        loading.finish(|| self.timeline.pass(DISK_NANOS)).map_err(text)?;
        let (engine, replayer, _) =
            loading.into_loaded().ok_or_else(|| "still loading".to_owned())?;
        Ok((engine, replayer))
    }

    /// A server process that has loaded nothing yet. `waker` is called for its tier.
    pub fn process(&self, entropy: u64, waker: &Waker) -> Server {
        let mut limits = self.limits.node;
        if let Some(tier) = &self.tier {
            tier.limit(&mut limits);
        }
        let random = Random::stream(entropy, "tier");
        let disk = self.disk.for_process();
        let tier = SimTier::new(&disk, &self.timeline, random, waker.clone());
        let options = Options {
            config: self.config(),
            port: 6379,
            clock: Arc::new(self.clock.clone()),
            disk: Arc::new(disk),
            machine: Arc::new(UnknownMachine),
            entropy,
            seeds: Seeds::fixed(entropy),
            limits,
            tier: Arc::new(tier),
        };
        node::begin(options, Box::new(drop))
    }

    /// Begins to load in slices so small that clients get a word in.
    ///
    /// # Errors
    /// What the server would say.
    pub fn begin_loading(
        &self,
        server: &Server,
        store: SnapshotStore,
        waker: &Waker,
    ) -> Result<Loading, String> {
        let log = self.log(server.core.process.options.entropy, waker);
        let mut loading = server.open_shard(store, |known| log.open(known)).map_err(text)?;
        let entropy = server.core.process.options.entropy;
        let readers = (0..entropy % 3).map(|n| self.queue(entropy, &format!("reader-{n}"), waker));
        loading.read_parts_by(readers.collect());
        loading.limit_slices(SliceLimits {
            step_keys: 3,
            step_records: 2,
            steps_max: 2,
            ..SliceLimits::default()
        });
        Ok(loading)
    }

    /// Lets a server that has loaded take snapshots, in slices so small that commands come between
    /// them; breaks what is to be broken.
    pub fn complete(&self, server: &mut Server, store: SnapshotStore, entropy: u64, waker: &Waker) {
        let queue = self.queue(entropy, "snapshots", waker);
        let pace = snapshots::Pace {
            step_keys: 1,
            step_bytes: 1 << 10,
            steps_max: 1,
            chunk_bytes: 1 << 10,
            backlog_bytes_max: 2 << 10,
            log_growth_bytes_min: 32 << 10,
            rest_nanos: 0,
            log_growth_bytes_hasty: 0,
            publishes_before_durable: self.broken == Broken::PublishesEarly,
            trims_through_newest: self.broken == Broken::TrimsThroughNewest,
            trims_unconfirmed: false,
            report_nanos: 0,
            ..self.limits.pace()
        };
        server.core.keep_snapshots(store, queue, pace);
        match self.broken {
            Broken::HoldsNothing => server.core.shard.break_tracker(),
            Broken::ReusesCounters => server.core.shard.break_counters(),
            Broken::ForgetsSubscribers => server.core.interest = Interest::default(),
            _ => {}
        }
    }

    /// Damages one byte of the newest snapshot, where there is one to fall back to or the whole
    /// log; its name. Nothing is done to a store in which a snapshot is damaged already: two
    /// failures at once are more than is promised.
    ///
    /// # Errors
    /// The disk's.
    pub fn damage_newest(&self, random: &mut Random) -> Result<Option<String>, String> {
        let candidates = self.store()?.list().map_err(text)?;
        let is_whole = |candidate: &Candidate| matches!(candidate, Candidate::Whole(_));
        let Some(Candidate::Whole(newest)) = candidates.first() else { return Ok(None) };
        if !candidates.iter().all(is_whole) {
            return Ok(None);
        }
        let (file, bytes) = match random.within(0..3) {
            0 => ("manifest.json", newest.manifest.encode().len() as u64),
            _ => {
                let part = random.choose(&newest.manifest.parts);
                (part.name.as_str(), part.bytes)
            }
        };
        let path = Path::new(STORE).join(&newest.name).join(file);
        self.disk.damage(&path, random.within(0..bytes) as usize, 0x04);
        Ok(Some(newest.name.clone()))
    }

    /// The snapshots that are published, newest first.
    ///
    /// # Errors
    /// The disk's.
    pub fn snapshots(&self) -> Result<Vec<Candidate>, String> {
        self.store()?.list().map_err(text)
    }

    /// Reads every record of the log: none may be void here, where no rival ever leads, and within
    /// an epoch one writer's counters follow each other, so that two records are never taken for
    /// one. The sequences that are no data.
    ///
    /// # Errors
    /// What is wrong.
    pub fn survey(&self) -> Result<BTreeSet<u64>, String> {
        let mut leads = BTreeSet::new();
        // What keeps a log from being opened is for who opens it to say.
        let Ok(mut found) = inspect(Arc::new(self.disk.clone()), Path::new(LOG)) else {
            return Ok(leads);
        };
        let mut chain = found.chain;
        let mut last = None;
        while let Some((position, bytes)) = found.replay.next_record().map_err(text)? {
            let sequence = position.sequence;
            let header = txlog::record::decode_header(&bytes, true).map_err(text)?;
            if !chain.admits(&header) {
                return Err(format!("record {sequence} does not count"));
            }
            chain.extend(&header, &bytes);
            let this = (header.epoch, header.writer, header.counter);
            let follows = match last {
                Some((epoch, writer, counter)) if epoch == header.epoch => {
                    writer == header.writer && header.counter == counter + 1
                }
                _ => true,
            };
            if !follows {
                return Err(format!("record {sequence}: {this:?} after {last:?}"));
            }
            last = Some(this);
            if header.kind != Kind::Data {
                leads.insert(sequence.0);
            }
        }
        Ok(leads)
    }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// The digest of what a server holds.
pub fn digest(server: &Server) -> Digest {
    Digest::of_keyspace(&server.core.shard.engine.keyspace)
}
