//! epoll, and the waker that ends a wait from another thread.
//!
//! Everything but listeners is edge-triggered: a connection is registered once, for both
//! directions, and never touched again; the kernel does not have to look at it a second time after
//! each report, as level-triggered registration would make it.

use base::driver::Waker;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// Reports taken from the kernel in one wait. Bounds the length of a turn of the loop; what is
/// left over is first in line at the next wait.
const REPORTS_MAX: usize = 1024;

/// Longest wait asked of the kernel. Longer ones end early, for nothing: `epoll_pwait` counts in 32
/// bits of milliseconds, and the call that counts further may be forbidden in a container.
const WAIT_NANOS_MAX: u64 = 3_600_000_000_000;

/// What epoll says of the waker. Listeners and the signal pipe follow.
pub const WAKER: u64 = 0;
pub const SIGNALS: u64 = 1;
pub const FIRST_LISTENER: u64 = 2;

const RUNNING: u8 = 0;
const WAITING: u8 = 1;
const WOKEN: u8 = 2;

/// Wakes cost a system call only while the loop really waits.
#[derive(Debug)]
struct Alarm {
    state: AtomicU8,
    eventfd: OwnedFd,
}

impl Alarm {
    fn ring(&self) {
        // AcqRel: what the caller queued before is seen by the loop after its wait.
        if self.state.swap(WOKEN, Ordering::AcqRel) == WAITING {
            // It fails only when the counter would overflow, and then it is readable anyway. The
            // counter is never read back: every write is an edge of its own.
            let _ = rustix::io::write(&self.eventfd, &1_u64.to_ne_bytes());
        }
    }
}

pub struct Poller {
    epoll: OwnedFd,
    alarm: Arc<Alarm>,
    reports: Vec<epoll::Event>,
}

impl Poller {
    pub fn new() -> io::Result<Self> {
        let alarm = Alarm {
            state: AtomicU8::new(RUNNING),
            eventfd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
        };
        let poller = Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            alarm: Arc::new(alarm),
            reports: Vec::with_capacity(REPORTS_MAX),
        };
        poller.add(&poller.alarm.eventfd, WAKER, EventFlags::IN | EventFlags::ET)?;
        Ok(poller)
    }

    pub fn waker(&self) -> Waker {
        let alarm = Arc::clone(&self.alarm);
        Waker(Arc::new(move || alarm.ring()))
    }

    pub fn add(&self, source: impl AsFd, datum: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(datum), flags)?)
    }

    pub fn modify(&self, source: impl AsFd, datum: u64, flags: EventFlags) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(datum), flags)?)
    }

    pub fn remove(&self, source: impl AsFd) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// Waits at most `timeout_nanos` (without limit if `None`), or not at all if the waker was
    /// called since the last wait. How many reports [`Self::report`] has then.
    pub fn wait(&mut self, timeout_nanos: Option<u64>) -> usize {
        let may_sleep = timeout_nanos != Some(0)
            && self
                .alarm
                .state
                .compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire)
                .is_ok();
        let timeout = if may_sleep { timeout_nanos.map(timespec) } else { Some(timespec(0)) };
        self.reports.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.reports);
        match epoll::wait(&self.epoll, spare, timeout.as_ref()) {
            // A signal is an early end of the wait. Nothing else is possible: the descriptor and
            // the buffer are ours.
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => panic!("epoll_wait failed: {error}"),
        }
        self.alarm.state.swap(RUNNING, Ordering::AcqRel);
        self.reports.len()
    }

    /// The datum and the flags of a report of the last wait.
    pub fn report(&self, index: usize) -> (u64, EventFlags) {
        let report = self.reports[index];
        (report.data.u64(), report.flags)
    }
}

fn timespec(nanos: u64) -> Timespec {
    let nanos = nanos.min(WAIT_NANOS_MAX);
    Timespec { tv_sec: (nanos / 1_000_000_000) as i64, tv_nsec: (nanos % 1_000_000_000) as i64 }
}
