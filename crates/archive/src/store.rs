//! Which snapshots there are, and how many stay.

use crate::manifest::{MANIFEST_BYTES_MAX, Manifest, SnapshotPoint};
use crate::reader::{PartReader, read_all};
use crate::writer::SnapshotWriter;
use base::disk::create_directory_durably;
use base::{Disk, DiskFile, Position, Sequence};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub(crate) const MANIFEST: &str = "manifest.json";
const PREFIX: &str = "snapshot-";
/// Behind a snapshot's name, while it is being written.
const SIGN: &str = ".writing";

/// Snapshots that stay: the newest, and the one before it in case the newest is damaged. The log
/// is trimmed only up to the record of the oldest of them, which stays.
pub const RETAINED: usize = 2;

/// A directory of snapshots.
#[derive(Clone)]
pub struct SnapshotStore {
    pub(crate) disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// Snapshots whose parts turned out damaged when they were read, and how. Clones share it.
    refused: Arc<Mutex<BTreeMap<String, String>>>,
    /// As [`Self::break_signs`].
    ignores_signs: bool,
}

/// A published snapshot whose manifest is whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Snapshot {
    pub name: String,
    pub place: SnapshotPoint,
    pub manifest: Manifest,
}

/// What a directory that claims to be a snapshot turns out to be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Candidate {
    /// Its manifest is whole and its parts are there; their bytes are checked as they are read.
    Whole(Snapshot),
    Damaged {
        name: String,
        why: String,
    },
}

/// What pruning did.
#[derive(Debug)]
pub struct Pruned {
    /// The position through which no retained snapshot needs the log; `None` while fewer are there
    /// than are to stay. The record behind which the older one stands is needed: by it a start
    /// tells that the log is the one that the snapshot was taken of.
    pub trim: Option<Position>,
    /// Why something could not be removed.
    pub failure: Option<io::Error>,
}

impl Candidate {
    pub fn name(&self) -> &str {
        match self {
            Self::Whole(snapshot) => &snapshot.name,
            Self::Damaged { name, .. } => name,
        }
    }
}

