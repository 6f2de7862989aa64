//! Gives the space of removed files back in small steps, on a thread of its own.
//!
//! A file system frees all blocks of a removed file at once, and where it is mounted with `discard`
//! it tells the device of each: 100 ms for 400 MB, during which no sync of the log comes back
//! (docs/measurements/log-write.md). So a large file loses its name at once, and its bytes piece by
//! piece, from the end. Only if nobody else can see them: not while it has another name, nor while
//! another handle is open on it, which a lease tells.

use libc::c_int;
use rustix::fs::{OFlags, fstat};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

/// Bytes given back in one step: 1 ms of discarding here.
const STEP_BYTES: u64 = 4 << 20;

/// Pause between two steps, so that two thirds of the device's time are left to others.
const STEP_PAUSE: Duration = Duration::from_millis(2);

/// Files waiting. When they pile up, the remover pays for its own: each holds a handle, and its
/// space. Snapshots and trimming remove some tens at a time.
const WAITING_MAX: usize = 256;

/// fcntl(2): which signal tells that somebody wants a leased file. Not among libc's constants.
const F_SETSIG: c_int = 10;

/// What became of a removed file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Reclaimed {
    InSteps,
    /// It has another name, or somebody has it open: whoever lets go of it last frees it.
    Shared,
}

/// Removes the name of `path`. Its space comes back soon, as gently as can be.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    // A file that cannot be opened for writing can still be removed; so can what is none, and
    // opening a pipe would wait for another process.
    let nonblock = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(nonblock).open(path).ok();
    std::fs::remove_file(path)?;
    // What is not worth the thread's time is closed before this returns. NFS keeps a removed file
    // under another name while it is open, and its directory cannot be removed meanwhile.
    let Some(file) = file.filter(is_worth_steps) else { return Ok(()) };
    let Some(waiting) = queue() else { return Ok(()) };
    match waiting.try_send(file) {
        // The file is closed here, which frees it at once.
        Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => Ok(()),
    }
}

fn is_worth_steps(file: &File) -> bool {
    fstat(file).is_ok_and(|data| data.st_nlink == 0 && data.st_size > STEP_BYTES.cast_signed())
}

/// The thread's queue; none if the system had no thread to give.
fn queue() -> Option<&'static SyncSender<File>> {
    static QUEUE: OnceLock<Option<SyncSender<File>>> = OnceLock::new();
    let start = || {
        let (waiting, taken) = sync_channel::<File>(WAITING_MAX);
        let work = move || {
            crate::disk_queue::give_way();
            for file in taken {
                // What is not given back in steps is given back when the handle closes.
                let _ = give_back(&file);
            }
        };
        thread::Builder::new().name("reclaim".to_owned()).spawn(work).ok().map(|_| waiting)
    };
    QUEUE.get_or_init(start).as_ref()
}

#[expect(clippy::disallowed_methods, reason = "the pace of a thread for which nobody waits")]
fn give_back(file: &File) -> io::Result<Reclaimed> {
    if fstat(file)?.st_nlink > 0 || !is_sole_handle(file) {
        return Ok(Reclaimed::Shared);
    }
    let mut left = file.metadata()?.len();
    while left > 0 {
        left = left.saturating_sub(STEP_BYTES);
        file.set_len(left)?;
        thread::sleep(STEP_PAUSE);
    }
    Ok(Reclaimed::InSteps)
}

/// Whether no other handle is open on a file that has no name: nor can there be one later, but
/// through /proc. Whoever opens it there while the lease is held has a signal sent to this process,
/// and the usual one would end it: so it is one that is ignored, and the lease is let go at once.
fn is_sole_handle(file: &File) -> bool {
    // SAFETY: these commands take an open descriptor, which `file` keeps open, and an integer; they
    // touch no memory. Their keeper is this function.
    let ask = |command: c_int, argument: c_int| unsafe {
        libc::fcntl(file.as_raw_fd(), command, argument) == 0
    };
    let is_sole = ask(F_SETSIG, libc::SIGURG) && ask(libc::F_SETLEASE, libc::F_WRLCK);
    is_sole && ask(libc::F_SETLEASE, libc::F_UNLCK)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;

    const BYTES: u64 = 2 * STEP_BYTES + 1;

    fn directory(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("kiln-reclaim-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn removed(path: &Path) -> File {
        let file = OpenOptions::new().write(true).create_new(true).open(path).unwrap();
        file.set_len(BYTES).unwrap();
        file
    }

    #[test]
    fn a_removed_file_is_given_back_in_steps() {
        let directory = directory("steps");
        let file = removed(&directory.join("a"));
        fs::remove_file(directory.join("a")).unwrap();
        assert_eq!(give_back(&file).unwrap(), Reclaimed::InSteps);
        assert_eq!(file.metadata().unwrap().len(), 0);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn an_open_handle_goes_on_reading_a_removed_file() {
        let directory = directory("open");
        let path = directory.join("a");
        drop(removed(&path));
        let reader = OpenOptions::new().read(true).open(&path).unwrap();
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(give_back(&file).unwrap(), Reclaimed::Shared);
        assert_eq!(reader.metadata().unwrap().len(), BYTES);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn another_name_keeps_the_bytes() {
        let directory = directory("link");
        let (path, other) = (directory.join("a"), directory.join("b"));
        let file = removed(&path);
        fs::hard_link(&path, &other).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(give_back(&file).unwrap(), Reclaimed::Shared);
        assert_eq!(fs::metadata(&other).unwrap().len(), BYTES);
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn nobody_is_hindered_from_looking_into_what_is_given_back() {
        let directory = directory("proc");
        let file = removed(&directory.join("a"));
        fs::remove_file(directory.join("a")).unwrap();
        assert!(is_sole_handle(&file));
        // With the lease still held, this would wait, and end the process by SIGIO.
        let through = format!("/proc/self/fd/{}", file.as_raw_fd());
        let reader = OpenOptions::new().read(true).open(through).unwrap();
        assert!(!is_sole_handle(&file));
        drop(reader);
        assert!(is_sole_handle(&file));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn only_a_large_file_without_a_name_is_kept_open() {
        let directory = directory("kept");
        let (path, other) = (directory.join("a"), directory.join("b"));
        let file = removed(&path);
        fs::hard_link(&path, &other).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(!is_worth_steps(&file));
        fs::remove_file(&other).unwrap();
        assert!(is_worth_steps(&file));
        file.set_len(STEP_BYTES).unwrap();
        assert!(!is_worth_steps(&file));
        fs::remove_dir_all(directory).unwrap();
    }

    #[test]
    fn the_name_is_gone_at_once() {
        let directory = directory("name");
        let path = directory.join("a");
        drop(removed(&path));
        remove(&path).unwrap();
        assert!(!path.exists());
        assert_eq!(remove(&path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::remove_dir_all(directory).unwrap();
    }
}
