//! How long to wait before something is tried again.

use base::MonotonicNanos;

/// The first wait: some round trips within a data centre.
const FIRST_NANOS: u64 = 10_000_000;

/// The longest wait. A service that comes back is noticed within it; one that is down is asked no
/// more than once a second by each node.
const LONGEST_NANOS: u64 = 1_000_000_000;

/// Doubles from one failure to the next. The first attempt after a success waits for nothing.
#[derive(Default, Debug)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    /// When to try again after one more failure.
    pub(super) fn after_failure(&mut self, now: MonotonicNanos) -> MonotonicNanos {
        let nanos = match self.failures {
            0 => 0,
            failures => (FIRST_NANOS << (failures - 1).min(10)).min(LONGEST_NANOS),
        };
        self.failures = self.failures.saturating_add(1);
        MonotonicNanos(now.0 + nanos)
    }

    pub(super) fn reset(&mut self) {
        self.failures = 0;
    }
}
