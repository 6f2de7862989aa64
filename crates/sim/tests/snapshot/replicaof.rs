//! Whom a shard follows is what its log says: a process that begins anew goes on following, and no
//! configuration takes a master's data in place of what was written here.

use super::master::{DataSet, Master};
use super::transfer::{READ_ONLY, ask, crash, digest, start, take_over};
use super::world::{Ledger, Life};
use config::arguments::CommandLine;
use config::load::load;
use engine::master::ReplicaOf;
use sim::disk::SimDisk;
use std::path::Path;

/// Turns in which a server that may follow a master would have begun to: its time goes on too.
const TURNS: u32 = 5_000;

/// Lets a process begin whose configuration names the master.
fn start_configured(disk: &SimDisk, seed: u64) -> Life {
    let mut life = start(disk, seed);
    let line = CommandLine { options: b"replicaof master 1".to_vec(), ..CommandLine::default() };
    let config = load(disk, Path::new("/data"), &line, None).expect("it is understood");
    life.server.adopt(config);
    life
}

fn said(life: &Life) -> String {
    life.server.core.shard.engine.keyspace.replica_of().to_string()
}

/// Lets a master be there for long; whether the data is still the shard's own.
fn keeps_its_data(life: &mut Life, data: &DataSet) -> bool {
    let mut master = Master::new(life.listen("master"), data, 4096);
    let own = digest(life);
    for _ in 0..TURNS {
        master.turn();
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
    digest(life) == own
}

#[test]
fn a_start_goes_on_following_whatever_is_configured() {
    let (disk, data) = (SimDisk::new(1), DataSet::new());
    let mut life = start(&disk, 1);
    assert_eq!(ask(&mut life, "SET old value"), "+OK\r\n");
    assert_eq!(ask(&mut life, "REPLICAOF other 7"), "+OK\r\n");
    assert_eq!(
        ask(&mut life, "REPLICAOF OTHER 7"),
        "+OK Already connected to specified master\r\n"
    );
    crash(life, &disk);
    let mut life = start_configured(&disk, 2);
    assert_eq!(ask(&mut life, "SET a b"), READ_ONLY);
    assert_eq!(said(&life), "other 7");
    assert!(keeps_its_data(&mut life, &data), "it dialled the master of its configuration");
    assert!(ask(&mut life, "CONFIG GET replicaof").contains("other 7"));
    assert!(ask(&mut life, "INFO replication").contains("kiln_replicaof:other 7\r\n"));
    assert_eq!(ask(&mut life, "REPLICAOF master 1"), "+OK\r\n");
    let mut master = Master::new(life.listen("master"), &data, 4096);
    take_over(&mut life, &mut master, &disk);
    assert!(digest(&life) == data.digest);
}

#[test]
fn a_configuration_counts_for_an_empty_shard_that_was_told_nothing() {
    let (disk, data) = (SimDisk::new(2), DataSet::new());
    let mut life = start_configured(&disk, 1);
    assert_eq!(ask(&mut life, "SET early value"), READ_ONLY, "nobody writes before the master");
    let mut master = Master::new(life.listen("master"), &data, 4096);
    take_over(&mut life, &mut master, &disk);
    assert!(digest(&life) == data.digest);
    drop(master);
    crash(life, &disk);
    let mut life = start(&disk, 2);
    assert_eq!(ask(&mut life, "SET a b"), READ_ONLY, "the log says it from then on");
    assert_eq!(said(&life), "master 1");
}

/// A shard with data of its own: it never had a master, or has none any more.
fn shard_of_its_own(disk: &SimDisk, was_told: bool) {
    let mut life = start(disk, 1);
    if was_told {
        assert_eq!(ask(&mut life, "REPLICAOF master 1"), "+OK\r\n");
        assert_eq!(ask(&mut life, "REPLICAOF NO ONE"), "+OK\r\n");
    }
    assert_eq!(ask(&mut life, "SET own value"), "+OK\r\n");
    crash(life, disk);
}

#[test]
fn a_configuration_takes_nothing_in_place_of_data() {
    let data = DataSet::new();
    for was_told in [false, true] {
        let disk = SimDisk::new(3);
        shard_of_its_own(&disk, was_told);
        let mut life = start_configured(&disk, 2);
        assert_eq!(ask(&mut life, "GET own"), "$5\r\nvalue\r\n");
        assert_eq!(ask(&mut life, "SET own again"), "+OK\r\n");
        assert!(keeps_its_data(&mut life, &data), "told before: {was_told}");
        // Nor in place of what was deleted since.
        assert_eq!(ask(&mut life, "DEL own"), ":1\r\n");
        crash(life, &disk);
        let mut life = start_configured(&disk, 3);
        assert_eq!(ask(&mut life, "SET a b"), "+OK\r\n");
        assert!(keeps_its_data(&mut life, &data), "told before: {was_told}, then emptied");
    }
}

#[test]
fn whoever_was_told_to_follow_nobody_does_so_without_data_too() {
    let (disk, data) = (SimDisk::new(4), DataSet::new());
    let mut life = start(&disk, 1);
    assert_eq!(ask(&mut life, "REPLICAOF NO ONE"), "+OK\r\n");
    assert_eq!(life.server.core.shard.engine.keyspace.replica_of(), &ReplicaOf::NoOne);
    crash(life, &disk);
    let mut life = start_configured(&disk, 2);
    assert_eq!(ask(&mut life, "SET a b"), "+OK\r\n");
    assert!(keeps_its_data(&mut life, &data));
}

#[test]
fn a_server_that_obeys_its_configuration_would_be_noticed() {
    let (disk, data) = (SimDisk::new(5), DataSet::new());
    shard_of_its_own(&disk, true);
    let mut life = start_configured(&disk, 2);
    life.server.link.break_master(&mut life.server.core);
    assert!(!keeps_its_data(&mut life, &data), "the master's data took the place of ours");
}
