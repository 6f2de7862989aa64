//! Values that memory has no room for: moved to a file, or to a block device that passes for one,
//! and fetched from it, by threads of their own.
//!
//! What goes and what comes back decide the engine and the commands; where it lies decides
//! [`tier::Tier`]. Here is who writes and reads: jobs on three queues. `writes` writes and cleans,
//! one job after another; `reads` reads for those who wait and for a snapshot beside them, several
//! at a time; `urgent` reads what the loop stands still for.
//!
//! ```text
//! spill ─▶ piece in memory ─▶ writes: seal, write ─▶ on the file
//! fetch ─▶ reads: read, decrypt, prove ─▶ into the keyspace ─▶ whoever waited is told
//! clean ─▶ writes: read a chunk, decrypt, prove ─▶ records that keys still have are put anew
//! ```
//! The file has no name and its key is in no place but memory: nothing of it outlives the process,
//! because snapshot and log have everything.
//!
//! A record that cannot be read, or is not what was written, is read once more. Then its value is
//! lost here, though not in the log, and no answer about its key could be true: the keyspace says
//! so ([`Keyspace::cold_failure`]), and this life of the process ends.

mod cleaning;
pub mod device;
mod jobs;
mod open;
mod queue;
mod reading;
mod room;
mod shrinking;
mod snapshot;
#[cfg(test)]
pub(crate) mod tests;

use base::UnixMillis;
use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskTicket};
use base::time::MonotonicNanos;
use cleaning::Cleaner;
use engine::cold::{ColdLimits, ColdStore, Spilled};
use engine::keyspace::Keyspace;
use jobs::{BlockingSource, write_piece};
pub use open::{OpenTier, TierFiles, TierOrder};
use queue::ReadQueue;
use room::{Late, RELEASING_STEPS, SHARED_STEPS};
pub use room::{Made, RoomFor};
use shrinking::Shrinker;
use snapshot::SnapshotReader;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use tier::{Generations, Place, Sealer, Tier, WriteId};

/// How much is read and written at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TieringLimits {
    pub tier: tier::Limits,
    pub cold: ColdLimits,
    /// Reads under way; others wait for one of them. More only wait at the device, where the log's
    /// sync waits behind them: 32 reads of 4 KiB take half a millisecond together.
    pub reads_max: usize,
    /// As [`Self::reads_max`], while [nobody waits for a single one](Tiering::be_patient): what
    /// counts then is how many come in a second, and with too few under way the device stands still
    /// whenever the loop is at work for a moment. With what is begun beside them they are fewer
    /// than a ring has room for.
    pub patient_reads_max: usize,
    /// Memory of all reads under way, in bytes; one read may exceed them, and one for who needs few
    /// values beside it. A sixteenth of `maxmemory` if that is less.
    pub read_bytes_max: usize,
    /// Memory that values may take which requests wait for, where the usual part of `maxmemory` is
    /// less, in bytes: as much as the longest value takes, which can always be read.
    pub pinned_bytes_min: usize,
    /// Memory of values that were read and are taken up in one turn, in bytes; one may exceed it.
    /// Of the longest tables of numbers that are decoded in the loop these are four, which take a
    /// millisecond; of strings of 500 bytes a hundred and thirty.
    pub taken_bytes_max: usize,
    /// Buckets of the tables that are looked into for values that may go, between two looks at the
    /// clock: some 20 µs.
    pub buckets_per_step: usize,
    /// A longer record is decoded by the thread that reads it. The loop decodes 4 KiB in 10 µs as a
    /// rule, and in 0.3 ms if they are a table of numbers.
    pub built_bytes_min: usize,
    /// Bytes of long values that are encoded in one turn: some 0.3 ms of fields of 60 bytes, and a
    /// millisecond of numbers. Of strings sixteen times as many are copied.
    pub encoded_per_turn: usize,
    /// Entries of flushed databases whose places are given back in one turn.
    pub released_per_turn: usize,
    /// Bytes of the end of the file that are given back at once, fifty times a second at most. All
    /// reads of the file wait meanwhile: ext4 that discards takes 13 to 16 ms for 64 MiB, and
    /// 60 ms for 256.
    pub shrunk_bytes_max: u64,
}

impl Default for TieringLimits {
    fn default() -> Self {
        Self {
            tier: tier::Limits::default(),
            cold: ColdLimits::default(),
            reads_max: 32,
            patient_reads_max: 192,
            read_bytes_max: 32 << 20,
            pinned_bytes_min: 8 << 20,
            taken_bytes_max: 64 << 10,
            buckets_per_step: 64,
            built_bytes_min: 4 << 10,
            encoded_per_turn: 128 << 10,
            released_per_turn: 1024,
            shrunk_bytes_max: 32 << 20,
        }
    }
}

