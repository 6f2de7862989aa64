//! What the disk's jobs do with the bytes of a snapshot under way.

use archive::{Facts, PartWriter, Snapshot, SnapshotWriter};
use engine::rdb::Crc64;
use engine::save::checksum;
use std::io;

/// Bytes on their way to the disk.
pub(super) struct Chunk {
    pub bytes: Vec<u8>,
    /// A part ends with them, but for its checksum.
    pub ends_part: bool,
}

/// A snapshot in the making. Each part is an RDB file, with the checksum that Redis wants.
pub(super) struct Writing {
    writer: SnapshotWriter,
    /// The part that is being written; none before the first byte of one.
    part: Option<PartWriter>,
    /// Of that part.
    crc: Crc64,
}

impl Writing {
    pub fn new(writer: SnapshotWriter) -> Self {
        Self { writer, part: None, crc: Crc64::default() }
    }

    pub fn append(&mut self, chunks: &[Chunk]) -> io::Result<()> {
        for Chunk { bytes, ends_part } in chunks {
            self.crc.update(bytes);
            let part = match &mut self.part {
                Some(part) => part,
                none => none.insert(self.writer.begin_part()?),
            };
            part.append(bytes)?;
            if *ends_part {
                self.end_part()?;
            }
        }
        Ok(())
    }

    fn end_part(&mut self) -> io::Result<()> {
        let Some(mut part) = self.part.take() else { return Ok(()) };
        part.append(&checksum(std::mem::take(&mut self.crc)))?;
        self.writer.take(part.finish()?);
        Ok(())
    }

    pub fn publish(mut self, facts: &Facts) -> io::Result<Snapshot> {
        match self.end_part() {
            Ok(()) => self.writer.publish(facts),
            Err(error) => Err(self.abandon(error)),
        }
    }

    /// Gives the space back that a failed snapshot took: on a full disk the log waits for it.
    pub fn abandon(self, error: io::Error) -> io::Error {
        drop(self.part);
        if let Err(why) = self.writer.abandon() {
            tracing::warn!("what a failed snapshot wrote cannot be removed: {why}");
        }
        error
    }
}
