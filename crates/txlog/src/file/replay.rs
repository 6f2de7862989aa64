//! Streams the records of a log directory in order: at start-up, for tools, and for tailing.

use super::error::LogError;
use super::layout::PAGE_BYTES;
use super::scan::{Frame, FrameReader};
use super::survey::Segment;
use base::disk::Disk;
use base::{Position, Sequence};
use bytes::Bytes;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::sync::Arc;

/// How far a replay has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Bytes of segments read so far.
    pub read_bytes: u64,
    /// Bytes of segments that hold what was asked for; an upper bound, because a segment ends in
    /// zeroes.
    pub total_bytes: u64,
}

/// A reading of committed records. Blocks on the disk; may be sent to another thread.
pub struct Replay {
    disk: Arc<dyn Disk>,
    /// Any position of this log.
    log: Position,
    segments: VecDeque<Segment>,
    reader: Option<FrameReader>,
    /// The next record to hand out.
    next: Sequence,
    /// The last record that may be handed out.
    until: Sequence,
    /// Bytes of segments already left behind.
    passed_bytes: u64,
}

impl Replay {
    pub(crate) fn new(
        disk: Arc<dyn Disk>,
        log: Position,
        segments: &[Segment],
        from: Sequence,
        until: Sequence,
    ) -> Result<Self, LogError> {
        let first = segments.first().map_or(Sequence(1), Segment::first);
        if from < first {
            return Err(LogError::Trimmed { first });
        }
        if from > until.next() {
            let what = format!("record {from} was asked for, the log ends at {until}");
            return Err(LogError::Lost(what));
        }
        let mut replay = Self {
            disk,
            log,
            segments: VecDeque::new(),
            reader: None,
            next: from,
            until,
            passed_bytes: 0,
        };
        replay.extend(segments, until);
        Ok(replay)
    }

    /// Learns of newer segments and a later end. The reader stays at its place.
    pub(crate) fn extend(&mut self, segments: &[Segment], until: Sequence) {
        self.until = self.until.max(until);
        let next = self.next;
        let needed = segments.iter().filter(|s| s.end.is_none_or(|end| end > next));
        let reading = self.segments.front().map(|segment| segment.path.clone());
        self.segments = needed.cloned().collect();
        if self.segments.front().map(|segment| &segment.path) != reading.as_ref()
            && let Some(read) = self.reader.take()
        {
            read.release_cache();
        }
        if let Some(reader) = &mut self.reader {
            reader.refresh();
        }
    }

    /// The tenure that wrote the record handed out last.
    pub(crate) fn claim(&self) -> u64 {
        self.segments.front().map_or(0, |segment| segment.header.claim)
    }

    /// The last record that this reading hands out.
    pub fn until(&self) -> Sequence {
        self.until
    }

    /// The next record that this reading hands out.
    pub fn next_sequence(&self) -> Sequence {
        self.next
    }

    pub fn progress(&self) -> Progress {
        let ahead: u64 = self.segments.iter().map(|segment| segment.length).sum();
        let read = self.reader.as_ref().map_or(0, FrameReader::offset);
        Progress { read_bytes: self.passed_bytes + read, total_bytes: self.passed_bytes + ahead }
    }

    /// The next committed record, void ones included; `None` at the end.
    ///
    /// # Errors
    /// `Damaged` with file, offset and sequence; nothing behind it can be read. `Trimmed` if the
    /// records were removed meanwhile.
    pub fn next_record(&mut self) -> Result<Option<(Position, Bytes)>, LogError> {
        while self.next <= self.until {
            self.open()?;
            let Some((segment, reader)) = self.segments.front().zip(self.reader.as_mut()) else {
                let what = format!("no segment holds record {}", self.next);
                return Err(LogError::Lost(what));
            };
            if segment.end.is_some_and(|end| reader.next_sequence() >= end) {
                self.passed_bytes += segment.length;
                reader.release_cache();
                self.segments.pop_front();
                self.reader = None;
                continue;
            }
            let path = &segment.path;
            let (offset, what) = match reader.next().map_err(LogError::io("read", path))? {
                Frame::Record { sequence, bytes, .. } => {
                    if sequence < self.next {
                        continue;
                    }
                    // The segments before this one went while they were to be read.
                    if sequence > self.next {
                        return Err(LogError::Trimmed { first: sequence });
                    }
                    self.next = sequence.next();
                    return Ok(Some((self.log.at(sequence), bytes)));
                }
                Frame::Empty { offset } => (offset, "zeroes where a record was".to_owned()),
                Frame::Invalid { offset, what } => (offset, what),
            };
            let sequence = Some(reader.next_sequence());
            return Err(LogError::Damaged { file: path.clone(), offset, sequence, what });
        }
        Ok(None)
    }

    fn open(&mut self) -> Result<(), LogError> {
        if self.reader.is_some() {
            return Ok(());
        }
        let Some(segment) = self.segments.front() else { return Ok(()) };
        let file = match self.disk.open_read(&segment.path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let first = segment.end.unwrap_or(self.until).max(self.next.next());
                return Err(LogError::Trimmed { first });
            }
            Err(error) => return Err(LogError::io("open", &segment.path)(error)),
        };
        debug_assert!(segment.length >= PAGE_BYTES as u64, "a segment begins with a page");
        self.reader = Some(FrameReader::new(file, segment.header.salt, segment.first()));
        Ok(())
    }
}
