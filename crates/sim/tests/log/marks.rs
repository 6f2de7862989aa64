//! Tests of marks that are old or torn. A mark is a writer's published word of what is durable. It
//! is a lower bound and nothing more, so it never makes an intact log a lost one.

use crate::harness::{DIRECTORY, Ledger, Process, options, try_open};
use base::disk::Disk;
use base::{Position, Sequence};
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::{Path, PathBuf};
use txlog::{FileLog, FileOptions, LogError, LogEvent, TransactionLog};

/// Where a claim file holds its mark (docs/formats/log.md), and the mark's length.
const MARK_OFFSET: u64 = 512;
const MARK_BYTES: usize = 32;

/// A log of some records, its writer's tail, and its newest claim file.
fn written(disk: &SimDisk) -> (Process, Position, PathBuf) {
    let mut ledger = Ledger::default();
    let mut writer = Process::start(disk, 1, options(7), &mut ledger).expect("the disk is whole");
    writer.run(&mut Random::from_seed(1), 20, &mut ledger);
    let tail = writer.at;
    let entries = disk.list(Path::new(DIRECTORY)).expect("the log is there");
    let claim = entries.into_iter().rfind(|entry| entry.name.ends_with(".claim"));
    (writer, tail, Path::new(DIRECTORY).join(claim.expect("a writer has a claim").name))
}

fn put_mark(disk: &SimDisk, claim: &Path, bytes: [u8; MARK_BYTES]) {
    let file = disk.open_write(claim).expect("it is there");
    file.write_at(MARK_OFFSET, &bytes).expect("it can be written");
}

/// A reader that was told of a record by a snapshot.
fn reader(known: Position) -> FileOptions {
    FileOptions { may_write: false, known: Some(known), ..options(9) }
}

/// Everything that a reader is handed out within some seconds.
fn read(log: &mut FileLog, timeline: &Timeline, from: Position) -> (Sequence, Option<LogEvent>) {
    log.read_from(from);
    let mut last = Sequence(from.sequence.0 - 1);
    for _ in 0..200 {
        timeline.pass(20_000_000);
        let mut events = Vec::new();
        log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Read(position, _) => last = position.sequence,
                LogEvent::CaughtUp(position) => assert_eq!(position.sequence, last),
                other => return (last, Some(other)),
            }
        }
    }
    (last, None)
}

/// Starts beside a process that is just taking a log over, whose marks a loss of power took back,
/// and once more when that process has let it go.
fn starts_without_marks(trusts_marks: bool) {
    let disk = SimDisk::new(1);
    let (writer, tail, claim) = written(&disk);
    drop(writer);
    disk.kill_process();
    put_mark(&disk, &claim, [0; MARK_BYTES]);
    // Another process is just taking the log over: it has the lock, and no mark of its own yet.
    let other = disk.for_process();
    let lock = other.lock(&claim).expect("its holder is dead");
    for may_write in [true, false] {
        let timeline = Timeline::new();
        let options = FileOptions { may_write, trusts_marks, ..reader(tail) };
        let (mut log, found) = try_open(&disk, &timeline, 2, options).expect("the log is intact");
        assert!(!found.is_writer);
        let (last, end) = read(&mut log, &timeline, found.tail.at(Sequence(1)));
        assert_eq!((last, end), (tail.sequence, None), "it reads what a snapshot proves durable");
        drop(log);
    }
    drop(lock);
    let timeline = Timeline::new();
    let options = FileOptions { trusts_marks, ..reader(tail) };
    let (_, found) = try_open(&disk, &timeline, 3, options).expect("nobody need have led");
    assert_eq!(found.tail, tail);
}

#[test]
fn a_loss_of_power_that_takes_marks_back_loses_no_log() {
    starts_without_marks(false);
}

#[test]
#[should_panic(expected = "the log is intact")]
fn a_start_that_takes_a_mark_for_the_logs_end_is_caught() {
    starts_without_marks(true);
}

