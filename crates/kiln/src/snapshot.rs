//! `kiln snapshot`: takes snapshots off the box, once or as they become due; `kiln snapshot list`
//! shows which there are.
//!
//! It is given what a server is given, and reads of it where the log and the snapshots are. It
//! serves nobody, and appends nothing to the log.

mod list;

use crate::keys;
use crate::sleep::Sleep;
use crate::work;
use crate::{configuration, logs, snapshots};
use archive::{CLAIM_SILENCE, Candidate, SnapshotStore};
use base::driver::Waker;
use base::machine::KeyHolder;
use base::{Clock, MonotonicNanos};
use config::settings::{Location, NodeSettings, node_settings};
use shard::loading::{KnownLog, OpenLog};
use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;
use worker::{Claimed, Freshness, Outcome, Rates, Worker};
use world::clock::RealClock;
use world::entropy::entropy;

/// What the command line says beside a server's arguments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Takes one snapshot and ends.
    pub once: bool,
    /// A snapshot becomes no older than this, in seconds, if anything was appended since.
    pub age_max: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { once: false, age_max: 3600 }
    }
}

/// Between two looks at how far the log has grown, and between two attempts to take the claim.
const LOOK_PAUSE: Duration = Duration::from_secs(2);

/// Between two attempts after one that failed: long enough that the primary finds the worker silent
/// and takes the snapshots itself.
const RETRY_PAUSE: Duration = Duration::from_secs(60);

/// Takes snapshots; the process's exit code.
pub fn snapshot(options: Options, arguments: &[String]) -> ExitCode {
    match run(options, arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => work::failed(&*error),
    }
}

/// Shows the snapshots; the process's exit code.
pub fn list(arguments: &[String]) -> ExitCode {
    let shown = list_of(arguments);
    match shown {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => work::failed(&*error),
    }
}

fn list_of(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let settings = node_settings(&configuration::read(arguments)?);
    let store = snapshots::open_to_read(&settings.snapshot_store)?;
    let ask_log = || {
        let (sleep, waker) = Sleep::new();
        let mut log = logs::open_to_follow(&settings.transaction_log, &KnownLog::default(), waker)?;
        let last = logs::ask_tail(&mut *log.handle, &sleep)?.sequence;
        Ok(list::LogEnd { log: log.incarnation, last })
    };
    list::show(&store.with_keys(keys::of(&settings)?), &ask_log, &RealClock)
}

/// Waits until a server has begun the log: before that there is nothing to do, and no place for
/// snapshots is made beside a log that is named wrongly.
fn wait_for_log(place: &Location, options: Options, sleep: &Sleep) -> Result<(), Box<dyn Error>> {
    let Location::Folder(folder) = place else { return Ok(()) };
    let mut is_told = false;
    while !logs::is_begun(place)? {
        let absent = logs::absent(folder);
        if options.once {
            return Err(absent.into());
        }
        if !std::mem::replace(&mut is_told, true) {
            tracing::warn!("{absent}, which is waited for");
        }
        sleep.pause(LOOK_PAUSE);
    }
    Ok(())
}

fn run(options: Options, arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let config = configuration::read(arguments)?;
    let settings = node_settings(&config);
    configuration::set_up_log(&settings)?;
    let (sleep, waker) = Sleep::new();
    wait_for_log(&settings.transaction_log, options, &sleep)?;
    let store = snapshots::open(&settings, keys::of(&settings)?, entropy())?;
    let mut worker = work::worker(&config, &settings, store.clone(), &waker)?;
    tracing::info!(store = store.location(), "takes snapshots");
    if options.once {
        return once(&mut worker, &sleep);
    }
    let (sleep, waker) = (&sleep, &waker);
    let (worker, settings, store, rates) = (&mut worker, &settings, &store, Rates::default());
    Keeper { worker, rates, options, settings, store, sleep, waker }.keep()
}

/// Takes one snapshot, or sees another worker take it.
fn once(worker: &mut Worker, sleep: &Sleep) -> Result<(), Box<dyn Error>> {
    let mut is_told = false;
    let mut other = OtherWorker::default();
    loop {
        match worker.take_once()? {
            Outcome::Taken(taken) => {
                note(&taken);
                return Ok(());
            }
            Outcome::Nothing(at) => {
                tracing::info!(record = at.0, "the newest snapshot has everything");
                return Ok(());
            }
            Outcome::Busy => {
                if !std::mem::replace(&mut is_told, true) {
                    tracing::info!("another worker is at it, which is waited for");
                }
                if other.is_silent(worker.store.claimed()?, RealClock.monotonic()) {
                    return Err(SILENT.into());
                }
                sleep.pause(LOOK_PAUSE);
            }
        }
    }
}

/// Of a lock nobody is relieved while his process is there.
const SILENT: &str = "the worker that has the claim has said nothing for half a minute: it is \
                      frozen, or cannot reach the store; end it";

