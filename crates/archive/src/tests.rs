//! The store over an archive that is no directory.

mod log;
pub mod memory;

use crate::{
    Archive, BranchPoint, Candidate, Extent, Facts, Limits, Parent, Pruned, Snapshot,
    SnapshotPoint, SnapshotStore, Unfinished, conformance,
};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use log::records;
use memory::{Kept, MemoryArchive};
use std::io::{self, ErrorKind, Read};
use std::sync::Arc;

pub const LOG: Incarnation = Incarnation(1);

pub fn point(log: Incarnation, sequence: u64) -> SnapshotPoint {
    let position = Position { incarnation: log, sequence: Sequence(sequence) };
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began }
}

/// In parts of 400 bytes.
pub fn write(store: &SnapshotStore, sequence: u64, bytes: &[u8]) -> io::Result<Snapshot> {
    write_of(LOG, store, sequence, bytes)
}

fn write_of(
    log: Incarnation,
    store: &SnapshotStore,
    sequence: u64,
    bytes: &[u8],
) -> io::Result<Snapshot> {
    let point = point(log, sequence);
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

const NOW: UnixMillis = UnixMillis(0);

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
    let Pruned { trim, failure, .. } = store.prune(LOG, &pins, &[], NOW, Sequence::ZERO).unwrap();
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
    assert_eq!(
        store.prune(LOG, &[], &[], NOW, Sequence::ZERO).unwrap().trim.unwrap().sequence,
        Sequence(6)
    );
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
        // The first call lists; then all are asked for their parts, the oldest first, and for their
        // manifests, the newest first.
        let mut state = archive.state();
        state.fails_at = Some(state.calls + call);
        drop(state);
        let pruned = store.prune(LOG, &[Sequence(20)], &[], NOW, Sequence::ZERO).unwrap();
        let left: Vec<u64> =
            whole(&store).iter().map(|snapshot| snapshot.point.position.sequence.0).collect();
        assert!(left.contains(&30) && left.contains(&20), "call {call}: {left:?}");
        let through = pruned.trim.map_or(0, |at| at.sequence.0);
        assert!(through < 20, "call {call}: trimmed through {through}");
        // Whoever looks why space does not come back is told.
        let told = pruned.failure.map(|why| why.to_string());
        let is_told =
            told.is_some_and(|why| why.ends_with("nobody can read it: failed on command"));
        assert_eq!(is_told, ![4, 5].contains(&call), "call {call}");
    }
}

#[test]
fn no_newer_format_is_written_than_may_be_and_each_is_read() {
    let (archive, store) = store();
    let with = |format_max| store.clone().with_limits(Limits { format_max, ..store.limits() });
    let formats = [(1, 1), (2, 2), (3, 2)];
    for (format_max, format) in formats {
        let written = write(&with(format_max), u64::from(format_max), &[1]).unwrap();
        assert_eq!(written.manifest.format, format);
        let bytes = archive.manifest(&written.name, 1 << 20).unwrap();
        let text = String::from_utf8(bytes).unwrap();
        // What builds before format 2 do not know is not there.
        assert_eq!(text.contains("\"engine\""), format == 2, "{text}");
    }
    let read: Vec<u32> = whole(&store).iter().map(|it| it.manifest.format).collect();
    assert_eq!(read, [2, 2, 1], "newest first, whoever wrote them");
    let at = crate::BranchPoint { position: point(LOG, 9).position, chain: 1, epoch: Epoch(1) };
    let parent = crate::Parent::new("memory", "snapshot-x", Sequence(9), &at);
    for format_max in [1, 2, 3] {
        let branch = with(format_max).publish_branch(point(LOG, 10), 10, parent.clone());
        let said = branch.map(|it| it.manifest.format).map_err(|why| why.to_string());
        let expected = "a branch's first snapshot has format 3: snapshot-format ";
        let expected = format!("{expected}{format_max} forbids it");
        assert_eq!(said, if format_max == 3 { Ok(3) } else { Err(expected) });
    }
}

