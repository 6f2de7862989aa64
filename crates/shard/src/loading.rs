//! The start of a server: the newest snapshot, then the log behind it, in slices.
//!
//! ```text
//! choose ─▶ snapshot ─▶ log ─▶ follow, and lead when it may
//!    ▲──────────┘ damaged: refused by name, the one before it is taken
//! ```
//! Between the slices the loop turns, so that clients are told LOADING instead of nothing. The
//! parts of a snapshot are read by several threads, and put in by this one. A snapshot is read
//! once: its checksums are compared as it is loaded, and what was loaded of one that turns out
//! damaged is thrown away.
//!
//! Another process may lead meanwhile, publish snapshots and trim its log. What is found gone is
//! then no loss: the loading begins again with a newer snapshot.

mod ancestors;
mod choosing;
mod errand;
mod history;
mod lanes;
mod lent;
mod open;
mod parts;
mod progress;

use crate::leadership::Found;
use crate::recovery::{RecoveryError, Replayer};
use crate::role::heartbeat::Heartbeats;
use crate::shard::{Growth, Shard};
use ancestors::Ancestors;
pub use ancestors::{follow_nobody, must_have_ancestors};
use archive::{Candidate, Snapshot, SnapshotStore, Unfinished};
use base::disk::DiskQueue;
use base::{Clock, MonotonicNanos, Position, Seeds, Sequence};
use bytes::Bytes;
pub use choosing::must_not_be_of_a_parent;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use errand::Errand;
use history::{Comparing, chain_behind};
pub use lanes::LANES_MAX;
use lent::Lent;
pub use open::{FileLogOpener, KnownLog, OpenLog};
pub use parts::{PartSource, Parts, PartsError};
use progress::Measured;
pub use progress::{Leg, Progress};
use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use txlog::LogEvent;
use txlog::reader::Goal;

/// How much a slice does, which is what is done between two turns of the loop.
#[derive(Clone, Copy, Debug)]
pub struct SliceLimits {
    /// How long it takes, in nanoseconds: what a client waits for its LOADING. The last step may
    /// overshoot.
    pub nanos_max: u64,
    /// Keys or records between two looks at the clock.
    pub step_keys: u64,
    pub step_records: usize,
    /// Steps of one slice, whatever the clock says: simulated clocks stand still within a turn.
    pub steps_max: usize,
}

impl Default for SliceLimits {
    fn default() -> Self {
        Self { nanos_max: 10_000_000, step_keys: 16_384, step_records: 64, steps_max: 256 }
    }
}

/// Why a shard cannot be loaded, in words.
pub type Failure = Box<dyn Error>;

/// What a loading needs to know.
pub struct Sources {
    pub clock: Arc<dyn Clock>,
    /// The same that later keeps the server's snapshots: it learns here which are damaged.
    pub store: SnapshotStore,
    pub settings: Settings,
    pub seeds: Seeds,
}

/// A loading under way.
pub struct Loading {
    clock: Arc<dyn Clock>,
    store: SnapshotStore,
    settings: Settings,
    seeds: Seeds,
    /// Snapshots not yet tried, newest first.
    candidates: VecDeque<Candidate>,
    log: OpenLog,
    events: Vec<LogEvent>,
    /// Records read and not applied.
    records: VecDeque<(Position, Bytes)>,
    engine: Engine,
    /// Nobody hears of what is loaded.
    nobody: Interest,
    /// What the records say of who leads.
    heartbeats: Heartbeats,
    stage: Stage,
    /// Of a branch's first snapshot, which is beside it: what is loaded in its place.
    ancestors: Option<(Box<Ancestors>, Snapshot)>,
    /// Why a snapshot could not be read that may be whole: where it was needed, this is the reason.
    unread: Option<String>,
    /// How often it began again, because what it needed was gone.
    restarts: u32,
    slice: SliceLimits,
    goal: Goal,
    comparing: Comparing,
    counts_void_records: bool,
    lent: Lent,
    measured: Measured,
    /// Keys that the snapshot had.
    pub keys_loaded: u64,
    snapshot_bytes: u64,
    /// Of the log.
    replayed: Growth,
    began: MonotonicNanos,
}

