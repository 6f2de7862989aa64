//! What the commands that serve nobody have in common: a worker over a log and an archive, and how
//! it waits.

use crate::logs;
use crate::sleep::Sleep;
use archive::SnapshotStore;
use base::driver::Waker;
use base::{DiskQueue, HashKey, Seeds};
use config::Config;
use config::settings::{NodeSettings, engine_settings};
use shard::loading::{Failure, KnownLog, LANES_MAX, OpenLog};
use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use worker::{Progress, Worker};
use world::clock::RealClock;
use world::disk_queue::{ThreadDiskQueue, Urgency};
use world::entropy::entropy;

/// Threads that write parts, at least. The parts of a directory share one device, those of a bucket
/// do not: two keep both busy while the next part is made. As many as there are cores read parts.
const PART_THREADS_MIN: usize = 2;

/// A worker that reads this log and has this archive.
///
/// # Errors
/// The system has no thread to give.
pub fn worker(
    config: &Config,
    settings: &NodeSettings,
    store: SnapshotStore,
    waker: &Waker,
) -> Result<Worker, Box<dyn Error>> {
    let (sleep, part_waker) = Sleep::new();
    let queues = part_threads(&part_waker)?;
    let (named, waker) = (settings.transaction_log.clone(), waker.clone());
    let open_log = move |known: &KnownLog| -> Result<OpenLog, Failure> {
        logs::open_to_follow(&named, known, waker.clone())
    };
    Ok(Worker {
        store,
        clock: Arc::new(RealClock),
        settings: engine_settings(config),
        seeds: Seeds { hash: HashKey::new([entropy(), entropy()]), chance: entropy() },
        id: entropy(),
        open_log: Box::new(open_log),
        queues,
        wait: Box::new(move || sleep.pause(logs::LOG_PAUSE)),
        tell: Box::new(tell),
        goes_on: Box::new(|| true),
        broken: None,
    })
}

/// Threads that read and write parts of snapshots.
///
/// # Errors
/// The system has no thread to give.
pub fn part_threads(waker: &Waker) -> io::Result<Vec<Box<dyn DiskQueue>>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let start = |_| -> io::Result<Box<dyn DiskQueue>> {
        Ok(Box::new(ThreadDiskQueue::start("parts", Urgency::Prompt, waker.clone())?))
    };
    (0..cores.clamp(PART_THREADS_MIN, LANES_MAX)).map(start).collect()
}

fn tell(progress: &Progress) {
    tracing::info!("{progress}");
}

/// Says why a command failed; the process's exit code.
pub fn failed(error: &(dyn Error + 'static)) -> ExitCode {
    eprintln!("{error}");
    let is_unknown = error.is::<crate::configuration::UnknownDirective>();
    if is_unknown { ExitCode::from(2) } else { ExitCode::FAILURE }
}
