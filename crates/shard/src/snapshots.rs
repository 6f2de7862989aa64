//! Snapshots of a serving shard, taken in slices beside commands. A machine: turns of the loop go
//! in, [`News`] come out, and nobody who asked for a snapshot is known here.
//!
//! ```text
//! wanted ─▶ commit what has gathered ─▶ begin: position = last record, its chain
//!   turn by turn: walk a slice ─▶ chunks ─▶ disk queue (write, sync)
//!   walked, all written, position durable ─▶ disk queue (verify, publish, prune) ─▶ trim the log
//! ```
//! The consistent point is a record's end, so recovery goes on with the record behind it. Nothing
//! is published before that record is durable: a snapshot must never know more than the log.
//! Chunks that wait for the disk are bounded: the walk stops first, then writing commands wait.

mod file;
mod stores;

use crate::News;
use crate::shard::{Growth, Shard};
use archive::SnapshotPoint;
use archive::{Facts, Pruned, SnapshotStore, SnapshotWriter};
use base::disk::{DiskOutcome, DiskTicket};
use base::{Clock, DiskQueue, MonotonicNanos, Position, Sequence, UnixMillis};
use engine::rdb::Crc64;
use engine::save::checksum;
pub use file::SnapshotFile;
use std::io;
use std::sync::Arc;
use stores::Stores;
pub use stores::{Report, Sighting, Unseen};
use txlog::Gate;

/// Time that one turn spends on walking, in nanoseconds.
const SLICE_NANOS: u64 = 200_000;

/// Bytes waiting for the disk above which writing commands wait: each may have to write what it is
/// about to change.
const BACKLOG_BYTES_LIMIT: usize = 64 << 20;

/// How much a turn does, and when the next snapshot is due.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Keys and bytes written between two looks at the clock.
    pub step_keys: u64,
    pub step_bytes: usize,
    /// Steps of one turn, whatever the clock says: simulated clocks stand still within a turn.
    pub steps_max: u32,
    /// Bytes that go to the disk at once: they are checksummed and written while the processor's
    /// cache still holds them.
    pub chunk_bytes: usize,
    /// Bytes waiting for the disk above which the walk stops.
    pub backlog_bytes_max: usize,
    /// The log grows by at least this much between two snapshots, and by as much as the data
    /// occupies, in [`Growth::cost_bytes`]. So a restart spends no more on the log than on the
    /// snapshot, and on a log in a directory snapshots write no more than the log does. 256 MiB of
    /// small records replay in about two seconds.
    pub log_growth_bytes_min: u64,
    /// Time from the beginning of one snapshot to that of the next, in nanoseconds, unless the log
    /// grows by `log_growth_bytes_hasty` meanwhile: small data under many writes would be written
    /// again every other second, which costs a fifth of what the writes do.
    pub rest_nanos: u64,
    /// What a restart may have to replay of such a log, in bytes of records: eight seconds of small
    /// ones.
    pub log_growth_bytes_hasty: u64,
    /// Time from the beginning of a primary to the first record that it trims, in nanoseconds,
    /// while others may read the log: replicas must have had time to report. They do so as soon as
    /// they read who leads; this is as long as they wait for an answer.
    pub report_nanos: u64,
    /// Builds on purpose snapshots that know more than the log, so that a test can prove that it
    /// would notice.
    #[doc(hidden)]
    pub publishes_before_durable: bool,
    /// Trims on purpose what the older retained snapshot needs, likewise.
    #[doc(hidden)]
    pub trims_through_newest: bool,
    /// Trims on purpose through snapshots that others do not see, likewise.
    #[doc(hidden)]
    pub trims_unconfirmed: bool,
}

impl Pace {
    /// The allocation of a chunk: a step may overshoot, and a growing buffer would be copied.
    fn chunk_capacity(&self) -> usize {
        self.chunk_bytes + self.step_bytes + (16 << 10)
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            step_keys: 64,
            step_bytes: 64 << 10,
            steps_max: 64,
            chunk_bytes: 256 << 10,
            backlog_bytes_max: 8 << 20,
            log_growth_bytes_min: 256 << 20,
            rest_nanos: 60_000_000_000,
            log_growth_bytes_hasty: 1 << 30,
            report_nanos: 5_000_000_000,
            publishes_before_durable: false,
            trims_through_newest: false,
            trims_unconfirmed: false,
        }
    }
}

