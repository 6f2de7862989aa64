//! What a log needs of a service that keeps numbered records: JetStream, etcd, an object store.
//!
//! A store checks numbers and nothing else. What makes a log of it, in order, without gaps and with
//! every doubt resolved, is [`super::RemoteLog`], which is the same for all of them and knows
//! neither threads nor sockets. So a store is small: it carries operations to the service, several
//! at a time, and says how each ended.

use crate::log::Refusal;
use base::{Incarnation, Sequence};
use bytes::Bytes;

/// Names an operation until its outcome comes. Never reused within a store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct OperationId(pub u64);

/// What is asked of a store.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Keep a record at this place, if the log ends right before it. The next puts may be begun
    /// before this one has ended; the service takes them in the order in which they were begun.
    /// Ends with [`Outcome::Stored`], [`Outcome::Misplaced`], [`Outcome::InDoubt`],
    /// [`Outcome::Full`], [`Outcome::Failed`] (nothing was sent) or [`Outcome::Lost`].
    Put { sequence: Sequence, record: Bytes },
    /// Hand out committed records from this place on, as many as `bytes_max` holds, but at least
    /// one if there is one. If there is none and `waits`, the answer may take its time (some
    /// seconds at most), until there is one. Ends with [`Outcome::Records`], [`Outcome::Trimmed`],
    /// [`Outcome::Failed`] or [`Outcome::Lost`].
    Get { from: Sequence, bytes_max: usize, waits: bool },
    /// The newest committed record. Ends with [`Outcome::Tail`], `Failed` or `Lost`.
    Tail,
    /// The oldest record that can be read. Ends with [`Outcome::First`], `Failed` or `Lost`.
    First,
    /// Forget records through this place; fewer, where that is simpler, and never the newest one.
    /// Ends with [`Outcome::First`], `Failed` or `Lost`.
    Trim { through: Sequence },
}

/// How an operation ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The record is durable at the place asked for, as the backend's promise goes.
    Stored,
    /// Nothing was written: the log does not end right before that place. The place may hold the
    /// very record, put there by an earlier attempt.
    Misplaced,
    /// Whether the record was or will be written is unknown: no answer came, or one that leaves it
    /// open. Says what happened.
    InDoubt(String),
    /// Nothing was written: the service is out of space, or about to be.
    Full(String),
    /// Records in order, without gaps, from the place asked for on; none if the log ends before
    /// it. `tail`: the newest record known; at least the last one handed out. A log so new that it
    /// holds none says 0.
    Records { records: Vec<Bytes>, tail: Sequence },
    /// The place asked for was trimmed; `first` is the oldest there is.
    Trimmed { first: Sequence },
    /// `is_confirmed`: a quorum says that no newer record was acknowledged when the question was
    /// asked. A cut-off leader's word is none.
    Tail { sequence: Sequence, is_confirmed: bool },
    /// The oldest record that can be read; of an empty log, the one after the tail.
    First { sequence: Sequence },
    /// The question was not answered, or not even sent, and nothing has changed. It may be asked
    /// again.
    Failed(String),
    /// The log is gone, or another one stands under its name.
    Lost(String),
}

/// The highest number that is any record's: a million a second for 290,000 years. What a service
/// names beyond it was made up or damaged, and would overflow whoever counts on from it.
pub const SEQUENCE_MAX: Sequence = Sequence(u64::MAX >> 1);

/// What a store takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreLimits {
    /// The largest record in bytes.
    pub record_bytes_max: usize,
    /// Puts that may be under way at a time: 1 where each must name its predecessor's success.
    pub puts_max: usize,
    /// As [`crate::Limits::record_cost_bytes`].
    pub record_cost_bytes: u64,
}

/// A service that keeps numbered records. No call blocks.
pub trait RecordStore {
    fn limits(&self) -> StoreLimits;

    /// Which life of the log it is connected to.
    fn incarnation(&self) -> Incarnation;

    /// Begins an operation. Its outcome comes by [`Self::poll`], exactly once, however long it
    /// takes: a store sees to it that nothing stays unanswered for ever.
    fn begin(&mut self, operation: Operation) -> OperationId;

    /// Appends the outcomes that have come, in the order in which they came.
    fn poll(&mut self, outcomes: &mut Vec<(OperationId, Outcome)>);

    /// Why no writes should be accepted now, although none has failed: the service cannot be
    /// reached, lacks space, or does not keep its promise (`sync_always`).
    fn trouble(&self) -> Option<Refusal>;
}
