//! The data of a branch's first snapshot: that of its parent's snapshot, and the log that is
//! archived behind it there. The parent's may be a branch's first in its turn.

use super::{Failure, chain_behind};
use crate::archived::ArchivedRecords;
use crate::recovery::Replayer;
use archive::{BranchPoint, LogStore, Snapshot, SnapshotPoint, SnapshotStore};
use base::DatabaseId;
use encryption::Keys;
use engine::effect::Effect;
use engine::execute::Engine;
use engine::interest::Interest;
use std::io::{self, ErrorKind};
use txlog::Chain;
use txlog::record::ChainValue;

/// Branches of branches that have no snapshots of their own, at most: more is a circle.
const GENERATIONS_MAX: usize = 64;

/// What is loaded in place of a branch's first snapshot.
pub(super) struct Ancestors {
    /// The snapshot that has data, and its store.
    pub snapshot: Snapshot,
    pub store: SnapshotStore,
    /// What is applied then, the first one last.
    generations: Vec<Generation>,
    under_way: Option<(Replayer, ArchivedRecords)>,
}

/// What one shard's log adds to its snapshot.
struct Generation {
    log: LogStore,
    keys: Keys,
    /// How its first snapshot, or the one before the point, says that the chain stands.
    behind: SnapshotPoint,
    chain: Chain,
    through: BranchPoint,
}

impl Ancestors {
    /// Those of a branch's first snapshot; `None` of any other.
    ///
    /// # Errors
    /// A parent's archive cannot be read, or does not hold what is needed.
    pub fn of(store: &SnapshotStore, snapshot: &Snapshot) -> io::Result<Option<Self>> {
        let (mut store, mut snapshot) = (store.clone(), snapshot.clone());
        let mut generations = Vec::new();
        while let Some(parent) = snapshot.manifest.parent.take() {
            if generations.len() == GENERATIONS_MAX {
                let what = "it is a branch of more branches than there can be";
                return Err(io::Error::new(ErrorKind::InvalidData, what));
            }
            let through = parent.point();
            let through = through.map_err(|what| io::Error::new(ErrorKind::InvalidData, what))?;
            (store, snapshot) = store.parent_of(&parent)?;
            generations.push(Generation {
                log: store.log(),
                keys: store.keys().clone(),
                behind: snapshot.point,
                chain: chain_behind(&snapshot),
                through,
            });
        }
        let is_any = !generations.is_empty();
        Ok(is_any.then_some(Self { snapshot, store, generations, under_way: None }))
    }

    /// Applies some more records; whether those were all.
    ///
    /// # Errors
    /// The log is damaged, or not all there.
    pub fn step(&mut self, engine: &mut Engine, records_max: usize) -> Result<bool, Failure> {
        let Some(generation) = self.generations.last() else { return Ok(true) };
        let through = generation.through;
        let last = through.position.sequence;
        let mut nobody = Interest::default();
        let (mut replayer, mut records) = match self.under_way.take() {
            Some(under_way) => under_way,
            None if generation.behind.position.sequence == last => {
                end(engine, generation.chain, &through)?;
                self.generations.pop();
                return Ok(self.generations.is_empty());
            }
            None => generation.begin()?,
        };
        for _ in 0..records_max {
            let next = records.next_sequence();
            let missing = || {
                let store = generation.log.location();
                format!("record {next} of the parent's log is not archived in {store}")
            };
            let (position, bytes) = records.next()?.ok_or_else(missing)?;
            replayer.consume(engine, position.sequence, &bytes, &mut nobody)?;
            if position.sequence == last {
                end(engine, replayer.chain(), &through)?;
                self.generations.pop();
                return Ok(self.generations.is_empty());
            }
        }
        self.under_way = Some((replayer, records));
        Ok(false)
    }
}

impl Generation {
    fn begin(&self) -> Result<(Replayer, ArchivedRecords), Failure> {
        let position = self.behind.position;
        let mut replayer = Replayer::new(position.sequence, self.chain);
        replayer.use_keys(self.keys.clone());
        replayer.clock_at_least(self.behind.clock);
        if let Some(sum) = self.behind.log_sum {
            replayer.continue_sum(sum);
        }
        let (from, store) = (position.next(), self.log.location());
        let records = ArchivedRecords::open(&self.log, from)?;
        let what =
            || format!("record {} of the parent's log is not archived in {store}", from.sequence);
        Ok((replayer, records.ok_or_else(what)?))
    }
}

/// The parent's data is all there. What followed a master follows nobody in the branch: it would
/// take that one's data.
fn end(engine: &mut Engine, chain: Chain, through: &BranchPoint) -> Result<(), Failure> {
    let expected = Chain { value: ChainValue(through.chain), epoch: through.epoch };
    if chain != expected {
        let at = through.position.sequence;
        return Err(format!("record {at} of the parent's log: {}", txlog::ANOTHER_HISTORY).into());
    }
    if engine.keyspace.master().is_some() {
        let applied = engine.keyspace.apply(DatabaseId(0), b"", &Effect::ReplicaOfNoOne);
        applied.expect("this effect is for no key");
    }
    Ok(())
}
