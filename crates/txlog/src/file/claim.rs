//! A claim: the right to write, proven by a file that only one process can create.
//!
//! Nobody takes a lock from anybody. A challenger creates the next claim and makes its name
//! durable *before* it reads the old end; a writer looks for a later claim *after* its fdatasync
//! and *before* it counts. So either the challenger reads the record, or the writer does not count
//! it. The lock on the claim file proves one thing only: once it can be taken, its holder is dead.

use super::error::LogError;
use super::layout;
use super::survey::Survey;
use base::disk::{Disk, DiskFile};
use base::{Incarnation, Sequence};
use std::any::Any;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Claims that may be lost to other challengers in a row before giving up.
const ATTEMPTS_MAX: u32 = 16;

/// A tenure's right to write.
pub(crate) struct Claim {
    pub number: u64,
    pub incarnation: Incarnation,
    path: PathBuf,
    /// The claim that would end this tenure.
    next_path: PathBuf,
    file: Arc<dyn DiskFile>,
    _lock: Arc<dyn Any + Send + Sync>,
}

/// Whether a tenure still counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    Held,
    /// Another writer has claimed the log.
    Claimed,
    /// The claim's own name, or its segment's, is gone or another file's: someone deleted or
    /// replaced the directory, or took a file out of it.
    Lost,
}

impl Claim {
    /// Takes the next free claim number and makes it durable.
    pub(crate) fn acquire(
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
        survey: &Survey,
        token: u64,
    ) -> Result<Self, LogError> {
        let newest = survey.segments.last().map_or(0, |segment| segment.header.claim);
        let mut number = survey.claims.last().copied().unwrap_or(0).max(newest);
        for _ in 0..ATTEMPTS_MAX {
            number += 1;
            if let Some(claim) = Self::try_create(disk, directory, incarnation, number, token)? {
                return Ok(claim);
            }
        }
        Err(LogError::Busy("other processes keep claiming it".to_owned()))
    }

    fn try_create(
        disk: &dyn Disk,
        directory: &Path,
        incarnation: Incarnation,
        number: u64,
        token: u64,
    ) -> Result<Option<Self>, LogError> {
        let path = layout::claim_path(directory, number, incarnation);
        let file = match disk.create_new(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Ok(None),
            Err(error) => return Err(LogError::io("create", &path)(error)),
        };
        let page = layout::encode_claim(incarnation, number, token);
        file.write_at(0, &page).map_err(LogError::io("write", &path))?;
        file.sync_data().map_err(LogError::io("sync", &path))?;
        disk.sync_directory(directory).map_err(LogError::io("sync", directory))?;
        // Someone who tidies up may have locked or removed the file before it was locked here;
        // then it is nobody's, and the next number is tried.
        let lock = match disk.lock(&path) {
            Ok(lock) => lock,
            Err(error) if is_absence(&error) => return Ok(None),
            Err(error) => return Err(LogError::io("lock", &path)(error)),
        };
        if token_of(disk, &path)? != Some(token) {
            return Ok(None);
        }
        let next_path = layout::claim_path(directory, number + 1, incarnation);
        Ok(Some(Self { number, incarnation, path, next_path, file, _lock: lock }))
    }

    /// Looks whether the tenure still counts.
    pub(crate) fn standing(&self, disk: &dyn Disk) -> io::Result<Standing> {
        if self.is_over(disk)? {
            return Ok(Standing::Claimed);
        }
        if self.file.stands_at(&self.path)? { Ok(Standing::Held) } else { Ok(Standing::Lost) }
    }

    /// Whether another writer has claimed the log. Claims after the next one need no look: as long
    /// as this claim has its name, nobody takes its writer for dead and tidies the next one away.
    pub(crate) fn is_over(&self, disk: &dyn Disk) -> io::Result<bool> {
        disk.exists(&self.next_path)
    }

    /// Publishes the durable mark to readers in other processes.
    pub(crate) fn publish(&self, durable: Sequence) -> io::Result<()> {
        layout::write_mark(&*self.file, durable)
    }
}

fn is_absence(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound)
}

fn token_of(disk: &dyn Disk, path: &Path) -> Result<Option<u64>, LogError> {
    let file = match disk.open_read(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(LogError::io("open", path)(error)),
    };
    let mut page = [0; layout::PAGE_BYTES];
    let count = file.read_at(0, &mut page).map_err(LogError::io("read", path))?;
    Ok(layout::decode_claim_token(&page[..count]).ok())
}

/// The locks of every claim before `before`, if all of their holders are dead; `None` if one may
/// be alive.
pub(crate) fn lock_dead(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    claims: &[u64],
    before: u64,
) -> Result<Option<Vec<Arc<dyn Any + Send + Sync>>>, LogError> {
    let mut locks = Vec::new();
    for claim in claims.iter().filter(|claim| **claim < before) {
        let path = layout::claim_path(directory, *claim, incarnation);
        match disk.lock(&path) {
            Ok(lock) => locks.push(lock),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::io("lock", &path)(error)),
        }
    }
    Ok(Some(locks))
}
