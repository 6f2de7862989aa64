//! Tail, first, trim: what is asked of a log beside records.

use super::store::{Operation, OperationId, Outcome, RecordStore};
use crate::log::{LogEvent, Ticket};
use base::{Position, Sequence};
use std::collections::BTreeMap;

/// Questions under way above which one more is not asked. A node asks a few a second.
const QUESTIONS_MAX: usize = 32;

#[derive(Clone, Copy)]
enum Question {
    Tail(Ticket),
    First(Ticket),
}

#[derive(Default)]
pub(super) struct Questions {
    asked: BTreeMap<OperationId, Question>,
    /// The trim under way.
    trimming: Option<OperationId>,
    /// What to trim through when that has ended.
    trim_next: Option<Sequence>,
    /// Asked since a trim began: its end answers them. Asked beside it, the service might answer
    /// as of before.
    firsts: Vec<Ticket>,
}

impl Questions {
    pub(super) fn is_busy(&self) -> bool {
        !self.asked.is_empty() || self.trimming.is_some() || self.trim_next.is_some()
    }

    pub(super) fn ask_tail(
        &mut self,
        store: &mut dyn RecordStore,
        ticket: Ticket,
        events: &mut Vec<LogEvent>,
    ) {
        if self.has_room(ticket, events) {
            self.asked.insert(store.begin(Operation::Tail), Question::Tail(ticket));
        }
    }

    pub(super) fn ask_first(
        &mut self,
        store: &mut dyn RecordStore,
        ticket: Ticket,
        events: &mut Vec<LogEvent>,
    ) {
        if !self.has_room(ticket, events) {
            return;
        }
        if self.trimming.is_some() {
            self.firsts.push(ticket);
        } else {
            self.asked.insert(store.begin(Operation::First), Question::First(ticket));
        }
    }

    fn has_room(&self, ticket: Ticket, events: &mut Vec<LogEvent>) -> bool {
        let has_room = self.asked.len() + self.firsts.len() < QUESTIONS_MAX;
        if !has_room {
            let why = "too many questions are under way".to_owned();
            events.push(LogEvent::Unanswered(ticket, why));
        }
        has_room
    }

    pub(super) fn trim(&mut self, through: Sequence) {
        self.trim_next = self.trim_next.max(Some(through));
    }

    /// Begins the next trim.
    pub(super) fn pump(&mut self, store: &mut dyn RecordStore) {
        if self.trimming.is_none()
            && let Some(through) = self.trim_next.take()
        {
            self.trimming = Some(store.begin(Operation::Trim { through }));
        }
    }

    pub(super) fn awaits(&self, id: OperationId) -> bool {
        self.trimming == Some(id) || self.asked.contains_key(&id)
    }

    /// Takes the outcome of one of these.
    pub(super) fn take(
        &mut self,
        log: Position,
        id: OperationId,
        outcome: &Outcome,
        events: &mut Vec<LogEvent>,
    ) {
        if self.trimming == Some(id) {
            // What could not be trimmed is still whole, and the next trim begins with it.
            self.trimming = None;
            for ticket in std::mem::take(&mut self.firsts) {
                events.push(answer(Question::First(ticket), log, outcome));
            }
        } else if let Some(question) = self.asked.remove(&id) {
            events.push(answer(question, log, outcome));
        }
    }
}

fn answer(question: Question, log: Position, outcome: &Outcome) -> LogEvent {
    match (question, outcome) {
        (Question::Tail(ticket), Outcome::Tail { sequence, is_confirmed }) => {
            LogEvent::Tail { ticket, position: log.at(*sequence), confirmed: *is_confirmed }
        }
        (Question::First(ticket), Outcome::First { sequence }) => {
            LogEvent::First { ticket, position: log.at(*sequence) }
        }
        (Question::Tail(ticket) | Question::First(ticket), Outcome::Failed(why)) => {
            LogEvent::Unanswered(ticket, why.clone())
        }
        (Question::Tail(ticket) | Question::First(ticket), Outcome::Lost(_)) => {
            LogEvent::Unanswered(ticket, "the log was deleted or replaced".to_owned())
        }
        (Question::Tail(ticket) | Question::First(ticket), _) => {
            LogEvent::Unanswered(ticket, "the service answered something else".to_owned())
        }
    }
}
