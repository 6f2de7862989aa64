//! Snapshots of a serving shard, taken in slices beside commands.
//!
//! ```text
//! wanted ─▶ commit what has gathered ─▶ begin: position = last record, its chain
//!   turn by turn: walk a slice ─▶ chunks ─▶ disk queue (write, sync)
//!   walked, all written, position durable ─▶ disk queue (verify, publish, prune) ─▶ trim the log
//! ```
//! The consistent point is a record's end, so recovery goes on with the record behind it. Nothing
//! is published before that record is durable: a snapshot must never know more than the log.
//! Chunks that wait for the disk are bounded: the walk stops first, then writing commands wait.

mod stores;

use crate::server::Server;
use crate::session::Blocked;
use archive::manifest::Place;
use archive::{Facts, Pruned, SnapshotStore, SnapshotWriter};
use base::disk::{DiskOutcome, DiskTicket};
use base::{ConnectionId, DiskFile, DiskQueue, MonotonicNanos, Position, Sequence};
use engine::rdb::{Crc64, write::checksum};
use engine::refusal::Refusal;
use shard::Growth;
use std::io;
use std::sync::Arc;
pub use stores::Sighting;
use stores::Stores;
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

/// Takes snapshots of a shard.
pub struct Snapshots {
    store: SnapshotStore,
    queue: Box<dyn DiskQueue>,
    pace: Pace,
    /// Somebody asked for one, or it is due; it begins at the end of the turn.
    is_wanted: bool,
    /// One more is to begin when the running one ends.
    is_wanted_again: bool,
    running: Option<Running>,
    stores: Stores,
    /// Clients whose SAVE waits for the running one.
    waiting: Vec<ConnectionId>,
    /// Nothing is scheduled before this, because a snapshot failed.
    not_before: MonotonicNanos,
    /// Nothing is scheduled before this, because one has just been taken, unless there is haste.
    rests_until: MonotonicNanos,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

/// A snapshot under way.
struct Running {
    place: Place,
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
    bytes: u64,
    /// Its one file, open: it stays readable whatever becomes of the snapshot.
    file: Arc<dyn DiskFile>,
    /// The log is not needed through this position, if that is known.
    trim: Option<Position>,
}

impl Snapshots {
    /// `queue` is for nothing else: what the log waits for must not wait for snapshots.
    pub fn new(store: SnapshotStore, queue: Box<dyn DiskQueue>) -> Self {
        Self {
            store,
            queue,
            pace: Pace::default(),
            is_wanted: false,
            is_wanted_again: false,
            running: None,
            stores: Stores::default(),
            waiting: Vec::new(),
            not_before: MonotonicNanos(0),
            rests_until: MonotonicNanos(0),
            done: Vec::new(),
        }
    }

    /// Lets turns and intervals be smaller, so that a short simulated run has several.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    fn is_busy(&self) -> bool {
        self.is_wanted || self.running.is_some()
    }

    /// Whether the next turn has something to walk.
    fn wants_turn(&self, is_kept_waiting: bool) -> bool {
        let walks = |it: &Running| !it.is_walked && it.backlog_bytes < self.pace.backlog_bytes_max;
        self.running.as_ref().map_or(self.is_wanted && !is_kept_waiting, walks)
    }
}

impl Server {
    /// Lets the server take snapshots.
    pub fn keep_snapshots(&mut self, snapshots: Snapshots) {
        self.snapshots = Some(snapshots);
    }

    /// Asks for a snapshot (BGSAVE). With `schedule` one that runs already is followed by another.
    ///
    /// # Errors
    /// One is under way, or there is no place for snapshots.
    pub(crate) fn request_snapshot(&mut self, schedule: bool) -> Result<(), Refusal> {
        if self.is_following() {
            return Err(Refusal::of("ERR the primary takes the snapshots, and this is a replica"));
        }
        let Some(snapshots) = &mut self.snapshots else {
            return Err(Refusal::of("ERR there is no snapshot store"));
        };
        if snapshots.is_busy() {
            if !schedule {
                return Err(Refusal::of("ERR Background save already in progress"));
            }
            snapshots.is_wanted_again = true;
            return Ok(());
        }
        snapshots.is_wanted = true;
        self.core.persistence.is_saving = true;
        self.core.persistence.save_began = self.core.turn.monotonic;
        Ok(())
    }

