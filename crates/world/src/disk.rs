//! The machine's file system as `base::Disk`.
//!
//! Failures keep their kind: callers tell a full disk (`StorageFull`, which passes) from a failing
//! one. A quota that is reached counts as a full disk.

use crate::{direct, reclaim};
use base::disk::{Disk, DiskEntry, DiskFile, create_removed};
use rustix::fs::{Access, Advice, AtFlags, CWD, FallocateFlags, FlockOperation, OFlags};
use rustix::fs::{StatxFlags, statx};
use rustix::io::Errno;
use std::any::Any;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, FileTypeExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// Bytes of zeroes written per call while space is reserved.
const ZEROES_BYTES: usize = 1 << 20;

/// The file system of this machine.
#[derive(Clone, Copy, Default, Debug)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        open(OpenOptions::new().read(true).write(true).create_new(true), path)
    }

    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        direct::open(OpenOptions::new().read(true).write(true).create_new(true), path)
    }

    /// By O_TMPFILE, where that works.
    fn create_nameless(&self, directory: &Path) -> io::Result<Arc<dyn DiskFile>> {
        match direct::open_nameless(directory) {
            Ok(file) => Ok(Arc::new(file)),
            // If it is for another reason, this fails of that too.
            Err(_) => create_removed(self, directory),
        }
    }

    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        direct::open(OpenOptions::new().read(true), path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        open(OpenOptions::new().read(true), path)
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        open(OpenOptions::new().read(true).write(true), path)
    }

    /// By access(2), not stat(2): a look at a file's times makes the kernel give its next write a
    /// fresh one, and that dirties the inode. A log that looks at its claim at each commit and then
    /// writes its mark there paid one more disk write for it (docs/measurements/log-write.md).
    /// It judges by the real user id, which is the effective one unless the binary is set-uid.
    fn exists(&self, path: &Path) -> io::Result<bool> {
        match rustix::fs::access(path, Access::EXISTS) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            // An entry removed while the directory is read is as good as gone before.
            let metadata = match entry.metadata() {
                Ok(metadata) => metadata,
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                Err(error) => return Err(error),
            };
            let is_directory = metadata.is_dir();
            entries.push(DiskEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                length: if is_directory { 0 } else { metadata.len() },
                is_directory,
            });
        }
        entries.sort();
        Ok(entries)
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        fs::create_dir_all(directory).map_err(full)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to).map_err(full)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        reclaim::remove(path)
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        fs::remove_dir(directory)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        OpenOptions::new().read(true).open(directory)?.sync_all()
    }

    fn lock(&self, path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        Ok(Arc::new(file))
    }
}

pub(crate) struct RealFile(pub(crate) File);

impl RealFile {
    /// Reserves space: fails early on a full disk, and leaves one extent. File systems that cannot
    /// do it only write.
    pub(crate) fn reserve(&self, offset: u64, length: u64) -> io::Result<()> {
        match rustix::fs::fallocate(&self.0, FallocateFlags::empty(), offset, length) {
            Ok(()) | Err(Errno::OPNOTSUPP) => Ok(()),
            Err(error) => Err(full(error.into())),
        }
    }
}

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            match self.0.read_at(&mut into[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset).map_err(full)
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length).map_err(full)
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.reserve(offset, length)?;
        // Zeroes are written, not only reserved: a write into a reserved but unwritten extent
        // changes metadata, and its fdatasync then waits for the file system's journal.
        let zeroes = vec![0; ZEROES_BYTES];
        let end = offset + length;
        let mut at = offset;
        while at < end {
            let count = (end - at).min(ZEROES_BYTES as u64) as usize;
            self.write_at(at, &zeroes[..count])?;
            at += count as u64;
        }
        Ok(())
    }

    /// By statx(2) that asks for the inode's number only. An open file keeps its number.
    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        let named = match statx(CWD, path, AtFlags::STATX_DONT_SYNC, StatxFlags::INO) {
            Ok(named) => named,
            Err(Errno::NOENT) => return Ok(false),
            // An old kernel or sandbox without statx tells no more than whether the name is there.
            Err(Errno::NOSYS | Errno::PERM) => return RealDisk.exists(path),
            Err(error) => return Err(error.into()),
        };
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let own = statx(&self.0, c"", flags, StatxFlags::INO)?;
        let place = |it: &rustix::fs::Statx| (it.stx_dev_major, it.stx_dev_minor, it.stx_ino);
        Ok(place(&named) == place(&own))
    }

    /// By posix_fadvise(2), which drops what is on the device already.
    fn release_cache(&self) {
        let _ = rustix::fs::fadvise(&self.0, 0, None, Advice::DontNeed);
    }

    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

fn open(options: &mut OpenOptions, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
    Ok(Arc::new(RealFile(open_file(options, path, OFlags::empty())?)))
}

/// Opens a file. A pipe would keep whoever opens it waiting for another process, for ever, so
/// nothing is waited for, which makes no difference to a file; and what is none is refused.
/// `/dev/null` is as good as an empty one.
pub(crate) fn open_file(options: &mut OpenOptions, path: &Path, flags: OFlags) -> io::Result<File> {
    let flags = flags | OFlags::NONBLOCK;
    let file = options.custom_flags(flags.bits().cast_signed()).open(path).map_err(full)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() || kind.is_char_device() {
        return Ok(file);
    }
    Err(io::Error::new(ErrorKind::InvalidData, "it is no regular file"))
}

