//! The machine's clocks. Both readings go through the vDSO: no system call, some 20–40 ns each.

use crate::vmclock::VmClock;
use base::time::{Clock, MonotonicNanos};
use rustix::time::{ClockId, clock_gettime};

/// Wall clock: `CLOCK_REALTIME`. Monotonic clock: `CLOCK_BOOTTIME`, which goes on counting while
/// the machine is suspended, as a lease must. A hypervisor that stops the machine may stop it too.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealClock;

impl Clock for RealClock {
    fn unix_micros(&self) -> i64 {
        let now = clock_gettime(ClockId::Realtime);
        now.tv_sec * 1_000_000 + now.tv_nsec / 1_000
    }

    fn monotonic(&self) -> MonotonicNanos {
        let now = clock_gettime(ClockId::Boottime);
        // Time since boot is never negative.
        MonotonicNanos(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64)
    }

    fn disruptions(&self) -> u64 {
        VmClock::of_machine().map_or(0, VmClock::marker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_clock_does_not_go_back() {
        let mut before = RealClock.monotonic();
        for _ in 0..10_000 {
            let now = RealClock.monotonic();
            assert!(now >= before);
            before = now;
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "compares with the clock of std")]
    fn wall_clock_agrees_with_std() {
        let before = std::time::SystemTime::now();
        let micros = RealClock.unix_micros();
        let after = std::time::SystemTime::now();
        let since_epoch = |at: std::time::SystemTime| {
            at.duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_micros() as i64
        };
        assert!((since_epoch(before)..=since_epoch(after)).contains(&micros));
    }
}
