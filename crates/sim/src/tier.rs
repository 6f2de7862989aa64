//! Values that memory has no room for, in the simulated world: a file without a name on a simulated
//! disk, read by a pool and written by a queue; and what a run with such a file is like.

use crate::disk::SimDisk;
use crate::disk_queue::SimDiskQueue;
use crate::random::Random;
use crate::timeline::Timeline;
use base::disk::Disk;
use base::driver::Waker;
use config::Config;
use config::arguments;
use config::load::load;
use engine::cold::ColdLimits;
use engine::keyspace::Keyspace;
use shard::Shard;
use shard::tiering::{OpenTier, TierFiles, TierOrder, TieringLimits};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use structures::entry::ValueRef;
use tier::{Keys, Place};

/// How long a job on the file takes at least, in nanoseconds.
const JOB_NANOS: u64 = 50_000;

/// How many of 10 runs have a tier.
const RUNS_OF_TEN: u64 = 3;

/// Opens tiers of one process.
pub struct SimTier {
    disk: SimDisk,
    timeline: Timeline,
    waker: Waker,
    random: Mutex<Random>,
}

impl SimTier {
    /// On `disk`, where it makes the directory. `waker` is called when something was read or
    /// written.
    pub fn new(disk: &SimDisk, timeline: &Timeline, random: Random, waker: Waker) -> Self {
        let random = Mutex::new(random);
        Self { disk: disk.clone(), timeline: timeline.clone(), waker, random }
    }
}

impl OpenTier for SimTier {
    fn open(&self, order: &TierOrder<'_>) -> io::Result<TierFiles> {
        let TierOrder { path: directory, readers, .. } = *order;
        self.disk.create_directory(directory)?;
        let file = self.disk.create_nameless(directory)?;
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        let slower = *random.choose(&[1, 1, 1, 20, 100]);
        let (timeline, nanos, waker) = (&self.timeline, slower * JOB_NANOS, &self.waker);
        let mut draw = || Random::from_seed(random.draw());
        let reads = SimDiskQueue::pool(timeline, draw(), readers, nanos, waker.clone());
        let urgent = SimDiskQueue::pool(timeline, draw(), readers, nanos, waker.clone());
        let writes = SimDiskQueue::new(timeline, draw(), nanos, waker.clone());
        let mut random = draw();
        let keys = Keys::new(&std::array::from_fn(|_| random.draw() as u8));
        let keys = Box::new(Box::new(keys));
        let (reads, writes) = (Box::new(reads), Box::new(writes));
        let urgent = Box::new(urgent);
        Ok(TierFiles { file, room_bytes: u64::MAX, reads, writes, urgent, keys })
    }
}

/// Why values leave memory in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pressure {
    /// Behind each request all go that may.
    AllCold,
    /// Memory beside the tier's own is so little, in bytes, that they go and come back all the
    /// time.
    Memory(u64),
}

/// What the tier of a run is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tiered {
    pub pressure: Pressure,
    pub limits: TieringLimits,
    /// As [`node::TurnLimits::sends_per_look`].
    pub sends_per_look: usize,
    /// As the directive `tier-max`.
    pub bytes_max: u64,
}

impl Tiered {
    /// Whether the run of a seed has a tier, and which.
    pub fn draw(seed: u64) -> Option<Self> {
        let mut random = Random::stream(seed, "tier");
        (random.within(0..10) < RUNS_OF_TEN).then(|| Self::drawn(&mut random))
    }

    /// A tier that a seed chose.
    pub fn drawn(random: &mut Random) -> Self {
        let memory = *random.choose(&[20_000, 50_000, 120_000, 300_000]);
        let pressure = if random.chance(50) { Pressure::AllCold } else { Pressure::Memory(memory) };
        let piece_bytes = *random.choose(&[4 << 10, 8 << 10]);
        let record_bytes_max = *random.choose(&[8 << 10, 16 << 10, 64 << 10]);
        let beside = *random.choose(&[0, 0, 16 << 10]);
        let tier = tier::Limits {
            segment_bytes: 64 << 10,
            piece_bytes,
            packed_bytes_max: piece_bytes / *random.choose(&[1, 2]),
            record_bytes_max,
            buffered_bytes_max: record_bytes_max + 3 * piece_bytes + beside,
            writes_max: *random.choose(&[1, 1, 2]),
            ..tier::Limits::default()
        };
        let guest_bytes_max = *random.choose(&[0, 100, 4 << 10]);
        let slice_bytes = *random.choose(&[64, 300, 64 << 10]);
        let mut limits = TieringLimits {
            tier,
            cold: ColdLimits {
                guest_bytes_max,
                slice_bytes,
                walked_bytes_min: *random.choose(&[1, 2 << 10, 256 << 10]),
                changed_bytes: *random.choose(&[1, 2 << 10, 512 << 10]),
                ..ColdLimits::default()
            },
            reads_max: *random.choose(&[1, 2, 4]),
            read_bytes_max: *random.choose(&[1, 8 << 10, 1 << 20]),
            buckets_per_step: *random.choose(&[1, 4, 64]),
            built_bytes_min: *random.choose(&[0, 4 << 10, 16 << 10]),
            encoded_per_turn: *random.choose(&[64, 1 << 10, 256 << 10]),
            released_per_turn: *random.choose(&[1, 8, 1024]),
            taken_bytes_max: *random.choose(&[1, 500, 64 << 10]),
            // As much as the longest record may take in memory.
            pinned_bytes_min: *random.choose(&[4 * record_bytes_max + (4 << 10), 8 << 20]),
            shrunk_bytes_max: 64 << 10,
            ..TieringLimits::default()
        };
        let bytes_max = *random.choose(&[512 << 10, 1 << 20, 8 << 20]);
        limits.patient_reads_max = *random.choose(&[1, 4, 16]);
        let sends_per_look = *random.choose(&[1, 2, 8]);
        Self { pressure, limits, sends_per_look, bytes_max }
    }