enum Stage {
    Choose,
    /// A thread looks where the data of a branch's first snapshot lies.
    Look(Snapshot, Errand<io::Result<Option<Box<Ancestors>>>>),
    Snapshot(Box<Parts>),
    /// The log of the branch's ancestors.
    Ancestors,
    /// Until the end of the log, once it is known.
    Log(Box<Replayer>, Option<Sequence>),
    Done(Box<Replayer>),
}

/// What a slice brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// There is more to do at once.
    More,
    /// The log has to be waited for.
    Wait,
    Done,
}

impl Loading {
    /// Looks for snapshots and opens the log that they speak of. Blocks.
    ///
    /// # Errors
    /// The log is damaged or lost; the disk fails.
    pub fn open(
        sources: Sources,
        open_log: impl FnOnce(&KnownLog) -> Result<OpenLog, Failure>,
    ) -> Result<Self, Failure> {
        let Sources { clock, store, settings, seeds } = sources;
        let candidates = store.list()?;
        let known = KnownLog::of(&candidates);
        let mut log = open_log(&known)?;
        if known.position.is_some_and(|position| position.incarnation != log.incarnation) {
            return Err(
                "the transaction log is another one than the snapshots were taken of".into()
            );
        }
        if log.is_free {
            // What others write bears their sign and stays. Older releases made none: that
            // none of them writes here, only the log's lock says.
            if let Err(error) = store.remove_unpublished(Unfinished::All) {
                tracing::warn!("unfinished snapshots cannot be removed: {error}");
            }
        }
        let began = clock.monotonic();
        let measured = Measured::begin(clock.unix_millis(), began);
        let mut comparing = Comparing::default();
        comparing.ask_newest(&mut *log.handle, &candidates);
        Ok(Self {
            engine: Engine::new(Keyspace::new(settings.clone(), seeds.hash), seeds.chance),
            clock,
            store,
            settings,
            seeds,
            candidates: candidates.into(),
            log,
            events: Vec::new(),
            records: VecDeque::new(),
            nobody: Interest::default(),
            heartbeats: Heartbeats::default(),
            stage: Stage::Choose,
            ancestors: None,
            unread: None,
            restarts: 0,
            slice: SliceLimits::default(),
            goal: Goal::Tail,
            comparing,
            counts_void_records: false,
            lent: Lent::default(),
            measured,
            keys_loaded: 0,
            snapshot_bytes: 0,
            replayed: Growth::default(),
            began,
        })
    }

    /// Lets slices be smaller, so that a short simulated run has several.
    pub fn limit_slices(&mut self, slice: SliceLimits) {
        self.slice = slice;
    }

    /// Lets these threads read the parts of the snapshot, several at a time; [`LANES_MAX`] are of
    /// use. Without any they are read between the turns of the loop.
    pub fn read_parts_by(&mut self, readers: Vec<Box<dyn DiskQueue>>) {
        self.lent.readers = readers;
    }

    /// Gives the threads back, with nothing left to do.
    pub fn take_readers(&mut self) -> Vec<Box<dyn DiskQueue>> {
        match std::mem::replace(&mut self.stage, Stage::Choose) {
            Stage::Snapshot(parts) => self.lent.readers = parts.into_queues(),
            Stage::Look(_, look) => self.lent.readers.extend(look.into_queue()),
            stage => self.stage = stage,
        }
        let ancestors = self.ancestors.as_mut().map(|(ancestors, _)| ancestors);
        self.lent.readers.extend(ancestors.and_then(|it| it.take_queue()));
        std::mem::take(&mut self.lent.readers)
    }

    /// Ends elsewhere than at the log's end. A snapshot behind the goal is not used.
    pub fn end_at(&mut self, goal: Goal) {
        self.goal = goal;
    }

    /// Counts records that are void, also when loading is over, so that a test can prove that it
    /// would notice.
    #[doc(hidden)]
    pub fn count_void_records(&mut self) {
        self.counts_void_records = true;
    }

    /// Takes any log for the one that the snapshots were taken of, likewise.
    #[doc(hidden)]
    pub fn join_histories(&mut self) {
        self.comparing = Comparing::none();
    }

