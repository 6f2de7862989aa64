//! What a look at the snapshots costs.

use super::{TIMES, World};
use archive::{Candidate, Facts, Snapshot, SnapshotPoint, SnapshotStore};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use std::sync::Arc;

fn publish(store: &SnapshotStore, sequence: u64, bytes: &[u8]) -> Snapshot {
    let position = Position { incarnation: Incarnation(1), sequence: Sequence(sequence) };
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    let point = SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began };
    let mut writer = store.begin(position).expect("nobody has the name");
    writer.write_part(bytes).expect("the store is well");
    writer.publish(&Facts::unproven(point, 0, 10)).expect("the store is well")
}

fn whole(store: &SnapshotStore) -> Vec<Snapshot> {
    let candidates = store.list().expect("the store is well").into_iter();
    let whole = candidates.map(|candidate| match candidate {
        Candidate::Whole(snapshot) => snapshot,
        Candidate::Damaged { name, why, .. } => panic!("{name}: {why}"),
    });
    whole.collect()
}

#[test]
fn a_look_is_one_listing_and_each_manifest_is_read_once() {
    let world = World::new();
    let store = SnapshotStore::over(Arc::new(world.open(TIMES)));
    let mut written = [7, 8].map(|sequence| publish(&store, sequence, b"part"));
    written.reverse();
    let reader = SnapshotStore::over(Arc::new(world.open(TIMES)));
    let looks = |store: &SnapshotStore| {
        let before = world.store.requests();
        let found = whole(store);
        (found, world.store.requests() - before)
    };
    assert_eq!(looks(&reader), (written.to_vec(), 3), "a listing and two manifests");
    assert_eq!(looks(&reader), (written.to_vec(), 1));
    assert_eq!(looks(&reader.clone()), (written.to_vec(), 1), "clones share them");
    let newest = publish(&store, 9, b"part");
    let all = [std::slice::from_ref(&newest), &written].concat();
    assert_eq!(looks(&reader), (all.clone(), 2), "the new one is read");
    assert_eq!(looks(&reader), (all, 1));
}

#[test]
fn what_is_published_anew_under_a_name_is_read_anew() {
    let world = World::new();
    let archive = Arc::new(world.open(TIMES));
    let store = SnapshotStore::over(Arc::clone(&archive) as Arc<dyn archive::Archive>);
    let reader = SnapshotStore::over(Arc::new(world.open(TIMES)));
    let mut names = Vec::new();
    for round in 0..3 {
        // Of the same length each time.
        let written = publish(&store, 7, format!("part {round}").as_bytes());
        assert_eq!(whole(&reader), std::slice::from_ref(&written), "round {round}");
        assert_eq!(whole(&reader), std::slice::from_ref(&written), "round {round}");
        archive::Archive::remove(&*archive, &written.name).expect("the store is well");
        assert!(whole(&store).is_empty());
        names.push(written.name);
    }
    names.dedup();
    assert_eq!(names.len(), 1, "or this shows nothing");
}
