//! Time from a counter, for what is measured too often to ask a clock.
//!
//! A server notes how long each command takes. Reading a clock through the vDSO for that was 3 % of
//! the processor's time with pipelines of small commands; the processor's time-stamp counter (TSC)
//! takes a third of that.

use base::time::MILLISECOND;
use base::{Clock, MonotonicNanos};

/// Tells instants by a clock's counter: how long commands take. Never for leases and deadlines:
/// what it says of the time since it was last set is right to a thousandth, unless the counter
/// jumped meanwhile; then it is wrong by [`READ_NANOS_MAX`] at most.
#[derive(Default, Debug)]
pub(crate) struct Stopwatch {
    /// When it was last set.
    set: Reading,
    /// When the rate was last measured.
    measured: Option<Reading>,
    /// The rate that was measured then: nanoseconds of a tick, times 2^32.
    rate: Option<u64>,
    /// Whether the last two rates agree. If not, the clock is asked.
    is_sure: bool,
}

/// A clock and its counter, read one right after the other.
#[derive(Clone, Copy, Default, Debug)]
struct Reading {
    clock: MonotonicNanos,
    ticks: u64,
}

/// For how long the counter is compared with the clock to tell its rate, in nanoseconds. Readings
/// of both lie less than a microsecond apart, if nothing comes between them.
const RATE_NANOS_MIN: u64 = 100 * MILLISECOND;

/// Two measurements agree if they differ by one part of so many. Else something came between the
/// readings of one of them, or the counter jumped.
const RATE_PARTS: u64 = 1000;

/// What the counter may tell of the time since it was last set, in nanoseconds: beyond that the
/// clock is asked, so that a counter which jumped is never wrong by more. A guess, far longer than
/// a turn of small commands.
const READ_NANOS_MAX: u64 = 100 * MILLISECOND;

impl Stopwatch {
    /// Takes the clock's reading of just now.
    pub(crate) fn set(&mut self, now: MonotonicNanos, clock: &dyn Clock) {
        self.set = Reading { clock: now, ticks: clock.ticks() };
        let measured = *self.measured.get_or_insert(self.set);
        if now.since(measured.clock) >= RATE_NANOS_MIN {
            let last = std::mem::replace(&mut self.rate, rate_between(measured, self.set));
            self.is_sure = match (last, self.rate) {
                (Some(last), Some(rate)) => rate.abs_diff(last) <= last / RATE_PARTS,
                _ => false,
            };
            self.measured = Some(self.set);
        }
    }

    /// The time.
    #[inline]
    pub(crate) fn read(&self, clock: &dyn Clock) -> MonotonicNanos {
        let Some(rate) = self.rate.filter(|_| self.is_sure) else { return clock.monotonic() };
        let ticks = clock.ticks().checked_sub(self.set.ticks);
        match ticks.map(|ticks| (u128::from(ticks) * u128::from(rate)) >> 32) {
            Some(nanos) if nanos <= u128::from(READ_NANOS_MAX) => {
                MonotonicNanos(self.set.clock.0 + nanos as u64)
            }
            _ => clock.monotonic(),
        }
    }
}

/// Nanoseconds of a tick, times 2^32; `None` if the counter has not gone on.
fn rate_between(from: Reading, to: Reading) -> Option<u64> {
    let ticks = to.ticks.checked_sub(from.ticks).filter(|ticks| *ticks > 0)?;
    u64::try_from((u128::from(to.clock.since(from.clock)) << 32) / u128::from(ticks)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::SECOND;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A clock, and its counter.
    #[derive(Default)]
    struct Counting(AtomicU64, AtomicU64);

    impl Counting {
        fn pass(&self, nanos: u64, ticks: u64) {
            self.0.fetch_add(nanos, Ordering::Relaxed);
            self.1.fetch_add(ticks, Ordering::Relaxed);
        }
    }

    impl Clock for Counting {
        fn unix_micros(&self) -> i64 {
            0
        }

        fn monotonic(&self) -> MonotonicNanos {
            MonotonicNanos(self.0.load(Ordering::Relaxed))
        }

        fn ticks(&self) -> u64 {
            self.1.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn a_stopwatch_learns_the_rate_of_the_counter() {
        let (clock, mut watch) = (Counting::default(), Stopwatch::default());
        clock.pass(SECOND, 7);
        for _ in 0..5 {
            watch.set(clock.monotonic(), &clock);
            clock.pass(100 * MILLISECOND, 300 * MILLISECOND);
        }
        watch.set(clock.monotonic(), &clock);
        // Between two settings the counter alone says how much has passed.
        clock.pass(0, 3 * MILLISECOND);
        let read = watch.read(&clock).since(clock.monotonic());
        assert!(read.abs_diff(MILLISECOND) < 10, "{read}");
    }

    #[test]
    fn a_stopwatch_asks_the_clock_when_the_counter_jumps() {
        let jumps: [fn(&Counting); 3] = [
            |clock| clock.pass(SECOND, 0),
            |clock| clock.pass(SECOND, 1 << 60),
            |clock| clock.1.store(1, Ordering::Relaxed),
        ];
        for jump in jumps {
            let (clock, mut watch) = (Counting::default(), Stopwatch::default());
            for _ in 0..5 {
                clock.pass(100 * MILLISECOND, 300 * MILLISECOND);
                watch.set(clock.monotonic(), &clock);
            }
            jump(&clock);
            clock.pass(100 * MILLISECOND, 0);
            watch.set(clock.monotonic(), &clock);
            clock.pass(1, 1 << 40);
            assert_eq!(watch.read(&clock), clock.monotonic());
            for _ in 0..3 {
                clock.pass(100 * MILLISECOND, 300 * MILLISECOND);
                watch.set(clock.monotonic(), &clock);
            }
            clock.pass(0, 3 * MILLISECOND);
            assert!(watch.read(&clock) > clock.monotonic(), "it knows the rate again");
        }
    }

    #[test]
    fn a_counter_that_jumps_within_a_turn_is_not_believed() {
        let jumps: [fn(&Counting); 2] =
            [|clock| clock.pass(0, 1 << 60), |clock| clock.1.store(1, Ordering::Relaxed)];
        for jump in jumps {
            let (clock, mut watch) = (Counting::default(), Stopwatch::default());
            for _ in 0..5 {
                clock.pass(100 * MILLISECOND, 300 * MILLISECOND);
                watch.set(clock.monotonic(), &clock);
            }
            assert!(watch.is_sure);
            clock.pass(MILLISECOND, 0);
            jump(&clock);
            assert_eq!(watch.read(&clock), clock.monotonic());
        }
    }

    #[test]
    fn a_counter_that_is_read_late_once_is_not_believed() {
        let (clock, mut watch) = (Counting::default(), Stopwatch::default());
        // Each delay is what passed between the readings of the clock and of the counter.
        let right = [0, 0, 0, 100].map(|delay_millis| {
            clock.pass(100 * MILLISECOND, 300 * MILLISECOND);
            let now = clock.monotonic();
            clock.pass(delay_millis * MILLISECOND, 3 * delay_millis * MILLISECOND);
            watch.set(now, &clock);
            watch.is_sure
        });
        assert_eq!(right, [false, false, true, false]);
        let later = [1, 100, 100, 100].map(|millis| {
            clock.pass(millis * MILLISECOND, 3 * millis * MILLISECOND);
            watch.set(clock.monotonic(), &clock);
            watch.is_sure
        });
        assert_eq!(later, [false, false, true, true]);
    }
}
