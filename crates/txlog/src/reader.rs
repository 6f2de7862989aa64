//! Reads a log in order outside a server: for tools, and for whoever replays a log up to a point.
//!
//! ```text
//! log ─ Read, CaughtUp, Trimmed, … ─▶ Reader: chain, parts of units, goal ─▶ Record | Wait | Done
//! ```
//!
//! It is polled and never blocks; whoever drives it waits. It appends nothing and claims nothing,
//! so it may read beside the server that writes. Every record is handed out, also those that do not
//! count, with what it meant to a reader.
//!
//! **Where the chain stands** before the first record must be known to tell which records count. A
//! snapshot knows it for its own position. The oldest record of a trimmed log does not prove it: it
//! may be a deposed writer's. So the first records are held until so many are there that one of a
//! later epoch would be among them, and the chain is taken from the first of them that all others
//! agree with. If nothing but a deposed writer's records is left of a log, they are taken for
//! records that count.

use crate::chain::{Chain, Consumed, FollowError, Follower};
use crate::log::{LogEvent, TransactionLog};
use crate::record::{self, Header};
use base::{Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use encryption::Keys;
use std::collections::VecDeque;
use std::fmt;

/// Records that are looked at to find out where the chain stands. A deposed writer leaves no more
/// behind than it had under way, which is eight at most (JetStream); this is four such writers.
const HELD_RECORDS_MAX: usize = 32;

/// A log as far as it can be read.
pub trait Readable {
    /// As [`TransactionLog::read_from`].
    fn read_from(&mut self, from: Position);

    /// As [`TransactionLog::poll`].
    fn poll(&mut self, events: &mut Vec<LogEvent>);

    /// As [`TransactionLog::wait_nanos`].
    fn wait_nanos(&self) -> Option<u64>;
}

impl<L: TransactionLog + ?Sized> Readable for L {
    fn read_from(&mut self, from: Position) {
        TransactionLog::read_from(self, from);
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        TransactionLog::poll(self, events);
    }

    fn wait_nanos(&self) -> Option<u64> {
        TransactionLog::wait_nanos(self)
    }
}

/// Where a reading begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Start {
    /// Behind this record, which ended a unit and left the chain there: a snapshot's, or the origin
    /// of a log that was never trimmed.
    Behind(Position, Chain),
    /// At the oldest record of this log. A unit whose beginning was trimmed is passed over.
    Oldest(Incarnation),
    /// At this record, wherever the chain stands before it: likewise. The log must reach back to
    /// it.
    At(Position),
}

/// Where a reading ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// With the last record that the log has when it is first read to its end.
    Tail,
    /// With this record, which is waited for: whoever names it knows that it was durable.
    Through(Sequence),
    /// Before the first record that counts and is stamped later than this; with the last one, if
    /// the log's end is found before.
    Clock(UnixMillis),
}

impl Goal {
    /// Nowhere: the log is followed as it grows. No record has this number.
    pub const NEVER: Self = Self::Through(Sequence(u64::MAX));
}

/// What [`Reader::next`] brings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Next {
    Record(Read),
    /// Nothing yet: ask again when the log's waker was called or its `wait_nanos` are over.
    Wait,
    /// The goal is reached.
    Done,
}

/// One record as it was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Read {
    pub position: Position,
    /// All of it, header included.
    pub bytes: Bytes,
    /// What it means. A unit that was split comes whole, with its last part.
    pub consumed: Consumed,
}

impl Read {
    /// Whether it belongs to the history: one that does not is void for every reader.
    pub fn counts(&self) -> bool {
        self.consumed != Consumed::Void
    }

    pub fn header(&self) -> Header {
        record::decode_header(&self.bytes, false).expect("what was consumed has a header")
    }
}

/// Why a reading cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ReadError {
    /// Records that were to be read were trimmed: the log begins here.
    Trimmed { first: Sequence },
    /// The log is gone, is another one, or ends before the record where the reading began.
    Lost,
    /// The log is damaged or its storage failed; says where.
    Failed(String),
    /// A record that no reader may pass over.
    Follow(Sequence, FollowError),
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trimmed { first } => {
                write!(f, "the log was trimmed and begins at record {first}")
            }
            Self::Lost => f.write_str("the log was cut, deleted or created anew"),
            Self::Failed(what) => f.write_str(what),
            Self::Follow(at, error) => write!(f, "record {at} of the log: {error}"),
        }
    }
}

impl std::error::Error for ReadError {}

/// A reading under way.
#[derive(Debug)]
pub struct Reader {
    start: Start,
    goal: Goal,
    keys: Keys,
    /// `None` until it is known where the chain stands.
    follower: Option<Follower>,
    /// Read and not handed out: what one poll of the log brought, or what is held.
    waiting: VecDeque<(Position, Bytes)>,
    /// The log's end when it was first reached.
    end: Option<Sequence>,
    /// Reading begins anew here: the log was trimmed before its oldest record was read.
    again_at: Option<Position>,
    failure: Option<ReadError>,
    is_done: bool,
    events: Vec<LogEvent>,
}

