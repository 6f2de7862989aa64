//! A service in memory that keeps numbered records, with every fault of a real one on demand.
//!
//! Several stores share one [`MemoryService`], as several nodes share a real one. What becomes of
//! an operation on its way there and back, its [`Fate`], is drawn by a function that the caller
//! supplies; time is read from the clock that the caller supplies. So a run with the same fates and
//! the same times is the same run.
//!
//! ```text
//! begin ──arrives_nanos──▶ the service does it ──answers_nanos──▶ poll
//!            │ never: lost       (or a gap in time: it lands late)   │ never: in doubt
//! ```

use super::store::{Operation, OperationId, Outcome, RecordStore, StoreLimits};
use crate::log::Refusal;
use base::driver::Waker;
use base::{Clock, Incarnation, MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How long a get that waits is left without an answer.
const WAITS_NANOS: u64 = 2_000_000_000;

/// What becomes of one operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fate {
    /// Nanoseconds until the service has it; `None`: it is lost on the way.
    pub arrives_nanos: Option<u64>,
    /// Nanoseconds from then until its answer is back; `None`: the answer is lost.
    pub answers_nanos: Option<u64>,
    /// A put goes a way of its own, as over a connection that was given up: it is neither kept
    /// behind the puts begun before it, nor are later ones kept behind it.
    pub strays: bool,
    /// The service has no room for this one.
    pub is_full: bool,
    /// Newest records that the answer does not know of, as if from a server that was cut off.
    pub stale_by: u64,
}

impl Default for Fate {
    fn default() -> Self {
        Self {
            arrives_nanos: Some(0),
            answers_nanos: Some(0),
            strays: false,
            is_full: false,
            stale_by: 0,
        }
    }
}

/// Draws the fate of each operation of one store.
pub type Fates = Box<dyn FnMut(&Operation) -> Fate + Send>;

/// The service that stores share.
#[derive(Clone)]
pub struct MemoryService(Arc<Mutex<State>>);

struct State {
    clock: Arc<dyn Clock>,
    incarnation: Incarnation,
    /// The sequence of the first record kept.
    first: Sequence,
    records: VecDeque<Bytes>,
    stores: BTreeMap<u64, Mailbox>,
    due: BTreeMap<(MonotonicNanos, u64), Due>,
    /// Waiting gets that have found nothing yet.
    parked: Vec<Arrival>,
    /// What arrived while the service stands still.
    stalled: Option<Vec<Arrival>>,
    is_full: bool,
    confirms_tail: bool,
    ranks: u64,
}

/// What one store awaits and has been told.
#[derive(Default)]
struct Mailbox {
    pending: BTreeMap<OperationId, Outcome>,
    outcomes: Vec<(OperationId, Outcome)>,
    is_reachable: bool,
    puts_arrive_at: MonotonicNanos,
    waker: Option<Waker>,
}

struct Arrival {
    store: u64,
    /// Of the log that the store was connected to, which may be gone, as may be the store.
    incarnation: Incarnation,
    id: OperationId,
    operation: Operation,
    fate: Fate,
}

enum Due {
    Arrives(Arrival),
    Answered(u64, OperationId, Outcome),
    /// The store's patience is at its end.
    GivenUp(u64, OperationId),
    /// A get has waited long enough.
    Unparked(u64, OperationId),
}

impl MemoryService {
    pub fn new(clock: Arc<dyn Clock>, incarnation: Incarnation) -> Self {
        Self(Arc::new(Mutex::new(State {
            clock,
            incarnation,
            first: Sequence(1),
            records: VecDeque::new(),
            stores: BTreeMap::new(),
            due: BTreeMap::new(),
            parked: Vec::new(),
            stalled: None,
            is_full: false,
            confirms_tail: true,
            ranks: 0,
        })))
    }

    /// A store as another process gets it. What has not ended after `patience_nanos` is in doubt.
    pub fn connect(&self, limits: StoreLimits, patience_nanos: u64, fates: Fates) -> MemoryStore {
        let mut state = self.state();
        let store = state.rank();
        let incarnation = state.incarnation;
        let mailbox = Mailbox { is_reachable: true, ..Mailbox::default() };
        state.stores.insert(store, mailbox);
        let service = self.clone();
        MemoryStore { service, store, incarnation, limits, patience_nanos, fates, begun: 0 }
    }

    /// The newest position.
    pub fn tail(&self) -> Position {
        let state = self.state();
        Position { incarnation: state.incarnation, sequence: state.tail() }
    }

    /// The record at a place, if it is there and was not trimmed.
    pub fn record(&self, sequence: Sequence) -> Option<Bytes> {
        let state = self.state();
        let index = sequence.0.checked_sub(state.first.0)?;
        state.records.get(usize::try_from(index).ok()?).cloned()
    }

    /// Deletes the log and creates it anew. Stores connected before find theirs lost.
    pub fn recreate(&self, incarnation: Incarnation) {
        let mut state = self.state();
        state.incarnation = incarnation;
        state.first = Sequence(1);
        state.records.clear();
        for arrival in std::mem::take(&mut state.parked) {
            state.schedule(0, Due::Arrives(arrival));
        }
    }

