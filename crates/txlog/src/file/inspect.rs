//! Looks at a log directory without claiming it, for tools: nothing is written.
//!
//! What a look shows can be read like a log ([`Readable`]) that ends where the look found its end.

use super::error::LogError;
use super::recover;
use super::replay::Replay;
use super::survey::Survey;
use super::{layout, survey::Segment};
use crate::chain::Chain;
use crate::log::LogEvent;
use crate::reader::Readable;
use base::disk::Disk;
use base::{Position, Sequence};
use bytes::Bytes;
use std::path::Path;
use std::sync::Arc;

/// Bytes of records handed out by a poll; the last record may overshoot.
const PIECE_BYTES: usize = 1 << 20;

/// What a look at a log directory shows.
pub struct Inspection {
    /// The oldest record that can be read.
    pub first: Position,
    /// Where the chain stood before it.
    pub chain: Chain,
    /// Everything through here is known to be durable.
    pub durable: Position,
    /// The last whole record. A live writer may still be busy with those past `durable`.
    pub tail: Position,
    /// Reads from `first` to `tail`.
    pub replay: Replay,
    /// The damage that keeps the log from being opened, if there is any. The records before it
    /// can be read.
    pub damage: Option<LogError>,
    /// The next record of the reading, while there is one.
    next: Option<Sequence>,
}

/// Looks at the log in `directory`.
///
/// # Errors
/// `Lost` if the directory holds no log, `Damaged` if a segment's header is, `Io`.
pub fn inspect(disk: Arc<dyn Disk>, directory: &Path) -> Result<Inspection, LogError> {
    let path = layout::incarnation_path(directory);
    let incarnation = match recover::read_incarnation(&*disk, &path)? {
        Some(Ok(incarnation)) => incarnation,
        Some(Err(what)) => {
            return Err(LogError::Damaged { file: path, offset: 0, sequence: None, what });
        }
        None => return Err(LogError::Lost("the directory holds no log".to_owned())),
    };
    let survey = Survey::take(&*disk, directory, incarnation)?;
    let (durable, tail, damage) = match recover::find_end(&*disk, &survey, incarnation) {
        Ok(end) => (end.durable, end.tail, None),
        Err(damage) => (survey.mark, survey.mark, Some(damage)),
    };
    let log = Position { incarnation, sequence: Sequence::ZERO };
    let first = survey.segments.first().map_or(Sequence(1), Segment::first);
    let start = Chain::start(incarnation);
    Ok(Inspection {
        first: log.at(first),
        chain: survey.segments.first().map_or(start, |segment| segment.header.chain),
        durable: log.at(durable),
        tail: log.at(tail),
        replay: Replay::new(disk, log, &survey.segments, first, tail)?,
        damage,
        next: None,
    })
}

/// It is read once: records that were handed out, or passed over, do not come again.
impl Readable for Inspection {
    fn read_from(&mut self, from: Position) {
        self.next = Some(from.sequence);
    }

    /// Blocks on the disk.
    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        let mut bytes = 0;
        while let Some(next) = self.next.filter(|_| bytes < PIECE_BYTES) {
            match self.record(next) {
                Ok((position, record)) => {
                    bytes += record.len();
                    self.next = Some(position.sequence.next());
                    events.push(LogEvent::Read(position, record));
                }
                Err(end) => {
                    self.next = None;
                    events.push(end);
                }
            }
        }
    }

    fn wait_nanos(&self) -> Option<u64> {
        self.next.map(|_| 0)
    }
}

impl Inspection {
    /// The record at `next`, or how the reading ends in its place.
    fn record(&mut self, next: Sequence) -> Result<(Position, Bytes), LogEvent> {
        let first = self.first.sequence;
        if next < first {
            return Err(LogEvent::Trimmed { first });
        }
        loop {
            match self.replay.next_record() {
                Ok(Some((position, _))) if position.sequence < next => {}
                Ok(Some(read)) => return Ok(read),
                Ok(None) => return Err(self.end(next)),
                Err(LogError::Trimmed { first }) => return Err(LogEvent::Trimmed { first }),
                Err(error) => return Err(LogEvent::ReadFailed(error.to_string())),
            }
        }
    }

    fn end(&self, next: Sequence) -> LogEvent {
        match &self.damage {
            Some(damage) => LogEvent::ReadFailed(damage.to_string()),
            None if next > self.tail.sequence.next() => LogEvent::Lost,
            None => LogEvent::CaughtUp(self.tail),
        }
    }
}
