//! The data of a branch's first snapshot: that of its parent's snapshot, and the log that is
//! archived behind it there. The parent's may be a branch's first in its turn.

use super::errand::Errand;
use super::lanes::JOB_BYTES;
use super::{Failure, Step, chain_behind};
use crate::archived::{ArchivedRecords, verify};
use crate::recovery::Replayer;
use archive::{BranchPoint, LogStore, Snapshot, SnapshotPoint, SnapshotStore};
use base::disk::DiskQueue;
use base::{DatabaseId, Position, Sequence};
use bytes::Bytes;
use encryption::Keys;
use engine::effect::Effect;
use engine::execute::Engine;
use engine::interest::Interest;
use std::collections::VecDeque;
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
    under_way: Option<Replaying>,
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
    /// Those of a branch's first snapshot; `None` of any other. Blocks, while parents' archives are
    /// asked.
    ///
    /// # Errors
    /// A parent's archive cannot be read, or does not hold what is needed.
    pub fn of(store: &SnapshotStore, snapshot: &Snapshot) -> io::Result<Option<Box<Self>>> {
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
        Ok(is_any.then(|| Box::new(Self { snapshot, store, generations, under_way: None })))
    }

    /// Applies some more records. A thread of `readers` reads ahead, if there is one.
    ///
    /// # Errors
    /// The log is damaged, or not all there.
    pub fn step(
        &mut self,
        engine: &mut Engine,
        readers: &mut Vec<Box<dyn DiskQueue>>,
        records_max: usize,
    ) -> Result<Step, Failure> {
        let Some(generation) = self.generations.last() else { return Ok(Step::Done) };
        let through = generation.through;
        let last = through.position.sequence;
        if self.under_way.is_none() && generation.behind.position.sequence == last {
            end(engine, generation.chain, &through)?;
            return Ok(self.end_generation());
        }
        let mut nobody = Interest::default();
        let replaying = self.under_way.get_or_insert_with(|| generation.begin(readers));
        for _ in 0..records_max {
            if replaying.records.is_empty() && !replaying.take_more(readers, last)? {
                return Ok(Step::Wait);
            }
            let Some((position, bytes)) = replaying.records.pop_front() else { break };
            replaying.replayer.consume(engine, position.sequence, &bytes, &mut nobody)?;
            if position.sequence == last {
                end(engine, replaying.replayer.chain(), &through)?;
                return Ok(self.end_generation());
            }
        }
        Ok(Step::More)
    }

    fn end_generation(&mut self) -> Step {
        self.under_way = None;
        self.generations.pop();
        if self.generations.is_empty() { Step::Done } else { Step::More }
    }

    /// The thread that reads, which has nothing left to do then.
    pub fn take_queue(&mut self) -> Option<Box<dyn DiskQueue>> {
        self.under_way.take()?.reading?.into_queue()
    }
}

/// Looks whether all is there, and whole, that a branch's first snapshot needs of its parents'
/// archives, as far as it is log. `rest` is called now and then.
///
/// # Errors
/// What is damaged or missing; those of the archives.
pub fn must_have_ancestors(
    store: &SnapshotStore,
    snapshot: &Snapshot,
    rest: &mut dyn FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Some(ancestors) = Ancestors::of(store, snapshot)? else { return Ok(()) };
    for Generation { log, behind, through, .. } in &ancestors.generations {
        let (from, through) = (behind.position.next(), through.position.sequence);
        let verified = verify(log, from, through, rest);
        verified.map_err(|why| format!("the parent's log in {}: {why}", log.location()))?;
        rest()?;
    }
    Ok(())
}

impl Generation {
    fn begin(&self, readers: &mut Vec<Box<dyn DiskQueue>>) -> Replaying {
        let position = self.behind.position;
        let mut replayer = Replayer::new(position.sequence, self.chain);
        replayer.use_keys(self.keys.clone());
        replayer.clock_at_least(self.behind.clock);
        if let Some(sum) = self.behind.log_sum {
            replayer.continue_sum(sum);
        }
        let (log, from, last) = (self.log.clone(), position.next(), self.through.position.sequence);
        let read = move || match ArchivedRecords::open(&log, from) {
            Ok(Some(archived)) => Batch::read(archived, last, log.location()),
            Ok(None) => Batch::failed(missing(from.sequence, &log.location())),
            Err(error) => Batch::failed(error),
        };
        let reading = Some(Errand::begin(readers.pop(), read));
        Replaying { replayer, records: VecDeque::new(), reading, failure: None }
    }
}

/// The log of a generation, which is being applied.
struct Replaying {
    replayer: Replayer,
    /// Read, and not applied.
    records: VecDeque<(Position, Bytes)>,
    /// What is read meanwhile; none behind the last record, or when it failed.
    reading: Option<Errand<Batch>>,
    /// Why nothing follows those.
    failure: Option<io::Error>,
}

impl Replaying {
    /// Takes what was read meanwhile, and lets more be read; whether anything was there.
    fn take_more(
        &mut self,
        readers: &mut Vec<Box<dyn DiskQueue>>,
        last: Sequence,
    ) -> Result<bool, Failure> {
        if let Some(error) = self.failure.take() {
            return Err(error.into());
        }
        let Some(reading) = self.reading.take() else { return Ok(true) };
        match reading.take() {
            Err(reading) => {
                self.reading = Some(reading);
                Ok(false)
            }
            Ok((batch, queue)) => {
                readers.extend(queue);
                self.records = batch.records.into();
                match batch.rest {
                    Ok(None) => {}
                    Ok(Some((archived, store))) => {
                        let read = move || Batch::read(archived, last, store);
                        self.reading = Some(Errand::begin(readers.pop(), read));
                    }
                    Err(error) if self.records.is_empty() => return Err(error.into()),
                    Err(error) => self.failure = Some(error),
                }
                Ok(true)
            }
        }
    }
}

/// Records that were read at once, and the reader if more follow, with its archive's name.
struct Batch {
    records: Vec<(Position, Bytes)>,
    rest: io::Result<Option<(ArchivedRecords, String)>>,
}

impl Batch {
    fn failed(error: io::Error) -> Self {
        Self { records: Vec::new(), rest: Err(error) }
    }

    /// Reads up to the last record, or so many bytes that handing them over costs nothing.
    fn read(mut archived: ArchivedRecords, last: Sequence, store: String) -> Self {
        let (mut records, mut bytes) = (Vec::new(), 0);
        while bytes < JOB_BYTES {
            let next = archived.next_sequence();
            match archived.next() {
                Ok(Some((position, record))) => {
                    bytes += record.len() as u64;
                    records.push((position, record));
                    if position.sequence >= last {
                        return Self { records, rest: Ok(None) };
                    }
                }
                Ok(None) => return Self { records, rest: Err(missing(next, &store)) },
                Err(error) => return Self { records, rest: Err(error) },
            }
        }
        Self { records, rest: Ok(Some((archived, store))) }
    }
}

fn missing(at: Sequence, store: &str) -> io::Error {
    let what = format!("record {at} of the parent's log is not archived in {store}");
    io::Error::new(ErrorKind::NotFound, what)
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
        follow_nobody(engine);
    }
    Ok(())
}

/// Lets the shard follow nobody: data that was taken out of its log's history must not be replaced
/// by its master's.
pub fn follow_nobody(engine: &mut Engine) {
    let applied = engine.keyspace.apply(DatabaseId(0), b"", &Effect::ReplicaOfNoOne);
    applied.expect("this effect is for no key");
}
