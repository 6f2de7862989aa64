//! Back to any moment: what a shard held there, loaded beside it; a new log that begins with it.

use super::crash::requests;
use super::worker::worker;
use super::world::{DISK_NANOS, LOG, Ledger, Life, STORE, log_options};
use base::{Disk, Sequence, UnixMillis};
use engine::digest::Digest;
use shard::loading::{FileLogOpener, KnownLog, OpenLog};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::Origin;
use txlog::file::{Queues, inspect};
use txlog::reader::Goal;
use worker::ShardData;

/// Records of a log that count, with their clocks.
pub fn clocks(disk: &SimDisk) -> Vec<(Sequence, UnixMillis)> {
    let mut found = inspect(Arc::new(disk.clone()), Path::new(LOG)).expect("it is whole");
    let records = std::iter::from_fn(|| found.replay.next_record().expect("whole records"));
    let header = |bytes: &[u8]| txlog::record::decode_header(bytes, true).expect("a header");
    records.map(|(at, bytes)| (at.sequence, header(&bytes).clock)).collect()
}

/// A shard with some snapshots, of which none was trimmed away with its log.
pub fn lived(seed: u64) -> (SimDisk, Ledger) {
    let disk = SimDisk::new(seed);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, seed, &mut ledger).expect("the disk is whole");
    life.server.core.process.settings.snapshots_are_private = true;
    let mut random = Random::stream(seed, "moments");
    for _ in 0..40 {
        life.client.send(&requests(&mut random));
        for _ in 0..random.within(1..20) {
            assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        }
    }
    drop(life);
    disk.kill_process();
    (disk, ledger)
}

fn load(disk: &SimDisk, goal: Goal) -> Result<ShardData, String> {
    let mut worker = worker(disk, &Timeline::new(), 1);
    let mut course = worker.unclaimed();
    worker.load_moment(goal, &mut course).map_err(|why| why.to_string())
}

#[test]
fn a_thousand_moments_are_what_clients_saw_then() {
    let mut moments = 0;
    for seed in 1..=20 {
        let (disk, ledger) = lived(seed);
        let states: Vec<(Sequence, Digest)> = ledger.states().collect();
        let clocks = clocks(&disk);
        let mut random = Random::stream(seed, "picked");
        for _ in 0..50 {
            let (at, state) = states[random.within(0..states.len() as u64) as usize];
            if at == Sequence::ZERO {
                continue;
            }
            let moment = load(&disk, Goal::Through(at)).expect("it can be had");
            assert_eq!(moment.position.sequence, at);
            assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state, "record {at}");
            // By a time: everything through the last record that is not later.
            let (_, clock) = clocks[random.within(0..clocks.len() as u64) as usize];
            let through = clocks.iter().take_while(|(_, at)| *at <= clock).last();
            let (through, _) = *through.expect("it is among them");
            let moment = load(&disk, Goal::Clock(clock)).expect("it can be had");
            assert_eq!(moment.position.sequence, through);
            if let Some((_, state)) = states.iter().find(|(at, _)| *at == through) {
                assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), *state, "{clock:?}");
            }
            moments += 1;
        }
        let tail = clocks.last().expect("there are records").0;
        let why = load(&disk, Goal::Through(tail.next())).map(|_| ()).expect_err("it is not there");
        assert!(why.contains("the log ends at record"), "{why}");
        let why = load(&disk, Goal::Clock(UnixMillis(1))).map(|_| ()).expect_err("too early");
        assert!(why.contains("held nothing yet"), "{why}");
    }
    assert!(moments > 900, "{moments}");
}

/// A log that is begun on a disk.
pub fn new_log(disk: &SimDisk, timeline: &Timeline) -> Result<OpenLog, String> {
    let queue = |number| super::worker::queue(timeline, number);
    let opener = FileLogOpener {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(SimClock::new(timeline)),
        queues: Queues { commits: queue(1), background: queue(2) },
        directory: Path::new(LOG).to_owned(),
        options: log_options(77),
    };
    opener.open(&KnownLog::default()).map_err(|why| why.to_string())
}

/// Makes a new log on `into` of what the shard on `from` held at the goal.
fn restore(from: &SimDisk, goal: Goal, into: &SimDisk) -> Result<Digest, String> {
    restore_killed(from, goal, into, || {})
}