    /// Asks for a snapshot that holds everything until now.
    ///
    /// # Errors
    /// There is no place for snapshots.
    pub(crate) fn want_snapshot_for_replica(&mut self) -> Result<(), Refusal> {
        let is_about_to = |it: &Snapshots| it.is_wanted && it.running.is_none();
        if self.snapshots.as_ref().is_some_and(is_about_to) {
            return Ok(());
        }
        self.request_snapshot(true)
    }

    /// Leaves a session waiting for the snapshot that was just asked for (SAVE).
    pub(crate) fn wait_for_snapshot(&mut self, client: ConnectionId) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.waiting.push(client);
            self.block(client, Blocked::Snapshot);
        }
    }

    /// Whether so much waits for the snapshot's disk that writing commands must wait too.
    pub(crate) fn is_snapshot_behind(&self) -> bool {
        let running = self.snapshots.as_ref().and_then(|snapshots| snapshots.running.as_ref());
        running.is_some_and(|running| running.backlog_bytes > BACKLOG_BYTES_LIMIT)
    }

    /// Whether the next turn should not wait, because a snapshot can go on.
    pub(crate) fn is_snapshot_ready(&self) -> bool {
        // One that is wanted begins behind what has gathered, once the log takes that.
        let is_kept_waiting =
            self.core.shard.has_gathered() && self.core.shard.gate() == Gate::Wait;
        let wants_turn = |it: &Snapshots| it.wants_turn(is_kept_waiting);
        self.core.roles.leads() && self.snapshots.as_ref().is_some_and(wants_turn)
    }

    /// One turn's share of the snapshot.
    pub(crate) fn advance_snapshot(&mut self) {
        if self.snapshots.is_none() {
            return;
        }
        self.collect_snapshot_outcomes();
        self.advance_stores();
        if !self.core.roles.leads() {
            return;
        }
        self.schedule_snapshot();
        self.begin_snapshot();
        self.walk_snapshot();
        self.write_snapshot();
    }

    /// Asks for a snapshot when the log has grown enough.
    fn schedule_snapshot(&mut self) {
        let grown = self.core.shard.replay_cost_bytes();
        let Some(snapshots) = &self.snapshots else { return };
        if grown < snapshots.pace.log_growth_bytes_min || snapshots.is_busy() {
            return;
        }
        let is_hasty = self.core.shard.grown.bytes >= snapshots.pace.log_growth_bytes_hasty;
        let rests = snapshots.rests_until > self.core.turn.monotonic && !is_hasty;
        let is_early = snapshots.not_before > self.core.turn.monotonic;
        if !rests && !is_early && grown >= self.core.shard.engine.keyspace.used_bytes() as u64 {
            let Growth { records, bytes } = self.core.shard.grown;
            tracing::info!(records, log_bytes = bytes, "the log has grown, a snapshot is due");
            // It cannot be refused: none is under way.
            let _ = self.request_snapshot(false);
        }
    }

    /// Begins the snapshot that is wanted, once everything executed stands in a record.
    fn begin_snapshot(&mut self) {
        let wants = |it: &Snapshots| it.is_wanted && it.running.is_none();
        if !self.snapshots.as_ref().is_some_and(wants) {
            return;
        }
        self.core.shard.commit(self.core.turn.now);
        if self.core.shard.has_gathered() {
            return;
        }
        self.start_gathering();
        let waits_for = self.core.shard.newest_appended();
        let shard = &mut self.core.shard;
        let (position, chain) = (shard.appended(), shard.chain());
        let shifted = shard.shifted();
        let Some(snapshots) = &mut self.snapshots else { return };
        snapshots.is_wanted = false;
        snapshots.rests_until =
            MonotonicNanos(self.core.turn.monotonic.0 + snapshots.pace.rest_nanos);
        let place = Place {
            position,
            chain: chain.value.0,
            epoch: chain.epoch,
            // That of the record: nothing shows a later one.
            clock: shard.newest_clock(),
            began: self.core.turn.now,
        };
        let keyspace = &mut shard.engine.keyspace;
        self.core.persistence.keys_to_save = keyspace.len() as u64;
        keyspace.begin_snapshot(self.core.turn.now);
        snapshots.running = Some(Running {
            place,
            waits_for,
            shifted,
            is_durable: false,
            began: self.core.turn.monotonic,
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
        let store = snapshots.store.clone();
        submit(&mut *snapshots.queue, move || {
            let writer = store.begin(position)?;
            Ok(Outcome::Written(
                Box::new(PartInMaking { writer, crc: Crc64::default() }),
                Vec::new(),
            ))
        });
    }

    /// Walks one slice and cuts what was written into chunks.
    fn walk_snapshot(&mut self) {
        let Some(Snapshots { running: Some(running), pace, .. }) = &mut self.snapshots else {
            return;
        };
        let keyspace = &mut self.core.shard.engine.keyspace;
        if !running.is_walked && running.backlog_bytes < pace.backlog_bytes_max {
            let began = self.core.process.options.clock.monotonic();
            for _ in 0..pace.steps_max {
                running.is_walked = keyspace.walk_snapshot(pace.step_keys, pace.step_bytes);
                let spent = self.core.process.options.clock.monotonic().since(began);
                if running.is_walked || spent >= SLICE_NANOS {
                    break;
                }
            }
            running.keys = keyspace.snapshot_keys();
            self.core.persistence.keys_saved = running.keys;
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
        let garbage = keyspace.take_garbage();
        self.discard(garbage);
    }

    /// Hands chunks to the disk, and in the end the whole for publication.
    fn write_snapshot(&mut self) {
        let (durable, shifted) = (self.core.shard.tracker.durable(), self.core.shard.shifted());
        let Some(snapshots) = &mut self.snapshots else { return };
        let Some(running) = &mut snapshots.running else { return };
        let has_moved = !running.is_durable && shifted != running.shifted;
        running.is_durable |= !has_moved && durable >= running.waits_for;
        if running.part.is_none() {
            return;
        }
        if has_moved {
            // Its place bears another record's number by now. This is rarer than a failover.
            let Some(part) = running.part.take() else { return };
            let error = io::Error::other("the log's newest records have moved");
            submit(&mut *snapshots.queue, move || Err(part.abandon(error)));
            return;
        }
        if !running.chunks.is_empty() {
            let chunks = std::mem::take(&mut running.chunks);
            let Some(mut part) = running.part.take() else { return };
            submit(&mut *snapshots.queue, move || match part.append(&chunks) {
                Ok(()) => Ok(Outcome::Written(part, chunks)),
                Err(error) => Err(part.abandon(error)),
            });
            return;
        }
        if !running.is_walked || !running.is_durable && !snapshots.pace.publishes_before_durable {
            return;
        }
        let Some(mut part) = running.part.take() else { return };
        running.is_publishing = true;
        let facts = Facts { place: running.place, keys: running.keys };
        let store = snapshots.store.clone();
        let trims_through_newest = snapshots.pace.trims_through_newest;
        submit(&mut *snapshots.queue, move || {
            if let Err(error) = part.append(&[checksum(part.crc).to_vec()]) {
                return Err(part.abandon(error));
            }
            let snapshot = part.writer.publish(&facts)?;
            let bytes = snapshot.manifest.parts.iter().map(|part| part.bytes).sum();
            let file = store.open_file(&snapshot, 0)?;
            // It is published: what fails now costs space, nothing else.
            let (trim, failure) = match store.prune() {
                Ok(Pruned { trim, failure }) => (trim, failure),
                Err(error) => (None, Some(error)),
            };
            if let Some(error) = failure {
                tracing::warn!("old snapshots cannot be removed: {error}");
            }
            let trim = if trims_through_newest { Some(facts.place.position) } else { trim };
            let place = snapshot.place;
            let sighting = Sighting { sequence: place.position.sequence, began: place.began };
            let name = snapshot.name;
            Ok(Outcome::Published(Published { name, sighting, bytes, file, trim }))
        });
    }

    fn collect_snapshot_outcomes(&mut self) {
        let Some(snapshots) = &mut self.snapshots else { return };
        let mut done = std::mem::take(&mut snapshots.done);
        snapshots.queue.poll(&mut done);
        for (_, outcome) in done.drain(..) {
            match outcome.downcast::<Outcome>().map(|outcome| *outcome) {
                Ok(Outcome::Written(part, chunks)) => {
                    if let Some(Snapshots { running: Some(running), pace, .. }) =
                        &mut self.snapshots
                    {
                        running.take_back(part, chunks, 2 * pace.chunk_capacity());
                    }
                }
                Ok(Outcome::Published(published)) => self.finish_snapshot(&published),
                Ok(Outcome::Looked(found)) => self.looked_at_store(found),
                Ok(Outcome::Failed(why)) => self.fail_snapshot(&why),
                Err(_) => self.fail_snapshot("a disk job returned something else"),
            }
        }
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.done = done;
        }
    }

    fn finish_snapshot(&mut self, published: &Published) {
        let Some(snapshots) = &mut self.snapshots else { return };
        let Some(running) = snapshots.running.take() else { return };
        let seconds = self.core.turn.monotonic.seconds_since(running.began);
        let sequence = running.place.position.sequence.0;
        let Published { name, bytes, .. } = published;
        tracing::info!(name, sequence, keys = running.keys, bytes, "snapshot published");
        let state = &mut self.core.persistence;
        state.saves += 1;
        state.last_save = self.core.turn.now;
        state.last_save_seconds = Some(seconds);
        self.core.shard.grown -= running.log;
        let dirty = &self.core.shard.engine.keyspace.statistics.dirty;
        dirty.set(dirty.get().saturating_sub(running.dirty));
        self.trim_when_seen(published.sighting, published.trim);
        self.send_file(&published.file, published.bytes);
        self.end_snapshot(true);
    }

    fn fail_snapshot(&mut self, why: &str) {
        tracing::error!("the snapshot failed and was given up: {why}");
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.running = None;
            snapshots.not_before = MonotonicNanos(self.core.turn.monotonic.0 + RETRY_NANOS);
        }
        self.core.shard.engine.keyspace.end_snapshot();
        self.give_up_gathering();
        let state = &mut self.core.persistence;
        state.last_save_seconds = Some(self.core.turn.monotonic.seconds_since(state.save_began));
        self.end_snapshot(false);
    }

    /// Answers the clients that wait for the snapshot, and begins the next one if it was asked for.
    fn end_snapshot(&mut self, is_ok: bool) {
        self.core.persistence.is_saving = false;
        self.core.persistence.is_last_save_ok = is_ok;
        let Some(snapshots) = &mut self.snapshots else { return };
        let again = std::mem::take(&mut snapshots.is_wanted_again);
        for connection in std::mem::take(&mut snapshots.waiting) {
            if !self.core.clients.has(connection) {
                continue;
            }
            if matches!(self.core.clients.at(connection).blocked, Some(Blocked::Snapshot)) {
                self.unblock(connection);
                let written = self.core.clients.at(connection).output.end();
                if is_ok {
                    self.core.clients.reply(connection).ok();
                } else {
                    self.core
                        .clients
                        .reply(connection)
                        .error(b"ERR the snapshot failed, the log says why");
                }
                self.finish_reply(connection, written, Sequence::ZERO);
                self.enqueue(connection);
            }
        }
        if again {
            // It cannot be refused: none is under way.
            let _ = self.request_snapshot(false);
        }
    }
}

/// Runs a job whose failure is an outcome like any other.
fn submit(queue: &mut dyn DiskQueue, job: impl FnOnce() -> io::Result<Outcome> + Send + 'static) {
    queue.submit(Box::new(move || {
        Box::new(job().unwrap_or_else(|error| Outcome::Failed(error.to_string())))
    }));
}
