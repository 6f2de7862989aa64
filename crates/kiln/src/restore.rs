//! `kiln restore`, `kiln export` and `kiln import`: from a log and its snapshots, as they are or as
//! they were at some moment, to a new log or an RDB file, and from what other servers wrote or hold
//! to a new log.

mod branch;
mod ends;
mod file;
mod import;
mod master;
mod position;

use crate::sleep::Sleep;
use crate::work;
use crate::{configuration, keys, logs, snapshots, time};
use archive::{Snapshot, SnapshotStore};
use base::driver::Waker;
use base::{Clock, Sequence, UnixMillis};
use config::Config;
use config::secrets::hide_credentials;
use config::settings::{Location, NodeSettings, node_settings};
use ends::{Ends, Makers};
use engine::execute::Engine;
use shard::archived::ArchivedLog;
use shard::loading::{KnownLog, OpenLog, follow_nobody};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use txlog::reader::Goal;
use txlog::{Origin, UnitPosition};
use worker::{Claimed, ShardData, Worker};
use world::clock::RealClock;
use world::entropy::entropy;

/// What the options say, beside a server's arguments.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Options {
    /// Log and archive that are read, if they are not those of the arguments; of an import the
    /// server that is copied.
    pub from: Option<String>,
    pub archive: Option<String>,
    /// The moment; the end if there is none.
    pub to: Option<String>,
    pub to_position: Option<String>,
    /// Log and archive that are made.
    pub into: Option<String>,
    pub into_archive: Option<String>,
    /// The file of Redis's.
    pub rdb: Option<String>,
    /// The append-only file of Redis's, or where it lies.
    pub aof: Option<String>,
}

impl Options {
    /// The options of these names that stand before a server's arguments, which are what is left.
    ///
    /// # Errors
    /// One is without a value.
    pub fn take<'a>(
        names: &[&str],
        mut behind: &'a [String],
    ) -> Result<(Self, &'a [String]), String> {
        let mut options = Self::default();
        while let [name, rest @ ..] = behind {
            if !names.contains(&name.as_str()) {
                break;
            }
            let [value, rest @ ..] = rest else { return Err(format!("{name} takes a value")) };
            *options.named(name) = Some(value.clone());
            behind = rest;
        }
        Ok((options, behind))
    }

    fn named(&mut self, name: &str) -> &mut Option<String> {
        match name {
            "--from" => &mut self.from,
            "--archive" => &mut self.archive,
            "--to" => &mut self.to,
            "--to-position" => &mut self.to_position,
            "--into" => &mut self.into,
            "--into-archive" => &mut self.into_archive,
            "--aof" => &mut self.aof,
            _ => &mut self.rdb,
        }
    }

    fn goal(&self) -> Result<Goal, String> {
        match (&self.to, &self.to_position) {
            (None, None) => Ok(Goal::Tail),
            (Some(text), None) => time::parse(text).map(Goal::Clock),
            (None, Some(text)) => {
                let wrong = || {
                    let text = hide_credentials(text);
                    format!("'{text}' is no position, and no number of a record")
                };
                let sequence = match text.parse::<UnitPosition>() {
                    Ok(position) => position.record.sequence,
                    Err(_) => Sequence(text.parse().map_err(|_| wrong())?),
                };
                Ok(Goal::Through(sequence))
            }
            (Some(_), Some(_)) => Err("--to and --to-position name two moments".to_owned()),
        }
    }
}

/// The options of each command.
pub const RESTORE: [&str; 6] =
    ["--from", "--archive", "--to", "--to-position", "--into", "--into-archive"];
pub const EXPORT: [&str; 5] = ["--from", "--archive", "--to", "--to-position", "--rdb"];
pub const IMPORT: [&str; 5] = ["--rdb", "--aof", "--from", "--into", "--into-archive"];

/// Those whose values may be URLs with passwords.
const LOCATIONS: [&str; 4] = ["--from", "--archive", "--into", "--into-archive"];

/// Makes a new log of a moment; the process's exit code.
pub fn restore(options: &Options, arguments: &[String]) -> ExitCode {
    ended(|| run_restore(options, arguments))
}

/// Makes a new log of a moment whose data stays where it is; the process's exit code.
pub fn branch(options: &Options, arguments: &[String]) -> ExitCode {
    ended(|| branch::run(options, arguments))
}

