//! Files as the log and the snapshots need them, and the queue that runs disk work off the loop.
//!
//! Blocking work is written as plain code against [`Disk`] and handed to a [`DiskQueue`] as a job:
//! `world` runs it on a thread, `sim` runs it at a simulated instant against a disk that keeps
//! durable bytes apart from live ones.

use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The unit of offsets and lengths past the page cache: a multiple of every usual device's sector.
pub const DIRECT_BLOCK_BYTES: usize = 4096;

/// Empties `buffer` for up to `capacity` bytes that begin at a multiple of [`DIRECT_BLOCK_BYTES`]
/// in memory, as a device wants them; returns where they begin. More than that, and it may move.
pub fn block_buffer(buffer: &mut Vec<u8>, capacity: usize) -> usize {
    buffer.clear();
    buffer.reserve(capacity + DIRECT_BLOCK_BYTES);
    let start = buffer.as_ptr().align_offset(DIRECT_BLOCK_BYTES).min(DIRECT_BLOCK_BYTES);
    buffer.resize(start, 0);
    start
}

/// Beginning of the names of files that lose them at once ([`Disk::create_nameless`]).
const NAMELESS_PREFIX: &str = ".kiln-tier-";

/// How many such names are tried. Each one that is taken is of a process that was killed between
/// two calls, or of one that is between them now.
const NAMELESS_ATTEMPTS_MAX: u32 = 1000;

/// One directory entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DiskEntry {
    /// The name within its directory.
    pub name: String,
    /// Length in bytes; 0 for a directory.
    pub length: u64,
    pub is_directory: bool,
}