impl Reader {
    /// Begins to read `log`, in place of whatever was read from this handle before.
    pub fn new(log: &mut (impl Readable + ?Sized), start: Start, goal: Goal) -> Self {
        let (from, follower) = match start {
            Start::Behind(at, chain) => (at.next(), Some(Follower::new(at.sequence, chain))),
            Start::Oldest(incarnation) => (Position { incarnation, sequence: Sequence(1) }, None),
            Start::At(from) => (from, None),
        };
        log.read_from(from);
        Self {
            start,
            goal,
            keys: Keys::none(),
            follower,
            waiting: VecDeque::new(),
            end: None,
            again_at: None,
            failure: None,
            is_done: false,
            events: Vec::new(),
        }
    }

    /// Reads encrypted payloads with these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: Keys) -> Self {
        if let Some(follower) = &mut self.follower {
            follower.use_keys(keys.clone());
        }
        Self { keys, ..self }
    }

    /// The next record, if it is there; polls the log only if no record is left of the last poll.
    ///
    /// # Errors
    /// [`ReadError`], once everything before it was handed out. The reader is then of no use.
    pub fn next(&mut self, log: &mut (impl Readable + ?Sized)) -> Result<Next, ReadError> {
        if let Some(next) = self.take()? {
            return Ok(next);
        }
        if let Some(from) = self.again_at.take() {
            log.read_from(from);
        }
        let mut events = std::mem::take(&mut self.events);
        log.poll(&mut events);
        for event in events.drain(..) {
            self.hear(event);
        }
        self.events = events;
        Ok(self.take()?.unwrap_or(Next::Wait))
    }

    /// The log's end when it was first reached, which is when everything through it is known.
    pub fn end(&self) -> Option<Sequence> {
        self.end
    }

    fn hear(&mut self, event: LogEvent) {
        match event {
            LogEvent::Read(position, bytes) => self.waiting.push_back((position, bytes)),
            LogEvent::CaughtUp(position) => {
                self.end.get_or_insert(position.sequence);
            }
            LogEvent::Trimmed { first } => match self.start {
                Start::Oldest(incarnation) if self.follower.is_none() => {
                    self.waiting.clear();
                    self.again_at = Some(Position { incarnation, sequence: first });
                }
                _ => self.failure = Some(ReadError::Trimmed { first }),
            },
            LogEvent::Lost => self.failure = Some(ReadError::Lost),
            LogEvent::ReadFailed(what) => self.failure = Some(ReadError::Failed(what)),
            _ => {}
        }
    }

    fn take(&mut self) -> Result<Option<Next>, ReadError> {
        if self.is_done {
            return Ok(Some(Next::Done));
        }
        let is_over = self.end.is_some() || self.failure.is_some();
        if let Some((oldest, _)) = self.waiting.front()
            && self.follower.is_none()
        {
            let is_enough = is_over || self.waiting.len() >= HELD_RECORDS_MAX;
            if oldest.sequence > Sequence(1) && !is_enough {
                return Ok(None);
            }
            let mut follower = follower_at(*oldest, &self.waiting);
            follower.use_keys(self.keys.clone());
            self.follower = Some(follower);
        }
        let is_behind_end = |sequence| self.end.is_some_and(|end| sequence > end);
        match (self.waiting.pop_front(), self.goal) {
            (Some((position, _)), Goal::Tail) if is_behind_end(position.sequence) => {
                self.is_done = true;
                Ok(Some(Next::Done))
            }
            (Some((position, bytes)), _) => self.consume(position, bytes).map(Some),
            (None, _) if self.failure.is_some() => self.failure.take().map_or(Ok(None), Err),
            (None, Goal::Tail | Goal::Clock(_)) if self.end.is_some() => {
                self.is_done = true;
                Ok(Some(Next::Done))
            }
            (None, _) => Ok(None),
        }
    }

    fn consume(&mut self, position: Position, bytes: Bytes) -> Result<Next, ReadError> {
        let sequence = position.sequence;
        let follower = self.follower.as_mut().expect("the chain is known before records are taken");
        let consumed = follower
            .consume(sequence, &bytes)
            .map_err(|error| ReadError::Follow(sequence, error))?;
        let read = Read { position, bytes, consumed };
        match self.goal {
            Goal::Clock(latest) if read.counts() && read.header().clock > latest => {
                self.is_done = true;
                return Ok(Next::Done);
            }
            Goal::Through(last) if sequence >= last => self.is_done = true,
            _ => {}
        }
        Ok(Next::Record(read))
    }
}

/// Whoever follows `records`, of which `oldest` is the first, from where the chain stands before
/// it.
fn follower_at(oldest: Position, records: &VecDeque<(Position, Bytes)>) -> Follower {
    let origin = Chain::start(oldest.incarnation);
    if oldest.sequence == Sequence(1) {
        return Follower::new(Sequence::ZERO, origin);
    }
    let before = records.iter().filter_map(|(_, bytes)| Chain::before(bytes));
    let chain = before.into_iter().find(|&chain| agrees(chain, records)).unwrap_or(origin);
    Follower::amid(Sequence(oldest.sequence.0 - 1), chain)
}

/// Whether the records can stand behind this chain, each as one that counts or as a void one.
fn agrees(mut chain: Chain, records: &VecDeque<(Position, Bytes)>) -> bool {
    let headers = records.iter().map(|(_, bytes)| (bytes, record::decode_header(bytes, false)));
    for (bytes, header) in headers {
        // One that cannot be read ends the reading when it comes to it.
        let Ok(header) = header else { return true };
        if chain.contradicts(&header) {
            return false;
        }
        if chain.admits(&header) {
            chain.extend(&header, bytes);
        }
    }
    true
}

#[cfg(test)]
mod tests;
