//! How far a snapshot is.

use base::MonotonicNanos;
use std::fmt;

/// What a worker is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Takes what another server wrote, in bytes.
    Importing,
    /// Loads the newest snapshot, in bytes.
    Restoring,
    /// Applies the log behind it, in bytes.
    Replaying,
    /// Writes parts, in keys.
    Writing,
    /// Computes the digest of what was written, in keys.
    Digesting,
    /// Restores what was written, in bytes.
    Rehearsing,
    /// Applies the log behind that, in records.
    Checking,
    /// Copies the log into the archive, in records.
    Archiving,
    Publishing,
    /// Has nothing to do.
    Waiting,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Importing => "importing",
            Self::Restoring => "restoring",
            Self::Replaying => "replaying",
            Self::Writing => "writing",
            Self::Digesting => "digesting",
            Self::Rehearsing => "rehearsing",
            Self::Checking => "checking",
            Self::Archiving => "archiving",
            Self::Publishing => "publishing",
            Self::Waiting => "waiting",
        })
    }
}

impl Phase {
    /// What is counted in it.
    fn unit(self) -> &'static str {
        match self {
            Self::Importing | Self::Restoring | Self::Replaying | Self::Rehearsing => "bytes",
            Self::Checking | Self::Archiving => "records",
            Self::Writing | Self::Digesting => "keys",
            Self::Publishing | Self::Waiting => "",
        }
    }
}

/// How far a phase is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    pub phase: Phase,
    /// Of what the phase counts; `total` is 0 while it is not known.
    pub done: u64,
    pub total: u64,
    /// When the phase began, and when this was so.
    pub began: MonotonicNanos,
    pub at: MonotonicNanos,
}

impl Progress {
    /// Per cent of the phase, if it is known.
    pub fn percent(&self) -> Option<u64> {
        let done = self.done.min(self.total);
        (self.total > 0).then(|| (u128::from(done) * 100 / u128::from(self.total)) as u64)
    }

    /// What was done in a second, on average; `None` before anything can be said.
    pub fn rate(&self) -> Option<u64> {
        let nanos = self.at.since(self.began);
        (nanos > 0).then(|| (u128::from(self.done) * 1_000_000_000 / u128::from(nanos)) as u64)
    }

    /// Seconds until the phase ends, if it goes on as it did.
    pub fn remaining_seconds(&self) -> Option<u64> {
        let rate = self.rate().filter(|rate| *rate > 0)?;
        (self.total > 0).then(|| self.total.saturating_sub(self.done).div_ceil(rate))
    }

    /// What a holder of the claim says: JSON.
    pub fn claim(&self, worker: u64, count: u64) -> String {
        let Self { phase, done, total, .. } = self;
        format!(
            "{{\"worker\":\"{worker:016x}\",\"count\":{count},\"phase\":\"{phase}\",\
             \"done\":{done},\"total\":{total}}}"
        )
    }
}

/// One line: `writing: 45 %, 900000 of 2000000 keys, 300000/s, 4 s left`.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, done, total, .. } = self;
        write!(f, "{phase}")?;
        if phase.unit().is_empty() {
            return Ok(());
        }
        match self.percent() {
            Some(percent) => write!(f, ": {percent} %, {done} of {total} {}", phase.unit())?,
            None => write!(f, ": {done} {}", phase.unit())?,
        }
        if let Some(rate) = self.rate() {
            write!(f, ", {rate}/s")?;
        }
        if let Some(seconds) = self.remaining_seconds() {
            write!(f, ", {seconds} s left")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_is_one_line_with_rate_and_time_left() {
        let second = |n: u64| MonotonicNanos(n * 1_000_000_000);
        let progress = |done, total| Progress {
            phase: Phase::Writing,
            done,
            total,
            began: second(10),
            at: second(13),
        };
        assert_eq!(
            progress(900, 2000).to_string(),
            "writing: 45 %, 900 of 2000 keys, 300/s, 4 s left"
        );
        assert_eq!(progress(900, 0).to_string(), "writing: 900 keys, 300/s");
        assert_eq!(progress(0, 5).to_string(), "writing: 0 %, 0 of 5 keys, 0/s");
        let begun = Progress { at: second(10), ..progress(0, 5) };
        assert_eq!(begun.to_string(), "writing: 0 %, 0 of 5 keys");
        let publishing = Progress { phase: Phase::Publishing, ..begun };
        assert_eq!(publishing.to_string(), "publishing");
        assert_eq!(progress(u64::MAX, u64::MAX).percent(), Some(100));
        let said = progress(1, 2).claim(0xab, 3);
        let expected =
            r#"{"worker":"00000000000000ab","count":3,"phase":"writing","done":1,"total":2}"#;
        assert_eq!(said, expected);
    }
}
