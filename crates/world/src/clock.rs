//! The machine's clocks. The wall clock and the monotonic one are read through the vDSO: no system
//! call, some 20–40 ns each. The counter beneath them takes a third of that. The time of a thread
//! is a system call, some 300 ns.

use crate::vmclock::VmClock;
use base::time::{Clock, MonotonicNanos};
use rustix::time::{ClockId, clock_gettime};
#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

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

    fn ticks(&self) -> u64 {
        #[cfg(target_arch = "x86_64")]
        if *LINUX_TRUSTS_TSC {
            // SAFETY: it reads a register. Every processor of this architecture that Linux runs on
            // has the instruction, and Linux, which could forbid it to a process (`PR_SET_TSC`),
            // uses it for this process itself, in the vDSO.
            return unsafe { std::arch::x86_64::_rdtsc() };
        }
        self.monotonic().0
    }

    fn thread_nanos(&self) -> u64 {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        // A thread has never had less than no time.
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    }

    fn disruptions(&self) -> u64 {
        VmClock::of_machine().map_or(0, VmClock::marker)
    }
}

/// Whether Linux itself tells the time by the processor's time-stamp counter (TSC): then it has
/// found that it goes on evenly, and on all cores alike. Asked once: who uses the counter compares
/// it with the clock.
#[cfg(target_arch = "x86_64")]
static LINUX_TRUSTS_TSC: LazyLock<bool> = LazyLock::new(|| {
    let source = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    std::fs::read_to_string(source).is_ok_and(|name| name.trim() == "tsc")
});

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
    fn the_counter_goes_on_evenly_with_the_clock() {
        let reading = || (RealClock.monotonic().0 as f64, RealClock.ticks() as f64);
        let rate = || {
            let (began, first) = reading();
            loop {
                let (now, ticks) = reading();
                if now - began > 5e6 {
                    return (ticks - first) / (now - began);
                }
            }
        };
        // The thread may lose its processor between two readings: not in half of all cases.
        let mut rates: Vec<f64> = (0..40).map(|_| rate()).collect();
        rates.sort_by(f64::total_cmp);
        let (quarter, median) = (rates[10], rates[20]);
        assert!((quarter / median - 1.0).abs() < 0.01, "{rates:?}");
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
