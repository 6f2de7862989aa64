//! What stands at the places of records whose fate is unknown, and what follows from it.
//!
//! A put that did not succeed says little: it may have been stored and its answer lost, it may be
//! stored later, or somebody else's record stands there. So nothing more is put until every put
//! under way has ended, and then the log is read from the first unsettled place on:
//!
//! ```text
//! what stands there                what follows
//! ours, byte for byte              durable; an earlier attempt landed
//! another that counts, a Lead      deposed: Conflict
//! another that is void             a deposed writer's straggler, or ours, put behind a gap: go on
//!                                  behind it, everything shifts by one place
//! another of a later epoch that    another history: Conflict, and what is read then says so
//! does not continue our chain
//! nothing                          put again: the same bytes at the same place
//! nothing, and less than we had    an answer from the past; if it stays so, the log is lost
//! ```
//!
//! Absence is not final: the first attempt may still land while the second is under way. But both
//! want the same number, so one of them is stored at most; and once another record has the place,
//! neither ever is. What counts is decided as every reader decides it, by the chain. Where it
//! stands, the front record says itself: its predecessor is the last record that counted.
//!
//! A void record is gone behind only in our own history. A service that was restored from a backup
//! may hold others' records from before our last durable one on, and records of their epoch, if it
//! is none later than ours, look void. So the first thing read back is our last durable record.

use super::appends::Appends;
use super::shortfall::Shortfall;
use super::store::{Operation, OperationId, Outcome, RecordStore};
use crate::chain::Chain;
use crate::log::{AppendError, History, LogEvent};
use crate::record::{self, Header, Kind};
use base::{Epoch, MonotonicNanos, Position, Sequence};
use bytes::Bytes;

/// Something unknown, to be read back.
pub(super) struct Doubt {
    check: Option<OperationId>,
    /// When to read, or to read again.
    check_at: MonotonicNanos,
    /// Of the last place that is settled.
    shortfall: Shortfall,
    /// Our last durable record was found where it was.
    is_history_known: bool,
}

/// A rule that a test breaks to see that it would notice.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// An acknowledgement counts although an earlier one is missing.
    CountsEveryAcknowledgement,
    /// What is in doubt counts as stored.
    AssumesTheBest,
    /// What is in doubt is put again behind whatever stands at its place, itself too.
    ResendsElsewhere,
    /// Goes on behind records that count as if they were void.
    IgnoresLeads,
    /// Takes whatever log it finds for its own.
    TrustsHistory,
}

impl Doubt {
    pub(super) fn new(check_at: MonotonicNanos) -> Self {
        let shortfall = Shortfall::default();
        Self { check: None, check_at, shortfall, is_history_known: false }
    }

    pub(super) fn not_before(&mut self, at: MonotonicNanos) {
        self.check_at = self.check_at.max(at);
    }

    pub(super) fn is_of(&self, id: OperationId) -> bool {
        self.check == Some(id)
    }

    pub(super) fn retry_at(&self) -> Option<MonotonicNanos> {
        self.check.is_none().then_some(self.check_at)
    }

    fn again(&mut self, at: MonotonicNanos) {
        self.check = None;
        self.check_at = at;
    }
}

/// Whose record stands at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Found {
    Ours,
    Void,
    /// It counts, or cannot be read by this build.
    Foreign,
}

/// What is to be told of places gone over, in order. One of the two at a time.
#[derive(Default)]
struct News {
    is_durable: bool,
    shifted_by: u64,
}

impl News {
    fn tell(&mut self, settled: Position, events: &mut Vec<LogEvent>) {
        if std::mem::take(&mut self.is_durable) {
            events.push(LogEvent::Durable(settled));
        }
        let by = std::mem::take(&mut self.shifted_by);
        if by > 0 {
            events.push(LogEvent::Shifted { by });
        }
    }
}

impl Appends {
    /// Reads back what is in doubt. No put is under way.
    pub(super) fn resolve(&mut self, store: &mut dyn RecordStore, now: MonotonicNanos) {
        let next = self.settled.sequence.next();
        let trusts = self.broken == Some(Broken::TrustsHistory);
        let Some(doubt) = &mut self.doubt else { return };
        // A candidate has compared its log before it stood.
        doubt.is_history_known |= trusts || self.ours_at.is_none();
        let from = if doubt.is_history_known { next } else { self.ours_at.unwrap_or(next) };
        if doubt.check.is_none() && now >= doubt.check_at {
            let bytes_max = self.check_bytes_max;
            let get = Operation::Get { from, bytes_max, waits: false };
            doubt.check = Some(store.begin(get));
        }
    }

