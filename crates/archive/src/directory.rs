//! An archive in a directory, which several processes may share.
//!
//! ```text
//! <directory>/snapshot-<sequence>-<n>.writing            the sign: locked while somebody writes
//!             snapshot-<sequence>-<n>/part-0000.rdb      the bytes
//!                                     manifest.json      written last, renamed in
//!             log-<first>-<last>[-<attempt>]         the same: a stretch of the log
//!             claim.lock, claim.json      who takes the snapshots off the box, and how far it is
//! ```
//! The sign's lock tells a writer that lives from one that died, on whatever machine it runs: the
//! log's lock does not, because a deposed primary may still have a thread at its snapshot, and
//! whoever writes snapshots need not hold the log. A file system without locks tells nothing, and
//! then a sign alone protects: what is left there stays until somebody removes it by hand.

mod claim;

use crate::archive::{Archive, Claim, Draft, Entry, NewPart, StoredPart, Unfinished};
use crate::manifest::MANIFEST;
use crate::names::Content;
use base::disk::{DIRECT_BLOCK_BYTES, create_directory_durably};
use base::{Disk, DiskFile};
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const MANIFEST_UNFINISHED: &str = "manifest.json.new";
/// Behind a snapshot's name, while it is being written.
const SIGN: &str = ".writing";

/// Bytes written at once, past the page cache.
const BLOCK_BYTES: usize = 256 << 10;
const _: () = assert!(BLOCK_BYTES.is_multiple_of(DIRECT_BLOCK_BYTES));

/// Snapshots as directories of files.
#[derive(Clone)]
pub struct DirectoryArchive {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// As [`Self::break_signs`].
    ignores_signs: bool,
}

impl DirectoryArchive {
    /// Opens the archive in `directory`, which is created if absent. Entries whose names
    /// are those of no [`Content`] are not the archive's.
    ///
    /// # Errors
    /// The disk's.
    pub fn open(disk: Arc<dyn Disk>, directory: &Path) -> io::Result<Self> {
        create_directory_durably(&*disk, directory)?;
        Ok(Self { disk, directory: directory.to_owned(), ignores_signs: false })
    }

    /// The archive in `directory`, which is there or is not: for who only reads.
    pub fn open_to_read(disk: Arc<dyn Disk>, directory: &Path) -> Self {
        Self { disk, directory: directory.to_owned(), ignores_signs: false }
    }