#[test]
fn a_log_that_ends_before_what_was_applied_is_lost() {
    let disk = SimDisk::new(1);
    let (writer, tail, _) = written(&disk);
    drop(writer);
    disk.kill_process();
    for may_write in [true, false] {
        let options = FileOptions { may_write, ..reader(tail.next()) };
        let error =
            try_open(&disk, &Timeline::new(), 2, options).err().expect("a record is missing");
        assert!(matches!(error, LogError::Lost(_)), "{error}");
    }
}

/// Follows a log whose writer stands still in the middle of a mark.
fn follows_past_a_torn_mark(trusts_marks: bool) {
    let disk = SimDisk::new(1);
    let (mut writer, tail, claim) = written(&disk);
    let timeline = Timeline::new();
    let options = FileOptions { trusts_marks, ..reader(tail.at(Sequence(1))) };
    let (mut log, _) = try_open(&disk, &timeline, 2, options).expect("the log is whole");
    let from = tail.at(Sequence(1));
    assert_eq!(read(&mut log, &timeline, from), (tail.sequence, None));
    put_mark(&disk, &claim, [0x5a; MARK_BYTES]);
    let (last, end) = read(&mut log, &timeline, tail.next());
    assert_eq!((last, end), (tail.sequence, None), "what was read is there");
    let mut ledger = Ledger::default();
    writer.append_data(&mut Random::from_seed(3), &mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    assert_eq!(writer.failures, []);
    assert_eq!(read(&mut log, &timeline, tail.next()), (tail.sequence.next(), None));
}

#[test]
fn a_torn_mark_is_no_news_to_who_has_read_further() {
    follows_past_a_torn_mark(false);
}

#[test]
#[should_panic(expected = "what was read is there")]
fn a_reader_that_takes_a_torn_mark_for_news_is_caught() {
    follows_past_a_torn_mark(true);
}

#[test]
fn a_log_that_loses_what_was_read_is_lost_to_its_reader() {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut writer = Process::start(&disk, 1, options(7), &mut ledger).expect("the disk is whole");
    writer.lead(&mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    let backup = disk.copy();
    writer.append_data(&mut Random::from_seed(3), &mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    let tail = writer.at;
    let timeline = Timeline::new();
    let (mut log, _) = try_open(&disk, &timeline, 2, reader(tail)).expect("the log is whole");
    let from = tail.at(Sequence(1));
    assert_eq!(read(&mut log, &timeline, from), (tail.sequence, None));
    // Its files get their earlier bytes back, under the reader.
    for entry in backup.list(Path::new(DIRECTORY)).expect("the log is there") {
        let path = Path::new(DIRECTORY).join(&entry.name);
        let mut bytes = vec![0; entry.length as usize];
        backup.open_read(&path).and_then(|it| it.read_at(0, &mut bytes)).expect("it is there");
        disk.open_write(&path).and_then(|it| it.write_at(0, &bytes)).expect("it is there");
    }
    let (last, end) = read(&mut log, &timeline, tail.next());
    assert_eq!((last, end), (tail.sequence, Some(LogEvent::Lost)));
}

#[test]
fn damage_before_what_was_applied_is_told_as_damage() {
    let disk = SimDisk::new(1);
    let (writer, tail, claim) = written(&disk);
    drop(writer);
    disk.kill_process();
    put_mark(&disk, &claim, [0; MARK_BYTES]);
    let entries = disk.list(Path::new(DIRECTORY)).expect("the log is there");
    let segment = entries.into_iter().rfind(|entry| entry.name.ends_with(".segment"));
    let segment = Path::new(DIRECTORY).join(segment.expect("a log has one").name);
    // Within its first record: behind the segment's page, the frame and the length.
    disk.damage(&segment, 4096 + 16 + 40, 1);
    for may_write in [true, false] {
        let options = FileOptions { may_write, ..reader(tail) };
        let error = try_open(&disk, &Timeline::new(), 2, options).err().expect("it is damaged");
        assert!(matches!(error, LogError::Damaged { .. }), "{error}");
    }
}
