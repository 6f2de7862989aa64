//! The claim in a directory whose file system has no locks.

use super::world::STORE;
use archive::{Archive, DirectoryArchive};
use base::Disk;
use base::disk::{DiskEntry, DiskFile};
use sim::disk::SimDisk;
use std::any::Any;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What is done right before the call of this number that makes or renames a file.
type Hook = (u32, Box<dyn FnOnce() + Send>);

/// A disk that knows no locks, and lets others act between two of its calls.
#[derive(Clone)]
struct Lockless {
    disk: SimDisk,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl Lockless {
    fn call(&self) {
        let mut hook = self.hook.lock().expect("no test panics here");
        let is_due = hook.as_mut().is_some_and(|(left, _)| {
            *left -= 1;
            *left == 0
        });
        let work = if is_due { hook.take() } else { None };
        drop(hook);
        if let Some((_, work)) = work {
            work();
        }
    }
}

impl Disk for Lockless {
    fn create_new(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.call();
        self.disk.create_new(path)
    }
    fn open_read(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open_read(path)
    }
    fn open_write(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.disk.open_write(path)
    }
    fn exists(&self, path: &Path) -> io::Result<bool> {
        self.disk.exists(path)
    }
    fn list(&self, directory: &Path) -> io::Result<Vec<DiskEntry>> {
        self.disk.list(directory)
    }
    fn create_directory(&self, directory: &Path) -> io::Result<()> {
        self.disk.create_directory(directory)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call();
        self.disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        self.disk.remove(path)
    }
    fn remove_directory(&self, directory: &Path) -> io::Result<()> {
        self.disk.remove_directory(directory)
    }
    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        self.disk.sync_directory(directory)
    }
    fn lock(&self, _: &Path) -> io::Result<Arc<dyn Any + Send + Sync>> {
        Err(ErrorKind::Unsupported.into())
    }
}

#[test]
fn of_two_that_say_something_at_once_one_keeps_the_claim_and_neither_fails() {
    // Before its file is made, and before that gets its name.
    for at in 1..=2 {
        let (disk, hook) = (SimDisk::new(1), Arc::default());
        let lockless = Lockless { disk: disk.clone(), hook: Arc::clone(&hook) };
        let open = |disk: &Lockless| {
            let archive = DirectoryArchive::open(Arc::new(disk.clone()), Path::new(STORE));
            archive.expect("the disk is whole")
        };
        let (first, second) = (open(&lockless), open(&lockless));
        let mut one = first.claim(b"one").expect("it can be asked").expect("nobody has it");
        let two = second.claim(b"two").expect("it can be asked");
        let mut two = two.expect("nothing tells it apart from one that is free");
        let renewed = Arc::new(Mutex::new(None));
        let told = Arc::clone(&renewed);
        let work = Box::new(move || {
            let outcome = two.renew(b"two, further").expect("it is no error");
            *told.lock().expect("no test panics here") = Some(outcome);
        });
        *hook.lock().expect("no test panics here") = Some((at, work));
        let keeps = one.renew(b"one, further").expect("it is no error");
        let other = renewed.lock().expect("no test panics here").expect("it was in between");
        assert!(keeps || other, "call {at}: nobody is left");
        let said = first.claimed().expect("it can be asked").expect("somebody has it");
        let expected: &[u8] = if keeps { b"one, further" } else { b"two, further" };
        assert_eq!(said, expected, "call {at}");
    }
}
