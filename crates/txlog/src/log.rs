//! The transaction log as its users see it: one ordered, durable sequence of records per shard.
//!
//! No call blocks and none returns a future: `append` hands a record over and `poll` tells what
//! became of it. The place that a record takes is known before it is taken (the record after `k`
//! is `k + 1`), so the next batch can be appended before the one in flight is durable.

use crate::chain::Chain;
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::fmt;

/// Names one question or append until its event arrives. Never reused within a log handle.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Ticket(pub u64);

/// What a backend takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// The largest record in bytes, its header included. Larger units are split.
    pub record_bytes_max: usize,
    /// Records in flight above which the gate says [`Gate::Wait`].
    pub in_flight_records_max: usize,
    /// Bytes in flight above which the gate says [`Gate::Wait`].
    pub in_flight_bytes_max: usize,
    /// What a start spends on one record beyond its bytes, as bytes of a snapshot that could be
    /// loaded in that time. Where records are many and small, it says when a snapshot is due.
    pub record_cost_bytes: u64,
}

/// Whether a write may be executed now. Asked *before* execution: what has executed is appended
/// and never gets an error.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Space for everything in flight and one more maximal batch is reserved.
    Open,
    /// Not now, soon: the bound on what is in flight is reached, or space is being prepared.
    /// Stop reading from writing clients and ask again after the next `poll`.
    Wait,
    /// Refuse by name. Reads go on.
    Refuse(Refusal),
}

/// Why the log takes no writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The disk is full. The log retries by itself and the gate opens when space is back.
    DiskFull,
    /// This handle does not hold the log (another writer claimed it, or none did yet).
    NotWriter,
    /// The log was deleted or created anew under its writer.
    LogLost,
    /// The service that keeps the log does not answer, or does not keep its promises. The gate
    /// opens when it does again. Says what is wrong.
    Unavailable(String),
    /// A sync failed; nothing more is ever written through this handle.
    Failed(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DiskFull => f.write_str("the disk of the transaction log is full"),
            Self::NotWriter => f.write_str("another writer holds the transaction log"),
            Self::LogLost => f.write_str("the transaction log was deleted or replaced"),
            Self::Unavailable(what) => {
                write!(f, "the transaction log is unavailable: {what}")
            }
            Self::Failed(what) => write!(f, "the transaction log failed: {what}"),
        }
    }
}

/// Why an append did not become durable at its predicted place, as far as the log can tell.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum AppendError {
    /// The log's tail is not where the append expected it. Nothing was written. Read the log: only
    /// a foreign `Lead` deposes.
    Conflict { tail: Position },
    /// The record may or may not be in the log. Its counter must not be reused for other bytes.
    InDoubt,
    /// Nothing was sent: an earlier append failed, or this handle may not write.
    NotAttempted,
    /// The backend is out of space, and nothing was written.
    Full,
    /// The record is larger than [`Limits::record_bytes_max`].
    TooLarge { bytes: usize, bytes_max: usize },
    /// The log is another one than the position names, or its tail lies below it.
    LogLost,
    /// The storage failed while making the record durable: whether it is there is unknown, and the
    /// handle is dead. Never retried: after a failed fsync the kernel may drop the pages and call
    /// the next one a success.
    Fatal(String),
}

impl fmt::Display for AppendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Conflict { tail } => write!(f, "the log's tail is {}", tail.sequence),
            Self::InDoubt => f.write_str("the record may or may not be in the log"),
            Self::NotAttempted => f.write_str("the record was not sent"),
            Self::Full => f.write_str("the log is out of space"),
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "the record has {bytes} bytes, the log takes {bytes_max}")
            }
            Self::LogLost => f.write_str("the log was deleted, replaced or cut"),
            Self::Fatal(what) => write!(f, "the log's storage failed: {what}"),
        }
    }
}

/// Whether a log holds what was once read of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum History {
    /// It does.
    Same,
    /// Something else stands there.
    Other,
    /// The record was trimmed.
    Trimmed,
    /// The log ends before the place, is gone, or is another one than the position names.
    Lost,
}

impl History {
    /// Judges a chain that stood before the first record: there nothing can stand that differs.
    pub(crate) fn of_origin(incarnation: Incarnation, chain: Chain) -> Self {
        if chain == Chain::start(incarnation) { Self::Same } else { Self::Other }
    }

    /// Judges the record that stands where the chain stood at `chain` when it was read.
    pub fn of_record(record: &[u8], chain: Chain) -> Self {
        if Chain::behind(record) == Some(chain) { Self::Same } else { Self::Other }
    }
}

