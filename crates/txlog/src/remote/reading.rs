//! Reading in order, and tailing: one piece at a time, handed out as it comes.

use super::backoff::Backoff;
use super::shortfall::Shortfall;
use super::store::{Operation, OperationId, Outcome, RecordStore};
use crate::log::LogEvent;
use base::{MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use std::ops::ControlFlow;

/// The reading that `read_from` began.
pub(super) struct Reading {
    /// The next record wanted.
    next: Position,
    /// Asked for at a time.
    bytes_max: usize,
    under_way: Option<UnderWay>,
    /// The tail that was told as caught up with.
    told: Option<Sequence>,
    retry: Backoff,
    retry_at: MonotonicNanos,
    /// Of the last record handed out.
    shortfall: Shortfall,
}

#[derive(Clone, Copy)]
struct UnderWay {
    id: OperationId,
    /// Its answer comes when there is something new, which may be never.
    is_idle: bool,
}

impl Reading {
    pub(super) fn new(from: Position, bytes_max: usize) -> Self {
        Self {
            next: from.at(from.sequence.max(Sequence(1))),
            bytes_max,
            under_way: None,
            told: None,
            retry: Backoff::default(),
            retry_at: MonotonicNanos(0),
            shortfall: Shortfall::default(),
        }
    }

    /// Whether an answer is expected soon.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.is_none_or(|under_way| !under_way.is_idle)
    }

    pub(super) fn retry_at(&self) -> Option<MonotonicNanos> {
        self.under_way.is_none().then_some(self.retry_at)
    }

    /// The record before the next one: the last one handed out, or the one read from behind.
    fn last(&self) -> Sequence {
        Sequence(self.next.sequence.0 - 1)
    }

    pub(super) fn pump(&mut self, store: &mut dyn RecordStore, now: MonotonicNanos) {
        if self.under_way.is_some() || now < self.retry_at {
            return;
        }
        let operation = if self.shortfall.is_suspected() {
            Operation::Tail
        } else {
            // Who has once come to the end follows it from then on.
            let waits = self.told.is_some();
            Operation::Get { from: self.next.sequence, bytes_max: self.bytes_max, waits }
        };
        let is_idle = self.told == Some(self.last());
        self.under_way = Some(UnderWay { id: store.begin(operation), is_idle });
    }

    pub(super) fn awaits(&self, id: OperationId) -> bool {
        self.under_way.is_some_and(|under_way| under_way.id == id)
    }

    /// Takes the outcome of what is under way. Breaks if the reading has ended.
    pub(super) fn take(
        &mut self,
        outcome: Outcome,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) -> ControlFlow<()> {
        self.under_way = None;
        match outcome {
            Outcome::Records { records, tail } if records.is_empty() && tail < self.last() => {
                return self.doubt_place(tail, false, now, events);
            }
            Outcome::Records { records, tail } => self.hand_out(records, tail, now, events),
            Outcome::Tail { sequence, is_confirmed } => {
                return self.doubt_place(sequence, is_confirmed, now, events);
            }
            Outcome::Trimmed { first } => {
                events.push(LogEvent::Trimmed { first });
                return ControlFlow::Break(());
            }
            Outcome::Lost(_) => {
                events.push(LogEvent::Lost);
                return ControlFlow::Break(());
            }
            _ => self.retry_at = self.retry.after_failure(now),
        }
        ControlFlow::Continue(())
    }

    fn hand_out(
        &mut self,
        records: Vec<Bytes>,
        tail: Sequence,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) {
        let is_empty = records.is_empty();
        for record in records {
            events.push(LogEvent::Read(self.next, record));
            self.next = self.next.next();
        }
        let last = self.last();
        if is_empty && tail != last {
            // The service withholds what it says is there.
            self.retry_at = self.retry.after_failure(now);
            return;
        }
        self.retry.reset();
        if tail <= last && self.told != Some(last) {
            self.told = Some(last);
            events.push(LogEvent::CaughtUp(self.next.at(last)));
        }
    }

    /// Takes a tail that may lie before the last record handed out: the place lies behind the log's
    /// end, or the answer comes from the past.
    fn doubt_place(
        &mut self,
        tail: Sequence,
        is_confirmed: bool,
        now: MonotonicNanos,
        events: &mut Vec<LogEvent>,
    ) -> ControlFlow<()> {
        if self.shortfall.proves_loss(self.last(), tail, is_confirmed, now) {
            events.push(LogEvent::Lost);
            return ControlFlow::Break(());
        }
        if self.shortfall.is_suspected() {
            self.retry_at = self.retry.after_failure(now);
        }
        ControlFlow::Continue(())
    }
}
