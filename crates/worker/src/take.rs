//! One snapshot, from the newest one to the next.

use crate::lanes::Lanes;
use crate::progress::{Phase, Progress};
use crate::prove::traits;
use archive::{
    CLAIM_RENEWAL, Candidate, Claim, Facts, Proof, Snapshot, SnapshotPoint, SnapshotStore,
    SnapshotWriter, Unfinished,
};
use base::{Clock, DatabaseId, DiskQueue, HashKey, Incarnation, MonotonicNanos, Position};
use base::{Seeds, Sequence};
use engine::digest::Digest;
use engine::effect::Effect;
use engine::execute::Engine;
use engine::keyspace::{Database, Keyspace};
use engine::settings::Settings;
use shard::archived::{Need, archive};
use shard::loading::{Failure, KnownLog, Loading, OpenLog, Sources, Step};
use shard::recovery::Standing;
use shard::snapshots::{Cuts, tell_unarchived};
use std::sync::Arc;

/// Keys, and bytes of small values, that are written between two looks at the clock.
const STEP_KEYS: u64 = 1024;
const STEP_BYTES: usize = 256 << 10;

/// Bytes that are handed to a thread at once.
const CHUNK_BYTES: usize = 256 << 10;

/// Records that change nothing, renewals and checksums, for which no snapshot is taken: a start
/// reads them in a fraction of a second.
const IDLE_RECORDS_MAX: u64 = 10_000;

/// Time between two lines of progress, in nanoseconds.
const TELL_NANOS: u64 = 1_000_000_000;

/// Opens the log to read it, and neither claims it nor shows itself there.
pub type OpenLogToRead = Box<dyn FnMut(&KnownLog) -> Result<OpenLog, Failure>>;

/// A process that takes snapshots.
pub struct Worker {
    pub store: SnapshotStore,
    pub clock: Arc<dyn Clock>,
    /// As the shard's servers have them: which databases there are, and whether idle times are
    /// kept.
    pub settings: Settings,
    pub seeds: Seeds,
    /// Names this process to others; drawn at random.
    pub id: u64,
    pub open_log: OpenLogToRead,
    /// Threads that write parts, one or more.
    pub queues: Vec<Box<dyn DiskQueue>>,
    /// Called where the log has to be waited for: lets time pass.
    pub wait: Box<dyn FnMut()>,
    /// Called with every line of progress.
    pub tell: Box<dyn FnMut(&Progress)>,
    /// Called at every step, however small: whether to go on. For who is told to stop.
    pub goes_on: Box<dyn FnMut() -> bool>,
    #[doc(hidden)]
    pub broken: Option<Broken>,
}

/// A rule that is broken on purpose, so that a test can prove that it would notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// Writes another value than the log has.
    WritesOtherData,
    /// The same, and publishes it without having restored what was written.
    WritesOtherDataUnproven,
}

/// How an attempt ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    Taken(Box<Taken>),
    /// Another worker has the claim.
    Busy,
    /// The newest snapshot holds everything that was written through this record.
    Nothing(Sequence),
}

/// A snapshot that was published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Taken {
    pub snapshot: Snapshot,
    /// Nanoseconds that the restoring and the replaying took, and bytes and records of them: what
    /// a start will take is estimated from that.
    pub restored: (u64, u64),
    pub replayed: (u64, u64),
    pub nanos: u64,
}

/// The claim to take snapshots, and how far the one under way is, which it says.
pub struct Claimed {
    progress: Progress,
    /// `None` of who takes no snapshot of the archive's own.
    claim: Option<Box<dyn Claim>>,
    /// Counts what the claim said.
    count: u64,
    claimed_at: MonotonicNanos,
    told_at: MonotonicNanos,
}

impl Worker {
    /// Takes the claim; `None` if another worker has it. Whoever waits for it asks every few
    /// seconds.
    ///
    /// # Errors
    /// The archive's.
    pub fn claim(&mut self) -> Result<Option<Claimed>, Failure> {
        let mut claimed = self.unclaimed();
        let said = claimed.progress.claim(self.id, 0);
        claimed.claim = self.store.claim(said.as_bytes())?;
        Ok(claimed.claim.is_some().then_some(claimed))
    }

    /// For who only reads: tells how far it is, and claims nothing.
    pub fn unclaimed(&self) -> Claimed {
        let now = self.clock.monotonic();
        let progress = Progress { phase: Phase::Waiting, done: 0, total: 0, began: now, at: now };
        Claimed { progress, claim: None, count: 0, claimed_at: now, told_at: now }
    }

