//! A full disk, damage, trimming, and logs that are not the one known.

use crate::harness::{DIRECTORY, Ledger, Process, options, read_all, try_open};
use base::disk::Disk;
use base::{Incarnation, Position, Sequence};
use sim::disk::{Faults, SimDisk};
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use txlog::file::inspect;
use txlog::{FileOptions, Gate, LogError, LogEvent, Refusal, TransactionLog};

fn written(seed: u64, turns: u32) -> (SimDisk, Random, Ledger, Process) {
    let disk = SimDisk::new(seed);
    let mut random = Random::from_seed(seed);
    let mut ledger = Ledger::default();
    let mut process =
        Process::start(&disk, seed, options(7), &mut ledger).expect("the disk is whole");
    process.run(&mut random, turns, &mut ledger);
    (disk, random, ledger, process)
}

#[test]
fn a_full_disk_closes_the_gate_before_execution_and_opens_it_when_space_is_back() {
    let (disk, mut random, mut ledger, mut process) = written(1, 3);
    let capacity_bytes = Some(disk.used_bytes() + 5_000);
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let mut refused = false;
    for _ in 0..500 {
        match process.log.gate() {
            Gate::Open => process.append_data(&mut random, &mut ledger),
            Gate::Wait => {}
            Gate::Refuse(refusal) => {
                assert_eq!(refusal, Refusal::DiskFull);
                refused = true;
                break;
            }
        }
        process.timeline.pass(300_000);
        process.poll(&mut ledger);
    }
    assert!(refused, "the disk never filled up");
    process.log.drain();
    process.poll(&mut ledger);
    assert_eq!(process.durable, process.at.sequence, "what was executed became durable");
    assert!(process.failures.is_empty(), "{:?}", process.failures);
    disk.set_faults(Faults::default());
    for _ in 0..4 {
        process.timeline.pass(400_000_000);
        process.poll(&mut ledger);
    }
    assert_eq!(process.log.gate(), Gate::Open);
    process.append_data(&mut random, &mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    assert_eq!(process.durable, process.at.sequence);
}

#[test]
fn who_reads_the_log_keeps_no_segment_in_memory_that_he_has_read() {
    let (disk, _, _, process) = written(3, 60);
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
    let segments = entries.iter().filter(|entry| entry.name.ends_with(".segment")).count() as u64;
    assert!(segments > 2, "{entries:?}");
    let before = disk.released();
    read_all(&process.log).expect("it is whole");
    assert_eq!(disk.released() - before, segments - 1, "all but the one that is being written");
}

/// Names of files that are being prepared.
fn spares(disk: &SimDisk) -> usize {
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
    entries.iter().filter(|entry| entry.name.starts_with("spare-")).count()
}

/// A run in which one write finds no space over bytes that are there. Whether that harmed nothing;
/// `None` if the run ended before it.
fn run_with_full_write(write: u64) -> Option<bool> {
    let disk = SimDisk::new(5);
    let mut random = Random::from_seed(5);
    let mut ledger = Ledger::default();
    let start = Process::start(&disk, 5, options(5), &mut ledger);
    let mut process = start.expect("the disk is whole");
    let at = disk.writes() + write;
    disk.set_faults(Faults { full_at_write: Some(at), ..Faults::default() });
    process.run(&mut random, 40, &mut ledger);
    if !process.failures.is_empty() {
        // The mark could not be published: final, and what was acknowledged is there.
        drop(process);
        disk.kill_process();
        Process::start(&disk, 6, options(6), &mut ledger).expect("the log is whole");
        return Some(false);
    }
    // What comes next is written, and told of, as if nothing had been.
    process.append_data(&mut random, &mut ledger);
    for _ in 0..4 {
        process.timeline.pass(400_000_000);
        process.poll(&mut ledger);
        process.log.drain();
    }
    process.poll(&mut ledger);
    if !process.failures.is_empty() {
        return Some(false);
    }
    assert_eq!(process.durable, process.at.sequence, "write {write}");
    let (records, _) = read_all(&process.log).expect("the log is whole");
    assert_eq!(records.len() as u64, process.at.sequence.0, "write {write}: a segment is missed");
    assert!(spares(&disk) <= 1, "write {write}: a file is left behind");
    (disk.writes() >= at).then_some(true)
}

#[test]
fn a_write_that_finds_no_space_over_its_own_bytes_loses_sight_of_no_segment() {
    let mut harmless = 0;
    let mut write = 1;
    while let Some(is_harmless) = run_with_full_write(write) {
        harmless += u32::from(is_harmless);
        write += 1;
    }
    assert!(harmless > 15, "{harmless} of {write}");
}

#[test]
fn a_log_on_a_full_disk_opens_for_reads_and_takes_writes_when_space_is_back() {
    let (disk, mut random, mut ledger, process) = written(7, 8);
    drop(process);
    disk.kill_process();
    let capacity_bytes = Some(disk.used_bytes() + 10_000);
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    let mut process = Process::start(&disk, 2, options(2), &mut ledger).expect("the disk is whole");
    // Taking over freed what the dead writer had reserved; something else fills the disk.
    let capacity_bytes = Some(disk.used_bytes());
    disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
    for _ in 0..3 {
        process.poll(&mut ledger);
        process.timeline.pass(1_000_000);
    }
    assert_eq!(process.log.gate(), Gate::Refuse(Refusal::DiskFull));
    process.lead(&mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    assert_eq!(process.durable, process.at.sequence, "leadership needs little space");
    disk.set_faults(Faults::default());
    for _ in 0..4 {
        process.timeline.pass(400_000_000);
        process.poll(&mut ledger);
    }
    assert_eq!(process.log.gate(), Gate::Open);
    process.append_data(&mut random, &mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    assert_eq!((process.durable, process.failures.len()), (process.at.sequence, 0));
}

#[test]
fn a_start_without_any_space_says_so_and_harms_nothing() {
    let (disk, _, mut ledger, process) = written(8, 8);
    drop(process);
    disk.kill_process();
    for spared in [0, 100, 600, 4_000] {
        let capacity_bytes = Some(disk.used_bytes() + spared);
        disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
        match try_open(&disk, &Timeline::new(), 2 + spared, options(2 + spared)) {
            Err(error @ LogError::Io { .. }) => {
                let text = error.to_string();
                assert!(text.contains("/data/log") && text.contains("disk is full"), "{text}");
            }
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("there is no space for a claim and a segment in {spared} bytes"),
        }
        disk.kill_process();
    }
    disk.set_faults(Faults::default());
    // The start holds everything that was acknowledged against what it finds.
    Process::start(&disk, 9, options(9), &mut ledger).expect("there is space again");
}

#[test]
fn a_log_that_is_known_and_not_there_is_lost_and_none_is_begun() {
    let disk = SimDisk::new(1);
    let mut options = options(1);
    options.known = Some(Position { incarnation: Incarnation(1), sequence: Sequence(7) });
    for _ in 0..2 {
        let opened = try_open(&disk, &Timeline::new(), 1, options.clone());
        assert!(matches!(opened, Err(LogError::Lost(_))));
        assert!(disk.list(Path::new(DIRECTORY)).is_err(), "nothing is made in its place");
    }
}

fn newest_segment(disk: &SimDisk) -> PathBuf {
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
    let name =
        entries.iter().rfind(|entry| entry.name.ends_with(".segment")).expect("there is a segment");
    Path::new(DIRECTORY).join(&name.name)
}

#[test]
fn damage_below_the_durable_mark_refuses_to_start_and_says_where() {
    let (disk, _, _, process) = written(2, 3);
    drop(process);
    disk.kill_process();
    // The header's page, the frame, then the record's first payload byte.
    let path = newest_segment(&disk);
    disk.damage(&path, 4096 + 16 + 64, 0x40);
    let timeline = Timeline::new();
    match try_open(&disk, &timeline, 1, options(1)).err().expect("the log is damaged") {
        LogError::Damaged { file, offset, sequence, .. } => {
            assert_eq!((file, offset), (path, 4096));
            assert!(sequence.is_some());
        }
        other => panic!("{other}"),
    }
}

#[test]
fn damage_is_found_without_the_published_mark_by_what_later_records_say() {
    let (disk, _, _, process) = written(2, 6);
    drop(process);
    disk.kill_process();
    let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
    for entry in entries.iter().filter(|entry| entry.name.ends_with(".claim")) {
        // The mark's checksum no longer fits: as if it had never been written.
        disk.damage(&Path::new(DIRECTORY).join(&entry.name), 512 + 24, 0xff);
    }
    let path = newest_segment(&disk);
    disk.damage(&path, 4096 + 3, 0x01);
    let timeline = Timeline::new();
    let error = try_open(&disk, &timeline, 1, options(1)).err().expect("the log is damaged");
    assert!(matches!(&error, LogError::Damaged { offset: 4096, .. }), "{error}");
}

#[test]
fn trimming_forgets_whole_segments_and_never_the_newest() {
    let (disk, mut random, mut ledger, mut process) = written(3, 60);
    let segments = |disk: &SimDisk| {
        let entries = disk.list(Path::new(DIRECTORY)).expect("a whole disk");
        entries.iter().filter(|entry| entry.name.ends_with(".segment")).count()
    };
    assert!(segments(&disk) > 2, "{} segments", segments(&disk));
    process.log.trim(process.at);
    process.log.drain();
    assert_eq!(segments(&disk), 1);
    assert!(matches!(process.log.replay(Sequence(1)), Err(LogError::Trimmed { .. })));
    process.append_data(&mut random, &mut ledger);
    process.log.drain();
    process.poll(&mut ledger);
    drop(process);
    disk.cut_power();
    disk.restart();
    let timeline = Timeline::new();
    let (log, recovery) = try_open(&disk, &timeline, 3, options(3)).expect("the log is whole");
    assert!(recovery.first.sequence > Sequence(1));
    let mut replay = log.replay(recovery.first.sequence).expect("the log begins there");
    let mut last = None;
    while let Some((position, _)) = replay.next_record().expect("no record is damaged") {
        last = Some(position);
    }
    assert_eq!(last, Some(recovery.tail));
}

#[test]
fn a_reader_that_trimming_overtakes_is_told_and_meets_no_gap() {
    let (disk, _, _, mut process) = written(3, 60);
    let options =
        FileOptions { may_write: false, shows_itself: false, piece_bytes_max: 1, ..options(9) };
    let timeline = Timeline::new();
    let (mut reader, recovery) =
        try_open(&disk, &timeline, 9, options).expect("the log can be read");
    reader.read_from(recovery.first);
    let (mut events, mut next) = (Vec::new(), recovery.first.sequence);
    for round in 0..1000 {
        if round == 3 {
            process.log.trim(process.at);
            process.log.drain();
        }
        timeline.pass(1_000_000_000);
        reader.poll(&mut events);
        for event in events.drain(..) {
            match event {
                LogEvent::Read(position, _) => {
                    assert_eq!(position.sequence, next, "without a gap");
                    next = next.next();
                }
                LogEvent::Trimmed { first } => {
                    assert!(first > next && round >= 3, "{first} behind {next}");
                    return;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    panic!("it was never told");
}

#[test]
fn a_log_that_is_not_the_one_known_is_lost() {
    let (disk, _, _, process) = written(4, 3);
    let at = process.at;
    drop(process);
    let timeline = Timeline::new();
    let open = |known: Position| {
        let mut options = options(4);
        options.known = Some(known);
        try_open(&disk, &timeline, 4, options)
    };
    let elsewhere = Position { incarnation: Incarnation(1), sequence: Sequence(1) };
    assert!(matches!(open(elsewhere), Err(LogError::Lost(_))));
    assert!(matches!(open(at.next()), Err(LogError::Lost(_))));
    let (log, _) = open(at).expect("the log reaches that far");
    assert_eq!(read_all(&log).expect("the log is whole").0.len() as u64, at.sequence.0);
}

#[test]
fn inspecting_shows_everything_and_changes_nothing() {
    let (disk, _, _, process) = written(6, 10);
    let (all, _) = read_all(&process.log).expect("the log is whole");
    let before = (disk.syncs(), disk.list(Path::new(DIRECTORY)).expect("a whole disk"));
    let look = || {
        let inspection = inspect(Arc::new(disk.clone()), Path::new(DIRECTORY))
            .expect("the directory can be read");
        let mut replay = inspection.replay;
        let mut records = Vec::new();
        while let Some((position, bytes)) = replay.next_record().expect("no record is damaged") {
            records.push((position.sequence, bytes));
        }
        (records, inspection.damage.map(|damage| damage.to_string()))
    };
    assert_eq!(look(), (all.clone(), None));
    drop(process);
    disk.kill_process();
    disk.damage(&newest_segment(&disk), 4096 + 20, 1);
    let (records, damage) = look_at_damage(&disk);
    assert!(damage.is_some_and(|damage| damage.contains("offset 4096")));
    assert!(records < all.len());
    assert_eq!((disk.syncs(), disk.list(Path::new(DIRECTORY)).expect("a whole disk")), before);
}

fn look_at_damage(disk: &SimDisk) -> (usize, Option<String>) {
    let mut inspection =
        inspect(Arc::new(disk.clone()), Path::new(DIRECTORY)).expect("the directory can be read");
    let mut records = 0;
    while let Ok(Some(_)) = inspection.replay.next_record() {
        records += 1;
    }
    (records, inspection.damage.map(|damage| damage.to_string()))
}

#[test]
fn a_look_at_a_log_whose_writer_goes_on_meanwhile_finds_no_damage() {
    for at in 1..40 {
        let disk = SimDisk::new(9);
        let mut random = Random::from_seed(9);
        let mut ledger = Ledger::default();
        let mut process =
            Process::start(&disk, 9, options(9), &mut ledger).expect("the disk is whole");
        process.run(&mut random, 3, &mut ledger);
        // The second commit says that the first one is durable.
        let work = move || {
            for _ in 0..2 {
                process.append_data(&mut random, &mut ledger);
                process.log.drain();
                process.poll(&mut ledger);
            }
            assert!(process.failures.is_empty());
        };
        disk.interrupt(at, Box::new(work));
        let looked = inspect(Arc::new(disk.clone()), Path::new(DIRECTORY)).expect("it is whole");
        assert!(looked.damage.is_none(), "operation {at}: {:?}", looked.damage);
    }
}
