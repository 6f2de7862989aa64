//! A data set on its way, in and out, however little of it is taken at a time.

use super::master::{DataSet, Master};
use super::transfer::{ask, digest, start, take_over};
use super::world::{Ledger, Life};
use node::Limits;
use sim::disk::SimDisk;

/// Turns after which something must be stuck.
const TURNS_MAX: u32 = 200_000;

/// Sets one limit to as little as it may be.
type Least = fn(&mut Limits);

fn limited(life: &mut Life, least: &[Least]) {
    for set in least {
        set(&mut life.server.core.process.options.limits);
    }
}

#[test]
fn a_master_s_data_comes_over() {
    let least: [Least; 4] = [
        |limits| limits.link_received_bytes_max = 1,
        |limits| limits.link_turn_steps_max = 1,
        |limits| limits.link_turn_effect_bytes = 1,
        |limits| limits.link_waiting_bytes_max = 100,
    ];
    let data = DataSet::new();
    for (seed, least) in
        [&least[..1], &least[1..2], &least[2..3], &least[3..], &least].into_iter().enumerate()
    {
        let disk = SimDisk::new(seed as u64);
        let mut life = start(&disk, seed as u64);
        limited(&mut life, least);
        let mut master = Master::new(life.listen("master"), &data, 4096);
        assert_eq!(ask(&mut life, "REPLICAOF master 1"), "+OK\r\n");
        take_over(&mut life, &mut master, &disk);
        assert!(master.is_acknowledged && digest(&life) == data.digest, "limits {seed}");
    }
}

#[test]
fn a_replica_is_sent_the_whole_file() {
    let least: [Least; 2] =
        [|limits| limits.feed_chunk_bytes = 100, |limits| limits.feed_ahead_bytes_max = 1];
    for least in [&least[..1], &least[1..], &least] {
        let disk = SimDisk::new(1);
        let mut life = start(&disk, 1);
        limited(&mut life, least);
        for key in 0..50 {
            assert_eq!(ask(&mut life, &format!("SET key:{key} {key}")), "+OK\r\n");
        }
        life.attach();
        let agrees = |life: &Life| life.follower.as_ref().is_some_and(|it| it.agreements > 0);
        // What is told behind the file is what the two are compared by.
        for turn in 0..TURNS_MAX {
            if turn % 100 == 0 {
                life.client.send(b"INCR count\r\n");
            }
            assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
            if agrees(&life) {
                break;
            }
        }
        assert!(agrees(&life), "it has not arrived");
    }
}

#[test]
fn a_data_set_that_ends_too_early_fails_at_once() {
    let data = DataSet::new();
    for missing in [1, 8, 9, 100, data.file.len() - 5, data.file.len()] {
        let disk = SimDisk::new(1);
        let mut life = start(&disk, 1);
        let mut master = Master::new(life.listen("master"), &data, 4096);
        assert_eq!(ask(&mut life, "REPLICAOF master 1"), "+OK\r\n");
        master.missing = missing;
        let began = life.server.core.turn.now.0;
        while life.server.link.error().is_none() {
            master.turn();
            assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
        }
        let error = life.server.link.error().unwrap_or_default();
        assert!(error.ends_with("the data set is shorter than announced"), "{missing}: {error}");
        let waited = life.server.core.turn.now.0 - began;
        assert!(waited < 60_000, "{missing}: not by repl-timeout, but after {waited} ms");
        assert!(ask(&mut life, "DBSIZE").starts_with("-MASTERDOWN "), "{missing}: it is a part");
    }
}
