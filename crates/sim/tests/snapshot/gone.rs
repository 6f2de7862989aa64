//! A log that is gone while snapshots of it are there.

use super::world::{LOG, Ledger, Life, STORE, store};
use archive::Facts;
use archive::SnapshotPoint;
use base::disk::Disk;
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use sim::disk::SimDisk;
use std::path::Path;

/// Turns that a snapshot is given to be published.
const TURNS_MAX: u32 = 20_000;

#[test]
fn a_start_without_the_log_of_its_snapshots_is_refused_and_makes_none() {
    start_without_log(false);
}

#[test]
fn a_start_without_the_log_of_damaged_snapshots_is_refused_and_makes_none() {
    start_without_log(true);
}

fn start_without_log(is_damaged: bool) {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("an empty directory is a start");
    life.client.send(b"SET key value\r\nBGSAVE\r\n");
    for _ in 0..TURNS_MAX {
        assert!(life.turn(&mut ledger));
        if !store(&disk).expect("the store is there").list().expect("it lists").is_empty() {
            break;
        }
    }
    drop(life);
    disk.kill_process();
    let log = Path::new(LOG);
    for entry in disk.list(log).expect("the log is there") {
        disk.remove(&log.join(entry.name)).expect("a file can be removed");
    }
    disk.remove_directory(log).expect("the directory is empty");
    for candidate in store(&disk).expect("the store is there").list().expect("it lists") {
        if is_damaged {
            disk.damage(&Path::new(STORE).join(candidate.name()).join("manifest.json"), 20, 1);
        }
    }
    for seed in 2..4 {
        let why = Life::start(&disk, seed, &mut Ledger::default()).err().expect("it is refused");
        assert!(
            why.contains("the log is lost: there is none in /data/log, and there has been one"),
            "{why}"
        );
        assert!(disk.list(log).is_err(), "a start that is refused makes no log");
    }
}

#[test]
fn a_snapshot_that_cannot_be_removed_does_not_keep_the_log_from_being_trimmed() {
    let disk = SimDisk::new(1);
    let store = store(&disk).expect("the disk is whole");
    let mut positions = Vec::new();
    for sequence in 1..=4 {
        let position = Position { incarnation: Incarnation(1), sequence: Sequence(sequence) };
        let (clock, began) = (UnixMillis(0), UnixMillis(0));
        let point =
            SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began };
        let mut writer = store.begin(position).expect("the disk is whole");
        writer.write_part(b"bytes").expect("the disk is whole");
        let snapshot = writer.publish(&Facts::unproven(point, 0, 10)).expect("the disk is whole");
        positions.push((snapshot.name, position));
    }
    // A directory within a snapshot is nothing that its removal knows of.
    let stray = Path::new(STORE).join(&positions[1].0).join("stray");
    disk.create_directory(&stray).expect("the disk is whole");
    let pruned = store
        .prune(Incarnation(1), &[], &[], base::UnixMillis(0), base::Sequence::ZERO)
        .expect("it lists");
    assert!(pruned.failure.is_some(), "{pruned:?}");
    let before = positions[2].1.at(Sequence(2));
    assert_eq!(pruned.trim, Some(before), "the log can be trimmed, but for the snapshot's record");
    let oldest = Path::new(STORE).join(&positions[0].0);
    assert!(!disk.exists(&oldest).expect("it can be asked"), "the others are removed");
}