/// Takes a reached quota for a full disk.
pub(crate) fn full(error: io::Error) -> io::Error {
    if error.kind() == ErrorKind::QuotaExceeded {
        return io::Error::new(ErrorKind::StorageFull, error);
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{FileType, Mode};
    use rustix::io::ReadWriteFlags;

    fn directory(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("kiln-disk-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        RealDisk.create_directory(&path).unwrap();
        path
    }

    #[test]
    fn a_name_stands_for_the_file_that_it_was_given_to() {
        let path = directory("name");
        let (first, other) = (path.join("first"), path.join("other"));
        let file = RealDisk.create_new(&first).unwrap();
        assert!(file.stands_at(&first).unwrap());
        fs::rename(&first, &other).unwrap();
        assert!(!file.stands_at(&first).unwrap(), "it was moved away");
        assert!(file.stands_at(&other).unwrap());
        fs::copy(&other, &first).unwrap();
        assert!(!file.stands_at(&first).unwrap(), "a copy has its name");
        RealDisk.remove(&other).unwrap();
        assert!(!file.stands_at(&other).unwrap());
    }

    #[test]
    fn creation_is_exclusive_and_lengths_are_told() {
        let path = directory("create");
        let file = RealDisk.create_new(&path.join("a")).unwrap();
        file.allocate(0, 3_000_000).unwrap();
        file.write_at(10, b"hello").unwrap();
        file.sync_data().unwrap();
        let taken = RealDisk.create_new(&path.join("a")).err().unwrap();
        assert_eq!(taken.kind(), ErrorKind::AlreadyExists);
        let entries = RealDisk.list(&path).unwrap();
        assert_eq!(entries[0].length, 3_000_000);
        let mut into = [0; 7];
        assert_eq!(file.read_at(9, &mut into).unwrap(), 7);
        assert_eq!(&into, b"\0hello\0");
        assert_eq!(file.read_at(2_999_999, &mut into).unwrap(), 1);
        RealDisk.remove(&path.join("a")).unwrap();
        assert!(!RealDisk.exists(&path.join("a")).unwrap());
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_is_no_file_is_refused_at_once() {
        let path = directory("kinds");
        let (pipe, socket) = (path.join("pipe"), path.join("socket"));
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .expect("a pipe can be made");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("it is free");
        for there in [&pipe, &socket, &path] {
            assert!(RealDisk.open_read(there).is_err(), "{}", there.display());
            assert!(RealDisk.open_write(there).is_err(), "{}", there.display());
            assert!(RealDisk.open_direct(there).is_err(), "{}", there.display());
        }
        let why = RealDisk.open_read(&pipe).err().expect("it is no file");
        assert_eq!(
            (why.kind(), &*why.to_string()),
            (ErrorKind::InvalidData, "it is no regular file")
        );
        RealDisk.remove(&pipe).expect("it can be removed");
        assert!(!RealDisk.exists(&pipe).expect("it can be asked about"), "it was removed");
        assert_eq!(
            RealDisk
                .open_read(Path::new("/dev/null"))
                .expect("it is let")
                .length()
                .expect("it has one"),
            0
        );
        fs::remove_dir_all(path).unwrap();
    }

    #[test]
    fn what_was_read_is_not_kept_in_memory_once_it_is_forgotten() {
        let path = directory("forget");
        let name = path.join("long");
        let file = RealDisk.create_new(&name).expect("nobody has the name");
        file.write_at(0, &[7; 1 << 20]).expect("there is space");
        file.sync_data().expect("the disk is whole");
        let same = open_file(OpenOptions::new().read(true), &name, OFlags::empty());
        let same = same.expect("it is there");
        let is_kept = || {
            let mut byte = [0];
            let mut into = [io::IoSliceMut::new(&mut byte)];
            rustix::io::preadv2(&same, &mut into, 500_000, ReadWriteFlags::NOWAIT).is_ok()
        };
        // A file system that is in memory keeps it, and not every one can be asked.
        const TMPFS: u64 = 0x0102_1994;
        let system = rustix::fs::fstatfs(&same).expect("it can be asked about");
        if is_kept() && system.f_type as u64 != TMPFS {
            file.release_cache();
            assert!(!is_kept());
        }
        let mut byte = [0];
        assert_eq!(file.read_at(500_000, &mut byte).expect("it can be read"), 1);
        assert_eq!(byte, [7]);
        fs::remove_dir_all(path).expect("it is there");
    }

    #[test]
    fn a_lock_has_one_holder_until_it_is_dropped() {
        let path = directory("lock");
        let file = path.join("l");
        assert_eq!(RealDisk.lock(&file).err().unwrap().kind(), ErrorKind::NotFound);
        RealDisk.create_new(&file).unwrap();
        let held = RealDisk.lock(&file).unwrap();
        assert_eq!(RealDisk.lock(&file).err().unwrap().kind(), ErrorKind::WouldBlock);
        drop(held);
        RealDisk.lock(&file).unwrap();
        fs::remove_dir_all(path).unwrap();
    }
}
