//! Instants, and the clock that tells them.

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
}

/// Tells the time. `world` reads the machine's clocks; `sim` decides what they say.
pub trait Clock: Send + Sync {
    /// Wall-clock microseconds since 1970-01-01 UTC (TIME needs microseconds).
    fn unix_micros(&self) -> i64;

    /// The monotonic clock, which also counts time during which the machine was suspended.
    fn monotonic(&self) -> MonotonicNanos;

    /// Wall-clock milliseconds since 1970-01-01 UTC.
    fn unix_millis(&self) -> UnixMillis {
        UnixMillis(self.unix_micros().div_euclid(1000))
    }
}
