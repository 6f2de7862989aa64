//! A log that is read as if it had not been trimmed: what is gone of it is read from the archive.

use super::records::ArchivedRecords;
use crate::loading::OpenLog;
use archive::LogStore;
use base::{Incarnation, Position, Sequence};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use txlog::{Chain, Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};

/// Bytes of records that one poll reads from the archive; the last one may overshoot.
const PIECE_BYTES: usize = 1 << 20;

/// Reads log and archive as one. A poll that reads the archive blocks, so it is for tools.
pub struct ArchivedLog {
    log: Box<dyn TransactionLog>,
    store: LogStore,
    incarnation: Incarnation,
    /// The record that is read next.
    next: Option<Sequence>,
    /// While the archive is read, and the record at which the log goes on.
    archived: Option<(ArchivedRecords, Sequence)>,
    /// Questions whose answer may lie in the archive.
    compared: BTreeMap<Ticket, (Position, Chain)>,
    firsts: Vec<Ticket>,
    events: Vec<LogEvent>,
}

impl ArchivedLog {
    /// The log together with what is archived of it, for a start.
    pub fn over(log: OpenLog, store: LogStore) -> OpenLog {
        let (incarnation, is_free) = (log.incarnation, log.is_free);
        OpenLog { handle: Box::new(Self::new(log, store)), incarnation, is_free }
    }

    /// The log together with what is archived of it.
    pub fn new(log: OpenLog, store: LogStore) -> Self {
        let OpenLog { handle, incarnation, .. } = log;
        Self {
            log: handle,
            store,
            incarnation,
            next: None,
            archived: None,
            compared: BTreeMap::new(),
            firsts: Vec::new(),
            events: Vec::new(),
        }
    }

    /// The oldest record from which everything up to this one is archived.
    fn reaches_back(&self, first: Sequence) -> io::Result<Sequence> {
        let mut oldest = first;
        // In order of their beginnings: seen from the end, each may reach back further.
        for extent in self.store.list()?.iter().rev() {
            if extent.last.next() >= oldest {
                oldest = oldest.min(extent.first);
            }
        }
        Ok(oldest)
    }

    /// The log does not hold what is to be read next, and begins here.
    fn trimmed(&mut self, next: Sequence, first: Sequence) -> io::Result<()> {
        match ArchivedRecords::open(&self.store, self.at(next))? {
            Some(reader) => self.archived = Some((reader, first)),
            None => {
                self.next = None;
                let first = self.reaches_back(first)?;
                self.events.push(LogEvent::Trimmed { first });
            }
        }
        Ok(())
    }

    /// Hands out archived records, and goes over to the log where it goes on.
    fn read_archived(&mut self) -> io::Result<()> {
        let Some((mut records, first)) = self.archived.take() else { return Ok(()) };
        let mut bytes = 0;
        while bytes < PIECE_BYTES {
            let next = records.next_sequence();
            if next >= first {
                self.log.read_from(self.at(next));
                return Ok(());
            }
            let Some((position, record)) = records.next()? else {
                // Whoever goes no further than here hears nothing of what is missing.
                if bytes > 0 {
                    break;
                }
                let gap = format!("records {next} to {first} are neither in the log nor archived");
                return Err(io::Error::new(ErrorKind::NotFound, gap));
            };
            bytes += record.len();
            self.next = Some(position.sequence.next());
            self.events.push(LogEvent::Read(position, record));
        }
        self.archived = Some((records, first));
        Ok(())
    }

    fn at(&self, sequence: Sequence) -> Position {
        Position { incarnation: self.incarnation, sequence }
    }

    /// Compares what the archive holds at a place that the log does not.
    fn compare_archived(&self, position: Position, chain: Chain) -> io::Result<History> {
        let Some(mut records) = ArchivedRecords::open(&self.store, position)? else {
            return Ok(History::Trimmed);
        };
        let record = records.next()?;
        Ok(record.map_or(History::Trimmed, |(_, bytes)| History::of_record(&bytes, chain)))
    }

    fn hear(&mut self, event: LogEvent) {
        match event {
            LogEvent::Trimmed { first } if self.next.is_some() => {
                let next = self.next.expect("it was looked at");
                if let Err(error) = self.trimmed(next, first) {
                    self.fail(&error);
                }
            }
            LogEvent::Read(position, bytes) => {
                self.next = Some(position.sequence.next());
                self.events.push(LogEvent::Read(position, bytes));
            }
            LogEvent::Compared { ticket, history } => {
                let asked = self.compared.remove(&ticket);
                let event = match asked.filter(|_| history == History::Trimmed) {
                    Some((position, chain)) => match self.compare_archived(position, chain) {
                        Ok(history) => LogEvent::Compared { ticket, history },
                        Err(error) => LogEvent::Unanswered(ticket, error.to_string()),
                    },
                    None => LogEvent::Compared { ticket, history },
                };
                self.events.push(event);
            }
            LogEvent::First { ticket, position } if self.firsts.contains(&ticket) => {
                self.firsts.retain(|asked| *asked != ticket);
                self.events.push(match self.reaches_back(position.sequence) {
                    Ok(first) => LogEvent::First { ticket, position: position.at(first) },
                    Err(error) => LogEvent::Unanswered(ticket, error.to_string()),
                });
            }
            other => self.events.push(other),
        }
    }

    fn fail(&mut self, error: &io::Error) {
        self.next = None;
        self.archived = None;
        self.events.push(LogEvent::ReadFailed(error.to_string()));
    }
}

impl TransactionLog for ArchivedLog {
    fn limits(&self) -> Limits {
        self.log.limits()
    }

    fn gate(&self) -> Gate {
        self.log.gate()
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        self.log.append(after, record)
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        let mut heard = Vec::new();
        self.log.poll(&mut heard);
        for event in heard {
            self.hear(event);
        }
        if let Err(error) = self.read_archived() {
            self.fail(&error);
        }
        events.append(&mut self.events);
    }

    fn is_busy(&self) -> bool {
        self.archived.is_some() || self.log.is_busy()
    }

    fn wait_nanos(&self) -> Option<u64> {
        if self.archived.is_some() { Some(0) } else { self.log.wait_nanos() }
    }

    fn read_from(&mut self, from: Position) {
        self.next = Some(from.sequence);
        self.archived = None;
        self.log.read_from(from);
    }

    fn stop_reading(&mut self) {
        self.next = None;
        self.archived = None;
        self.log.stop_reading();
    }

    fn tail(&mut self) -> Ticket {
        self.log.tail()
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        let ticket = self.log.compare(position, chain);
        if position.sequence > Sequence::ZERO {
            self.compared.insert(ticket, (position, chain));
        }
        ticket
    }

    fn probe_holder(&mut self) {
        self.log.probe_holder();
    }

    fn is_watched(&mut self) -> bool {
        self.log.is_watched()
    }

    fn trouble(&self) -> Option<Refusal> {
        self.log.trouble()
    }

    fn trim(&mut self, through: Position) {
        self.log.trim(through);
    }

    fn first(&mut self) -> Ticket {
        let ticket = self.log.first();
        self.firsts.push(ticket);
        ticket
    }
}
