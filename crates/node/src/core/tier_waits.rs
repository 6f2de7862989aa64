//! Why requests wait where values leave memory, and how long.

use base::MonotonicNanos;
use statistics::Histogram;

/// The reason why a request is put off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cause {
    /// Values leave memory no faster than the tier takes them.
    Room,
    /// A snapshot is behind: with its file, or with the values of the tier that it reads.
    Snapshot,
}

/// Times for which requests waited, which are the process's and begin anew with CONFIG RESETSTAT,
/// and the causes for which some were put off in this turn.
#[derive(Default)]
pub(crate) struct TierWaits {
    /// How long requests waited for values that were not in memory, of those that had to.
    pub fetches: Histogram,
    /// Nanoseconds in which one request or more waited for values.
    pub values_nanos: u64,
    /// Likewise for room, and for a snapshot.
    pub room_nanos: u64,
    pub snapshot_nanos: u64,
    /// Requests that ran while others were answered, because their values had come.
    pub amid_sending: u64,
    /// True if some were put off in the turn that began last, for each cause.
    room: bool,
    snapshot: bool,
    /// When that was.
    turn_began: MonotonicNanos,
}

impl TierWaits {
    /// Nothing was waited for until now, but for who was put off in this turn.
    pub fn reset(&mut self) {
        let Self { room, snapshot, turn_began, .. } = *self;
        *self = Self { room, snapshot, turn_began, ..Self::default() };
    }

    /// A request is put off.
    pub fn put_off(&mut self, cause: Cause) {
        match cause {
            Cause::Room => self.room = true,
            Cause::Snapshot => self.snapshot = true,
        }
    }

    /// True if a request was put off in this turn.
    pub fn has_put_off(&self, cause: Cause) -> bool {
        match cause {
            Cause::Room => self.room,
            Cause::Snapshot => self.snapshot,
        }
    }

    /// A turn begins, and until now requests waited for values, or did not. Who was put off in the
    /// turn before has waited until now.
    pub fn begin_turn(&mut self, now: MonotonicNanos, waits_for_values: bool) {
        let nanos = now.since(std::mem::replace(&mut self.turn_began, now));
        let waited = [
            (waits_for_values, &mut self.values_nanos),
            (std::mem::take(&mut self.room), &mut self.room_nanos),
            (std::mem::take(&mut self.snapshot), &mut self.snapshot_nanos),
        ];
        for (_, sum) in waited.into_iter().filter(|(waited, _)| *waited) {
            *sum += nanos;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_while_somebody_waits_for_what_keeps_it_waiting() {
        let mut waits = TierWaits::default();
        let sums = |waits: &TierWaits| (waits.values_nanos, waits.room_nanos, waits.snapshot_nanos);
        waits.begin_turn(MonotonicNanos(100), false);
        assert_eq!(sums(&waits), (0, 0, 0));
        waits.put_off(Cause::Room);
        waits.put_off(Cause::Room);
        assert!(waits.has_put_off(Cause::Room) && !waits.has_put_off(Cause::Snapshot));
        waits.begin_turn(MonotonicNanos(130), true);
        assert_eq!(sums(&waits), (30, 30, 0));
        waits.put_off(Cause::Snapshot);
        waits.begin_turn(MonotonicNanos(131), false);
        waits.begin_turn(MonotonicNanos(200), false);
        assert_eq!(sums(&waits), (30, 30, 1));
        waits.put_off(Cause::Snapshot);
        waits.reset();
        assert!(waits.has_put_off(Cause::Snapshot), "it waits all the same");
        waits.begin_turn(MonotonicNanos(205), false);
        assert_eq!(sums(&waits), (0, 0, 5));
    }
}
