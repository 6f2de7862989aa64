//! Where objects are files: a name is durable once its directory is synced.
//!
//! A file's bytes are synced before it gets its name, and the directory after. In between others
//! see a record that a power cut would take back. So whoever finds one syncs the directory too
//! before believing in it. A sync that failed says nothing about the next one: from then on this
//! process believes nothing.

use super::Objects;
use super::names::{Life, Names};
use object_store::Error;
use rustix::fs::{Mode, OFlags, fsync, open};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The directory of one log's records.
pub struct Directory {
    records: PathBuf,
    is_broken: AtomicBool,
}

impl Directory {
    pub fn new(root: &Path, names: &Names, life: Life) -> Self {
        let records = root.join(names.records(life).as_ref());
        Self { records, is_broken: AtomicBool::new(false) }
    }
}

impl Objects {
    /// Makes sure that the records seen so far survive a power cut, where that is not the store's
    /// own promise.
    pub(super) async fn settle(&self) -> Result<(), Error> {
        let Some(directory) = &self.directory else { return Ok(()) };
        if !directory.is_broken.load(Ordering::Relaxed) {
            let records = directory.records.clone();
            match tokio::task::spawn_blocking(move || sync(&records)).await? {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::error!(%error, "the log's directory could not be synced");
                    self.break_if_file();
                }
            }
        }
        let what = "a sync of the log's directory failed: restart the server";
        Err(Error::Generic { store: "log", source: io::Error::other(what).into() })
    }

    /// After a put that failed somehow: it may have been its sync.
    pub(super) fn break_if_file(&self) {
        if let Some(directory) = &self.directory {
            directory.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

/// A directory that is not there holds no record that could be lost.
fn sync(path: &Path) -> io::Result<()> {
    match open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Ok(file) => Ok(fsync(file)?),
        Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
