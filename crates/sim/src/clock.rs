//! A machine's clocks in the simulated world. They read the timeline, and can be wrong.

use crate::timeline::Timeline;
use base::time::{Clock, Moment, MonotonicNanos};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The wall clock at simulated time 0: 2026-01-01 00:00:00 UTC, in microseconds.
const EPOCH_MICROS: i64 = 1_767_225_600_000_000;

/// A frozen machine reads its clocks at most so often before [`Awakening::WallIsSetBack`].
const SET_BACK_AFTER_MAX: u64 = 8;

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
    frozen: Mutex<Frozen>,
    disruptions: AtomicU64,
    /// By how many microseconds the wall clock is yet to be set back, and after how many readings
    /// by [`Clock::moment`].
    set_back_micros: AtomicI64,
    set_back_after: AtomicU64,
    /// What it shows instead of the timeline, if anything.
    held: Mutex<Option<MonotonicNanos>>,
}

/// When the machine did not run, as a hypervisor's freeze has it: its monotonic clock stood still.
#[derive(Default, Debug)]
struct Frozen {
    /// The newest freeze.
    from: u64,
    until: u64,
    /// Of those before, in nanoseconds.
    before: u64,
}

impl Frozen {
    /// For how long the machine did not run through this instant.
    fn through(&self, now: u64) -> u64 {
        self.before + now.min(self.until).saturating_sub(self.from)
    }
}

/// What a machine's wall clock shows when it wakes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awakening {
    /// Somebody has set it right.
    WallIsRight,
    /// Somebody has set it right, and sets it back by as much once the machine has read it.
    WallIsSetBack,
    /// It went on where it stood, but the machine is told that its clocks were disrupted.
    IsTold,
    /// It went on where it stood, and nothing tells.
    NothingTells,
}

impl SimClock {
    pub fn new(timeline: &Timeline) -> Self {
        Self { timeline: timeline.clone(), error: Arc::default() }
    }

    /// From now on the clocks show this instant, however time passes: for tests in which nothing
    /// may depend on how long something took.
    pub fn hold_at(&self, instant: MonotonicNanos) {
        *self.error.held.lock().unwrap_or_else(PoisonError::into_inner) = Some(instant);
    }

    /// The instant that errors are counted from.
    fn now(&self) -> MonotonicNanos {
        let held = *self.error.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.unwrap_or_else(|| self.timeline.now())
    }

    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// Steps the wall clock, as an operator or a time daemon may, forwards or back.
    pub fn step_wall(&self, micros: i64) {
        self.error.wall_ahead_micros.fetch_add(micros, Ordering::Relaxed);
        self.timeline.record("wall clock steps", &micros.to_le_bytes());
    }

    /// Freezes the machine from now on for so long: the monotonic clock stands still meanwhile, and
    /// the wall clock shows when it wakes what is said here. Who calls it sees to it that nothing
    /// runs on the machine.
    pub fn freeze(&self, nanos: u64, awakening: Awakening) {
        let now = self.timeline.now().0;
        let mut frozen = self.error.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        let until = (now + nanos).max(frozen.until);
        let added = until - now.max(frozen.until);
        *frozen = Frozen { before: frozen.through(now), from: now, until };
        let micros = (added / 1000) as i64;
        match awakening {
            Awakening::WallIsRight => {}
            Awakening::WallIsSetBack => {
                self.error.set_back_micros.fetch_add(micros, Ordering::Relaxed);
                // Within a turn, or some turns later.
                let readings = 1 + nanos % SET_BACK_AFTER_MAX;
                self.error.set_back_after.store(readings, Ordering::Relaxed);
            }
            Awakening::IsTold | Awakening::NothingTells => {
                self.error.wall_ahead_micros.fetch_sub(micros, Ordering::Relaxed);
            }
        }
        if awakening == Awakening::IsTold {
            self.error.disruptions.fetch_add(1, Ordering::Relaxed);
        }
        self.timeline.record("machine freezes", &nanos.to_le_bytes());
    }

    /// When the machine wakes, in true time; the past if it is not frozen.
    pub fn wakes_at(&self) -> MonotonicNanos {
        let frozen = self.error.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        MonotonicNanos(frozen.until)
    }

    /// Lets the monotonic clock run fast (or slow, if negative) by parts per million. To be set
    /// before the clock is first read: it applies from the beginning of time.
    pub fn set_drift(&self, ppm: i64) {
        self.error.drift_ppm.store(ppm, Ordering::Relaxed);
    }
}

impl Clock for SimClock {
    fn unix_micros(&self) -> i64 {
        let since_start = (self.now().0 / 1_000) as i64;
        EPOCH_MICROS + since_start + self.error.wall_ahead_micros.load(Ordering::Relaxed)
    }

    fn monotonic(&self) -> MonotonicNanos {
        let now = self.now().0;
        let frozen = self.error.frozen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = i128::from(now - frozen.through(now));
        let drift = i128::from(self.error.drift_ppm.load(Ordering::Relaxed));
        MonotonicNanos((now + now * drift / 1_000_000) as u64)
    }

    fn disruptions(&self) -> u64 {
        self.error.disruptions.load(Ordering::Relaxed)
    }

    fn moment(&self) -> Moment {
        let moment = Moment::read(self);
        let is_awake = self.timeline.now() >= self.wakes_at();
        let ClockError { set_back_micros, set_back_after, .. } = &*self.error;
        if is_awake && set_back_micros.load(Ordering::Relaxed) > 0 {
            let was_last = set_back_after.fetch_sub(1, Ordering::Relaxed) == 1;
            if was_last {
                self.step_wall(-set_back_micros.swap(0, Ordering::Relaxed));
            }
        }
        moment
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

    #[test]
    fn a_frozen_machine_s_monotonic_clock_stands_still() {
        let second = 1_000_000_000;
        let all = [
            Awakening::WallIsRight,
            Awakening::WallIsSetBack,
            Awakening::IsTold,
            Awakening::NothingTells,
        ];
        for awakening in all {
            let timeline = Timeline::new();
            let clock = SimClock::new(&timeline);
            timeline.pass(second);
            let before = clock.moment();
            clock.freeze(3 * second, awakening);
            timeline.pass(second);
            // A freeze within a freeze makes it no shorter.
            clock.freeze(second, awakening);
            timeline.pass(4 * second);
            let after = clock.moment();
            assert_eq!(after.monotonic.since(before.monotonic), 2 * second);
            let longest = match awakening {
                Awakening::WallIsRight | Awakening::WallIsSetBack => 5 * second,
                Awakening::IsTold => u64::MAX,
                Awakening::NothingTells => 2 * second,
            };
            assert_eq!(after.longest_since(before), longest, "{awakening:?}");
            let later = (0..SET_BACK_AFTER_MAX).map(|_| clock.moment()).next_back().expect("some");
            let is_set_back = awakening == Awakening::WallIsSetBack;
            assert_eq!(later.step_back_since(after), if is_set_back { 3_000_000 } else { 0 });
        }
    }
}