    /// Takes one snapshot and gives the claim up again.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_once(&mut self) -> Result<Outcome, Failure> {
        let Some(mut claimed) = self.claim()? else { return Ok(Outcome::Busy) };
        let outcome = self.take(&mut claimed);
        claimed.release();
        outcome
    }

    /// Keeps the claim while nothing is to be done. Called every second or so.
    ///
    /// # Errors
    /// Another worker has taken it over, or the archive fails.
    pub fn rest(&mut self, claimed: &mut Claimed) -> Result<(), Failure> {
        self.note(claimed, Phase::Waiting, 0, 0)
    }

    /// Takes a snapshot of everything that the log holds now, proves it and publishes it. Blocks
    /// until that is done.
    ///
    /// # Errors
    /// The log or the archive cannot be read or written, or what was written is not what was to be:
    /// then nothing is published.
    pub fn take(&mut self, claimed: &mut Claimed) -> Result<Outcome, Failure> {
        let began = self.clock.monotonic();
        // What workers and servers left that died.
        if let Err(error) = self.store.remove_unpublished(Unfinished::Signed) {
            tracing::warn!("unfinished snapshots cannot be removed: {error}");
        }
        let mut loading = self.open()?;
        let loaded = self.load(&mut loading, claimed)?;
        let restored = (loaded.since(began), loading.snapshot_bytes());
        let replayed = (self.clock.monotonic().since(loaded), loading.replayed().records);
        let (engine, replayer, log) =
            loading.into_loaded().ok_or("the loading ended and was not done")?;
        let standing = replayer.standing();
        let newest = newest(&self.store, log.incarnation)?;
        let is_idle = replayer.effects == 0 && replayed.1 < IDLE_RECORDS_MAX;
        if newest.is_some_and(|newest| newest >= standing.at || is_idle) {
            return Ok(Outcome::Nothing(standing.at));
        }
        let position = Position { incarnation: log.incarnation, sequence: standing.at };
        let mut unproven = self.write(engine, position, &standing, claimed)?;
        unproven.checked = replayer.checked();
        unproven.is_all_checked = replayer.is_all_checked();
        let proven = match self.broken {
            Some(Broken::WritesOtherDataUnproven) => Ok(None),
            _ => self.prove(&unproven, log, claimed).map(Some),
        };
        if proven.is_ok() {
            self.archive_log(&standing, claimed);
        }
        let snapshot = match proven.and_then(|proven| self.may_publish(&unproven, claimed, proven))
        {
            Ok(facts) => unproven.writer.publish(&facts)?,
            Err(why) => {
                if let Err(error) = unproven.writer.abandon() {
                    tracing::warn!("what was written cannot be removed: {error}");
                }
                return Err(why);
            }
        };
        let now = self.clock.monotonic();
        Ok(Outcome::Taken(Box::new(Taken {
            snapshot,
            restored,
            replayed,
            nanos: now.since(began),
        })))
    }

    /// Archives the log through this record, before the snapshot behind it is seen and the log
    /// trimmed, if the shard has a restore window. One that fails leaves the log where it is.
    fn archive_log(&mut self, standing: &Standing, claimed: &mut Claimed) {
        if self.store.limits().window_seconds == 0 {
            return;
        }
        let store = self.store.clone();
        let known = KnownLog { must_exist: true, ..KnownLog::default() };
        let (need, through) = (Need::Window(standing.clock), standing.at);
        let mut is_stopped = false;
        let archived = (self.open_log)(&known).and_then(|log| {
            archive(&store, log, need, through, &mut |at, is_idle| {
                if is_idle {
                    (self.wait)();
                }
                let noted = self.note(claimed, Phase::Archiving, at.0, through.0);
                is_stopped |= noted.is_err();
                noted
            })
        });
        if let Err(why) = archived
            && !is_stopped
        {
            tell_unarchived(&why);
        }
    }

    pub(crate) fn open(&mut self) -> Result<Loading, Failure> {
        let sources = Sources {
            clock: Arc::clone(&self.clock),
            store: self.store.clone(),
            settings: self.settings.clone(),
            seeds: self.seeds,
        };
        Loading::open(sources, &mut self.open_log)
    }

    /// Loads the newest snapshot and the log behind it, through its end. When the snapshot was
    /// loaded.
    pub(crate) fn load(
        &mut self,
        loading: &mut Loading,
        claimed: &mut Claimed,
    ) -> Result<MonotonicNanos, Failure> {
        loading.read_parts_by(std::mem::take(&mut self.queues));
        let loaded = self.load_to_the_end(loading, claimed);
        self.queues = loading.take_readers();
        loaded
    }

    fn load_to_the_end(
        &mut self,
        loading: &mut Loading,
        claimed: &mut Claimed,
    ) -> Result<MonotonicNanos, Failure> {
        let mut loaded = self.clock.monotonic();
        loop {
            let step = loading.step()?;
            let phase = if loading.is_replaying() { Phase::Replaying } else { Phase::Restoring };
            if phase == Phase::Restoring {
                loaded = self.clock.monotonic();
            }
            let progress = loading.progress();
            self.note(claimed, phase, progress.used_bytes, progress.total_bytes)?;
            match step {
                Step::More => {}
                Step::Wait => (self.wait)(),
                Step::Done => return Ok(loaded),
            }
        }
    }

    /// Writes what the engine holds, and lets it go.
    pub(crate) fn write(
        &mut self,
        mut engine: Engine,
        position: Position,
        standing: &Standing,
        claimed: &mut Claimed,
    ) -> Result<Unproven, Failure> {
        let digest = self.digest(&engine, claimed)?;
        let began = self.clock.unix_millis();
        let keyspace = &mut engine.keyspace;
        if self.broken.is_some() {
            change_a_key(keyspace);
        }
        let (keys, rdb) = (keyspace.len() as u64, keyspace.file_version());
        let writer = self.store.begin(position)?;
        let mut lanes = Lanes::new(std::mem::take(&mut self.queues), writer);
        let limits = self.store.limits();
        let written = (|| -> Result<(), Failure> {
            let mut cuts = Cuts::default();
            keyspace.begin_snapshot(began);
            loop {
                if cuts.is_part_full(&limits, keyspace.snapshot_bytes()) {
                    keyspace.want_snapshot_cut();
                }
                let is_walked = keyspace.walk_snapshot(STEP_KEYS, STEP_BYTES);
                let untaken = keyspace.snapshot_bytes();
                let cut = !is_walked
                    && cuts.is_part_full(&limits, untaken)
                    && keyspace.can_cut_snapshot();
                if cut || is_walked || untaken >= CHUNK_BYTES {
                    let next = Vec::with_capacity(CHUNK_BYTES + STEP_BYTES);
                    let bytes = match cut {
                        true => keyspace.cut_snapshot(next),
                        false => keyspace.take_snapshot_bytes(next),
                    };
                    cuts.took(bytes.len(), cut);
                    lanes.push(bytes, cut || is_walked)?;
                }
                self.note(claimed, Phase::Writing, keyspace.snapshot_keys(), keys)?;
                if is_walked {
                    return Ok(lanes.finish()?);
                }
            }
        })();
        keyspace.end_snapshot();
        let (writer, queues) = lanes.into_writer();
        self.queues = queues;
        if let Err(why) = written {
            // What made it fail says more than what comes of that.
            let _ = writer.abandon();
            return Err(why);
        }
        let point = SnapshotPoint {
            position,
            chain: standing.chain.value.0,
            epoch: standing.chain.epoch,
            log_sum: standing.sum,
            clock: standing.clock,
            began,
        };
        let traits = traits(&engine);
        let (checked, is_all_checked) = (None, false);
        Ok(Unproven { writer, point, keys, rdb, digest, traits, checked, is_all_checked })
    }

    /// The digest of what an engine holds.
    pub(crate) fn digest(
        &mut self,
        engine: &Engine,
        claimed: &mut Claimed,
    ) -> Result<Digest, Failure> {
        let mut digest = Digest::default();
        let keyspace = &engine.keyspace;
        let (mut done, total) = (0, keyspace.len() as u64);
        let mut failure = None;
        digest.add_keyspace(keyspace, &mut |keys| {
            done += keys;
            let noted = self.note(claimed, Phase::Digesting, done, total);
            noted.map_err(|why| failure = Some(why)).is_ok()
        });
        failure.map_or(Ok(digest), Err)
    }

    /// The last looks before the publication: this process still has the claim, and nobody was
    /// faster.
    fn may_publish(
        &mut self,
        unproven: &Unproven,
        claimed: &mut Claimed,
        proof: Option<Proof>,
    ) -> Result<Facts, Failure> {
        self.enter(claimed, Phase::Publishing);
        self.say(claimed)?;
        let position = unproven.point.position;
        if newest(&self.store, position.incarnation)?.is_some_and(|it| it >= position.sequence) {
            return Err("another process has published a newer snapshot meanwhile".into());
        }
        Ok(unproven.facts(proof))
    }

    /// Notes how far a phase is: tells it now and then, and says it with the claim.
    ///
    /// # Errors
    /// It was told to stop; another worker has taken over the claim, or the archive fails.
    pub fn note(
        &mut self,
        claimed: &mut Claimed,
        phase: Phase,
        done: u64,
        total: u64,
    ) -> Result<(), Failure> {
        self.enter(claimed, phase);
        let now = self.clock.monotonic();
        claimed.progress = Progress { done, total, at: now, ..claimed.progress };
        if phase != Phase::Waiting && now.since(claimed.told_at) >= TELL_NANOS {
            claimed.told_at = now;
            (self.tell)(&claimed.progress);
        }
        if now.since(claimed.claimed_at) >= CLAIM_RENEWAL.as_nanos() as u64 {
            self.say(claimed)?;
        }
        if (self.goes_on)() { Ok(()) } else { Err("it was told to stop".into()) }
    }

    fn enter(&mut self, claimed: &mut Claimed, phase: Phase) {
        if claimed.progress.phase != phase {
            let now = self.clock.monotonic();
            if claimed.progress.phase != Phase::Waiting {
                (self.tell)(&claimed.progress);
            }
            claimed.told_at = now;
            claimed.progress = Progress { phase, done: 0, total: 0, began: now, at: now };
        }
    }

    fn say(&mut self, claimed: &mut Claimed) -> Result<(), Failure> {
        claimed.count += 1;
        let said = claimed.progress.claim(self.id, claimed.count);
        let renewed = claimed.claim.as_mut().map(|claim| claim.renew(said.as_bytes()));
        if !renewed.transpose()?.unwrap_or(true) {
            return Err("another worker has taken over the claim".into());
        }
        claimed.claimed_at = self.clock.monotonic();
        Ok(())
    }

    /// The key of the hash of a second engine: what is restored must not depend on the first one's.
    pub(crate) fn other_hash_key(&self) -> HashKey {
        let [first, second] = self.seeds.hash.words();
        HashKey::new([!first, second.rotate_left(32)])
    }
}