/// Writes a moment to an RDB file; the process's exit code.
pub fn export(options: &Options, arguments: &[String]) -> ExitCode {
    ended(|| run_export(options, arguments))
}

/// Makes a new log of what another server wrote or holds; the process's exit code.
pub fn import(options: &Options, arguments: &[String]) -> ExitCode {
    ended(|| import::run(options, arguments))
}

fn ended(run: impl FnOnce() -> Result<(), Box<dyn Error>>) -> ExitCode {
    configuration::hide_own(&LOCATIONS);
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => work::failed(&*error),
    }
}

/// A configuration, and the log and archive that it names.
struct Place {
    config: Config,
    settings: NodeSettings,
}

impl Place {
    /// What the arguments name, with another log and archive if they are given.
    fn of(
        arguments: &[String],
        log: Option<&str>,
        archive: Option<&str>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut words = arguments.to_vec();
        for (directive, value) in [("--transaction-log", log), ("--snapshot-store", archive)] {
            if let Some(value) = value {
                words.extend([directive.to_owned(), located(value)?]);
            }
        }
        let config = configuration::read_quietly(&words)?;
        let settings = node_settings(&config);
        Ok(Self { config, settings })
    }

    /// The log that is to be made, and its archive: beside a log in a directory lie its snapshots,
    /// if nothing else is said.
    fn to_make(options: &Options, arguments: &[String]) -> Result<Self, Box<dyn Error>> {
        let into = options.into.as_deref().ok_or("--into must name the new log")?;
        let beside = beside(into);
        if options.into_archive.is_none() && beside.is_some() {
            must_be_alone(into)?;
        }
        let archive = options.into_archive.as_deref().or(beside.as_deref());
        let archive = archive.ok_or("--into-archive must name the snapshots of the new log")?;
        Self::of(arguments, Some(into), Some(archive))
    }

    /// Begins the log.
    fn new_log(&self, waker: Waker) -> Result<OpenLog, Box<dyn Error>> {
        logs::open(&self.settings, &KnownLog::default(), waker, entropy(), true, None)
    }

    fn store(&self) -> Result<SnapshotStore, Box<dyn Error>> {
        snapshots::open(&self.settings, keys::of(&self.settings)?, entropy())
    }

    fn store_to_read(&self) -> Result<SnapshotStore, Box<dyn Error>> {
        let store = snapshots::open_to_read(&self.settings.snapshot_store)?;
        Ok(store.with_keys(keys::of(&self.settings)?))
    }
}

/// The file that whoever has the claim of an archive in a directory locks, and leaves.
const CLAIM_LOCK: &str = "claim.lock";

/// Directories that were not there before, the deepest first. That of the snapshots is made before
/// anything is known of what is to lie there.
struct Absent(Vec<PathBuf>);

impl Absent {
    fn of(place: &Location) -> Self {
        let Location::Folder(folder) = place else { return Self(Vec::new()) };
        let folders = folder.ancestors().filter(|it| !it.as_os_str().is_empty());
        Self(folders.take_while(|it| !it.exists()).map(Path::to_owned).collect())
    }

    /// Removes those in which nothing lies: what failed leaves nothing. The file that is locked for
    /// the claim is nothing: nobody else knew of the place.
    fn remove_empty(&self) {
        let Some(folder) = self.0.first() else { return };
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        if names.map(|it| it.file_name()).eq([CLAIM_LOCK]) {
            let _ = std::fs::remove_file(folder.join(CLAIM_LOCK));
        }
        // One that is not empty stays, and those in which it is.
        let _ = self.0.iter().try_for_each(std::fs::remove_dir);
    }
}

/// A place as a directive takes it. A directory may be named without `file:`, and is one of where
/// the command was given, not of `dir`.
fn located(place: &str) -> Result<String, Box<dyn Error>> {
    let is_plain = !place.split('/').next().unwrap_or("").contains(':');
    match place.strip_prefix("file:").or(is_plain.then_some(place)) {
        Some(folder) => {
            let absolute = std::path::absolute(folder)?;
            Ok(format!("file:{}", absolute.display()))
        }
        None => Ok(place.to_owned()),
    }
}

/// Where the snapshots lie beside a log in a directory.
fn beside(log: &str) -> Option<String> {
    let is_plain = !log.split('/').next().unwrap_or("").contains(':');
    let folder = log.strip_prefix("file:").or(is_plain.then_some(log))?;
    let beside = Path::new(folder).parent()?.join("snapshots");
    Some(format!("file:{}", beside.display()))
}

