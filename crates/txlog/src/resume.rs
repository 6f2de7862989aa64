//! Goes on with a reading where another one ended, if the log still is the history that it read.
//!
//! ```text
//! UnitPosition ─ compare ─▶ the same history? ─ read its record ─▶ where a Reader starts,
//!                              │                                   what it passes over first
//!                              └▶ another one, trimmed, lost: said by name
//! ```
//! Polled, as a [`crate::reader::Reader`] is.

use crate::chain::Chain;
use crate::log::{History, LogEvent, Ticket, TransactionLog};
use crate::reader::Start;
use crate::record::{self, Part};
use crate::unit_position::UnitPosition;
use base::{Incarnation, Sequence};
use bytes::Bytes;
use std::fmt;

/// Where the reading goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Resumed {
    pub start: Start,
    /// What was read before of the record that comes first. `None`: nothing.
    pub passes_over: Option<UnitPosition>,
}

/// Why it cannot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ResumeError {
    /// The position is of another log than this one.
    AnotherLog { named: Incarnation, found: Incarnation },
    /// Something else stands at the position.
    AnotherHistory(Sequence),
    /// The record was trimmed, and perhaps others behind it. The log begins here, if it is known.
    Trimmed { at: Sequence, first: Option<Sequence> },
    /// The log ends before the position, or is gone.
    Lost(Sequence),
    /// The log could not be read; says why.
    Failed(String),
}

impl fmt::Display for ResumeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AnotherLog { named, found } => write!(
                f,
                "the position is of log {:016x}, and this is log {:016x}: another log",
                named.0, found.0
            ),
            Self::AnotherHistory(at) => write!(
                f,
                "the log is another history than the one of the position: something else stands \
                 at record {at}. The log was restored from a backup, or lost records that it had \
                 acknowledged (docs/operations/restore.md)"
            ),
            Self::Trimmed { at, first: None } => write!(
                f,
                "record {at} of the position was trimmed, and perhaps others behind it: the log \
                 begins later"
            ),
            Self::Trimmed { at, first: Some(first) } => write!(
                f,
                "record {at} of the position was trimmed, and perhaps others behind it: the log \
                 begins at record {first}"
            ),
            Self::Lost(at) => write!(
                f,
                "the log ends before record {at} of the position, or was deleted: records were lost"
            ),
            Self::Failed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for ResumeError {}

/// A check under way.
pub struct Resume {
    at: UnitPosition,
    /// The comparison that was asked for; `None` once it found the same history.
    asked: Option<Ticket>,
    events: Vec<LogEvent>,
}

impl Resume {
    /// Begins to check that `log`, of this incarnation, holds what was read before `at`.
    ///
    /// # Errors
    /// The position is of another log.
    pub fn new(
        log: &mut dyn TransactionLog,
        found: Incarnation,
        at: UnitPosition,
    ) -> Result<Self, ResumeError> {
        let named = at.record.incarnation;
        if named != found {
            return Err(ResumeError::AnotherLog { named, found });
        }
        let asked = Some(log.compare(at.record, at.chain));
        Ok(Self { at, asked, events: Vec::new() })
    }

    /// The outcome, once it is known; `None`: ask again, as with a reader.
    ///
    /// # Errors
    /// The reading cannot go on at this position.
    pub fn next(&mut self, log: &mut dyn TransactionLog) -> Result<Option<Resumed>, ResumeError> {
        let mut events = std::mem::take(&mut self.events);
        log.poll(&mut events);
        for event in events.drain(..) {
            if let Some(resumed) = self.hear(event, log)? {
                return Ok(Some(resumed));
            }
        }
        self.events = events;
        Ok(None)
    }

    fn hear(
        &mut self,
        event: LogEvent,
        log: &mut dyn TransactionLog,
    ) -> Result<Option<Resumed>, ResumeError> {
        let at = self.at.record.sequence;
        match event {
            LogEvent::Compared { ticket, history } if self.asked == Some(ticket) => {
                self.asked = None;
                match history {
                    History::Same => log.read_from(self.at.record),
                    History::Other => return Err(ResumeError::AnotherHistory(at)),
                    History::Trimmed => return Err(ResumeError::Trimmed { at, first: None }),
                    History::Lost => return Err(ResumeError::Lost(at)),
                }
                Ok(None)
            }
            LogEvent::Unanswered(ticket, what) if self.asked == Some(ticket) => {
                Err(ResumeError::Failed(what))
            }
            _ if self.asked.is_some() => Ok(None),
            LogEvent::Read(position, bytes) if position == self.at.record => {
                self.at_record(&bytes).map(Some)
            }
            LogEvent::Trimmed { first } => Err(ResumeError::Trimmed { at, first: Some(first) }),
            LogEvent::Lost => Err(ResumeError::Lost(at)),
            LogEvent::ReadFailed(what) => Err(ResumeError::Failed(what)),
            _ => Ok(None),
        }
    }

    /// Where reading goes on, given the record of the position.
    fn at_record(&self, bytes: &Bytes) -> Result<Resumed, ResumeError> {
        let at = self.at.record;
        let other = || ResumeError::AnotherHistory(at.sequence);
        let header = record::decode_header(bytes, true).map_err(|_| other())?;
        let before = Chain::before(bytes).filter(|_| Chain::behind(bytes) == Some(self.at.chain));
        let before = before.ok_or_else(other)?;
        if header.part == Part::Last {
            // The parts before are not read again: the unit ends here, and nothing else stands in
            // its record.
            return Ok(Resumed { start: Start::Behind(at, self.at.chain), passes_over: None });
        }
        // A position of record 0 names none that can be read.
        let previous = at.sequence.0.checked_sub(1).map(Sequence).ok_or_else(other)?;
        let start = Start::Behind(at.at(previous), before);
        Ok(Resumed { start, passes_over: Some(self.at) })
    }
}

#[cfg(test)]
mod tests;