/// A file system. Every method blocks. Nothing is durable before the call that makes it so:
/// [`DiskFile::sync_data`] for a file's bytes, [`Disk::sync_directory`] for names.
pub trait Disk: Send + Sync {
    /// Creates a file for reading and writing.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken; creation is exclusive.
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// Opens an existing file for reading and writing.
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>>;
    /// As [`Self::create_new`], for a file that is written and not read for long: past the page
    /// cache where the file system can, so that neither memory nor the log's syncs suffer from it.
    /// Only writes of whole multiples of [`DIRECT_BLOCK_BYTES`], at such an offset, take that way;
    /// any other is right, but slow. Those of a [`block_buffer`] are not copied before. Likewise
    /// reads: those of whole blocks into one are not copied, and wait for no other read.
    ///
    /// # Errors
    /// `AlreadyExists` if the name is taken.
    fn create_direct(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.create_new(path)
    }
    /// As [`Self::open_read`], past the page cache: what is read is what the device holds.
    fn open_direct(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.open_read(path)
    }
    /// Creates a file in `directory` that has no name, otherwise as [`Self::create_direct`] does.
    /// It is gone with its last handle, however the process ends. Unless the disk knows a better
    /// way, it has a name for a moment ([`create_removed`]).
    ///
    /// # Errors
    /// The disk's; `NotFound` if there is no such directory.
    fn create_nameless(&self, directory: &Path) -> io::Result<Arc<dyn DiskFile>> {
        create_removed(self, directory)
    }
    /// Whether a name exists. One cheap look-up: a log writer asks before it counts each commit.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// The entries of a directory, sorted by name.
    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>>;
    /// Creates a directory and its parents; succeeds if it exists. Their names are not durable yet:
    /// see [`create_directory_durably`].
    fn create_directory(&self, directory: &Path) -> io::Result<()>;
    /// Renames a file, replacing the target atomically.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file. Handles that are open go on working on the nameless file.
    ///
    /// # Errors
    /// `NotFound` if there is no such file.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    ///
    /// # Errors
    /// `DirectoryNotEmpty` if something is in it, `NotFound` if there is no such directory.
    fn remove_directory(&self, directory: &Path) -> io::Result<()>;
    /// Makes the names of a directory durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
    /// Takes the exclusive lock of an existing file until the handle is dropped or the process
    /// dies.
    ///
    /// # Errors
    /// `WouldBlock` if another holder has it, `NotFound` if there is no such file.
    fn lock(&self, path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>>;
}

/// Creates a file in `directory` as [`Disk::create_direct`] does, and removes its name. A process
/// that is killed between the two leaves an empty file.
///
/// # Errors
/// The disk's; `AlreadyExists` if many names are taken.
pub fn create_removed<D: Disk + ?Sized>(
    disk: &D,
    directory: &Path,
) -> io::Result<Arc<dyn DiskFile>> {
    for number in 0..NAMELESS_ATTEMPTS_MAX {
        let path = directory.join(format!("{NAMELESS_PREFIX}{number}"));
        match disk.create_direct(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => {
                let file = created?;
                disk.remove(&path)?;
                return Ok(file);
            }
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Creates a directory and its parents, each with a durable name. The name of the deepest one that
/// is there already is made durable as well: who created it may have died before that.
///
/// # Errors
/// The disk's. That the directory above those created may not be opened is none.
pub fn create_directory_durably(disk: &dyn Disk, directory: &Path) -> io::Result<()> {
    let mut missing = Vec::new();
    for level in directory.ancestors().filter(|level| !level.as_os_str().is_empty()) {
        if disk.exists(level)? {
            match sync_name(disk, level) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                other => other?,
            }
            break;
        }
        missing.push(level);
    }
    for level in missing.into_iter().rev() {
        disk.create_directory(level)?;
        sync_name(disk, level)?;
    }
    Ok(())
}

fn sync_name(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match path.parent() {
        None => Ok(()),
        Some(parent) if parent.as_os_str().is_empty() => disk.sync_directory(Path::new(".")),
        Some(parent) => disk.sync_directory(parent),
    }
}

/// An open file. Methods may be called from several threads.
pub trait DiskFile: Send + Sync {
    /// Current length in bytes.
    fn length(&self) -> io::Result<u64>;
    /// Reads at `offset` until `into` is full or the file ends; the count of bytes read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
    /// Writes all of `bytes` at `offset`.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Cuts or extends (with zeroes) the file.
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Reserves space and fills it with zeroes, so that later writes within `length` change no
    /// metadata and cannot run out of space.
    fn allocate(&self, offset: u64, length: u64) -> io::Result<()>;
    /// Whether this name still stands for this file: it was not removed, moved away or replaced.
    /// Cheap, and without a look at the file's times: a log writer asks before it counts each
    /// commit (see `RealDisk::exists` of `world`).
    fn stands_at(&self, path: &Path) -> io::Result<bool>;
    /// Gives the memory back in which the system keeps what was read of it, by whomever: for who
    /// reads a long file once. A hint, which changes nothing else.
    fn release_cache(&self) {}
    /// Of a file of this machine that can be read past the page cache, by whole blocks and into
    /// aligned memory: the number of a descriptor, which stays open as long as the file, and what
    /// `offset` is there.
    fn direct_place(&self, _offset: u64) -> Option<(i32, u64)> {
        None
    }
    /// Makes the bytes, and the length needed to read them, durable (fdatasync). A failure is
    /// final: the caller must not try again and count on the bytes.
    fn sync_data(&self) -> io::Result<()>;
}

/// Names one submitted job until its outcome is polled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DiskTicket(pub u64);

/// What a job returns: any value its submitter knows how to downcast.
pub type DiskOutcome = Box<dyn Any + Send>;

/// Blocking work, run once, off the loop.
pub type DiskJob = Box<dyn FnOnce() -> DiskOutcome + Send>;

/// End of a read, which makes an outcome of its bytes: those that are there, fewer than were asked
/// for at the end of the file.
pub type DiskReadEnd = Box<dyn FnOnce(io::Result<&mut [u8]>) -> DiskOutcome + Send>;

/// A read, and what follows it.
pub struct DiskRead {
    pub file: Arc<dyn DiskFile>,
    /// In bytes; as is the length.
    pub offset: u64,
    pub length: usize,
    /// Runs where the read ends, off the loop. It should not take long: others may wait for it.
    pub end: DiskReadEnd,
}

impl DiskRead {
    /// Reads here and now.
    pub fn run(self) -> DiskOutcome {
        let mut buffer = Vec::new();
        let start = block_buffer(&mut buffer, self.length);
        buffer.resize(start + self.length, 0);
        let bytes = &mut buffer[start..];
        let count = self.file.read_at(self.offset, bytes);
        (self.end)(count.map(|count| &mut bytes[..count]))
    }
}

/// Runs jobs in submission order, one at a time, off the loop. Submitters bound how much they
/// submit; the queue itself refuses nothing.
///
/// A pool is a queue that runs several jobs at once, and their outcomes come as they end. A
/// submitter whose jobs do not depend on each other asks for one by name; every other counts on
/// the order.
pub trait DiskQueue: Send {
    /// Submits a job. It may be kept until the next call of this queue, and the loop is woken for
    /// that then.
    fn submit(&mut self, job: DiskJob) -> DiskTicket;
    /// Submits a read. A queue may have the system read, where that costs less than a thread that
    /// waits; otherwise this is a job as any other. It may be kept back until
    /// [`Self::begin_reads`], so that reads begin together.
    fn submit_read(&mut self, read: DiskRead) -> DiskTicket {
        self.submit(Box::new(move || read.run()))
    }
    /// Begins what was kept back. So does whoever polls or drains.
    fn begin_reads(&mut self) {}
    /// Appends the outcomes of jobs that ended since the last poll, in the order in which they
    /// ended. Some may be left for the next poll, and the loop is woken for that then.
    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>);
    /// Lets the loop sleep on until so many outcomes lie there, where the first one would wake it.
    /// It has another reason to wake up before long. Queues need not follow this.
    fn wake_from(&mut self, _outcomes: usize) {}
    /// Whether the queue has the system do some of the submitted reads.
    fn has_ring(&self) -> bool {
        false
    }
    /// Blocks until every submitted job has ended (used at start and shutdown, never in the loop).
    fn drain(&mut self);
}
