//! One file of a simulated disk: what a program reads, what is durable, and what a power cut
//! leaves of the difference.

use super::nameless::Nameless;
use crate::random::Random;
use std::collections::BTreeSet;
use std::sync::Weak;

pub(super) const SECTOR_BYTES: usize = 512;

/// Bytes around a stretch that became durable, so that nothing is cut at a sector's edge.
const SURROUNDINGS_BYTES: usize = 64;

#[derive(Clone, Default)]
pub(super) struct Node {
    pub(super) live: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Sectors in which live and durable may differ.
    pub(super) dirty: BTreeSet<usize>,
    pub(super) lock: Option<Weak<LockGuard>>,
    pub(super) nameless: Option<Nameless>,
}

/// A held lock, and the life of the process that holds it.
pub(super) struct LockGuard(pub(super) u64);

impl Node {
    pub(super) fn touch(&mut self, from: usize, to: usize) {
        self.dirty.extend(from / SECTOR_BYTES..to.div_ceil(SECTOR_BYTES));
    }

    /// The stretches that a sync makes durable.
    pub(super) fn unsynced(&self) -> Vec<Vec<u8>> {
        let mut stretches: Vec<std::ops::Range<usize>> = Vec::new();
        for sector in &self.dirty {
            let range = self.range(*sector);
            match stretches.last_mut() {
                Some(last) if last.end == range.start => last.end = range.end,
                _ => stretches.push(range),
            }
        }
        let around = stretches.into_iter().map(|range| {
            let end = (range.end + SURROUNDINGS_BYTES).min(self.live.len());
            self.live[range.start.saturating_sub(SURROUNDINGS_BYTES)..end].to_vec()
        });
        around.collect()
    }

    pub(super) fn sync(&mut self) {
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = self.range(sector);
            self.durable[range.clone()].copy_from_slice(&self.live[range]);
        }
    }

    fn range(&self, sector: usize) -> std::ops::Range<usize> {
        let start = (sector * SECTOR_BYTES).min(self.live.len());
        start..(start + SECTOR_BYTES).min(self.live.len())
    }

    /// Leaves what a power cut leaves, and makes it the live state.
    pub(super) fn settle(&mut self, random: &mut Random) {
        // The new length may have reached the disk or not; sectors behind it are gone.
        if self.live.len() != self.durable.len() && random.chance(50) {
            self.live.resize(self.durable.len(), 0);
        }
        self.durable.resize(self.live.len(), 0);
        for sector in std::mem::take(&mut self.dirty) {
            let range = self.range(sector);
            let kept = match random.within(0..8) {
                0..=3 => 0,
                4..=6 => range.len(),
                _ => random.within(0..range.len() as u64 + 1) as usize,
            };
            let kept = range.start..range.start + kept;
            self.durable[kept.clone()].copy_from_slice(&self.live[kept]);
        }
        self.live.clone_from(&self.durable);
        self.lock = None;
    }
}