#[test]
fn who_reads_the_oldest_format_alone_is_given_nothing_encrypted() {
    let check =
        |format_max, encrypts| Limits { format_max, ..Limits::default() }.check(false, encrypts);
    let why = check(1, true).unwrap_err();
    assert!(why.contains("snapshot-format 1 reads nothing that is encrypted"), "{why}");
    for (format_max, encrypts) in [(1, false), (2, true), (3, true)] {
        assert_eq!(check(format_max, encrypts), Ok(()));
    }
}

#[test]
fn snapshots_of_another_log_stay_and_count_for_nothing() {
    let (archive, store) = store();
    let other = Incarnation(2);
    let own = [10, 20].map(|sequence| write(&store, sequence, &[1]).unwrap().name);
    let foreign = [5, 20, 90, 91].map(|at| write_of(other, &store, at, &[1]).unwrap().name);
    let Pruned { trim, failure, .. } =
        store.prune(LOG, &[Sequence(95)], &[], NOW, Sequence::ZERO).unwrap();
    assert!(failure.is_none());
    assert_eq!(trim, Some(point(LOG, 9).position), "behind the older one of its own");
    let of = store.list_of(LOG).unwrap();
    let names: Vec<&str> = of.candidates.iter().map(Candidate::name).collect();
    assert_eq!(names, [&*own[1], &*own[0]]);
    assert_eq!(of.foreign.len(), foreign.len(), "they are told of");
    // Of one that is damaged nobody can say whose it was.
    archive.state().snapshots.get_mut(&foreign[0]).unwrap().parts.clear();
    let newest = write(&store, 30, &[1]).unwrap().name;
    assert!(store.prune(LOG, &[], &[], NOW, Sequence::ZERO).unwrap().failure.is_some());
    let left: Vec<String> = archive.state().snapshots.keys().cloned().collect();
    assert_eq!(left.len(), 6, "{left:?}");
    assert!(foreign.iter().chain([&own[1], &newest]).all(|it| left.contains(it)), "{left:?}");
}

