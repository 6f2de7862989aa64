//! The store's files: names that no loss of power may take, and snapshots that are being written.

use super::transfer::{ask, start};
use super::world::{LOG, Ledger};
use archive::{Archive, Candidate, DirectoryArchive, Facts, SnapshotStore, SnapshotWriter};
use archive::{SnapshotPoint, Unfinished};
use base::disk::Disk;
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use sim::disk::SimDisk;
use std::path::Path;
use std::sync::Arc;
use txlog::file::inspect;
use txlog::record::decode_header;

const DIRECTORY: &str = "/var/lib/kiln/snapshots";
const POSITION: Position = Position { incarnation: Incarnation(1), sequence: Sequence(5) };

fn open(disk: &SimDisk) -> SnapshotStore {
    SnapshotStore::open(Arc::new(disk.clone()), Path::new(DIRECTORY)).expect("the disk is whole")
}

fn publish(mut writer: SnapshotWriter) {
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    let point = SnapshotPoint {
        position: POSITION,
        chain: 0,
        epoch: Epoch(1),
        log_sum: None,
        clock,
        began,
    };
    writer.write_part(b"bytes").expect("the disk is whole");
    writer.publish(&Facts::unproven(point, 0, 10)).expect("the disk is whole");
}

fn published(store: &SnapshotStore) -> usize {
    let candidates = store.list().expect("it lists");
    candidates.iter().filter(|candidate| matches!(candidate, Candidate::Whole(_))).count()
}

/// Loses power once a snapshot is published; how many are there then.
fn after_a_cut(seed: u64, prepare: impl FnOnce(&SimDisk)) -> usize {
    let disk = SimDisk::new(seed);
    prepare(&disk);
    publish(open(&disk).begin(POSITION).expect("the disk is whole"));
    disk.cut_power();
    disk.restart();
    published(&open(&disk))
}

#[test]
fn a_published_snapshot_stays_in_reach_through_a_loss_of_power() {
    assert!((0..50).all(|seed| after_a_cut(seed, |_| {}) == 1));
}

#[test]
fn directories_whose_names_are_not_durable_take_a_snapshot_with_them() {
    // As a program that makes several levels at once and syncs none.
    let make = |disk: &SimDisk| {
        disk.create_directory(Path::new(DIRECTORY)).expect("the disk is whole");
    };
    assert!((0..50).any(|seed| after_a_cut(seed, make) == 0), "or the first test shows nothing");
}

#[test]
#[should_panic(expected = "the disk is whole")]
fn a_start_that_tidies_away_what_another_process_writes_is_caught() {
    let disk = SimDisk::new(1);
    let writer = open(&disk).begin(POSITION).expect("it begins");
    let other = DirectoryArchive::open(Arc::new(disk.clone()), Path::new(DIRECTORY));
    let mut other = other.expect("the disk is whole");
    other.break_signs();
    other.remove_unpublished(Unfinished::All).expect("it tidies up");
    publish(writer);
}

#[test]
fn a_snapshot_that_is_being_written_is_left_alone_and_one_that_never_will_be_is_not() {
    let disk = SimDisk::new(1);
    let (store, other) = (open(&disk), open(&disk));
    let entries = || disk.list(Path::new(DIRECTORY)).expect("it is there").len();
    let writer = store.begin(POSITION).expect("the disk is whole");
    other.remove_unpublished(Unfinished::All).expect("the disk is whole");
    publish(writer);
    assert_eq!((published(&other), entries()), (1, 1), "and no sign is left");
    let abandoned = store.begin(POSITION).expect("the disk is whole");
    let under_way = store.begin(POSITION).expect("the disk is whole");
    drop(abandoned);
    // An older release made no sign, and one that died early has nothing but it.
    let older = Path::new(DIRECTORY).join("snapshot-00000000000000000009-000");
    disk.create_directory(&older).expect("the disk is whole");
    let early = Path::new(DIRECTORY).join("snapshot-00000000000000000010-000.writing");
    disk.create_new(&early).expect("the disk is whole");
    assert_eq!(entries(), 7);
    other.remove_unpublished(Unfinished::Signed).expect("the disk is whole");
    assert_eq!(entries(), 4, "an older release may still be writing");
    other.remove_unpublished(Unfinished::All).expect("the disk is whole");
    assert_eq!(entries(), 3, "the published one, the one under way, and its sign");
    publish(under_way);
    assert_eq!((published(&other), entries()), (2, 2));
}

#[test]
fn what_died_with_nothing_but_its_sign_leaves_its_name_to_others() {
    let disk = SimDisk::new(1);
    let archive = DirectoryArchive::open(Arc::new(disk.clone()), Path::new(DIRECTORY));
    let archive = archive.expect("the disk is whole");
    let extent = archive::Extent::of(base::Sequence(3), base::Sequence(9));
    for name in
        [extent.name(), "pin-00000000000000000003-00000000000000000009-0000000000000007".to_owned()]
    {
        let early = Path::new(DIRECTORY).join(format!("{name}.writing"));
        disk.create_new(&early).expect("the disk is whole");
        archive.remove_unpublished(Unfinished::All).expect("the disk is whole");
        archive.begin(&name).expect("nobody has it");
    }
}

#[test]
fn a_snapshot_shows_the_clock_of_its_record() {
    let disk = SimDisk::new(7);
    let mut life = start(&disk, 1);
    for round in 0..3 {
        assert_eq!(ask(&mut life, "SET key value"), "+OK\r\n");
        // Time goes on while nothing is appended.
        for _ in 0..20 {
            assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
        }
        assert_eq!(ask(&mut life, "SAVE"), "+OK\r\n");
        let candidates = super::world::store(&disk).expect("the disk is whole").list();
        let candidates = candidates.expect("it lists");
        let Some(Candidate::Whole(snapshot)) = candidates.first() else { panic!("round {round}") };
        let SnapshotPoint { position, clock, began, .. } = snapshot.point;
        let mut log = inspect(Arc::new(disk.clone()), Path::new(LOG)).expect("it is whole");
        let record = std::iter::from_fn(|| log.replay.next_record().expect("whole records"))
            .find(|(at, _)| *at == position);
        let (_, record) = record.expect("it is in the log");
        let header = decode_header(&record, true).expect("a record of our own");
        assert_eq!(clock, header.clock, "round {round}");
        assert!(clock < began, "or this shows nothing");
    }
}
