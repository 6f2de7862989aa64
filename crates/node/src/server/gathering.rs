//! When what was gathered is handed to the log: at the end of its turn, or of one of the next.
//!
//! A commit costs the processor some 100 microseconds, whatever it holds: a thread is woken,
//! writes, waits for the disk, and wakes the loop. Where many clients without a pipeline keep the
//! loop busy, a turn serves those whose requests have come since the last one, and a commit for
//! each would cost as much as serving ten of them. So what they did waits for what those after
//! them do, as long as there are such. As soon as a turn serves few, the loop would have to wait
//! for the log, and hands it what there is.

use super::Server;
use base::MonotonicNanos;

/// What waits for the log, and for whom.
#[derive(Default)]
pub(crate) struct Gathering {
    /// Sessions that this turn has executed requests of.
    pub served: usize,
    /// When the turn began that left the first of it.
    since: Option<MonotonicNanos>,
}

impl Server {
    /// Whether what was gathered waits for what the next turn does.
    pub(super) fn gathers_on(&mut self) -> bool {
        let limits = &self.core.process.options.limits.turn;
        let is_busy = self.gathering.served >= limits.gathering_sessions_min
            && !self.lone.is_alone()
            && self.suspended.is_none()
            && self.core.stopping.is_none();
        let nanos_max = limits.gathered_nanos_max;
        let since = self.gathering.since.unwrap_or(self.core.turn.monotonic);
        let gathers_on = is_busy && self.core.lap_time().since(since) < nanos_max;
        self.gathering.since = gathers_on.then_some(since);
        gathers_on
    }
}
