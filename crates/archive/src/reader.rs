//! A part as a stream that checks itself.

use crate::manifest::Part;
use base::{Disk, DiskFile};
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;

/// Reads a part from its beginning to its end. The end is only reached if the bytes are those that
/// were published; otherwise the last read fails with `InvalidData`.
pub struct PartReader {
    file: Arc<dyn DiskFile>,
    offset: u64,
    length: u64,
    crc: u32,
    expected: Option<u32>,
}

impl PartReader {
    pub(crate) fn open(disk: &dyn Disk, path: &Path, part: &Part) -> io::Result<Self> {
        Ok(Self::new(disk.open_read(path)?, part))
    }

    /// Reads what the device holds, not what the page cache remembers of it.
    pub(crate) fn verify(disk: &dyn Disk, path: &Path, part: &Part) -> io::Result<Self> {
        Ok(Self::new(disk.open_direct(path)?, part))
    }

    fn new(file: Arc<dyn DiskFile>, part: &Part) -> Self {
        Self { file, offset: 0, length: part.bytes, crc: 0, expected: part.crc() }
    }

    /// Bytes of the whole part.
    pub fn length(&self) -> u64 {
        self.length
    }
}

impl Read for PartReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.offset).unwrap_or(usize::MAX);
        let wanted = into.len().min(left);
        if wanted == 0 {
            return Ok(0);
        }
        let count = self.file.read_at(self.offset, &mut into[..wanted])?;
        if count == 0 {
            let what = format!("it ends after {} of {} bytes", self.offset, self.length);
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        self.crc = crc32c::crc32c_append(self.crc, &into[..count]);
        self.offset += count as u64;
        if self.offset == self.length && Some(self.crc) != self.expected {
            let what = "its bytes are not those that were written (CRC-32C)";
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        Ok(count)
    }
}

/// A whole file of at most `bytes_max` bytes.
pub(crate) fn read_all(file: &dyn DiskFile, bytes_max: u64) -> io::Result<Vec<u8>> {
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