    /// One that limits nothing beside what serves, with 256 MiB.
    pub fn large(pressure: Pressure, limits: TieringLimits) -> Self {
        Self { pressure, limits, sends_per_look: 8, bytes_max: 256 << 20 }
    }

    /// Limits a process that has the tier.
    pub fn limit(&self, limits: &mut node::Limits) {
        limits.tiering = self.limits;
        limits.turn.sends_per_look = self.sends_per_look;
    }

    /// The directive `maxmemory`: 0 where memory is not what values leave it for. Beside what the
    /// tier itself counts as.
    pub fn maxmemory(&self) -> u64 {
        let tier::Limits { buffered_bytes_max, piece_bytes, .. } = self.limits.tier;
        match self.pressure {
            Pressure::AllCold => 0,
            Pressure::Memory(bytes) => bytes + (buffered_bytes_max + 3 * piece_bytes) as u64,
        }
    }

    /// What a process is configured with that has the tier, beside these words.
    pub fn config(&self, others: &[&str]) -> Config {
        let bytes_max = self.bytes_max.to_string();
        let (directive, value) = match self.pressure {
            Pressure::AllCold => ("--tier-all-cold", "yes".to_owned()),
            Pressure::Memory(_) => ("--maxmemory", self.maxmemory().to_string()),
        };
        let tier = ["--tier", "file:/tier", "--tier-max", &bytes_max, "--tier-value-min", "16"];
        let pressure = [directive, &value];
        let words = tier.iter().chain(&pressure).chain(others);
        let words: Vec<Vec<u8>> = words.map(|word| word.as_bytes().to_vec()).collect();
        let line = arguments::parse(&words);
        load(&SimDisk::new(1), Path::new("/data"), &line, None).expect("the line can be read")
    }
}

/// What became of values that left memory, counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Spilling {
    pub spilled: u64,
    pub fetched: u64,
    /// Reads for which everything waited.
    pub blocking: u64,
    pub cleaned_segments: u64,
    pub failed_reads: u64,
    pub failed_writes: u64,
}

impl Spilling {
    /// Adds what a shard has counted in its life.
    pub fn add(&mut self, shard: &Shard) {
        let (Some(cold), Some(tiering)) = (shard.engine.keyspace.cold(), &shard.tiering) else {
            return;
        };
        self.spilled += cold.statistics.spilled.get();
        self.fetched += cold.statistics.fetched.get();
        self.blocking += cold.statistics.blocking_reads.get();
        self.cleaned_segments += tiering.statistics.cleaned_segments;
        self.failed_reads += cold.statistics.failed_blocking_reads.get();
        self.failed_reads += tiering.statistics.failed_reads;
        self.failed_writes += tiering.statistics.failed_writes;
    }
}

/// Compares what is live in the tier of a keyspace with what its keys have there. Nothing is said
/// while places of databases that were flushed are still to be given back.
///
/// # Errors
/// They differ, or two keys have one place.
pub fn check(keyspace: &Keyspace) -> Result<(), String> {
    let Some(cold) = keyspace.cold() else { return Ok(()) };
    let mut places = BTreeSet::new();
    let (mut bytes, mut cold_keys) = (0, 0);
    let tables = keyspace.databases().map(|(_, database)| database.table());
    for entry in tables.flat_map(|table| table.iter()) {
        let place = match entry.value() {
            ValueRef::Cold(cold) => {
                cold_keys += 1;
                Some(cold.place)
            }
            _ => entry.copy_place(),
        };
        let Some(place) = place.and_then(Place::from_bits) else { continue };
        bytes += place.length() as u64;
        if !places.insert(place) {
            return Err(format!("two keys have their values at {place:?}"));
        }
    }
    if cold_keys != keyspace.cold_keys() {
        let counted = keyspace.cold_keys();
        return Err(format!("{cold_keys} values are cold, and {counted} are counted"));
    }
    let figures = cold.tier.figures();
    let live = (figures.live_records, figures.live_bytes);
    let known = (places.len() as u64, bytes);
    // A snapshot may have taken flushed databases over.
    let may_have_more = keyspace.has_flushed() || keyspace.snapshot_keys() > 0;
    let is_right = if may_have_more { live.0 >= known.0 } else { live == known };
    if !is_right {
        return Err(format!("the tier has {live:?} live, and keys have {known:?}"));
    }
    Ok(())
}
