//! The ties of a branch to its parent: the branch's first snapshot holds no data of its own but
//! names the parent's, and a pin in the parent's archive keeps what it names.

use crate::manifest::word;
use crate::names::{names_of, pin_name, pin_of};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use serde::{Deserialize, Serialize};

/// Where the data of a branch's first snapshot lies: in another archive, whose owner may go on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Parent {
    /// The other archive, as `snapshot-store` names it.
    pub store: String,
    /// The snapshot there.
    pub snapshot: String,
    /// The snapshot's record: the log behind it, through `through`, is archived there.
    sequence: u64,
    /// The other log's incarnation, hexadecimal; the last record that belongs to the branch, and
    /// where the chain stands behind that.
    log: String,
    through: u64,
    chain: String,
    epoch: u64,
}

/// The record of a parent's log behind which a branch begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BranchPoint {
    pub position: Position,
    pub chain: u64,
    pub epoch: Epoch,
}

impl Parent {
    /// A parent whose archive is at `store`; the branch begins at `point`, and `snapshot`, of
    /// record `sequence`, is the parent's last one before that.
    pub fn new(store: &str, snapshot: &str, sequence: Sequence, point: &BranchPoint) -> Self {
        Self {
            store: store.to_owned(),
            snapshot: snapshot.to_owned(),
            sequence: sequence.0,
            log: format!("{:016x}", point.position.incarnation.0),
            through: point.position.sequence.0,
            chain: format!("{:016x}", point.chain),
            epoch: point.epoch.0,
        }
    }

    /// Where the branch begins.
    ///
    /// # Errors
    /// A field that should be a number is none, or they contradict each other.
    pub fn point(&self) -> Result<BranchPoint, String> {
        if self.sequence > self.through {
            return Err("its snapshot is behind the branch's place".to_owned());
        }
        let (incarnation, sequence) = (Incarnation(word(&self.log)?), Sequence(self.through));
        let position = Position { incarnation, sequence };
        Ok(BranchPoint { position, chain: word(&self.chain)?, epoch: Epoch(self.epoch) })
    }

    /// The pin in the parent's archive, for the branch whose log this is.
    pub fn pin(&self, branch: Incarnation) -> Pin {
        let (behind, through) = (Sequence(self.sequence), Sequence(self.through));
        Pin { behind, through, branch }
    }
}

/// A snapshot and the archived log behind it which a branch needs, through a record. It is an entry
/// of the archive without parts: its name says everything.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Pin {
    /// The snapshot's record.
    pub behind: Sequence,
    pub through: Sequence,
    /// The branch's log.
    pub branch: Incarnation,
}

impl Pin {
    pub(crate) fn name(&self) -> String {
        pin_name(self.behind, self.through, self.branch.0)
    }

    pub(crate) fn of(name: &str) -> Option<Self> {
        let (behind, through, branch) = pin_of(name)?;
        Some(Self { behind, through, branch: Incarnation(branch) })
    }

    /// Not a pin but the mark of who removes old snapshots: a draft that is never published.
    pub(crate) fn mark(log: Incarnation, now: UnixMillis) -> Self {
        let through = Sequence(now.0.unsigned_abs());
        Self { behind: Sequence(u64::MAX), through, branch: log }
    }

    pub(crate) fn is_mark(&self) -> bool {
        self.behind == Sequence(u64::MAX)
    }

    /// `true` for the snapshot that the pin keeps.
    pub(crate) fn is_of(&self, name: &str) -> bool {
        name.starts_with(&names_of(self.behind))
    }

    /// Whether the pin needs one of these records of the log.
    pub(crate) fn needs(&self, first: Sequence, last: Sequence) -> bool {
        last > self.behind && first <= self.through
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pin_is_its_name() {
        let pin = Pin { behind: Sequence(7), through: Sequence(9), branch: Incarnation(0xfeed) };
        let name = "pin-00000000000000000007-00000000000000000009-000000000000feed";
        assert_eq!(pin.name(), name);
        assert_eq!(Pin::of(name), Some(pin));
        for wrong in ["pin-7-9-feed", &format!("{name}-"), &name.replace("feed", "FEED"), "pin-"] {
            assert_eq!(Pin::of(wrong), None, "{wrong}");
        }
        let needs = |first, last| pin.needs(Sequence(first), Sequence(last));
        assert!(needs(8, 8) && needs(1, 8) && needs(9, 20) && needs(1, 20));
        assert!(!needs(1, 7) && !needs(10, 20));
    }
}
