//! What must stay of log and snapshots, and for whom.

use base::Sequence;
use std::collections::BTreeMap;

/// The pins of a shard. Most need what it held behind a record, and everything since: by name, each
/// with that record. For each a snapshot at or before its record stays, and the log behind that.
#[derive(Clone, Default, Debug)]
pub struct Pins {
    by_name: BTreeMap<String, Sequence>,
    /// Who needs one snapshot and no log behind it: the snapshot's name, by theirs.
    snapshots: BTreeMap<String, String>,
    changes: u64,
}

impl Pins {
    pub(super) fn set(&mut self, name: String, at: Sequence) {
        let before = self.by_name.insert(name, at);
        // Who moves on needs less than was planned with.
        if before.is_none_or(|before| at < before) {
            self.changes += 1;
        }
    }

    /// Whoever pins a snapshot was just told of it: no plan has it go.
    pub(super) fn set_snapshot(&mut self, name: String, snapshot: String) {
        self.snapshots.insert(name, snapshot);
    }

    pub(super) fn remove(&mut self, name: &str) {
        if self.by_name.remove(name).is_some() | self.snapshots.remove(name).is_some() {
            self.changes += 1;
        }
    }

    /// Those who need one snapshot and no log: their names and its.
    pub fn snapshots(&self) -> impl Iterator<Item = (&str, &str)> {
        self.snapshots.iter().map(|(name, snapshot)| (name.as_str(), snapshot.as_str()))
    }

    /// Those who need the log: their names and records.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Sequence)> {
        self.by_name.iter().map(|(name, at)| (name.as_str(), *at))
    }

    /// Who needs the oldest record, and which.
    pub fn oldest(&self) -> Option<(&str, Sequence)> {
        self.iter().min_by_key(|(_, at)| *at)
    }

    /// Grows whenever a plan that was made with them may no longer do.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_void_when_more_or_less_is_needed_and_not_when_somebody_moves_on() {
        let mut pins = Pins::default();
        let mut told = Vec::new();
        for (name, at) in [("a", 7), ("a", 8), ("b", 3), ("b", 2), ("c", 9)] {
            pins.set(name.to_owned(), Sequence(at));
            told.push(pins.changes());
        }
        assert_eq!(told, [1, 1, 2, 3, 4]);
        assert_eq!(pins.oldest(), Some(("b", Sequence(2))));
        pins.remove("b");
        pins.remove("nobody");
        assert_eq!((pins.changes(), pins.oldest()), (5, Some(("a", Sequence(8)))));
        pins.set_snapshot("d".to_owned(), "s".to_owned());
        assert_eq!(pins.oldest(), Some(("a", Sequence(8))), "it needs no log");
        assert_eq!(pins.snapshots().collect::<Vec<_>>(), [("d", "s")]);
        pins.remove("d");
        assert_eq!((pins.changes(), pins.snapshots().count()), (6, 0));
    }
}
