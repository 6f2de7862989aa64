//! Reading a log that still grows: bounded pieces on the background queue, up to the durable mark.

use super::commit::Background;
use super::error::LogError;
use super::recover;
use super::replay::Replay;
use super::survey::{Segment, Survey};
use super::{FileLog, Role};
use crate::log::LogEvent;
use base::disk::Disk;
use base::{Incarnation, MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of records handed out per piece; the last record may overshoot.
const PIECE_BYTES: usize = 1 << 20;
/// How often another process's mark is looked at. A replica's extra delay; a guess.
const LOOK_NANOS: u64 = 5_000_000;

/// A reading under way.
pub(super) struct Reading {
    /// The next record wanted.
    next: Sequence,
    replay: Option<Replay>,
    under_way: bool,
    /// `CaughtUp` was told for this position.
    told: Option<Sequence>,
    look_at: MonotonicNanos,
}

impl Reading {
    pub(super) fn new(next: Sequence) -> Self {
        let look_at = MonotonicNanos(0);
        Self { next, replay: None, under_way: false, told: None, look_at }
    }
}

/// What one piece of reading brought.
pub(super) struct ReadOutcome {
    /// The sequence the piece began at: a piece of a replaced reading is dropped.
    from: Sequence,
    replay: Option<Replay>,
    records: Vec<(Position, Bytes)>,
    error: Option<LogError>,
    until: Sequence,
    /// The tenure that wrote the last of the records.
    claim: u64,
}

impl FileLog {
    /// When the next look at another process's mark is due.
    pub(super) fn reading_wait_nanos(&self) -> Option<u64> {
        let reading = self.reading.as_ref()?;
        let is_idle = matches!(self.role, Role::Writer) && reading.told == Some(self.durable);
        let until = reading.look_at.since(self.clock.monotonic());
        (!reading.under_way && !is_idle).then_some(until)
    }

    pub(super) fn pump_reading(&mut self) {
        let now = self.clock.monotonic();
        let is_writer = matches!(self.role, Role::Writer);
        let (durable, log) = (self.durable, self.position(Sequence::ZERO));
        let Some(reading) = &mut self.reading else { return };
        let is_idle = is_writer && reading.told == Some(durable);
        if reading.under_way || is_idle || now < reading.look_at {
            return;
        }
        reading.under_way = true;
        let (from, replay) = (reading.next, reading.replay.take());
        let known = is_writer.then(|| (self.segments.clone(), durable));
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let piece = Piece { disk, directory, log, from, floor: durable };
        self.background(move || Background::Read(Box::new(piece.read(replay, known))));
    }

    pub(super) fn finish_read(&mut self, outcome: ReadOutcome) {
        let now = self.clock.monotonic();
        let Some(reading) = &mut self.reading else { return };
        reading.under_way = false;
        if reading.next != outcome.from {
            return;
        }
        reading.replay = outcome.replay;
        self.known_claim = self.known_claim.max(outcome.claim);
        for (position, bytes) in outcome.records {
            reading.next = position.sequence.next();
            self.events.push(LogEvent::Read(position, bytes));
        }
        if let Some(error) = outcome.error {
            self.events.push(match error {
                LogError::Trimmed { first } => LogEvent::Trimmed { first },
                LogError::Lost(_) => LogEvent::Lost,
                other => LogEvent::ReadFailed(other.to_string()),
            });
            self.reading = None;
            return;
        }
        if reading.next > outcome.until {
            if reading.told != Some(outcome.until) {
                reading.told = Some(outcome.until);
                let position = Position { incarnation: self.incarnation, sequence: outcome.until };
                self.events.push(LogEvent::CaughtUp(position));
            }
            reading.look_at = MonotonicNanos(now.0 + LOOK_NANOS);
        }
    }
}

struct Piece {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    log: Position,
    from: Sequence,
    /// Known to be durable: a log that ends before it is lost.
    floor: Sequence,
}

impl Piece {
    fn read(self, replay: Option<Replay>, known: Option<(Vec<Segment>, Sequence)>) -> ReadOutcome {
        let from = self.from;
        let mut outcome = ReadOutcome {
            from,
            replay: None,
            records: Vec::new(),
            error: None,
            until: from,
            claim: 0,
        };
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let incarnation = self.log.incarnation;
        outcome.error = match self.fill(&mut outcome, replay, known) {
            // A segment that is gone was trimmed, unless the whole log is gone.
            Err(LogError::Trimmed { .. })
                if !recover::is_there(&*disk, &directory, incarnation) =>
            {
                Some(LogError::Lost("it was deleted or created anew".to_owned()))
            }
            other => other.err(),
        };
        outcome
    }

    fn fill(
        self,
        outcome: &mut ReadOutcome,
        replay: Option<Replay>,
        known: Option<(Vec<Segment>, Sequence)>,
    ) -> Result<(), LogError> {
        let (segments, until) = match known {
            Some(known) => known,
            None => look(&*self.disk, &self.directory, self.log.incarnation)?,
        };
        if until < self.floor {
            let what = format!("record {} was durable, the log ends at {until}", self.floor);
            return Err(LogError::Lost(what));
        }
        let mut replay = match replay {
            Some(mut replay) => {
                replay.extend(&segments, until);
                replay
            }
            None => Replay::new(self.disk, self.log, &segments, self.from, until)?,
        };
        outcome.until = replay.until();
        let mut bytes = 0;
        while bytes < PIECE_BYTES {
            let Some((position, record)) = replay.next_record()? else { break };
            bytes += record.len();
            outcome.records.push((position, record));
            outcome.claim = replay.claim();
        }
        outcome.replay = Some(replay);
        Ok(())
    }
}

/// Asks the directory, as a process must that does not write it.
fn look(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
) -> Result<(Vec<Segment>, Sequence), LogError> {
    let survey = Survey::take(disk, directory, incarnation)?;
    Ok((survey.segments, survey.mark))
}
