//! The archived log.

use super::{store, whole};
use crate::{Archive, ChainPoint, Extent, StretchFacts};
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use std::io::{ErrorKind, Read};

pub fn records(first: u64, last: u64) -> StretchFacts {
    let point = |sequence| ChainPoint { chain: sequence, epoch: Epoch(1) };
    StretchFacts {
        first: Position { incarnation: Incarnation(1), sequence: Sequence(first) },
        last: Sequence(last),
        before: point(first - 1),
        behind: point(last),
        clock: UnixMillis(0),
    }
}

#[test]
fn the_log_is_read_as_it_was_archived() {
    let (archive, store) = store();
    let log = store.log();
    let bytes = vec![7; 700_000];
    let written = log.write(records(3, 9), &bytes).unwrap();
    assert_eq!(log.write(records(3, 9), &bytes).unwrap(), written, "by another process, too");
    let other = StretchFacts { behind: ChainPoint { chain: 77, epoch: Epoch(2) }, ..records(3, 9) };
    assert_eq!(log.write(other, &bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    log.write(records(10, 10), &[1]).unwrap();
    let extent = |first, last| Extent::of(Sequence(first), Sequence(last));
    assert_eq!(log.list().unwrap(), [extent(3, 9), extent(10, 10)]);
    let found = log.find(&extent(3, 9)).unwrap();
    assert_eq!(found, written);
    let mut read = Vec::new();
    log.open(&found).unwrap().read_to_end(&mut read).unwrap();
    assert_eq!(read, bytes);
    assert!(whole(&store).is_empty(), "no snapshot");
    archive.state().garbles = true;
    assert_eq!(log.write(records(11, 12), &bytes).unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(log.list().unwrap().len(), 2, "what cannot be read back is not published");
}

#[test]
fn what_is_damaged_stays_and_its_records_are_archived_under_the_next_name() {
    let (archive, store) = store();
    let log = store.log();
    let extent = Extent::of(Sequence(3), Sequence(9));
    let name = |attempt| Extent { attempt, ..extent }.name();
    archive.begin(&name(0)).unwrap().publish(b"junk").unwrap();
    let first = log.write(records(3, 9), &[1; 700_000]).unwrap();
    assert_eq!(first.name, name(1));
    assert_eq!(log.write(records(3, 9), &[1; 700_000]).unwrap(), first, "by another process, too");
    // A manifest that is whole says nothing about the part.
    let damage = |name: &str| {
        let mut state = archive.state();
        let kept = state.snapshots.get_mut(name).expect("it is there");
        kept.parts.values_mut().for_each(|bytes| bytes[600_000] ^= 1);
    };
    damage(&name(1));
    assert_eq!(log.write(records(3, 9), &[1; 700_000]).unwrap().name, name(2));
    // A part that is gone.
    let gone = |name: &str| {
        archive.state().snapshots.get_mut(name).expect("it is there").parts.clear();
    };
    gone(&name(2));
    assert_eq!(log.write(records(3, 9), &[1; 700_000]).unwrap().name, name(3));
    assert_eq!(log.list().unwrap().len(), 4);
    // Another log's.
    let facts = records(3, 9);
    let first = Position { incarnation: Incarnation(7), ..facts.first };
    let other = log.write(StretchFacts { first, ..facts }, &[1]).unwrap();
    assert_eq!(other.name, name(4));
    let coverage = log.coverage(Incarnation(7), Sequence(2), &log.list().unwrap()).unwrap();
    assert_eq!(coverage.last, Some(other));
    assert!(coverage.useless.is_empty(), "the last attempt is looked at first");
    let coverage = log.coverage(Incarnation(1), Sequence(2), &log.list().unwrap()).unwrap();
    assert_eq!(coverage.last.as_ref().expect("it is there").name, name(3));
    let [(useless, why)] = &coverage.useless[..] else { panic!("{coverage:?}") };
    assert_eq!(useless.attempt, 4);
    assert!(why.contains("of another log"), "{why}");
    // Somebody is writing the next one.
    archive.begin(&name(5)).unwrap();
    damage(&name(3));
    let why = log.write(records(3, 9), &[1; 700_000]).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::AlreadyExists);
    assert!(why.to_string().contains("is writing"), "{why}");
    // There is an end of it, and the last reason is told.
    let last = Extent { attempt: Extent::ATTEMPT_MAX, ..extent };
    for attempt in 5..Extent::ATTEMPT_MAX {
        archive.begin(&name(attempt)).map(|mut it| it.publish(b"junk").unwrap()).ok();
    }
    archive.state().snapshots.get_mut(&name(5)).expect("it is there").manifest =
        Some(b"junk".to_vec());
    archive.begin(&last.name()).unwrap().publish(b"junk").unwrap();
    let why = log.write(records(3, 9), &[1; 700_000]).unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidData);
    assert!(why.to_string().contains("-999: manifest.json: "), "{why}");
    log.prune(Sequence(10), &[]).unwrap();
    assert!(log.list().unwrap().is_empty(), "all of them go");
}
