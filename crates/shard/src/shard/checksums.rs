//! When a primary says in its log what it has: readers compare it with what they have.

use super::{Duty, Shard};
use base::{MonotonicNanos, UnixMillis};
use txlog::{Gate, Stamper};

/// What no `Checksum` covers yet.
#[derive(Default)]
pub(super) struct Checksums {
    /// Bytes appended with data through the last `Checksum`.
    bytes: u64,
    /// Since when something has been appended behind it.
    since: Option<MonotonicNanos>,
}

impl Shard {
    /// Appends a `Checksum` if one is due and the log takes it. Between units, by a process that
    /// leads.
    pub fn append_checksum_if_due(&mut self, now: UnixMillis, monotonic: MonotonicNanos) {
        let unchecked = self.bytes_appended - self.checksums.bytes;
        if unchecked == 0 {
            return;
        }
        let since = *self.checksums.since.get_or_insert(monotonic);
        let is_due = unchecked >= self.limits.checksum_bytes
            || monotonic.since(since) >= self.limits.checksum_nanos;
        if !is_due || self.has_gathered() || self.gate() != Gate::Open {
            return;
        }
        // A life that lost a value of its tier keeps what it does now to itself, and ends.
        if self.engine.keyspace.has_lost_value() {
            return;
        }
        self.checksums.bytes = self.bytes_appended;
        self.checksums.since = None;
        self.appender.borrow_mut().append_checksum(self.engine.keyspace.len() as u64, now);
        self.note_grown();
    }

    /// The running checksum of the log through the last record appended or applied, if it is known.
    pub fn log_sum(&self) -> Option<u64> {
        let sum = match &self.duty {
            Duty::Leads => self.standing_stamper(Stamper::sum),
            Duty::Follows(following) => following.replayer.sum(),
            Duty::Loads => None,
        };
        sum.map(|sum| sum.value())
    }
}
