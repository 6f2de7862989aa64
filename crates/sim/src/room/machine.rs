//! One simulated machine: its disk, and the server process that runs on it.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::disk_queue::SimDiskQueue;
use crate::random::Random;
use crate::timeline::Timeline;
use base::driver::Waker;
use base::machine::UnknownMachine;
use base::time::Clock;
use engine::digest::Digest;
use node::config::Config;
use node::config::settings::engine_settings;
use node::recovery::{Replayed, lead, replay};
use node::{Options, Server};
use std::path::Path;
use std::sync::Arc;
use txlog::{Consumed, FileLog, FileOptions, Follower, Queues, Recovery, WriterId};

const DIRECTORY: &str = "/data/log";

/// How long a disk job takes at least.
const DISK_NANOS: u64 = 50_000;

/// A build that is broken on purpose, so that a test can prove that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Broken {
    #[default]
    Nothing,
    /// Replies leave before what they reveal is durable.
    HoldsNothing,
    /// The log acknowledges before it syncs.
    AcknowledgesBeforeSync,
    /// Syncs succeed and do nothing.
    StubsSync,
    /// Records of one writer carry one counter.
    ReusesCounters,
}

/// Small sizes, so that a short run rolls several times.
fn file_options(entropy: u64, broken: Broken) -> FileOptions {
    let mut options = FileOptions::new(entropy);
    options.record_bytes_max = 32 << 10;
    options.batch_bytes_max = 40 << 10;
    options.segment_bytes = 96 << 10;
    options.first_segment_bytes = 84 << 10;
    options.in_flight_bytes_max = 64 << 10;
    options.acknowledges_before_sync = broken == Broken::AcknowledgesBeforeSync;
    options
}

/// A log that was opened, and everything it held.
pub struct Recovered {
    pub log: FileLog,
    pub recovery: Recovery,
    pub replayed: Replayed,
}

/// Opens the log on a disk and replays it, as a starting server does.
///
/// # Errors
/// What the server would say.
pub fn recover(
    disk: &SimDisk,
    timeline: &Timeline,
    entropy: u64,
    broken: Broken,
    waker: &Waker,
) -> Result<Recovered, String> {
    let queue = |name| {
        let random = Random::stream(entropy, name);
        Box::new(SimDiskQueue::new(timeline, random, DISK_NANOS, waker.clone()))
    };
    let queues = Queues { commits: queue("commits"), background: queue("background") };
    let clock = Arc::new(SimClock::new(timeline));
    let disk = Arc::new(disk.clone());
    let options = file_options(entropy, broken);
    let opened = FileLog::open(disk, clock, queues, Path::new(DIRECTORY), options);
    let (log, recovery) = opened.map_err(|error| error.to_string())?;
    if !recovery.is_writer {
        return Err("another process writes this log".to_owned());
    }
    let settings = engine_settings(&Config::new(Path::new("/data")));
    let replayed = replay(&log, &recovery, settings, entropy).map_err(|error| error.to_string())?;
    Ok(Recovered { log, recovery, replayed })
}

/// Recovers and leads: a server that is ready to turn. `note` learns in between which record was
/// recovered last, and the digest of what was.
///
/// # Errors
/// What the server would say.
pub fn start(
    disk: &SimDisk,
    timeline: &Timeline,
    entropy: u64,
    broken: Broken,
    waker: &Waker,
    note: impl FnOnce(u64, Digest),
) -> Result<Server, String> {
    let Recovered { log, recovery, replayed } = recover(disk, timeline, entropy, broken, waker)?;
    check_log(&log, &recovery)?;
    note(recovery.tail.sequence.0, Digest::of_keyspace(&replayed.engine.keyspace));
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new(timeline));
    let Replayed { engine, replayer } = replayed;
    let shard = lead(
        engine,
        Box::new(log),
        &replayer,
        recovery.tail.incarnation,
        WriterId(entropy | 1),
        clock.unix_millis(),
        || timeline.pass(DISK_NANOS),
    );
    let options = Options {
        config: Config::new(Path::new("/data")),
        port: 6379,
        clock,
        disk: Arc::new(disk.clone()),
        machine: Arc::new(UnknownMachine),
        entropy,
    };
    let shard = shard.map_err(|error| error.to_string())?;
    let mut server = Server::new(shard, options, Box::new(drop));
    match broken {
        Broken::HoldsNothing => server.shard.break_tracker(),
        Broken::ReusesCounters => server.shard.break_counters(),
        _ => {}
    }
    Ok(server)
}

/// The digest of what a server holds.
pub fn digest(server: &Server) -> Digest {
    Digest::of_keyspace(&server.shard.engine.keyspace)
}

/// Reads every record: none may be void here, where no rival ever leads, and within an epoch one
/// writer's counters follow each other, so that two records are never taken for one.
fn check_log(log: &FileLog, recovery: &Recovery) -> Result<(), String> {
    if recovery.tail.sequence < recovery.first.sequence {
        return Ok(());
    }
    let first = recovery.first.sequence;
    let mut follower = Follower::new(base::Sequence(first.0 - 1), log.first_chain());
    let mut replay = log.replay(first).map_err(|error| error.to_string())?;
    let mut last = None;
    while let Some((position, bytes)) = replay.next_record().map_err(|error| error.to_string())? {
        let consumed = follower.consume(position.sequence, &bytes);
        let Consumed::Record(record) = consumed.map_err(|error| error.to_string())? else {
            return Err(format!("record {} does not count", position.sequence));
        };
        let header = record.header;
        let this = (header.epoch, header.writer, header.counter);
        let follows = match last {
            Some((epoch, writer, counter)) if epoch == header.epoch => {
                writer == header.writer && header.counter == counter + 1
            }
            _ => true,
        };
        if !follows {
            return Err(format!("record {}: {this:?} after {last:?}", position.sequence));
        }
        last = Some(this);
    }
    Ok(())
}
