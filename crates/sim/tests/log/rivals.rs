//! Several processes on one directory: claims, seals, and deposed writers.

use crate::harness::{DIRECTORY, Ledger, Process, options, read_all, try_open};
use base::disk::Disk;
use base::{Sequence, UnixMillis};
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::{Arc, Mutex};
use txlog::{AppendError, LogEvent, Stamper, TransactionLog, WriterId};

/// Opens as a second process, reads everything, and leads. Returns what it found.
fn challenge(disk: &SimDisk, seed: u64) -> Result<Vec<(Sequence, bytes::Bytes)>, String> {
    lead_against(disk, seed).map(|(records, _)| records)
}

/// Like [`challenge`]; the second process lives on.
pub fn lead_against(
    disk: &SimDisk,
    seed: u64,
) -> Result<(Vec<(Sequence, bytes::Bytes)>, Process), String> {
    let timeline = Timeline::new();
    let (mut log, recovery) =
        try_open(disk, &timeline, seed, options(seed)).map_err(|error| error.to_string())?;
    if recovery.is_writer {
        return Err("the log was taken from a live process without a Lead".to_owned());
    }
    let mut at = recovery.tail;
    // A Lead at a tail that is too old is a conflict; the next attempt has read the rest.
    for _ in 0..3 {
        let (records, follower) = read_all(&log)?;
        let mut stamper = Stamper::new(WriterId(seed), follower.chain(), UnixMillis(0));
        let ticket = log.append(at, stamper.lead(1000, &[], UnixMillis(1), at.sequence));
        log.drain();
        let mut events = Vec::new();
        log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Durable(at) => {
                    let (durable, failures) = (at.sequence, Vec::new());
                    let process =
                        Process { log, timeline, stamper, at, durable, failures, trims: true };
                    return Ok((records, process));
                }
                LogEvent::Failed(of, AppendError::Conflict { tail }) if of == ticket => at = tail,
                other => return Err(format!("{other:?}")),
            }
        }
    }
    Err("three conflicts in a row".to_owned())
}

#[test]
fn a_challenger_at_any_instant_of_a_commit_finds_what_was_acknowledged() {
    for seed in 1..=6 {
        for at in 1..=60 {
            interrupted(seed, at);
        }
    }
}

fn interrupted(seed: u64, at: u64) {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut process =
        Process::start(&disk, seed, options(7), &mut ledger).expect("the disk is whole");
    process.run(&mut random, 4, &mut ledger);
    let found = Arc::new(Mutex::new(None));
    let (slot, other) = (Arc::clone(&found), disk.clone());
    let work =
        move || *slot.lock().expect("no holder panicked") = Some(challenge(&other, seed + 1000));
    disk.interrupt(at, Box::new(work));
    for _ in 0..30 {
        if !process.failures.is_empty() {
            break;
        }
        process.append_data(&mut random, &mut ledger);
        process.log.commit_inline();
        process.log.drain();
        process.poll(&mut ledger);
    }
    let outcome = found
        .lock()
        .expect("no holder panicked")
        .take()
        .expect("the run has more operations than that");
    let records = outcome.unwrap_or_else(|error| panic!("seed {seed}, operation {at}: {error}"));
    assert_eq!(process.failures.first(), Some(&AppendError::InDoubt));
    let place = format!("seed {seed}, operation {at}");
    ledger.check(Sequence(1), &records).unwrap_or_else(|error| panic!("{place}: {error}"));
    // The third process finds the same, and the challenger's Lead behind it.
    drop(process);
    disk.kill_process();
    let timeline = Timeline::new();
    let (log, recovery) = try_open(&disk, &timeline, 5, options(5)).expect("the log is whole");
    assert!(recovery.is_writer);
    let (all, _) = read_all(&log).unwrap_or_else(|error| panic!("{place}: {error}"));
    assert_eq!(all[..records.len()], records);
    assert_eq!(all.len(), records.len() + 1, "{place}");
}

#[test]
fn trimming_what_sealed_a_deposed_writer_does_not_bring_its_segments_back() {
    let mut superseded = 0;
    for seed in 1..=4 {
        for at in 1..=150 {
            superseded += u32::from(trimmed_after_a_take_over(seed, at));
        }
    }
    assert!(superseded > 0, "no segment of a deposed writer was superseded as a whole");
}

