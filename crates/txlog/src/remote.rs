//! The log that other machines keep: one [`TransactionLog`] over any [`RecordStore`].
//!
//! A store takes a record at a number, if that is the next one, and says how it went, or that it
//! does not know. What makes a log of that lies here, once for all services: the order of what is
//! acknowledged, doubts, deposed writers' stragglers, reading. It calls the store and is told the
//! time; it has no thread and no socket, so that the simulator runs exactly this.
//!
//! ```text
//! append ─▶ queue ─▶ at most puts_max puts under way ─▶ stored, and all before it: Durable
//!             ▲              │ one did not succeed
//!             └── resend ◀── doubt: wait for all to end, read back, compare bytes and chain
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`store`] | what is asked of the service: numbered puts, gets, and how each ended |
//! | [`appends`] | records on their way: order, window, who may append |
//! | [`doubt`] | what stands at the places of records whose fate is unknown, and what follows |
//! | [`reading`] | reading in order, and tailing |
//! | [`questions`] | tail, first, trim |
//! | [`history`] | whether the log is still the one that was read |
//! | [`shortfall`] | whether a log that seems to end too early has lost something |
//! | [`backoff`] | how long to wait before trying again |
//! | [`memory`] | a service in memory with every fault of a real one, for tests and the simulator |

mod appends;
mod backoff;
mod doubt;
mod history;
pub mod memory;
mod questions;
mod reading;
mod shortfall;
pub mod store;

pub use doubt::Broken;

use crate::chain::Chain;
use crate::log::{Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};
use appends::Appends;
use base::{Clock, Incarnation, MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use history::Comparisons;
use questions::Questions;
use reading::Reading;
use std::sync::Arc;
use store::{OperationId, Outcome, RecordStore};

/// How much a handle asks of its store at a time, and lets wait. What serves is the default; the
/// simulator draws small ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RemoteLimits {
    /// Records that may wait for each put that may be under way. With two, what executes while the
    /// window is full has a record to go to; with more it would only wait longer.
    pub records_per_put: usize,
    /// Bytes of records not yet durable above which the gate says wait: twice eight puts of
    /// 512 KiB, beyond which larger records only add latency, and as much again.
    pub in_flight_bytes_max: usize,
    /// Bytes that a reading asks for at a time, and so the most that is read ahead, but for a
    /// record larger than it: some ten milliseconds of a gigabit network, so that round trips
    /// hardly count.
    pub read_bytes_max: usize,
    /// Bytes that are read back at a time where the fate of records is unknown. A window of puts
    /// fits, and hardly ever is there more to see: the first record that counts and is not ours
    /// ends it.
    pub check_bytes_max: usize,
}

impl Default for RemoteLimits {
    fn default() -> Self {
        Self {
            records_per_put: 2,
            in_flight_bytes_max: 16 << 20,
            read_bytes_max: 4 << 20,
            check_bytes_max: 8 << 20,
        }
    }
}

/// One handle on a log that a service keeps.
pub struct RemoteLog {
    store: Box<dyn RecordStore>,
    clock: Arc<dyn Clock>,
    log: Position,
    limits: Limits,
    read_bytes_max: usize,
    appends: Appends,
    reading: Option<Reading>,
    questions: Questions,
    comparisons: Comparisons,
    /// As of the last poll or append: it is asked for every write.
    gate: Gate,
    events: Vec<LogEvent>,
    outcomes: Vec<(OperationId, Outcome)>,
    tickets: u64,
}

impl RemoteLog {
    /// A handle on the log that `store` is connected to. It reads, and appends nothing before a
    /// `Lead`.
    pub fn new(store: Box<dyn RecordStore>, clock: Arc<dyn Clock>) -> Self {
        Self::limited(store, clock, RemoteLimits::default())
    }

    /// As [`Self::new`], with other limits than those that serve.
    pub fn limited(
        store: Box<dyn RecordStore>,
        clock: Arc<dyn Clock>,
        limits: RemoteLimits,
    ) -> Self {
        let of_store = store.limits();
        let puts_max = of_store.puts_max.max(1);
        let log = Position { incarnation: store.incarnation(), sequence: Sequence::ZERO };
        let mut handle = Self {
            store,
            clock,
            log,
            limits: Limits {
                record_bytes_max: of_store.record_bytes_max,
                in_flight_records_max: puts_max * limits.records_per_put,
                in_flight_bytes_max: limits.in_flight_bytes_max,
                record_cost_bytes: of_store.record_cost_bytes,
            },
            read_bytes_max: limits.read_bytes_max,
            appends: Appends::new(log, puts_max, limits.check_bytes_max),
            reading: None,
            questions: Questions::default(),
            comparisons: Comparisons::default(),
            gate: Gate::Wait,
            events: Vec::new(),
            outcomes: Vec::new(),
            tickets: 0,
        };
        handle.set_gate(handle.clock.monotonic());
        handle
    }

