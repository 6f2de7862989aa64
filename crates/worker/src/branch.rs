//! A branch: a new log whose data stays where it is, in its parent's archive.
//!
//! ```text
//! parent's snapshot ─▶ its log, read up to the moment ─▶ archived through there, and pinned
//! record 1 of the new log: its origin ─▶ a snapshot that names the parent's, and its archived log
//! ```
//! Nothing is loaded and no data is copied, but for the log that is not archived yet. A server that
//! starts on the branch loads the parent's snapshot and applies the parent's log
//! (`shard::loading`). When the branch has snapshots of its own, the pin goes.

use crate::take::{Claimed, Worker};
use archive::{BranchPoint, Candidate, Parent, Snapshot, SnapshotPoint, covered};
use base::{Incarnation, Position, Sequence, UnixMillis};
use shard::archived::{Need, archive, verify};
use shard::loading::{Failure, KnownLog, OpenLog};
use shard::loading::{must_have_ancestors, must_not_be_of_a_parent};
use txlog::reader::{Goal, Next, Reader, Start};
use txlog::record::ChainValue;
use txlog::{Chain, Consumed, Origin};

/// The version of RDB files where a snapshot does not say it.
const RDB_VERSION: u32 = 10;

/// How long a branch waits for who removes old snapshots, in nanoseconds.
const PRUNING_NANOS_MAX: u64 = 60_000_000_000;

/// A moment of a shard, found and not loaded.
pub struct Fork {
    /// The newest snapshot before it.
    pub snapshot: Snapshot,
    /// The last record that belongs to it.
    pub point: BranchPoint,
    /// The newest clock of the records through there.
    pub clock: UnixMillis,
}

