//! The times that are read: what passed, and how long this process used a core or wanted one.

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since some time before the start. It never goes back.
pub fn now_nanos() -> u64 {
    nanos(ClockId::Monotonic)
}

/// Nanoseconds of a core that this process has used, in the kernel too.
pub fn used_nanos() -> u64 {
    nanos(ClockId::ProcessCPUTime)
}

/// Nanoseconds in which this process was ready to run while others had the core; 0 where the kernel
/// does not count them. Without them a load that is kept from its core would seem to be idle.
pub fn kept_waiting_nanos() -> u64 {
    let counts = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    counts.split_whitespace().nth(1).and_then(|nanos| nanos.parse().ok()).unwrap_or(0)
}

fn nanos(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).expect("neither clock begins below zero");
    seconds * 1_000_000_000 + u64::try_from(time.tv_nsec).expect("below 10⁹")
}
