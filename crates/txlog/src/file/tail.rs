//! Reading a log that still grows: bounded pieces on the background queue, up to the durable mark.

use super::commit::Background;
use super::error::LogError;
use super::look::Look;
use super::recover;
use super::replay::Replay;
use super::survey::Segment;
use super::{FileLog, FileOptions, Role};
use crate::log::LogEvent;
use base::disk::Disk;
use base::{MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use std::path::PathBuf;
use std::sync::Arc;

/// How often another process's mark is looked at. A replica's extra delay; a guess.
const LOOK_NANOS: u64 = 5_000_000;

/// How often all of the directory is looked at: whatever a look at the mark does not show, a log
/// that was deleted and a claim whose holder died young, is noticed after this.
const SURVEY_NANOS: u64 = 200_000_000;

/// A reading under way.
pub(super) struct Reading {
    /// The next record wanted.
    next: Sequence,
    replay: Option<Replay>,
    look: Option<Look>,
    under_way: bool,
    /// `CaughtUp` was told for this position.
    told: Option<Sequence>,
    look_at: MonotonicNanos,
    survey_at: MonotonicNanos,
}

impl Reading {
    pub(super) fn new(next: Sequence) -> Self {
        Self {
            next,
            replay: None,
            look: None,
            under_way: false,
            told: None,
            look_at: MonotonicNanos(0),
            survey_at: MonotonicNanos(0),
        }
    }
}

/// What one piece of reading brought.
pub(super) struct ReadOutcome {
    /// The sequence the piece began at: a piece of a replaced reading is dropped.
    from: Sequence,
    replay: Option<Replay>,
    look: Option<Look>,
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
        let surveys = now >= reading.survey_at;
        if surveys {
            reading.survey_at = MonotonicNanos(now.0 + SURVEY_NANOS);
        }
        let (from, replay, look) = (reading.next, reading.replay.take(), reading.look.take());
        let known = is_writer.then(|| (self.segments.clone(), durable));
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        // What was handed out was durable, too.
        let floor = durable.max(Sequence(from.0.saturating_sub(1)));
        let FileOptions { trusts_marks, piece_bytes_max: bytes_max, .. } = self.options;
        let piece = Piece { disk, directory, log, from, floor, bytes_max, surveys, trusts_marks };
        self.background(move || Background::Read(Box::new(piece.read(replay, look, known))));
    }

    pub(super) fn finish_read(&mut self, outcome: ReadOutcome) {
        let now = self.clock.monotonic();
        let Some(reading) = &mut self.reading else { return };
        reading.under_way = false;
        if reading.next != outcome.from {
            return;
        }
        reading.replay = outcome.replay;
        reading.look = outcome.look;
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
    /// Known to be durable: a log that ends before it is lost. Where the log ends is found by
    /// reading, because a mark may be old.
    floor: Sequence,
    /// As [`FileOptions::piece_bytes_max`].
    bytes_max: usize,
    /// What is known of the directory may be old: see [`SURVEY_NANOS`].
    surveys: bool,
    /// As [`FileOptions::trusts_marks`].
    trusts_marks: bool,
}

impl Piece {
    fn read(
        self,
        replay: Option<Replay>,
        look: Option<Look>,
        known: Option<(Vec<Segment>, Sequence)>,
    ) -> ReadOutcome {
        let mut outcome = ReadOutcome {
            from: self.from,
            replay,
            look,
            records: Vec::new(),
            error: None,
            until: self.from,
            claim: 0,
        };
        let filled = match known {
            Some((segments, until)) => self.fill(&mut outcome, &segments, until),
            None => self.look(&mut outcome),
        };
        outcome.error = match filled {
            // A segment that is gone was trimmed, unless the whole log is gone.
            Err(LogError::Trimmed { .. })
                if !recover::is_there(&*self.disk, &self.directory, self.log.incarnation) =>
            {
                Some(LogError::Lost("it was deleted or created anew".to_owned()))
            }
            other => other.err(),
        };
        outcome
    }

    /// Reads as a process must that does not write the log.
    fn look(&self, outcome: &mut ReadOutcome) -> Result<(), LogError> {
        let mut before = outcome.look.take();
        if !self.surveys
            && let Some(look) = &mut before
            && look.renew(&*self.disk)?
            // What is not where it was expected stands in a file that is not known yet.
            && self.fill(outcome, &look.segments, look.until).is_ok()
        {
            outcome.look = before;
            return Ok(());
        }
        let (disk, incarnation) = (&*self.disk, self.log.incarnation);
        let mut look = Look::survey(disk, &self.directory, incarnation)?;
        if !self.trusts_marks {
            look.demand(disk, &self.directory, incarnation, self.floor, before)?;
        }
        self.fill(outcome, &look.segments, look.until)?;
        outcome.look = Some(look);
        Ok(())
    }

    /// Adds records that are durable by `until`.
    fn fill(
        &self,
        outcome: &mut ReadOutcome,
        segments: &[Segment],
        until: Sequence,
    ) -> Result<(), LogError> {
        if until < self.floor {
            let what = format!("record {} was durable, the log ends at {until}", self.floor);
            return Err(LogError::Lost(what));
        }
        let replay = match &mut outcome.replay {
            Some(replay) => {
                replay.extend(segments, until);
                replay
            }
            None => {
                let disk = Arc::clone(&self.disk);
                outcome.replay.insert(Replay::new(disk, self.log, segments, self.from, until)?)
            }
        };
        outcome.until = replay.until();
        let mut bytes: usize = outcome.records.iter().map(|(_, record)| record.len()).sum();
        while bytes < self.bytes_max {
            let Some((position, record)) = replay.next_record()? else { break };
            bytes += record.len();
            outcome.records.push((position, record));
            outcome.claim = replay.claim();
        }
        Ok(())
    }
}
