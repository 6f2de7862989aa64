//! A snapshot in the making: written, synced, read back, published.

use crate::archive::{Archive, Draft, NewPart};
use crate::manifest::{Manifest, Part, SnapshotPoint};
use crate::reader::PartReader;
use crate::store::Snapshot;
use std::io::{self, Read};

/// The only part: one file holds all keys.
const PART: &str = "part-0000.rdb";

/// Bytes read back at once.
const VERIFY_BYTES: usize = 256 << 10;

/// What the manifest says beside the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub place: SnapshotPoint,
    pub keys: u64,
}

/// Writes one snapshot. Blocks on the archive; belongs into a disk queue's jobs. Dropped before it
/// is published it leaves what [`crate::SnapshotStore::remove_unpublished`] clears away.
pub struct SnapshotWriter {
    name: String,
    draft: Box<dyn Draft>,
    /// `None` once it is finished.
    part: Option<Box<dyn NewPart>>,
    /// Bytes in it.
    length: u64,
    crc: u32,
}

impl SnapshotWriter {
    pub(crate) fn begin(archive: &dyn Archive, name: String) -> io::Result<Self> {
        let mut draft = archive.begin(&name)?;
        let part = Some(draft.part(PART)?);
        Ok(Self { name, draft, part, length: 0, crc: 0 })
    }

    /// Bytes appended so far.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Appends bytes to the part.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.length += bytes.len() as u64;
        let part = self.part.as_mut().expect("nothing is appended to what is finished");
        part.append(bytes)
    }

    /// Makes everything durable, reads it back, and publishes it.
    ///
    /// # Errors
    /// The archive's, or `InvalidData` if what was read back differs. It is then not published, and
    /// what was written is removed as far as the archive lets it.
    pub fn publish(mut self, facts: &Facts) -> io::Result<Snapshot> {
        match self.try_to_publish(facts) {
            Ok(manifest) => Ok(Snapshot { name: self.name, place: facts.place, manifest }),
            Err(error) => {
                // The error that made it fail says more than one that comes of it.
                let _ = self.abandon();
                Err(error)
            }
        }
    }

    fn try_to_publish(&mut self, facts: &Facts) -> io::Result<Manifest> {
        if let Some(part) = self.part.take() {
            part.finish()?;
        }
        let part = Part::new(PART, self.length, self.crc);
        let mut reader = PartReader::new(self.draft.read_back(PART)?, &part);
        let mut buffer = vec![0; VERIFY_BYTES];
        while reader.read(&mut buffer)? > 0 {}
        let manifest = Manifest::new(facts.place, facts.keys, vec![part]);
        self.draft.publish(&manifest.encode())?;
        Ok(manifest)
    }

    /// Removes what was written.
    ///
    /// # Errors
    /// The archive's.
    pub fn abandon(self) -> io::Result<()> {
        drop(self.part);
        self.draft.abandon()
    }
}
