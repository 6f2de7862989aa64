//! Bytes that a failing medium, or an enemy, put into a log directory.

use crate::harness::{DIRECTORY, Ledger, Process, options, read_all, try_open};
use base::Sequence;
use base::disk::Disk;
use bytes::Bytes;
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::Path;

fn written(seed: u64) -> (SimDisk, Vec<(Sequence, Bytes)>) {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut process =
        Process::start(&disk, seed, options(7), &mut ledger).expect("the disk is whole");
    process.run(&mut random, 12, &mut ledger);
    let (records, _) = read_all(&process.log).expect("the log is whole");
    drop(process);
    disk.kill_process();
    (disk, records)
}

/// Opens and reads; the records if nothing was complained about.
fn reopened(disk: &SimDisk, seed: u64) -> Option<Vec<(Sequence, Bytes)>> {
    let (log, _) = try_open(disk, &Timeline::new(), seed, options(seed)).ok()?;
    read_all(&log).ok().map(|(records, _)| records)
}

#[test]
fn no_changed_byte_loses_a_record_silently() {
    let mut refused = 0;
    for seed in 1..=300 {
        let mut random = Random::from_seed(seed ^ 0xda);
        let (disk, records) = written(seed % 5);
        let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
        let entry = random.choose(&entries).clone();
        if entry.length == 0 || entry.name.ends_with(".claim") {
            continue;
        }
        // Headers and records lie in front; most of the rest is zeroes.
        let offset = random.within(0..entry.length.min(8192)) as usize;
        disk.damage(&Path::new(DIRECTORY).join(&entry.name), offset, 1 << random.within(0..8));
        match reopened(&disk, seed) {
            Some(found) => assert_eq!(found, records, "seed {seed}: {} at {offset}", entry.name),
            None => refused += 1,
        }
    }
    assert!(refused > 50, "only {refused} changes were noticed");
}

#[test]
fn arbitrary_files_are_refused_or_read_but_never_a_panic() {
    for seed in 1..=300 {
        let mut random = Random::from_seed(seed);
        let (disk, _) = written(seed % 3);
        for entry in disk.list(Path::new(DIRECTORY)).expect("a whole disk") {
            if entry.length == 0 || random.chance(60) {
                continue;
            }
            for _ in 0..random.within(1..40) {
                let offset = random.within(0..entry.length.min(9000)) as usize;
                let path = Path::new(DIRECTORY).join(&entry.name);
                disk.damage(&path, offset, random.draw() as u8);
            }
        }
        reopened(&disk, seed);
    }
}
