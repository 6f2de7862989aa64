//! How far a loading is, how fast it goes, and when it will be over at that pace.

use super::Parts;
use base::{MonotonicNanos, Sequence, UnixMillis};
use std::collections::VecDeque;
use std::fmt;
use txlog::Ticket;

/// Time between two samples, and two lines of the log, in nanoseconds.
const SAMPLE_NANOS: u64 = 2_000_000_000;

/// Samples that the pace is taken from: the last ten seconds, because it changes with what is
/// loaded.
const SAMPLES_MAX: usize = 6;

/// What a loading does.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Leg {
    /// Loads the newest snapshot.
    #[default]
    Snapshot,
    /// Applies the log behind it.
    Log,
}

/// How far a loading is. Each leg is counted by itself: how long the log is becomes known as it
/// is read.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Progress {
    pub leg: Leg,
    /// When the loading began.
    pub began: UnixMillis,
    /// Bytes of the leg, used so far and in all. Of a log the sum is an estimate, by how many
    /// records are to come; 0 while nothing is known.
    pub used_bytes: u64,
    pub total_bytes: u64,
    /// In a second, lately.
    pub bytes_per_second: u64,
    /// Bytes of memory that the snapshot's data took where it was written; 0 while not known.
    pub used_memory: u64,
}

impl Progress {
    /// Per cent of the leg.
    pub fn percent(&self) -> f64 {
        let used = self.used_bytes.min(self.total_bytes);
        if self.total_bytes == 0 { 0.0 } else { used as f64 * 100.0 / self.total_bytes as f64 }
    }

    /// Seconds until the leg ends, if it goes on as it did; `None` before anything can be said.
    pub fn remaining_seconds(&self) -> Option<u64> {
        let left = self.total_bytes.saturating_sub(self.used_bytes);
        (self.total_bytes > 0 && self.bytes_per_second > 0)
            .then(|| left.div_ceil(self.bytes_per_second))
    }
}

/// One line: `loading the snapshot: 45 %, 900 of 2000 MiB, 300 MiB/s, 4 s left`.
impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.leg {
            Leg::Snapshot => "loading the snapshot",
            Leg::Log => "replaying the log",
        };
        let mib = |bytes: u64| bytes >> 20;
        let (used, total, rate) = (self.used_bytes, self.total_bytes, self.bytes_per_second);
        write!(f, "{what}: ")?;
        match total {
            0 => write!(f, "{} MiB", mib(used))?,
            _ => write!(f, "{:.0} %, {} of {} MiB", self.percent(), mib(used), mib(total))?,
        }
        write!(f, ", {} MiB/s", mib(rate))?;
        match self.remaining_seconds() {
            Some(seconds) => write!(f, ", {seconds} s left"),
            None => Ok(()),
        }
    }
}

/// What is known of a loading's progress.
pub(super) struct Measured {
    pub progress: Progress,
    pace: Pace,
    log: LogLeg,
}

/// The records of the log that are to be applied.
#[derive(Default)]
struct LogLeg {
    /// The record behind which they begin.
    began: Sequence,
    /// The question for the last one, and the answer.
    asked: Option<Ticket>,
    end: Option<Sequence>,
}

impl Measured {
    pub fn begin(at: UnixMillis, now: MonotonicNanos) -> Self {
        let progress = Progress { began: at, ..Progress::default() };
        Self { progress, pace: Pace::begin(now), log: LogLeg::default() }
    }

    pub fn begin_snapshot(&mut self, total_bytes: u64, now: MonotonicNanos) {
        let began = self.progress.began;
        self.progress = Progress { began, total_bytes, ..Progress::default() };
        self.pace = Pace::begin(now);
    }

    pub fn note_snapshot(&mut self, parts: &Parts) {
        self.progress.used_bytes = parts.offset();
        self.progress.used_memory = parts.used_memory();
    }

    /// The log is read from behind this record on, and was asked for its last one.
    pub fn begin_log(&mut self, began: Sequence, asked: Ticket, now: MonotonicNanos) {
        let Progress { began: since, used_memory, .. } = self.progress;
        let leg = Leg::Log;
        self.progress = Progress { leg, began: since, used_memory, ..Progress::default() };
        self.log = LogLeg { began, asked: Some(asked), end: None };
        self.pace = Pace::begin(now);
    }

    /// What the log said of its last record.
    pub fn note_end(&mut self, ticket: Ticket, end: Sequence) {
        if self.log.asked == Some(ticket) {
            self.log.end = Some(end);
        }
    }

