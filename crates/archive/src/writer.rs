//! A snapshot in the making: written, synced, read back, published.

use crate::manifest::{Manifest, Part, SnapshotPoint};
use crate::reader::PartReader;
use crate::store::{MANIFEST, Snapshot, SnapshotStore};
use base::DiskFile;
use base::disk::DIRECT_BLOCK_BYTES;
use std::any::Any;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The only part: one file holds all keys.
const PART: &str = "part-0000.rdb";
const MANIFEST_UNFINISHED: &str = "manifest.json.new";

/// Bytes written at once, past the page cache.
const BLOCK_BYTES: usize = 256 << 10;
const _: () = assert!(BLOCK_BYTES.is_multiple_of(DIRECT_BLOCK_BYTES));

/// Bytes read back at once.
const VERIFY_BYTES: usize = BLOCK_BYTES;

/// What the manifest says beside the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub place: SnapshotPoint,
    pub keys: u64,
}

/// Writes one snapshot. Blocks on the disk; belongs into a disk queue's jobs. Dropped before it is
/// published it leaves a directory that [`SnapshotStore::remove_unpublished`] clears away.
pub struct SnapshotWriter {
    store: SnapshotStore,
    parent: PathBuf,
    name: String,
    file: Arc<dyn DiskFile>,
    /// Bytes in the file.
    written: u64,
    /// What is to be written next, less than a block.
    block: Vec<u8>,
    crc: u32,
    /// Shows that this process writes it; `None` where the file system has no locks.
    _lock: Option<Arc<dyn Any + Send + Sync>>,
}

impl SnapshotWriter {
    pub(crate) fn begin(store: &SnapshotStore, parent: &Path, name: String) -> io::Result<Self> {
        let sign = store.sign(&name);
        store.disk.create_new(&sign)?;
        let lock = match store.disk.lock(&sign) {
            Ok(lock) => Some(lock),
            // Somebody tidies up and takes it for a dead writer's.
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotFound) => {
                return Err(error);
            }
            Err(_) => None,
        };
        if !store.disk.exists(&sign)? {
            return Err(ErrorKind::NotFound.into());
        }
        let directory = parent.join(&name);
        store.disk.create_directory(&directory)?;
        let file = store.disk.create_direct(&directory.join(PART))?;
        let (store, parent) = (store.clone(), parent.to_owned());
        let block = Vec::with_capacity(BLOCK_BYTES);
        Ok(Self { store, parent, name, file, written: 0, block, crc: 0, _lock: lock })
    }

    /// Bytes appended so far.
    pub fn length(&self) -> u64 {
        self.written + self.block.len() as u64
    }

    /// Appends bytes to the part.
    ///
    /// # Errors
    /// The disk's; the snapshot must then be abandoned.
    pub fn append(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
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

    fn write_block(&mut self) -> io::Result<()> {
        self.file.write_at(self.written, &self.block)?;
        self.written += self.block.len() as u64;
        self.block.clear();
        Ok(())
    }

    /// Makes everything durable, reads it back, and publishes it.
    ///
    /// # Errors
    /// The disk's, or `InvalidData` if what was read back differs. It is then not published, and
    /// what was written is removed as far as the disk lets it.
    pub fn publish(mut self, facts: &Facts) -> io::Result<Snapshot> {
        let manifest = match self.try_to_publish(facts) {
            Ok(manifest) => manifest,
            Err(error) => {
                // The error that made it fail says more than one that comes of it.
                let _ = self.abandon();
                return Err(error);
            }
        };
        // A sign that stays is unlocked, and whoever tidies up removes it.
        let _ = self.store.remove_file(&self.store.sign(&self.name));
        Ok(Snapshot { name: self.name, place: facts.place, manifest })
    }

    fn try_to_publish(&mut self, facts: &Facts) -> io::Result<Manifest> {
        self.write_block()?;
        self.file.sync_data()?;
        let directory = self.parent.join(&self.name);
        let part = Part::new(PART, self.written, self.crc);
        let mut reader = PartReader::verify(&*self.store.disk, &directory.join(PART), &part)?;
        let mut buffer = vec![0; VERIFY_BYTES];
        while reader.read(&mut buffer)? > 0 {}
        let manifest = Manifest::new(facts.place, facts.keys, vec![part]);
        let disk = &self.store.disk;
        let unfinished = directory.join(MANIFEST_UNFINISHED);
        let file = disk.create_new(&unfinished)?;
        file.write_at(0, &manifest.encode())?;
        file.sync_data()?;
        // The names of directory and part must not be younger than the manifest's.
        disk.sync_directory(&self.parent)?;
        disk.sync_directory(&directory)?;
        disk.rename(&unfinished, &directory.join(MANIFEST))?;
        disk.sync_directory(&directory)?;
        Ok(manifest)
    }

    /// Removes what was written.
    ///
    /// # Errors
    /// The disk's.
    pub fn abandon(self) -> io::Result<()> {
        drop(self.file);
        self.store.remove(&self.name)?;
        self.store.remove_file(&self.store.sign(&self.name))
    }
}
