//! What the tests of every service need of it.

use super::outside::{clock, entropy};
use base::driver::Waker;
use std::io;
use std::sync::Arc;
use txlog::remote::RemoteLog;
use txlog::remote::store::RecordStore;

/// Somewhere logs are kept, each under a name.
pub trait Place {
    /// Whether a record is accepted that fits by its number alone, so that some may be void though
    /// nobody else writes.
    const ACCEPTS_BY_NUMBER: bool;
    /// Whether the end of the log is known for certain.
    const CONFIRMS_TAIL: bool;

    /// Where the log of this name is, as `transaction-log` has it.
    fn url(&self, name: &str) -> String;

    /// Opens a log, or begins it. `entropy` becomes a new log's identity.
    ///
    /// # Errors
    /// Whatever the service's client says.
    fn open(&self, name: &str, waker: Waker, entropy: u64) -> io::Result<Box<dyn RecordStore>>;

    /// Deletes a log, as an operator does.
    fn delete(&self, name: &str);

    /// Takes down all that can be taken down, at once, and starts it again.
    fn crash(&self);

    /// A handle on a log.
    fn log(&self, name: &str, waker: Waker) -> RemoteLog {
        let store = self.open(name, waker, entropy()).expect("the log opens");
        RemoteLog::new(store, clock())
    }
}

/// Wakes nobody: for whoever looks all the time.
pub fn polled() -> Waker {
    Waker(Arc::new(|| {}))
}
