//! Reads what stands at one place of a log directory. A start uses it to learn whether the log
//! reaches the record of its snapshot, and `TransactionLog::compare` whether the log is the history
//! that was read before.
//!
//! The segments are read for that, because nothing shorter tells. A published mark is not synced,
//! so after a loss of power it may name any earlier record until the next writer publishes its own.
//! And a directory that was restored from a backup may have other records of the same numbers.

use super::error::LogError;
use super::layout::incarnation_path;
use super::recover;
use super::scan::{Frame, FrameReader};
use super::survey::{Segment, Survey};
use super::tenure::extend;
use crate::chain::Chain;
use crate::log::History;
use base::disk::Disk;
use base::{Incarnation, Position, Sequence};
use std::io::ErrorKind;
use std::path::Path;

/// Times that a directory is read anew because a writer began a segment meanwhile.
const ATTEMPTS_MAX: u32 = 16;

/// What stands at a place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// The record does, and the chain stands here behind it.
    Chain(Chain),
    /// The log begins behind it.
    Trimmed,
    /// The log ends before it, with this record.
    Short(Sequence),
}

impl Found {
    fn history(&self, chain: Chain) -> History {
        match self {
            Self::Chain(found) if *found == chain => History::Same,
            Self::Chain(_) => History::Other,
            Self::Trimmed => History::Trimmed,
            Self::Short(_) => History::Lost,
        }
    }
}

/// Compares what stands at `at` with the chain that a record once left there.
///
/// # Errors
/// As [`look`], while the directory holds the log that `at` names.
pub(super) fn compare(
    disk: &dyn Disk,
    directory: &Path,
    at: Position,
    chain: Chain,
) -> Result<History, LogError> {
    if at.sequence == Sequence::ZERO {
        return Ok(History::of_origin(at.incarnation, chain));
    }
    match look(disk, directory, at.incarnation, at.sequence) {
        Ok(found) => Ok(found.history(chain)),
        Err(LogError::Lost(_)) => Ok(History::Lost),
        Err(error) => match recover::read_incarnation(disk, &incarnation_path(directory))? {
            None => Ok(History::Lost),
            Some(Ok(there)) if there != at.incarnation => Ok(History::Lost),
            Some(_) => Err(error),
        },
    }
}

/// Reads what stands at `at`, records that are not known to be durable included.
///
/// # Errors
/// As a survey; `Damaged` if something else stands where it or a record before it did; `Busy` if
/// other processes keep claiming the log.
pub(crate) fn look(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    at: Sequence,
) -> Result<Found, LogError> {
    let mut survey = Survey::take(disk, directory, incarnation)?;
    for _ in 0..ATTEMPTS_MAX {
        let found = look_once(disk, &survey, incarnation, at).transpose();
        if let Some(Ok(Found::Chain(chain))) = found {
            return Ok(Found::Chain(chain));
        }
        // A tenure that begins moves records from the segment before into its own.
        let again = Survey::take(disk, directory, incarnation)?;
        if again.segments == survey.segments
            && let Some(found) = found
        {
            return found;
        }
        survey = again;
    }
    Err(LogError::Busy("other processes keep claiming it".to_owned()))
}

/// `None` if the segment is gone meanwhile.
fn look_once(
    disk: &dyn Disk,
    survey: &Survey,
    incarnation: Incarnation,
    at: Sequence,
) -> Result<Option<Found>, LogError> {
    let Some(oldest) = survey.segments.first() else {
        let is_start = at == Sequence::ZERO;
        let start = Chain::start(incarnation);
        let found = if is_start { Found::Chain(start) } else { Found::Short(Sequence::ZERO) };
        return Ok(Some(found));
    };
    if at.next() == oldest.first() {
        return Ok(Some(Found::Chain(oldest.header.chain)));
    }
    if at < oldest.first() {
        return Ok(Some(Found::Trimmed));
    }
    match survey.segments.iter().rfind(|segment| segment.first() <= at) {
        Some(segment) => look_into(disk, segment, at),
        None => Ok(Some(Found::Trimmed)),
    }
}

fn look_into(disk: &dyn Disk, segment: &Segment, at: Sequence) -> Result<Option<Found>, LogError> {
    let file = match disk.open_read(&segment.path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io("open", &segment.path)(error)),
    };
    let mut frames = FrameReader::new(file, segment.header.salt, segment.first());
    let mut chain = segment.header.chain;
    loop {
        match frames.next().map_err(LogError::io("read", &segment.path))? {
            Frame::Record { sequence, bytes, .. } => {
                extend(&mut chain, &bytes);
                if sequence == at {
                    return Ok(Some(Found::Chain(chain)));
                }
            }
            Frame::Empty { .. } => {
                let tail = Sequence(frames.next_sequence().0 - 1);
                return Ok(Some(Found::Short(tail)));
            }
            // What is asked for was durable once, and so was everything before it.
            Frame::Invalid { offset, what } => {
                let (file, sequence) = (segment.path.clone(), Some(frames.next_sequence()));
                return Err(LogError::Damaged { file, offset, sequence, what });
            }
        }
    }
}
