//! Snapshots of a serving shard, taken in slices beside commands. A machine: turns of the loop go
//! in, [`News`] come out, and nobody who asked for a snapshot is known here.
//!
//! ```text
//! wanted ─▶ commit what has gathered ─▶ begin: position = last record, its chain
//!   turn by turn: walk a slice ─▶ chunks ─▶ disk queue (write, sync)
//!   walked, all written, position durable ─▶ disk queue (verify, publish)
//! published, or pins changed ─▶ archive queue (the log through the newest, if there is a window;
//!   if it fails, again a minute later)
//!   ─▶ disk queue (prune: what stays, what the log must keep) ─▶ trim
//! ```
//! The consistent point is a record's end, so recovery goes on with the record behind it. Nothing
//! is published before that record is durable: a snapshot must never know more than the log.
//! Chunks that wait for the disk are bounded: the walk stops first, then writing commands wait.

mod archiving;
mod backlog;
mod cuts;
mod file;
mod giving_way;
mod offbox;
mod pace;
mod pruning;
mod stores;
mod writing;

use crate::News;
use crate::shard::{Growth, Shard};
use archive::SnapshotPoint;
use archive::{Facts, Limits, SnapshotStore};
use archiving::Archiving;
pub use archiving::{ArchiveLog, tell_unarchived};
use backlog::Backlog;
use base::disk::{DiskOutcome, DiskTicket};
use base::{Clock, DiskQueue, MonotonicNanos, Position, Sequence, UnixMillis};
pub use cuts::Cuts;
pub use file::SnapshotFile;
use giving_way::FLUSHED;
use offbox::OffBox;
pub use pace::Pace;
use pruning::Pruning;
use std::io;
use std::sync::Arc;
use stores::{Looked, Stores};
pub use stores::{MemberSighting, Proven, Sighting, Unseen};
use txlog::Gate;
use writing::{Chunk, Writing};

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
    /// The last record of the log that is archived, as far as is known.
    pub archived: Option<Sequence>,
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
            archived: None,
        }
    }
}

/// What a turn of the loop tells the snapshots.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TurnFacts {
    /// The shard's time.
    pub now: UnixMillis,
    pub monotonic: MonotonicNanos,
    /// This process leads the shard.
    pub leads: bool,
    /// No other process can read the store: then the log is kept whole for them.
    pub is_private: bool,
    /// Of a replica: its primary tells which snapshots that one has.
    pub hears_primary: bool,
    /// Memory that clients occupy, in bytes: `maxmemory` counts it.
    pub client_bytes: u64,
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
    /// One gave way since the last that was published.
    has_given_way: bool,
    stores: Stores,
    pruning: Pruning,
    offbox: OffBox,
    /// `None`: the log is not archived here.
    archiving: Option<Archiving>,
    /// Nothing is scheduled before this, because a snapshot failed.
    not_before: MonotonicNanos,
    /// Nothing is scheduled before this, because one has just been taken, unless there is haste.
    rests_until: MonotonicNanos,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

/// A snapshot under way.
struct Running {
    point: SnapshotPoint,
    /// The record that it must wait for, and what the log was shifted by when it began.
    waits_for: Sequence,
    shifted: u64,
    /// That record is durable, at the point.
    is_durable: bool,
    began: MonotonicNanos,
    keys: u64,
    /// The version of its files.
    rdb: u32,
    is_walked: bool,
    /// Written, not yet handed to the disk.
    chunks: Vec<Chunk>,
    cuts: Cuts,
    /// Buffers whose bytes are on the disk.
    emptied: Vec<Vec<u8>>,
    /// Bytes in `chunks` and with the disk.
    backlog_bytes: usize,
    /// At home, unless a job is under way.
    writing: Option<Box<Writing>>,
    is_publishing: bool,
    /// It gives way ([`giving_way`]): it is walked no more, and ends once its writing is at home.
    is_given_up: bool,
    /// Of the log and of the counter of changes, when it began.
    log: Growth,
    dirty: u64,
}

impl Running {
    /// The disk has written chunks: their buffers take further ones.
    fn take_back(&mut self, writing: Box<Writing>, chunks: Vec<Chunk>, capacity_max: usize) {
        self.writing = Some(writing);
        for Chunk { mut bytes, .. } in chunks {
            self.backlog_bytes -= bytes.len();
            if !self.is_walked && bytes.capacity() <= capacity_max {
                bytes.clear();
                self.emptied.push(bytes);
            }
        }
    }

