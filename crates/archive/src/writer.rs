//! A snapshot in the making: written, synced, read back, published.

use crate::archive::{Archive, Draft, NewPart};
use crate::manifest::{Facts, Manifest, Part};
use crate::reader::PartReader;
use crate::store::Snapshot;
use std::io::{self, Read};

/// Bytes read back at once.
const VERIFY_BYTES: usize = 256 << 10;

/// Writes one snapshot. Blocks on the archive; belongs into a disk queue's jobs. Dropped before it
/// is published it leaves what [`crate::SnapshotStore::remove_unpublished`] clears away.
pub struct SnapshotWriter {
    name: String,
    draft: Box<dyn Draft>,
    /// The parts that were begun; those that are finished are known.
    parts: Vec<Option<Part>>,
    /// The newest format that the manifest may have.
    format_max: u32,
}

/// A part that is being written. Several of a snapshot may be at a time, on several threads.
pub struct PartWriter {
    index: usize,
    name: String,
    part: Box<dyn NewPart>,
    /// Bytes in it, and their checksum.
    length: u64,
    crc: u32,
}

/// A part that is durable, for [`SnapshotWriter::take`].
pub struct FinishedPart {
    index: usize,
    part: Part,
}

impl PartWriter {
    /// Appends bytes to the part.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.length += bytes.len() as u64;
        self.part.append(bytes)
    }

    /// Makes the part durable.
    ///
    /// # Errors
    /// As [`Self::append`].
    pub fn finish(self) -> io::Result<FinishedPart> {
        let Self { index, name, part, length, crc } = self;
        part.finish()?;
        Ok(FinishedPart { index, part: Part::new(&name, length, crc) })
    }
}

impl SnapshotWriter {
    pub(crate) fn begin(archive: &dyn Archive, name: String, format_max: u32) -> io::Result<Self> {
        Ok(Self { draft: archive.begin(&name)?, name, parts: Vec::new(), format_max })
    }

    /// The snapshot's name in the archive.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Begins the next part.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    pub fn begin_part(&mut self) -> io::Result<PartWriter> {
        let index = self.parts.len();
        let name = self.draft.part_name(index);
        let part = self.draft.part(&name)?;
        self.parts.push(None);
        Ok(PartWriter { index, name, part, length: 0, crc: 0 })
    }

    /// Writes a whole part.
    ///
    /// # Errors
    /// The archive's; the snapshot must then be abandoned.
    pub fn write_part(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut part = self.begin_part()?;
        part.append(bytes)?;
        self.take(part.finish()?);
        Ok(())
    }

    /// Takes a part that is finished.
    pub fn take(&mut self, FinishedPart { index, part }: FinishedPart) {
        self.parts[index] = Some(part);
    }

    /// What was written, as it would be published.
    ///
    /// # Panics
    /// A part was begun and not taken back.
    pub fn written(&self, facts: &Facts) -> Snapshot {
        let manifest = Manifest::new(facts, self.finished(), self.format_max);
        let (name, point) = (self.name.clone(), facts.point);
        Snapshot { name, point, manifest: Box::new(manifest) }
    }

    /// Opens a part that is finished: as the archive keeps it.
    ///
    /// # Errors
    /// The archive's.
    pub fn read_back(&self, part: &Part) -> io::Result<PartReader> {
        Ok(PartReader::new(self.draft.read_back(&part.name)?, part))
    }

    fn finished(&self) -> Vec<Part> {
        let parts: Option<Vec<Part>> = self.parts.iter().cloned().collect();
        parts.expect("all parts were finished")
    }

    /// Reads everything back, unless it was proven by that, and publishes it.
    ///
    /// # Errors
    /// The archive's, or `InvalidData` if what was read back differs. It is then not published, and
    /// what was written is removed as far as the archive lets it.
    ///
    /// # Panics
    /// A part was begun and not taken back.
    pub fn publish(self, facts: &Facts) -> io::Result<Snapshot> {
        let written = self.written(facts);
        let read = if facts.proven.is_some() { Ok(()) } else { self.verify(&written) };
        let mut draft = self.draft;
        match read.and_then(|()| draft.publish(&written.manifest.encode())) {
            Ok(()) => Ok(written),
            Err(error) => {
                // The error that made it fail says more than one that comes of it.
                let _ = draft.abandon();
                Err(error)
            }
        }
    }

    fn verify(&self, written: &Snapshot) -> io::Result<()> {
        let mut buffer = vec![0; VERIFY_BYTES];
        for part in &written.manifest.parts {
            let mut reader = self.read_back(part)?;
            while reader.read(&mut buffer)? > 0 {}
        }
        Ok(())
    }

    /// Removes what was written. No part is being written any more.
    ///
    /// # Errors
    /// The archive's.
    pub fn abandon(self) -> io::Result<()> {
        self.draft.abandon()
    }
}
