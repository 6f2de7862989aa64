//! What a process knows of a log directory that another one writes, and how it learns that more has
//! become durable.
//!
//! A survey opens every file and asks for its times, and whoever asks for a file's times makes the
//! kernel give its next write fresh ones: the writer's sync then waits for the inode too. A replica
//! looks hundreds of times a second. So between surveys it reads the newest claim's mark, from a
//! file that it keeps open, and looks whether there is another claim.
//!
//! That is enough as long as the newest segment known is of that claim. All that the claim counts
//! stands in its segments, and what it sealed is known by its first one. Where it has begun further
//! segments, the reading finds no record at its place, and takes a survey.

use super::error::LogError;
use super::layout;
use super::recover;
use super::survey::{Segment, Survey};
use base::disk::{Disk, DiskFile};
use base::{Incarnation, Sequence};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A survey, and what has been seen since.
pub(super) struct Look {
    pub segments: Vec<Segment>,
    /// Everything through here is durable.
    pub until: Sequence,
    /// The newest claim; `None` while it has no segment.
    newest: Option<Newest>,
    /// These segments were read and reach this record, though no mark says so.
    reaches: Option<(Sequence, Vec<Segment>)>,
}

struct Newest {
    claim: Arc<dyn DiskFile>,
    /// The name of a claim that would come after it.
    next_path: PathBuf,
}

impl Look {
    pub(super) fn survey(
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
    ) -> Result<Self, LogError> {
        let Survey { segments, claims, mark, .. } = Survey::take(disk, directory, incarnation)?;
        let number = claims.last().copied();
        let writes = segments.last().map(|segment| segment.header.claim);
        let newest = match number.filter(|_| number == writes) {
            Some(number) => Newest::open(disk, directory, incarnation, number)?,
            None => None,
        };
        Ok(Self { segments, until: mark, newest, reaches: None })
    }

    /// Makes sure that the log reaches `floor`, which was durable once, where the marks do not say
    /// so; `before` is the look before this one. It is read for that, once for the same segments.
    ///
    /// # Errors
    /// `Lost` if the log ends before `floor`.
    pub(super) fn demand(
        &mut self,
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
        floor: Sequence,
        before: Option<Self>,
    ) -> Result<(), LogError> {
        if self.until >= floor {
            return Ok(());
        }
        let reaches = before.and_then(|look| look.reaches);
        let is_same =
            |(at, segments): &(Sequence, Vec<Segment>)| *at >= floor && *segments == self.segments;
        self.reaches = reaches.filter(is_same);
        if self.reaches.is_none() {
            recover::demand(disk, directory, incarnation, floor)?;
            self.reaches = Some((floor, self.segments.clone()));
        }
        self.until = floor;
        Ok(())
    }

    /// Learns what has become durable since. False if only a survey can tell.
    pub(super) fn renew(&mut self, disk: &dyn Disk) -> Result<bool, LogError> {
        let Some(newest) = &self.newest else { return Ok(false) };
        let path = &newest.next_path;
        let mark = layout::read_mark(&*newest.claim).map_err(LogError::io("read", path))?;
        self.until = self.until.max(mark.unwrap_or_default());
        let is_over = disk.exists(path).map_err(LogError::io("look for", path))?;
        Ok(!is_over)
    }
}

impl Newest {
    /// `None` if it was removed meanwhile.
    fn open(
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
        number: u64,
    ) -> Result<Option<Self>, LogError> {
        let path = layout::claim_path(directory, number, incarnation);
        match disk.open_read(&path) {
            Ok(claim) => {
                let next_path = layout::claim_path(directory, number + 1, incarnation);
                Ok(Some(Self { claim, next_path }))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LogError::io("open", &path)(error)),
        }
    }
}
