//! What every client is told when it opens a log or an archive.

use base::driver::Waker;
use base::{Clock, Incarnation};
use std::sync::Arc;
use std::time::Duration;

/// How a log is opened, beside its URL.
#[allow(dead_code, reason = "a build with fewer clients needs less")]
pub struct Opening {
    /// Goes on counting while the machine is suspended.
    pub clock: Arc<dyn Clock>,
    /// Called when something has come.
    pub waker: Waker,
    /// A log that is not there begins with this identity. `None`: it is an error, and nothing is
    /// written.
    pub new: Option<Incarnation>,
    pub broken: Option<Broken>,
}

/// How an archive is opened, beside its URL.
#[allow(dead_code, reason = "a build without clients needs nothing")]
pub struct OpeningArchive {
    /// Goes on counting while the machine is suspended.
    pub clock: Arc<dyn Clock>,
    /// Unpredictable: writers are named by it. `None`: to read, and nothing is put.
    pub entropy: Option<u64>,
    /// Between two renewals of a sign, where a test cannot wait for them.
    pub renewal: Option<Duration>,
}

/// A rule that a test breaks, to see that its checkers would notice. Each is of one service; others
/// do not know it.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// JetStream: puts name no expected sequence, and any acknowledgement will do.
    IgnoresNumbers,
    /// JetStream: an answer that leaves it open counts as stored.
    AssumesTheBest,
    /// JetStream: what one server says of the log's end counts as a quorum's word.
    TrustsTheTail,
    /// Objects: every answer is believed without a look at the floor, and no place is kept.
    TrustsAll,
    /// Objects: trimming deletes kept records like any others.
    TrimsKept,
    /// Objects: a writer deletes its record if it learns of it when the floor is not below it any
    /// more.
    DeletesLate,
}