/// Refuses the place beside another log: the snapshots of both would lie together.
fn must_be_alone(log: &str) -> Result<(), Box<dyn Error>> {
    let log = std::path::absolute(log.strip_prefix("file:").unwrap_or(log))?;
    let beside = log.parent().map(std::fs::read_dir);
    let Some(Ok(beside)) = beside else { return Ok(()) };
    for other in beside.flatten().map(|it| it.path()).filter(|it| *it != log && it.is_dir()) {
        // What may not be read, such as `lost+found`, is not where somebody keeps a log of his.
        if logs::is_begun(&Location::Folder(other.clone())).unwrap_or(false) {
            let other = other.display();
            let why =
                format!("{other} is a log, whose snapshots lie where those of the new one would");
            return Err(format!("{why}: name another place, or --into-archive").into());
        }
    }
    Ok(())
}

/// Who reads a moment: of the log and what was trimmed of it.
fn reader(from: &Place, store: SnapshotStore, waker: &Waker) -> Result<Worker, Box<dyn Error>> {
    let log = store.log();
    let mut reading = work::worker(&from.config, &from.settings, store, waker)?;
    let mut open_log = reading.open_log;
    reading.open_log =
        Box::new(move |known| open_log(known).map(|opened| ArchivedLog::over(opened, log.clone())));
    Ok(reading)
}

/// Loads what the options name.
fn run_restore(options: &Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let ends = Ends::of(options, arguments)?;
    let (snapshot, parent) = ends.make(Place::store_to_read, make_of_moment)?;
    tracing::info!(
        keys = snapshot.manifest.keys,
        bytes = snapshot.manifest.bytes(),
        parent = parent.0,
        "restored: servers may start on the new log"
    );
    warn_of_clock(&ends.into.settings, snapshot.point.clock);
    Ok(())
}

/// Says what has to be done before a server leads on a new log whose data is of this time.
fn warn_of_clock(settings: &NodeSettings, clock: UnixMillis) {
    if let Some(days) = days_behind(settings, clock) {
        tracing::warn!(
            days,
            "no server leads on the new log before clock-ahead-max lets it, because its clock is that \
             far ahead of the newest record: start the first one with --clock-ahead-max 0"
        );
    }
}

/// Days by which the data is older than a server's clock may be ahead of it; `None` if it is not.
fn days_behind(settings: &NodeSettings, clock: UnixMillis) -> Option<u64> {
    let seconds = RealClock.unix_millis().0.saturating_sub(clock.0) / 1000;
    let seconds = u64::try_from(seconds).ok()?;
    let allowed = settings.clock_ahead_max;
    (allowed > 0 && seconds > allowed).then_some(seconds / (24 * 3600))
}

const BUSY: &str = "another process is writing to the new archive just now";

fn make_of_moment(
    Ends { goal, into, .. }: &Ends,
    Makers { mut reading, mut making, waker }: Makers,
    claimed: &mut Claimed,
) -> Result<(Snapshot, Sequence), Box<dyn Error>> {
    // Before hours of loading.
    making.must_be_empty()?;
    let ShardData { engine, position, standing } = reading.load_moment(*goal, claimed)?;
    // It would take that one's data at once, in place of what was restored.
    let engine = without_master(engine);
    let source = format!("record {} of log {:016x}", position.sequence, position.incarnation.0);
    let origin = Origin { parent: Some((position, standing.chain)), source };
    let snapshot = making.found(engine, standing.clock, &origin, into.new_log(waker)?, claimed)?;
    Ok((snapshot, position.sequence))
}

fn run_export(options: &Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let goal = options.goal()?;
    let path = PathBuf::from(options.rdb.as_deref().ok_or("--rdb must name the file")?);
    // Before hours of loading.
    file::may_write(&path)?;
    let from = Place::of(arguments, options.from.as_deref(), options.archive.as_deref())?;
    position::check(&from, options.to_position.as_deref())?;
    configuration::set_up_log(&from.settings)?;
    let (_, waker) = Sleep::new();
    let mut reading = reader(&from, from.store_to_read()?, &waker)?;
    let mut course = reading.unclaimed();
    let ShardData { engine, position, standing } = reading.load_moment(goal, &mut course)?;
    let written = file::write(engine, standing.clock, &path)?;
    tracing::info!(
        record = position.sequence.0,
        keys = written.keys,
        bytes = written.bytes,
        "exported to {}",
        path.display()
    );
    Ok(())
}

