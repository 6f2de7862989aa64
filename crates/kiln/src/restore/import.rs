//! `kiln import`: a new log of what another server wrote, or holds now.

use super::{Absent, BUSY, Options, Place, master};
use crate::sleep::Sleep;
use crate::{configuration, work};
use archive::Snapshot;
use base::UnixMillis;
use base::driver::Waker;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use intake::aof;
use intake::executor::Executor;
use intake::reading::Reading;
use intake::target::Target;
use shard::loading::Failure;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use txlog::Origin;
use worker::{Claimed, Phase, Worker};
use world::disk::RealDisk;

/// What is imported.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Source {
    Rdb(PathBuf),
    Aof(PathBuf),
    Master(master::Address),
}

impl Source {
    fn of(options: &Options) -> Result<Self, String> {
        match (&options.rdb, &options.aof, &options.from) {
            (Some(path), None, None) => Ok(Self::Rdb(path.into())),
            (None, Some(path), None) => Ok(Self::Aof(path.into())),
            (None, None, Some(url)) => master::Address::parse(url).map(Self::Master),
            (None, None, None) => {
                Err("--rdb, --aof or --from must name what is imported".to_owned())
            }
            _ => Err("--rdb, --aof and --from name several things to import".to_owned()),
        }
    }

    /// As the new log's first record names it.
    fn name(&self) -> String {
        match self {
            Self::Rdb(path) | Self::Aof(path) => path.display().to_string(),
            Self::Master(address) => address.to_string(),
        }
    }
}

/// Loads what the options name, with the claim of the place where it is going.
pub fn run(options: &Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let source = Source::of(options)?;
    let into = Place::to_make(options, arguments)?;
    configuration::set_up_log(&into.settings)?;
    let (_, waker) = Sleep::new();
    let absent = Absent::of(&into.settings.snapshot_store);
    let mut making = work::worker(&into.config, &into.settings, into.store()?, &waker)?;
    let mut claimed = making.claim()?.ok_or(BUSY)?;
    let made = make(&mut making, &source, &into, waker, &mut claimed);
    claimed.release();
    let snapshot = made.inspect_err(|_| absent.remove_empty())?;
    tracing::info!(keys = snapshot.manifest.keys, "imported: servers may start on the new log");
    Ok(())
}

fn make(
    making: &mut Worker,
    source: &Source,
    into: &Place,
    waker: Waker,
    claimed: &mut Claimed,
) -> Result<Snapshot, Box<dyn Error>> {
    making.must_be_empty()?;
    let engine = match source {
        Source::Rdb(path) => {
            must_have_an_end(path)?;
            let part = aof::open(&RealDisk, path.clone())?;
            read(making, Reading::of_rdb(part), claimed)?
        }
        Source::Aof(path) => {
            must_have_an_end(path)?;
            let parts = aof::parts(&RealDisk, path)?;
            parts.iter().try_for_each(|part| must_have_an_end(&part.path))?;
            read(making, Reading::of_aof(parts), claimed)?
        }
        Source::Master(address) => master::copy(making, address, &into.settings, claimed)?,
    };
    intake::libraries::check(engine.keyspace.libraries(), &making.clock)?;
    let origin = Origin { parent: None, source: source.name() };
    // The log's clock begins before any server's, so that none goes back.
    making.found(engine, UnixMillis(0), &origin, into.new_log(waker)?, claimed)
}

/// Refuses what is neither a file nor a directory. A device has no length, so it would be taken for
/// an empty file; and a pipe, whose reader waits, for one that never comes.
fn must_have_an_end(path: &Path) -> Result<(), String> {
    let said = |why: &str| format!("{}: {why}", path.display());
    let found = std::fs::metadata(path).map_err(|error| said(&error.to_string()))?;
    match found.is_file() || found.is_dir() {
        true => Ok(()),
        false => Err(said("it is no regular file and no directory")),
    }
}

/// An engine without keys, to be filled.
pub fn target(worker: &Worker) -> Target {
    let keyspace = Keyspace::new(worker.settings.clone(), worker.seeds.hash);
    Target::new(Engine::new(keyspace, worker.seeds.chance), worker.clock.unix_millis())
}

/// Reads files of Redis's.
fn read(
    worker: &mut Worker,
    mut reading: Reading,
    claimed: &mut Claimed,
) -> Result<Engine, Failure> {
    let mut executor = Executor::new(target(worker), Arc::clone(&worker.clock));
    while !reading.advance(&mut executor)? {
        worker.note(claimed, Phase::Importing, reading.done(), reading.total())?;
    }
    if let Some(warning) = &reading.warning {
        tracing::warn!("{warning}: that part was dropped, as Redis does");
    }
    Ok(executor.target.engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_no_empty_import() {
        let why = must_have_an_end(Path::new("/dev/zero")).expect_err("it has no end");
        assert_eq!(why, "/dev/zero: it is no regular file and no directory");
        assert!(must_have_an_end(Path::new("/nonexistent")).is_err());
        must_have_an_end(Path::new("/")).expect("a directory may hold an append-only file");
        let itself = std::env::current_exe().expect("it runs");
        must_have_an_end(&itself).expect("a file");
    }

    #[test]
    fn one_source_is_named() {
        let some = |text: &str| Some(text.to_owned());
        let none = Options::default();
        let rdb = Options { rdb: some("a"), ..none.clone() };
        assert_eq!(Source::of(&rdb), Ok(Source::Rdb("a".into())));
        let aof = Options { aof: some("a"), ..none.clone() };
        assert_eq!(Source::of(&aof), Ok(Source::Aof("a".into())));
        let from = Options { from: some("redis://u:secret@host:7/"), ..none.clone() };
        let named = Source::of(&from).expect("it is a server").name();
        assert_eq!(named, "redis://host:7");
        for bad in
            [none, Options { rdb: some("b"), ..aof.clone() }, Options { aof: aof.aof, ..from }]
        {
            Source::of(&bad).expect_err("none, or two");
        }
    }
}
