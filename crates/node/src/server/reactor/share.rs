//! The budget of a turn of the loop, and how it is spent.

use crate::limits::TurnLimits;
use base::time::MonotonicNanos;

/// A turn's budget: the requests, bytes of replies and nanoseconds that are left for executing.
#[derive(Clone, Copy)]
pub(super) struct Share {
    pub requests: usize,
    pub reply_bytes: usize,
    pub nanos: u64,
    /// Until when its time was taken.
    pub lap: MonotonicNanos,
}

impl Share {
    /// The budget of a turn that began at `began`, from now on. `sends`: how many
    /// clients wait to be sent to now.
    pub fn of_turn(
        limits: &TurnLimits,
        has_cold: bool,
        sends: usize,
        began: MonotonicNanos,
        now: MonotonicNanos,
    ) -> Self {
        let (nanos_max, send_nanos) = match has_cold {
            true => (limits.tiered_nanos_max, limits.send_nanos),
            false => (limits.nanos_max, 0),
        };
        let done = now.since(began).saturating_add(send_nanos.saturating_mul(sends as u64));
        let nanos = nanos_max.saturating_sub(done);
        Self {
            requests: limits.requests_max,
            reply_bytes: limits.reply_bytes_max,
            // Whatever was done in this turn before.
            nanos: nanos.max(nanos_max.div_ceil(2)),
            lap: now,
        }
    }

    /// The budget for requests that run amid sending. Whoever spends of it sets `lap` first: the
    /// time of sending does not count.
    pub fn amid_sending(limits: &TurnLimits) -> Self {
        Self {
            requests: limits.requests_max,
            reply_bytes: limits.reply_bytes_max,
            nanos: limits.amid_sending_nanos_max,
            lap: MonotonicNanos::default(),
        }
    }

    /// A request was executed, with a reply of so many bytes.
    pub fn take(&mut self, reply_bytes: usize) {
        self.requests = self.requests.saturating_sub(1);
        self.reply_bytes = self.reply_bytes.saturating_sub(reply_bytes);
    }

    /// It is so late now.
    pub fn take_time(&mut self, lap: MonotonicNanos) {
        self.nanos = self.nanos.saturating_sub(lap.since(self.lap));
        self.lap = lap;
    }

    /// Half of what is left, for those that must not have all of it.
    pub fn half(&self) -> Self {
        Self {
            requests: self.requests.div_ceil(2),
            reply_bytes: self.reply_bytes.div_ceil(2),
            nanos: self.nanos.div_ceil(2),
            ..*self
        }
    }

    /// As much of this as there is of the other.
    pub fn within(self, other: Self) -> Self {
        Self {
            requests: self.requests.min(other.requests),
            reply_bytes: self.reply_bytes.min(other.reply_bytes),
            nanos: self.nanos.min(other.nanos),
            ..self
        }
    }

    pub fn is_used_up(&self) -> bool {
        self.requests == 0 || self.reply_bytes == 0 || self.nanos == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;

    #[test]
    fn a_turn_is_short_where_values_may_be_on_a_disk() {
        let whole = Limits::default().turn;
        let limits = TurnLimits { nanos_max: 9000, tiered_nanos_max: 700, send_nanos: 10, ..whole };
        let at = MonotonicNanos;
        let share =
            |has_cold, sends, now| Share::of_turn(&limits, has_cold, sends, at(5000), at(now));
        let nanos = |has_cold, now| share(has_cold, 0, now).nanos;
        assert_eq!((nanos(false, 5000), nanos(true, 5000)), (9000, 700));
        assert_eq!(nanos(true, 5100), 600, "what the turn has done before counts");
        assert_eq!(nanos(true, 6000), 350, "half is left, whatever that was");
        assert_eq!(share(true, 20, 5100).nanos, 400, "who will be sent to counts as well");
        assert_eq!(share(false, 20, 5000).nanos, 9000);
    }

    #[test]
    fn time_that_is_over_ends_a_share_and_half_of_it_ends_before() {
        let at = MonotonicNanos;
        let limits = TurnLimits { nanos_max: 1000, ..Limits::default().turn };
        let mut share = Share::of_turn(&limits, false, 0, at(5000), at(5000));
        let mut half = share.half();
        half.take_time(at(5499));
        assert!(!half.is_used_up());
        half.take_time(at(5500));
        assert!(half.is_used_up());
        share.take_time(at(5500));
        assert!(!share.is_used_up());
        assert_eq!(half.within(share).nanos, 0, "there is none left for who had its half");
        share.take_time(at(5999));
        // A clock may say the same again.
        share.take_time(at(5999));
        assert!(!share.is_used_up());
        share.take_time(at(9000));
        assert!(share.is_used_up());
    }
}
