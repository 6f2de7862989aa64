//! Tests of a log whose writer's files are taken away from under it: removed, moved, or replaced by
//! a copy. It must notice before it acknowledges anything more.

use crate::harness::{DIRECTORY, Ledger, Process, options, read_all, try_open};
use base::disk::Disk;
use base::{Position, Sequence, UnixMillis};
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use txlog::{AppendError, FileLog, FileOptions, Gate, Refusal, Stamper, TransactionLog, WriterId};

fn newest(disk: &SimDisk, kind: &str) -> PathBuf {
    let entries = disk.list(Path::new(DIRECTORY)).expect("the log is there");
    let newest = entries.into_iter().rfind(|entry| entry.name.ends_with(kind));
    Path::new(DIRECTORY).join(newest.expect("a writer has one").name)
}

/// What an operator or a cleaning job does to a file.
const TAKEN: [fn(&SimDisk, &Path); 3] = [
    |disk, path| disk.remove(path).expect("it is there"),
    |disk, path| disk.rename(path, Path::new("/data/log/away")).expect("it is there"),
    |disk, path| {
        let file = disk.open_read(path).expect("it is there");
        let mut bytes = vec![0; file.length().expect("it has one") as usize];
        file.read_at(0, &mut bytes).expect("it can be read");
        disk.remove(path).expect("it is there");
        let copy = disk.create_new(path).expect("the name is free");
        copy.write_at(0, &bytes).expect("it can be written");
    },
];

/// A writer with an acknowledged record, one of whose files is taken away before the next.
fn write_on(options: FileOptions, kind: &str, take: fn(&SimDisk, &Path)) -> (Process, Ledger) {
    let disk = SimDisk::new(1);
    let mut ledger = Ledger::default();
    let mut writer = Process::start(&disk, 1, options, &mut ledger).expect("the disk is whole");
    writer.lead(&mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    assert_eq!(writer.failures, []);
    take(&disk, &newest(&disk, kind));
    writer.append_data(&mut Random::from_seed(2), &mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    (writer, ledger)
}

#[test]
fn nothing_is_acknowledged_into_a_file_without_its_name() {
    for kind in [".segment", ".claim"] {
        for take in TAKEN {
            let (writer, ledger) = write_on(options(7), kind, take);
            assert_eq!(writer.failures, [AppendError::LogLost]);
            assert_eq!(writer.log.gate(), Gate::Refuse(Refusal::LogLost));
            assert_eq!(ledger.kept(), 1, "the Lead, which was durable before");
        }
    }
}

fn nameless() -> FileOptions {
    FileOptions { writes_nameless: true, ..options(7) }
}

#[test]
fn a_writer_that_does_not_look_for_its_files_is_caught() {
    for kind in [".segment", ".claim"] {
        for take in TAKEN {
            let (_, ledger) = write_on(nameless(), kind, take);
            assert_eq!(ledger.kept(), 2, "acknowledged into a file without a name");
        }
    }
}

/// Opens a log whose writers are dead, as far as claims show, and its end.
fn take_over(disk: &SimDisk, seed: u64) -> (FileLog, Position) {
    let opened = try_open(disk, &Timeline::new(), seed, options(seed));
    let (log, found) = opened.expect("the log is whole");
    assert!(found.is_writer, "no claim shows that its writer lives");
    (log, found.tail)
}

/// A writer stands still before the `at`th step of a commit. Meanwhile its claim is tidied away,
/// another process leads and dies, and a third one finds no claim but that dead one, and removes
/// it. Whether the third one finds everything that was acknowledged.
fn stands_still(options: FileOptions, at: u64) -> Result<(), String> {
    let disk = SimDisk::new(at);
    let mut ledger = Ledger::default();
    let mut writer = Process::start(&disk, 1, options, &mut ledger)?;
    writer.lead(&mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    let (led, others) = (Arc::new(Mutex::new(None)), disk.clone());
    let (slot, claim) = (Arc::clone(&led), newest(&disk, ".claim"));
    let work = move || {
        others.remove(&claim).expect("it is there");
        let (mut second, tail) = take_over(&others, 2);
        let (_, follower) = read_all(&second).expect("the log is whole");
        let mut stamper = Stamper::new(WriterId(2), follower.chain(), UnixMillis(0));
        second.append(tail, stamper.lead(1000, &[], UnixMillis(1), tail.sequence));
        second.drain();
        drop(second);
        *slot.lock().expect("no holder panicked") = Some(take_over(&others, 3).0);
    };
    disk.interrupt(at, Box::new(work));
    writer.append_data(&mut Random::from_seed(2), &mut ledger);
    writer.log.drain();
    writer.poll(&mut ledger);
    let third = led.lock().expect("no holder panicked").take();
    let third = third.ok_or("the commit has fewer steps than that")?;
    let (mut records, _) = read_all(&third)?;
    // The second one's Lead.
    records.pop();
    ledger.check(Sequence(1), &records)
}

/// Steps of a commit: the write, the sync, the looks, the mark.
const COMMIT_STEPS: u64 = 4;

#[test]
fn a_writer_whose_claim_was_tidied_away_counts_nothing_that_others_did_not_find() {
    for at in 1..=COMMIT_STEPS {
        stands_still(options(7), at).unwrap_or_else(|what| panic!("step {at}: {what}"));
    }
}

#[test]
fn a_writer_that_does_not_look_for_its_claim_loses_what_it_acknowledged() {
    let lost = |at| stands_still(nameless(), at).is_err_and(|what| what.contains("acknowledged"));
    assert!((1..=COMMIT_STEPS).any(lost), "a look that is left out goes unnoticed");
}