#[test]
fn of_one_record_the_newest_stays_and_those_that_are_named_and_no_log_for_them() {
    let (_, store) = store();
    let named = vec![write(&store, 7, &[1]).unwrap().name];
    for _ in 0..5 {
        let newest = write(&store, 7, &[1]).unwrap().name;
        store.prune(LOG, &[Sequence(7)], &named, NOW, Sequence::ZERO).unwrap();
        let left: Vec<String> = whole(&store).into_iter().map(|snapshot| snapshot.name).collect();
        assert_eq!((left.first(), left.last()), (Some(&newest), named.first()));
        assert!(left.len() <= 3, "{left:?}");
    }
    for sequence in [20, 30] {
        write(&store, sequence, &[1]).unwrap();
    }
    let pruned = store.prune(LOG, &[], &named, NOW, Sequence::ZERO).unwrap();
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

#[test]
fn with_a_window_the_log_is_trimmed_as_far_as_it_is_archived() {
    let (_, store) = store();
    let limits = Limits { window_seconds: 3600, ..Limits::default() };
    let store = store.with_limits(limits);
    for sequence in [10, 20, 30, 40] {
        write(&store, sequence, &[1]).unwrap();
    }
    let trim = |now| {
        let pruned = store.prune(LOG, &[], &[], UnixMillis(now), Sequence::ZERO).unwrap();
        assert!(pruned.failure.is_none());
        pruned.trim.map(|at| at.sequence.0)
    };
    // All of one moment: the oldest stays for the window, 30 and 40 because they are the newest.
    assert_eq!(trim(0), Some(0), "nothing is archived");
    assert_eq!(whole(&store).len(), 3);
    store.log().write(records(5, 8), &[1]).unwrap();
    store.log().write(records(11, 25), &[1]).unwrap();
    assert_eq!(trim(0), Some(25));
    let left = store.log().list().unwrap();
    assert_eq!(left.len(), 2, "the log may reach back to its beginning");
    store.log().write(records(26, 40), &[1]).unwrap();
    assert_eq!(trim(0), Some(29), "the older of the newest two is behind 30");
    // An hour later the moment of all snapshots is the window's beginning, and nobody needs what
    // lies before it.
    assert_eq!(trim(3_600_000), Some(29));
    assert_eq!(whole(&store).len(), 2);
    let firsts: Vec<u64> = store.log().list().unwrap().iter().map(|it| it.first.0).collect();
    assert_eq!(firsts, [26]);
    let off = store.clone().with_limits(Limits::default());
    assert_eq!(
        off.prune(LOG, &[], &[], UnixMillis(0), Sequence::ZERO)
            .unwrap()
            .trim
            .map(|at| at.sequence.0),
        Some(29)
    );
    // One that nobody can read is no archived log, and no reason to let snapshots pile up.
    let name = Extent::of(Sequence(41), Sequence(u64::MAX - 1)).name();
    store.archive().begin(&name).unwrap().publish(b"{}").unwrap();
    write(&store, 50, &[1]).unwrap();
    assert_eq!(trim(3_600_000), Some(39), "with 40");
    assert_eq!(whole(&store).len(), 2);
    store.log().write(records(41, 50), &[1]).unwrap();
    assert_eq!(trim(3_600_000), Some(39), "not beyond the oldest snapshot");
    // Behind the newest there is nothing yet.
    for _ in 0..2 {
        write(&store, 50, &[1]).unwrap();
        assert_eq!(trim(3_600_000), Some(49));
    }
}

#[test]
fn what_a_branch_needs_stays_until_the_branch_has_snapshots_of_its_own() {
    let (_, parent) = store();
    for sequence in [10, 20] {
        write(&parent, sequence, &[1]).unwrap();
    }
    for (first, last) in [(1, 10), (11, 15), (16, 20), (21, 30)] {
        parent.log().write(records(first, last), &[1]).unwrap();
    }
    // A branch behind record 17.
    let position = Position { incarnation: LOG, sequence: Sequence(17) };
    let at = BranchPoint { position, chain: 17, epoch: Epoch(1) };
    let name = whole(&parent).pop().unwrap().name;
    let named = Parent::new("the parent", &name, Sequence(10), &at);
    let branch = Incarnation(2);
    parent.pin(&named.pin(branch), b"a branch").unwrap();
    parent.pin(&named.pin(branch), b"a branch").unwrap();
    assert_eq!(parent.pins().unwrap(), [named.pin(branch)]);
    for sequence in [30, 40] {
        write(&parent, sequence, &[1]).unwrap();
    }
    assert!(parent.prune(LOG, &[], &[], NOW, Sequence::ZERO).unwrap().failure.is_none());
    let sequences = |store: &SnapshotStore| -> Vec<u64> {
        whole(store).iter().map(|it| it.point.position.sequence.0).collect()
    };
    assert_eq!(sequences(&parent), [40, 30, 10]);
    let firsts =
        || -> Vec<u64> { parent.log().list().unwrap().iter().map(|it| it.first.0).collect() };
    assert_eq!(firsts(), [11, 16, 21], "1 to 10 lies before it, 30 is the oldest that stays");

    let (_, unopened) = store();
    let opened = parent.clone();
    let child = unopened.clone().with_parents(Arc::new(move |store: &str, _| match store {
        "the parent" => Ok(Arc::clone(&opened.archive)),
        other => panic!("{other}"),
    }));
    let first = point(branch, 1);
    child.publish_branch(first, 10, named.clone()).unwrap();
    assert!(child.publish_branch(first, 10, named.clone()).is_err(), "it is there");
    let manifest = whole(&child).pop().unwrap().manifest;
    assert_eq!(manifest.parent.as_ref(), Some(&named));
    let (there, snapshot) = child.parent_of(&named).unwrap();
    assert_eq!((there.location(), snapshot.name), (parent.location(), name.clone()));
    let other = Parent::new("the parent", &name, Sequence(11), &at);
    let why = child.parent_of(&other).map(|_| ()).unwrap_err().to_string();
    assert!(why.contains("it is of record 10"), "{why}");

    for sequence in [5, 6] {
        let point = point(branch, sequence);
        let mut writer = child.begin(point.position).unwrap();
        writer.write_part(&[1]).unwrap();
        writer.publish(&Facts::unproven(point, 0, 10)).unwrap();
    }
    // A server that cannot open the parent's archive lets both stay.
    let why =
        unopened.prune(branch, &[], &[], NOW, Sequence::ZERO).unwrap().failure.unwrap().to_string();
    assert!(why.contains("the parent keeps what it needs"), "{why}");
    assert_eq!(sequences(&unopened), [6, 5, 1]);
    assert!(child.prune(branch, &[], &[], NOW, Sequence::ZERO).unwrap().failure.is_none());
    assert_eq!(sequences(&child), [6, 5]);
    assert_eq!(parent.pins().unwrap(), []);
    parent.prune(LOG, &[], &[], NOW, Sequence::ZERO).unwrap();
    assert_eq!((sequences(&parent), firsts()), (vec![40, 30], vec![21]));
}

/// What cannot be used is removed once there are newer ones. Of a branch's first one something is
/// kept elsewhere.
#[test]
fn a_damaged_first_snapshot_of_a_branch_goes_with_its_pin_or_stays() {
    for is_read in [true, false] {
        let (_, parent) = store();
        write(&parent, 10, &[1]).expect("there is space");
        let position = Position { incarnation: LOG, sequence: Sequence(10) };
        let at = BranchPoint { position, chain: 10, epoch: Epoch(1) };
        let name = whole(&parent).pop().expect("it was written").name;
        let named = Parent::new("the parent", &name, Sequence(10), &at);
        let branch = Incarnation(2);
        parent.pin(&named.pin(branch), b"a branch").expect("there is space");
        let (archive, child) = store();
        let opened = parent.clone();
        let child = child.with_parents(Arc::new(move |_, _| Ok(Arc::clone(&opened.archive))));
        let first = child.publish_branch(point(branch, 1), 10, named).expect("there is space");
        for sequence in [5, 6] {
            let point = point(branch, sequence);
            let mut writer = child.begin(point.position).expect("there is space");
            writer.write_part(&[1]).expect("there is space");
            writer.publish(&Facts::unproven(point, 0, 10)).expect("there is space");
        }
        match is_read {
            true => child.refuse(&first.name, "its parent's data is damaged"),
            false => {
                let mut state = archive.state();
                let kept = state.snapshots.get_mut(&first.name).expect("it is there");
                kept.manifest = Some(b"{".to_vec());
            }
        }
        let failure = child.prune(branch, &[], &[], NOW, Sequence::ZERO).expect("it lists").failure;
        let is_there = child.list().expect("it lists").iter().any(|it| it.name() == first.name);
        let pins = parent.pins().expect("it lists").len();
        if is_read {
            assert!(failure.is_none(), "{failure:?}");
            assert_eq!((is_there, pins), (false, 0));
        } else {
            let why = failure.expect("nobody can say whose archive").to_string();
            assert!(why.contains("may be the first snapshot of a branch"), "{why}");
            assert_eq!((is_there, pins), (true, 1));
        }
    }
}

/// Of many snapshots the manifests of the newest are kept in memory. That is all.
#[test]
fn more_snapshots_than_manifests_that_are_kept_are_listed_and_pruned_alike() {
    let (_, store) = store();
    let count = crate::store::MANIFESTS_MAX as u64 + 6;
    for sequence in 1..=count {
        write(&store, sequence * 10, &[1]).expect("there is space");
    }
    for _ in 0..2 {
        let sequences = whole(&store).into_iter().map(|it| it.point.position.sequence.0 / 10);
        assert!(sequences.eq((1..=count).rev()));
    }
    let named = vec![whole(&store).pop().expect("the oldest").name];
    let pruned = store.prune(LOG, &[Sequence(25)], &named, NOW, Sequence::ZERO).expect("it lists");
    assert!(pruned.failure.is_none());
    let left: Vec<u64> = whole(&store).iter().map(|it| it.point.position.sequence.0).collect();
    assert_eq!(left, [count * 10, (count - 1) * 10, 20, 10]);
    assert_eq!(pruned.trim.map(|at| at.sequence.0), Some(19));
}

#[test]
fn a_full_archive_gives_space_back() {
    let (archive, store) = store();
    for sequence in [10, 20, 30] {
        write(&store, sequence, &[1]).expect("there is space");
    }
    archive.state().is_full = true;
    let pruned = store.prune(LOG, &[], &[], NOW, Sequence::ZERO).expect("it can be listed");
    assert!(pruned.failure.is_none());
    assert_eq!((whole(&store).len(), pruned.trim.map(|at| at.sequence.0)), (2, Some(19)));
}
