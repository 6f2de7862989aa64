//! From the log to a serving shard: replay what is committed, then lead.

use crate::shard::Shard;
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use engine::apply::ApplyError;
use engine::execute::Engine;
use std::fmt;
use txlog::{
    Chain, Consumed, FollowError, Follower, Kind, LogError, LogEvent, Stamper, TransactionLog,
    WriterId,
};

/// Why a log cannot be replayed.
#[derive(Debug)]
pub enum RecoveryError {
    /// A record that no reader may pass over.
    Follow(Sequence, FollowError),
    /// A record whose effects do not fit.
    Apply(Sequence, ApplyError),
    /// The log refused this process as its writer.
    NotWriter(String),
    /// The log cannot be read.
    Log(LogError),
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follow(at, error) => write!(f, "record {at} of the log: {error}"),
            Self::Apply(at, ApplyError::Malformed(error)) => {
                write!(f, "record {at} of the log: {} at byte {}", error.what, error.offset)
            }
            Self::Apply(at, ApplyError::Impossible { effect_index }) => {
                write!(f, "record {at} of the log: effect {effect_index} does not fit its key")
            }
            Self::NotWriter(why) => write!(f, "the log does not take this writer: {why}"),
            Self::Log(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecoveryError {}

/// Applies a log's records to an engine, in order.
pub struct Replayer {
    follower: Follower,
    clock: UnixMillis,
    /// Effects applied so far.
    pub effects: u64,
}

impl Replayer {
    /// Begins after `at`, where the chain stands at `chain`.
    pub fn new(at: Sequence, chain: Chain) -> Self {
        Self { follower: Follower::new(at, chain), clock: UnixMillis(0), effects: 0 }
    }

    /// The clock stood here before the first record.
    pub fn clock_at_least(&mut self, clock: UnixMillis) {
        self.clock = self.clock.max(clock);
    }

    /// Applies the next record.
    ///
    /// # Errors
    /// [`RecoveryError`] if it is damaged or does not fit; the engine is then of no use.
    pub fn consume(
        &mut self,
        engine: &mut Engine,
        sequence: Sequence,
        bytes: &Bytes,
    ) -> Result<(), RecoveryError> {
        let consumed = self
            .follower
            .consume(sequence, bytes)
            .map_err(|error| RecoveryError::Follow(sequence, error))?;
        let Consumed::Record(record) = consumed else { return Ok(()) };
        self.clock = self.clock.max(record.header.clock);
        if record.header.kind == Kind::Data {
            let applied = engine.keyspace.apply_payload(&record.payload, record.header.clock);
            self.effects += applied.map_err(|error| RecoveryError::Apply(sequence, error))?;
        }
        Ok(())
    }

    pub fn chain(&self) -> Chain {
        self.follower.chain()
    }

    /// The last record consumed.
    pub fn at(&self) -> Sequence {
        self.follower.at()
    }

    /// The newest clock in the records.
    pub fn clock(&self) -> UnixMillis {
        self.clock
    }
}

/// Takes the lead of a log whose every record was replayed, and waits until that is durable.
/// Blocks: for the start of a server. `wait` is called while the log works.
///
/// # Errors
/// The log refuses: another process leads it, or its storage failed.
pub fn lead(
    engine: Engine,
    mut log: Box<dyn TransactionLog>,
    replayed: &Replayer,
    incarnation: base::Incarnation,
    writer: WriterId,
    now: UnixMillis,
    mut wait: impl FnMut(),
) -> Result<Shard, RecoveryError> {
    let mut stamper = Stamper::new(writer, replayed.chain(), replayed.clock());
    let applied = Position { incarnation, sequence: replayed.at() };
    let record = stamper.lead(LEASE_MILLIS, now, applied.sequence);
    log.append(applied, record);
    let led = Position { incarnation, sequence: applied.sequence.next() };
    let mut events = Vec::new();
    loop {
        log.poll(&mut events);
        for event in events.drain(..) {
            match event {
                LogEvent::Durable(position) if position.sequence >= led.sequence => {
                    return Ok(Shard::new(engine, log, stamper, led));
                }
                LogEvent::Failed(_, error) => {
                    return Err(RecoveryError::NotWriter(error.to_string()));
                }
                _ => {}
            }
        }
        wait();
    }
}

/// The lease that a `Lead` grants, in milliseconds. A process that holds a file log's lock needs
/// none; challengers on the same host read it.
const LEASE_MILLIS: u64 = 2000;
