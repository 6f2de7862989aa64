//! A snapshot of several parts, read as one file: by a replica of Redis, and by tools.

use super::transfer::{ask, digest, start};
use super::world::{Life, PART_BYTES, PARTS_MAX, STORE, store};
use archive::{Candidate, Snapshot, SnapshotStore};
use base::{HashKey, UnixMillis};
use engine::digest::Digest;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::settings::Settings;
use shard::snapshots::SnapshotFile;
use sim::disk::SimDisk;
use std::path::Path;

fn newest(store: &SnapshotStore) -> Snapshot {
    match store.list().expect("it lists").into_iter().next() {
        Some(Candidate::Whole(snapshot)) => snapshot,
        other => panic!("{other:?}"),
    }
}

/// A node with a snapshot of all that it holds.
fn saved(disk: &SimDisk) -> (Life, Snapshot) {
    saved_with(disk, 100)
}

fn saved_with(disk: &SimDisk, keys: u32) -> (Life, Snapshot) {
    let mut life = start(disk, 1);
    for key in 0..keys {
        assert_eq!(ask(&mut life, &format!("SET key:{key} {}", "v".repeat(100))), "+OK\r\n");
    }
    assert_eq!(ask(&mut life, "SAVE"), "+OK\r\n");
    let snapshot = newest(&store(disk).expect("the disk is whole"));
    (life, snapshot)
}

fn open(disk: &SimDisk, snapshot: &Snapshot) -> SnapshotFile {
    let store = store(disk).expect("the disk is whole");
    SnapshotFile::open(&store, snapshot.clone()).expect("it is there")
}

#[test]
fn all_parts_are_one_file_and_each_is_one_as_well() {
    let disk = SimDisk::new(1);
    let (life, snapshot) = saved(&disk);
    let parts = snapshot.manifest.parts.len();
    assert!(parts > 3, "{parts} parts");
    let store = store(&disk).expect("the disk is whole");
    let mut each = Keyspace::new(Settings::default(), HashKey::fixed(5));
    for index in 0..parts {
        let part = store.open_part(&snapshot, index).expect("it is there");
        Loader::new(part, UnixMillis(0)).load_all(&mut each).expect("it is a file of its own");
    }
    let file = open(&disk, &snapshot);
    assert!(file.length() < snapshot.manifest.bytes());
    let mut whole = Keyspace::new(Settings::default(), HashKey::fixed(5));
    Loader::new(file, UnixMillis(0)).load_all(&mut whole).expect("it is one file");
    assert_eq!(Digest::of_keyspace(&each), digest(&life));
    assert_eq!(Digest::of_keyspace(&whole), digest(&life));
}

#[test]
fn the_file_is_the_same_however_it_is_read() {
    let disk = SimDisk::new(1);
    let (_life, snapshot) = saved(&disk);
    let mut file = open(&disk, &snapshot);
    let length = file.length() as usize;
    let all = open(&disk, &snapshot).next(usize::MAX).expect("it is whole");
    assert_eq!(all.len(), length);
    let mut read = Vec::new();
    for size in [1, 7, 900, 2100].into_iter().cycle() {
        // Who copies it reads on from the same place.
        let mut copy = file.clone();
        let bytes = file.next(size).expect("it is whole");
        assert_eq!(copy.next(size).expect("it is whole"), bytes);
        if bytes.is_empty() {
            break;
        }
        read.extend(bytes);
        assert_eq!(file.offset(), read.len() as u64);
    }
    assert!(read == all);
}

#[test]
fn a_file_with_a_damaged_part_has_no_end() {
    let disk = SimDisk::new(1);
    let (_life, snapshot) = saved(&disk);
    for part in &snapshot.manifest.parts {
        let path = Path::new(STORE).join(&snapshot.name).join(&part.name);
        disk.damage(&path, part.bytes as usize / 2, 0x04);
        let mut file = open(&disk, &snapshot);
        let length = file.length() as usize;
        let error = file.next(length).expect_err("a part is damaged");
        assert!(error.to_string().contains("CRC-32C"), "{error}");
        disk.damage(&path, part.bytes as usize / 2, 0x04);
    }
}

#[test]
fn the_last_part_that_there_may_be_takes_the_rest() {
    let disk = SimDisk::new(1);
    let (_life, snapshot) = saved_with(&disk, 500);
    let lengths: Vec<u64> = snapshot.manifest.parts.iter().map(|part| part.bytes).collect();
    let (last, others) = lengths.split_last().expect("there are some");
    assert_eq!(lengths.len(), PARTS_MAX);
    assert!(others.iter().all(|bytes| (PART_BYTES..2 * PART_BYTES).contains(bytes)), "{lengths:?}");
    assert!(*last > 4 * PART_BYTES, "{lengths:?}");
}
