//! Readers that may become writers show themselves, so that an idle writer knows whether anybody
//! waits for its lease to end, and they ask whether it is dead.
//!
//! A reader's file is locked for its life and carries nothing. It is not synced: what a power cut
//! takes back, it takes from a reader that is gone as well.

use super::commit::Background;
use super::error::LogError;
use super::layout::{self, Name};
use super::survey::Survey;
use super::{FileLog, Role, claim};
use base::disk::Disk;
use base::{Incarnation, MonotonicNanos};
use std::any::Any;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How often a writer looks for readers, at most. Well below any lease, and a look costs some ten
/// system calls.
const LOOK_NANOS: u64 = 200_000_000;

/// Signs made in vain before a reader gives up.
const ATTEMPTS_MAX: u64 = 16;

/// A reader's sign, as long as it lives.
pub(super) struct Presence {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    _lock: Arc<dyn Any + Send + Sync>,
}

impl Presence {
    /// # Errors
    /// The directory takes no file, or those who tidy up were faster again and again.
    pub(super) fn show(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        entropy: u64,
    ) -> Result<Self, LogError> {
        for attempt in 0..ATTEMPTS_MAX {
            let path = layout::reader_path(directory, entropy.wrapping_add(attempt));
            match disk.create_new(&path) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(LogError::io("create", &path)(error)),
            }
            // A writer that looked just now took it for a dead reader's, and removed it.
            let Ok(lock) = disk.lock(&path) else { continue };
            if disk.exists(&path).map_err(LogError::io("look for", &path))? {
                return Ok(Self { disk: Arc::clone(disk), path, _lock: lock });
            }
        }
        Err(LogError::Busy("its writer keeps removing this reader's sign".to_owned()))
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // What stays behind is unlocked, and the next writer that looks removes it.
        let _ = self.disk.remove(&self.path);
    }
}

/// What a writer knows of readers.
#[derive(Default)]
pub(super) struct Watched {
    is_watched: bool,
    look_at: MonotonicNanos,
    is_looking: bool,
}

impl FileLog {
    /// Looks for readers now and then; what the last look found.
    pub(super) fn look_for_readers(&mut self) -> bool {
        let now = self.clock.monotonic();
        if !self.watched.is_looking && now >= self.watched.look_at {
            self.watched.is_looking = true;
            let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
            self.background(move || Background::Readers(has_readers(&*disk, &directory)));
        }
        self.watched.is_watched
    }

    pub(super) fn finish_look(&mut self, found: Result<bool, LogError>) {
        let look_at = MonotonicNanos(self.clock.monotonic().0 + LOOK_NANOS);
        // If it cannot be known, there may be one.
        let is_watched = found.unwrap_or(true);
        self.watched = Watched { is_watched, look_at, is_looking: false };
    }

    pub(super) fn ask_for_death(&mut self) {
        if self.is_probing || matches!(self.role, Role::Claiming { .. }) {
            return;
        }
        self.is_probing = true;
        // One that has claimed the log and does not lead it yet asks about those before it.
        let before = match (&self.role, self.segments.last()) {
            (Role::Writer, Some(newest)) => newest.header.claim,
            _ => u64::MAX,
        };
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let incarnation = self.incarnation;
        self.background(move || {
            Background::Death(is_nobody_alive(&*disk, &directory, incarnation, before))
        });
    }
}

/// Whether some reader is alive. Signs of dead ones are removed.
fn has_readers(disk: &dyn Disk, directory: &Path) -> Result<bool, LogError> {
    let mut is_any = false;
    for entry in disk.list(directory).map_err(LogError::io("list", directory))? {
        if Name::parse(&entry.name) != Name::Reader {
            continue;
        }
        let path = directory.join(&entry.name);
        match disk.lock(&path) {
            // One that has made its file and not locked it yet loses it here, and makes another.
            Ok(_lock) => super::recover::remove(disk, &path)?,
            Err(error) if error.kind() == ErrorKind::WouldBlock => is_any = true,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(LogError::io("lock", &path)(error)),
        }
    }
    Ok(is_any)
}

/// Whether the locks of all claims before this one are free: then none of their writers lives.
fn is_nobody_alive(
    disk: &dyn Disk,
    directory: &Path,
    incarnation: Incarnation,
    before: u64,
) -> Result<bool, LogError> {
    let claims = Survey::take(disk, directory, incarnation)?.claims;
    Ok(claim::lock_dead(disk, directory, incarnation, &claims, before)?.is_some())
}
