//! One node with log and snapshots on a simulated disk, and the states that it went through.

use super::follower::Follower;
use archive::{Candidate, SnapshotStore};
use base::disk::DiskQueue;
use base::driver::{Driver, Waker};
use base::machine::UnknownMachine;
use base::{HashKey, Seeds, Sequence, UnixMillis};
use config::Config;
use engine::digest::Digest;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::settings::Settings;
use node::Scratch;
use node::{Limits, Options, Server};
use shard::loading::{FileLogOpener, Loading};
use shard::snapshots::{ArchiveLog, Pace, SnapshotFile};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::disk_queue::SimDiskQueue;
use sim::driver::SimDriver;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::random::Random;
use sim::tier::SimTier;
use sim::timeline::Timeline;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use txlog::Kind;
use txlog::file::{FileOptions, Queues, inspect};

pub const LOG: &str = "/data/log";
pub const STORE: &str = "/data/snapshots";
const NODE: &str = "node";

/// How long a disk job takes at least.
pub const DISK_NANOS: u64 = 50_000;

/// Bytes of a part, but for what a turn adds.
pub const PART_BYTES: u64 = 2 << 10;

/// Parts of a snapshot.
pub const PARTS_MAX: usize = 12;

/// What must hold across every life of the node.
#[derive(Default)]
pub struct Ledger {
    /// The data's digest behind each record that ended a turn.
    states: BTreeMap<Sequence, Digest>,
    /// The last record that was durable while a node lived.
    durable: Sequence,
    /// Snapshots found whole, over all lives.
    pub snapshots_seen: u64,
    /// The most parts that one of them had.
    pub most_parts: usize,
    /// The most that the log was ever trimmed.
    pub trimmed: Sequence,
}

/// A life of the node.
pub struct Life {
    pub server: Server,
    driver: SimDriver,
    scratch: Scratch,
    pub client: SimClient,
    network: SimNetwork,
    pub clock: SimClock,
    pub timeline: Timeline,
    /// A replica of the node, once it has attached.
    pub follower: Option<Follower>,
    pub replies: Vec<u8>,
}

/// Small sizes, so that a short run rolls segments, and trimming has something to forget.
pub fn log_options(seed: u64) -> FileOptions {
    let mut options = FileOptions::new(seed);
    options.record_bytes_max = 4 << 10;
    options.batch_bytes_max = 6 << 10;
    options.segment_bytes = 20 << 10;
    options.first_segment_bytes = 20 << 10;
    options.in_flight_bytes_max = 16 << 10;
    options
}

/// The store, in which parts are short, so that most snapshots have several.
pub fn store(disk: &SimDisk) -> Result<SnapshotStore, String> {
    let store = SnapshotStore::open(Arc::new(disk.clone()), Path::new(STORE)).map_err(text)?;
    let limits = archive::Limits::default();
    Ok(store.with_limits(archive::Limits {
        part_bytes: PART_BYTES,
        parts_max: PARTS_MAX,
        ..limits
    }))
}

/// A few keys a turn, so that commands come between them and parts end.
fn slow_pace() -> Pace {
    Pace { step_keys: 8, steps_max: 1, chunk_bytes: 1 << 10, ..Pace::default() }
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Ledger {
    /// Every record that the log says it has must be readable. Those of a life that ended while it
    /// started are its `Lead`s, perhaps where a record was that did not become durable: they
    /// leave the state as it was.
    fn hold_against_the_log(&mut self, disk: &SimDisk) {
        let Ok(mut found) = inspect(Arc::new(disk.clone()), Path::new(LOG)) else { return };
        assert!(found.damage.is_none(), "{:?}", found.damage.as_ref().map(text));
        let mut expected = found.first.sequence;
        while let Some((position, bytes)) = found.replay.next_record().expect("whole records") {
            assert_eq!(position.sequence, expected);
            expected = expected.next();
            let header = txlog::record::decode_header(&bytes, true).expect("a header");
            if header.kind != Kind::Data {
                let state = self.state_behind(Sequence(position.sequence.0 - 1));
                self.states.insert(position.sequence, state);
            }
        }
        assert_eq!(expected, found.tail.sequence.next());
    }

    /// The data behind each record that ended a turn, in order.
    pub fn states(&self) -> impl Iterator<Item = (Sequence, Digest)> + '_ {
        self.states.iter().map(|(at, state)| (*at, *state))
    }

    fn state_behind(&self, sequence: Sequence) -> Digest {
        let last = self.states.range(..=sequence).next_back();
        last.map_or(Digest::default(), |(_, state)| *state)
    }
}

impl Life {
    /// Starts the node and holds what it loaded against the ledger.
    ///
    /// # Errors
    /// It does not start, which is right only if the power went off again.
    pub fn start(disk: &SimDisk, seed: u64, ledger: &mut Ledger) -> Result<Self, String> {
        Self::start_with_commits_of(DISK_NANOS, disk, seed, ledger)
    }