    /// Notes how far the log was read. Where it ends is known as a record, so its bytes are
    /// estimated by those of the records before.
    pub fn note_log(&mut self, at: Sequence, until: Option<Sequence>, used_bytes: u64) {
        let records = |end: Sequence| u128::from(end.0.saturating_sub(self.log.began.0));
        let all = until.or(self.log.end).map_or(0, |end| records(end.max(at)));
        let total = (u128::from(used_bytes) * all).checked_div(records(at));
        self.progress.used_bytes = used_bytes;
        self.progress.total_bytes = total.map_or(0, |total| total as u64);
    }

    /// Measures the pace; whether it is time to say how far it is.
    pub fn sample(&mut self, now: MonotonicNanos) -> bool {
        let used = self.progress.used_bytes;
        self.progress.bytes_per_second = self.pace.bytes_per_second(now, used);
        self.pace.sample(now, used)
    }
}

/// Measures the pace of a leg.
#[derive(Default)]
struct Pace {
    /// Instants, and the bytes used by then; the oldest first.
    samples: VecDeque<(MonotonicNanos, u64)>,
}

impl Pace {
    /// A pace of something that begins.
    pub fn begin(now: MonotonicNanos) -> Self {
        Self { samples: VecDeque::from([(now, 0)]) }
    }

    /// Bytes in a second, since the oldest sample.
    pub fn bytes_per_second(&self, now: MonotonicNanos, used_bytes: u64) -> u64 {
        let Some((then, before)) = self.samples.front() else { return 0 };
        let nanos = u128::from(now.since(*then)).max(1);
        let bytes = u128::from(used_bytes.saturating_sub(*before));
        (bytes * 1_000_000_000 / nanos) as u64
    }

    /// Takes a sample if one is due; whether it was.
    pub fn sample(&mut self, now: MonotonicNanos, used_bytes: u64) -> bool {
        if self.samples.back().is_some_and(|(last, _)| now.since(*last) < SAMPLE_NANOS) {
            return false;
        }
        self.samples.push_back((now, used_bytes));
        if self.samples.len() > SAMPLES_MAX {
            self.samples.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn progress_is_one_line_with_rate_and_time_left() {
        let progress = Progress {
            used_bytes: 900 * MIB,
            total_bytes: 2000 * MIB,
            bytes_per_second: 300 * MIB,
            ..Progress::default()
        };
        let line = "loading the snapshot: 45 %, 900 of 2000 MiB, 300 MiB/s, 4 s left";
        assert_eq!(progress.to_string(), line);
        let unknown = Progress { total_bytes: 0, leg: Leg::Log, ..progress };
        assert_eq!(unknown.to_string(), "replaying the log: 900 MiB, 300 MiB/s");
        let still = Progress { bytes_per_second: 0, ..progress };
        assert_eq!(still.remaining_seconds(), None);
        assert_eq!(Progress { used_bytes: 3000 * MIB, ..progress }.percent(), 100.0);
    }

    #[test]
    fn the_bytes_of_a_log_are_estimated_by_its_records() {
        let mut measured = Measured::begin(UnixMillis(7), MonotonicNanos(0));
        measured.begin_log(Sequence(100), Ticket(3), MonotonicNanos(0));
        measured.note_log(Sequence(110), None, 1000);
        assert_eq!(measured.progress.total_bytes, 0, "nobody knows how much there is");
        measured.note_end(Ticket(2), Sequence(900));
        measured.note_end(Ticket(3), Sequence(150));
        measured.note_log(Sequence(110), None, 1000);
        assert_eq!(measured.progress.total_bytes, 5000);
        measured.note_log(Sequence(200), None, 9000);
        assert_eq!(measured.progress.total_bytes, 9000, "it has grown since");
        measured.sample(MonotonicNanos(1_000_000_000));
        assert_eq!(measured.progress.bytes_per_second, 9000);
        assert_eq!(measured.progress.began, UnixMillis(7));
    }

    #[test]
    fn the_pace_is_that_of_the_last_samples() {
        let second = |n: u64| MonotonicNanos(n * 1_000_000_000);
        let mut pace = Pace::begin(second(1));
        assert_eq!(pace.bytes_per_second(second(2), 100), 100);
        assert!(!pace.sample(second(2), 100), "it is not due");
        // A hundred in each second at first, then ten.
        for n in 1..=4 {
            assert!(pace.sample(second(1 + 2 * n), 200 * n));
        }
        for n in 1..=SAMPLES_MAX as u64 {
            assert!(pace.sample(second(9 + 2 * n), 800 + 20 * n));
        }
        let last = 9 + 2 * SAMPLES_MAX as u64;
        assert_eq!(pace.bytes_per_second(second(last), 800 + 20 * SAMPLES_MAX as u64), 10);
    }
}
