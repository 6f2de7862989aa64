//! Opens transaction logs: for a server the one that `transaction-log` names, for a tool any.

use crate::Broken;
use crate::sleep::Sleep;
use crate::snapshots;
use archive::LogStore;
use base::driver::Waker;
use base::{Incarnation, Position, Sequence};
use config::settings::{Location, NodeSettings};
use encryption::Keys;
use shard::archived::{self, ArchivedLog, Need};
use shard::loading::{Failure, FileLogOpener, KnownLog, OpenLog};
use shard::snapshots::ArchiveLog;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use txlog::file::{FileOptions, LogError, Queues};
use txlog::reader::Start;
use txlog::remote::RemoteLog;
use txlog::{LogEvent, Readable, TransactionLog};
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};

/// Between two looks at a log that has nothing new.
pub const LOG_PAUSE: Duration = Duration::from_millis(5);

/// A log that says nothing for so long is not archived any further until it is tried again.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Between two attempts to open a log in a directory that another process is beginning, and how
/// many there are before that is an error: five seconds, for three syncs of a slow disk.
const BUSY_PAUSE: Duration = Duration::from_millis(50);
const BUSY_ATTEMPTS_MAX: u32 = 100;

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
    let is_known = *known != KnownLog::default();
    let known = KnownLog { must_exist: true, ..*known };
    match place {
        // If something is known of it, it is lost, which the opening says.
        Location::Folder(folder) if !is_known && !is_begun(place)? => Err(absent(folder).into()),
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
    keys: &Keys,
    waker: Waker,
) -> Result<OpenLog, Box<dyn Error>> {
    let opened = open_to_follow(&place(log)?, &KnownLog::default(), waker)?;
    match archive {
        Some(archive) => Ok(ArchivedLog::over(opened, archived_at(archive, keys)?)),
        None => Ok(opened),
    }
}

/// What is archived of a log at this place.
fn archived_at(archive: &str, keys: &Keys) -> Result<LogStore, Box<dyn Error>> {
    Ok(snapshots::open_named(archive)?.with_keys(keys.clone()).log())
}

/// How a server archives the log at this place: as one that reads along, in a job.
pub fn archiver(place: &Location) -> ArchiveLog {
    let place = place.clone();
    Arc::new(move |store, now, through, is_over| {
        let archived = || -> Result<Sequence, Failure> {
            let (sleep, waker) = Sleep::new();
            let log = open_to_follow(&place, &KnownLog::default(), waker)?;
            let mut idle = Duration::ZERO;
            let need = Need::Window(now);
            archived::archive(store, log, need, through, &mut |_, is_idle| {
                if is_over.load(Ordering::Relaxed) {
                    return Err("the server goes on to something else".into());
                }
                idle = if is_idle { idle + LOG_PAUSE } else { Duration::ZERO };
                if idle > SILENCE_MAX {
                    return Err("the log does not answer".into());
                }
                if is_idle {
                    sleep.pause(LOG_PAUSE);
                }
                Ok(())
            })
        };
        archived().map_err(|why| why.to_string())
    })
}

/// Whether there is a log. One that a service keeps is there for all that is known before it is
/// opened, which leaves nothing behind.
///
/// # Errors
/// The disk's.
pub fn is_begun(place: &Location) -> Result<bool, Box<dyn Error>> {
    match place {
        Location::Folder(folder) => Ok(txlog::file::is_begun(&RealDisk, folder)?),
        Location::Url(_) => Ok(true),
    }
}

/// That there is no log in a directory, in words.
pub fn absent(folder: &Path) -> String {
    format!("there is no log in {}", folder.display())
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

/// The place that a name on the command line means: a URL, or a directory with or without `file:`.
///
/// # Errors
/// It looks like a URL, and no log has such a one.
pub fn place(name: &str) -> Result<Location, Box<dyn Error>> {
    if services::schemes().any(|scheme| name.starts_with(scheme)) {
        return Ok(Location::Url(name.to_owned()));
    }
    if let Some(folder) = name.strip_prefix("file:") {
        return Ok(Location::Folder(folder.into()));
    }
    // What is taken for a directory is shown in errors, with a password that stands in it.
    if name.split('/').next().is_some_and(|first| first.contains(':')) {
        let schemes: Vec<&str> = services::schemes().collect();
        let known = schemes.join("…, ");
        return Err(format!("a log's name is a directory, file:PATH, or {known}…").into());
    }
    Ok(Location::Folder(name.into()))
}

fn open_folder(
    folder: &Path,
    options: FileOptions,
    known: &KnownLog,
    waker: Waker,
) -> Result<OpenLog, Box<dyn Error>> {
    let (sleep, _) = Sleep::new();
    open_folder_pausing(folder, options, known, &waker, &mut || sleep.pause(BUSY_PAUSE))
}

/// Another process may be beginning the log, or claiming it, just now: it is done in a moment, and
/// what it began is then read.
fn open_folder_pausing(
    folder: &Path,
    options: FileOptions,
    known: &KnownLog,
    waker: &Waker,
    pause: &mut dyn FnMut(),
) -> Result<OpenLog, Box<dyn Error>> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let opener = FileLogOpener {
            disk: Arc::new(RealDisk),
            clock: Arc::new(RealClock),
            queues: queues(waker.clone())?,
            directory: folder.to_owned(),
            options: options.clone(),
        };
        match opener.open(known) {
            Err(error) if is_busy(&*error) && attempts < BUSY_ATTEMPTS_MAX => pause(),
            opened => return opened,
        }
    }
}

