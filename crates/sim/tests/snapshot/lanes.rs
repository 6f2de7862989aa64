//! A snapshot whose parts are read by any number of threads: the same comes of it, and a damaged
//! part is found by name.

use super::transfer::{ask, digest, start};
use super::worker::queue;
use super::world::{DISK_NANOS, LOG, log_options, store};
use archive::{Candidate, Facts, Snapshot, SnapshotStore};
use base::{Clock, DatabaseId, Seeds};
use engine::digest::Digest;
use engine::execute::Engine;
use engine::settings::Settings;
use shard::loading::{FileLogOpener, Leg, Loading, SliceLimits, Sources, Step};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::timeline::Timeline;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use txlog::file::{FileOptions, Queues};

/// None reads between the turns; there are fewer parts than twenty.
const LANES: [u64; 6] = [0, 1, 2, 3, 5, 20];

/// A disk with two snapshots, the newest first, and the digest of what was there at the end.
fn written() -> (SimDisk, Vec<Snapshot>, Digest) {
    let disk = SimDisk::new(1);
    let mut life = start(&disk, 1);
    for round in 0..2 {
        for key in 0..80 {
            let value = "v".repeat(60 + key % 90);
            assert_eq!(ask(&mut life, &format!("SET key:{round}:{key} {value}")), "+OK\r\n");
        }
        assert_eq!(ask(&mut life, "SELECT 3"), "+OK\r\n");
        for key in 0..20 {
            assert_eq!(ask(&mut life, &format!("SETEX {round}:{key} 1000 x")), "+OK\r\n");
        }
        assert_eq!(ask(&mut life, "SELECT 0"), "+OK\r\n");
        assert_eq!(ask(&mut life, "SAVE"), "+OK\r\n");
    }
    assert_eq!(ask(&mut life, "SET behind the"), "+OK\r\n");
    let held = digest(&life);
    drop(life);
    disk.kill_process();
    let snapshots = store(&disk).and_then(|store| store.list().map_err(|it| it.to_string()));
    let snapshots = snapshots.expect("the disk is whole").into_iter().map(|candidate| {
        let Candidate::Whole(snapshot) = candidate else { panic!("{candidate:?}") };
        snapshot
    });
    (disk, snapshots.collect(), held)
}

/// What a start makes of it, with so many threads, each as slow as `seed` says.
fn loaded(disk: &SimDisk, store: &SnapshotStore, lanes: u64, seed: u64) -> Engine {
    load(disk, store, lanes, seed).expect("the data can be had back")
}

fn load(disk: &SimDisk, store: &SnapshotStore, lanes: u64, seed: u64) -> Result<Engine, String> {
    let timeline = Timeline::new();
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new(&timeline));
    let log = FileLogOpener {
        disk: Arc::new(disk.clone()),
        clock: Arc::clone(&clock),
        queues: Queues { commits: queue(&timeline, 1), background: queue(&timeline, 2) },
        directory: Path::new(LOG).to_owned(),
        options: FileOptions { may_write: false, ..log_options(1) },
    };
    let (settings, seeds) = (Settings::default(), Seeds::fixed(9));
    let sources = Sources { clock, store: store.clone(), settings, seeds };
    let mut loading = Loading::open(sources, |known| log.open(known)).expect("there is a log");
    loading.read_parts_by((0..lanes).map(|n| queue(&timeline, seed + n)).collect());
    loading.limit_slices(SliceLimits { step_keys: 5, steps_max: 2, ..SliceLimits::default() });
    let mut percents = BTreeSet::new();
    loop {
        match loading.step().map_err(|why| why.to_string())? {
            Step::More => {}
            Step::Wait => timeline.pass(DISK_NANOS),
            Step::Done => break,
        }
        let progress = loading.progress();
        assert!(progress.used_bytes <= progress.total_bytes || progress.leg == Leg::Log);
        percents.insert((progress.leg, progress.percent() as u64));
    }
    assert!(percents.len() > 5, "it says how far it is: {percents:?}");
    let progress = loading.progress();
    assert_eq!((progress.leg, progress.percent() as u64), (Leg::Log, 100));
    assert_eq!(loading.take_readers().len() as u64, lanes, "threads come back");
    Ok(loading.into_loaded().expect("it is loaded").0)
}

