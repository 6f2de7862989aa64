//! Records on their way: their order, the window of puts, and who may append.
//!
//! An acknowledgement counts only when all earlier ones do: a service that checks numbers stores
//! `k + 1` behind somebody else's `k` as readily as behind ours, and then it is void.

use super::backoff::Backoff;
use super::doubt::{Broken, Doubt};
use super::store::{Operation, OperationId, Outcome, RecordStore};
use crate::log::{AppendError, Gate, Limits, LogEvent, Refusal, Ticket};
use crate::record::{self, Kind};
use base::{MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use std::collections::VecDeque;

/// Without progress for this long, the gate refuses by name instead of letting clients wait: long
/// against a healthy service's slowest answers, short against a client's patience. A guess.
const SILENCE_NANOS_MAX: u64 = 1_000_000_000;

/// How long a service that is full is left alone. As for a full disk: short against an operator's
/// patience. A guess.
const FULL_RETRY_NANOS: u64 = 500_000_000;

/// One record that is not yet durable.
pub(super) struct Append {
    ticket: Ticket,
    record: Bytes,
    is_lead: bool,
    put: Put,
    /// Some put of it may have reached the service.
    was_put: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Put {
    Waiting,
    Flying(OperationId),
    /// Acknowledged, but something before it is not.
    Stored,
    /// It ended otherwise: a doubt follows.
    Ended,
}

enum Role {
    /// Appends nothing but a `Lead`.
    Reader,
    /// Its `Lead` is not yet durable.
    Candidate,
    Writer,
    Closed,
}

/// What is appended and not yet durable.
pub(super) struct Appends {
    /// The last place that is settled: what was appended before the queue is durable, and what
    /// others left there is void. The first record of the queue is meant for the next place.
    pub(super) settled: Position,
    /// The last record of this writer that is durable; what is settled behind it is void. `None`
    /// before the first.
    pub(super) ours_at: Option<Sequence>,
    pub(super) queue: VecDeque<Append>,
    pub(super) doubt: Option<Doubt>,
    pub(super) retry: Backoff,
    pub(super) broken: Option<Broken>,
    role: Role,
    /// Bytes of the queue.
    bytes: usize,
    /// Of the queue, so many have been put since the last doubt.
    begun: usize,
    puts_max: usize,
    /// Bytes read back at a time.
    pub(super) check_bytes_max: usize,
    /// The service said that it is full, and has stored nothing since.
    is_full: bool,
    /// When something last became durable, or the queue its first record.
    progress_at: MonotonicNanos,
}

impl Appends {
    pub(super) fn new(origin: Position, puts_max: usize, check_bytes_max: usize) -> Self {
        Self {
            settled: origin,
            ours_at: None,
            queue: VecDeque::new(),
            doubt: None,
            retry: Backoff::default(),
            broken: None,
            role: Role::Reader,
            bytes: 0,
            begun: 0,
            puts_max,
            check_bytes_max,
            is_full: false,
            progress_at: MonotonicNanos(0),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether the record at the front is the `Lead` of a writer that is none yet.
    pub(super) fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate)
    }

    /// When something is due although no outcome comes.
    pub(super) fn retry_at(&self) -> Option<MonotonicNanos> {
        self.doubt.as_ref().filter(|_| !self.is_flying()).and_then(Doubt::retry_at)
    }

    pub(super) fn gate(
        &self,
        store: &dyn RecordStore,
        limits: &Limits,
        now: MonotonicNanos,
    ) -> Gate {
        match self.role {
            Role::Closed => return Gate::Refuse(Refusal::LogLost),
            Role::Reader | Role::Candidate => return Gate::Refuse(Refusal::NotWriter),
            Role::Writer => {}
        }
        if self.is_full {
            return Gate::Refuse(Refusal::DiskFull);
        }
        if let Some(trouble) = store.trouble() {
            return Gate::Refuse(trouble);
        }
        let silence = now.since(self.progress_at);
        if !self.queue.is_empty() && silence > SILENCE_NANOS_MAX {
            let seconds = silence / 1_000_000_000;
            let what = format!("no record was acknowledged for {seconds} s");
            return Gate::Refuse(Refusal::Unavailable(what));
        }
        let is_behind = self.queue.len() >= limits.in_flight_records_max
            || self.bytes >= limits.in_flight_bytes_max;
        if is_behind || self.doubt.is_some() { Gate::Wait } else { Gate::Open }
    }

    /// The place of the last record appended.
    fn predicted(&self) -> Position {
        self.settled.at(Sequence(self.settled.sequence.0 + self.queue.len() as u64))
    }

    pub(super) fn append(
        &mut self,
        ticket: Ticket,
        after: Position,
        record: Bytes,
        bytes_max: usize,
        now: MonotonicNanos,
    ) -> Result<(), AppendError> {
        if record.len() > bytes_max {
            return Err(AppendError::TooLarge { bytes: record.len(), bytes_max });
        }
        if after.incarnation != self.settled.incarnation {
            return Err(AppendError::LogLost);
        }
        let is_lead = is_lead(&record);
        match self.role {
            Role::Closed => return Err(AppendError::LogLost),
            Role::Reader if is_lead => {
                self.role = Role::Candidate;
                self.settled = after;
                self.ours_at = None;
            }
            Role::Reader => return Err(AppendError::NotAttempted),
            Role::Candidate | Role::Writer if after == self.predicted() => {}
            Role::Candidate | Role::Writer => {
                return Err(AppendError::Conflict { tail: self.predicted() });
            }
        }
        if self.queue.is_empty() {
            self.progress_at = now;
        }
        self.bytes += record.len();
        self.queue.push_back(Append { ticket, record, is_lead, put: Put::Waiting, was_put: false });
        Ok(())
    }

    /// Begins what can be begun.
    pub(super) fn pump(&mut self, store: &mut dyn RecordStore, now: MonotonicNanos) {
        if self.doubt.is_some() {
            if !self.is_flying() {
                // Whatever was acknowledged behind the doubt is read back with it.
                self.begun = 0;
                self.resolve(store, now);
            }
            return;
        }
        while self.begun < self.puts_max && self.begun < self.queue.len() {
            // A `Lead` goes out alone: it is sent where everything before it is known to stand, and
            // nothing is sent behind it while it may fail. Otherwise numbers could fit where the
            // chain does not, and an epoch would have records that nobody leads.
            let is_lead = |index: usize| self.queue.get(index).is_some_and(|it| it.is_lead);
            if self.begun > 0 && (is_lead(0) || is_lead(self.begun)) {
                break;
            }
            let sequence = Sequence(self.settled.sequence.0 + 1 + self.begun as u64);
            let append = &mut self.queue[self.begun];
            let record = append.record.clone();
            append.put = Put::Flying(store.begin(Operation::Put { sequence, record }));
            append.was_put = true;
            self.begun += 1;
        }
    }

    /// Whether an operation is a put under way, or the reading back of one in doubt.
    pub(super) fn awaits(&self, id: OperationId) -> bool {
        self.is_check(id) || self.flying(id).is_some()
    }

    fn is_check(&self, id: OperationId) -> bool {
        self.doubt.as_ref().is_some_and(|doubt| doubt.is_of(id))
    }

    fn flying(&self, id: OperationId) -> Option<usize> {
        self.queue.iter().take(self.begun).position(|append| append.put == Put::Flying(id))
    }

    /// Takes the outcome of one of these.
    pub(super) fn take(
        &mut self,
        id: OperationId,
        outcome: Outcome,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) {
        if self.is_check(id) {
            self.learn(outcome, now, events);
            return;
        }
        let Some(index) = self.flying(id) else { return };
        self.queue[index].put = Put::Ended;
        match outcome {
            Outcome::Stored => {
                self.queue[index].put = Put::Stored;
                self.count_stored(index, now, events);
            }
            Outcome::InDoubt(_) if self.broken == Some(Broken::AssumesTheBest) => {
                self.queue[index].put = Put::Stored;
                self.count_stored(index, now, events);
            }
            Outcome::Lost(_) => self.close(events),
            Outcome::Full(_) => {
                self.is_full = true;
                self.begin_doubt(now).not_before(MonotonicNanos(now.0 + FULL_RETRY_NANOS));
            }
            _ => {
                self.begin_doubt(now);
            }
        }
    }

    /// Something is unknown: nothing more is put before it has been read back. Whatever else of the
    /// window fails is the same failure.
    fn begin_doubt(&mut self, now: MonotonicNanos) -> &mut Doubt {
        let retry = &mut self.retry;
        self.doubt.get_or_insert_with(|| Doubt::new(retry.after_failure(now)))
    }

    fn is_flying(&self) -> bool {
        let mut puts = self.queue.iter().take(self.begun).map(|append| append.put);
        puts.any(|put| matches!(put, Put::Flying(_)))
    }

    /// The acknowledgement at `index` has come: what is acknowledged without a gap is durable.
    fn count_stored(&mut self, index: usize, now: MonotonicNanos, events: &mut Vec<LogEvent>) {
        if self.broken == Some(Broken::CountsEveryAcknowledgement) {
            self.queue.iter_mut().take(index).for_each(|append| append.put = Put::Stored);
        }
        let before = self.settled;
        while self.queue.front().is_some_and(|append| append.put == Put::Stored) {
            self.begun -= 1;
            self.settle_front(now);
        }
        if self.settled != before {
            events.push(LogEvent::Durable(self.settled));
        }
    }

    /// The front record stands at the place it was meant for.
    pub(super) fn settle_front(&mut self, now: MonotonicNanos) {
        let Some(append) = self.queue.pop_front() else { return };
        if self.is_candidate() {
            self.role = Role::Writer;
        }
        self.bytes -= append.record.len();
        self.settled = self.settled.next();
        self.ours_at = Some(self.settled.sequence);
        self.progress_at = now;
        self.is_full = false;
        self.retry.reset();
    }

    /// The first record that is not settled.
    pub(super) fn front(&self) -> Option<&Bytes> {
        self.queue.front().map(|append| &append.record)
    }

    /// The place of the front record is taken by one that counts, or cannot be known any more.
    /// Nothing behind it can count either, since each names the one before it.
    pub(super) fn depose(&mut self, error: AppendError, events: &mut Vec<LogEvent>) {
        self.role = Role::Reader;
        let mut error = Some(error);
        self.fail_all(events, |append| {
            let behind =
                if append.was_put { AppendError::InDoubt } else { AppendError::NotAttempted };
            error.take().unwrap_or(behind)
        });
    }

    /// The log is gone.
    pub(super) fn close(&mut self, events: &mut Vec<LogEvent>) {
        self.role = Role::Closed;
        self.fail_all(events, |_| AppendError::LogLost);
    }

    fn fail_all(
        &mut self,
        events: &mut Vec<LogEvent>,
        mut error: impl FnMut(&Append) -> AppendError,
    ) {
        self.doubt = None;
        self.is_full = false;
        self.retry.reset();
        self.begun = 0;
        self.bytes = 0;
        for append in self.queue.drain(..) {
            let error = error(&append);
            events.push(LogEvent::Failed(append.ticket, error));
        }
    }
}

fn is_lead(record: &Bytes) -> bool {
    record::decode_header(record, false).is_ok_and(|header| header.kind == Kind::Lead)
}
