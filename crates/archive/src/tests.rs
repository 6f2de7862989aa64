//! The store over an archive that is no directory.

pub mod memory;

use crate::{
    Archive, Candidate, Facts, Limits, Pruned, Snapshot, SnapshotPoint, SnapshotStore, Unfinished,
    conformance,
};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use memory::{Kept, MemoryArchive};
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

pub fn point(sequence: u64) -> SnapshotPoint {
    let position = Position { incarnation: Incarnation(1), sequence: Sequence(sequence) };
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began }
}

/// In parts of 400 bytes.
pub fn write(store: &SnapshotStore, sequence: u64, bytes: &[u8]) -> io::Result<Snapshot> {
    let point = point(sequence);
    let mut writer = store.begin(point.position)?;
    // Several at a time, and the last one finished first.
    let mut parts = Vec::new();
    for pieces in bytes.chunks(400) {
        let mut part = writer.begin_part()?;
        pieces.chunks(100).try_for_each(|piece| part.append(piece))?;
        parts.push(part);
    }
    while let Some(part) = parts.pop() {
        writer.take(part.finish()?);
    }
    writer.publish(&Facts::unproven(point, 0, 10))
}

fn store() -> (MemoryArchive, SnapshotStore) {
    let archive = MemoryArchive::default();
    (archive.clone(), SnapshotStore::over(Arc::new(archive)))
}

pub fn whole(store: &SnapshotStore) -> Vec<Snapshot> {
    let candidates = store.list().unwrap().into_iter();
    let whole = candidates.map(|candidate| match candidate {
        Candidate::Whole(snapshot) => snapshot,
        Candidate::Damaged { name, why, .. } => panic!("{name}: {why}"),
    });
    whole.collect()
}

#[test]
fn a_snapshot_is_read_as_it_was_written_from_any_archive() {
    let (_, store) = store();
    let bytes: Vec<u8> = (0..1000u32).map(|n| (n % 251) as u8).collect();
    let written = write(&store, 7, &bytes).unwrap();
    assert_eq!(whole(&store), std::slice::from_ref(&written));
    let lengths: Vec<u64> = written.manifest.parts.iter().map(|part| part.bytes).collect();
    assert_eq!(lengths, [400, 400, 200]);
    let mut read = Vec::new();
    for index in 0..3 {
        store.open_part(&written, index).unwrap().read_to_end(&mut read).unwrap();
    }
    assert_eq!(read, bytes);
}

#[test]
fn whatever_call_fails_nothing_half_is_published_and_nothing_is_left() {
    let mut failed = 0;
    for at in 1.. {
        let (archive, store) = store();
        archive.state().fails_at = Some(at);
        let outcome = write(&store, 7, &[1; 1000]);
        archive.state().fails_at = None;
        if let Err(error) = outcome {
            failed += 1;
            assert_eq!(error.to_string(), "failed on command");
            assert!(whole(&store).is_empty());
        } else {
            assert_eq!(whole(&store).len(), 1);
            break;
        }
        store.remove_unpublished(Unfinished::All).unwrap();
        assert!(archive.state().snapshots.is_empty(), "call {at}");
    }
    assert!(failed > 10, "{failed}");
}

#[test]
fn what_is_read_back_otherwise_is_not_published() {
    let (archive, store) = store();
    archive.state().garbles = true;
    let why = write(&store, 7, &[1; 1000]).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidData);
    assert!(archive.state().snapshots.is_empty());
}

#[test]
fn what_is_published_is_never_replaced_and_a_draft_is_left_alone() {
    let (archive, store) = store();
    let name = write(&store, 7, &[1]).unwrap().name;
    assert!(archive.begin(&name).is_err());
    let second = write(&store, 7, &[2]).unwrap();
    assert_ne!(second.name, name, "the same record, another name");
    let mut draft = archive.begin("snapshot-draft").unwrap();
    store.remove_unpublished(Unfinished::All).unwrap();
    draft.publish(b"{}").unwrap();
    assert_eq!(draft.publish(b"{}").unwrap_err().kind(), ErrorKind::AlreadyExists);
}

#[test]
fn a_part_that_is_gone_or_cut_is_damage_that_is_named() {
    type Harm = fn(&mut Vec<u8>) -> bool;
    let harms: [(Harm, &str); 2] = [
        (|bytes| bytes.len() == 400, "part-0002.rdb is missing"),
        (|bytes| bytes.pop().is_some(), "part-0000.rdb has 399 bytes instead of 400"),
    ];
    for (harm, expected) in harms {
        let (archive, store) = store();
        let name = write(&store, 7, &[1; 1000]).unwrap().name;
        let mut state = archive.state();
        let kept = state.snapshots.get_mut(&name).unwrap();
        kept.parts.retain(|_, bytes| harm(bytes));
        drop(state);
        let damaged = Candidate::Damaged { name, why: expected.to_owned(), may_be_whole: false };
        assert_eq!(store.list().unwrap(), [damaged]);
    }
}

/// Prunes snapshots of records 10, 20, 30, 40 and 50, of which so many stay by their number; the
/// records of those that stay, and through which record the log may be trimmed.
fn pruned(retained: usize, pins: &[u64]) -> (Vec<u64>, Option<u64>) {
    let (_, store) = store();
    let store = store.with_limits(Limits { retained, ..Limits::default() });
    for sequence in [10, 20, 30, 40, 50] {
        write(&store, sequence, &[1]).unwrap();
    }
    let pins: Vec<Sequence> = pins.iter().map(|pin| Sequence(*pin)).collect();
    let Pruned { trim, failure } = store.prune(&pins, &[]).unwrap();
    assert!(failure.is_none());
    let left = whole(&store).into_iter().map(|snapshot| snapshot.point.position.sequence.0);
    (left.collect(), trim.map(|at| at.sequence.0))
}

