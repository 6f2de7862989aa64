//! A disk as one of its users sees it over a network: operations fail, end halfway, are done and
//! reported as failed, or are answered late; and when the user dies, nothing that it left running
//! does anything more.

use crate::disk::SimDisk;
use crate::random::Random;
use base::disk::{Disk, DiskEntry, DiskFile};
use std::any::Any;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What an operation that met a fault says.
pub const FAULT: &str = "a fault of the archive";

/// How much later an answer comes that comes late, in nanoseconds, at most.
const LATE_NANOS_MAX: u64 = 200_000_000;

/// How often something goes wrong, for all users of a disk.
#[derive(Default, Debug)]
pub struct DiskOdds {
    per_mille: AtomicU64,
    met: AtomicU64,
}

impl DiskOdds {
    /// So many of a thousand operations meet a fault from now on.
    pub fn set(&self, per_mille: u64) {
        self.per_mille.store(per_mille, Ordering::Relaxed);
    }

    /// Operations that met a fault.
    pub fn met(&self) -> u64 {
        self.met.load(Ordering::Relaxed)
    }
}

/// A user's disk. Clones are the same user's.
#[derive(Clone)]
pub struct FaultyDisk {
    disk: SimDisk,
    user: Arc<User>,
}

struct User {
    odds: Arc<DiskOdds>,
    random: Mutex<Random>,
    is_dead: AtomicBool,
    late_nanos: AtomicU64,
}

/// What becomes of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    /// Half of it is done.
    Cut,
    /// It is done, and reported as failed.
    Unanswered,
}

impl FaultyDisk {
    pub fn new(disk: &SimDisk, odds: &Arc<DiskOdds>, random: Random) -> Self {
        let user = User {
            odds: Arc::clone(odds),
            random: Mutex::new(random),
            is_dead: AtomicBool::new(false),
            late_nanos: AtomicU64::new(0),
        };
        Self { disk: disk.clone(), user: Arc::new(user) }
    }

    /// Its user is dead.
    pub fn kill(&self) {
        self.user.is_dead.store(true, Ordering::Relaxed);
    }

    /// For how long its user waited for answers since this was last asked, in nanoseconds.
    pub fn take_late_nanos(&self) -> u64 {
        self.user.late_nanos.swap(0, Ordering::Relaxed)
    }

    fn wrap(&self, file: Arc<dyn DiskFile>) -> Arc<dyn DiskFile> {
        Arc::new(FaultyFile { file, user: Arc::clone(&self.user) })
    }
}

impl User {
    fn fate(&self) -> io::Result<Fate> {
        if self.is_dead.load(Ordering::Relaxed) {
            return Err(io::Error::other("the process of this handle is dead"));
        }
        let per_mille = self.odds.per_mille.load(Ordering::Relaxed);
        if per_mille == 0 {
            return Ok(Fate::Done);
        }
        let mut random = self.random.lock().unwrap_or_else(PoisonError::into_inner);
        if random.within(0..1000) >= per_mille {
            return Ok(Fate::Done);
        }
        self.odds.met.fetch_add(1, Ordering::Relaxed);
        let fates = [Fate::Done, Fate::Refused, Fate::Refused, Fate::Cut, Fate::Unanswered];
        let fate = *random.choose(&fates);
        if fate == Fate::Done {
            let late = random.within(0..LATE_NANOS_MAX);
            self.late_nanos.fetch_add(late, Ordering::Relaxed);
        }
        Ok(fate)
    }

    /// What changes something.
    fn change<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        match self.fate()? {
            Fate::Done => work(),
            Fate::Refused | Fate::Cut => Err(fault()),
            Fate::Unanswered => {
                work()?;
                Err(fault())
            }
        }
    }

    fn read<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if self.fate()? == Fate::Done { work() } else { Err(fault()) }
    }
}

fn fault() -> io::Error {
    io::Error::other(FAULT)
}

impl Disk for FaultyDisk {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.user.change(|| self.disk.create_new(path)).map(|file| self.wrap(file))
    }

    fn create_nameless(&self, directory: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let created = self.user.change(|| self.disk.create_nameless(directory));
        created.map(|file| self.wrap(file))
    }

    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.user.read(|| self.disk.open_read(path)).map(|file| self.wrap(file))
    }

    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.user.read(|| self.disk.open_write(path)).map(|file| self.wrap(file))
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.user.read(|| self.disk.exists(path))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        self.user.read(|| self.disk.list(directory))
    }

    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.user.change(|| self.disk.create_directory(directory))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.user.change(|| self.disk.rename(from, to))
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.user.change(|| self.disk.remove(path))
    }

    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        self.user.change(|| self.disk.remove_directory(directory))
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.user.change(|| self.disk.sync_directory(directory))
    }

    /// Never refused for another reason than a disk's own: whoever is told of a fault here takes it
    /// for a file system without locks.
    fn lock(&self, path: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        if self.user.is_dead.load(Ordering::Relaxed) {
            return Err(io::Error::other("the process of this handle is dead"));
        }
        self.disk.lock(path)
    }
}

struct FaultyFile {
    file: Arc<dyn DiskFile>,
    user: Arc<User>,
}

impl DiskFile for FaultyFile {
    fn length(&self) -> io::Result<u64> {
        self.user.read(|| self.file.length())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.user.read(|| self.file.read_at(offset, into))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        match self.user.fate()? {
            Fate::Done => self.file.write_at(offset, bytes),
            Fate::Refused => Err(fault()),
            Fate::Cut => {
                self.file.write_at(offset, &bytes[..bytes.len() / 2])?;
                Err(fault())
            }
            Fate::Unanswered => {
                self.file.write_at(offset, bytes)?;
                Err(fault())
            }
        }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.user.change(|| self.file.set_length(length))
    }

    fn allocate(&self, offset: u64, length: u64) -> io::Result<()> {
        self.user.change(|| self.file.allocate(offset, length))
    }

    fn stands_at(&self, path: &Path) -> io::Result<bool> {
        self.user.read(|| self.file.stands_at(path))
    }

    fn release_cache(&self) {
        self.file.release_cache();
    }

    fn sync_data(&self) -> io::Result<()> {
        self.user.change(|| self.file.sync_data())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_meet_every_fault_and_the_dead_do_nothing() {
        let (disk, odds) = (SimDisk::new(1), Arc::new(DiskOdds::default()));
        let user = FaultyDisk::new(&disk, &odds, Random::from_seed(1));
        let (mut refused, mut done, mut halves) = (0, 0, 0);
        odds.set(900);
        for number in 0..200 {
            let name = format!("/{number}");
            let path = Path::new(&name);
            let created = user.create_new(path);
            let exists = disk.exists(path).expect("the disk is whole");
            match created {
                Ok(file) => {
                    assert!(exists);
                    let written = file.write_at(0, b"abcd");
                    let length = disk.open_read(path).and_then(|it| it.length());
                    let length = length.expect("the disk is whole");
                    halves += u32::from(written.is_err() && length == 2);
                    assert!(written.is_err() || length == 4);
                }
                Err(error) => {
                    assert_eq!(error.to_string(), FAULT);
                    refused += u32::from(!exists);
                    done += u32::from(exists);
                }
            }
        }
        assert!(refused > 0 && done > 0 && halves > 0, "{refused} {done} {halves}");
        assert!(user.take_late_nanos() > 0 && user.take_late_nanos() == 0);
        odds.set(0);
        assert!(user.create_new(Path::new("/alive")).is_ok());
        user.kill();
        assert!(user.create_new(Path::new("/dead")).is_err());
        assert!(!disk.exists(Path::new("/dead")).expect("the disk is whole"));
    }
}
