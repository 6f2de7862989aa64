//! When a snapshot is due: the log has grown, and the last one is not too near.

use super::world::{Ledger, Life, first_record, store};
use archive::Candidate;
use base::Sequence;
use sim::disk::SimDisk;

/// Turns in which a snapshot that is due would be taken many times over, and less than a minute
/// goes by: an idle turn waits for 100 ms.
const TURNS: u32 = 200;

/// The record through which the newest snapshot goes.
fn newest(disk: &SimDisk) -> Option<Sequence> {
    let candidates = store(disk).expect("there is a store").list().expect("it can be listed");
    candidates.into_iter().find_map(|candidate| match candidate {
        Candidate::Whole(snapshot) => Some(snapshot.point.position.sequence),
        Candidate::Damaged { .. } => None,
    })
}

/// Writes something, lets the log seem to have grown by so much, and turns; the newest snapshot
/// then.
fn grow(life: &mut Life, disk: &SimDisk, bytes: u64) -> Option<Sequence> {
    life.client.send(b"INCR n\r\n");
    turn(life, TURNS / 2);
    life.server.core.shard.grown.bytes += bytes;
    turn(life, TURNS / 2);
    newest(disk)
}

fn turn(life: &mut Life, turns: u32) {
    for _ in 0..turns {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
}

#[test]
fn small_data_under_many_writes_is_not_written_again_and_again() {
    let disk = SimDisk::new(1);
    let mut life = Life::start_unchecked(1_000, Default::default(), &disk, 1).expect("it starts");
    assert_eq!(grow(&mut life, &disk, 0), None, "nothing has grown");
    let first = grow(&mut life, &disk, 256 << 20);
    assert!(first.is_some());
    assert_eq!(grow(&mut life, &disk, 256 << 20), first, "the minute is not over");
    let second = grow(&mut life, &disk, 1 << 30);
    assert!(second > first, "a restart would have too much to replay");
    assert_eq!(grow(&mut life, &disk, 256 << 20), second, "another minute has begun");
    turn(&mut life, 5 * TURNS);
    assert!(newest(&disk) > second, "it is over");
}

/// The first record that is left behind three snapshots of a log of several segments.
fn first_left(are_private: bool) -> Sequence {
    let disk = SimDisk::new(1);
    let mut life = Life::start_unchecked(1_000, Default::default(), &disk, 1).expect("it starts");
    life.server.core.process.settings.snapshots_are_private = are_private;
    let value = "v".repeat(3 << 10);
    for _ in 0..3 {
        for _ in 0..20 {
            life.client.send(format!("SET k {value}\r\n").as_bytes());
            turn(&mut life, 5);
        }
        life.client.send(b"BGSAVE\r\n");
        turn(&mut life, TURNS);
    }
    assert!(newest(&disk) > Some(Sequence(60)));
    first_record(&disk)
}

#[test]
fn nothing_is_trimmed_behind_snapshots_that_others_cannot_read() {
    assert!(first_left(false) > Sequence(1));
    assert_eq!(first_left(true), Sequence(1));
}