    /// Goes on for one slice.
    ///
    /// # Errors
    /// The data cannot be had back: the log is damaged, or does not reach back to any snapshot.
    pub fn step(&mut self) -> Result<Step, Failure> {
        let began = self.clock.monotonic();
        for _ in 0..self.slice.steps_max {
            if let Some(step) = self.lacks_room()? {
                return Ok(step);
            }
            let (stage, step) = match std::mem::replace(&mut self.stage, Stage::Choose) {
                Stage::Choose => (self.choose()?, Step::More),
                Stage::Snapshot(loading) => self.load(loading)?,
                Stage::Look(snapshot, look) => self.look(snapshot, look)?,
                Stage::Ancestors => self.replay_ancestors()?,
                Stage::Log(replayer, until) => self.replay(replayer, until)?,
                done @ Stage::Done(_) => (done, Step::Done),
            };
            self.stage = stage;
            let now = self.clock.monotonic();
            if self.measured.sample(now) {
                let keys = self.engine.keyspace.len();
                tracing::info!(keys, "{}", self.measured.progress);
            }
            if step != Step::More {
                return Ok(step);
            }
            if now.since(began) >= self.slice.nanos_max {
                break;
            }
        }
        Ok(Step::More)
    }

    /// Goes on to the end. `wait` is called where the log has to be waited for: it lets time pass.
    ///
    /// # Errors
    /// As [`Self::step`].
    pub fn finish(&mut self, mut wait: impl FnMut()) -> Result<(), Failure> {
        loop {
            match self.step()? {
                Step::More => {}
                Step::Wait => wait(),
                Step::Done => return Ok(()),
            }
        }
    }

    fn load(&mut self, mut parts: Box<Parts>) -> Result<(Stage, Step), Failure> {
        let source = self.source().clone();
        let outcome = parts.load(&source, &mut self.engine.keyspace, self.slice.step_keys);
        self.measured.note_snapshot(&parts);
        if let Ok(step @ (Step::More | Step::Wait)) = outcome {
            return Ok((Stage::Snapshot(parts), step));
        }
        let snapshot = parts.snapshot.clone();
        self.lent.readers = parts.into_queues();
        let stage = match outcome {
            Ok(_) => {
                self.keys_loaded = snapshot.manifest.keys;
                self.snapshot_bytes = snapshot.manifest.bytes();
                match self.ancestors {
                    Some(_) => Stage::Ancestors,
                    None => self.begin_log_behind(&snapshot),
                }
            }
            Err(why) => {
                // Of a branch's first, it is that one which cannot be used.
                let child = self.ancestors.take().map(|(_, child)| child);
                self.forget_loaded();
                self.give_up(&child.unwrap_or(snapshot), why)?
            }
        };
        Ok((stage, Step::More))
    }

    /// What is done instead of loading this snapshot.
    fn give_up(&mut self, snapshot: &Snapshot, why: PartsError) -> Result<Stage, Failure> {
        let why = match why {
            // Only this process removes its snapshots: so the part is lost, and the previous
            // snapshot is used.
            PartsError::Gone(error) if self.log.is_free && error.kind() == ErrorKind::NotFound => {
                error.to_string()
            }
            PartsError::Gone(error) => return self.begin_again(error.into()),
            PartsError::Unsupported(what) => {
                return Err(format!("snapshot {}: {what}", snapshot.name).into());
            }
            // It stays, and the one before it is taken: the log has what is between them.
            PartsError::Unread(why) => {
                tracing::error!("snapshot {} cannot be read and is not used: {why}", snapshot.name);
                let unread = format!("snapshot {} cannot be read: {why}", snapshot.name);
                self.unread.get_or_insert(unread);
                return Ok(Stage::Choose);
            }
            PartsError::Damaged(why) => why,
        };
        tracing::error!("snapshot {} is damaged and not used: {why}", snapshot.name);
        self.store.refuse(&snapshot.name, &why);
        Ok(Stage::Choose)
    }