impl Claimed {
    /// Gives the claim up.
    pub fn release(self) {
        // It is over, whether or not the archive takes that in.
        if let Some(Err(error)) = self.claim.map(Claim::release) {
            tracing::warn!("the claim cannot be given up: {error}");
        }
    }
}

/// A snapshot that is written and that nobody has restored yet.
pub(crate) struct Unproven {
    pub writer: SnapshotWriter,
    pub point: SnapshotPoint,
    pub keys: u64,
    pub rdb: u32,
    pub digest: Digest,
    /// What no digest covers.
    pub traits: String,
    /// The last record before it in which the primary says what it had, and whether nothing was
    /// written since.
    pub checked: Option<Sequence>,
    pub is_all_checked: bool,
}

impl Unproven {
    pub fn facts(&self, proof: Option<Proof>) -> Facts {
        let proven = proof.map(|proof| (self.digest.value(), proof));
        Facts { point: self.point, keys: self.keys, rdb: self.rdb, proven }
    }
}

/// The record of the newest whole snapshot of this log.
fn newest(store: &SnapshotStore, log: Incarnation) -> Result<Option<Sequence>, Failure> {
    let whole =
        store.list_of(log)?.candidates.into_iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) if snapshot.manifest.parent.is_none() => {
                Some(snapshot.point.position.sequence)
            }
            Candidate::Whole(_) | Candidate::Damaged { .. } => None,
        });
    Ok(whole.max())
}

/// Gives some key a value that it does not have.
fn change_a_key(keyspace: &mut Keyspace) {
    let of = |(id, database): (DatabaseId, &Database)| {
        database.table().iter().next().map(|entry| (id, entry.key().to_vec()))
    };
    let found = keyspace.databases().find_map(of);
    if let Some((database, key)) = found {
        let effect = Effect::SetString { value: b"another value", expire_at: None };
        let applied = keyspace.apply(database, &key, &effect);
        applied.expect("a string may take the place of any value");
    }
}