impl SnapshotStore {
    /// Opens the store in `directory`, which is created if absent.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path) -> io::Result<Self> {
        create_directory_durably(&*disk, directory)?;
        let refused = Arc::default();
        Ok(Self { disk, directory: directory.to_owned(), refused, ignores_signs: false })
    }

    /// Where it is.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Removes on purpose what others are writing, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_signs(&mut self) {
        self.ignores_signs = true;
    }

    /// What is published, newest first.
    ///
    /// # Errors
    /// The disk's. A damaged snapshot is no error, it is said to be one.
    pub fn list(&self) -> io::Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for name in self.names()?.into_iter().rev() {
            let directory = self.directory.join(&name);
            if !self.disk.exists(&directory.join(MANIFEST))? {
                continue;
            }
            candidates.push(match self.judge(&name, &directory) {
                Ok(snapshot) => Candidate::Whole(snapshot),
                Err(why) => Candidate::Damaged { name, why },
            });
        }
        Ok(candidates)
    }

    /// Removes what no process will finish. What a process is writing just now stays: one that was
    /// deposed may still have a thread at it.
    ///
    /// # Errors
    /// The disk's.
    pub fn remove_unpublished(&self) -> io::Result<()> {
        for name in self.names()?.into_iter().chain(self.names_in_the_making()?) {
            let sign = self.sign(&name);
            let is_signed = match self.disk.lock(&sign) {
                // Its writer is dead.
                Ok(_lock) => true,
                // It was published or given up, or an older release wrote it, which made no sign.
                Err(error) if error.kind() == ErrorKind::NotFound => false,
                Err(_) if self.ignores_signs => true,
                // Its writer lives, or nothing can be known of it.
                Err(_) => continue,
            };
            // Looked at only now: its writer may have published it just before.
            if !self.disk.exists(&self.directory.join(&name).join(MANIFEST))? {
                self.remove(&name)?;
            }
            if is_signed {
                self.remove_file(&sign)?;
            }
        }
        Ok(())
    }

    /// The file that shows, by its lock, that a snapshot is being written. It is there before the
    /// snapshot's directory is, and goes when that is published or given up.
    pub(crate) fn sign(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{SIGN}"))
    }

    /// Names of snapshots that bear the sign, whether or not there is a directory yet.
    fn names_in_the_making(&self) -> io::Result<Vec<String>> {
        let entries = self.disk.list(&self.directory)?;
        let signs = entries.iter().filter(|it| !it.is_directory && it.name.starts_with(PREFIX));
        Ok(signs.filter_map(|it| it.name.strip_suffix(SIGN)).map(str::to_owned).collect())
    }

    /// Begins a snapshot of the state at `position`.
    ///
    /// # Errors
    /// The disk's.
    pub fn begin(&self, position: Position) -> io::Result<SnapshotWriter> {
        let mut names = self.names()?;
        names.extend(self.names_in_the_making()?);
        let number = (0..)
            .map(|number| format!("{PREFIX}{:020}-{number:03}", position.sequence.0))
            .find(|name| !names.contains(name))
            .expect("there are more numbers than names");
        SnapshotWriter::begin(self, &self.directory, number)
    }

    /// Removes all but the newest [`RETAINED`] whole snapshots, and the damaged ones older than
    /// those, as far as the disk lets.
    ///
    /// # Errors
    /// The disk's, if it does not say what there is.
    pub fn prune(&self) -> io::Result<Pruned> {
        let mut whole = 0;
        let mut oldest = None;
        let mut failure = None;
        for candidate in self.list()? {
            if whole == RETAINED {
                // What stays behind costs space. The log can be trimmed all the same.
                failure = self.remove(candidate.name()).err().or(failure);
            } else if let Candidate::Whole(snapshot) = candidate {
                whole += 1;
                oldest = Some(snapshot.place.position);
            }
        }
        let before = |at: Position| at.at(Sequence(at.sequence.0.saturating_sub(1)));
        Ok(Pruned { trim: oldest.filter(|_| whole == RETAINED).map(before), failure })
    }

    /// A part of a snapshot, as a stream that checks itself.
    ///
    /// # Errors
    /// The disk's.
    pub fn open_part(&self, snapshot: &Snapshot, index: usize) -> io::Result<PartReader> {
        let part = &snapshot.manifest.parts[index];
        let path = self.directory.join(&snapshot.name).join(&part.name);
        PartReader::open(&*self.disk, &path, part)
    }

    /// The file of a part, to be read in pieces.
    ///
    /// # Errors
    /// The disk's.
    pub fn open_file(&self, snapshot: &Snapshot, index: usize) -> io::Result<Arc<dyn DiskFile>> {
        let part = &snapshot.manifest.parts[index];
        self.disk.open_read(&self.directory.join(&snapshot.name).join(&part.name))
    }

    /// Names of all directories that are or may become snapshots, oldest first.
    fn names(&self) -> io::Result<Vec<String>> {
        let entries = self.disk.list(&self.directory)?;
        let ours = entries.into_iter().filter(|it| it.is_directory && it.name.starts_with(PREFIX));
        Ok(ours.map(|entry| entry.name).collect())
    }

    /// From now on a snapshot counts as damaged: its parts were read and are not what its manifest
    /// says. A manifest alone does not tell, and a damaged snapshot must not stay in the place of
    /// one that can be loaded.
    pub fn refuse(&self, name: &str, why: &str) {
        self.refused().insert(name.to_owned(), why.to_owned());
    }

    fn refused(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // An insertion that panicked has changed nothing, or everything.
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn judge(&self, name: &str, directory: &Path) -> Result<Snapshot, String> {
        if let Some(why) = self.refused().get(name) {
            return Err(why.clone());
        }
        let path = directory.join(MANIFEST);
        let file = self.disk.open_read(&path).map_err(|error| error.to_string())?;
        let bytes = read_all(&*file, MANIFEST_BYTES_MAX).map_err(|error| error.to_string())?;
        let manifest = Manifest::decode(&bytes).map_err(|why| format!("{MANIFEST}: {why}"))?;
        for part in &manifest.parts {
            let length = self.disk.open_read(&directory.join(&part.name)).and_then(|f| f.length());
            match length {
                Ok(length) if length == part.bytes => {}
                Ok(length) => {
                    let bytes = part.bytes;
                    return Err(format!("{} has {length} bytes instead of {bytes}", part.name));
                }
                Err(error) => return Err(format!("{}: {error}", part.name)),
            }
        }
        let place = manifest.place()?;
        Ok(Snapshot { name: name.to_owned(), place, manifest })
    }

    /// Removes a snapshot. Its manifest goes first, so that a half removed one is none.
    pub(crate) fn remove(&self, name: &str) -> io::Result<()> {
        let directory = self.directory.join(name);
        let manifest = directory.join(MANIFEST);
        if self.disk.exists(&manifest)? {
            self.remove_file(&manifest)?;
            self.disk.sync_directory(&directory)?;
        }
        let entries = match self.disk.list(&directory) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            other => other?,
        };
        for entry in entries {
            self.remove_file(&directory.join(entry.name))?;
        }
        match self.disk.remove_directory(&directory) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.disk.sync_directory(&self.directory)
    }

    /// Another process may have been faster.
    pub(crate) fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}
