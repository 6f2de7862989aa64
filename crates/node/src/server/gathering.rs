//! The hand-over of what was gathered to the log: at the end of its turn, or of one of the next.
//!
//! A commit costs the processor some 100 microseconds, whatever it holds: a thread is woken,
//! writes, waits for the disk, and wakes the loop. Where many clients without a pipeline keep the
//! loop busy, a turn serves those whose requests have come since the last one, and a commit for
//! each would cost as much as serving ten of them. So what they wrote waits for what others write
//! in the next turns, as long as many do. As soon as few write, the log gets what there is.

use super::Server;
use base::MonotonicNanos;

/// How the record in the making grows: by whom, and since when.
#[derive(Default)]
pub(crate) struct Gathering {
    /// Sessions whose requests changed something in this turn.
    pub writers: usize,
    /// When the turn began that left the first of it to the next.
    since: Option<MonotonicNanos>,
}

impl Server {
    /// Effects that were gathered stay for the next turn's: whether they do.
    pub(super) fn gathers_on(&mut self) -> bool {
        let limits = &self.core.process.options.limits.turn;
        let is_busy = self.core.shard.has_gathered()
            && self.gathering.writers >= limits.gathering_writers_min
            // Others wait until what is held may leave.
            && !self.core.is_much_held()
            && !self.lone.is_alone()
            && self.suspended.is_none()
            && self.core.stopping.is_none();
        let nanos_max = limits.gathered_nanos_max;
        let since = self.gathering.since.unwrap_or(self.core.turn.monotonic);
        let gathers_on = is_busy && self.core.lap_time().since(since) < nanos_max;
        self.gathering.since = gathers_on.then_some(since);
        gathers_on
    }

    /// Appends what earlier turns gathered, if it has waited for as long as it may.
    pub(super) fn append_overdue(&mut self) {
        let nanos_max = self.core.process.options.limits.turn.gathered_nanos_max;
        let now = self.core.turn.monotonic;
        if self.gathering.since.is_some_and(|since| now.since(since) >= nanos_max) {
            self.gathering.since = None;
            self.core.shard.commit(self.core.turn.now);
        }
    }
}