    /// As [`Self::start`], with a store that is limited in this way.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_limited(
        disk: &SimDisk,
        seed: u64,
        ledger: &mut Ledger,
        limited: impl FnOnce(SnapshotStore) -> SnapshotStore,
    ) -> Result<Self, String> {
        ledger.hold_against_the_log(disk);
        let store = limited(store(disk)?);
        let life = Self::start_with(3_600_000, DISK_NANOS, slow_pace(), store, disk, seed, |_| {})?;
        life.check_start(ledger);
        Ok(life)
    }

    /// As [`Self::start`], on a disk that takes so long for a commit.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_with_commits_of(
        commit_nanos: u64,
        disk: &SimDisk,
        seed: u64,
        ledger: &mut Ledger,
    ) -> Result<Self, String> {
        ledger.hold_against_the_log(disk);
        let life = Self::start_unchecked(commit_nanos, slow_pace(), disk, seed)?;
        life.check_start(ledger);
        Ok(life)
    }

    /// As [`Self::start_with_commits_of`], with snapshots at this pace, and what was loaded is not
    /// looked at.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_unchecked(
        commit_nanos: u64,
        pace: Pace,
        disk: &SimDisk,
        seed: u64,
    ) -> Result<Self, String> {
        Self::start_prepared(commit_nanos, pace, disk, seed, |_| {})
    }

    /// As [`Self::start_unchecked`], with a loading that was tampered with.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_prepared(
        commit_nanos: u64,
        pace: Pace,
        disk: &SimDisk,
        seed: u64,
        prepare: impl FnOnce(&mut Loading),
    ) -> Result<Self, String> {
        // Most of these runs are about records and snapshots: no lease ends in them.
        Self::start_under_lease(3_600_000, commit_nanos, pace, disk, seed, prepare)
    }

    /// As [`Self::start_prepared`], with a lease of so many milliseconds.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_under_lease(
        lease_millis: u64,
        commit_nanos: u64,
        pace: Pace,
        disk: &SimDisk,
        seed: u64,
        prepare: impl FnOnce(&mut Loading),
    ) -> Result<Self, String> {
        Self::start_with(lease_millis, commit_nanos, pace, store(disk)?, disk, seed, prepare)
    }

    /// As [`Self::start`], over this store, and what was loaded is not looked at.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn start_over(store: SnapshotStore, disk: &SimDisk, seed: u64) -> Result<Self, String> {
        Self::start_with(3_600_000, DISK_NANOS, slow_pace(), store, disk, seed, |_| {})
    }

    fn start_with(
        lease_millis: u64,
        commit_nanos: u64,
        pace: Pace,
        store: SnapshotStore,
        disk: &SimDisk,
        seed: u64,
        prepare: impl FnOnce(&mut Loading),
    ) -> Result<Self, String> {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, seed, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let mut driver = SimDriver::listen(&network, NODE, clock.clone(), seed);
        let queue = |name: &str, waker: Waker| -> Box<dyn DiskQueue> {
            let nanos = if name == "commits" { commit_nanos } else { DISK_NANOS };
            Box::new(SimDiskQueue::new(&timeline, Random::stream(seed, name), nanos, waker))
        };
        let config = Config::new(Path::new("/data"));
        let opener = FileLogOpener {
            disk: Arc::new(disk.clone()),
            clock: Arc::new(clock.clone()),
            queues: Queues {
                commits: queue("commits", driver.waker()),
                background: queue("background", driver.waker()),
            },
            directory: Path::new(LOG).to_owned(),
            options: log_options(seed),
        };
        let random = Random::stream(seed, "tier");
        let tier = SimTier::new(disk, &timeline, random, driver.waker());
        let options = Options {
            config,
            port: 1,
            clock: Arc::new(clock.clone()),
            disk: Arc::new(disk.clone()),
            machine: Arc::new(UnknownMachine),
            entropy: seed,
            seeds: Seeds::fixed(seed),
            limits: Limits::default(),
            tier: Arc::new(tier),
        };
        let mut server = node::begin(options, Box::new(drop));
        server.core.process.settings.transaction_log_lease = lease_millis;
        let loading = server.open_shard(store.clone(), |known| opener.open(known));
        let mut loading = loading.map_err(text)?;
        // From none, which reads between the turns, to several.
        let readers = (0..seed % 4).map(|n| queue(&format!("reader-{n}"), driver.waker()));
        loading.read_parts_by(readers.collect());
        prepare(&mut loading);
        server.load(&mut driver, loading).map_err(text)?;
        server.core.keep_snapshots(store, queue("snapshots", driver.waker()), pace);
        server.feed.read_files_by(queue("feed", driver.waker()));
        let client = network.connect(NODE);
        let scratch = Scratch::default();
        let (follower, replies) = (None, Vec::new());
        Ok(Self { server, driver, scratch, client, network, clock, timeline, follower, replies })
    }

    /// No durable record may be missing, and the state must be the one behind the recovered tail.
    fn check_start(&self, ledger: &mut Ledger) {
        // The last record of all is the new life's own `Lead`.
        let last = Sequence(self.server.core.shard.appended().sequence.0 - 1);
        assert!(last >= ledger.durable, "record {} is lost", ledger.durable);
        let state = Digest::of_keyspace(&self.server.core.shard.engine.keyspace);
        assert_eq!(state, ledger.state_behind(last), "the state behind record {last}");
        ledger.states.split_off(&last.next());
        ledger.states.insert(last, state);
        ledger.states.insert(last.next(), state);
    }

    /// Archives the log in this way, in jobs that take so long at least.
    pub fn archive_log_by(&mut self, archive_log: ArchiveLog, job_nanos: u64) {
        let (random, waker) = (Random::stream(7, "archive"), self.driver.waker());
        let queue = SimDiskQueue::new(&self.timeline, random, job_nanos, waker);
        self.server.core.archive_log_by(archive_log, Box::new(queue));
    }

    /// Takes snapshots at this pace, in jobs that take so long at least.
    pub fn keep_snapshots_by(&mut self, store: SnapshotStore, job_nanos: u64, pace: Pace) {
        let (random, waker) = (Random::stream(7, "snapshots"), self.driver.waker());
        let queue = SimDiskQueue::new(&self.timeline, random, job_nanos, waker);
        self.server.core.keep_snapshots(store, Box::new(queue), pace);
    }

    /// Lets a replica attach.
    pub fn attach(&mut self) {
        self.follower = Some(Follower::attach(self.network.connect(NODE)));
    }

    /// Another node in the same network.
    pub fn listen(&self, name: &str) -> SimDriver {
        SimDriver::listen(&self.network, name, self.clock.clone(), 7)
    }

    /// Another client.
    pub fn connect(&self) -> SimClient {
        self.network.connect(NODE)
    }

    /// One turn of the loop. False once the node is dead.
    pub fn turn(&mut self, ledger: &mut Ledger) -> bool {
        let (told, newest) =
            (self.server.core.stream_offset(), self.server.core.shard.tracker.newest());
        let first = self.server.core.shard.gathering();
        self.server.turn(&mut self.driver, &mut self.scratch);
        let shard = &self.server.core.shard;
        if let Some(follower) = &mut self.follower {
            if shard.tracker.newest() > newest {
                let is_whole = !shard.has_gathered() && !shard.holds_records();
                let state = is_whole.then(|| Digest::of_keyspace(&shard.engine.keyspace));
                follower.note(told..self.server.core.stream_offset(), first, state);
            }
            follower.follow(shard.tracker.durable());
        }
        ledger.durable = ledger.durable.max(shard.tracker.durable());
        if !shard.has_gathered() && !shard.holds_records() {
            let state = Digest::of_keyspace(&shard.engine.keyspace);
            ledger.states.insert(shard.appended().sequence, state);
        }
        self.replies.extend(self.client.received());
        self.server.core.stopping.is_none()
    }
}

