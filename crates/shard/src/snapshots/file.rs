//! A snapshot as one RDB file, for who knows of no parts: a replica of Redis.
//!
//! ```text
//! part 0:  head  fields and keys  end        head: "REDIS0010"
//! part 1:  head  fields and keys  end        end: 0xFF and the checksum
//!                    ▼
//! file:    head  those of part 0, of part 1 …  end
//! ```
//! Each part is checked as it is read, before its last bytes are handed on; the file's own checksum
//! is made on the way. So whoever is sent a file that turns out damaged never sees its end.

use archive::{PartReader, Snapshot, SnapshotStore};
use engine::rdb::Crc64;
use engine::save::{checksum, put_end};
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

/// Bytes of the name and version that a part begins with.
const HEAD_BYTES: usize = 9;

/// Bytes of the code and checksum that a part ends with.
const END_BYTES: usize = 9;

/// A snapshot that is read as one file, from its beginning to its end. Reading blocks. A clone goes
/// on from the same place by itself.
#[derive(Clone)]
pub struct SnapshotFile {
    store: SnapshotStore,
    snapshot: Arc<Snapshot>,
    /// The part that is being read; none when it was read to its end.
    part: Option<PartReader>,
    /// The number of the part that comes next.
    next: usize,
    crc: Crc64,
    /// What comes behind the last part; empty until then.
    end: Vec<u8>,
    length: u64,
    offset: u64,
}

impl SnapshotFile {
    /// Opens a published snapshot, and its first part. The others are opened as they come: until
    /// then the snapshot must stay in its store: see [`crate::Shard::pin_snapshot`].
    ///
    /// # Errors
    /// The archive's; `InvalidData` if its parts are too short to be RDB files.
    pub fn open(store: &SnapshotStore, snapshot: Snapshot) -> io::Result<Self> {
        if snapshot.manifest.parts.is_empty() {
            return Err(damaged("it has no parts"));
        }
        let mut length = (HEAD_BYTES + END_BYTES) as u64;
        for part in &snapshot.manifest.parts {
            let inner = part.bytes.checked_sub((HEAD_BYTES + END_BYTES) as u64);
            length += inner.ok_or_else(|| damaged(&format!("{} is no RDB file", part.name)))?;
        }
        let part = store.open_part(&snapshot, 0)?;
        Ok(Self {
            store: store.clone(),
            snapshot: Arc::new(snapshot),
            part: Some(part),
            next: 1,
            crc: Crc64::default(),
            end: Vec::new(),
            length,
            offset: 0,
        })
    }

    /// The snapshot's name in its store.
    pub fn name(&self) -> &str {
        &self.snapshot.name
    }

    /// Bytes of the whole file.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes read so far.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next bytes, so many of them unless the file ends.
    ///
    /// # Errors
    /// The archive's; `InvalidData` if a part is not what was published.
    pub fn next(&mut self, bytes_max: usize) -> io::Result<Vec<u8>> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let mut bytes = vec![0; left.min(bytes_max)];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Reads a piece into `into`, which has room; how much. Nothing at the seam of two parts.
    fn read_piece(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if let Some(part) = &mut self.part {
            let left = (part.length() - part.offset()) as usize - END_BYTES;
            if left > 0 {
                let room = into.len().min(left);
                let count = part.read(&mut into[..room])?;
                self.crc.update(&into[..count]);
                return Ok(count);
            }
            // With its last bytes it is known to be whole.
            part.read_exact(&mut [0; END_BYTES])?;
            self.part = None;
        }
        if self.next < self.snapshot.manifest.parts.len() {
            let mut part = self.store.open_part(&self.snapshot, self.next)?;
            part.read_exact(&mut [0; HEAD_BYTES])?;
            self.part = Some(part);
            self.next += 1;
            return Ok(0);
        }
        if self.end.is_empty() {
            put_end(&mut self.end);
            self.crc.update(&self.end);
            self.end.extend_from_slice(&checksum(self.crc));
        }
        let count = into.len().min(self.end.len());
        into[..count].copy_from_slice(&self.end[..count]);
        self.end.drain(..count);
        Ok(count)
    }
}

impl Read for SnapshotFile {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let room = into.len().min(left);
        let mut count = 0;
        while count == 0 && room > 0 {
            count = self.read_piece(&mut into[..room])?;
        }
        self.offset += count as u64;
        Ok(count)
    }
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