/// Whether the deposed writer left a segment that begins where the challenger's first one does.
fn trimmed_after_a_take_over(seed: u64, at: u64) -> bool {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut old = Process::start(&disk, seed, options(7), &mut ledger).expect("the disk is whole");
    old.run(&mut random, 20, &mut ledger);
    let found = Arc::new(Mutex::new(None));
    let (slot, other) = (Arc::clone(&found), disk.clone());
    let work =
        move || *slot.lock().expect("no holder panicked") = Some(lead_against(&other, seed + 1000));
    disk.interrupt(at, Box::new(work));
    while old.failures.is_empty() {
        old.append_data(&mut random, &mut ledger);
        old.log.commit_inline();
        old.log.drain();
        old.poll(&mut ledger);
    }
    let (_, mut new) = found
        .lock()
        .expect("no holder panicked")
        .take()
        .expect("the work was done")
        .expect("it leads");
    drop(old);
    let firsts: Vec<String> = segments(&disk);
    let is_superseded = firsts.windows(2).any(|pair| pair[0] == pair[1]);
    new.run(&mut random, 60, &mut Ledger::default());
    new.trim(Sequence(new.durable.0), &mut Ledger::default());
    new.log.drain();
    drop(new);
    disk.cut_power();
    disk.restart();
    assert_eq!(segments(&disk).len(), 1, "seed {seed}, operation {at}");
    let (log, _) = try_open(&disk, &Timeline::new(), 5, options(5)).expect("the log is whole");
    read_all(&log).unwrap_or_else(|error| panic!("seed {seed}, operation {at}: {error}"));
    is_superseded
}

/// The first sequence of each segment, as its name has it.
fn segments(disk: &SimDisk) -> Vec<String> {
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk").into_iter();
    let names = entries.map(|entry| entry.name).filter(|name| name.ends_with(".segment"));
    names.map(|name| name[..20].to_owned()).collect()
}

#[test]
fn a_take_over_leaves_nothing_of_dead_writers() {
    let disk = SimDisk::new(8);
    let mut random = Random::from_seed(8);
    let mut ledger = Ledger::default();
    for life in 1..=5 {
        let mut process =
            Process::start(&disk, life, options(life), &mut ledger).expect("the disk is whole");
        let names = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
        let ending = |end: &str| names.iter().filter(|entry| entry.name.ends_with(end)).count();
        assert_eq!((ending(".claim"), ending(".tmp")), (1, 0), "{names:?}");
        process.run(&mut random, 6, &mut ledger);
        drop(process);
        disk.kill_process();
    }
}

#[test]
fn a_deposed_writer_never_counts_again() {
    let disk = SimDisk::new(9);
    let mut random = Random::from_seed(9);
    let mut ledger = Ledger::default();
    let mut old = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    old.run(&mut random, 4, &mut ledger);
    challenge(&disk, 2).expect("nobody else challenges");
    let durable = old.durable;
    for _ in 0..3 {
        old.append_data(&mut random, &mut ledger);
        old.log.drain();
        old.poll(&mut ledger);
    }
    let expected = [AppendError::InDoubt, AppendError::NotAttempted, AppendError::NotAttempted];
    assert_eq!(old.failures, expected);
    assert_eq!(old.durable, durable);
}

#[test]
fn a_writer_whose_directory_was_deleted_says_so() {
    let disk = SimDisk::new(4);
    let mut random = Random::from_seed(4);
    let mut ledger = Ledger::default();
    let mut process = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    process.run(&mut random, 4, &mut ledger);
    disk.remove_all();
    process.append_data(&mut random, &mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    assert_eq!(process.failures, [AppendError::LogLost]);
}

#[test]
fn a_reader_in_another_process_follows_the_mark() {
    let disk = SimDisk::new(5);
    let mut random = Random::from_seed(5);
    let mut ledger = Ledger::default();
    let mut writer = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    writer.run(&mut random, 4, &mut ledger);
    let timeline = Timeline::new();
    let (mut reader, recovery) =
        try_open(&disk, &timeline, 2, options(2)).expect("the log is whole");
    reader.read_from(recovery.tail.at(Sequence(1)));
    let mut read = Vec::new();
    for _ in 0..40 {
        writer.append_data(&mut random, &mut ledger);
        writer.log.drain();
        writer.poll(&mut ledger);
        timeline.pass(10_000_000);
        let mut events = Vec::new();
        reader.poll(&mut events);
        timeline.pass(10_000_000);
        reader.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Read(position, bytes) => read.push((position.sequence, bytes)),
                LogEvent::CaughtUp(position) => assert!(position.sequence <= writer.durable),
                other => panic!("{other:?}"),
            }
        }
    }
    let (all, _) = read_all(&writer.log).expect("the log is whole");
    assert!(read.len() + 2 >= all.len(), "{} of {}", read.len(), all.len());
    assert_eq!(read[..], all[..read.len()]);
}