/// The same, with something that happens once the new archive is there.
fn restore_killed(
    from: &SimDisk,
    goal: Goal,
    into: &SimDisk,
    then: impl FnOnce(),
) -> Result<Digest, String> {
    let text = |why: Box<dyn std::error::Error>| why.to_string();
    let ShardData { engine, position, standing } = load(from, goal)?;
    let held = Digest::of_keyspace(&engine.keyspace);
    let timeline = Timeline::new();
    let mut making = worker(into, &timeline, 2);
    then();
    let mut claimed = making.claim().map_err(text)?.ok_or("it is busy")?;
    let origin = Origin {
        parent: Some((position, standing.chain)),
        source: format!("record {}", position.sequence),
    };
    let log = new_log(into, &timeline)?;
    making.found(engine, standing.clock, &origin, log, &mut claimed).map_err(text)?;
    claimed.release();
    Ok(held)
}

#[test]
fn a_new_log_begins_with_the_moment_and_its_parent_goes_on() {
    for seed in 1..=10 {
        let (from, ledger) = lived(seed);
        let states: Vec<(Sequence, Digest)> = ledger.states().collect();
        let (at, state) = states[states.len() / 2];
        let into = SimDisk::new(seed + 100);
        let held = restore(&from, Goal::Through(at), &into).expect("it can be had");
        assert_eq!(held, state);
        let mut life = Life::start_unchecked(DISK_NANOS, Default::default(), &into, seed)
            .expect("servers start on it");
        assert_eq!(Digest::of_keyspace(&life.server.core.shard.engine.keyspace), state);
        life.client.send(b"SET only here\r\nBGSAVE\r\n");
        for _ in 0..200 {
            assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
        }
        let held = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
        assert_ne!(held, state);
        drop(life);
        into.kill_process();
        let again = Life::start_unchecked(DISK_NANOS, Default::default(), &into, seed + 1);
        let again = again.expect("it starts again");
        assert_eq!(Digest::of_keyspace(&again.server.core.shard.engine.keyspace), held);
        let parent = Life::start_unchecked(DISK_NANOS, Default::default(), &from, seed + 2);
        let parent = parent.expect("its parent starts as ever");
        let last = states.last().expect("it was written to").1;
        assert_eq!(Digest::of_keyspace(&parent.server.core.shard.engine.keyspace), last);
    }
}

#[test]
fn killed_at_any_step_a_restore_leaves_nothing_that_serves_other_data() {
    let (from, _) = lived(3);
    let (mut kills, mut refused) = (0, 0);
    for at in 1.. {
        let into = SimDisk::new(at);
        let killed = into.clone();
        let kill = || into.interrupt(at, Box::new(move || killed.cut_power()));
        let outcome = restore_killed(&from, Goal::Tail, &into, kill);
        into.cut_power();
        into.restart();
        into.interrupt(u64::MAX, Box::new(|| {}));
        let started = Life::start_unchecked(DISK_NANOS, Default::default(), &into, 9);
        let is_done = outcome.is_ok();
        match (outcome, started) {
            (Ok(held), Ok(life)) => {
                let found = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
                assert_eq!(found, held);
            }
            (Ok(_), Err(why)) => panic!("it was restored and does not start: {why}"),
            // Nothing was begun, or all of it is there.
            (Err(_), Ok(life)) => {
                let found = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
                let is_new = life.server.core.shard.appended().sequence <= Sequence(1);
                let held = load(&from, Goal::Tail).expect("it can be had").engine;
                assert!(is_new || found == Digest::of_keyspace(&held.keyspace), "step {at}");
            }
            (Err(_), Err(why)) => {
                refused += 1;
                assert!(
                    why.contains("begins with the data of") || why.contains("the log is"),
                    "step {at}: {why}"
                );
            }
        }
        if is_done {
            break;
        }
        kills += 1;
    }
    assert!(kills > 60 && refused > 0, "{kills}, {refused}");
    // What is there is not begun anew.
    let into = SimDisk::new(1);
    restore(&from, Goal::Tail, &into).expect("it can be had");
    let why = restore(&from, Goal::Tail, &into).expect_err("it is there");
    assert!(why.contains("name another place"), "{why}");
    into.remove_directory(Path::new(STORE)).expect_err("it is not empty");
}