/// Loads every published snapshot alone and compares it with the state it was taken of.
pub fn check_snapshots(disk: &SimDisk, ledger: &mut Ledger) -> Result<usize, String> {
    let store = store(disk)?;
    let mut whole = 0;
    for candidate in store.list().map_err(text)? {
        let snapshot = match candidate {
            Candidate::Whole(snapshot) => snapshot,
            Candidate::Damaged { name, why, .. } => panic!("{name} was published damaged: {why}"),
        };
        let sequence = snapshot.point.position.sequence;
        assert!(sequence <= ledger.durable, "{} knows more than the log", snapshot.name);
        let name = snapshot.name.clone();
        ledger.most_parts = ledger.most_parts.max(snapshot.manifest.parts.len());
        let file = SnapshotFile::open(&store, snapshot).map_err(text)?;
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(5));
        let loaded = Loader::new(file, UnixMillis(0)).load_all(&mut keyspace);
        loaded.expect("a published snapshot can be loaded as one file");
        let state = Digest::of_keyspace(&keyspace);
        assert_eq!(state, ledger.states[&sequence], "{name}");
        whole += 1;
    }
    ledger.snapshots_seen += whole as u64;
    Ok(whole)
}

/// The oldest record that the log still has; the first of all if there is no log yet.
pub fn first_record(disk: &SimDisk) -> Sequence {
    let found = inspect(Arc::new(disk.clone()), Path::new(LOG));
    found.map_or(Sequence(1), |found| found.first.sequence)
}