/// What `poll` tells.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogEvent {
    /// Every record appended through this position is durable.
    Durable(Position),
    /// Records that do not count, a deposed writer's stragglers, stand where ours were to stand:
    /// every record appended and not yet told durable, and the place of the next, moves so many
    /// places on. Told before any of those is durable.
    Shifted { by: u64 },
    /// One append failed. Every later append of this handle fails too.
    Failed(Ticket, AppendError),
    /// The next committed record of the reading that `read_from` began.
    Read(Position, Bytes),
    /// The reading has handed out everything that was committed through here when it looked.
    CaughtUp(Position),
    /// The position asked for was trimmed: restore from a snapshot at or after `first - 1`.
    Trimmed { first: Sequence },
    /// The log read from is another one, or its tail lies below the position: never an empty log.
    Lost,
    /// Reading met damage. Says the file, the offset and the sequence.
    ReadFailed(String),
    /// Answers `tail`. `confirmed` is true where the backend can prove that nothing lies behind
    /// it (quorum read; for the file log: only while this handle holds the log).
    Tail { ticket: Ticket, position: Position, confirmed: bool },
    /// Answers `first`: the oldest record that can still be read.
    First { ticket: Ticket, position: Position },
    /// Answers `compare`.
    Compared { ticket: Ticket, history: History },
    /// A question could not be answered.
    Unanswered(Ticket, String),
    /// Answers `probe_holder`: whoever wrote this log is proven dead, so its lease need not be
    /// waited for.
    HolderDead,
}

/// One shard's log. See the conformance suite for what every backend must keep.
pub trait TransactionLog {
    /// The same as long as the log is open.
    fn limits(&self) -> Limits;

    /// Whether a write may be executed now. Nothing but [`Self::append`], [`Self::poll`] and
    /// [`Self::commit_inline`] changes it while this process writes.
    fn gate(&self) -> Gate;

    /// Hands a record over, to be placed right after `after`. Submit order is call order. The
    /// outcome is [`LogEvent::Durable`] at or past `after + 1`, or [`LogEvent::Failed`].
    fn append(&mut self, after: Position, record: Bytes) -> Ticket;

    /// Makes what is appended durable on the calling thread where the backend can and nothing is
    /// under way, saving two thread switches for a lone client. Blocks for one sync. Returns
    /// whether it did; `poll` then tells. Backends without an inline path do nothing.
    fn commit_inline(&mut self) -> bool {
        false
    }

    /// Appends what happened since the last poll, in order, and starts what can be started.
    fn poll(&mut self, events: &mut Vec<LogEvent>);

    /// Whether something is under way, so that `poll` should be called again.
    fn is_busy(&self) -> bool;

    /// In how many nanoseconds `poll` should be called although nothing woke the loop: a reader
    /// that must look for itself, an attempt to be repeated. `None`: not for that.
    fn wait_nanos(&self) -> Option<u64> {
        None
    }

    /// Begins to read at `from` (the first record wanted): committed records only, gapless, and
    /// then the tail as it grows. Replaces an earlier reading.
    fn read_from(&mut self, from: Position);

    /// Ends the reading: a leader knows what it appends.
    fn stop_reading(&mut self);

    /// Asks for the newest committed position.
    fn tail(&mut self) -> Ticket;

    /// Asks whether the log still is the history in which a record that counts stood at `position`
    /// and left the chain at `chain`. That record was durable: it was read here, or a snapshot
    /// stands behind it. [`LogEvent::Compared`] answers, once, with
    ///
    /// - [`History::Same`] or [`History::Other`] by the record that stands there; sequence 0, where
    ///   none stands, is compared with the chain of an empty log;
    /// - [`History::Trimmed`] if the log begins behind it, unless the backend knows the chain there
    ///   all the same;
    /// - [`History::Lost`] if the log ends before it or is another one, and only when that is as
    ///   sure as [`LogEvent::Lost`] of a reading. Until then the backend goes on asking.
    ///
    /// Or [`LogEvent::Unanswered`], if what stands there cannot be found out.
    fn compare(&mut self, position: Position, chain: Chain) -> Ticket;

    /// Asks whether who wrote the log is proven dead: [`LogEvent::HolderDead`] follows if so, and
    /// nothing otherwise. Silence proves nothing; most backends never know.
    fn probe_holder(&mut self) {}

    /// Whether another process may be waiting for the writer's lease to end: then the writer
    /// renews it although nobody writes. Cheap; may be stale by a fraction of a second.
    fn is_watched(&mut self) -> bool {
        true
    }

    /// Why the log would take no writes from whoever led it from here; `None` where nothing is
    /// known against it. A [`Gate`] says that of a writer, this of a candidate too.
    fn trouble(&self) -> Option<Refusal> {
        None
    }

    /// Lets records through `through` be forgotten. May forget fewer, never more.
    fn trim(&mut self, through: Position);

    /// Asks for the oldest readable position.
    fn first(&mut self) -> Ticket;
}
