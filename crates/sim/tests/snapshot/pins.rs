//! What somebody needs of old snapshots and of the log stays, and goes when nobody does.

use super::crash::requests;
use super::transfer::ask;
use super::world::{Ledger, Life, STORE, first_record, store};
use archive::{Candidate, SnapshotStore};
use base::{Disk, Sequence};
use shard::snapshots::Pace;
use sim::disk::{Faults, SimDisk};
use sim::network::SimClient;
use sim::random::Random;
use std::collections::BTreeMap;
use std::path::Path;

/// Turns in which old snapshots are removed and the log is trimmed, if that is to be.
const TURNS: u32 = 120;

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
    listed(&store(disk).expect("there is a store"))
}

fn listed(store: &SnapshotStore) -> Vec<Sequence> {
    let candidates = store.list().expect("it lists");
    let point = |candidate| match candidate {
        Candidate::Whole(snapshot) => snapshot.point.position.sequence,
        Candidate::Damaged { name, why, .. } => panic!("{name}: {why}"),
    };
    candidates.into_iter().map(point).collect()
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
    let replica = begin_to_send(&mut life);
    let sent = snapshots(&disk)[0];
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

/// A replica that is being sent a snapshot, and reads nothing of it.
fn begin_to_send(life: &mut Life) -> SimClient {
    assert_eq!(ask(life, "CONFIG SET repl-timeout 100000"), "+OK\r\n");
    // More than lies in a replica's output before no more of the file is read.
    for key in 0..100 {
        assert_eq!(ask(life, &format!("SET big:{key} {}", "v".repeat(40 << 10))), "+OK\r\n");
    }
    let replica = life.connect();
    replica.set_reading(false);
    replica.send(b"PSYNC ? -1\r\n");
    while !is_pinned(life) {
        assert!(life.turn(&mut Ledger::default()));
    }
    let shown = ask(life, "INFO persistence");
    let pins = life.server.core.shard.pins();
    let (name, snapshot) = pins.snapshots().next().expect("it is pinned");
    assert!(shown.contains(&format!("kiln_snapshots_pinned_by:{name}@{snapshot}\r\n")), "{shown}");
    replica
}

fn is_pinned(life: &Life) -> bool {
    life.server.core.shard.pins().snapshots().next().is_some()
}

#[test]
fn what_a_replica_was_being_sent_goes_with_it() {
    for way in 0..3 {
        let disk = SimDisk::new(1);
        let mut life = start(&disk);
        let replica = begin_to_send(&mut life);
        match way {
            0 => replica.reset(),
            1 => assert_eq!(ask(&mut life, "CLIENT KILL TYPE replica"), ":1\r\n"),
            _ => {
                // A replica of the log it cannot become any more: it is disconnected.
                let member = format!(
                    "REPLCONF MEMBER 1 {} elsewhere 1 0 0 {} 0 0 - -\r\n",
                    "0".repeat(40),
                    "0".repeat(16)
                );
                replica.send(member.as_bytes());
            }
        }
        turn(&mut life);
        assert!(!is_pinned(&life), "way {way}");
    }
}

#[test]
fn snapshots_of_one_record_do_not_push_out_the_one_that_is_sent() {
    let disk = SimDisk::new(1);
    let mut life = start(&disk);
    let replica = begin_to_send(&mut life);
    let pins = life.server.core.shard.pins();
    let sent = pins.snapshots().next().map(|(_, snapshot)| snapshot.to_owned());
    for _ in 0..5 {
        assert_eq!(ask(&mut life, "SAVE"), "+OK\r\n");
    }
    turn(&mut life);
    let there = store(&disk).expect("there is a store").list().expect("it lists");
    let names: Vec<String> = there.iter().map(|it| it.name().to_owned()).collect();
    assert_eq!(names.len(), 3, "two, and the one that is sent: {names:?}");
    assert!(sent.is_some_and(|sent| names.contains(&sent)), "{names:?}");
    replica.reset();
    turn(&mut life);
    assert_eq!(store(&disk).expect("there is a store").list().expect("it lists").len(), 2);
}

/// Whether what the shard held behind a record can still be had, by snapshot and log.
fn can_be_had(disk: &SimDisk, store: &SnapshotStore, at: Sequence) -> bool {
    let first = first_record(disk);
    let snapshot = listed(store).into_iter().find(|snapshot| *snapshot <= at);
    first == Sequence(1) || snapshot.is_some_and(|snapshot| first <= snapshot)
}

/// Lives in which pins come, move on and end, and the power goes off at one of their syncs. How
/// often what was pinned was looked for though the log had been trimmed, and how often in vain.
fn look_for_what_is_pinned(seed: u64, really_pins: bool) -> (u32, u32) {
    let disk = SimDisk::new(seed);
    let mut random = Random::stream(seed, "pins");
    let (mut looks, mut in_vain) = (0, 0);
    // To open it syncs the names of its directories.
    let store = store(&disk).expect("the disk is whole");
    for life in 0..3 {
        let cut_at_sync = (life < 2).then_some(disk.syncs() + random.within(20..300));
        disk.set_faults(Faults { cut_at_sync, ..Faults::default() });
        let started = Life::start_unchecked(1_000, Pace::default(), &disk, seed + life);
        let Ok(mut life) = started else {
            assert!(disk.is_off());
            disk.restart();
            continue;
        };
        let mut pinned = BTreeMap::new();
        for _ in 0..60 {
            life.client.send(&requests(&mut random));
            for _ in 0..random.within(1..60) {
                life.turn(&mut Ledger::default());
            }
            let shard = &mut life.server.core.shard;
            let name = format!("reader-{}", random.within(0..3));
            match random.within(0..12) {
                0 => {
                    pinned.insert(name.clone(), shard.durable().sequence);
                    if really_pins {
                        shard.pin(name, shard.durable().sequence);
                    }
                }
                1 => {
                    pinned.remove(&name);
                    shard.unpin(&name);
                }
                _ => {}
            }
            if disk.is_off() {
                break;
            }
            looks += u32::from(first_record(&disk) > Sequence(1)) * pinned.len() as u32;
            in_vain += pinned.values().filter(|at| !can_be_had(&disk, &store, **at)).count() as u32;
        }
        drop(life);
        disk.cut_power();
        disk.restart();
        disk.set_faults(Faults::default());
        in_vain += pinned.values().filter(|at| !can_be_had(&disk, &store, **at)).count() as u32;
    }
    (looks, in_vain)
}

#[test]
fn what_is_pinned_can_be_had_whenever_the_power_goes_off() {
    let all = (1..=8).map(|seed| look_for_what_is_pinned(seed, true));
    let (looks, in_vain) = all.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert!(looks > 40 && in_vain == 0, "{in_vain} of {looks} in vain");
}

#[test]
fn a_prune_that_knows_no_pins_is_caught() {
    let in_vain: u32 = (1..=8).map(|seed| look_for_what_is_pinned(seed, false).1).sum();
    assert!(in_vain > 0, "or the test before shows nothing");
}

#[test]
fn what_a_killed_process_left_half_written_goes_without_a_start() {
    let disk = SimDisk::new(1);
    let mut life = start(&disk);
    let first = save(&mut life, &disk);
    let position = life.server.core.shard.durable();
    let left = store(&disk).expect("there is a store").begin(position).expect("it begins");
    drop(left);
    let entries = || disk.list(Path::new(STORE)).expect("it is there").len();
    assert_eq!(entries(), 3, "one that is published, one that never will be, and its sign");
    let second = save(&mut life, &disk);
    assert_eq!(snapshots(&disk), [second, first]);
    assert_eq!(entries(), 2);
}
