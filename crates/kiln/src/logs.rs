//! Opens transaction logs: for a server the one that `transaction-log` names, for a tool any.

use crate::Broken;
use crate::sleep::Sleep;
use crate::snapshots;
use base::driver::Waker;
use base::{Incarnation, Position, Sequence};
use config::settings::{Location, NodeSettings};
use shard::archived::{self, ArchivedLog};
use shard::loading::{Failure, FileLogOpener, KnownLog, OpenLog};
use shard::snapshots::ArchiveLog;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use txlog::file::{FileOptions, Queues};
use txlog::reader::Start;
use txlog::remote::RemoteLog;
use txlog::{LogEvent, Readable, TransactionLog};
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};

/// Between two looks at a log that has nothing new.
pub const LOG_PAUSE: Duration = Duration::from_millis(5);

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
        Location::Folder(folder) => {
            let options = FileOptions { may_write: takes_free_log, ..FileOptions::new(entropy) };
            open_folder(folder, options, known, waker)
        }
        Location::Url(url) => open_service(url, waker, entropy, broken),
    }
}

/// Opens it to read along, for who takes no part in the shard: nothing is begun, claimed or
/// written, and no writer is told. Blocks.
///
/// # Errors
/// There is no log, it cannot be reached, or this build has no client for it.
pub fn open_to_follow(
    place: &Location,
    known: &KnownLog,
    waker: Waker,
) -> Result<OpenLog, Box<dyn Error>> {
    let known = KnownLog { must_exist: true, ..*known };
    match place {
        Location::Folder(folder) => {
            // What is unpredictable is of use to a writer alone.
            let options = FileOptions::new(0);
            let options = FileOptions { may_write: false, shows_itself: false, ..options };
            open_folder(folder, options, &known, waker)
        }
        Location::Url(url) => {
            let (log, incarnation) = open_remote(url, waker)?;
            Ok(OpenLog { handle: Box::new(log), incarnation, is_free: false })
        }
    }
}

/// Opens the log that a name on the command line means, as [`open_to_follow`] does, together with
/// what is archived of it at the place of another name.
///
/// # Errors
/// As [`open_to_follow`]; the archive cannot be opened.
pub fn open_with_archive(
    log: &str,
    archive: Option<&str>,
    waker: Waker,
) -> Result<OpenLog, Box<dyn Error>> {
    let opened = open_to_follow(&place(log), &KnownLog::default(), waker)?;
    match archive {
        Some(archive) => Ok(ArchivedLog::over(opened, snapshots::open_named(archive)?.log())),
        None => Ok(opened),
    }
}

/// How a server archives the log at this place: as one that reads along, in a job.
pub fn archiver(place: &Location) -> ArchiveLog {
    let place = place.clone();
    Arc::new(move |store, through| {
        let archived = || -> Result<(), Failure> {
            let (sleep, waker) = Sleep::new();
            let log = open_to_follow(&place, &KnownLog::default(), waker)?;
            archived::archive(store, log, Sequence::ZERO, through, &mut |_, is_idle| {
                if is_idle {
                    sleep.pause(LOG_PAUSE);
                }
                Ok(())
            })
        };
        archived().map_err(|why| why.to_string())
    })
}

/// Asks a log for its newest record, and waits for the answer.
///
/// # Errors
/// Why it does not say.
pub fn ask_tail(log: &mut dyn TransactionLog, sleep: &Sleep) -> Result<Position, String> {
    let asked = log.tail();
    let mut events = Vec::new();
    loop {
        log.poll(&mut events);
        for event in events.drain(..) {
            match event {
                LogEvent::Tail { ticket, position, .. } if ticket == asked => return Ok(position),
                LogEvent::Unanswered(ticket, why) if ticket == asked => return Err(why),
                _ => {}
            }
        }
        sleep.wait(log.wait_nanos());
    }
}

/// The place that a name on the command line means.
pub fn place(name: &str) -> Location {
    match is_url(name) {
        true => Location::Url(name.to_owned()),
        false => Location::Folder(folder(name).to_owned()),
    }
}

fn open_folder(
    folder: &Path,
    options: FileOptions,
    known: &KnownLog,
    waker: Waker,
) -> Result<OpenLog, Box<dyn Error>> {
    let opener = FileLogOpener {
        disk: Arc::new(RealDisk),
        clock: Arc::new(RealClock),
        queues: queues(waker)?,
        directory: folder.to_owned(),
        options,
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

/// Opens a log to read it from its oldest record on, the archived ones included if an archive is
/// named. Blocks.
///
/// # Errors
/// As [`open_to_read`] and [`open_with_archive`].
pub fn open_oldest(
    name: &str,
    archive: Option<&str>,
    waker: Waker,
) -> Result<LogToRead, Box<dyn Error>> {
    let Some(archive) = archive else { return open_to_read(name, waker) };
    let opened = open_to_follow(&place(name), &KnownLog::default(), waker)?;
    let incarnation = opened.incarnation;
    let log = ArchivedLog::new(opened, snapshots::open_named(archive)?.log());
    let title = format!("log {:016x}", incarnation.0);
    Ok(LogToRead { log: Box::new(log), start: Start::Oldest(incarnation), title })
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
