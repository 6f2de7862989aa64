//! When the next snapshot is due: when a start would spend more on the log than on the snapshot
//! before it, or when that one is old.

use crate::take::Taken;

/// How fast a start is, as measured when the last snapshot was taken.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Rates {
    /// Bytes of a snapshot that are loaded, and records that are applied, in a second.
    pub restored: f64,
    pub replayed: f64,
}

/// Before anything was measured: a guess, on the slow side for records, so that the first snapshot
/// comes rather early.
const GUESS: Rates = Rates { restored: 200e6, replayed: 100e3 };

/// Less than this was not measured, but rounded: bytes, and records.
const BYTES_MIN: u64 = 16 << 20;
const RECORDS_MIN: u64 = 10_000;

/// A start may replay for so long in any case, in seconds: small data would be written again every
/// other second.
const REPLAY_SECONDS_MIN: f64 = 2.0;

/// How far the newest snapshot is behind the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Freshness {
    /// Bytes of the snapshot; 0 if there is none.
    pub bytes: u64,
    /// Records of the log behind it.
    pub records: u64,
    /// Seconds since it was taken, 0 if that is in the future; [`u64::MAX`] if there is none.
    pub age: u64,
}

impl Default for Rates {
    fn default() -> Self {
        GUESS
    }
}

impl Rates {
    /// Takes what the last snapshot showed, as far as it was enough to measure.
    pub fn measure(&mut self, taken: &Taken) {
        let rate = |(nanos, count): (u64, u64)| count as f64 / (nanos.max(1) as f64 / 1e9);
        if taken.restored.1 >= BYTES_MIN {
            self.restored = rate(taken.restored);
        }
        if taken.replayed.1 >= RECORDS_MIN {
            self.replayed = rate(taken.replayed);
        }
    }

    /// Seconds that a start would spend on the snapshot, and on the log behind it.
    pub fn start_seconds(&self, fresh: Freshness) -> (f64, f64) {
        (fresh.bytes as f64 / self.restored, fresh.records as f64 / self.replayed)
    }

    /// Why the next one is due, in words; `None` if it is not. None is older than `age_max` seconds
    /// if anything was appended since.
    pub fn due(&self, fresh: Freshness, age_max: u64) -> Option<String> {
        let (restore, replay) = self.start_seconds(fresh);
        if replay >= restore.max(REPLAY_SECONDS_MIN) {
            return Some(format!(
                "a start would restore for {restore:.1} s and replay for {replay:.1} s"
            ));
        }
        let is_old = fresh.age >= age_max && fresh.records > 0;
        is_old.then(|| match fresh.age {
            u64::MAX => "there is no snapshot yet".to_owned(),
            age => format!("the newest snapshot is {age} s old"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_due_when_a_start_would_replay_for_longer_than_it_restores() {
        let rates = Rates { restored: 100e6, replayed: 1000.0 };
        let fresh = |bytes, records, age| Freshness { bytes, records, age };
        assert_eq!(rates.due(fresh(1_000_000_000, 9_999, 0), 3600), None);
        assert!(rates.due(fresh(1_000_000_000, 10_000, 0), 3600).is_some());
        assert_eq!(rates.due(fresh(0, 1_999, 0), 3600), None, "two seconds are always borne");
        assert!(rates.due(fresh(0, 2_000, 0), 3600).is_some());
        assert_eq!(rates.due(fresh(0, 0, 5000), 3600), None, "nothing was appended");
        let why = rates.due(fresh(0, 1, 3600), 3600);
        assert_eq!(why.as_deref(), Some("the newest snapshot is 3600 s old"));
        let why = rates.due(fresh(0, 1, u64::MAX), 3600);
        assert_eq!(why.as_deref(), Some("there is no snapshot yet"));
    }
}
