//! How a tool waits: for its log, or for some time.

use base::driver::Waker;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long a log that says nothing is left alone. A guess: its waker comes before, if it works.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Waits until whoever has its waker calls it.
pub struct Sleep {
    woken: mpsc::Receiver<()>,
    /// Kept, because nothing waits for a channel that nobody can send to.
    _wake: mpsc::SyncSender<()>,
}

impl Sleep {
    /// And what ends it early.
    pub fn new() -> (Self, Waker) {
        let (wake, woken) = mpsc::sync_channel(1);
        // One call that waits is enough, and nobody waits any more at the end.
        let sends = wake.clone();
        let waker = Waker(Arc::new(move || sends.try_send(()).unwrap_or_default()));
        (Self { woken, _wake: wake }, waker)
    }

    /// Waits until the log has something to say, or until it is to be asked again.
    pub fn wait(&self, nanos: Option<u64>) {
        self.pause(nanos.map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX));
    }

    /// Waits for so long, or until it is woken. Whoever waits looks again in either case.
    pub fn pause(&self, time: Duration) {
        let _ = self.woken.recv_timeout(time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::Clock;
    use world::clock::RealClock;

    #[test]
    fn it_sleeps_although_nobody_has_its_waker_and_wakes_when_called() {
        let (sleep, waker) = Sleep::new();
        drop(waker);
        let began = RealClock.monotonic();
        sleep.pause(Duration::from_millis(20));
        assert!(RealClock.monotonic().since(began) >= 19_000_000);
        let (sleep, waker) = Sleep::new();
        waker.wake();
        sleep.pause(Duration::from_secs(600));
    }
}