/// Time after which a scheduled snapshot is tried again when one failed, in nanoseconds.
const RETRY_NANOS: u64 = 60_000_000_000;

/// One is under way, or about to begin.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Busy;

/// How the snapshots of this life of a process went, for INFO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// One is wanted or under way.
    pub is_saving: bool,
    /// When that one was asked for.
    pub began: MonotonicNanos,
    /// Keys that it has written, and how many there are.
    pub keys_saved: u64,
    pub keys_to_save: u64,
    /// Whether the last one that ended was published; `true` while none has.
    pub is_last_ok: bool,
    /// How long the last one took; `None` if none has ended.
    pub last_seconds: Option<u64>,
    /// When the last one was published.
    pub last_published: Option<UnixMillis>,
    /// Snapshots published.
    pub published: u64,
}

impl Default for Status {
    fn default() -> Self {
        Self {
            is_saving: false,
            began: MonotonicNanos(0),
            keys_saved: 0,
            keys_to_save: 0,
            is_last_ok: true,
            last_seconds: None,
            last_published: None,
            published: 0,
        }
    }
}

/// What a turn of the loop tells the snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Turn {
    /// The shard's time.
    pub now: UnixMillis,
    pub monotonic: MonotonicNanos,
    /// This process leads the shard; and nobody else can reach its log.
    pub leads: bool,
    pub is_alone: bool,
    /// No other process can read the store: then the log is kept whole for them.
    pub is_private: bool,
    /// Of a replica: its primary tells which snapshots that one has.
    pub hears_primary: bool,
}

/// Takes snapshots of a shard.
pub struct Snapshots {
    store: SnapshotStore,
    queue: Box<dyn DiskQueue>,
    clock: Arc<dyn Clock>,
    status: Status,
    pace: Pace,
    /// Somebody asked for one, or it is due; it begins at the end of the turn.
    is_wanted: bool,
    /// One more is to begin when the running one ends.
    is_wanted_again: bool,
    running: Option<Running>,
    stores: Stores,
    /// Nothing is scheduled before this, because a snapshot failed.
    not_before: MonotonicNanos,
    /// Nothing is scheduled before this, because one has just been taken, unless there is haste.
    rests_until: MonotonicNanos,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

/// A snapshot under way.
struct Running {
    place: SnapshotPoint,
    /// The record that it must wait for, and what the log was shifted by when it began.
    waits_for: Sequence,
    shifted: u64,
    /// That record is durable, at the place.
    is_durable: bool,
    began: MonotonicNanos,
    keys: u64,
    is_walked: bool,
    /// Written, not yet handed to the disk.
    chunks: Vec<Vec<u8>>,
    /// Buffers whose bytes are on the disk.
    emptied: Vec<Vec<u8>>,
    /// Bytes in `chunks` and with the disk.
    backlog_bytes: usize,
    /// At home, unless a job is under way.
    part: Option<Box<PartInMaking>>,
    is_publishing: bool,
    /// Of the log and of the counter of changes, when it began.
    log: Growth,
    dirty: u64,
}

impl Running {
    /// The disk has written chunks: their buffers take further ones.
    fn take_back(&mut self, part: Box<PartInMaking>, chunks: Vec<Vec<u8>>, capacity_max: usize) {
        self.part = Some(part);
        for mut chunk in chunks {
            self.backlog_bytes -= chunk.len();
            if !self.is_walked && chunk.capacity() <= capacity_max {
                chunk.clear();
                self.emptied.push(chunk);
            }
        }
    }
}

/// The file in the making, and its checksum as Redis wants it.
struct PartInMaking {
    writer: SnapshotWriter,
    crc: Crc64,
}

impl PartInMaking {
    fn append(&mut self, chunks: &[Vec<u8>]) -> io::Result<()> {
        for chunk in chunks {
            self.crc.update(chunk);
            self.writer.append(chunk)?;
        }
        Ok(())
    }

