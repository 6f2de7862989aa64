//! A snapshot in the making: written, synced, read back, published.

use crate::manifest::{Manifest, Part, Place};
use crate::reader::PartReader;
use crate::store::{MANIFEST, Snapshot, SnapshotStore};
use base::DiskFile;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The only part: one file holds all keys.
const PART: &str = "part-0000.rdb";
const MANIFEST_UNFINISHED: &str = "manifest.json.new";

/// Bytes written between two syncs. Small enough that no sync makes the log's wait long, large
/// enough that their number does not matter. A guess.
const SYNC_BYTES: u64 = 16 << 20;

/// Bytes read back at once.
const VERIFY_BYTES: usize = 1 << 20;

/// What the manifest says beside the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub place: Place,
    pub keys: u64,
}

/// Writes one snapshot. Blocks on the disk; belongs into a disk queue's jobs. Dropped before it is
/// published it leaves a directory that [`SnapshotStore::remove_unpublished`] clears away.
pub struct SnapshotWriter {
    store: SnapshotStore,
    parent: PathBuf,
    name: String,
    file: Arc<dyn DiskFile>,
    length: u64,
    synced: u64,
    crc: u32,
}

impl SnapshotWriter {
    pub(crate) fn begin(store: &SnapshotStore, parent: &Path, name: String) -> io::Result<Self> {
        let directory = parent.join(&name);
        store.disk.create_directory(&directory)?;
        let file = store.disk.create_new(&directory.join(PART))?;
        let (store, parent) = (store.clone(), parent.to_owned());
        Ok(Self { store, parent, name, file, length: 0, synced: 0, crc: 0 })
    }

    /// Bytes appended so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes to the part.
    ///
    /// # Errors
    /// The disk's; the snapshot must then be abandoned.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(self.length, bytes)?;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.length += bytes.len() as u64;
        if self.length - self.synced >= SYNC_BYTES {
            self.file.sync_data()?;
            self.synced = self.length;
        }
        Ok(())
    }

    /// Makes everything durable, reads it back, and publishes it.
    ///
    /// # Errors
    /// The disk's, or `InvalidData` if what was read back differs. It is then not published.
    pub fn publish(self, facts: &Facts) -> io::Result<Snapshot> {
        self.file.sync_data()?;
        let directory = self.parent.join(&self.name);
        let part = Part::new(PART, self.length, self.crc);
        let mut reader = PartReader::open(&*self.store.disk, &directory.join(PART), &part)?;
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
        Ok(Snapshot { name: self.name, place: facts.place, manifest })
    }

    /// Removes what was written.
    ///
    /// # Errors
    /// The disk's.
    pub fn abandon(self) -> io::Result<()> {
        drop(self.file);
        self.store.remove(&self.name)
    }
}
