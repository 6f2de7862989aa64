//! Looks at a log directory without claiming it, for tools: nothing is written.

use super::error::LogError;
use super::recover;
use super::replay::Replay;
use super::survey::Survey;
use super::{layout, survey::Segment};
use crate::chain::Chain;
use base::disk::Disk;
use base::{Position, Sequence};
use std::path::Path;
use std::sync::Arc;

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
    })
}