#[test]
fn what_stays_is_what_the_newest_and_the_pins_need_and_the_log_behind_it() {
    assert_eq!(pruned(2, &[]), (vec![50, 40], Some(39)));
    assert_eq!(pruned(1, &[]), (vec![50], Some(49)));
    assert_eq!(pruned(9, &[]), (vec![50, 40, 30, 20, 10], None), "fewer than are to stay");
    assert_eq!(pruned(2, &[60, 50, 45]), (vec![50, 40], Some(39)), "they need no more");
    assert_eq!(pruned(2, &[30]), (vec![50, 40, 30], Some(29)));
    assert_eq!(pruned(2, &[29]), (vec![50, 40, 20], Some(19)), "not those in between");
    assert_eq!(pruned(2, &[35, 11]), (vec![50, 40, 30, 10], Some(9)));
    assert_eq!(pruned(2, &[35, 9]), (vec![50, 40, 30], None), "there is none to begin with");
}

#[test]
fn of_one_record_no_more_stay_than_are_to() {
    let (_, store) = store();
    for _ in 0..4 {
        write(&store, 7, &[1]).unwrap();
    }
    assert_eq!(store.prune(&[], &[]).unwrap().trim.unwrap().sequence, Sequence(6));
    assert_eq!(whole(&store).len(), 2);
}

#[test]
fn what_the_archive_cannot_be_asked_about_is_not_taken_for_damaged_and_stays() {
    for call in 2..8 {
        let (archive, store) = store();
        let store = store.with_limits(Limits { retained: 1, ..Limits::default() });
        for sequence in [10, 20, 30] {
            write(&store, sequence, &[1]).unwrap();
        }
        // The first call lists; then each entry is asked for its manifest and its parts.
        let mut state = archive.state();
        state.fails_at = Some(state.calls + call);
        drop(state);
        let pruned = store.prune(&[Sequence(20)], &[]).unwrap();
        let left: Vec<u64> =
            whole(&store).iter().map(|snapshot| snapshot.point.position.sequence.0).collect();
        assert!(left.contains(&30) && left.contains(&20), "call {call}: {left:?}");
        let through = pruned.trim.map_or(0, |at| at.sequence.0);
        assert!(through < 20, "call {call}: trimmed through {through}");
        // Whoever looks why space does not come back is told.
        let told = pruned.failure.map(|why| why.to_string());
        let is_told =
            told.is_some_and(|why| why.ends_with("nobody can read it: failed on command"));
        assert_eq!(is_told, call >= 4, "call {call}");
    }
}

#[test]
fn of_one_record_the_newest_stays_and_those_that_are_named_and_no_log_for_them() {
    let (_, store) = store();
    let named = vec![write(&store, 7, &[1]).unwrap().name];
    for _ in 0..5 {
        let newest = write(&store, 7, &[1]).unwrap().name;
        store.prune(&[Sequence(7)], &named).unwrap();
        let left: Vec<String> = whole(&store).into_iter().map(|snapshot| snapshot.name).collect();
        assert_eq!((left.first(), left.last()), (Some(&newest), named.first()));
        assert!(left.len() <= 3, "{left:?}");
    }
    for sequence in [20, 30] {
        write(&store, sequence, &[1]).unwrap();
    }
    let pruned = store.prune(&[], &named).unwrap();
    assert_eq!(whole(&store).len(), 3);
    assert_eq!(pruned.trim.unwrap().sequence, Sequence(19), "it is sent without the log");
}

#[test]
fn names_of_one_record_sort_by_age_or_are_not_given() {
    let (archive, store) = store();
    let prefix = "snapshot-00000000000000000007-";
    // Names that this release does not give say nothing of its own.
    for other in ["+998", "1000", "18446744073709551615", "0x1"] {
        archive.state().snapshots.insert(format!("{prefix}{other}"), Kept::default());
    }
    assert_eq!(write(&store, 7, &[1]).unwrap().name, format!("{prefix}000"));
    archive.state().snapshots.insert(format!("{prefix}998"), Kept::default());
    assert_eq!(write(&store, 7, &[1]).unwrap().name, format!("{prefix}999"));
    let why = write(&store, 7, &[1]).unwrap_err().to_string();
    assert_eq!(why, "there are no more names for snapshots of this record");
}

#[test]
fn one_has_the_claim_until_it_gives_it_up_or_dies() {
    let archive = MemoryArchive::default();
    let mut claim = archive.claim(b"one").unwrap().expect("nobody has it");
    assert!(archive.claim(b"two").unwrap().is_none());
    assert!(claim.renew(b"one, further").unwrap());
    assert_eq!(archive.claimed().unwrap().as_deref(), Some(&b"one, further"[..]));
    drop(claim);
    let claim = archive.claim(b"two").unwrap().expect("its holder is dead");
    claim.release().unwrap();
    assert_eq!(archive.claimed().unwrap(), None);
    assert!(archive.claim(b"three").unwrap().is_some());
}

#[derive(Default)]
pub struct MemoryBench(MemoryArchive);

impl conformance::Bench for MemoryBench {
    fn reset(&mut self) {
        *self = Self::default();
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        Arc::new(self.0.clone())
    }

    fn pass_silence(&mut self) {}

    fn large_bytes(&self) -> usize {
        1 << 20
    }
}

#[test]
fn the_archive_in_memory_keeps_what_every_archive_must() {
    conformance::run(&mut MemoryBench::default());
}