    /// Which life of the log this is.
    pub fn incarnation(&self) -> Incarnation {
        self.log.incarnation
    }

    /// Breaks a rule on purpose, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_rule(&mut self, broken: Broken) {
        self.appends.broken = Some(broken);
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn set_gate(&mut self, now: MonotonicNanos) {
        self.gate = self.appends.gate(&*self.store, &self.limits, now);
    }

    /// Hands an outcome to whoever began the operation. One of a reading that was replaced belongs
    /// to nobody.
    fn take(&mut self, id: OperationId, outcome: Outcome, now: MonotonicNanos) {
        let events = &mut self.events;
        if self.appends.awaits(id) {
            self.appends.take(id, outcome, now, events);
        } else if self.questions.awaits(id) {
            self.questions.take(self.log, id, &outcome, events);
        } else if self.comparisons.awaits(id) {
            self.comparisons.take(outcome, now, events);
        } else if let Some(reading) = self.reading.as_mut().filter(|reading| reading.awaits(id))
            && reading.take(outcome, now, events).is_break()
        {
            self.reading = None;
        }
    }
}

impl TransactionLog for RemoteLog {
    fn limits(&self) -> Limits {
        self.limits
    }

    fn gate(&self) -> Gate {
        self.gate.clone()
    }

    fn trouble(&self) -> Option<Refusal> {
        self.store.trouble()
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        let ticket = self.ticket();
        let now = self.clock.monotonic();
        let bytes_max = self.limits.record_bytes_max;
        if let Err(error) = self.appends.append(ticket, after, record, bytes_max, now) {
            self.events.push(LogEvent::Failed(ticket, error));
        }
        self.set_gate(now);
        ticket
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        let now = self.clock.monotonic();
        let mut outcomes = std::mem::take(&mut self.outcomes);
        self.store.poll(&mut outcomes);
        for (id, outcome) in outcomes.drain(..) {
            self.take(id, outcome, now);
        }
        self.outcomes = outcomes;
        self.appends.pump(&mut *self.store, now);
        self.questions.pump(&mut *self.store);
        self.comparisons.pump(&mut *self.store, now);
        if let Some(reading) = &mut self.reading {
            reading.pump(&mut *self.store, now);
        }
        self.set_gate(now);
        events.append(&mut self.events);
    }

    fn is_busy(&self) -> bool {
        let is_reading = self.reading.as_ref().is_some_and(Reading::is_busy);
        !self.appends.is_empty()
            || self.questions.is_busy()
            || self.comparisons.is_busy()
            || is_reading
            || !self.events.is_empty()
    }

    fn read_from(&mut self, from: Position) {
        self.reading = None;
        if from.incarnation == self.log.incarnation {
            self.reading = Some(Reading::new(from, self.read_bytes_max));
        } else {
            self.events.push(LogEvent::Lost);
        }
    }

    fn stop_reading(&mut self) {
        self.reading = None;
    }

    fn wait_nanos(&self) -> Option<u64> {
        let reading = self.reading.as_ref().and_then(Reading::retry_at);
        let due = [self.appends.retry_at(), reading, self.comparisons.retry_at()];
        let retry_at = due.into_iter().flatten().min()?;
        Some(retry_at.since(self.clock.monotonic()))
    }

    fn tail(&mut self) -> Ticket {
        let ticket = self.ticket();
        self.questions.ask_tail(&mut *self.store, ticket, &mut self.events);
        ticket
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        let ticket = self.ticket();
        let Position { incarnation, sequence } = position;
        if incarnation != self.log.incarnation || sequence == Sequence::ZERO {
            let is_other = incarnation != self.log.incarnation;
            let of_origin = History::of_origin(incarnation, chain);
            let history = if is_other { History::Lost } else { of_origin };
            self.events.push(LogEvent::Compared { ticket, history });
            return ticket;
        }
        self.comparisons.ask(ticket, sequence, chain, &mut self.events);
        self.comparisons.pump(&mut *self.store, self.clock.monotonic());
        ticket
    }

    fn trim(&mut self, through: Position) {
        if through.incarnation == self.log.incarnation {
            self.questions.trim(through.sequence);
            self.questions.pump(&mut *self.store);
        }
    }

    fn first(&mut self) -> Ticket {
        let ticket = self.ticket();
        self.questions.ask_first(&mut *self.store, ticket, &mut self.events);
        ticket
    }
}