    /// Removes on purpose what others are writing, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_signs(&mut self) {
        self.ignores_signs = true;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// The file that shows, by its lock, that a snapshot is being written. It is there before the
    /// snapshot's directory is, and goes when that is published or given up.
    fn sign(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}{SIGN}"))
    }

    /// Names of all of these, and of those that bear a sign, with or without a directory.
    fn names(&self, of: &[Content]) -> io::Result<BTreeSet<String>> {
        let entries = match self.disk.list(&self.directory) {
            // Of who only reads: nothing was ever written there.
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            listed => listed?,
        };
        let named = entries.into_iter().filter_map(|it| match it.is_directory {
            true => Some(it.name),
            false => it.name.strip_suffix(SIGN).map(str::to_owned),
        });
        let is_ours = |name: &String| Content::of(name).is_some_and(|it| of.contains(&it));
        Ok(named.filter(is_ours).collect())
    }

    fn is_published(&self, name: &str) -> io::Result<bool> {
        self.disk.exists(&self.path(name).join(MANIFEST))
    }

    fn remove_if_unpublished(&self, name: &str, of: Unfinished) -> io::Result<()> {
        let sign = self.sign(name);
        let is_signed = match self.disk.lock(&sign) {
            // Its writer is dead.
            Ok(_lock) => true,
            // It was published or given up, or an older release wrote it, which made no sign.
            Err(error) if error.kind() == ErrorKind::NotFound => false,
            Err(_) if self.ignores_signs => true,
            // Its writer lives, or nothing can be known of it.
            Err(_) => return Ok(()),
        };
        if !is_signed && of == Unfinished::Signed {
            return Ok(());
        }
        // Looked at only now: its writer may have published it just before.
        if !self.is_published(name)? {
            self.remove(name)?;
        }
        if is_signed {
            self.remove_file(&sign)?;
        }
        Ok(())
    }

    /// Another process may have been faster.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        match self.disk.remove(path) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl Archive for DirectoryArchive {
    fn location(&self) -> String {
        self.directory.display().to_string()
    }

    fn list(&self, of: Content) -> io::Result<Vec<Entry>> {
        let names = self.names(&[of])?.into_iter();
        // One that cannot be asked about must not hide the others: whoever reads it is told why.
        let is_published = |name: &str| self.is_published(name).unwrap_or(true);
        Ok(names.map(|name| Entry { is_published: is_published(&name), name }).collect())
    }

    fn begin(&self, name: &str) -> io::Result<Box<dyn Draft>> {
        let sign = self.sign(name);
        self.disk.create_new(&sign)?;
        let lock = match self.disk.lock(&sign) {
            Ok(lock) => Some(lock),
            // Somebody tidies up and takes it for a dead writer's.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => {
                return Err(error);
            }
            Err(_) => None,
        };
        if !self.disk.exists(&sign)? {
            return Err(ErrorKind::NotFound.into());
        }
        // Whoever published under this name had a sign until then, so that it is seen behind one's
        // own: a writer that chose its name before must not abandon what is another's.
        if self.disk.exists(&self.path(name))? {
            self.remove_file(&sign)?;
            return Err(ErrorKind::AlreadyExists.into());
        }
        self.disk.create_directory(&self.path(name))?;
        let archive = self.clone();
        Ok(Box::new(DirectoryDraft { archive, name: name.to_owned(), _lock: lock }))
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> io::Result<Vec<u8>> {
        read_all(&*self.disk.open_read(&self.path(name).join(MANIFEST))?, bytes_max)
    }

    fn parts(&self, name: &str) -> io::Result<BTreeMap<String, u64>> {
        let entries = self.disk.list(&self.path(name))?;
        let files = entries.into_iter().filter(|entry| !entry.is_directory);
        Ok(files.map(|entry| (entry.name, entry.length)).collect())
    }

    /// The open file stays readable when its snapshot is removed.
    fn open(&self, name: &str, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        Ok(Arc::new(OpenFile(self.disk.open_read(&self.path(name).join(part))?)))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let directory = self.path(name);
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

    fn remove_unpublished(&self, of: Unfinished) -> io::Result<()> {
        let mut failure = None;
        for name in self.names(&Content::ALL)? {
            if let Err(error) = self.remove_if_unpublished(&name, of) {
                failure = Some(io::Error::new(error.kind(), format!("{name}: {error}")));
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn claim(&self, said: &[u8]) -> io::Result<Option<Box<dyn Claim>>> {
        self.take_claim(said)
    }

    fn claimed(&self) -> io::Result<Option<Vec<u8>>> {
        self.said()
    }
}

struct DirectoryDraft {
    archive: DirectoryArchive,
    name: String,
    /// Shows that this process writes it; `None` where the file system has no locks.
    _lock: Option<Arc<dyn Any + Send + Sync>>,
}

impl Draft for DirectoryDraft {
    fn part(&mut self, name: &str) -> io::Result<Box<dyn NewPart>> {
        let path = self.archive.path(&self.name).join(name);
        let file = self.archive.disk.create_direct(&path)?;
        Ok(Box::new(NewFile { file, written: 0, block: Vec::with_capacity(BLOCK_BYTES) }))
    }

    /// What the device holds, not what the page cache remembers of it.
    fn read_back(&self, part: &str) -> io::Result<Arc<dyn StoredPart>> {
        let path = self.archive.path(&self.name).join(part);
        Ok(Arc::new(OpenFile(self.archive.disk.open_direct(&path)?)))
    }

    fn publish(&mut self, manifest: &[u8]) -> io::Result<()> {
        let Self { archive, name, .. } = self;
        let (disk, directory) = (&archive.disk, archive.path(name));
        // Nobody else has the name, so nobody publishes between this look and the renaming.
        if archive.is_published(name)? {
            return Err(ErrorKind::AlreadyExists.into());
        }
        let unfinished = directory.join(MANIFEST_UNFINISHED);
        let file = disk.create_new(&unfinished)?;
        file.write_at(0, manifest)?;
        file.sync_data()?;
        // The names of directory and parts must not be younger than the manifest's.
        disk.sync_directory(&archive.directory)?;
        disk.sync_directory(&directory)?;
        disk.rename(&unfinished, &directory.join(MANIFEST))?;
        disk.sync_directory(&directory)?;
        // A sign that stays is unlocked, and whoever tidies up removes it.
        let _ = archive.remove_file(&archive.sign(name));
        Ok(())
    }

    fn abandon(self: Box<Self>) -> io::Result<()> {
        self.archive.remove(&self.name)?;
        self.archive.remove_file(&self.archive.sign(&self.name))
    }
}

/// A part that is being written, in whole blocks.
struct NewFile {
    file: Arc<dyn DiskFile>,
    /// Bytes in the file.
    written: u64,
    /// What is to be written next, less than a block.
    block: Vec<u8>,
}

impl NewFile {
    fn write_block(&mut self) -> io::Result<()> {
        self.file.write_at(self.written, &self.block)?;
        self.written += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }
}

impl NewPart for NewFile {
    fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = BLOCK_BYTES - self.block.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.block.extend_from_slice(now);
            bytes = later;
            if self.block.len() == BLOCK_BYTES {
                self.write_block()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<()> {
        self.write_block()?;
        self.file.sync_data()
    }
}

struct OpenFile(Arc<dyn DiskFile>);

impl StoredPart for OpenFile {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, into)
    }
}

/// A whole file of at most `bytes_max` bytes.
fn read_all(file: &dyn DiskFile, bytes_max: u64) -> io::Result<Vec<u8>> {
    let length = file.length()?;
    if length > bytes_max {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is too long"));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    let mut filled = 0;
    while filled < bytes.len() {
        let count = file.read_at(filled as u64, &mut bytes[filled..])?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        filled += count;
    }
    Ok(bytes)
}
