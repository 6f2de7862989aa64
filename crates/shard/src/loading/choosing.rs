//! Which snapshot a start begins with, and with which one it begins again.

use super::ancestors::Ancestors;
use super::errand::Errand;
use super::{Failure, Loading, Parts, Stage, Step};
use crate::foresight::Foresight;
use crate::recovery::Replayer;
use crate::shard::Growth;
use archive::{Candidate, Snapshot, SnapshotStore};
use base::Sequence;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use std::io;
use txlog::Chain;
use txlog::reader::Goal;

/// Beginnings in vain before giving up: each time a whole snapshot was replaced meanwhile.
const RESTARTS_MAX: u32 = 16;

impl Loading {
    pub(super) fn choose(&mut self) -> Result<Stage, Failure> {
        match self.candidates.pop_front() {
            Some(Candidate::Damaged { name, why, may_be_whole }) => {
                let how = if may_be_whole { "cannot be read" } else { "is damaged" };
                tracing::error!("snapshot {name} {how} and is not used: {why}");
                if may_be_whole {
                    self.unread.get_or_insert(format!("snapshot {name} cannot be read: {why}"));
                }
                Ok(Stage::Choose)
            }
            Some(Candidate::Whole(snapshot)) if is_behind(&self.goal, &snapshot) => {
                Ok(Stage::Choose)
            }
            // Who goes back to a moment has named the log, and becomes nobody's successor. A server
            // that starts refuses: its log may have been taken away.
            Some(Candidate::Whole(snapshot))
                if !matches!(self.goal, Goal::Tail)
                    && snapshot.point.position.incarnation != self.log.incarnation =>
            {
                tracing::warn!(name = snapshot.name, "this snapshot is of another log");
                Ok(Stage::Choose)
            }
            Some(Candidate::Whole(snapshot)) => self.look_for_data(snapshot),
            None => {
                must_not_be_of_a_parent(&self.store, &self.goal)?;
                let start = Chain::start(self.log.incarnation);
                Ok(self.begin_log(Replayer::new(Sequence::ZERO, start)))
            }
        }
    }

    /// Looks for the data of a snapshot: a branch's first has it in other archives, which a thread
    /// asks.
    fn look_for_data(&mut self, snapshot: Snapshot) -> Result<Stage, Failure> {
        if snapshot.manifest.parent.is_none() {
            return self.open_parts(snapshot);
        }
        let (store, named) = (self.store.clone(), snapshot.clone());
        let look = Errand::begin(self.lent.readers.pop(), move || Ancestors::of(&store, &named));
        Ok(Stage::Look(snapshot, look))
    }

    /// Goes on with what the thread has found, if it has.
    pub(super) fn look(
        &mut self,
        snapshot: Snapshot,
        look: Errand<io::Result<Option<Box<Ancestors>>>>,
    ) -> Result<(Stage, Step), Failure> {
        let (found, queue) = match look.take() {
            Ok(found) => found,
            Err(look) => return Ok((Stage::Look(snapshot, look), Step::Wait)),
        };
        self.lent.readers.extend(queue);
        let stage = match found {
            Ok(None) => self.open_parts(snapshot)?,
            Ok(Some(ancestors)) => {
                let loaded = ancestors.snapshot.clone();
                tracing::info!(name = snapshot.name, "a branch: its data is that of its parent's");
                self.ancestors = Some((ancestors, snapshot));
                self.open_parts(loaded)?
            }
            Err(why) => {
                let why = format!("snapshot {} cannot be read: {why}", snapshot.name);
                tracing::error!("{why}, and it is not used");
                self.unread.get_or_insert(why);
                Stage::Choose
            }
        };
        Ok((stage, Step::More))
    }

    fn open_parts(&mut self, snapshot: Snapshot) -> Result<Stage, Failure> {
        if snapshot.manifest.parts.is_empty() {
            return Err(format!("snapshot {} has no parts", snapshot.name).into());
        }
        tracing::info!(name = snapshot.name, keys = snapshot.manifest.keys, "loading");
        self.measured.begin_snapshot(snapshot.manifest.bytes(), self.clock.monotonic());
        let (source, now) = (self.source().clone(), self.clock.unix_millis());
        let keyspace = &self.engine.keyspace;
        match Parts::open(&source, snapshot, &mut self.lent.readers, keyspace, now) {
            Ok(parts) => Ok(Stage::Snapshot(Box::new(parts))),
            Err(error) => self.begin_again(error.into()),
        }
    }

    /// Begins with the newest snapshot once more, if another process may have published it since.
    pub(super) fn begin_again(&mut self, why: Failure) -> Result<Stage, Failure> {
        if self.log.is_free || self.restarts == RESTARTS_MAX {
            return Err(why);
        }
        self.restarts += 1;
        tracing::info!("begins to load again: {why}");
        self.candidates = self.store.list()?.into();
        self.records.clear();
        self.replayed = Growth::default();
        self.forget_loaded();
        Ok(Stage::Choose)
    }

    pub(super) fn forget_loaded(&mut self) {
        let keyspace = Keyspace::new(self.settings.clone(), self.seeds.hash);
        self.engine = Engine::new(keyspace, self.seeds.chance);
        self.lent.foresight = Foresight::default();
        if let Some(tiering) = &mut self.lent.tiering {
            tiering.serve(&mut self.engine.keyspace);
        }
        self.ancestors = None;
    }

    /// The store whose parts are loaded.
    pub(super) fn source(&self) -> &SnapshotStore {
        self.ancestors.as_ref().map_or(&self.store, |(ancestors, _)| &ancestors.store)
    }

    /// Applies what the ancestors' logs add to the snapshot that was loaded.
    pub(super) fn replay_ancestors(&mut self) -> Result<(Stage, Step), Failure> {
        let Some((mut ancestors, snapshot)) = self.ancestors.take() else {
            return Ok((Stage::Choose, Step::More));
        };
        let records_max = self.slice.step_records;
        match ancestors.step(&mut self.engine, &mut self.lent.readers, records_max) {
            Ok(Step::Done) => {
                self.keys_loaded = self.engine.keyspace.len() as u64;
                Ok((self.begin_log_behind(&snapshot), Step::More))
            }
            Ok(step) => {
                self.ancestors = Some((ancestors, snapshot));
                Ok((Stage::Ancestors, step))
            }
            Err(why) => {
                self.lent.readers.extend(ancestors.take_queue());
                Err(why)
            }
        }
    }
}

/// To be asked where no snapshot leads to the goal. A time before a branch began is none of its
/// own: its log has nothing of it, and cannot say so.
///
/// # Errors
/// It is one of the parent's, which is named; or the archive's.
pub fn must_not_be_of_a_parent(store: &SnapshotStore, goal: &Goal) -> Result<(), Failure> {
    let Goal::Clock(_) = goal else { return Ok(()) };
    for candidate in store.list()? {
        if let Candidate::Whole(snapshot) = candidate
            && is_behind(goal, &snapshot)
            && let Some(parent) = snapshot.manifest.parent
        {
            let through = parent.point()?.position;
            return Err(format!(
                "the moment lies before this branch began: it is one of its parent's, log {:016x} \
                 through record {}, whose snapshots are in {}. Name that log and that archive",
                through.incarnation.0, through.sequence, parent.store
            )
            .into());
        }
    }
    Ok(())
}

/// Whether a snapshot holds what lies behind the goal.
fn is_behind(goal: &Goal, snapshot: &Snapshot) -> bool {
    match goal {
        Goal::Tail => false,
        Goal::Through(last) => snapshot.point.position.sequence > *last,
        Goal::Clock(latest) => snapshot.point.clock > *latest,
    }
}
