//! Snapshots beside a log that is not the one they were taken of, though it bears its name: one of
//! the two was restored from a backup.

use super::world::{DISK_NANOS, LOG, Ledger, Life, STORE, store};
use archive::Candidate;
use base::disk::Disk;
use shard::loading::Loading;
use shard::snapshots::Pace;
use sim::disk::SimDisk;
use std::path::{Path, PathBuf};

/// Turns that an answer or a snapshot is given.
const TURNS_MAX: u32 = 20_000;

/// The files below a directory, as a tool for backups takes them.
type Backup = Vec<(PathBuf, Vec<u8>)>;

fn back_up(disk: &SimDisk, directory: &Path) -> Backup {
    let mut files = Vec::new();
    for entry in disk.list(directory).expect("it is there") {
        let path = directory.join(&entry.name);
        if entry.is_directory {
            files.extend(back_up(disk, &path));
            continue;
        }
        let mut bytes = vec![0; entry.length as usize];
        let file = disk.open_read(&path).expect("it is there");
        file.read_at(0, &mut bytes).expect("it can be read");
        files.push((path, bytes));
    }
    files
}

/// Puts these files in the place of all that are there.
fn restore(disk: &SimDisk, directory: &Path, backup: &Backup) {
    for (path, _) in back_up(disk, directory) {
        disk.remove(&path).expect("it can be removed");
    }
    for (path, bytes) in backup {
        disk.create_directory(path.parent().expect("a file is in one")).expect("it can be made");
        let file = disk.create_new(path).expect("the place is free");
        file.write_at(0, bytes).expect("it can be written");
        file.sync_data().expect("it can be synced");
    }
}

fn try_to_start(
    disk: &SimDisk,
    seed: u64,
    prepare: impl FnOnce(&mut Loading),
) -> Result<Life, String> {
    Life::start_prepared(DISK_NANOS, Pace::default(), disk, seed, prepare)
}

fn start(disk: &SimDisk, seed: u64) -> Life {
    try_to_start(disk, seed, |_| {}).expect("it starts")
}

fn refusal(disk: &SimDisk, seed: u64) -> String {
    let why = try_to_start(disk, seed, |_| {}).err().expect("it is refused");
    disk.kill_process();
    why
}

fn ask(life: &mut Life, request: &str) -> Vec<u8> {
    life.replies.clear();
    life.client.send(request.as_bytes());
    life.client.send(b"\r\n");
    for _ in 0..TURNS_MAX {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
        if life.replies.ends_with(b"\r\n") {
            return std::mem::take(&mut life.replies);
        }
    }
    panic!("{request} was never answered");
}

/// Writes so many keys, a record each.
fn write(life: &mut Life, name: &str, keys: u32) {
    for key in 0..keys {
        assert_eq!(ask(life, &format!("SET {name}:{key} value")), b"+OK\r\n");
    }
}

fn save(disk: &SimDisk, life: &mut Life) {
    let has_newest = |life: &Life| {
        let newest = life.server.core.shard.durable().sequence;
        let listed = store(disk).and_then(|store| store.list().map_err(|error| error.to_string()));
        listed.expect("it lists").iter().any(|candidate| match candidate {
            Candidate::Whole(snapshot) => snapshot.point.position.sequence == newest,
            Candidate::Damaged { .. } => false,
        })
    };
    ask(life, "BGSAVE");
    for _ in 0..TURNS_MAX {
        if has_newest(life) {
            return;
        }
        assert!(life.turn(&mut Ledger::default()));
    }
    panic!("the snapshot was never published");
}

/// Ends a life; what is on the disk stays.
fn kill(disk: &SimDisk, life: Life) {
    drop(life);
    disk.kill_process();
}

/// A log that was backed up, written to, and saved; the backup, and the snapshots.
fn backed_up(disk: &SimDisk) -> (Backup, Backup) {
    let mut life = start(disk, 1);
    write(&mut life, "base", 10);
    kill(disk, life);
    let log = back_up(disk, Path::new(LOG));
    let mut life = start(disk, 2);
    write(&mut life, "first", 60);
    save(disk, &mut life);
    kill(disk, life);
    (log, back_up(disk, Path::new(STORE)))
}

/// The backup was put back and written to, further than before, while the snapshots were away. Then
/// they came back.
fn diverged() -> SimDisk {
    let disk = SimDisk::new(1);
    let (log, snapshots) = backed_up(&disk);
    restore(&disk, Path::new(LOG), &log);
    restore(&disk, Path::new(STORE), &Backup::new());
    let mut life = start(&disk, 3);
    write(&mut life, "second", 120);
    kill(&disk, life);
    restore(&disk, Path::new(STORE), &snapshots);
    disk
}

#[test]
fn a_log_that_is_another_history_than_the_snapshots_is_refused_by_name() {
    let disk = diverged();
    for seed in 4..6 {
        let why = refusal(&disk, seed);
        assert!(why.contains("is another history") && why.contains("snapshot-"), "{why}");
    }
    // Without the snapshots it is a log like any other.
    restore(&disk, Path::new(STORE), &Backup::new());
    let mut life = start(&disk, 6);
    assert_eq!(ask(&mut life, "GET second:119"), b"$5\r\nvalue\r\n");
}

#[test]
#[should_panic(expected = "an acknowledged write is lost")]
fn a_start_that_takes_any_log_for_the_snapshots_own_is_caught() {
    let disk = diverged();
    let mut life = try_to_start(&disk, 4, Loading::join_histories).expect("it starts");
    let found = ask(&mut life, "GET second:0");
    assert_eq!(found, b"$5\r\nvalue\r\n", "an acknowledged write is lost");
}

#[test]
fn a_log_older_than_the_snapshots_is_lost_and_left_as_it_was_found() {
    let disk = SimDisk::new(2);
    let (log, _) = backed_up(&disk);
    restore(&disk, Path::new(LOG), &log);
    for seed in 4..6 {
        let why = refusal(&disk, seed);
        assert!(why.contains("was applied, the log ends at"), "{why}");
        assert!(back_up(&disk, Path::new(LOG)) == log, "nothing was written");
    }
}

#[test]
fn snapshots_older_than_the_log_are_a_start() {
    let disk = SimDisk::new(3);
    let mut life = start(&disk, 1);
    write(&mut life, "first", 30);
    save(&disk, &mut life);
    let older = back_up(&disk, Path::new(STORE));
    write(&mut life, "second", 30);
    save(&disk, &mut life);
    kill(&disk, life);
    restore(&disk, Path::new(STORE), &older);
    let mut life = start(&disk, 2);
    assert_eq!(ask(&mut life, "DBSIZE"), b":60\r\n");
}
