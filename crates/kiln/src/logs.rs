//! Opens transaction logs: for a server the one that `transaction-log` names, for a tool any.

use crate::Broken;
use base::Incarnation;
use base::driver::Waker;
use config::settings::{LogPlace, NodeSettings};
use shard::loading::{FileLogOpener, KnownLog, OpenLog};
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::{Arc, mpsc};
use std::time::Duration;
use txlog::file::{FileOptions, Queues};
use txlog::reader::Start;
use txlog::remote::RemoteLog;
use txlog::{Readable, TransactionLog};
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};

/// Opens it, or begins it. Blocks. With `takes_free_log` one that nobody writes is taken at once,
/// where that can be told.
///
/// # Errors
/// What the operator must correct, or wait for.
pub fn open(
    settings: &NodeSettings,
    known: &KnownLog,
    waker: Waker,
    entropy: u64,
    takes_free_log: bool,
    broken: Option<Broken>,
) -> Result<OpenLog, Box<dyn Error>> {
    match &settings.transaction_log {
        LogPlace::Folder(folder) => open_folder(folder, takes_free_log, known, waker, entropy),
        LogPlace::Url(url) => open_service(url, waker, entropy, broken),
    }
}

fn open_folder(
    folder: &Path,
    may_write: bool,
    known: &KnownLog,
    waker: Waker,
    entropy: u64,
) -> Result<OpenLog, Box<dyn Error>> {
    let opener = FileLogOpener {
        disk: Arc::new(RealDisk),
        clock: Arc::new(RealClock),
        queues: queues(waker)?,
        directory: folder.to_owned(),
        options: FileOptions { may_write, ..FileOptions::new(entropy) },
    };
    opener.open(known)
}

fn queues(waker: Waker) -> Result<Queues, Box<dyn Error>> {
    Ok(Queues {
        commits: Box::new(ThreadDiskQueue::start("log", Urgency::Prompt, waker.clone())?),
        background: Box::new(ThreadDiskQueue::start("log-background", Urgency::Prompt, waker)?),
    })
}

/// A log that other machines keep. It never says that its writer is dead: the lease decides. One
/// that is not the log of the snapshots is refused by the loading.
fn open_service(
    url: &str,
    waker: Waker,
    entropy: u64,
    broken: Option<Broken>,
) -> Result<OpenLog, Box<dyn Error>> {
    let clock = Arc::new(RealClock);
    let rule = match broken {
        Some(Broken::Tail) => Some(services::Broken::TrustsTheTail),
        Some(Broken::Floor) => Some(services::Broken::TrustsAll),
        _ => None,
    };
    let store = match rule {
        Some(rule) => services::open_broken(url, clock, waker, entropy, rule)?,
        None => services::open(url, clock, waker, entropy)?,
    };
    let incarnation = store.incarnation();
    let log = RemoteLog::new(store, Arc::new(RealClock));
    Ok(OpenLog { handle: Box::new(log), incarnation, is_free: false })
}

/// How long a log that says nothing is left alone. A guess: its waker comes before, if it works.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// How a tool waits for its log.
pub struct Sleep(mpsc::Receiver<()>);

impl Sleep {
    /// And what ends it early.
    pub fn new() -> (Self, Waker) {
        let (wake, woken) = mpsc::sync_channel(1);
        // One call that waits is enough, and nobody waits any more at the end.
        let waker = Waker(Arc::new(move || wake.try_send(()).unwrap_or_default()));
        (Self(woken), waker)
    }

    /// Waits until the log has something to say, or until it is to be asked again.
    pub fn wait(&self, nanos: Option<u64>) {
        let wait = nanos.map_or(WAIT_MAX, Duration::from_nanos).min(WAIT_MAX);
        // Woken or not, the log is asked again.
        let _ = self.0.recv_timeout(wait);
    }
}

/// A log that is read as it grows.
pub struct LogToFollow {
    pub log: Box<dyn TransactionLog>,
    pub incarnation: Incarnation,
}

/// Opens the log at a URL, or in a directory, to follow it beside its servers, as one that never
/// leads. Nothing is begun, claimed or written, and nobody is told. Blocks.
///
/// # Errors
/// As [`open_to_read`]; a directory's log is damaged.
pub fn open_to_follow(name: &str, waker: Waker) -> Result<LogToFollow, Box<dyn Error>> {
    if is_url(name) {
        let (log, incarnation) = open_remote(name, waker)?;
        return Ok(LogToFollow { log: Box::new(log), incarnation });
    }
    let opener = FileLogOpener {
        disk: Arc::new(RealDisk),
        clock: Arc::new(RealClock),
        queues: queues(waker)?,
        directory: folder(name).to_owned(),
        // What is unpredictable is of use to a writer alone.
        options: FileOptions { may_write: false, shows_itself: false, ..FileOptions::new(0) },
    };
    let opened = opener.open(&KnownLog { position: None, must_exist: true })?;
    Ok(LogToFollow { log: opened.handle, incarnation: opened.incarnation })
}

fn open_remote(url: &str, waker: Waker) -> io::Result<(RemoteLog, Incarnation)> {
    let store = services::open_to_read(url, Arc::new(RealClock), waker)?;
    let incarnation = store.incarnation();
    Ok((RemoteLog::new(store, Arc::new(RealClock)), incarnation))
}

fn is_url(name: &str) -> bool {
    services::schemes().any(|scheme| name.starts_with(scheme))
}

fn folder(name: &str) -> &Path {
    Path::new(name.strip_prefix("file:").unwrap_or(name))
}

/// A log that is only read.
pub struct LogToRead {
    pub log: Box<dyn Readable>,
    pub start: Start,
    /// Its identity, and what is known of its extent.
    pub title: String,
}

/// Opens the log at a URL, or in a directory, to read it from its oldest record on. Nothing is
/// begun, claimed or written. A directory is read up to where it ends now. Blocks.
///
/// # Errors
/// There is no log, it cannot be reached, or this build has no client for it.
pub fn open_to_read(name: &str, waker: Waker) -> Result<LogToRead, Box<dyn Error>> {
    if is_url(name) {
        let (log, incarnation) = open_remote(name, waker)?;
        let title = format!("log {:016x}", incarnation.0);
        return Ok(LogToRead { log: Box::new(log), start: Start::Oldest(incarnation), title });
    }
    let found = txlog::file::inspect(Arc::new(RealDisk), folder(name))?;
    let incarnation = found.tail.incarnation;
    let title = format!(
        "log {:016x}: records {} to {}, durable through {}",
        incarnation.0, found.first.sequence, found.tail.sequence, found.durable.sequence
    );
    Ok(LogToRead { log: Box::new(found), start: Start::Oldest(incarnation), title })
}

#[cfg(test)]
mod tests {
    use config::directive::Kind;
    use config::table::DIRECTIVES;

    #[test]
    fn the_directive_takes_the_urls_of_every_client() {
        let row = DIRECTIVES.iter().find(|row| row.name == "transaction-log");
        let Some(Kind::Location { urls, .. }) = row.map(|row| row.kind) else {
            panic!("transaction-log names a location");
        };
        assert!(services::schemes().eq(urls.iter().copied()), "{urls:?}");
    }
}
