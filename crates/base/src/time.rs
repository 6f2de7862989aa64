//! Instants, and the clock that tells them.

/// A millisecond, in nanoseconds.
pub const MILLISECOND: u64 = 1_000_000;

/// A second, in nanoseconds.
pub const SECOND: u64 = 1_000_000_000;

/// The longest lease of leadership that a server can be told to take, in nanoseconds: the upper
/// bound of `transaction-log-lease`. Who loads a snapshot may find no record behind it that says
/// how long the holder's lease is, and then waits as if it were this long.
pub const LEASE_NANOS_MAX: u64 = 60 * SECOND;

/// Milliseconds since 1970-01-01 UTC. Expiry times and reply times are measured in it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct UnixMillis(pub i64);

/// Nanoseconds on a clock that never goes back, from an arbitrary start. For durations only.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MonotonicNanos(pub u64);

impl MonotonicNanos {
    /// Nanoseconds from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// So many milliseconds later. What lies beyond the end of time is an instant that never comes.
    pub const fn after_millis(self, millis: u64) -> Self {
        Self(self.0.saturating_add(millis.saturating_mul(MILLISECOND)))
    }

    /// Whole seconds from `earlier` to `self`, 0 if `earlier` is later.
    pub const fn seconds_since(self, earlier: Self) -> u64 {
        self.since(earlier) / SECOND
    }
}

/// Readings of a machine's clocks at one instant, to tell how long ago that was.
///
/// One clock is not enough: a hypervisor that stops a machine may stop its monotonic clock too, and
/// then sets the wall clock right, or says on the machine's page that the clocks were disrupted.
/// `docs/protocol.md` tells which freezes are noticed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Moment {
    pub monotonic: MonotonicNanos,
    pub wall_micros: i64,
    /// As [`Clock::disruptions`] says.
    pub disruptions: u64,
}

impl Moment {
    /// The readings of these clocks now.
    pub fn read(clock: &(impl Clock + ?Sized)) -> Self {
        Self {
            disruptions: clock.disruptions(),
            monotonic: clock.monotonic(),
            wall_micros: clock.unix_micros(),
        }
    }

    /// Nanoseconds from `earlier` to `self`, by whichever of the two clocks has gone further: never
    /// too few if either was right, and the wall clock was not set back. The most there are if the
    /// clocks were disrupted in between.
    ///
    /// For a wait that must not be too short, use the monotonic clock alone: whoever sets the wall
    /// clock forward would shorten it.
    pub const fn longest_since(self, earlier: Self) -> u64 {
        if self.disruptions != earlier.disruptions {
            return u64::MAX;
        }
        let monotonic = self.monotonic.since(earlier.monotonic);
        let wall = self.wall_nanos_since(earlier);
        if wall > monotonic { wall } else { monotonic }
    }

    /// By how many nanoseconds the wall clock has gone further than the monotonic one, or, if the
    /// machine says that its clocks were disrupted, the most there are.
    pub const fn gap_since(self, earlier: Self) -> u64 {
        if self.disruptions != earlier.disruptions {
            return u64::MAX;
        }
        self.longest_since(earlier) - self.monotonic.since(earlier.monotonic)
    }

    /// By how many microseconds the wall clock was set back between `earlier` and `self`. Less than
    /// a millisecond is nothing: it is what the two readings of one moment lie apart. (If the
    /// process does not run between those, that looks like a step forward and one back.)
    pub const fn step_back_since(self, earlier: Self) -> u64 {
        const STEP_MICROS: i64 = 1000;
        let gone_micros = (self.monotonic.since(earlier.monotonic) / 1000).cast_signed();
        let shown_micros = self.wall_micros.saturating_sub(earlier.wall_micros);
        let micros = gone_micros.saturating_sub(shown_micros);
        if micros < STEP_MICROS { 0 } else { micros.cast_unsigned() }
    }

    /// 0 if the wall clock went back.
    const fn wall_nanos_since(self, earlier: Self) -> u64 {
        let micros = self.wall_micros.saturating_sub(earlier.wall_micros);
        if micros < 0 { 0 } else { micros.cast_unsigned().saturating_mul(1000) }
    }
}

/// Tells the time. `world` reads the machine's clocks; `sim` decides what they say.
pub trait Clock: Send + Sync {
    /// Wall-clock microseconds since 1970-01-01 UTC (TIME needs microseconds).
    fn unix_micros(&self) -> i64;

    /// The monotonic clock, which also counts time during which the machine was suspended. It may
    /// stand still while a hypervisor stops the machine.
    fn monotonic(&self) -> MonotonicNanos;

    /// Reads a counter that is cheaper than the clock where the machine has one (on x86-64 the
    /// time-stamp counter). Its unit is unknown, and it may jump when the machine is suspended or
    /// migrated: compare it with [`Self::monotonic`]. By default that clock, in nanoseconds.
    fn ticks(&self) -> u64 {
        self.monotonic().0
    }

    /// Time that the calling thread has had a processor, in nanoseconds from any beginning: without
    /// what others took of it, the hypervisor included where Linux is told so. A system call. By
    /// default the monotonic clock.
    fn thread_nanos(&self) -> u64 {
        self.monotonic().0
    }

    /// Takes another value whenever the clocks were disrupted and the machine is told so.
    fn disruptions(&self) -> u64 {
        0
    }

    /// Both clocks.
    fn moment(&self) -> Moment {
        Moment::read(self)
    }

    /// Wall-clock milliseconds since 1970-01-01 UTC.
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(self.unix_micros().div_euclid(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(monotonic_millis: u64, wall_millis: i64) -> Moment {
        Moment {
            monotonic: MonotonicNanos(monotonic_millis * 1_000_000),
            wall_micros: wall_millis.saturating_mul(1000),
            disruptions: 0,
        }
    }

    #[test]
    fn the_clock_that_has_gone_further_counts() {
        let began = moment(100, 5000);
        assert_eq!(moment(350, 5250).longest_since(began), 250_000_000);
        assert_eq!(moment(350, 15_000).longest_since(began), 10_000_000_000, "it was frozen");
        assert_eq!(moment(350, 1000).longest_since(began), 250_000_000, "the wall was set back");
        assert_eq!(moment(350, 15_000).gap_since(began), 9_750_000_000);
        assert_eq!(moment(350, 1000).gap_since(began), 0);
        assert_eq!(moment(350, i64::MAX).longest_since(moment(0, i64::MIN)), u64::MAX);
    }

    #[test]
    fn a_step_back_is_told_from_the_time_that_has_gone() {
        let began = moment(100, 5000);
        assert_eq!(moment(200, 5100).step_back_since(began), 0, "the clocks agree");
        assert_eq!(moment(200, 15_100).step_back_since(began), 0, "it was set forward");
        assert_eq!(moment(200, 3100).step_back_since(began), 2_000_000);
        assert_eq!(moment(200, 5050).step_back_since(began), 50_000, "it shows more, but less");
        let apart = Moment { wall_micros: 5_099_500, ..moment(200, 0) };
        assert_eq!(apart.step_back_since(began), 0, "the readings of one moment");
        assert!(moment(u64::MAX / 1_000_000, i64::MIN).step_back_since(began) > 0);
    }

    #[test]
    fn a_disruption_leaves_nothing_to_compare() {
        let began = moment(100, 5000);
        let later = Moment { disruptions: 1, ..began };
        assert_eq!(later.longest_since(began), u64::MAX);
        assert_eq!(later.gap_since(began), u64::MAX);
    }
}
