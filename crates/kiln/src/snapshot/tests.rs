//! What a worker decides by: how fresh the snapshots are, and whether another one lives.

use super::{Keeper, Options, OtherWorker, freshness};
use crate::sleep::Sleep;
use crate::{configuration, snapshots, work};
use archive::{Facts, SnapshotPoint, SnapshotStore};
use base::{Clock, Epoch, Incarnation, MonotonicNanos, Position, Sequence, UnixMillis};
use config::settings::node_settings;
use encryption::Keys;
use shard::loading::OpenLog;
use std::path::PathBuf;
use std::sync::Arc;
use txlog::TransactionLog;
use txlog::memory::MemoryLog;
use txlog::{Chain, Stamper, WriterId};
use worker::{Freshness, Rates};
use world::clock::RealClock;
use world::disk::RealDisk;

fn folder(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kiln-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn publish(store: &SnapshotStore, log: Incarnation, sequence: u64, began: i64) -> u64 {
    let position = Position { incarnation: log, sequence: Sequence(sequence) };
    let point = SnapshotPoint {
        position,
        chain: 0,
        epoch: Epoch(1),
        log_sum: None,
        clock: UnixMillis(0),
        began: UnixMillis(began),
    };
    let mut writer = store.begin(position).expect("there is space");
    writer.write_part(b"12345").expect("there is space");
    let published = writer.publish(&Facts::unproven(point, 0, 10)).expect("there is space");
    published.manifest.bytes()
}

#[test]
fn freshness_is_what_the_newest_snapshot_of_the_log_leaves_to_a_start() {
    let path = folder("fresh");
    let store = SnapshotStore::open(Arc::new(RealDisk), &path).expect("there is space");
    let incarnation = Incarnation(1);
    let memory = MemoryLog::new(incarnation);
    let mut handle = memory.handle(4096);
    let mut stamper = Stamper::new(WriterId(1), Chain::start(incarnation), UnixMillis(0));
    for _ in 0..7 {
        let lead = stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
        handle.append(memory.tail(), lead);
        handle.poll(&mut Vec::new());
    }
    let mut log = OpenLog { handle: Box::new(handle), incarnation, is_free: false };
    let (sleep, _) = Sleep::new();
    let mut fresh =
        |looked_at| freshness(&store, &mut log, &sleep, looked_at).expect("it can be read");
    assert_eq!(fresh(None), Freshness { bytes: 0, records: 7, age: u64::MAX });
    let now = RealClock.unix_millis().0;
    publish(&store, incarnation, 3, now - 90_000);
    let bytes = publish(&store, incarnation, 5, now - 60_000);
    // Another log's says nothing of this one.
    publish(&store, Incarnation(2), 6, now);
    let Freshness { bytes: found, records, age } = fresh(None);
    assert_eq!((found, records), (bytes, 2));
    assert!((60..80).contains(&age), "{age} s");
    // Nothing was written then: what is older than that is not looked at again at once.
    let Freshness { age, .. } = fresh(Some(now - 10_000));
    assert!((10..30).contains(&age), "{age} s");
    let Freshness { age, .. } = fresh(Some(now - 100_000));
    assert!((60..80).contains(&age), "{age} s");
    std::fs::remove_dir_all(path).expect("it is there");
}

#[test]
fn a_worker_that_fails_gives_its_claim_up_so_that_the_primary_takes_over() {
    let path = folder("keeper");
    let arguments = ["--dir".to_owned(), path.display().to_string()];
    std::fs::create_dir_all(&path).expect("there is space");
    let config = configuration::read_quietly(&arguments).expect("it is right");
    let settings = node_settings(&config);
    let store = snapshots::open(&settings, Keys::none(), 1).expect("there is space");
    let (sleep, waker) = Sleep::new();
    let mut worker =
        work::worker(&config, &settings, store.clone(), &waker).expect("there are threads");
    let mut keeper = Keeper {
        worker: &mut worker,
        rates: Rates::default(),
        options: Options::default(),
        settings: &settings,
        store: &store,
        sleep: &sleep,
        waker: &waker,
    };
    let Err(why) = keeper.keep_claimed();
    assert!(why.to_string().contains("there is no log in"), "it says so: {why}");
    assert_eq!(store.claimed().expect("it can be read"), None);
    let claim = store.claim(b"the next one").expect("it can be asked");
    assert!(claim.is_some(), "it is free");
    std::fs::remove_dir_all(path).expect("it is there");
}

#[test]
fn beside_a_log_that_never_was_one_snapshot_is_refused_and_nothing_is_made() {
    let path = folder("nothing");
    std::fs::create_dir_all(&path).expect("there is space");
    let arguments = ["--dir".to_owned(), path.display().to_string()];
    let once = Options { once: true, ..Options::default() };
    let why = super::run(once, &arguments).expect_err("there is no log").to_string();
    assert!(why.starts_with("there is no log in "), "{why}");
    let left = std::fs::read_dir(&path).expect("it is there").count();
    assert_eq!(left, 0, "nothing is left");
    std::fs::remove_dir_all(path).expect("it is there");
}

#[test]
fn another_worker_is_silent_once_it_has_said_nothing_new_for_half_a_minute() {
    let second = |n: u64| MonotonicNanos(n * 1_000_000_000);
    let mut other = OtherWorker::default();
    let mut silent = |said: &str, at| other.is_silent(Some(said.into()), second(at));
    assert!(!silent("1", 10) && !silent("1", 39) && silent("1", 40));
    assert!(!silent("2", 41) && !silent("2", 70) && silent("2", 71));
    assert!(!silent("3", 72), "it was only slow");
}
