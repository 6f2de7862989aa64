//! A log in memory: the reference backend, with faults on demand. For tests and the simulator.
//!
//! Several handles share one [`MemoryLog`], as several nodes share a remote log. Like JetStream it
//! checks a *number* only: a deposed writer's later records may be accepted, and it is the readers
//! that must find them void.

use crate::chain::Chain;
use crate::log::{AppendError, Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What the log will do wrong, for the handle that sets it.
#[derive(Clone, Copy, Default, Debug)]
pub struct MemoryFaults {
    /// Appends stay in flight: nothing becomes durable and nothing fails.
    pub is_stalled: bool,
    /// The gate refuses as if the disk were full.
    pub is_full: bool,
    /// The next append is stored, and its acknowledgement is lost.
    pub loses_next_ack: bool,
    /// The next append is not stored, and its writer cannot know.
    pub loses_next_append: bool,
}

/// The stored log that handles share.
#[derive(Clone, Debug)]
pub struct MemoryLog {
    stored: Arc<Mutex<Stored>>,
}

#[derive(Debug)]
struct Stored {
    incarnation: Incarnation,
    /// The sequence of the first record kept.
    first: Sequence,
    records: VecDeque<Bytes>,
}

impl Stored {
    fn tail(&self) -> Position {
        let sequence = Sequence(self.first.0 - 1 + self.records.len() as u64);
        Position { incarnation: self.incarnation, sequence }
    }
}

impl MemoryLog {
    pub fn new(incarnation: Incarnation) -> Self {
        let stored = Stored { incarnation, first: Sequence(1), records: VecDeque::new() };
        Self { stored: Arc::new(Mutex::new(stored)) }
    }

    /// A handle with the given record limit.
    pub fn handle(&self, record_bytes_max: usize) -> MemoryHandle {
        MemoryHandle {
            log: self.clone(),
            record_bytes_max,
            faults: MemoryFaults::default(),
            queued: VecDeque::new(),
            failed: None,
            reading: None,
            told: None,
            events: Vec::new(),
            tickets: 0,
        }
    }

    /// The newest position.
    pub fn tail(&self) -> Position {
        self.stored().tail()
    }

    /// Deletes the log and creates it anew under another incarnation.
    pub fn recreate(&self, incarnation: Incarnation) {
        *self.stored() = Stored { incarnation, first: Sequence(1), records: VecDeque::new() };
    }

    /// Loses the newest records, as no healthy log does.
    pub fn cut(&self, tail: Sequence) {
        let mut stored = self.stored();
        let kept = tail.0.saturating_sub(stored.first.0 - 1) as usize;
        stored.records.truncate(kept);
    }

    fn stored(&self) -> MutexGuard<'_, Stored> {
        self.stored.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One node's view of a [`MemoryLog`].
pub struct MemoryHandle {
    log: MemoryLog,
    record_bytes_max: usize,
    faults: MemoryFaults,
    queued: VecDeque<(Ticket, Position, Bytes)>,
    failed: Option<Refusal>,
    reading: Option<Position>,
    told: Option<Position>,
    events: Vec<LogEvent>,
    tickets: u64,
}

/// Records in flight above which the gate says wait.
const IN_FLIGHT_RECORDS_MAX: usize = 64;
/// Bytes in flight above which the gate says wait.
const IN_FLIGHT_BYTES_MAX: usize = 16 << 20;

impl MemoryHandle {
    pub fn set_faults(&mut self, faults: MemoryFaults) {
        self.faults = faults;
    }

    /// Starts over after a failure, as a node does that has read the log and leads again.
    pub fn reopen(&mut self) {
        self.failed = None;
        self.queued.clear();
        self.events.clear();
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn fail(&mut self, ticket: Ticket, error: AppendError) {
        let refusal = match &error {
            AppendError::LogLost => Refusal::LogLost,
            _ => Refusal::NotWriter,
        };
        self.failed = Some(refusal);
        self.events.push(LogEvent::Failed(ticket, error));
    }

    /// Stores what is queued. A failure does not stop what was sent behind it: those records are
    /// on the wire already, and are accepted if their numbers fit.
    fn store(&mut self) {
        let log = self.log.clone();
        let mut stored = log.stored();
        while let Some((ticket, after, bytes)) = self.queued.pop_front() {
            let tail = stored.tail();
            if after.incarnation != tail.incarnation {
                self.fail(ticket, AppendError::LogLost);
                continue;
            }
            if after != tail {
                self.fail(ticket, AppendError::Conflict { tail });
                continue;
            }
            if std::mem::take(&mut self.faults.loses_next_append) {
                self.fail(ticket, AppendError::InDoubt);
                continue;
            }
            stored.records.push_back(bytes);
            if std::mem::take(&mut self.faults.loses_next_ack) {
                self.fail(ticket, AppendError::InDoubt);
            } else if self.failed.is_none() {
                self.events.push(LogEvent::Durable(after.next()));
            } else {
                // It is stored, but an earlier one is not: it does not count.
                self.events.push(LogEvent::Failed(ticket, AppendError::InDoubt));
            }
        }
    }

    fn read(&mut self) {
        let Some(mut next) = self.reading else { return };
        let log = self.log.clone();
        let stored = log.stored();
        let tail = stored.tail();
        if next.incarnation != tail.incarnation || next.sequence > tail.sequence.next() {
            self.events.push(LogEvent::Lost);
            self.reading = None;
            return;
        }
        if next.sequence < stored.first {
            self.events.push(LogEvent::Trimmed { first: stored.first });
            self.reading = None;
            return;
        }
        while next.sequence <= tail.sequence {
            let index = (next.sequence.0 - stored.first.0) as usize;
            self.events.push(LogEvent::Read(next, stored.records[index].clone()));
            next = next.next();
        }
        self.reading = Some(next);
        if self.told != Some(tail) {
            self.told = Some(tail);
            self.events.push(LogEvent::CaughtUp(tail));
        }
    }
}

impl TransactionLog for MemoryHandle {
    fn limits(&self) -> Limits {
        Limits {
            record_bytes_max: self.record_bytes_max,
            in_flight_records_max: IN_FLIGHT_RECORDS_MAX,
            in_flight_bytes_max: IN_FLIGHT_BYTES_MAX,
            record_cost_bytes: 0,
        }
    }

    fn gate(&self) -> Gate {
        if let Some(refusal) = &self.failed {
            return Gate::Refuse(refusal.clone());
        }
        if self.faults.is_full {
            return Gate::Refuse(Refusal::DiskFull);
        }
        let bytes: usize = self.queued.iter().map(|(_, _, bytes)| bytes.len()).sum();
        let is_busy = self.queued.len() >= IN_FLIGHT_RECORDS_MAX || bytes >= IN_FLIGHT_BYTES_MAX;
        if is_busy { Gate::Wait } else { Gate::Open }
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        let ticket = self.ticket();
        if record.len() > self.record_bytes_max {
            let (bytes, bytes_max) = (record.len(), self.record_bytes_max);
            self.events.push(LogEvent::Failed(ticket, AppendError::TooLarge { bytes, bytes_max }));
        } else {
            self.queued.push_back((ticket, after, record));
        }
        ticket
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        if !self.faults.is_stalled {
            self.store();
        }
        self.read();
        events.append(&mut self.events);
    }

    fn is_busy(&self) -> bool {
        !self.queued.is_empty() || !self.events.is_empty()
    }

    fn read_from(&mut self, from: Position) {
        self.reading = Some(from);
        self.told = None;
    }

    fn stop_reading(&mut self) {
        self.reading = None;
    }

    fn tail(&mut self) -> Ticket {
        let ticket = self.ticket();
        let position = self.log.tail();
        self.events.push(LogEvent::Tail { ticket, position, confirmed: true });
        ticket
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        let ticket = self.ticket();
        let log = self.log.clone();
        let stored = log.stored();
        let index = position.sequence.0.checked_sub(stored.first.0);
        let history = if position.incarnation != stored.incarnation {
            History::Lost
        } else if position.sequence == Sequence::ZERO {
            History::of_origin(stored.incarnation, chain)
        } else if let Some(index) = index {
            let record = stored.records.get(index as usize);
            record.map_or(History::Lost, |record| History::of_record(record, chain))
        } else {
            History::Trimmed
        };
        self.events.push(LogEvent::Compared { ticket, history });
        ticket
    }

    fn trim(&mut self, through: Position) {
        let log = self.log.clone();
        let mut stored = log.stored();
        // The newest record is never trimmed: it carries the epoch.
        while stored.first <= through.sequence && stored.records.len() > 1 {
            stored.records.pop_front();
            stored.first = stored.first.next();
        }
    }

    fn first(&mut self) -> Ticket {
        let ticket = self.ticket();
        let stored = self.log.stored();
        let position = Position { incarnation: stored.incarnation, sequence: stored.first };
        drop(stored);
        self.events.push(LogEvent::First { ticket, position });
        ticket
    }
}
