//! The computation of which entries trimming to a threshold removes from the front of a stream. The
//! result is one ID, below which all are removed: the effect needs no more.

use super::Stream;
use crate::stream_id::StreamId;
use crate::work::Work;

/// The threshold that XADD and XTRIM trim to. Their LIMIT is another: how much they may remove.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Threshold {
    /// MAXLEN: keep the last entries, this many.
    MaxLen(u64),
    /// MINID: keep the entries from this ID on.
    MinId(StreamId),
}

impl Stream {
    /// The ID below which trimming removes all entries, or [`StreamId::MIN`] if it removes every
    /// entry; `None` if it removes nothing.
    ///
    /// With `whole` only whole blocks are removed, and at most `entries_max` entries unless that is
    /// 0, so more may remain than the threshold says.
    pub fn trimmed_below(
        &self,
        threshold: Threshold,
        whole: bool,
        entries_max: u64,
        work: &Work,
    ) -> Option<StreamId> {
        let (mut left, mut taken, mut below) = (self.len, 0_u64, None);
        for (base, block) in &self.blocks {
            work.step();
            let count = block.count();
            let is_met = matches!(threshold, Threshold::MaxLen(len) if left <= len);
            if is_met || (entries_max > 0 && taken + count > entries_max) {
                return self.not_beyond(below, *base);
            }
            let last = block.last_id(*base);
            let goes = match threshold {
                Threshold::MaxLen(len) => left - count >= len,
                Threshold::MinId(id) => last < id,
            };
            if !goes {
                let within =
                    if whole { None } else { self.below_within(*base, threshold, left, work) };
                return within.or_else(|| self.not_beyond(below, *base));
            }
            below = Some(last.next().unwrap_or(StreamId::MIN));
            left -= count;
            taken += count;
        }
        below
    }

    /// Lowers the ID to the first remaining entry, which is in the block `base` or a later one: a
    /// deleted entry of an earlier block may have a greater ID than entries that follow it
    /// ([`Self::set_id`]).
    fn not_beyond(&self, below: Option<StreamId>, base: StreamId) -> Option<StreamId> {
        let mut blocks = self.blocks.range(base..);
        let stays = blocks.find_map(|(base, _)| self.first_entry_of(*base));
        match (below, stays) {
            (Some(below), Some(stays)) if below == StreamId::MIN || stays < below => Some(stays),
            _ => below,
        }
    }

    /// The ID within the block in which the threshold lies. `left` counts the entries in that block
    /// and after it.
    fn below_within(
        &self,
        base: StreamId,
        threshold: Threshold,
        left: u64,
        work: &Work,
    ) -> Option<StreamId> {
        match threshold {
            Threshold::MinId(id) => {
                self.first_entry_of(base).filter(|first| *first < id).map(|_| id)
            }
            Threshold::MaxLen(len) => {
                let block = self.blocks.get(&base)?;
                let there = block.entries(base).inspect(|_| work.step());
                let mut there = there.filter(|entry| !entry.is_deleted());
                there.nth(usize::try_from(left - len).ok()?).map(|entry| entry.id)
            }
        }
    }

    /// The ID of a block's first entry that is not deleted.
    fn first_entry_of(&self, base: StreamId) -> Option<StreamId> {
        let block = self.blocks.get(&base)?;
        block.entries(base).find(|entry| !entry.is_deleted()).map(|entry| entry.id)
    }
}
