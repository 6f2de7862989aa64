//! Answers `TransactionLog::compare` for a log that a service keeps: whether the record at a place
//! is the one that was read there before.
//!
//! A service may be restored from a backup, or lose what it had acknowledged, and then others may
//! have written at the same numbers. The record itself tells: it names the chain before it, so if
//! it is the same, so is everything before it. Comparisons are made one after the other, and a
//! question that the service did not answer is asked again.

use super::backoff::Backoff;
use super::shortfall::Shortfall;
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
    /// Of the first of them.
    shortfall: Shortfall,
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
        let Some(Comparison { place, .. }) = self.asked.front() else { return };
        let question = if self.shortfall.is_suspected() {
            Operation::Tail
        } else {
            // One record is enough, and one is what the least number of bytes gives.
            Operation::Get { from: *place, bytes_max: 1, waits: false }
        };
        self.under_way = Some(store.begin(question));
    }

    pub(super) fn awaits(&self, id: OperationId) -> bool {
        self.under_way == Some(id)
    }

    /// Takes the outcome of what is under way.
    pub(super) fn take(
        &mut self,
        outcome: Outcome,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) {
        self.under_way = None;
        let Some(Comparison { ticket, place, chain }) = self.asked.front().copied() else { return };
        let mut is_lost =
            |tail, is_confirmed| self.shortfall.proves_loss(place, tail, is_confirmed, now);
        let answer = match outcome {
            Outcome::Records { records, tail } => match records.first() {
                Some(record) => Some(History::of_record(record, chain)),
                None => is_lost(tail, false).then_some(History::Lost),
            },
            Outcome::Tail { sequence, is_confirmed } => {
                is_lost(sequence, is_confirmed).then_some(History::Lost)
            }
            Outcome::Trimmed { .. } => Some(History::Trimmed),
            Outcome::Lost(_) => Some(History::Lost),
            _ => None,
        };
        match answer {
            Some(history) => {
                self.asked.pop_front();
                self.retry.reset();
                self.shortfall = Shortfall::default();
                events.push(LogEvent::Compared { ticket, history });
            }
            None => self.retry_at = self.retry.after_failure(now),
        }
    }
}
