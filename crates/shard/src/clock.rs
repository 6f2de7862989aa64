//! The shard's clock: what keys expire by and what records carry. It follows the machine's wall
//! clock, never goes back, and never jumps: a step of the wall clock is caught up with slowly, so
//! that no key dies an hour early because an operator set the time.
//!
//! A process that takes over goes on with the clock of the primary before it, for the same reason.

pub mod wall;

use base::{MonotonicNanos, UnixMillis};

/// A difference to the wall clock up to here is made good at once, in microseconds. As much as
/// processes that did not run for a moment see; time daemons slew what is less.
const STEP_MICROS_MAX: i64 = 250_000;

/// While a difference is made good the clock runs faster or slower by this part: a minute's step
/// takes four minutes, and no deadline is off by more than a quarter.
const SLEW_PART: i64 = 4;

const MICROS_PER_MILLI: i64 = 1000;

/// What a shard's clock showed in a record, and when that was read.
pub type Heard = (UnixMillis, MonotonicNanos);

/// What a clock shows now that was heard running, in microseconds.
fn running((clock, at): Heard, now: MonotonicNanos) -> i64 {
    let elapsed = (now.since(at) / 1000).cast_signed();
    clock.0.saturating_mul(MICROS_PER_MILLI).saturating_add(elapsed)
}

/// How far this machine's wall clock is ahead of the shard's, in milliseconds. Too much by the time
/// that the record was on its way.
pub fn wall_ahead_of(heard: Heard, wall_micros: i64, now: MonotonicNanos) -> i64 {
    wall_micros.saturating_sub(running(heard, now)) / MICROS_PER_MILLI
}

/// One shard's clock, in microseconds since 1970.
#[derive(Clone, Debug, Default)]
pub struct ShardClock {
    /// What it showed when it was last read.
    last: Option<(i64, MonotonicNanos)>,
    /// How far the wall clock was ahead then.
    ahead_micros: i64,
}

impl ShardClock {
    /// Reads it.
    pub fn read(&mut self, wall_micros: i64, now: MonotonicNanos) -> UnixMillis {
        let Some((before, then)) = self.last else {
            return self.set(wall_micros, wall_micros, now);
        };
        let elapsed = (now.since(then) / 1000).cast_signed();
        let expected = before.saturating_add(elapsed);
        let ahead = wall_micros.saturating_sub(expected);
        let shown = if ahead.saturating_abs() <= STEP_MICROS_MAX {
            wall_micros.max(before)
        } else {
            let slewed = elapsed / SLEW_PART;
            expected.saturating_add(ahead.clamp(-slewed, slewed))
        };
        self.set(shown, wall_micros, now)
    }

    /// Goes on with the clock of a shard that showed `clock` at an instant, or, if it was never
    /// heard running, with the wall clock. Never before `floor`, which is in the log.
    pub fn take_over(
        &mut self,
        heard: Option<Heard>,
        floor: UnixMillis,
        wall_micros: i64,
        now: MonotonicNanos,
    ) -> UnixMillis {
        let running = heard.map(|heard| running(heard, now));
        let floor = floor.0.saturating_mul(MICROS_PER_MILLI);
        self.set(running.unwrap_or(wall_micros).max(floor), wall_micros, now)
    }

    /// Goes on with the wall clock, whatever it showed.
    pub fn set_to_wall(&mut self, wall_micros: i64, now: MonotonicNanos) -> UnixMillis {
        self.set(wall_micros, wall_micros, now)
    }

    fn set(&mut self, micros: i64, wall_micros: i64, now: MonotonicNanos) -> UnixMillis {
        self.last = Some((micros, now));
        self.ahead_micros = wall_micros.saturating_sub(micros);
        UnixMillis(micros.div_euclid(MICROS_PER_MILLI))
    }

