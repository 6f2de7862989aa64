//! Forgetting the oldest segments.
//!
//! A segment of a later claim seals what earlier claims wrote from its first sequence on, and its
//! name is the only witness of that. So what it superseded must be gone before it goes itself:
//!
//! ```text
//! claim 3   [ 69 ]                 began, and lost power before its first commit
//! claim 4   [ 69 … 83 ]            supersedes it
//! claim 5             [ 84 … ]     removing only claim 4's would let claim 3's speak for 69 to 83
//! ```

use super::claim;
use super::error::LogError;
use super::recover::remove;
use super::survey::Survey;
use base::disk::Disk;
use base::{Incarnation, Sequence};
use std::path::Path;

/// Removes the segments that speak only for sequences before `floor`, for the writer that holds
/// `claim`. It asks the directory what there is, not the writer: what an earlier trim could not
/// remove comes first, so no hole is left.
///
/// Nothing is removed while the writer of an earlier claim may be alive: a paused one could still
/// begin a segment, which only the later claim's segments tell to be void.
///
/// # Errors
/// `Io`. What was removed until then was the oldest.
pub(crate) fn remove_below(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    claim: u64,
    floor: Sequence,
) -> Result<(), LogError> {
    let survey = Survey::take(disk, directory, incarnation)?;
    if survey.claims.last() != Some(&claim) {
        return Ok(());
    }
    let dead = claim::lock_dead(disk, directory, incarnation, &survey.claims, claim)?;
    if dead.is_none() {
        return Ok(());
    }
    // The writers are dead, but one may have begun a segment between the look and its death.
    let survey = Survey::take(disk, directory, incarnation)?;
    for path in &survey.superseded {
        remove(disk, path)?;
    }
    // Also for what the take-over removed.
    disk.sync_directory(directory).map_err(LogError::io("sync", directory))?;
    // Oldest first, each durably, so that a crash in between leaves no hole.
    let gone = survey.segments.iter().filter(|s| s.end.is_some_and(|end| end <= floor));
    for segment in gone {
        remove(disk, &segment.path)?;
        disk.sync_directory(directory).map_err(LogError::io("sync", directory))?;
    }
    Ok(())
}