    /// Gives the space back that a failed snapshot took: on a full disk the log waits for it.
    fn abandon(self, error: io::Error) -> io::Error {
        if let Err(why) = self.writer.abandon() {
            tracing::warn!("what a failed snapshot wrote cannot be removed: {why}");
        }
        error
    }
}

/// What the disk's jobs return.
enum Outcome {
    /// The bytes of these chunks are written.
    Written(Box<PartInMaking>, Vec<Vec<u8>>),
    Published(Published),
    /// What is in the store.
    Looked(Vec<Sighting>),
    Failed(String),
}

/// What was published.
struct Published {
    name: String,
    sighting: Sighting,
    /// All of it, open.
    file: SnapshotFile,
    /// The log is not needed through this position, if that is known.
    trim: Option<Position>,
}

impl Snapshots {
    /// `queue` is for nothing else: what the log waits for must not wait for snapshots.
    pub fn new(
        store: SnapshotStore,
        queue: Box<dyn DiskQueue>,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> Self {
        Self {
            store,
            queue,
            clock,
            status: Status::default(),
            pace,
            is_wanted: false,
            is_wanted_again: false,
            running: None,
            stores: Stores::default(),
            not_before: MonotonicNanos(0),
            rests_until: MonotonicNanos(0),
            done: Vec::new(),
        }
    }

    /// How they went.
    pub fn status(&self) -> Status {
        self.status
    }

    fn is_busy(&self) -> bool {
        self.is_wanted || self.running.is_some()
    }

    /// Asks for a snapshot, which begins at the end of the turn. With `schedule` one that runs
    /// already is followed by another.
    ///
    /// # Errors
    /// One is under way.
    pub fn request(&mut self, schedule: bool, now: MonotonicNanos) -> Result<(), Busy> {
        if self.is_busy() {
            self.is_wanted_again |= schedule;
            return if schedule { Ok(()) } else { Err(Busy) };
        }
        self.is_wanted = true;
        self.status.is_saving = true;
        self.status.began = now;
        Ok(())
    }

    /// Asks for a snapshot that holds everything until now.
    pub fn request_of_now(&mut self, now: MonotonicNanos) {
        if !self.is_wanted || self.running.is_some() {
            // It cannot be refused: one that runs is followed by another.
            let _ = self.request(true, now);
        }
    }

    /// Whether so much waits for the disk that writing commands must wait too.
    pub fn is_behind(&self) -> bool {
        self.running.as_ref().is_some_and(|running| running.backlog_bytes > BACKLOG_BYTES_LIMIT)
    }

    /// Whether the next turn should not wait, because a snapshot of this shard can go on.
    pub fn is_ready(&self, shard: &Shard) -> bool {
        // One that is wanted begins behind what has gathered, once the log takes that.
        let is_kept_waiting = shard.has_gathered() && shard.gate() == Gate::Wait;
        let walks = |it: &Running| !it.is_walked && it.backlog_bytes < self.pace.backlog_bytes_max;
        self.running.as_ref().map_or(self.is_wanted && !is_kept_waiting, walks)
    }

    /// Takes what the disk has done: the first step of a turn. [`Self::judge`] comes next, if it is
    /// due, then [`Self::advance`].
    pub fn collect(&mut self, shard: &mut Shard, turn: &Turn, news: &mut Vec<News>) {
        self.collect_outcomes(shard, turn, news);
        self.look_when_due(turn);
    }

    /// One turn's share of a snapshot: begins it, walks on, hands over to the disk.
    pub fn advance(&mut self, shard: &mut Shard, turn: &Turn, news: &mut Vec<News>) {
        if !turn.leads {
            return;
        }
        self.schedule(shard, turn);
        self.begin(shard, turn, news);
        self.walk(shard);
        self.write(shard);
    }

    /// Asks for a snapshot when the log has grown enough.
    fn schedule(&mut self, shard: &Shard, turn: &Turn) {
        let grown = shard.replay_cost_bytes();
        if grown < self.pace.log_growth_bytes_min || self.is_busy() {
            return;
        }
        let is_hasty = shard.grown.bytes >= self.pace.log_growth_bytes_hasty;
        let rests = self.rests_until > turn.monotonic && !is_hasty;
        let is_early = self.not_before > turn.monotonic;
        if !rests && !is_early && grown >= shard.engine.keyspace.used_bytes() as u64 {
            let Growth { records, bytes } = shard.grown;
            tracing::info!(records, log_bytes = bytes, "the log has grown, a snapshot is due");
            // It cannot be refused: none is under way.
            let _ = self.request(false, turn.monotonic);
        }
    }

    /// Begins the snapshot that is wanted, once everything executed stands in a record.
    fn begin(&mut self, shard: &mut Shard, turn: &Turn, news: &mut Vec<News>) {
        if !self.is_wanted || self.running.is_some() {
            return;
        }
        shard.commit(turn.now);
        if shard.has_gathered() {
            return;
        }
        news.push(News::SnapshotBegan);
        let waits_for = shard.newest_appended();
        let (position, chain) = (shard.appended(), shard.chain());
        let shifted = shard.shifted();
        self.is_wanted = false;
        self.rests_until = MonotonicNanos(turn.monotonic.0 + self.pace.rest_nanos);
        let place = SnapshotPoint {
            position,
            chain: chain.value.0,
            epoch: chain.epoch,
            // That of the record: nothing shows a later one.
            clock: shard.newest_clock(),
            began: turn.now,
        };
        let keyspace = &mut shard.engine.keyspace;
        self.status.keys_to_save = keyspace.len() as u64;
        keyspace.begin_snapshot(turn.now);
        self.running = Some(Running {
            place,
            waits_for,
            shifted,
            is_durable: false,
            began: turn.monotonic,
            keys: 0,
            is_walked: false,
            chunks: Vec::new(),
            emptied: Vec::new(),
            backlog_bytes: 0,
            part: None,
            is_publishing: false,
            log: shard.grown,
            dirty: keyspace.statistics.dirty.get(),
        });
        let store = self.store.clone();
        submit(&mut *self.queue, move || {
            let writer = store.begin(position)?;
            Ok(Outcome::Written(
                Box::new(PartInMaking { writer, crc: Crc64::default() }),
                Vec::new(),
            ))
        });
    }

    /// Walks one slice and cuts what was written into chunks.
    fn walk(&mut self, shard: &mut Shard) {
        let Self { running: Some(running), pace, clock, status, .. } = self else { return };
        let keyspace = &mut shard.engine.keyspace;
        if !running.is_walked && running.backlog_bytes < pace.backlog_bytes_max {
            let began = clock.monotonic();
            for _ in 0..pace.steps_max {
                running.is_walked = keyspace.walk_snapshot(pace.step_keys, pace.step_bytes);
                let spent = clock.monotonic().since(began);
                if running.is_walked || spent >= SLICE_NANOS {
                    break;
                }
            }
            running.keys = keyspace.snapshot_keys();
            status.keys_saved = running.keys;
        }
        if keyspace.snapshot_bytes() >= pace.chunk_bytes || running.is_walked {
            let next = running.emptied.pop();
            let next = next.unwrap_or_else(|| Vec::with_capacity(pace.chunk_capacity()));
            let chunk = keyspace.take_snapshot_bytes(next);
            if !chunk.is_empty() {
                running.backlog_bytes += chunk.len();
                running.chunks.push(chunk);
            }
        }
        if running.is_walked {
            keyspace.end_snapshot();
        }
    }

    /// Hands chunks to the disk, and in the end the whole for publication.
    fn write(&mut self, shard: &Shard) {
        let (durable, shifted) = (shard.tracker.durable(), shard.shifted());
        let Some(running) = &mut self.running else { return };
        let has_moved = !running.is_durable && shifted != running.shifted;
        running.is_durable |= !has_moved && durable >= running.waits_for;
        if running.part.is_none() {
            return;
        }
        if has_moved {
            // Its place bears another record's number by now. This is rarer than a failover.
            let Some(part) = running.part.take() else { return };
            let error = io::Error::other("the log's newest records have moved");
            submit(&mut *self.queue, move || Err(part.abandon(error)));
            return;
        }
        if !running.chunks.is_empty() {
            let chunks = std::mem::take(&mut running.chunks);
            let Some(mut part) = running.part.take() else { return };
            submit(&mut *self.queue, move || match part.append(&chunks) {
                Ok(()) => Ok(Outcome::Written(part, chunks)),
                Err(error) => Err(part.abandon(error)),
            });
            return;
        }
        if !running.is_walked || !running.is_durable && !self.pace.publishes_before_durable {
            return;
        }
        let Some(mut part) = running.part.take() else { return };
        running.is_publishing = true;
        let facts = Facts { place: running.place, keys: running.keys };
        let store = self.store.clone();
        let trims_through_newest = self.pace.trims_through_newest;
        submit(&mut *self.queue, move || {
            if let Err(error) = part.append(&[checksum(part.crc).to_vec()]) {
                return Err(part.abandon(error));
            }
            let snapshot = part.writer.publish(&facts)?;
            let (name, place) = (snapshot.name.clone(), snapshot.place);
            let file = SnapshotFile::open(&store, snapshot)?;
            // It is published: what fails now costs space, nothing else.
            let (trim, failure) = match store.prune() {
                Ok(Pruned { trim, failure }) => (trim, failure),
                Err(error) => (None, Some(error)),
            };
            if let Some(error) = failure {
                tracing::warn!("old snapshots cannot be removed: {error}");
            }
            let trim = if trims_through_newest { Some(facts.place.position) } else { trim };
            let sighting = Sighting { sequence: place.position.sequence, began: place.began };
            Ok(Outcome::Published(Published { name, sighting, file, trim }))
        });
    }

    fn collect_outcomes(&mut self, shard: &mut Shard, turn: &Turn, news: &mut Vec<News>) {
        let mut done = std::mem::take(&mut self.done);
        self.queue.poll(&mut done);
        for (_, outcome) in done.drain(..) {
            match outcome.downcast::<Outcome>().map(|outcome| *outcome) {
                Ok(Outcome::Written(part, chunks)) => {
                    if let Some(running) = &mut self.running {
                        running.take_back(part, chunks, 2 * self.pace.chunk_capacity());
                    }
                }
                Ok(Outcome::Published(published)) => self.finish(shard, turn, published, news),
                Ok(Outcome::Looked(found)) => self.stores.looked(found, turn.leads),
                Ok(Outcome::Failed(why)) => self.fail(shard, turn, &why, news),
                Err(_) => self.fail(shard, turn, "a disk job returned something else", news),
            }
        }
        self.done = done;
    }

    fn finish(
        &mut self,
        shard: &mut Shard,
        turn: &Turn,
        published: Published,
        news: &mut Vec<News>,
    ) {
        let Some(running) = self.running.take() else { return };
        let seconds = turn.monotonic.seconds_since(running.began);
        let sequence = running.place.position.sequence.0;
        let Published { name, sighting, file, trim } = published;
        let bytes = file.length();
        tracing::info!(name, sequence, keys = running.keys, bytes, "snapshot published");
        self.status.published += 1;
        self.status.last_published = Some(turn.now);
        self.status.last_seconds = Some(seconds);
        shard.grown -= running.log;
        let dirty = &shard.engine.keyspace.statistics.dirty;
        dirty.set(dirty.get().saturating_sub(running.dirty));
        self.stores.published(sighting, trim, turn.is_private);
        news.push(News::SnapshotPublished(Box::new(file)));
        self.end(true, turn);
    }

    fn fail(&mut self, shard: &mut Shard, turn: &Turn, why: &str, news: &mut Vec<News>) {
        tracing::error!("the snapshot failed and was given up: {why}");
        self.running = None;
        self.not_before = MonotonicNanos(turn.monotonic.0 + RETRY_NANOS);
        shard.engine.keyspace.end_snapshot();
        self.status.last_seconds = Some(turn.monotonic.seconds_since(self.status.began));
        news.push(News::SnapshotFailed);
        self.end(false, turn);
    }

    /// Begins the next one if it was asked for.
    fn end(&mut self, is_ok: bool, turn: &Turn) {
        self.status.is_saving = false;
        self.status.is_last_ok = is_ok;
        if std::mem::take(&mut self.is_wanted_again) {
            // It cannot be refused: none is under way.
            let _ = self.request(false, turn.monotonic);
        }
    }
}

/// Runs a job whose failure is an outcome like any other.
fn submit(queue: &mut dyn DiskQueue, job: impl FnOnce() -> io::Result<Outcome> + Send + 'static) {
    queue.submit(Box::new(move || {
        Box::new(job().unwrap_or_else(|error| Outcome::Failed(error.to_string())))
    }));
}
