//! The log that a start opens, and what the snapshots say of it.

use super::Failure;
use archive::Candidate;
use base::{Clock, Disk, Incarnation, Position};
use std::path::PathBuf;
use std::sync::Arc;
use txlog::TransactionLog;
use txlog::file::{FileLog, FileOptions, Queues};

/// A log that is open.
pub struct OpenLog {
    pub handle: Box<dyn TransactionLog>,
    pub incarnation: Incarnation,
    /// Whoever wrote it is proven dead, or nobody ever did: there is no lease to wait for.
    pub is_free: bool,
}

/// What snapshots say of the log that is to be opened.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct KnownLog {
    /// It held this record once. One that does not, or that is another log, is lost.
    pub position: Option<Position>,
    /// There was a log, whatever is known of it: none is begun in its place.
    pub must_exist: bool,
}

/// Opens a log in a directory.
pub struct FileLogOpener {
    pub disk: Arc<dyn Disk>,
    pub clock: Arc<dyn Clock>,
    pub queues: Queues,
    pub directory: PathBuf,
    pub options: FileOptions,
}

impl FileLogOpener {
    /// # Errors
    /// The log is damaged or lost, or the disk fails.
    pub fn open(mut self, known: &KnownLog) -> Result<OpenLog, Failure> {
        self.options.known = known.position;
        self.options.must_exist = known.must_exist;
        let Self { disk, clock, queues, directory, options } = self;
        let (log, found) = FileLog::open(disk, clock, queues, &directory, options)?;
        let incarnation = found.tail.incarnation;
        Ok(OpenLog { handle: Box::new(log), incarnation, is_free: found.is_writer })
    }
}

impl KnownLog {
    /// What the snapshots say of the log.
    pub(super) fn of(candidates: &[Candidate]) -> Self {
        let positions = candidates.iter().filter_map(|candidate| match candidate {
            Candidate::Whole(snapshot) => Some(snapshot.point.position),
            Candidate::Damaged { .. } => None,
        });
        // A damaged snapshot says no more than that there was a log; that is enough.
        Self {
            position: positions.max_by_key(|position| position.sequence),
            must_exist: !candidates.is_empty(),
        }
    }
}
