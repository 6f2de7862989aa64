//! Files that are taken away from under their writer: removed, moved, or replaced by a copy.

use crate::harness::{DIRECTORY, Ledger, Process, options};
use base::disk::Disk;
use sim::disk::SimDisk;
use sim::random::Random;
use std::path::{Path, PathBuf};
use txlog::{AppendError, FileOptions, Gate, Refusal, TransactionLog};

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

#[test]
#[should_panic(expected = "acknowledged into a file without a name")]
fn a_writer_that_does_not_look_for_its_segment_is_caught() {
    let options = FileOptions { writes_nameless: true, ..options(7) };
    let (_, ledger) = write_on(options, ".segment", TAKEN[0]);
    assert_eq!(ledger.kept(), 1, "acknowledged into a file without a name");
}
