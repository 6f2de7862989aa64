//! A machine's clocks in the simulated world. They read the timeline, and can be wrong.

use crate::timeline::Timeline;
use base::time::{Clock, MonotonicNanos};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

/// The wall clock at simulated time 0: 2026-01-01 00:00:00 UTC, in microseconds.
const EPOCH_MICROS: i64 = 1_767_225_600_000_000;

/// One machine's clocks. Clones are the same clocks.
#[derive(Clone, Debug)]
pub struct SimClock {
    timeline: Timeline,
    error: Arc<ClockError>,
}

#[derive(Default, Debug)]
struct ClockError {
    /// How far the wall clock is ahead of true time.
    wall_ahead_micros: AtomicI64,
    /// How much faster than true time the monotonic clock runs.
    drift_ppm: AtomicI64,
}

impl SimClock {
    pub fn new(timeline: &Timeline) -> Self {
        Self { timeline: timeline.clone(), error: Arc::default() }
    }

    /// Steps the wall clock, as an operator or a time daemon may, forwards or back.
    pub fn step_wall(&self, micros: i64) {
        self.error.wall_ahead_micros.fetch_add(micros, Ordering::Relaxed);
        self.timeline.record("wall clock steps", &micros.to_le_bytes());
    }

    /// Lets the monotonic clock run fast (or slow, if negative) by parts per million. To be set
    /// before the clock is first read: it applies from the beginning of time.
    pub fn set_drift(&self, ppm: i64) {
        self.error.drift_ppm.store(ppm, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn unix_micros(&self) -> i64 {
        let since_start = (self.timeline.now().0 / 1_000) as i64;
        EPOCH_MICROS + since_start + self.error.wall_ahead_micros.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> MonotonicNanos {
        let now = i128::from(self.timeline.now().0);
        let drift = i128::from(self.error.drift_ppm.load(Ordering::Relaxed));
        MonotonicNanos((now + now * drift / 1_000_000) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_follow_the_timeline_and_their_errors() {
        let timeline = Timeline::new();
        let (good, bad) = (SimClock::new(&timeline), SimClock::new(&timeline));
        bad.set_drift(200);
        let (good_before, bad_before) = (good.monotonic(), bad.monotonic());
        let wall_before = good.unix_micros();
        timeline.pass(1_000_000_000);
        bad.step_wall(-5_000_000);
        assert_eq!(good.monotonic().since(good_before), 1_000_000_000);
        assert_eq!(bad.monotonic().since(bad_before), 1_000_200_000);
        assert_eq!(good.unix_micros() - wall_before, 1_000_000);
        assert_eq!(bad.unix_micros() - wall_before, -4_000_000);
    }
}
