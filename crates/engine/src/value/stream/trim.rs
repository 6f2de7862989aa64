//! Which entries a limit takes from the front of a stream. The outcome is one ID, below which
//! nothing stays, so that nobody has to decide it a second time.

use super::Stream;
use crate::stream_id::StreamId;
use crate::work::Work;

/// What XADD and XTRIM keep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// So many entries, the last.
    Length(u64),
    /// Those from this ID on.
    Since(StreamId),
}

impl Stream {
    /// The ID below which a limit leaves no entry, or [`StreamId::MIN`] if all go; `None` if it
    /// takes nothing.
    ///
    /// With `whole` only whole blocks go, and at most `entries_max` entries, if that is not 0: so
    /// more may stay than the limit says.
    pub fn trimmed_below(
        &self,
        limit: Limit,
        whole: bool,
        entries_max: u64,
        work: &Work,
    ) -> Option<StreamId> {
        let (mut left, mut taken, mut below) = (self.len, 0_u64, None);
        for (base, block) in &self.blocks {
            work.step();
            let count = block.count();
            let is_met = matches!(limit, Limit::Length(len) if left <= len);
            if is_met || (entries_max > 0 && taken + count > entries_max) {
                return self.not_beyond(below, *base);
            }
            let last = block.last_id(*base);
            let goes = match limit {
                Limit::Length(len) => left - count >= len,
                Limit::Since(id) => last < id,
            };
            if !goes {
                let within = if whole { None } else { self.below_within(*base, limit, left, work) };
                return within.or_else(|| self.not_beyond(below, *base));
            }
            below = Some(last.next().unwrap_or(StreamId::MIN));
            left -= count;
            taken += count;
        }
        below
    }

    /// The same ID, but none behind the first entry from a block on: an entry that was deleted may
    /// have a greater one than those that come behind it ([`Self::set_id`]).
    fn not_beyond(&self, below: Option<StreamId>, base: StreamId) -> Option<StreamId> {
        let mut blocks = self.blocks.range(base..);
        let stays = blocks.find_map(|(base, _)| self.first_entry_of(*base));
        match (below, stays) {
            (Some(below), Some(stays)) if below == StreamId::MIN || stays < below => Some(stays),
            _ => below,
        }
    }

    /// The same within the block where the limit ends; `left` entries are in it and behind it.
    fn below_within(
        &self,
        base: StreamId,
        limit: Limit,
        left: u64,
        work: &Work,
    ) -> Option<StreamId> {
        match limit {
            Limit::Since(id) => self.first_entry_of(base).filter(|first| *first < id).map(|_| id),
            Limit::Length(len) => {
                let block = self.blocks.get(&base)?;
                let there = block.entries(base).inspect(|_| work.step());
                let mut there = there.filter(|entry| !entry.is_deleted());
                there.nth(usize::try_from(left - len).ok()?).map(|entry| entry.id)
            }
        }
    }

    /// The ID of the first entry of a block that is there.
    fn first_entry_of(&self, base: StreamId) -> Option<StreamId> {
        let block = self.blocks.get(&base)?;
        block.entries(base).find(|entry| !entry.is_deleted()).map(|entry| entry.id)
    }
}
