//! Which keys expire when, in order of time, so that keys die promptly instead of by sampling. The
//! same of the fields of one hash, and of all hashes by the first of their fields.
//!
//! An exact ordered set of (time, key hash): 16 bytes a key and a little for the tree. A timing
//! wheel would be smaller, but leaves stale tickets behind whenever a time changes. Keys themselves
//! are not kept: whoever has a time and a hash finds the key, or one of the keys, in the table.

use crate::ids::KeyHash;
use base::UnixMillis;
use std::collections::{BTreeMap, BTreeSet};

/// The expiry times of one database: one entry for each key that has such a time.
#[derive(Default)]
pub struct Expiries {
    due: BTreeSet<(i64, KeyHash)>,
    /// How many keys more than one have this time and this hash. As good as always empty, which
    /// spares every key a counter; without it, the first of two such keys to go would take the
    /// other's entry along, and that key would never die.
    more: BTreeMap<(i64, KeyHash), usize>,
    /// Sum of the values of `more`.
    more_keys: usize,
    /// Sum of the times, for their average.
    sum: i128,
}

impl Expiries {
    /// Bytes of memory that an entry takes, its share of the tree's nodes included: about.
    pub const ENTRY_BYTES: usize = 24;

    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many keys have an expiry time.
    pub fn len(&self) -> usize {
        self.due.len() + self.more_keys
    }

    /// Notes a key that has this time from now on.
    pub fn insert(&mut self, at: i64, hash: KeyHash) {
        if !self.due.insert((at, hash)) {
            *self.more.entry((at, hash)).or_default() += 1;
            self.more_keys += 1;
        }
        self.sum += i128::from(at);
    }

    /// Forgets one key that had this time.
    pub fn remove(&mut self, at: i64, hash: KeyHash) {
        if self.forget_one_of_many(at, hash) || self.due.remove(&(at, hash)) {
            self.sum -= i128::from(at);
        }
    }

    fn forget_one_of_many(&mut self, at: i64, hash: KeyHash) -> bool {
        let Some(more) = self.more.get_mut(&(at, hash)) else { return false };
        *more -= 1;
        if *more == 0 {
            self.more.remove(&(at, hash));
        }
        self.more_keys -= 1;
        true
    }

    /// How long the keys have to live on average, in milliseconds; 0 if they are all due.
    pub fn average_ttl_millis(&self, now: UnixMillis) -> i64 {
        let count = self.len().max(1) as i128;
        let average = self.sum / count - i128::from(now.0);
        i64::try_from(average.max(0)).unwrap_or(i64::MAX)
    }

    /// The key that expires first.
    pub fn first(&self) -> Option<(i64, KeyHash)> {
        self.due.first().copied()
    }

    /// The key that expires last.
    pub fn last(&self) -> Option<(i64, KeyHash)> {
        self.due.last().copied()
    }

    /// What expires by an instant, in order; several that share a time and a hash count as one.
    pub fn until(&self, by: i64) -> impl Iterator<Item = (i64, KeyHash)> + '_ {
        self.due.range(..=(by, KeyHash::MAX)).copied()
    }

    /// Whether a key expires after one instant and not after another.
    pub fn has_any(&self, after: i64, until: i64) -> bool {
        let from = (after.saturating_add(1), KeyHash::MIN);
        after < until && self.due.range(from..=(until, KeyHash::MAX)).next().is_some()
    }

    /// Every time and hash; those that several keys share once for each.
    pub fn iter(&self) -> impl Iterator<Item = (i64, KeyHash)> + '_ {
        self.due.iter().flat_map(|entry| {
            let more = self.more.get(entry).copied().unwrap_or_default();
            std::iter::repeat_n(*entry, 1 + more)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_follows_every_change() {
        let mut expiries = Expiries::default();
        for (at, hash) in [(1000, 1), (1000, 1), (4000, 2), (9000, 3)] {
            expiries.insert(at, hash);
        }
        expiries.remove(9000, 3);
        expiries.remove(9000, 3);
        assert_eq!(expiries.average_ttl_millis(UnixMillis(500)), 1500);
        (1..=2).for_each(|_| expiries.remove(1000, 1));
        expiries.remove(4000, 2);
        assert_eq!(expiries.average_ttl_millis(UnixMillis(500)), 0);
    }

    /// Against a list, under random changes of few times and few hashes.
    #[test]
    fn keys_of_one_time_and_one_hash_are_all_kept() {
        let mut dice = crate::random::Random::new(5);
        let (mut expiries, mut twin) = (Expiries::default(), Vec::new());
        for step in 0..20_000 {
            let entry = (dice.below(4) as i64, dice.below(3));
            let wanted = if step / 1000 % 2 == 0 { 2 } else { 1 };
            if dice.below(3) < wanted {
                expiries.insert(entry.0, entry.1);
                twin.push(entry);
                twin.sort_unstable();
            } else {
                expiries.remove(entry.0, entry.1);
                if let Ok(at) = twin.binary_search(&entry) {
                    twin.remove(at);
                }
            }
            assert_eq!(expiries.len(), twin.len());
            assert_eq!(expiries.first(), twin.first().copied());
            assert_eq!(expiries.is_empty(), twin.is_empty());
            if step % 100 == 0 {
                assert!(expiries.iter().eq(twin.iter().copied()));
                let sum: i64 = twin.iter().map(|(at, _)| at).sum();
                let average = sum / twin.len().max(1) as i64;
                assert_eq!(expiries.average_ttl_millis(UnixMillis(0)), average);
            }
        }
    }
}