    /// Loses the newest records, as a service does that was restored from a backup.
    pub fn cut(&self, tail: Sequence) {
        let mut state = self.state();
        let kept = tail.0.saturating_sub(state.first.0 - 1) as usize;
        state.records.truncate(kept);
    }

    /// Refuses every put for want of space, or no more.
    pub fn set_full(&self, is_full: bool) {
        self.state().is_full = is_full;
    }

    /// Stands still, or goes on with all that has arrived meanwhile.
    pub fn set_stalled(&self, is_stalled: bool) {
        let mut state = self.state();
        if is_stalled {
            state.stalled.get_or_insert_default();
        } else {
            for arrival in state.stalled.take().unwrap_or_default() {
                state.schedule(0, Due::Arrives(arrival));
            }
        }
    }

    /// Whether answers about the tail are confirmed by a quorum, unless they are stale.
    pub fn set_confirms_tail(&self, confirms_tail: bool) {
        self.state().confirms_tail = confirms_tail;
    }

    /// When something happens next: then [`Self::advance`] should be called, or any store polled.
    pub fn next_due(&self) -> Option<MonotonicNanos> {
        self.state().due.first_key_value().map(|((at, _), _)| *at)
    }

    /// Lets everything happen that is due.
    pub fn advance(&self) {
        self.state().advance();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tail(&self) -> Sequence {
        Sequence(self.first.0 - 1 + self.records.len() as u64)
    }

    fn rank(&mut self) -> u64 {
        self.ranks += 1;
        self.ranks
    }

    fn schedule(&mut self, after_nanos: u64, due: Due) {
        let at = MonotonicNanos(self.clock.monotonic().0.saturating_add(after_nanos));
        self.schedule_at(at, due);
    }

    fn schedule_at(&mut self, at: MonotonicNanos, due: Due) {
        let rank = self.rank();
        self.due.insert((at, rank), due);
    }

    fn advance(&mut self) {
        let now = self.clock.monotonic();
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((at, _), due) = entry.remove_entry();
            match due {
                Due::Arrives(arrival) => self.arrive(at, arrival),
                Due::Answered(store, id, outcome) => self.deliver(store, id, Some(outcome)),
                Due::GivenUp(store, id) => self.deliver(store, id, None),
                Due::Unparked(store, id) => self.unpark(at, store, id),
            }
        }
    }

    fn arrive(&mut self, at: MonotonicNanos, arrival: Arrival) {
        if let Some(stalled) = &mut self.stalled {
            stalled.push(arrival);
            return;
        }
        let Some(outcome) = self.perform(&arrival) else {
            let due = Due::Unparked(arrival.store, arrival.id);
            self.schedule_at(MonotonicNanos(at.0 + WAITS_NANOS), due);
            self.parked.push(arrival);
            return;
        };
        let is_stored = outcome == Outcome::Stored;
        self.answer(at, &arrival, outcome);
        if is_stored {
            for arrival in std::mem::take(&mut self.parked) {
                self.schedule_at(at, Due::Arrives(arrival));
            }
        }
    }

    fn answer(&mut self, at: MonotonicNanos, arrival: &Arrival, outcome: Outcome) {
        if let Some(nanos) = arrival.fate.answers_nanos {
            let due = Due::Answered(arrival.store, arrival.id, outcome);
            self.schedule_at(MonotonicNanos(at.0 + nanos), due);
        }
    }

    /// Does what an operation asks for; `None` if it is to wait.
    fn perform(&mut self, arrival: &Arrival) -> Option<Outcome> {
        if arrival.incarnation != self.incarnation {
            return Some(Outcome::Lost("another log stands here".to_owned()));
        }
        let visible = Sequence(self.tail().0.saturating_sub(arrival.fate.stale_by));
        let visible = visible.max(Sequence(self.first.0 - 1));
        Some(match &arrival.operation {
            Operation::Put { .. } if self.is_full || arrival.fate.is_full => {
                Outcome::Full("no room".to_owned())
            }
            Operation::Put { sequence, record } if *sequence == self.tail().next() => {
                self.records.push_back(record.clone());
                Outcome::Stored
            }
            Operation::Put { .. } => Outcome::Misplaced,
            Operation::Get { from, .. } if *from < self.first => {
                Outcome::Trimmed { first: self.first }
            }
            Operation::Get { from, waits: true, .. } if *from > visible => return None,
            Operation::Get { from, bytes_max, .. } => self.get(*from, visible, *bytes_max),
            Operation::Tail => {
                let is_confirmed = self.confirms_tail && arrival.fate.stale_by == 0;
                Outcome::Tail { sequence: visible, is_confirmed }
            }
            Operation::First => Outcome::First { sequence: self.first },
            Operation::Trim { through } => {
                // The newest record is never trimmed: it carries the epoch.
                while self.first <= *through && self.records.len() > 1 {
                    self.records.pop_front();
                    self.first = self.first.next();
                }
                Outcome::First { sequence: self.first }
            }
        })
    }