fn is_busy(error: &(dyn Error + 'static)) -> bool {
    error.downcast_ref::<LogError>().is_some_and(|it| matches!(it, LogError::Busy(_)))
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
    keys: &Keys,
    waker: Waker,
) -> Result<LogToRead, Box<dyn Error>> {
    let Some(archive) = archive else { return open_to_read(name, waker) };
    let opened = open_to_follow(&place(name)?, &KnownLog::default(), waker)?;
    let incarnation = opened.incarnation;
    let log = ArchivedLog::new(opened, archived_at(archive, keys)?);
    let title = format!("log {:016x}", incarnation.0);
    Ok(LogToRead { log: Box::new(log), start: Start::Oldest(incarnation), title })
}

/// Opens the log at a URL, or in a directory, to read it from its oldest record on. Nothing is
/// begun, claimed or written. A directory is read up to where it ends now. Blocks.
///
/// # Errors
/// There is no log, it cannot be reached, or this build has no client for it.
pub fn open_to_read(name: &str, waker: Waker) -> Result<LogToRead, Box<dyn Error>> {
    let folder = match place(name)? {
        Location::Url(url) => {
            let (log, incarnation) = open_remote(&url, waker)?;
            let title = format!("log {:016x}", incarnation.0);
            return Ok(LogToRead { log: Box::new(log), start: Start::Oldest(incarnation), title });
        }
        Location::Folder(folder) => folder,
    };
    let found = txlog::file::inspect(Arc::new(RealDisk), &folder)?;
    let incarnation = found.tail.incarnation;
    let title = format!(
        "log {:016x}: records {} to {}, durable through {}",
        incarnation.0, found.first.sequence, found.tail.sequence, found.durable.sequence
    );
    Ok(LogToRead { log: Box::new(found), start: Start::Oldest(incarnation), title })
}

#[cfg(test)]
mod tests {
    use super::{Location, Sleep, open_folder_pausing, place};
    use base::Disk;
    use config::directive::Kind;
    use config::table::DIRECTIVES;
    use shard::loading::KnownLog;
    use txlog::file::FileOptions;
    use world::disk::RealDisk;

    #[test]
    fn a_log_that_another_process_is_beginning_is_opened_once_that_is_done() {
        let folder = std::env::temp_dir().join(format!("kiln-begun-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        RealDisk.create_directory(&folder).expect("there is space");
        let lock = folder.join("creating.lock");
        RealDisk.create_new(&lock).expect("there is space");
        let mut held = Some(RealDisk.lock(&lock).expect("nobody has it"));
        let open = |number, pause: &mut dyn FnMut()| {
            let (_, waker) = Sleep::new();
            let options = FileOptions::new(number);
            open_folder_pausing(&folder, options, &KnownLog::default(), &waker, pause)
        };
        let (mut pauses, mut first) = (0, None);
        let second = open(2, &mut || {
            pauses += 1;
            if pauses == 3 {
                // The other one is done.
                held = None;
                first = Some(open(1, &mut || panic!("nobody else is there")));
            }
        });
        let second = second.expect("it reads what was begun");
        let first = first.expect("it was begun").expect("it is begun");
        assert_eq!((first.incarnation, pauses), (second.incarnation, 3));
        assert!(first.is_free && !second.is_free, "one of them writes");
        drop((first, second));
        std::fs::remove_dir_all(&folder).expect("it is there");
    }

    #[test]
    fn what_looks_like_a_url_is_never_taken_for_a_directory() {
        let folder = |name: &str| match place(name) {
            Ok(Location::Folder(folder)) => folder.display().to_string(),
            other => panic!("{name}: {other:?}"),
        };
        for (name, expected) in [
            ("data/log", "data/log"),
            ("file:data/log", "data/log"),
            ("file:a:b", "a:b"),
            ("./a:b", "./a:b"),
            ("/data/a:b", "/data/a:b"),
        ] {
            assert_eq!(folder(name), expected);
        }
        let url = "jetstream://u:secret@h/x";
        assert!(matches!(place(url), Ok(Location::Url(it)) if it == url));
        for name in ["nats://u:secret@h/x", "jetstream:/u:secret@h/x", "nats:u:secret@h", "u:x"] {
            let why = place(name).expect_err("there is no such log").to_string();
            assert!(why.contains("jetstream://…") && !why.contains("secret"), "{name}: {why}");
        }
    }

    #[test]
    fn the_directive_takes_the_urls_of_every_client() {
        let row = DIRECTIVES.iter().find(|row| row.name == "transaction-log");
        let Some(Kind::Location { urls, .. }) = row.map(|row| row.kind) else {
            panic!("transaction-log names a location");
        };
        assert!(services::schemes().eq(urls.iter().copied()), "{urls:?}");
    }
}
