//! How a tool waits: for its log, or for some time.

use base::driver::Waker;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long a log that says nothing is left alone. A guess: its waker comes before, if it works.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// Waits until whoever has its waker calls it.
pub struct Sleep(mpsc::Receiver<()>);

impl Sleep {
    /// And what ends it early.
    pub fn new() -> (Self, Waker) {
        let (wake, woken) = mpsc::sync_channel(1);
        // One call that waits is enough, and nobody waits any more at the end.
        let waker = Waker(Arc::new(move || wake.try_send(()).unwrap_or_default()));
        (Self(woken), waker)
    }

    /// Waits until the log has something to say, or until it is to be asked again.
    pub fn wait(&self, nanos: Option<u64>) {
        self.pause(nanos.map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX));
    }

    /// Waits for so long, or until it is woken. Whoever waits looks again in either case.
    pub fn pause(&self, time: Duration) {
        let _ = self.0.recv_timeout(time);
    }
}