/// The same data, in a shard that follows nobody.
fn without_master(mut engine: Engine) -> Engine {
    if let Some(master) = engine.keyspace.master() {
        tracing::warn!(?master, "the shard followed a master then, and the new one follows nobody");
        follow_nobody(&mut engine);
    }
    engine
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::UnixMillis;
    use world::disk::RealDisk;

    #[test]
    fn options_come_before_a_server_s_arguments() {
        let words =
            |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
        let line = words("--to 5 --into new/log a.conf --dir x --from y");
        let (options, rest) = Options::take(&RESTORE, &line).expect("it is right");
        assert_eq!((options.to.as_deref(), options.into.as_deref()), (Some("5"), Some("new/log")));
        assert_eq!((rest, options.from.as_ref()), (&line[4..], None));
        assert_eq!(options.goal(), Ok(Goal::Clock(UnixMillis(5))));
        assert_eq!(Options::take(&RESTORE, &words("--to")), Err("--to takes a value".to_owned()));
        let both = Options { to_position: Some("7".to_owned()), ..options };
        assert!(both.goal().is_err());
        let position = Options { to: None, ..both };
        assert_eq!(position.goal(), Ok(Goal::Through(Sequence(7))));
        let of = |text: &str| Options { to_position: Some(text.to_owned()), ..position.clone() };
        let text = "6d1f03a9c4e7b258-42-9f3c51d07ae2864b-3-1";
        assert_eq!(of(text).goal(), Ok(Goal::Through(Sequence(42))));
        for wrong in ["x", "-1", "6d1f03a9c4e7b258-42-9f3c51d07ae2864b-3", ""] {
            let why = of(wrong).goal().expect_err("it is none");
            assert_eq!(why, format!("'{wrong}' is no position, and no number of a record"));
        }
    }

    #[test]
    fn data_that_is_older_than_clocks_may_be_ahead_is_told_of() {
        let config = configuration::read_quietly(&[]).expect("it is right");
        let settings = node_settings(&config);
        let now = RealClock.unix_millis().0;
        let behind = |settings: &NodeSettings, days: i64| {
            days_behind(settings, UnixMillis(now - days * 24 * 3_600_000))
        };
        assert_eq!(behind(&settings, 29), None);
        assert_eq!(behind(&settings, 31), Some(31));
        assert_eq!(behind(&settings, -5), None);
        assert_eq!(behind(&NodeSettings { clock_ahead_max: 0, ..settings }, 400), None);
    }

    #[test]
    fn what_failed_leaves_no_empty_directory_and_what_was_there_stays() {
        let root = std::env::temp_dir().join(format!("kiln-absent-{}", std::process::id()));
        std::fs::create_dir_all(&root).expect("there is space");
        let folder = root.join("new/snapshots");
        let absent = Absent::of(&Location::Folder(folder.clone()));
        std::fs::create_dir_all(&folder).expect("there is space");
        std::fs::create_dir(folder.join("x")).expect("there is space");
        absent.remove_empty();
        assert!(folder.exists(), "something lies there");
        std::fs::remove_dir(folder.join("x")).expect("it is ours");
        let archive = archive::DirectoryArchive::open(std::sync::Arc::new(RealDisk), &folder);
        let archive: &dyn archive::Archive = &archive.expect("it is a directory");
        let claim = archive.claim(b"{}").expect("there is space").expect("nobody else");
        claim.release().expect("it is ours");
        Absent::of(&Location::Folder(folder.clone())).remove_empty();
        assert!(folder.exists(), "it was there before");
        absent.remove_empty();
        assert!(!root.join("new").exists() && root.exists());
        std::fs::remove_dir(&root).expect("it is empty");
    }

    #[test]
    fn snapshots_lie_beside_a_log_in_a_directory() {
        assert_eq!(beside("new/log").as_deref(), Some("file:new/snapshots"));
        assert_eq!(beside("file:/a/b/log").as_deref(), Some("file:/a/b/snapshots"));
        assert_eq!(beside("jetstream://host/stream"), None);
        let here = std::env::current_dir().expect("it is there");
        let located = |place| located(place).expect("it can be named");
        assert_eq!(located("log"), format!("file:{}/log", here.display()));
        assert_eq!(located("file:log"), format!("file:{}/log", here.display()));
        assert_eq!(located("file-object:x"), "file-object:x");
    }
}
