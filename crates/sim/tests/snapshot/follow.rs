//! A replica holds what the node holds, and is told of nothing that a power cut takes back.

use super::crash::requests;
use super::follower::Follower;
use super::world::{Ledger, Life};
use sim::disk::{Faults, SimDisk};
use sim::network::ClientState;
use sim::random::Random;

/// Requests of a life, if the power stays on.
const ROUNDS: u64 = 40;

/// How long a commit takes at least: longer than bytes are under way, so that what leaves too early
/// arrives too early.
const COMMIT_NANOS: u64 = 1_000_000;

/// Turns after which what was told has arrived.
const TURNS_MAX: u32 = 20_000;

/// A life in which a replica attaches at some time; how often it agreed with its primary.
fn live(life: &mut Life, random: &mut Random, ledger: &mut Ledger) -> u64 {
    let attaches_at = random.within(0..ROUNDS);
    for round in 0..ROUNDS {
        if round == attaches_at {
            life.attach();
        }
        life.client.send(&requests(random));
        for _ in 0..random.within(1..60) {
            if !life.turn(ledger) {
                return agreements(life);
            }
        }
    }
    for _ in 0..TURNS_MAX {
        let follower = life.follower.as_ref();
        let is_behind = follower.is_none_or(|it| it.executed < life.server.core.stream_offset());
        let is_quiet = !is_behind && !life.server.core.shard.is_in_flight();
        if is_quiet && agreements(life) > 0 || !life.turn(ledger) {
            return agreements(life);
        }
    }
    let follower = life.follower.as_ref().map(Follower::describe);
    panic!("the replica does not catch up with {}: {follower:?}", life.server.core.stream_offset());
}

fn agreements(life: &Life) -> u64 {
    life.follower.as_ref().map_or(0, |follower| follower.agreements)
}

#[test]
fn a_replica_is_told_everything_durable_and_nothing_else() {
    let mut agreements = 0;
    for seed in 1..=30 {
        let disk = SimDisk::new(seed);
        let mut random = Random::stream(seed, "follow");
        let mut ledger = Ledger::default();
        for number in 0..4 {
            let seed = seed * 100 + number;
            let cut = disk.syncs() + random.within(20..150);
            let cut_at_sync = (number != 3).then_some(cut);
            disk.set_faults(Faults { cut_at_sync, ..Faults::default() });
            match Life::start_with_commits_of(COMMIT_NANOS, &disk, seed, &mut ledger) {
                Ok(mut life) => agreements += live(&mut life, &mut random, &mut ledger),
                Err(why) => assert!(disk.is_off(), "seed {seed}: it does not start: {why}"),
            }
            disk.cut_power();
            disk.restart();
        }
    }
    assert!(agreements > 1000, "the replica was compared {agreements} times only");
}

#[test]
#[should_panic(expected = "told of record")]
fn a_server_that_tells_too_early_is_noticed() {
    let disk = SimDisk::new(1);
    let mut random = Random::stream(1, "early");
    let mut ledger = Ledger::default();
    let life = Life::start_with_commits_of(COMMIT_NANOS, &disk, 1, &mut ledger);
    let mut life = life.expect("the disk is whole");
    life.server.core.shard.break_tracker();
    live(&mut life, &mut random, &mut ledger);
}

#[test]
fn a_replica_that_takes_nothing_of_its_file_is_let_go() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut life = Life::start(&disk, 1, &mut ledger).expect("the disk is whole");
    // More than the network takes off the server's hands.
    let sets = (0..300).map(|key| format!("SET key:{key} {}\r\n", "v".repeat(1000)));
    let sets = sets.collect::<String>();
    life.client.send(sets.as_bytes());
    while life.replies.len() < 300 * "+OK\r\n".len() {
        assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
    }
    let deaf = life.connect();
    deaf.send(b"PSYNC ? -1\r\n");
    deaf.set_reading(false);
    let began = life.server.core.turn.now;
    for _ in 0..TURNS_MAX {
        assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        if deaf.state() != ClientState::Open && deaf.state() != ClientState::Connecting {
            let seconds = (life.server.core.turn.now.0 - began.0) / 1000;
            assert!((60..100).contains(&seconds), "let go after {seconds} s");
            return;
        }
    }
    panic!("it is still attached");
}
