//! What a reply must wait for.
//!
//! A client must never learn of a write that could still be lost: not from its own reply, and not
//! from a read of someone else's. So each reply waits for the newest write to anything it
//! *observed*. The tracker remembers, per key hash, the sequence of the last write, in a fixed
//! array:
//!
//! ```text
//! slot = hash's low bits      u64 = sequence (48 bits) | tag (16 bits: other bits of the hash)
//! ```
//! A slot that is still dirty and meets another tag becomes a wildcard, which every key of the slot
//! waits for: a collision only over-waits. Nothing is kept per key and nothing is cleaned when the
//! log commits; keys that no longer exist are covered like any other.

use base::Sequence;
use engine::prefetch::prefetch_item;

const TAG_BITS: u32 = 16;

/// The tag that matches every key. Hashes whose tag it would be use 1 instead.
const WILDCARD: u64 = 0;

/// Knows the last write to each key, as far as it is not durable.
pub struct Tracker {
    slots: Box<[u64]>,
    /// Through here the log is durable.
    durable: Sequence,
    /// The record that holds, or will hold, the newest write.
    newest: Sequence,
    /// Whole databases changed last in this record: every reply waits for it.
    barrier: Sequence,
}

impl Tracker {
    /// A tracker of a log that is durable through `durable`, with so many slots.
    ///
    /// # Panics
    /// Their number is no power of two.
    pub fn new(durable: Sequence, slots: usize) -> Self {
        assert!(slots.is_power_of_two(), "a slot is some bits of a hash: not {slots}");
        Self {
            slots: vec![0; slots].into_boxed_slice(),
            durable,
            newest: durable,
            barrier: durable,
        }
    }

    /// Memory that the tracker occupies, in bytes; it never changes.
    pub fn allocated_bytes(&self) -> usize {
        self.slots.len() * 8
    }

    /// Through here everything is durable.
    pub fn durable(&self) -> Sequence {
        self.durable
    }

    /// The record of the newest write.
    pub fn newest(&self) -> Sequence {
        self.newest
    }

    /// Whether every write is durable: then no reply waits, and no slot need be looked at.
    pub fn is_clean(&self) -> bool {
        self.newest <= self.durable
    }

    /// Notes that the key with this hash changed in `sequence`.
    pub fn wrote(&mut self, hash: u64, sequence: Sequence) {
        debug_assert!(sequence >= self.newest, "sequences only grow");
        self.newest = sequence;
        let index = self.index(hash);
        let slot = &mut self.slots[index];
        let is_dirty = *slot >> TAG_BITS > self.durable.0;
        let tag = tag(hash);
        let kept = if is_dirty && *slot & 0xffff != tag { WILDCARD } else { tag };
        *slot = sequence.0 << TAG_BITS | kept;
    }

    /// Notes that whole databases changed in `sequence`.
    pub fn wrote_all(&mut self, sequence: Sequence) {
        self.newest = sequence;
        self.barrier = sequence;
    }

    /// The record that a reply must wait for which observed the key with this hash.
    pub fn observed(&self, hash: u64) -> Sequence {
        let slot = self.slots[self.index(hash)];
        let sequence = Sequence(slot >> TAG_BITS);
        let found = slot & 0xffff;
        if sequence > self.durable && (found == WILDCARD || found == tag(hash)) {
            sequence.max(self.barrier)
        } else {
            self.barrier
        }
    }

    /// Asks the processor for what is known of the key with this hash.
    pub fn prefetch(&self, hash: u64) {
        prefetch_item(&self.slots, self.index(hash));
    }

    /// The log is durable through `sequence`.
    pub fn durable_through(&mut self, sequence: Sequence) {
        debug_assert!(sequence >= self.durable);
        self.durable = sequence;
    }

    fn index(&self, hash: u64) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    /// Whether a reply that waits for `sequence` may leave.
    pub fn is_durable(&self, sequence: Sequence) -> bool {
        sequence <= self.durable
    }
}

fn tag(hash: u64) -> u64 {
    (hash >> 48).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::HashKey;
    use engine::chosen::{FAMILIES, random_like};
    use engine::keyspace::Keyspace;
    use engine::settings::Settings;
    use std::collections::BTreeMap;

    /// As many as serve.
    const SLOTS: usize = 1 << 14;

    #[test]
    fn reply_waits_for_the_write_it_read() {
        let mut tracker = Tracker::new(Sequence(7), SLOTS);
        tracker.wrote(0xabcd_0000_0000_1234, Sequence(8));
        assert_eq!(tracker.observed(0xabcd_0000_0000_1234), Sequence(8));
        assert_eq!(tracker.observed(0xabcd_0000_0000_1235), Sequence(7));
        tracker.durable_through(Sequence(8));
        assert_eq!(tracker.observed(0xabcd_0000_0000_1234), Sequence(7));
    }

    #[test]
    fn collisions_over_wait_and_never_under_wait() {
        let mut tracker = Tracker::new(Sequence(0), SLOTS);
        let mut exact: BTreeMap<u64, Sequence> = BTreeMap::new();
        let mut state = 1_u64;
        let mut durable = Sequence(0);
        for step in 1..200_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            // Few slots and few tags, so that collisions of both kinds are common.
            let hash = ((state >> 33) % 5 + 1) << 48 | ((state >> 40) % 3);
            let sequence = Sequence(step / 10 + 1);
            match state >> 62 {
                0 => {
                    tracker.wrote(hash, sequence);
                    exact.insert(hash, sequence);
                }
                1 if durable < Sequence(sequence.0 - 1) => {
                    durable = Sequence((durable.0 + 3).min(sequence.0 - 1));
                    tracker.durable_through(durable);
                }
                _ => {
                    let must = exact.get(&hash).copied().filter(|at| *at > durable);
                    if let Some(must) = must {
                        assert!(tracker.observed(hash) >= must, "step {step}");
                    }
                }
            }
        }
    }

    #[test]
    fn whole_database_changes_hold_every_reply() {
        let mut tracker = Tracker::new(Sequence(0), SLOTS);
        tracker.wrote_all(Sequence(3));
        assert_eq!(tracker.observed(99), Sequence(3));
        tracker.durable_through(Sequence(3));
        assert!(tracker.is_durable(tracker.observed(99)));
    }

    /// Writes half of the keys; how many of the others wait needlessly.
    fn waiting(keys: impl Iterator<Item = Vec<u8>>) -> usize {
        let keyspace = Keyspace::new(Settings::default(), HashKey::fixed(9));
        let hashes: Vec<u64> = keys.map(|key| keyspace.hash(&key)).collect();
        let (written, read) = hashes.split_at(hashes.len() / 2);
        let mut tracker = Tracker::new(Sequence(0), SLOTS);
        written.iter().for_each(|hash| tracker.wrote(*hash, Sequence(1)));
        read.iter().filter(|hash| tracker.observed(**hash) > Sequence(0)).count()
    }

    #[test]
    fn chosen_keys_make_others_wait_no_more_often_than_random_keys() {
        for (name, make) in FAMILIES {
            let (chosen, random) =
                (waiting((0..20_000).map(make)), waiting(random_like(make, 20_000)));
            assert!(chosen <= 2 * random, "{name}: {chosen} wait, of random keys {random}");
        }
    }
}