impl Worker {
    /// Finds the moment in the log.
    ///
    /// # Errors
    /// There is no snapshot before it, or the log does not reach back to that one; or this shard is
    /// a branch itself, and what it needs of its parent is gone.
    pub fn find_fork(&mut self, goal: Goal, claimed: &mut Claimed) -> Result<Fork, Failure> {
        let known = KnownLog { must_exist: true, ..KnownLog::default() };
        let OpenLog { handle: mut log, incarnation, .. } = (self.open_log)(&known)?;
        let candidates = self.store.list()?.into_iter();
        let is_before = |point: &SnapshotPoint| match goal {
            Goal::Tail => true,
            Goal::Through(last) => point.position.sequence <= last,
            Goal::Clock(latest) => point.clock <= latest,
        };
        let of_log = |point: &SnapshotPoint| point.position.incarnation == incarnation;
        let whole = candidates.filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot),
            Candidate::Damaged { .. } => None,
        });
        let mut fitting = whole.filter(|it| of_log(&it.point) && is_before(&it.point));
        let Some(snapshot) = fitting.next() else {
            must_not_be_of_a_parent(&self.store, &goal)?;
            return Err("no whole snapshot is as old as that moment".into());
        };
        let store = self.store.clone();
        must_have_ancestors(&store, &snapshot, &mut || self.rest(claimed))?;
        if let Goal::Through(last) = goal {
            self.must_reach(&mut *log, last, claimed)?;
        }
        let SnapshotPoint { position, chain, epoch, clock, .. } = snapshot.point;
        let mut fork = Fork { point: BranchPoint { position, chain, epoch }, clock, snapshot };
        if goal == Goal::Through(position.sequence) {
            return Ok(fork);
        }
        let chain = Chain { value: ChainValue(chain), epoch };
        let reader = Reader::new(&mut *log, Start::Behind(position, chain), goal);
        let mut reader = reader.with_keys(self.store.keys().clone());
        loop {
            match reader.next(&mut *log)? {
                Next::Record(read) => {
                    if let (Consumed::Record(_), Some(chain)) =
                        (&read.consumed, Chain::behind(&read.bytes))
                    {
                        let header = read.header();
                        let goes_back = header.sets_clock;
                        let newest = fork.clock.max(header.clock);
                        fork.clock = if goes_back { header.clock } else { newest };
                        fork.point = BranchPoint {
                            position: read.position,
                            chain: chain.value.0,
                            epoch: chain.epoch,
                        };
                    }
                    self.rest(claimed)?;
                }
                Next::Wait => {
                    self.rest(claimed)?;
                    (self.wait)();
                }
                Next::Done => return Ok(fork),
            }
        }
    }

    fn must_reach(
        &mut self,
        log: &mut dyn txlog::TransactionLog,
        last: Sequence,
        claimed: &mut Claimed,
    ) -> Result<(), Failure> {
        let tail = self.ask_tail(log, claimed)?;
        if tail.sequence < last {
            return Err(format!("the log ends at record {}, before {last}", tail.sequence).into());
        }
        Ok(())
    }

    /// Keeps in this archive what a branch needs of it: the snapshot, and the log through the
    /// fork, which is archived as far as it is not.
    ///
    /// # Errors
    /// It cannot be, or something of it was removed meanwhile: try again.
    pub fn keep_for_branch(
        &mut self,
        fork: &Fork,
        branch: Incarnation,
        said: &str,
        claimed: &mut Claimed,
    ) -> Result<Parent, Failure> {
        let Fork { snapshot, point, .. } = fork;
        let behind = snapshot.point.position.sequence;
        let store = self.store.clone();
        let parent = Parent::new(&store.location(), &snapshot.name, behind, point);
        let pin = parent.pin(branch);
        let is_new = store.pin(&pin, said.as_bytes())?;
        let kept = self.keep_pinned(fork, claimed);
        if let (Err(_), true) = (&kept, is_new) {
            // What made it fail says more than what comes of that.
            let _ = store.unpin(&pin);
        }
        kept.map(|()| parent)
    }

    fn keep_pinned(&mut self, fork: &Fork, claimed: &mut Claimed) -> Result<(), Failure> {
        let Fork { snapshot, point, .. } = fork;
        let behind = snapshot.point.position.sequence;
        let through = point.position.sequence;
        let store = self.store.clone();
        let began = self.clock.monotonic();
        while store.is_being_pruned()? {
            if self.clock.monotonic().since(began) > PRUNING_NANOS_MAX {
                return Err("old snapshots are being removed just now: try again later".into());
            }
            self.rest(claimed)?;
            (self.wait)();
        }
        if through > behind {
            let known = KnownLog { must_exist: true, ..KnownLog::default() };
            let log = (self.open_log)(&known)?;
            archive(&store, log, Need::Behind(behind), through, &mut |_, is_idle| {
                if is_idle {
                    (self.wait)();
                }
                self.rest(claimed)
            })?;
        }
        // Who removed old snapshots before had not seen the pin.
        let is_there = store.list()?.iter().any(|it| match it {
            Candidate::Whole(it) => it.name == snapshot.name,
            Candidate::Damaged { .. } => false,
        });
        if !is_there || covered(&store.log().list()?, behind) < through {
            return Err("what the branch needs was removed meanwhile: try again".into());
        }
        let from = snapshot.point.position.next();
        verify(&store.log(), from, through, &mut || self.rest(claimed))
    }

    /// Begins the branch's log and publishes its first snapshot.
    ///
    /// # Errors
    /// Log or archive are not empty, or cannot be written.
    pub fn begin_branch(
        &mut self,
        fork: &Fork,
        parent: Parent,
        mut log: OpenLog,
        claimed: &mut Claimed,
    ) -> Result<Snapshot, Failure> {
        let BranchPoint { position, chain, epoch } = fork.point;
        let Position { incarnation, sequence } = position;
        let origin = Origin {
            parent: Some((position, Chain { value: ChainValue(chain), epoch })),
            source: format!("record {sequence} of log {:016x}", incarnation.0),
        };
        let (first, standing) = self.begin_log(fork.clock, &origin, &mut log, claimed)?;
        let point = SnapshotPoint {
            position: first,
            chain: standing.chain.value.0,
            epoch: standing.chain.epoch,
            log_sum: standing.sum,
            clock: standing.clock,
            began: self.clock.unix_millis(),
        };
        let rdb = fork.snapshot.manifest.rdb.unwrap_or(RDB_VERSION);
        Ok(self.store.publish_branch(point, rdb, parent)?)
    }
}