/// Counters of the file, for INFO.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TieringStatistics {
    pub reads: u64,
    pub read_bytes: u64,
    /// Reads that failed or brought something else, the second try of each included.
    pub failed_reads: u64,
    pub written_bytes: u64,
    pub failed_writes: u64,
    pub cleaned_segments: u64,
}

/// The file of a keyspace's cold values, and what is under way on it.
pub struct Tiering {
    file: Arc<dyn DiskFile>,
    sealer: Arc<Sealer>,
    reads: Box<dyn DiskQueue>,
    writes: Box<dyn DiskQueue>,
    urgent: Rc<RefCell<Box<dyn DiskQueue>>>,
    limits: TieringLimits,
    capacity_bytes: u64,
    /// Of all keyspaces that it has served.
    generations: Generations,
    /// Records that somebody waits for.
    wanted: ReadQueue,
    /// Reads that have ended and are not taken up yet.
    ended: VecDeque<(DiskTicket, DiskOutcome)>,
    writing: BTreeMap<DiskTicket, WriteId>,
    shrinker: Shrinker,
    cleaner: Cleaner,
    snapshot: SnapshotReader,
    /// The last write failed: until then none is tried.
    rests_until: Option<MonotonicNanos>,
    /// When it was last polled.
    now: MonotonicNanos,
    late: Late,
    /// Of the turn's [`SHARED_STEPS`].
    shared_steps_left: usize,
    done: Vec<(DiskTicket, DiskOutcome)>,
    /// See [`Self::be_patient`].
    is_patient: bool,
    /// Outcomes of reads for which the loop is woken.
    wakes_from: usize,
    pub statistics: TieringStatistics,
}

/// How many values somebody needs who waits for one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Need {
    Few,
    /// So many, or so long ones, that others must not have to wait for all of them.
    Many,
}

/// How long a write that failed is not tried again. The loop turns as often anyway.
const REST_MILLIS: u64 = 100;

/// Memory of a value that is waited for, beside what is read: its notes here, and whoever waits.
/// About so many bytes.
pub const WANTED_BYTES: usize = 256;

/// Tries to read a record before its value counts as lost.
const TRIES_MAX: u32 = 2;

impl Tiering {
    pub fn new(files: TierFiles, mut limits: TieringLimits, capacity_bytes: u64) -> Self {
        let TierFiles { file, room_bytes, reads, writes, urgent, keys } = files;
        limits.tier.file_bytes_max = room_bytes;
        Self {
            file,
            sealer: Arc::new(Sealer::with(keys)),
            reads,
            writes,
            urgent: Rc::new(RefCell::new(urgent)),
            limits,
            capacity_bytes,
            wanted: ReadQueue::default(),
            ended: VecDeque::new(),
            writing: BTreeMap::new(),
            shrinker: Shrinker::default(),
            generations: Generations::default(),
            cleaner: Cleaner::default(),
            snapshot: SnapshotReader::default(),
            rests_until: None,
            now: MonotonicNanos(0),
            late: Late::default(),
            shared_steps_left: SHARED_STEPS,
            done: Vec::new(),
            is_patient: false,
            wakes_from: 1,
            statistics: TieringStatistics::default(),
        }
    }

    /// Lets the values of a keyspace be spilled here. It has none that are; what another one had
    /// here is forgotten.
    pub fn serve(&mut self, keyspace: &mut Keyspace) {
        // What is under way for another keyspace must not be taken for this one's.
        self.reads.drain();
        self.writes.drain();
        self.reads.poll(&mut self.done);
        self.writes.poll(&mut self.done);
        self.done.clear();
        self.wanted = ReadQueue::default();
        self.ended.clear();
        self.writing.clear();
        self.shrinker.forget_cut();
        self.cleaner = Cleaner::default();
        self.snapshot = SnapshotReader::default();
        self.rests_until = None;
        self.late = Late { written_at: self.late.written_at, ..Late::default() };
        self.statistics = TieringStatistics::default();
        let generations = self.generations.clone();
        let tier = Tier::after(self.limits.tier, self.capacity_bytes, generations);
        let source = BlockingSource {
            file: Arc::clone(&self.file),
            sealer: Arc::clone(&self.sealer),
            queue: Rc::clone(&self.urgent),
        };
        let mut store = ColdStore::new(tier, Box::new(source), self.limits.cold);
        store.encoded_bytes_left = self.limits.encoded_per_turn;
        keyspace.open_cold(store);
    }

    /// The largest size of the file from now on, in bytes.
    pub fn set_capacity(&mut self, keyspace: &mut Keyspace, capacity_bytes: u64) {
        self.capacity_bytes = capacity_bytes;
        if let Some(cold) = keyspace.cold_mut() {
            cold.tier.set_capacity(capacity_bytes);
            cold.look_again();
        }
    }

