//! What is lent to a loading, and what it does with the memory there is.

use super::{Failure, Loading, Step};
use crate::compaction::Compaction;
use crate::foresight::Foresight;
use crate::recovery::Replayer;
use crate::tiering::{Made, Tiering};
use base::disk::DiskQueue;
use engine::cold::ColdStore;

#[derive(Default)]
pub(super) struct Lent {
    /// The threads that read parts, while no snapshot is being loaded.
    pub(super) readers: Vec<Box<dyn DiskQueue>>,
    /// Where values go that memory has no room for.
    pub(super) tiering: Option<Tiering>,
    /// What comes back from there for the records that were read.
    pub(super) foresight: Foresight,
    /// Wins memory back meanwhile.
    pub(super) compaction: Option<Compaction>,
}

impl Loading {
    /// Lets values go where memory has no room for them: more may be loaded than fits into
    /// `maxmemory`.
    pub fn spill_to(&mut self, tiering: Tiering) {
        let tiering = self.lent.tiering.insert(tiering);
        tiering.serve(&mut self.engine.keyspace);
        // A record needs many.
        tiering.be_patient(true);
    }

    /// Lets memory be won back that is lost between blocks, here and by the shard that comes of it.
    pub fn compact_by(&mut self, compaction: Compaction) {
        self.lent.compaction = Some(compaction);
    }

    /// Has the values come that the records which were read will change.
    pub(super) fn fetch_ahead(&mut self, replayer: &Replayer) {
        let Some(tiering) = &mut self.lent.tiering else { return };
        let records = self.records.iter().map(|(position, bytes)| (position.sequence, bytes));
        self.lent.foresight.fetch_ahead(records, replayer, &mut self.engine.keyspace, tiering);
        tiering.begin_reads();
    }

    /// Whether nothing that the next record needs is still being read.
    pub(super) fn has_foreseen(&mut self, replayer: &Replayer) -> bool {
        if self.lent.foresight.is_empty() {
            self.fetch_ahead(replayer);
        }
        let Lent { tiering, foresight, .. } = &mut self.lent;
        tiering.as_ref().is_none_or(|tiering| foresight.is_ready(tiering))
    }

    /// The step while the next record's values have not come: it waits for the reads, unless some
    /// have ended that were not taken up.
    pub(super) fn step_of_reads(&self) -> Step {
        let goes_on = self.lent.tiering.as_ref().is_some_and(Tiering::has_ended_reads);
        if goes_on { Step::More } else { Step::Wait }
    }

    /// Moves values out of memory until it is below `maxmemory`, if there is somewhere to go. If
    /// nothing more can be loaded before some have gone, what the loading has to wait for: for the
    /// next step, or until what went before is written.
    pub(super) fn lacks_room(&mut self) -> Result<Option<Step>, Failure> {
        let keyspace = &mut self.engine.keyspace;
        if let Some(compaction) = &mut self.lent.compaction {
            compaction.advance(keyspace);
        }
        let Some(tiering) = &mut self.lent.tiering else { return Ok(None) };
        tiering.poll(keyspace, self.clock.monotonic(), &mut Vec::new());
        if let Some(why) = keyspace.cold_failure() {
            return Err(why.into());
        }
        let mut made = Made::More;
        while made == Made::More {
            let now = self.clock.unix_millis();
            made = self.lent.foresight.make_room(keyspace, tiering, now);
        }
        // Freed here: nobody else does while a shard loads.
        drop(keyspace.take_garbage());
        let encodes = keyspace.cold().is_some_and(ColdStore::encodes_next_turn);
        // Nothing else wakes who waits for these.
        let goes_on = encodes || keyspace.has_flushed() || tiering.has_ended_reads();
        let step = if goes_on { Step::More } else { Step::Wait };
        Ok((made == Made::Behind).then_some(step))
    }
}
