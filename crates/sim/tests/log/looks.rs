//! A reader's look at the directory, with another process at work between any two of its steps.

use crate::harness::{DIRECTORY, Ledger, Process, options, read_all, try_open};
use crate::rivals::lead_against;
use base::Sequence;
use base::disk::Disk;
use bytes::Bytes;
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::{Arc, Mutex};
use txlog::{FileLog, LogEvent, TransactionLog};

/// More operations than one look takes.
const OPERATIONS_MAX: u64 = 40;

/// Longer than a reader goes without a survey, in nanoseconds.
const LONG_NANOS: u64 = 300_000_000;

struct Reader {
    log: FileLog,
    timeline: Timeline,
    read: Vec<(Sequence, Bytes)>,
}

impl Reader {
    fn start(disk: &SimDisk) -> Self {
        let timeline = Timeline::new();
        let (mut log, recovery) =
            try_open(disk, &timeline, 2, options(2)).expect("the log is whole");
        log.read_from(recovery.tail.at(Sequence(1)));
        let mut reader = Self { log, timeline, read: Vec::new() };
        reader.follow();
        reader
    }

    /// Looks some times.
    fn follow(&mut self) {
        for _ in 0..40 {
            self.timeline.pass(10_000_000);
            let mut events = Vec::new();
            self.log.poll(&mut events);
            for event in events {
                match event {
                    LogEvent::Read(position, bytes) => self.read.push((position.sequence, bytes)),
                    LogEvent::CaughtUp(_) => {}
                    other => panic!("{other:?}"),
                }
            }
        }
    }
}

/// A writer with records, and a reader that has them all.
fn pair(disk: &SimDisk, seed: u64) -> (Process, Reader, Random) {
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut writer =
        Process::start(disk, seed, options(7), &mut ledger).expect("the disk is whole");
    writer.run(&mut random, 4, &mut ledger);
    let reader = Reader::start(disk);
    assert_eq!(reader.read.last().map(|(at, _)| *at), Some(writer.durable));
    (writer, reader, random)
}

fn append(writer: &mut Process, random: &mut Random, records: u32) {
    let mut ledger = Ledger::default();
    for _ in 0..records {
        writer.append_data(random, &mut ledger);
        writer.log.drain();
        writer.poll(&mut ledger);
    }
}

/// Runs `work` before the `at`th operation of the reader's next look, which begins with a survey if
/// it comes late.
fn look_during(
    disk: &SimDisk,
    reader: &mut Reader,
    at: u64,
    is_late: bool,
    work: impl FnOnce() + Send + 'static,
) {
    if is_late {
        reader.timeline.pass(LONG_NANOS);
    }
    disk.interrupt(at, Box::new(work));
    reader.follow();
}

#[test]
fn a_reader_finds_its_place_though_the_writer_begins_segments_during_a_look() {
    for (at, is_late) in (1..=OPERATIONS_MAX).flat_map(|at| [(at, false), (at, true)]) {
        let disk = SimDisk::new(at);
        let (mut writer, mut reader, mut random) = pair(&disk, at);
        let found = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&found);
        look_during(&disk, &mut reader, at, is_late, move || {
            append(&mut writer, &mut random, 60);
            let all = read_all(&writer.log).expect("the log is whole").0;
            *slot.lock().expect("no holder panicked") = Some((all, writer));
        });
        let (all, _writer) =
            found.lock().expect("no holder panicked").take().expect("a look has so many steps");
        assert!(all.len() > 60, "{} records", all.len());
        assert!(reader.read == all, "operation {at}: the reader has something else");
    }
}

/// The old writer, deposed between two commits, leaves a record in its segment that counts for
/// nobody, where the new one's stands.
#[test]
fn a_reader_never_sees_what_a_deposed_writer_did_not_count() {
    for (at, is_late) in (1..=OPERATIONS_MAX).flat_map(|at| [(at, false), (at, true)]) {
        let disk = SimDisk::new(at);
        let (mut old, mut reader, mut random) = pair(&disk, at);
        let found = Arc::new(Mutex::new(None));
        let (slot, other) = (Arc::clone(&found), disk.clone());
        look_during(&disk, &mut reader, at, is_late, move || {
            let (led, rival) = (Arc::new(Mutex::new(None)), other.clone());
            let (inner, seed) = (Arc::clone(&led), at + 1000);
            let challenge = move || {
                *inner.lock().expect("no holder panicked") = Some(lead_against(&rival, seed));
            };
            other.interrupt(1, Box::new(challenge));
            append(&mut old, &mut random, 1);
            assert!(!old.failures.is_empty(), "the old writer was not deposed");
            let led = led.lock().expect("no holder panicked").take();
            let (_, mut new) = led.expect("a commit has steps").expect("the challenger leads");
            append(&mut new, &mut random, 5);
            let all = read_all(&new.log).expect("the log is whole").0;
            *slot.lock().expect("no holder panicked") = Some((all, old, new));
        });
        let (all, _old, _new) =
            found.lock().expect("no holder panicked").take().expect("a look has so many steps");
        assert!(reader.read == all, "operation {at}: the reader has something else");
    }
}

#[test]
fn a_reader_that_keeps_up_keeps_no_segment_in_memory_that_is_full() {
    let disk = SimDisk::new(3);
    let (mut writer, mut reader, mut random) = pair(&disk, 3);
    for _ in 0..100 {
        append(&mut writer, &mut random, 1);
        reader.follow();
    }
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
    let segments = entries.iter().filter(|entry| entry.name.ends_with(".segment")).count() as u64;
    assert!(segments > 2, "{entries:?}");
    assert_eq!(disk.released(), segments - 1);
}