    fn begin_log_behind(&mut self, snapshot: &Snapshot) -> Stage {
        self.comparing.ask(&mut *self.log.handle, snapshot);
        let point = &snapshot.point;
        let mut replayer = Replayer::new(point.position.sequence, chain_behind(snapshot));
        replayer.clock_at_least(point.clock);
        if let Some(sum) = point.log_sum {
            replayer.continue_sum(sum);
        }
        self.begin_log(replayer)
    }

    fn begin_log(&mut self, mut replayer: Replayer) -> Stage {
        replayer.use_keys(self.store.keys().clone());
        if self.counts_void_records {
            replayer.count_void_records();
        }
        if self.comparing.joins_histories {
            replayer.join_histories();
        }
        let (incarnation, sequence) = (self.log.incarnation, replayer.at().next());
        // Only to say how far it is: nobody waits for the answer.
        let end = self.log.handle.tail();
        self.log.handle.read_from(Position { incarnation, sequence });
        self.measured.begin_log(replayer.at(), end, self.clock.monotonic());
        Stage::Log(Box::new(replayer), None)
    }

    fn replay(
        &mut self,
        mut replayer: Box<Replayer>,
        mut until: Option<Sequence>,
    ) -> Result<(Stage, Step), Failure> {
        if self.records.is_empty() {
            match self.read(&replayer)? {
                Some(Reached::End(end)) => {
                    if let Goal::Through(last) = self.goal
                        && last > end
                    {
                        return Err(format!("the log ends at record {end}, before {last}").into());
                    }
                    // What was known first counts: the log goes on growing.
                    until = Some(until.unwrap_or(end).min(end));
                }
                Some(Reached::Gap(why)) if self.goal != Goal::Tail => {
                    let what = "the moment lies before the oldest snapshot that can be used";
                    return Err(format!("{what}: {why}").into());
                }
                Some(Reached::Gap(why)) => return Ok((self.begin_again(why)?, Step::More)),
                None => {}
            }
        }
        self.fetch_ahead(&replayer);
        for _ in 0..self.slice.step_records {
            let next = self.records.front().map(|(_, bytes)| &bytes[..]);
            if self.is_reached(&replayer, next) {
                self.records.clear();
                self.lent.foresight.forget(&mut self.engine.keyspace);
                self.log.handle.stop_reading();
                until = Some(replayer.at());
            }
            if !self.has_foreseen(&replayer) {
                return Ok((Stage::Log(replayer, until), self.step_of_reads()));
            }
            let Some((position, bytes)) = self.records.pop_front() else { break };
            self.replayed.add(bytes.len());
            let consumed =
                replayer.consume(&mut self.engine, position.sequence, &bytes, &mut self.nobody);
            self.lent.foresight.note_consumed(position.sequence, &mut self.engine.keyspace);
            let consumed = consumed.map_err(|error| match error {
                RecoveryError::Unfounded(_) => with(&error, self.unread.as_deref()).into(),
                error => Failure::from(error),
            })?;
            self.heartbeats.note(&consumed);
        }
        self.measured.note_log(replayer.at(), until, self.replayed.bytes);
        if !self.records.is_empty() {
            return Ok((Stage::Log(replayer, until), Step::More));
        }
        if until.is_some_and(|until| replayer.at() >= until) && self.comparing.is_done() {
            return Ok((Stage::Done(replayer), Step::Done));
        }
        Ok((Stage::Log(replayer, until), Step::Wait))
    }

    /// Whether the goal lies before the next record.
    fn is_reached(&self, replayer: &Replayer, next: Option<&[u8]>) -> bool {
        match self.goal {
            Goal::Tail => false,
            Goal::Through(last) => replayer.at() >= last,
            Goal::Clock(latest) => next.is_some_and(|record| {
                let header = txlog::record::decode_header(record, false);
                header.is_ok_and(|it| replayer.chain().admits(&it) && it.clock > latest)
            }),
        }
    }