    /// How far the wall clock is ahead, in milliseconds: what is still to be made good.
    pub fn wall_ahead_millis(&self) -> i64 {
        self.ahead_micros / MICROS_PER_MILLI
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;
    const START: i64 = 1_767_225_600 * SECOND;

    /// Reads the clock each 10 ms of true time while the wall clock is ahead by `ahead`; what it
    /// shows after each, less true time.
    fn run(clock: &mut ShardClock, from: i64, seconds: i64, ahead: i64) -> Vec<i64> {
        let readings = (from * 100..(from + seconds) * 100).map(|step| {
            let micros = step * 10_000;
            let now = MonotonicNanos((micros * 1000).cast_unsigned());
            clock.read(START + micros + ahead, now).0 * 1000 - START - micros
        });
        readings.collect()
    }

    #[test]
    fn it_is_the_wall_clock_as_a_rule() {
        let mut clock = ShardClock::default();
        assert!(run(&mut clock, 0, 5, 0).iter().all(|error| *error == 0));
        let small = run(&mut clock, 5, 5, STEP_MICROS_MAX / 2);
        assert!(small.iter().all(|error| *error == STEP_MICROS_MAX / 2));
        assert_eq!(clock.wall_ahead_millis(), 0);
    }

    #[test]
    fn steps_are_caught_up_with_slowly_in_both_directions() {
        for step in [60 * SECOND, -60 * SECOND] {
            let mut clock = ShardClock::default();
            run(&mut clock, 0, 1, 0);
            let errors = run(&mut clock, 1, 300, step);
            let mut last = 0;
            for error in &errors {
                // In 10 ms it runs 2.5 ms apart, but for the last bit and for rounding.
                let jump = error - last;
                assert!(jump.abs() <= 2500 + 1000 || (step - error).abs() <= STEP_MICROS_MAX);
                assert!(jump >= -10_000, "it went back");
                last = *error;
            }
            assert!((errors[1000] - step / 24).abs() < SECOND, "after 10 s, {}", errors[1000]);
            assert_eq!(errors[29_999], step, "it has arrived");
        }
    }

    #[test]
    fn a_clock_from_a_damaged_log_is_survived() {
        for clock in [i64::MAX, i64::MIN] {
            let mut mine = ShardClock::default();
            let (first, later) = (MonotonicNanos(0), MonotonicNanos(u64::MAX));
            let heard = Some((UnixMillis(clock), first));
            let taken = mine.take_over(heard, UnixMillis(clock), START, later);
            assert!(mine.read(START, MonotonicNanos(u64::MAX)) >= taken);
            let ahead = wall_ahead_of((UnixMillis(clock), first), START, later);
            assert_eq!(ahead.signum(), -clock.signum(), "{ahead}");
        }
    }

    #[test]
    fn who_takes_over_goes_on_with_the_shards_clock() {
        let second = |seconds: u64| MonotonicNanos(seconds * 1_000_000_000);
        let mut clock = ShardClock::default();
        let hour = 3600 * SECOND;
        clock.read(START + hour, second(0));
        let heard = Some((UnixMillis(START / 1000), second(1)));
        let floor = UnixMillis(START / 1000);
        let taken = clock.take_over(heard, floor, START + hour, second(3));
        assert_eq!(taken.0, START / 1000 + 2000, "an hour's error is no jump");
        assert_eq!(clock.wall_ahead_millis(), 3_600_000 - 2000);
        assert_eq!(wall_ahead_of((floor, second(1)), START + hour, second(3)), 3_600_000 - 2000);
        assert_eq!(wall_ahead_of((floor, second(1)), START - hour, second(1)), -3_600_000);
        let later = clock.read(START + hour + SECOND, second(4));
        assert_eq!(later.0, taken.0 + 1250);
        // Nothing was heard since the start: time has passed while nobody served.
        assert_eq!(clock.take_over(None, floor, START + hour, second(5)).0, (START + hour) / 1000);
        let ahead = UnixMillis((START + 2 * hour) / 1000);
        assert_eq!(clock.take_over(None, ahead, START + hour, second(6)), ahead);
    }
}
