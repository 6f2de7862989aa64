//! Power cuts and failed syncs at every sync point.

use crate::harness::{DIRECTORY, Ledger, Process, options};
use base::disk::Disk;
use sim::disk::{Faults, SimDisk};
use sim::random::Random;
use std::path::Path;
use txlog::{AppendError, FileOptions, Gate, Refusal, TransactionLog};

const TURNS: u32 = 40;

/// Runs three lives: the first and the second end with a fault, the third finds what they left.
fn survive(
    seed: u64,
    options: &FileOptions,
    first: Faults,
    second: Faults,
) -> Result<usize, String> {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    for (life, faults) in [first, second, Faults::default()].into_iter().enumerate() {
        let capacity_bytes = None;
        disk.set_faults(Faults { capacity_bytes, ..faults });
        let mut options = options.clone();
        options.entropy = random.draw();
        match Process::start(&disk, random.draw(), options, &mut ledger) {
            Ok(mut process) => {
                process.trims = true;
                process.run(&mut random, TURNS, &mut ledger);
            }
            Err(error) if life == 2 => return Err(error),
            Err(_) if disk.is_off() || faults.fail_sync.is_some() => {}
            Err(error) => return Err(error),
        }
        // After a failed sync the process is restarted and the machine may go on.
        if faults.fail_sync.is_none() || random.chance(50) {
            disk.cut_power();
        }
        disk.restart();
    }
    let last = Process::start(&disk, 99, options.clone(), &mut ledger)?;
    drop(last);
    Ok(ledger.kept())
}

fn cut(at: u64) -> Faults {
    Faults { cut_at_sync: Some(at), ..Faults::default() }
}

fn fail(at: u64) -> Faults {
    Faults { fail_sync: Some(at), ..Faults::default() }
}

fn syncs_of_one_life(seed: u64) -> u64 {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut process = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    process.trims = true;
    process.run(&mut random, TURNS, &mut ledger);
    assert!(process.failures.is_empty(), "{:?}", process.failures);
    assert!(ledger.kept() > 20, "the run wrote {} records", ledger.kept());
    disk.syncs()
}

#[test]
fn acknowledged_records_survive_a_power_cut_at_every_sync_point() {
    for seed in 1..=8 {
        let syncs = syncs_of_one_life(seed);
        for at in 1..=syncs {
            let second = cut(at + 1 + (at * seed) % 12);
            let survived = survive(seed, &options(0), cut(at), second);
            survived.unwrap_or_else(|error| panic!("seed {seed}, sync {at}: {error}"));
        }
    }
}

#[test]
fn acknowledged_records_survive_a_failed_sync_at_every_sync_point() {
    for seed in 1..=4 {
        let syncs = syncs_of_one_life(seed);
        for at in 1..=syncs {
            let second = if at % 2 == 0 { cut(at + 9) } else { fail(at + 7) };
            let survived = survive(seed, &options(0), fail(at), second);
            survived.unwrap_or_else(|error| panic!("seed {seed}, sync {at}: {error}"));
        }
    }
}

#[test]
fn a_log_that_acknowledges_before_it_syncs_is_caught() {
    let mut broken = options(0);
    broken.acknowledges_before_sync = true;
    let caught = (1..=60).any(|at| survive(1, &broken, cut(at), cut(at + 5)).is_err());
    assert!(caught, "the crash test does not notice a missing sync");
}

#[test]
fn a_disk_that_lies_about_syncs_is_caught() {
    let lying = |at| Faults { lies_about_sync: true, ..cut(at) };
    let caught = (10..=40).any(|at| survive(2, &options(0), lying(at), cut(1000)).is_err());
    assert!(caught, "the crash test does not notice a stubbed sync");
}

/// What is found of a log after a loss of power, whose directories `prepare` may have made.
fn after_a_cut(seed: u64, prepare: impl FnOnce(&SimDisk)) -> Result<(), String> {
    let disk = SimDisk::new(seed);
    prepare(&disk);
    let mut ledger = Ledger::default();
    let mut process = Process::start(&disk, 1, options(7), &mut ledger)?;
    process.run(&mut Random::from_seed(seed), 3, &mut ledger);
    assert!(ledger.kept() > 0, "nothing was acknowledged");
    drop(process);
    disk.cut_power();
    disk.restart();
    Process::start(&disk, 2, options(8), &mut ledger).map(drop)
}

#[test]
fn a_log_stays_in_reach_through_a_loss_of_power() {
    for seed in 0..50 {
        after_a_cut(seed, |_| {}).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
    }
}

#[test]
fn directories_whose_names_are_not_durable_take_a_log_with_them() {
    // As a program that makes several levels at once and syncs none.
    let make = |disk: &SimDisk| {
        disk.create_directory(Path::new(DIRECTORY)).expect("the disk is whole");
    };
    assert!((0..50).any(|seed| after_a_cut(seed, make).is_err()), "or nothing is shown above");
}

#[test]
fn a_failed_sync_is_fatal_and_never_retried() {
    let disk = SimDisk::new(3);
    let mut random = Random::from_seed(3);
    let mut ledger = Ledger::default();
    let mut process = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    process.run(&mut random, 5, &mut ledger);
    disk.set_faults(fail(disk.syncs() + 1));
    let kept = ledger.kept();
    process.append_data(&mut random, &mut ledger);
    assert!(process.log.commit_inline());
    process.append_data(&mut random, &mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    assert!(matches!(process.failures[0], AppendError::Fatal(_)));
    assert!(matches!(process.failures[1], AppendError::Fatal(_)));
    assert!(matches!(process.log.gate(), Gate::Refuse(Refusal::Failed(_))));
    assert_eq!(ledger.kept(), kept);
}