    /// The answer to what [`Self::resolve`] asked.
    pub(super) fn learn(
        &mut self,
        outcome: Outcome,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) {
        match outcome {
            Outcome::Records { mut records, tail } => {
                if self.recognise(&mut records) == Some(History::Other) {
                    self.close(events);
                    return;
                }
                let is_empty = records.is_empty();
                let is_known = self.knows_history() != Some(false);
                if self.compare(records, now, events) == Found::Foreign {
                    let tail = self.settled.at(tail.max(self.settled.sequence.next()));
                    self.depose(AppendError::Conflict { tail }, events);
                } else if self.queue.is_empty() || (is_known && tail == self.settled.sequence) {
                    self.doubt = None;
                } else if self.is_lost(tail, now) {
                    self.close(events);
                } else {
                    // More is there to see; at once, unless the service withholds it.
                    let is_withheld = is_empty || tail < self.settled.sequence;
                    let at = if is_withheld { self.retry.after_failure(now) } else { now };
                    self.check_again(at);
                }
            }
            // What was compared is gone; what is in doubt need not be.
            Outcome::Trimmed { .. } if self.knows_history() == Some(false) => {
                self.know_history();
                self.check_again(now);
            }
            // Whoever trimmed the place knew what stood there. We cannot any more.
            Outcome::Trimmed { .. } => self.depose(AppendError::InDoubt, events),
            Outcome::Lost(_) => self.close(events),
            _ => {
                let at = self.retry.after_failure(now);
                self.check_again(at);
            }
        }
    }

    /// Whether our last durable record was found, or need not be; `None` without a doubt.
    fn knows_history(&self) -> Option<bool> {
        self.doubt.as_ref().map(|doubt| doubt.is_history_known)
    }

    fn know_history(&mut self) {
        if let Some(doubt) = &mut self.doubt {
            doubt.is_history_known = true;
        }
    }

    /// Compares the first of these with our last durable record, if that was asked for, and takes
    /// away what is settled. `None` if there was nothing to compare.
    fn recognise(&mut self, records: &mut Vec<Bytes>) -> Option<History> {
        if self.knows_history() != Some(false) {
            return None;
        }
        let (ours_at, first) = (self.ours_at?, records.first()?);
        let chain = chain_before(&record::decode_header(self.front()?, false).ok()?);
        let history = History::of_record(first, chain);
        if history == History::Same {
            self.know_history();
        }
        let settled = (self.settled.sequence.0 - ours_at.0 + 1) as usize;
        records.drain(..settled.min(records.len()));
        Some(history)
    }

    /// Whether what is settled is lost, now that an answer names this end.
    fn is_lost(&mut self, tail: Sequence, now: MonotonicNanos) -> bool {
        let settled = self.settled.sequence;
        let doubt = self.doubt.as_mut();
        doubt.is_some_and(|doubt| doubt.shortfall.proves_loss(settled, tail, false, now))
    }

    fn check_again(&mut self, at: MonotonicNanos) {
        if let Some(doubt) = &mut self.doubt {
            doubt.again(at);
        }
    }

    /// Goes over the records that stand from the first unsettled place on, until one deposes us.
    fn compare(
        &mut self,
        records: Vec<Bytes>,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) -> Found {
        let mut news = News::default();
        let mut last = Found::Void;
        for theirs in records {
            let Some(ours) = self.front() else { break };
            last = self.judge(ours, &theirs);
            match last {
                Found::Ours => {
                    if news.shifted_by > 0 {
                        news.tell(self.settled, events);
                    }
                    self.settle_front(now);
                    news.is_durable = true;
                }
                Found::Void => {
                    if news.is_durable {
                        news.tell(self.settled, events);
                    }
                    self.settled = self.settled.next();
                    self.retry.reset();
                    news.shifted_by += 1;
                }
                Found::Foreign => break,
            }
        }
        news.tell(self.settled, events);
        last
    }

    fn judge(&self, ours: &Bytes, theirs: &Bytes) -> Found {
        let found = match tell_apart(ours, theirs) {
            // A candidate has read no further than its place. It reads on before it leads.
            Found::Void if self.is_candidate() => Found::Foreign,
            found => found,
        };
        match (self.broken, found) {
            (Some(Broken::ResendsElsewhere), Found::Ours)
            | (Some(Broken::IgnoresLeads), Found::Foreign) => Found::Void,
            _ => found,
        }
    }
}

/// Where the chain stands before a record of ours, as that says itself.
fn chain_before(ours: &Header) -> Chain {
    let epoch = match ours.kind {
        Kind::Lead => Epoch(ours.epoch.0.saturating_sub(1)),
        _ => ours.epoch,
    };
    Chain { value: ours.predecessor, epoch }
}

/// Whose record stands where `ours` should.
fn tell_apart(ours: &Bytes, theirs: &Bytes) -> Found {
    if ours == theirs {
        return Found::Ours;
    }
    let headers = (record::decode_header(ours, false), record::decode_header(theirs, true));
    let (Ok(ours), Ok(theirs)) = headers else { return Found::Foreign };
    let chain = chain_before(&ours);
    let is_foreign = chain.admits(&theirs) || chain.contradicts(&theirs);
    if is_foreign { Found::Foreign } else { Found::Void }
}
