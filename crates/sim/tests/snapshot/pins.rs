//! What somebody needs of old snapshots and of the log stays, and goes when nobody does.

use super::transfer::ask;
use super::world::{Ledger, Life, first_record, store};
use archive::Candidate;
use base::Sequence;
use shard::snapshots::Pace;
use sim::disk::SimDisk;

/// Turns in which old snapshots are removed and the log is trimmed, if that is to be.
const TURNS: u32 = 400;

fn start(disk: &SimDisk) -> Life {
    Life::start_unchecked(1_000, Pace::default(), disk, 1).expect("the disk is whole")
}

fn turn(life: &mut Life) {
    for _ in 0..TURNS {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
}

/// Writes some segments of log, and takes a snapshot; where it stands.
fn save(life: &mut Life, disk: &SimDisk) -> Sequence {
    let value = "v".repeat(3 << 10);
    for _ in 0..20 {
        assert_eq!(ask(life, &format!("SET key {value}")), "+OK\r\n");
    }
    assert_eq!(ask(life, "SAVE"), "+OK\r\n");
    turn(life);
    snapshots(disk)[0]
}

/// The records behind which snapshots stand, newest first.
fn snapshots(disk: &SimDisk) -> Vec<Sequence> {
    let candidates = store(disk).expect("there is a store").list().expect("it lists");
    let place = |candidate| match candidate {
        Candidate::Whole(snapshot) => snapshot.place.position.sequence,
        Candidate::Damaged { name, why } => panic!("{name}: {why}"),
    };
    candidates.into_iter().map(place).collect()
}

#[test]
fn a_pin_keeps_one_snapshot_and_the_log_behind_it_until_it_moves_or_ends() {
    let disk = SimDisk::new(1);
    let mut life = start(&disk);
    let first = save(&mut life, &disk);
    let second = save(&mut life, &disk);
    // It may be any record, not only that of a snapshot.
    life.server.core.shard.pin("reader", Sequence(second.0 + 3));
    let third = save(&mut life, &disk);
    let newest: Vec<Sequence> = (0..3).map(|_| save(&mut life, &disk)).collect();
    assert_eq!(snapshots(&disk), [newest[2], newest[1], second]);
    assert!(first_record(&disk) > first && first_record(&disk) <= second);
    let shown = ask(&mut life, "INFO persistence");
    assert!(shown.contains(&format!("kiln_log_pinned_by:reader@{}", second.0 + 3)), "{shown}");
    // What moves on needs less with the next snapshot.
    life.server.core.shard.pin("reader", newest[1]);
    turn(&mut life);
    assert_eq!(snapshots(&disk), [newest[2], newest[1], second]);
    let last = save(&mut life, &disk);
    assert_eq!(snapshots(&disk), [last, newest[2], newest[1]]);
    assert!(first_record(&disk) > third && first_record(&disk) <= newest[1]);
    // What ends frees space at once.
    life.server.core.shard.unpin("reader");
    turn(&mut life);
    assert_eq!(snapshots(&disk), [last, newest[2]]);
    assert!(first_record(&disk) > newest[1] && first_record(&disk) <= newest[2]);
}

#[test]
fn a_pin_that_comes_amid_a_trim_keeps_what_is_left() {
    let disk = SimDisk::new(1);
    let mut life = start(&disk);
    save(&mut life, &disk);
    let second = save(&mut life, &disk);
    save(&mut life, &disk);
    // A trim that somebody wants, whatever was planned, goes no further than a pin.
    life.server.core.shard.pin("reader", second);
    let newest = life.server.core.shard.durable();
    life.server.core.shard.trim(newest);
    turn(&mut life);
    assert!(first_record(&disk) <= second);
    life.server.core.shard.unpin("reader");
    life.server.core.shard.trim(newest);
    turn(&mut life);
    assert!(first_record(&disk) > second, "or the pin shows nothing");
}

#[test]
fn a_snapshot_that_a_replica_is_being_sent_stays_until_it_has_it() {
    let disk = SimDisk::new(1);
    let mut life = start(&disk);
    assert_eq!(ask(&mut life, "CONFIG SET repl-timeout 100000"), "+OK\r\n");
    // More than lies in a replica's output before no more of the file is read.
    for key in 0..200 {
        assert_eq!(ask(&mut life, &format!("SET big:{key} {}", "v".repeat(40 << 10))), "+OK\r\n");
    }
    let replica = life.connect();
    replica.send(b"PSYNC ? -1\r\n");
    let is_pinned = |life: &Life| life.server.core.shard.pins().oldest().is_some();
    while !is_pinned(&life) {
        assert!(life.turn(&mut Ledger::default()));
    }
    let sent = snapshots(&disk)[0];
    replica.set_reading(false);
    for _ in 0..3 {
        save(&mut life, &disk);
    }
    assert!(is_pinned(&life) && snapshots(&disk).contains(&sent));
    replica.set_reading(true);
    for _ in 0..100 * TURNS {
        assert!(life.turn(&mut Ledger::default()));
        replica.received();
        if !is_pinned(&life) {
            break;
        }
    }
    turn(&mut life);
    assert!(!is_pinned(&life) && !snapshots(&disk).contains(&sent));
}
