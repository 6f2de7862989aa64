//! A snapshot in the making: written, synced, read back, published.

use crate::archive::{Archive, Draft, NewPart};
use crate::manifest::{Manifest, Part, SnapshotPoint};
use crate::reader::PartReader;
use crate::store::Snapshot;
use std::io::{self, Read};

/// Bytes read back at once.
const VERIFY_BYTES: usize = 256 << 10;

/// What the manifest says beside the parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Facts {
    pub point: SnapshotPoint,
    pub keys: u64,
}

/// Writes one snapshot. Blocks on the archive; belongs into a disk queue's jobs. Dropped before it
/// is published it leaves what [`crate::SnapshotStore::remove_unpublished`] clears away.
pub struct SnapshotWriter {
    name: String,
    draft: Box<dyn Draft>,
    /// The parts that are finished.
    parts: Vec<Part>,
    /// The part that is being written.
    part: Box<dyn NewPart>,
    /// Bytes in it, and their checksum.
    length: u64,
    crc: u32,
}

fn part_name(index: usize) -> String {
    format!("part-{index:04}.rdb")
}

impl SnapshotWriter {
    pub(crate) fn begin(archive: &dyn Archive, name: String) -> io::Result<Self> {
        let mut draft = archive.begin(&name)?;
        let part = draft.part(&part_name(0))?;
        Ok(Self { name, draft, parts: Vec::new(), part, length: 0, crc: 0 })
    }

    /// Appends bytes to the part.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.length += bytes.len() as u64;
        self.part.append(bytes)
    }

    /// Makes the part durable and begins the next one.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn begin_next_part(&mut self) -> io::Result<()> {
        let next = self.draft.part(&part_name(self.parts.len() + 1))?;
        std::mem::replace(&mut self.part, next).finish()?;
        self.parts.push(Part::new(&part_name(self.parts.len()), self.length, self.crc));
        (self.length, self.crc) = (0, 0);
        Ok(())
    }

    /// Makes everything durable, reads it back, and publishes it.
    ///
    /// # Errors
    /// The archive's, or `InvalidData` if what was read back differs. It is then not published, and
    /// what was written is removed as far as the archive lets it.
    pub fn publish(self, facts: &Facts) -> io::Result<Snapshot> {
        let Self { name, mut draft, mut parts, part, length, crc } = self;
        parts.push(Part::new(&part_name(parts.len()), length, crc));
        let published = part.finish().and_then(|()| publish(&mut *draft, parts, facts));
        match published {
            Ok(manifest) => Ok(Snapshot { name, point: facts.point, manifest }),
            Err(error) => {
                // The error that made it fail says more than one that comes of it.
                let _ = draft.abandon();
                Err(error)
            }
        }
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

fn publish(draft: &mut dyn Draft, parts: Vec<Part>, facts: &Facts) -> io::Result<Manifest> {
    let mut buffer = vec![0; VERIFY_BYTES];
    for part in &parts {
        let mut reader = PartReader::new(draft.read_back(&part.name)?, part);
        while reader.read(&mut buffer)? > 0 {}
    }
    let manifest = Manifest::new(facts.point, facts.keys, parts);
    draft.publish(&manifest.encode())?;
    Ok(manifest)
}