/// The keys of two databases in the order in which they lie there.
fn order(engine: &Engine) -> Vec<Vec<u8>> {
    let keys = |database: u32| {
        let table = engine.keyspace.database(DatabaseId(database)).table();
        table.iter().map(|entry| entry.key().to_vec())
    };
    keys(0).chain(keys(3)).collect()
}

#[test]
fn as_many_threads_as_there_are_load_the_same() {
    let (disk, snapshots, held) = written();
    assert!(snapshots[0].manifest.parts.len() > 5, "several parts for each");
    let store = store(&disk).expect("the disk is whole");
    for lanes in LANES {
        let engine = loaded(&disk, &store, lanes, 100);
        assert_eq!(Digest::of_keyspace(&engine.keyspace), held, "{lanes} threads");
        for seed in [200, 300] {
            let other = loaded(&disk, &store, lanes, seed);
            assert_eq!(order(&other), order(&engine), "{lanes} threads that take other times");
        }
    }
}

#[test]
fn a_damaged_part_is_found_by_name_however_many_threads_read() {
    let (disk, snapshots, held) = written();
    let [newest, _] = &snapshots[..] else { panic!("{} snapshots", snapshots.len()) };
    for lanes in LANES {
        for part in &newest.manifest.parts {
            let path = Path::new(super::world::STORE).join(&newest.name).join(&part.name);
            for at in [9, part.bytes as usize / 2, part.bytes as usize - 1] {
                disk.damage(&path, at, 0x04);
                // Of its own, because it remembers what was refused.
                let store = store(&disk).expect("the disk is whole");
                let engine = loaded(&disk, &store, lanes, 100);
                assert_eq!(Digest::of_keyspace(&engine.keyspace), held, "the one before is used");
                let list = store.list().expect("it lists");
                let [Candidate::Damaged { name, why, .. }, Candidate::Whole(_)] = &list[..] else {
                    panic!("{list:?}");
                };
                assert!(*name == newest.name && why.contains(&part.name), "{name}: {why}");
                disk.damage(&path, at, 0x04);
            }
        }
    }
}

#[test]
fn a_newer_version_is_believed_only_of_bytes_that_are_those_that_were_written() {
    let (disk, snapshots, held) = written();
    let store_of = |disk: &SimDisk| store(disk).expect("the disk is whole");
    // Longer than what is read at once, so that the version is met before the checksum.
    let mut bytes = b"REDIS9999".to_vec();
    bytes.resize(600_000, 7);
    let point = snapshots[0].point;
    let mut writer = store_of(&disk).begin(point.position).expect("it begins");
    writer.write_part(&bytes).expect("there is room");
    let newer = writer.publish(&Facts::unproven(point, 0, 9999)).expect("there is room");
    let path = Path::new(super::world::STORE).join(&newer.name).join(&newer.manifest.parts[0].name);
    for lanes in LANES {
        let why = load(&disk, &store_of(&disk), lanes, 100).err().expect("a newer release's");
        assert!(why.contains("RDB version 9999 before byte 9 is not supported"), "{why}");
        for at in [6, 300_000, bytes.len() - 1] {
            disk.damage(&path, at, 0x01);
            let store = store_of(&disk);
            let engine = loaded(&disk, &store, lanes, 100);
            assert_eq!(Digest::of_keyspace(&engine.keyspace), held, "the one before is used");
            let list = store.list().expect("it lists");
            let Candidate::Damaged { name, why, .. } = &list[0] else { panic!("{list:?}") };
            assert!(*name == newer.name && why.contains("CRC-32C"), "{name}: {why}");
            disk.damage(&path, at, 0x01);
        }
    }
}