    fn get(&self, from: Sequence, visible: Sequence, bytes_max: usize) -> Outcome {
        let mut records = Vec::new();
        let mut bytes = 0;
        let (skipped, end) = (from.0 - self.first.0, visible.0 + 1 - self.first.0);
        for record in self.records.iter().take(end as usize).skip(skipped as usize) {
            bytes += record.len();
            if bytes > bytes_max && !records.is_empty() {
                break;
            }
            records.push(record.clone());
        }
        Outcome::Records { records, tail: visible }
    }

    fn unpark(&mut self, at: MonotonicNanos, store: u64, id: OperationId) {
        let parked = self.parked.iter().position(|a| a.store == store && a.id == id);
        if let Some(index) = parked {
            let arrival = self.parked.swap_remove(index);
            let outcome = Outcome::Records { records: Vec::new(), tail: self.tail() };
            self.answer(at, &arrival, outcome);
        }
    }

    /// Tells a store how its operation ended, once; without an outcome, that nothing is known.
    fn deliver(&mut self, store: u64, id: OperationId, outcome: Option<Outcome>) {
        let Some(mailbox) = self.stores.get_mut(&store) else { return };
        if outcome.is_some() && !mailbox.is_reachable {
            return;
        }
        let Some(unknown) = mailbox.pending.remove(&id) else { return };
        mailbox.outcomes.push((id, outcome.unwrap_or(unknown)));
        if let Some(waker) = &mailbox.waker {
            waker.wake();
        }
    }
}

/// One process's connection to a [`MemoryService`].
pub struct MemoryStore {
    service: MemoryService,
    store: u64,
    incarnation: Incarnation,
    limits: StoreLimits,
    patience_nanos: u64,
    fates: Fates,
    begun: u64,
}

/// What a test may do to one store after it was handed to a log.
#[derive(Clone)]
pub struct Wire {
    service: MemoryService,
    store: u64,
}

impl Wire {
    /// Cuts the store off from the service, or connects it again. What is under way either way is
    /// lost, but for what has arrived.
    pub fn set_reachable(&self, is_reachable: bool) {
        if let Some(mailbox) = self.service.state().stores.get_mut(&self.store) {
            mailbox.is_reachable = is_reachable;
        }
    }

    /// Calls `waker` when an outcome has come. It must not call back into the service.
    pub fn set_waker(&self, waker: Waker) {
        if let Some(mailbox) = self.service.state().stores.get_mut(&self.store) {
            mailbox.waker = Some(waker);
        }
    }
}

impl MemoryStore {
    pub fn wire(&self) -> Wire {
        Wire { service: self.service.clone(), store: self.store }
    }
}

impl RecordStore for MemoryStore {
    fn limits(&self) -> StoreLimits {
        self.limits
    }

    fn incarnation(&self) -> Incarnation {
        self.incarnation
    }

    fn begin(&mut self, operation: Operation) -> OperationId {
        self.begun += 1;
        let id = OperationId(self.begun);
        let fate = (self.fates)(&operation);
        let mut state = self.service.state();
        state.advance();
        let now = state.clock.monotonic();
        let Some(mailbox) = state.stores.get_mut(&self.store) else { return id };
        let is_put = matches!(operation, Operation::Put { .. });
        let unknown = "no answer came".to_owned();
        let unknown = if is_put { Outcome::InDoubt(unknown) } else { Outcome::Failed(unknown) };
        mailbox.pending.insert(id, unknown);
        let arrives = fate.arrives_nanos.filter(|_| mailbox.is_reachable);
        let mut arrives_at = arrives.map(|nanos| MonotonicNanos(now.0 + nanos));
        if is_put && !fate.strays {
            arrives_at = arrives_at.map(|at| at.max(mailbox.puts_arrive_at));
            mailbox.puts_arrive_at = arrives_at.unwrap_or(mailbox.puts_arrive_at);
        }
        let waits = matches!(operation, Operation::Get { waits: true, .. });
        let patience = self.patience_nanos + if waits { WAITS_NANOS } else { 0 };
        state.schedule(patience, Due::GivenUp(self.store, id));
        if let Some(at) = arrives_at {
            let (store, incarnation) = (self.store, self.incarnation);
            let arrival = Arrival { store, incarnation, id, operation, fate };
            state.schedule_at(at, Due::Arrives(arrival));
        }
        id
    }

    fn poll(&mut self, outcomes: &mut Vec<(OperationId, Outcome)>) {
        let mut state = self.service.state();
        state.advance();
        if let Some(mailbox) = state.stores.get_mut(&self.store) {
            outcomes.append(&mut mailbox.outcomes);
        }
    }

    fn trouble(&self) -> Option<Refusal> {
        let state = self.service.state();
        let is_reachable = state.stores.get(&self.store).is_none_or(|store| store.is_reachable);
        let what = || Refusal::Unavailable("no connection".to_owned());
        (!is_reachable).then(what)
    }
}

impl Drop for MemoryStore {
    fn drop(&mut self) {
        // What is on its way there still arrives.
        self.service.state().stores.remove(&self.store);
    }
}
