//! Why a log directory cannot be opened or read.

use base::Sequence;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// What went wrong, where, and how far.
#[derive(Debug)]
pub enum LogError {
    /// The file system failed.
    Io { what: &'static str, path: PathBuf, error: io::Error },
    /// Bytes that were durable are wrong. Starting would lose acknowledged writes.
    Damaged { file: PathBuf, offset: u64, sequence: Option<Sequence>, what: String },
    /// The directory holds another log than the one known, or less of it.
    Lost(String),
    /// The sequence asked for was trimmed.
    Trimmed { first: Sequence },
    /// Another process is creating or claiming the log right now: try again.
    Busy(String),
}

/// What the caller should do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogErrorKind {
    /// Try again later.
    Retry,
    /// Stop; an operator must look.
    Corrupt,
    /// Restore from a snapshot.
    Restore,
}

impl LogError {
    pub(crate) fn io(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::Io { what, path, error }
    }

    pub fn kind(&self) -> LogErrorKind {
        match self {
            Self::Io { error, .. } if is_full(error) => LogErrorKind::Retry,
            Self::Busy(_) => LogErrorKind::Retry,
            Self::Io { .. } | Self::Damaged { .. } | Self::Lost(_) => LogErrorKind::Corrupt,
            Self::Trimmed { .. } => LogErrorKind::Restore,
        }
    }
}

/// Whether there is no space, or none left that this user may have: `world` says both so.
fn is_full(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::StorageFull
}

impl fmt::Display for LogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { what, path, error } => {
                write!(f, "cannot {what} {}: {error}", path.display())?;
                if is_full(error) {
                    f.write_str(": the disk is full; make space there and start again")?;
                }
                Ok(())
            }
            Self::Damaged { file, offset, sequence, what } => {
                write!(f, "{} is damaged at offset {offset}", file.display())?;
                if let Some(sequence) = sequence {
                    write!(f, " (record {sequence})")?;
                }
                write!(f, ": {what}")
            }
            Self::Lost(what) => write!(f, "the log is lost: {what}"),
            Self::Trimmed { first } => write!(f, "records before {first} were trimmed"),
            Self::Busy(what) => write!(f, "the log is in use: {what}"),
        }
    }
}

impl std::error::Error for LogError {}
