//! Whether the service still holds the history that was read of it.
//!
//! A service may be restored from a backup, or lose what it had acknowledged, and then others may
//! have written where something else was read. Numbers do not show that; the record does that stood
//! at a place and was found to count: it names all before it.

use super::backoff::Backoff;
use super::store::{Operation, OperationId, Outcome, RecordStore};
use crate::chain::Chain;
use crate::log::{History, LogEvent, Ticket};
use base::{MonotonicNanos, Sequence};
use std::collections::VecDeque;

/// Comparisons that may wait for each other. A node has two at most: a start compares two
/// snapshots, a candidate its newest record.
const COMPARISONS_MAX: usize = 8;

/// One place to be looked at.
#[derive(Clone, Copy)]
struct Comparison {
    ticket: Ticket,
    place: Sequence,
    chain: Chain,
}

/// What is to be compared, one after the other.
#[derive(Default)]
pub(super) struct Comparisons {
    asked: VecDeque<Comparison>,
    under_way: Option<OperationId>,
    retry: Backoff,
    retry_at: MonotonicNanos,
}

impl Comparisons {
    pub(super) fn is_busy(&self) -> bool {
        !self.asked.is_empty()
    }

    pub(super) fn retry_at(&self) -> Option<MonotonicNanos> {
        (self.is_busy() && self.under_way.is_none()).then_some(self.retry_at)
    }

    pub(super) fn ask(
        &mut self,
        ticket: Ticket,
        place: Sequence,
        chain: Chain,
        events: &mut Vec<LogEvent>,
    ) {
        if self.asked.len() < COMPARISONS_MAX {
            self.asked.push_back(Comparison { ticket, place, chain });
        } else {
            let why = "too many comparisons are under way".to_owned();
            events.push(LogEvent::Unanswered(ticket, why));
        }
    }

    pub(super) fn pump(&mut self, store: &mut dyn RecordStore, now: MonotonicNanos) {
        if self.under_way.is_some() || now < self.retry_at {
            return;
        }
        if let Some(Comparison { place, .. }) = self.asked.front() {
            // One record is enough, and one is what the least number of bytes gives.
            let get = Operation::Get { from: *place, bytes_max: 1, waits: false };
            self.under_way = Some(store.begin(get));
        }
    }

    /// Takes an outcome, or gives it back if the operation is none of these. What was not answered
    /// is asked again: a service may be away for long, and so may what waits for it.
    pub(super) fn take(
        &mut self,
        id: OperationId,
        outcome: Outcome,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) -> Option<Outcome> {
        if self.under_way != Some(id) {
            return Some(outcome);
        }
        self.under_way = None;
        let Comparison { ticket, chain, .. } = self.asked.front().copied()?;
        let answer = match outcome {
            Outcome::Records { records, .. } => {
                records.first().map(|record| History::of_record(record, chain))
            }
            Outcome::Trimmed { .. } => Some(History::Trimmed),
            Outcome::Lost(_) => {
                self.asked.pop_front();
                events.push(LogEvent::Lost);
                return None;
            }
            _ => None,
        };
        match answer {
            Some(history) => {
                self.asked.pop_front();
                self.retry.reset();
                events.push(LogEvent::Compared { ticket, history });
            }
            None => self.retry_at = self.retry.after_failure(now),
        }
        None
    }
}
