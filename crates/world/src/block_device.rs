//! A block device past the page cache, for one process alone.
//!
//! The kernel holds a device for who opened it exclusively: it is refused while it is mounted, part
//! of a volume or an array, or held by another process, and nobody else can hold it meanwhile. It
//! says nothing of what is on the device.

use crate::direct::DirectFile;
use base::disk::DiskFile;
use rustix::fs::{OFlags, SeekFrom};
use rustix::io::Errno;
use rustix::ioctl::{Setter, ioctl};
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A device that this process holds.
struct BlockDevice {
    file: DirectFile,
    /// Bytes behind the last one that was written and not discarded since.
    used_bytes: AtomicU64,
}

/// Whether a path, links followed, leads to a block device.
///
/// # Errors
/// The file system's; `NotFound` if nothing is there.
pub fn is_block_device(path: &Path) -> io::Result<bool> {
    Ok(fs::metadata(path)?.file_type().is_block_device())
}

/// Opens a block device for reading and writing, and holds it until the last handle is dropped.
/// [`DiskFile::set_length`] of it tells the device that what was written behind that length is of
/// no use any more; the device keeps its length.
///
/// # Errors
/// `ResourceBusy` if somebody else holds it; `PermissionDenied`; what opening fails with otherwise.
pub fn open(path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    let flags = OFlags::EXCL | OFlags::DIRECT;
    let direct = options.custom_flags(flags.bits().cast_signed()).open(path).map_err(told)?;
    if !direct.metadata()?.file_type().is_block_device() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "it is no block device"));
    }
    // The path may lead elsewhere by now.
    let again = format!("/proc/self/fd/{}", direct.as_raw_fd());
    let plain = options.custom_flags(0).open(again)?;
    let file = DirectFile::new(plain, direct);
    Ok(Arc::new(BlockDevice { file, used_bytes: AtomicU64::new(0) }))
}

/// The error in an operator's words.
fn told(error: io::Error) -> io::Error {
    let what = match error.kind() {
        ErrorKind::ResourceBusy => {
            "it is in use: mounted, part of a volume or an array, or the tier of a server, maybe of \
             this one"
        }
        ErrorKind::PermissionDenied => "the server may not read and write it",
        ErrorKind::ReadOnlyFilesystem => "it is read-only",
        _ => return error,
    };
    io::Error::new(error.kind(), format!("{what} ({error})"))
}

/// BLKDISCARD of linux/fs.h, `_IO(0x12, 119)`: two 64-bit numbers, where and how many bytes.
const BLKDISCARD: rustix::ioctl::Opcode = rustix::ioctl::opcode::none(0x12, 119);

/// Tells a device that these bytes are of no use any more. One that does not care is let be.
fn discard(device: &File, offset: u64, length: u64) -> io::Result<()> {
    // SAFETY: BLKDISCARD reads a pointer to two u64, which is what `Setter` of such an array hands
    // over, and writes nothing to memory of this process.
    let told = unsafe { ioctl(device, Setter::<BLKDISCARD, [u64; 2]>::new([offset, length])) };
    match told {
        Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl DiskFile for BlockDevice {
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.file.stands_at(path)
    }

    fn direct_place(&self, offset: u64) -> Option<(i32, u64)> {
        self.file.direct_place(offset)
    }

    /// By lseek(2): the inode of a device says 0.
    fn length(&self) -> io::Result<u64> {
        Ok(rustix::fs::seek(self.file.direct(), SeekFrom::End(0))?)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.used_bytes.fetch_max(offset + bytes.len() as u64, Ordering::Relaxed);
        self.file.write_at(offset, bytes)
    }

    /// Nobody writes behind `length` meanwhile.
    fn set_length(&self, length: u64) -> io::Result<()> {
        let used = self.used_bytes.load(Ordering::Relaxed);
        if length >= used {
            return Ok(());
        }
        discard(self.file.direct(), length, used - length)?;
        self.used_bytes.fetch_min(length, Ordering::Relaxed);
        Ok(())
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.used_bytes.fetch_max(offset + length, Ordering::Relaxed);
        self.file.allocate(offset, length)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;
    use base::Disk;

    /// What takes a device, and so root, is in `tests/tiers/device`.
    #[test]
    fn what_is_no_block_device_is_not_taken_for_one() {
        let path = std::env::temp_dir().join(format!("kiln-block-device-{}", std::process::id()));
        // Of an earlier run: as a rule none is there.
        let _ = RealDisk.remove(&path);
        let file = RealDisk.create_new(&path).expect("there is room");
        file.write_at(0, &[7; 100]).expect("there is room");
        assert!(!is_block_device(&path).expect("it is there"));
        assert!(!is_block_device(&std::env::temp_dir()).expect("it is there"));
        assert!(!is_block_device(Path::new("/dev/null")).expect("it is there"));
        assert!(open(&path).is_err() && open(Path::new("/dev/null")).is_err());
        let mut into = [0; 101];
        assert_eq!(file.read_at(0, &mut into).expect("it is there"), 100);
        assert!(into.starts_with(&[7; 100]), "it was not changed");
        RealDisk.remove(&path).expect("it is there");
        let missing = is_block_device(&path).expect_err("nothing is there");
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn what_could_not_be_discarded_is_discarded_the_next_time() {
        let path = std::env::temp_dir().join(format!("kiln-discard-{}", std::process::id()));
        // Of an earlier run: as a rule none is there.
        let _ = fs::remove_file(&path);
        let plain = File::create_new(&path).expect("there is room");
        let direct = plain.try_clone().expect("there are descriptors");
        let used_bytes = AtomicU64::new(8 << 10);
        let device = BlockDevice { file: DirectFile::new(plain, direct), used_bytes };
        // A file is not told what is of no use.
        for _ in 0..2 {
            assert!(device.set_length(4 << 10).is_err(), "it is not forgotten");
        }
        assert_eq!(device.used_bytes.load(Ordering::Relaxed), 8 << 10);
        fs::remove_file(&path).expect("it is there");
    }

    #[test]
    fn errors_say_what_they_come_of() {
        for (errno, expected) in [
            (Errno::BUSY, "it is in use: mounted, "),
            (Errno::ACCESS, "the server may not read and write it (Permission denied"),
            (Errno::PERM, "the server may not read and write it (Operation not permitted"),
            (Errno::ROFS, "it is read-only (Read-only"),
            (Errno::NXIO, "No such device"),
        ] {
            let error = io::Error::from(errno);
            let kind = error.kind();
            let said = told(error);
            assert!(said.to_string().starts_with(expected), "{said}");
            assert_eq!(said.kind(), kind);
        }
    }
}