    /// Takes what the log has read meanwhile.
    fn read(&mut self, replayer: &Replayer) -> Result<Option<Reached>, Failure> {
        let mut found = None;
        self.log.handle.poll(&mut self.events);
        for event in self.events.drain(..) {
            self.comparing.hear(&event)?;
            match event {
                LogEvent::Read(position, bytes) => self.records.push_back((position, bytes)),
                LogEvent::CaughtUp(position) => found = Some(Reached::End(position.sequence)),
                LogEvent::Tail { ticket, position, .. } => {
                    self.measured.note_end(ticket, position.sequence);
                }
                LogEvent::Trimmed { first } => {
                    let at = replayer.at();
                    let what = if at == Sequence::ZERO {
                        format!(
                            "no snapshot can be used, and the transaction log begins at record \
                             {first}: the data before it is gone"
                        )
                    } else {
                        format!(
                            "the snapshot ends at record {at}, and the transaction log begins at \
                             record {first}: the data between them is gone"
                        )
                    };
                    let what = with(&what, self.unread.as_deref());
                    found = Some(Reached::Gap(what.into()));
                }
                LogEvent::Lost => {
                    let next = replayer.at().next();
                    let what = "the transaction log was cut, deleted or created anew";
                    return Err(format!("{what}: record {next} was asked for").into());
                }
                LogEvent::ReadFailed(what) => return Err(what.into()),
                _ => {}
            }
        }
        Ok(found)
    }

    /// How far it is.
    pub fn progress(&self) -> Progress {
        self.measured.progress
    }

    /// Whether the snapshot is loaded, and the log is being read.
    pub fn is_replaying(&self) -> bool {
        matches!(self.stage, Stage::Log(..) | Stage::Done(_))
    }

    /// Bytes of the snapshot that was loaded; 0 if none was.
    pub fn snapshot_bytes(&self) -> u64 {
        self.snapshot_bytes
    }

    /// What was read of the log behind it.
    pub fn replayed(&self) -> Growth {
        self.replayed
    }

    /// What was loaded, for who only looks at it, and the log. `None` while still loading.
    pub fn into_loaded(self) -> Option<(Engine, Replayer, OpenLog)> {
        match self.stage {
            Stage::Done(replayer) => Some((self.engine, *replayer, self.log)),
            _ => None,
        }
    }

    /// The shard, which follows its log from here on. `None` while still loading.
    pub fn into_shard(self) -> Option<Loaded> {
        let Stage::Done(replayer) = self.stage else { return None };
        let millis = self.clock.monotonic().since(self.began) / 1_000_000;
        tracing::info!(
            snapshot_keys = self.keys_loaded,
            log_bytes = self.replayed.bytes,
            effects = replayer.effects,
            keys = self.engine.keyspace.len(),
            millis,
            "loaded"
        );
        let OpenLog { handle, incarnation, is_free } = self.log;
        let through = replayer.at();
        let mut shard = Shard::following(self.engine, handle, *replayer, incarnation);
        shard.grown = self.replayed;
        shard.tiering = self.lent.tiering;
        shard.compaction = self.lent.compaction;
        let found = Found { heartbeats: self.heartbeats, is_free, through };
        Some(Loaded { shard, found })
    }
}

/// Opens a shard for who serves nobody meanwhile: loads its newest snapshot, applies the log behind
/// it, and follows the log from there on, as [`Shard::poll`] is called. Blocks; `wait` is called
/// where the log has to be waited for, and lets time pass.
///
/// # Errors
/// The data cannot be had back.
pub fn open(
    sources: Sources,
    open_log: impl FnOnce(&KnownLog) -> Result<OpenLog, Failure>,
    wait: impl FnMut(),
) -> Result<Shard, Failure> {
    let mut loading = Loading::open(sources, open_log)?;
    loading.finish(wait)?;
    let loaded = loading.into_shard().ok_or("the loading ended and was not done")?;
    Ok(loaded.shard)
}

/// What a loading hands over.
pub struct Loaded {
    pub shard: Shard,
    /// What was found of who leads, for [`Leadership::follow`](crate::Leadership::follow).
    pub found: Found,
}

/// What is wrong, and what it comes of if that is known.
fn with(what: &dyn fmt::Display, unread: Option<&str>) -> String {
    unread.map_or_else(|| what.to_string(), |unread| format!("{what} ({unread})"))
}

/// How a reading came to an end.
enum Reached {
    End(Sequence),
    Gap(Failure),
}
