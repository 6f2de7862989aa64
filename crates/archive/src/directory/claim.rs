//! The claim in a directory: a lock, which ends with its holder, and beside it what that one says.

use super::{DirectoryArchive, read_all};
use crate::archive::{CLAIM_BYTES_MAX, Claim};
use std::any::Any;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// The file that a holder locks. It stays.
const LOCK: &str = "claim.lock";
/// The words of the holder, and the name under which they are written.
const SAID: &str = "claim.json";
const SAID_UNFINISHED: &str = "claim.json.new";

struct DirectoryClaim {
    archive: DirectoryArchive,
    /// `None` where the file system has no locks.
    lock: Option<Arc<dyn Any + Send + Sync>>,
}

impl DirectoryArchive {
    pub(super) fn take_claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        let path = self.directory.join(LOCK);
        match self.disk.create_new(&path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let lock = match self.disk.lock(&path) {
            Ok(lock) => Some(lock),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(error),
            Err(_) => None,
        };
        let mut claim = DirectoryClaim { archive: self.clone(), lock };
        Ok(if claim.renew(said)? { Some(Box::new(claim)) } else { None })
    }

    pub(super) fn said(&self) -> io::Result<Option<Vec<u8>>> {
        match self.disk.open_read(&self.directory.join(SAID)) {
            Ok(file) => read_all(&*file, CLAIM_BYTES_MAX as u64).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Claim for DirectoryClaim {
    /// Renamed in, so that nobody reads half of it. A loss of power may take it back: by then its
    /// holder is dead.
    fn renew(&mut self, said: &[u8]) -> io::Result<bool> {
        if said.len() > CLAIM_BYTES_MAX {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the claim says too much"));
        }
        let DirectoryArchive { disk, directory, .. } = &self.archive;
        let unfinished = directory.join(SAID_UNFINISHED);
        self.archive.remove_file(&unfinished)?;
        let written = disk
            .create_new(&unfinished)
            .and_then(|file| file.write_at(0, said))
            .and_then(|()| disk.rename(&unfinished, &directory.join(SAID)));
        use ErrorKind::{AlreadyExists, NotFound};
        match written {
            Ok(()) => Ok(true),
            // Where there are no locks, somebody else has the claim too and says something at this
            // very moment: it may keep it.
            Err(error)
                if self.lock.is_none() && matches!(error.kind(), AlreadyExists | NotFound) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn release(self: Box<Self>) -> io::Result<()> {
        self.archive.remove_file(&self.archive.directory.join(SAID))
    }
}
