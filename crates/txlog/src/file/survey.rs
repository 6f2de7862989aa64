//! What a log directory holds, and which segment speaks for which sequences.
//!
//! A segment of a later claim seals everything before it: from its first sequence on, segments of
//! earlier claims do not exist, whatever their files hold. So a seal needs no file of its own; the
//! durable name of the next tenure's first segment is it.
//!
//! ```text
//! claim 1   [ 1 … 40 ][ 41 … 57 | 58 59 ]      58 and 59 lie past the seal
//! claim 2                       [ 58 59 60 … ]  copied, then continued
//! ```

use super::error::LogError;
use super::layout::{self, Name, SegmentHeader};
use base::disk::{Disk, DiskEntry};
use base::{Incarnation, Sequence};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// One segment and the sequences that it speaks for: `first` to `end - 1`, or to the tail.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    pub header: SegmentHeader,
    /// Length of the file, zeroes written ahead included.
    pub length: u64,
    /// The first sequence that it no longer speaks for; `None` for the newest.
    pub end: Option<Sequence>,
}

impl Segment {
    pub(crate) fn first(&self) -> Sequence {
        self.header.first
    }
}

/// A look at a log directory. It is stale as soon as another process writes.
#[derive(Debug)]
pub(crate) struct Survey {
    /// In sequence order, without gaps between what they speak for.
    pub segments: Vec<Segment>,
    /// Segments that speak for nothing any more.
    pub superseded: Vec<PathBuf>,
    /// Claim numbers of this incarnation, ascending.
    pub claims: Vec<u64>,
    /// Segments that a writer was preparing.
    pub spares: Vec<PathBuf>,
    /// Everything through here is known to be durable.
    pub mark: Sequence,
}

impl Survey {
    pub(crate) fn take(
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
    ) -> Result<Self, LogError> {
        let mut survey = Self {
            segments: Vec::new(),
            superseded: Vec::new(),
            claims: Vec::new(),
            spares: Vec::new(),
            // Before the segments are listed: a record that a mark covers has its segment by then,
            // and a later tenure that seals others has its own. The other way round, a tenure and
            // its mark could come in between, and what it sealed would be read past the seal.
            mark: newest_mark(disk, directory, incarnation)?,
        };
        let mut found = Vec::new();
        for entry in list(disk, directory)? {
            let path = directory.join(&entry.name);
            match Name::parse(&entry.name) {
                Name::Segment { first, claim } => {
                    found.extend(open_segment(disk, path, entry.length, first, claim)?);
                }
                Name::Claim { claim, incarnation: of } if of == incarnation => {
                    survey.claims.push(claim);
                }
                Name::Spare => survey.spares.push(path),
                Name::Claim { .. } | Name::Incarnation | Name::Reader | Name::Foreign => {}
            }
        }
        if let Some(strange) = found.iter().find(|s| s.header.incarnation != incarnation) {
            let path = strange.path.display();
            return Err(LogError::Lost(format!("{path} belongs to another log")));
        }
        survey.claims.sort_unstable();
        survey.arrange(found);
        if let Some(last) = survey.segments.last() {
            survey.mark = survey.mark.max(Sequence(last.first().0.saturating_sub(1)));
        }
        Ok(survey)
    }

    /// Lets each claim seal the ones before it.
    fn arrange(&mut self, mut found: Vec<Segment>) {
        found.sort_by_key(|segment| (segment.header.claim, segment.first()));
        for segment in found {
            let first = segment.first();
            while let Some(last) = self.segments.pop_if(|last| last.first() >= first) {
                self.superseded.push(last.path);
            }
            if let Some(last) = self.segments.last_mut() {
                last.end = Some(first);
            }
            self.segments.push(segment);
        }
    }
}

fn list(disk: &dyn Disk, directory: &Path) -> Result<Vec<DiskEntry>, LogError> {
    disk.list(directory).map_err(LogError::io("list", directory))
}

/// Everything through here was durable when this was called. More may be: marks are published
/// without a sync, and one that is just being written is passed over.
fn newest_mark(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
) -> Result<Sequence, LogError> {
    let mut newest = Sequence::ZERO;
    for entry in list(disk, directory)? {
        let name = Name::parse(&entry.name);
        if matches!(name, Name::Claim { incarnation: of, .. } if of == incarnation) {
            newest = newest.max(mark_of(disk, &directory.join(&entry.name))?.unwrap_or_default());
        }
    }
    Ok(newest)
}

/// `None` if it was removed since the directory was listed.
fn open_segment(
    disk: &dyn Disk,
    path: PathBuf,
    length: u64,
    first: Sequence,
    claim: u64,
) -> Result<Option<Segment>, LogError> {
    let file = match disk.open_read(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io("open", &path)(error)),
    };
    let header = SegmentHeader::read(&path, &*file)?;
    if header.first != first || header.claim != claim {
        let what = "the header contradicts the file's name".to_owned();
        return Err(LogError::Damaged { file: path, offset: 0, sequence: None, what });
    }
    Ok(Some(Segment { path, header, length, end: None }))
}

pub(crate) fn mark_of(disk: &dyn Disk, claim: &Path) -> Result<Option<Sequence>, LogError> {
    match disk.open_read(claim) {
        Ok(file) => layout::read_mark(&*file).map_err(LogError::io("read", claim)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(LogError::io("open", claim)(error)),
    }
}