    /// Which values may be spilled from now on. What was spilled before stays.
    pub fn set_cold_limits(&mut self, keyspace: &mut Keyspace, limits: ColdLimits) {
        self.limits.cold = limits;
        if let Some(cold) = keyspace.cold_mut() {
            cold.limits = self.limits.cold;
            cold.look_again();
        }
    }

    pub fn limits(&self) -> &TieringLimits {
        &self.limits
    }

    /// Begins a turn: takes up what was read and written since the last call, goes on with what
    /// there is to do, and allows as many steps, encoded bytes and released entries as a turn may
    /// take. The places that need not be waited for any more are appended to `arrived`.
    pub fn poll(&mut self, keyspace: &mut Keyspace, now: MonotonicNanos, arrived: &mut Vec<Place>) {
        self.now = now;
        self.take_reads(keyspace, arrived);
        self.take_writes(keyspace);
        if let Some(cold) = keyspace.cold_mut() {
            cold.encoded_bytes_left = self.limits.encoded_per_turn;
            cold.now = now;
        }
        keyspace.go_on_encoding();
        self.submit_reads(keyspace);
        let (bytes_max, writes) = (self.limits.shrunk_bytes_max, &mut *self.writes);
        self.shrinker.go_on(keyspace, now, bytes_max, &self.file, writes);
        self.snapshot.take(keyspace, &mut self.statistics);
        self.read_for_snapshot(keyspace);
        self.begin_reads();
        self.submit_writes(keyspace);
        self.shared_steps_left = SHARED_STEPS;
        self.late.awaited_flushed = std::mem::take(&mut self.late.awaits_flushed);
        let steps = if self.late.awaited_flushed { RELEASING_STEPS } else { 1 };
        keyspace.release_flushed(steps * self.limits.released_per_turn);
    }

    fn take_writes(&mut self, keyspace: &mut Keyspace) {
        let mut done = std::mem::take(&mut self.done);
        self.writes.poll(&mut done);
        for (ticket, outcome) in done.drain(..) {
            let Some(id) = self.writing.remove(&ticket) else {
                if !self.shrinker.take(ticket, &outcome) {
                    self.cleaner.take(ticket, outcome, keyspace, &mut self.statistics);
                }
                continue;
            };
            let Some(cold) = keyspace.cold_mut() else { continue };
            match outcome.downcast::<io::Result<u64>>().map(|written| *written) {
                Ok(Ok(bytes)) => {
                    self.statistics.written_bytes += bytes;
                    self.rests_until = None;
                    self.late.written_at = self.now;
                    self.late.counts_as_full = false;
                    cold.tier.written(id);
                }
                Ok(Err(error)) => {
                    self.statistics.failed_writes += 1;
                    if self.rests_until.is_none() {
                        tracing::error!("the tier cannot be written: {error}");
                    }
                    self.rests_until = Some(self.now.after_millis(REST_MILLIS));
                    cold.tier.failed(id);
                }
                Err(_) => cold.tier.failed(id),
            }
        }
        self.done = done;
    }

    /// Hands what is to be written to the thread that writes.
    fn submit_writes(&mut self, keyspace: &mut Keyspace) {
        if self.rests_until.is_some_and(|until| self.now < until || !self.writing.is_empty()) {
            return;
        }
        let Some(cold) = keyspace.cold_mut() else { return };
        while let Some(write) = cold.tier.next_write() {
            let id = write.id();
            let (file, sealer) = (Arc::clone(&self.file), Arc::clone(&self.sealer));
            let job = move || -> DiskOutcome { Box::new(write_piece(&*file, &sealer, &write)) };
            let ticket = self.writes.submit(Box::new(job));
            self.writing.insert(ticket, id);
        }
        let (writes, statistics) = (&mut *self.writes, &mut self.statistics);
        self.cleaner.go_on(keyspace, &self.file, &self.sealer, writes, statistics);
    }

    /// Reads the values that a snapshot under way waits for.
    pub fn read_for_snapshot(&mut self, keyspace: &mut Keyspace) {
        self.snapshot.go_on(keyspace, &self.file, &self.sealer, &mut *self.reads);
    }

    /// Moves values out of memory until `bytes` are freed, as far as one step goes.
    pub fn spill(&mut self, keyspace: &mut Keyspace, bytes: usize, now: UnixMillis) -> Spilled {
        // Pieces may have been written since the turn began.
        self.take_writes(keyspace);
        let spilled = keyspace.spill(bytes, self.limits.buckets_per_step, now);
        self.submit_writes(keyspace);
        if spilled != Spilled::Nothing {
            return spilled;
        }
        // A tier that is full may only lack a segment that is being cleaned, or that a snapshot
        // holds until it has read what is released there.
        let comes = keyspace.cold().is_some_and(|cold| {
            cold.is_full && (self.cleaner.is_busy() || cold.tier.has_waiting())
        });
        match comes || keyspace.has_flushed() {
            true => Spilled::Behind,
            false => Spilled::Nothing,
        }
    }
}