    fn is_part_full(&self, limits: &Limits, untaken: usize) -> bool {
        !self.is_walked && self.cuts.is_part_full(limits, untaken)
    }

    /// Takes bytes that were written; whether a part ends with them.
    fn push(&mut self, bytes: Vec<u8>, ends_part: bool) {
        if bytes.is_empty() {
            return;
        }
        self.backlog_bytes += bytes.len();
        self.cuts.took(bytes.len(), ends_part);
        self.chunks.push(Chunk { bytes, ends_part });
    }
}

/// What the disk's jobs return.
enum Outcome {
    /// The bytes of these chunks are written.
    Written(Box<Writing>, Vec<Chunk>),
    Published(Box<Published>),
    /// The log is archived behind this record through the newest snapshot; or why it is not.
    Archived(Result<Sequence, String>),
    /// The log is not needed through this position, if that is known; and is archived through this
    /// record.
    Pruned(Option<Position>, Option<Sequence>),
    Looked(Looked),
    Failed(String),
}

/// What was published.
struct Published {
    name: String,
    sighting: Sighting,
    /// Of all its parts.
    bytes: u64,
    /// It as one file, of which the first part is open.
    file: io::Result<SnapshotFile>,
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
            has_given_way: false,
            stores: Stores::default(),
            pruning: Pruning::default(),
            offbox: OffBox::default(),
            archiving: None,
            not_before: MonotonicNanos(0),
            rests_until: MonotonicNanos(0),
            done: Vec::new(),
        }
    }

    /// Archives the log in this way before it is trimmed, if the store has a restore window.
    /// `queue` is for nothing else: it is at it for long.
    pub fn archive_log_by(&mut self, archive_log: ArchiveLog, queue: Box<dyn DiskQueue>) {
        self.archiving = Some(Archiving::new(archive_log, queue));
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

    /// Whether the next turn should not wait, because a snapshot of this shard can go on.
    pub fn is_ready(&self, shard: &Shard) -> bool {
        // One that is wanted begins behind what has gathered, once the log takes that.
        let has_gathered = shard.has_gathered() && shard.gate() == Gate::Wait;
        let is_kept_waiting = has_gathered || shard.holds_records();
        let bytes_max = self.backlog_of(shard).bytes_max;
        let is_walking = |it: &Running| !it.is_walked && !it.is_given_up;
        let walks = |it: &Running| is_walking(it) && it.backlog_bytes < bytes_max;
        let waits = shard.engine.keyspace.snapshot_waits_for_values();
        let has_come = shard.engine.keyspace.snapshot_has_come();
        let goes_on = |it: &Running| walks(it) && !waits || has_come && self.takes_come(it, shard);
        self.running.as_ref().map_or(self.is_wanted && !is_kept_waiting, goes_on)
    }

    /// Takes what the disk has done: the first step of a turn. [`Self::judge`] comes next, if it is
    /// due, then [`Self::advance`].
    pub fn collect(&mut self, shard: &mut Shard, turn: &TurnFacts, news: &mut Vec<News>) {
        self.mark(shard);
        self.collect_outcomes(shard, turn, news);
        self.look_when_due(shard, turn);
    }

    /// One turn's share of a snapshot: begins it, walks on, hands over to the disk.
    pub fn advance(&mut self, shard: &mut Shard, turn: &TurnFacts, news: &mut Vec<News>) {
        if !turn.leads {
            return;
        }
        self.schedule(shard, turn);
        self.begin(shard, turn, news);
        self.give_way(shard, turn);
        self.walk(shard);
        self.write(shard);
        self.prune_when_due(shard, turn);
    }

    /// Asks for a snapshot when the log has grown enough.
    fn schedule(&mut self, shard: &Shard, turn: &TurnFacts) {
        let grown = shard.replay_cost_bytes();
        if grown < self.pace.log_growth_bytes_min || self.is_busy() {
            return;
        }
        if self.offbox.lives() && shard.grown.bytes < self.pace.log_growth_bytes_alone {
            return;
        }
        let is_hasty = shard.grown.bytes >= self.pace.log_growth_bytes_hasty;
        let rests = self.rests_until > turn.monotonic && !is_hasty;
        let is_early = self.not_before > turn.monotonic;
        if !rests && !is_early && grown >= shard.engine.keyspace.data_bytes() {
            let Growth { records, bytes } = shard.grown;
            tracing::info!(records, log_bytes = bytes, "the log has grown, a snapshot is due");
            // It cannot be refused: none is under way.
            let _ = self.request(false, turn.monotonic);
        }
    }

    /// Begins the snapshot that is wanted, once everything executed stands in a record.
    fn begin(&mut self, shard: &mut Shard, turn: &TurnFacts, news: &mut Vec<News>) {
        if !self.is_wanted || self.running.is_some() {
            return;
        }
        shard.commit(turn.now);
        if shard.has_gathered() || shard.holds_records() {
            return;
        }
        news.push(News::SnapshotBegan);
        let waits_for = shard.newest_appended();
        let (position, chain) = (shard.appended(), shard.chain());
        let shifted = shard.shifted();
        self.is_wanted = false;
        self.rests_until = MonotonicNanos(turn.monotonic.0 + self.pace.rest_nanos);
        let point = SnapshotPoint {
            position,
            chain: chain.value.0,
            epoch: chain.epoch,
            log_sum: shard.log_sum(),
            // That of the record: nothing shows a later one.
            clock: shard.newest_clock(),
            began: turn.now,
        };
        let keyspace = &mut shard.engine.keyspace;
        self.status.keys_to_save = keyspace.len() as u64;
        let rdb = keyspace.file_version();
        keyspace.begin_snapshot(turn.now);
        self.running = Some(Running {
            point,
            waits_for,
            shifted,
            is_durable: false,
            began: turn.monotonic,
            keys: 0,
            rdb,
            is_walked: false,
            chunks: Vec::new(),
            cuts: Cuts::default(),
            emptied: Vec::new(),
            backlog_bytes: 0,
            writing: None,
            is_publishing: false,
            is_given_up: false,
            log: shard.grown,
            dirty: keyspace.statistics.dirty.get(),
        });
        let store = self.store.clone();
        submit(&mut *self.queue, move || {
            Ok(Outcome::Written(Box::new(Writing::new(store.begin(position)?)), Vec::new()))
        });
    }

    /// Walks one slice and cuts what was written into chunks.
    fn walk(&mut self, shard: &mut Shard) {
        let Backlog { bytes_max, bytes_blocking } = self.backlog_of(shard);
        let Self { running: Some(running), store, pace, clock, status, .. } = self else { return };
        if running.is_given_up {
            return;
        }
        let keyspace = &mut shard.engine.keyspace;
        let limits = store.limits();
        let is_part_full = running.is_part_full(&limits, keyspace.snapshot_bytes());
        if is_part_full {
            keyspace.want_snapshot_cut();
        }
        let began = clock.monotonic();
        let has_time = || clock.monotonic().since(began) < pace.walk_nanos_max;
        if !running.is_walked && running.backlog_bytes < bytes_max {
            for _ in 0..pace.steps_max {
                running.is_walked = keyspace.walk_snapshot(pace.step_keys, pace.step_bytes);
                let stands_still = is_part_full && keyspace.can_cut_snapshot();
                let waits = keyspace.snapshot_waits_for_values();
                if running.is_walked || stands_still || waits || !has_time() {
                    break;
                }
            }
            running.keys = keyspace.snapshot_keys();
            status.keys_saved = running.keys;
        } else if running.backlog_bytes < bytes_blocking {
            for _ in 0..pace.steps_max {
                if !keyspace.snapshot_has_come() {
                    break;
                }
                keyspace.write_read_values();
                let stands_still = is_part_full && keyspace.can_cut_snapshot();
                if stands_still || !has_time() {
                    break;
                }
            }
        }
        let untaken = keyspace.snapshot_bytes();
        let cuts = running.is_part_full(&limits, untaken) && keyspace.can_cut_snapshot();
        if cuts || untaken >= pace.chunk_bytes || running.is_walked {
            let next = running.emptied.pop();
            let next = next.unwrap_or_else(|| Vec::with_capacity(pace.chunk_capacity()));
            if cuts {
                running.push(keyspace.cut_snapshot(next), true);
            } else {
                running.push(keyspace.take_snapshot_bytes(next), false);
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
        if running.writing.is_none() {
            return;
        }
        if has_moved || running.is_given_up {
            let Some(writing) = running.writing.take() else { return };
            // A point that has moved bears another record's number: rarer than a failover.
            let why = if running.is_given_up { FLUSHED } else { "the log's newest records moved" };
            submit(&mut *self.queue, move || Err(writing.abandon(io::Error::other(why))));
            return;
        }
        if !running.chunks.is_empty() {
            let chunks = std::mem::take(&mut running.chunks);
            let Some(mut writing) = running.writing.take() else { return };
            submit(&mut *self.queue, move || match writing.append(&chunks) {
                Ok(()) => Ok(Outcome::Written(writing, chunks)),
                Err(error) => Err(writing.abandon(error)),
            });
            return;
        }
        if !running.is_walked || !running.is_durable && !self.pace.publishes_before_durable {
            return;
        }
        let Some(writing) = running.writing.take() else { return };
        running.is_publishing = true;
        let facts = Facts::unproven(running.point, running.keys, running.rdb);
        let store = self.store.clone();
        submit(&mut *self.queue, move || {
            let snapshot = writing.publish(&facts)?;
            let (name, point) = (snapshot.name.clone(), snapshot.point);
            let bytes = snapshot.manifest.bytes();
            // It counts, whether or not it can be read just now.
            let file = SnapshotFile::open(&store, snapshot);
            let sighting = Sighting { sequence: point.position.sequence, began: point.began };
            Ok(Outcome::Published(Box::new(Published { name, sighting, bytes, file })))
        });
    }

    fn collect_outcomes(&mut self, shard: &mut Shard, turn: &TurnFacts, news: &mut Vec<News>) {
        let mut done = std::mem::take(&mut self.done);
        self.queue.poll(&mut done);
        if let Some(archiving) = &mut self.archiving {
            archiving.poll(&mut done);
        }
        for (_, outcome) in done.drain(..) {
            match outcome.downcast::<Outcome>().map(|outcome| *outcome) {
                Ok(Outcome::Written(writing, chunks)) => {
                    if let Some(running) = &mut self.running {
                        running.take_back(writing, chunks, 2 * self.pace.chunk_capacity());
                    }
                }
                Ok(Outcome::Published(published)) => self.finish(shard, turn, *published, news),
                Ok(Outcome::Archived(archived)) => self.archived(turn, archived),
                Ok(Outcome::Pruned(through, archived)) => {
                    self.pruned(shard, turn, through, archived);
                }
                Ok(Outcome::Looked(looked)) => self.looked(shard, turn, looked),
                Ok(Outcome::Failed(why)) => self.fail(shard, turn, &why, news),
                Err(_) => self.fail(shard, turn, "a disk job returned something else", news),
            }
        }
        self.done = done;
    }

    fn finish(
        &mut self,
        shard: &mut Shard,
        turn: &TurnFacts,
        published: Published,
        news: &mut Vec<News>,
    ) {
        let Some(running) = self.running.take() else { return };
        let seconds = turn.monotonic.seconds_since(running.began);
        let sequence = running.point.position.sequence.0;
        let Published { name, sighting, bytes, file } = published;
        tracing::info!(name, sequence, keys = running.keys, bytes, "snapshot published");
        // Whoever came meanwhile waits for the next one, which does not give way either.
        self.has_given_way = self.is_wanted_again;
        self.status.published += 1;
        self.status.last_published = Some(turn.now);
        self.status.last_seconds = Some(seconds);
        shard.grown -= running.log;
        self.offbox.cover_exactly(running.point.position.sequence, running.log, running.dirty);
        let dirty = &shard.engine.keyspace.statistics.dirty;
        dirty.set(dirty.get().saturating_sub(running.dirty));
        self.stores.published(sighting, self.store.limits().retained);
        self.pruning.is_due = true;
        self.pruning.newest = Some(running.point.position);
        let file = file.map(Box::new).inspect_err(|why| {
            tracing::error!("the snapshot that was published cannot be read: {why}");
        });
        news.push(News::SnapshotPublished(file.ok()));
        self.end(true, turn);
    }

    fn fail(&mut self, shard: &mut Shard, turn: &TurnFacts, why: &str, news: &mut Vec<News>) {
        let is_given_up = self.running.take().is_some_and(|running| running.is_given_up);
        self.is_wanted_again |= is_given_up;
        if is_given_up {
            tracing::warn!("the snapshot was given up, and another one begins: {why}");
        } else {
            tracing::error!("the snapshot failed and was given up: {why}");
            self.not_before = MonotonicNanos(turn.monotonic.0 + RETRY_NANOS);
        }
        shard.engine.keyspace.end_snapshot();
        self.status.last_seconds = Some(turn.monotonic.seconds_since(self.status.began));
        news.push(if is_given_up { News::SnapshotGivenUp } else { News::SnapshotFailed });
        self.end(is_given_up && self.status.is_last_ok, turn);
    }

    /// Begins the next one if it was asked for.
    fn end(&mut self, is_ok: bool, turn: &TurnFacts) {
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
