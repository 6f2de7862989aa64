//! How far replicas are behind: a primary remembers when it appended what.

use base::{MonotonicNanos, Sequence};
use std::collections::VecDeque;

/// Records appended within so many nanoseconds are told apart by nothing but their number: how
/// exact a lag is told.
const SAMPLE_NANOS: u64 = 50_000_000;

/// Samples kept: of the last 200 s under load. A replica that is further behind is told as if it
/// were so far.
const SAMPLES_MAX: usize = 4096;

/// How far a replica is behind its primary.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Lag {
    pub records: u64,
    /// Of log. An estimate: the primary remembers the sizes of recent records in sum only.
    pub bytes: u64,
    /// Since the primary appended what the replica applies next; up to 50 too much.
    pub millis: u64,
}

/// Records that were appended at about the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    /// When the first of them was.
    at: MonotonicNanos,
    /// The last of them, and the bytes appended through it since the process started.
    through: Sequence,
    bytes: u64,
}

/// How the log of a primary has grown lately.
#[derive(Default, Debug)]
pub struct Samples {
    samples: VecDeque<Sample>,
}

impl Samples {
    /// Begins where this process begins to append.
    pub fn begin(&mut self, appended: Sequence, bytes: u64, now: MonotonicNanos) {
        let at = MonotonicNanos(now.0.saturating_sub(SAMPLE_NANOS));
        self.samples = [Sample { at, through: appended, bytes }].into();
    }

    /// Notes how far the log is.
    pub fn note(&mut self, appended: Sequence, bytes: u64, now: MonotonicNanos) {
        match self.samples.back_mut() {
            Some(last) if last.through >= appended => {}
            Some(last) if now.since(last.at) < SAMPLE_NANOS => {
                (last.through, last.bytes) = (appended, bytes);
            }
            _ => {
                if self.samples.len() == SAMPLES_MAX {
                    self.samples.pop_front();
                }
                self.samples.push_back(Sample { at: now, through: appended, bytes });
            }
        }
    }

    /// How far behind the newest record noted somebody is who has applied the log through
    /// `applied`.
    pub fn lag(&self, applied: Sequence, now: MonotonicNanos) -> Lag {
        let at = self.samples.partition_point(|sample| sample.through <= applied);
        let (Some(after), Some(newest)) = (self.samples.get(at), self.samples.back()) else {
            return Lag::default();
        };
        let before = at.checked_sub(1).map_or(after, |index| &self.samples[index]);
        let span = after.through.0.saturating_sub(before.through.0).max(1);
        let done = applied.0.saturating_sub(before.through.0).min(span);
        let between = u128::from(after.bytes - before.bytes) * u128::from(done) / u128::from(span);
        Lag {
            records: newest.through.0 - applied.0,
            bytes: newest.bytes - before.bytes - between as u64,
            millis: now.since(after.at) / 1_000_000,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::MILLISECOND;

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * MILLISECOND)
    }

    #[test]
    fn lag_is_told_in_records_bytes_and_time() {
        let mut progress = Samples::default();
        assert_eq!(progress.lag(Sequence(3), at(0)), Lag::default());
        progress.begin(Sequence(10), 1000, at(50));
        progress.note(Sequence(15), 2000, at(100));
        progress.note(Sequence(20), 3000, at(120));
        progress.note(Sequence(30), 5000, at(400));
        progress.note(Sequence(30), 5000, at(450));
        let lag = |applied| progress.lag(Sequence(applied), at(500));
        assert_eq!(lag(30), Lag::default());
        assert_eq!(lag(31), Lag::default(), "it knows more than we do");
        assert_eq!(lag(20), Lag { records: 10, bytes: 2000, millis: 100 });
        assert_eq!(lag(15), Lag { records: 15, bytes: 3000, millis: 400 });
        assert_eq!(lag(10), Lag { records: 20, bytes: 4000, millis: 400 });
        // From before this process led: what others appended is not known.
        assert_eq!(lag(5), Lag { records: 25, bytes: 4000, millis: 500 });
    }

    #[test]
    fn few_samples_are_kept() {
        let mut progress = Samples::default();
        for number in 0..2 * SAMPLES_MAX as u64 {
            progress.note(Sequence(number), number, MonotonicNanos(number * SAMPLE_NANOS));
        }
        assert_eq!(progress.samples.len(), SAMPLES_MAX);
    }
}