/// What is known of another worker that has the claim.
#[derive(Default)]
struct OtherWorker {
    /// What it said last, and since when.
    said: Option<(Option<Vec<u8>>, MonotonicNanos)>,
}

impl OtherWorker {
    /// Whether it has the claim and has not said anything new for longer than one that lives.
    fn is_silent(&mut self, said: Option<Vec<u8>>, now: MonotonicNanos) -> bool {
        match &self.said {
            Some((known, since)) if *known == said => {
                now.since(*since) >= CLAIM_SILENCE.as_nanos() as u64
            }
            _ => {
                self.said = Some((said, now));
                false
            }
        }
    }
}

/// Takes snapshots as they become due, for ever.
struct Keeper<'a> {
    worker: &'a mut Worker,
    rates: Rates,
    options: Options,
    settings: &'a NodeSettings,
    store: &'a SnapshotStore,
    sleep: &'a Sleep,
    waker: &'a Waker,
}

/// What ends only by an error.
type Never = Result<std::convert::Infallible, Box<dyn Error>>;

impl Keeper<'_> {
    fn keep(mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let Err(error) = self.keep_claimed();
            tracing::error!("no snapshot can be taken just now: {error}");
            self.sleep.pause(RETRY_PAUSE);
        }
    }

    /// Takes the claim, and snapshots until something fails.
    fn keep_claimed(&mut self) -> Never {
        let mut other = OtherWorker::default();
        let mut claimed = loop {
            if let Some(claimed) = self.worker.claim()? {
                break claimed;
            }
            if other.is_silent(self.store.claimed()?, RealClock.monotonic()) {
                return Err(SILENT.into());
            }
            self.sleep.pause(LOOK_PAUSE);
        };
        let kept = self.keep_on(&mut claimed);
        // Else the primary waits half a minute for a worker that does nothing.
        claimed.release();
        kept
    }

    /// Reads the file of keys anew: the servers may have been given others. Those that are in force
    /// stay if it cannot be read.
    fn read_keys(&self) {
        let holder = keys::Holder::new(self.store.keys().clone());
        let file = self.settings.encryption_key_file.as_deref();
        if let Some(Err(why)) = file.map(|file| holder.read(file)) {
            tracing::warn!("the keys cannot be read anew: {why}");
        }
    }

    fn keep_on(&mut self, claimed: &mut Claimed) -> Never {
        let place = &self.settings.transaction_log;
        let mut log = logs::open_to_follow(place, &KnownLog::default(), self.waker.clone())?;
        // When it was last found that nothing was written.
        let mut looked_at: Option<i64> = None;
        loop {
            let fresh = freshness(self.store, &mut log, self.sleep, looked_at)?;
            if let Some(why) = self.rates.due(fresh, self.options.age_max) {
                tracing::info!("a snapshot is due: {why}");
                self.read_keys();
                match self.worker.take(claimed)? {
                    Outcome::Taken(taken) => {
                        self.rates.measure(&taken);
                        note(&taken);
                    }
                    Outcome::Nothing(_) | Outcome::Busy => {
                        looked_at = Some(RealClock.unix_millis().0);
                        tracing::info!("nothing was written since the newest one");
                    }
                }
            }
            self.worker.rest(claimed)?;
            self.sleep.pause(LOOK_PAUSE);
        }
    }
}

/// How far the newest snapshot is behind the log.
fn freshness(
    store: &SnapshotStore,
    log: &mut OpenLog,
    sleep: &Sleep,
    looked_at: Option<i64>,
) -> Result<Freshness, Box<dyn Error>> {
    let of_log = store.list_of(log.incarnation)?;
    let newest = of_log.candidates.into_iter().find_map(|candidate| match candidate {
        // A branch is to have one of its own at once.
        Candidate::Whole(snapshot) if snapshot.manifest.parent.is_none() => Some(snapshot),
        Candidate::Whole(_) | Candidate::Damaged { .. } => None,
    });
    let tail = logs::ask_tail(&mut *log.handle, sleep)?.sequence;
    let now = RealClock.unix_millis().0;
    let since = |began: i64| looked_at.unwrap_or(began).max(began);
    Ok(newest.map_or(Freshness { bytes: 0, records: tail.0, age: u64::MAX }, |snapshot| {
        let point = &snapshot.point;
        Freshness {
            bytes: snapshot.manifest.bytes(),
            records: tail.0.saturating_sub(point.position.sequence.0),
            age: u64::try_from(now.saturating_sub(since(point.began.0)) / 1000).unwrap_or(0),
        }
    }))
}

fn note(taken: &worker::Taken) {
    let snapshot = &taken.snapshot;
    tracing::info!(
        name = snapshot.name,
        keys = snapshot.manifest.keys,
        bytes = snapshot.manifest.bytes(),
        parts = snapshot.manifest.parts.len(),
        checked = snapshot.manifest.proof.and_then(|proof| proof.checked),
        millis = taken.nanos / 1_000_000,
        "snapshot published, proven"
    );
}

#[cfg(test)]
mod tests;
