//! Which keys expire when, in order of time, so that keys die promptly instead of by sampling.
//!
//! An exact ordered set of (time, key hash): 16 bytes a key and a little for the tree. A timing
//! wheel would be smaller, but leaves stale tickets behind whenever a time changes.

use crate::unit::KeyHash;
use base::UnixMillis;
use std::collections::BTreeSet;

/// The expiry times of one database. Two keys with one hash and one time share an entry: the
/// second is then found by the read that meets it.
#[derive(Default)]
pub struct Expiries {
    due: BTreeSet<(i64, KeyHash)>,
    /// Sum of the times, for their average.
    sum: i128,
}

impl Expiries {
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }

    /// How many keys have an expiry time.
    pub fn len(&self) -> usize {
        self.due.len()
    }

    pub fn insert(&mut self, at: i64, hash: KeyHash) {
        if self.due.insert((at, hash)) {
            self.sum += i128::from(at);
        }
    }

    pub fn remove(&mut self, at: i64, hash: KeyHash) {
        if self.due.remove(&(at, hash)) {
            self.sum -= i128::from(at);
        }
    }

    pub fn clear(&mut self) {
        self.due.clear();
        self.sum = 0;
    }

    /// How long the keys have to live on average, in milliseconds; 0 if they are all due.
    pub fn average_ttl_millis(&self, now: UnixMillis) -> i64 {
        let count = self.due.len().max(1) as i128;
        let average = self.sum / count - i128::from(now.0);
        i64::try_from(average.max(0)).unwrap_or(i64::MAX)
    }

    /// The key that expires first.
    pub fn first(&self) -> Option<(i64, KeyHash)> {
        self.due.first().copied()
    }

    /// Whether a key expires after one instant and not after another.
    pub fn has_any(&self, after: i64, until: i64) -> bool {
        let from = (after.saturating_add(1), KeyHash::MIN);
        after < until && self.due.range(from..=(until, KeyHash::MAX)).next().is_some()
    }

    /// The first key after a place, wrapping around: a cheap sample of the keys that expire.
    pub fn near(&self, at: i64, hash: KeyHash) -> Option<(i64, KeyHash)> {
        self.due.range((at, hash)..).next().or_else(|| self.due.first()).copied()
    }

    /// The span of times from the first to the last.
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((self.due.first()?.0, self.due.last()?.0))
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, KeyHash)> + '_ {
        self.due.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_follows_every_change() {
        let mut expiries = Expiries::default();
        for (at, hash) in [(1000, 1), (1000, 1), (3000, 2), (9000, 3)] {
            expiries.insert(at, hash);
        }
        expiries.remove(9000, 3);
        expiries.remove(9000, 3);
        assert_eq!(expiries.average_ttl_millis(UnixMillis(500)), 1500);
        expiries.clear();
        assert_eq!(expiries.average_ttl_millis(UnixMillis(500)), 0);
    }
}
