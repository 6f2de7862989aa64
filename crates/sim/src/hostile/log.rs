//! Log directories that an enemy wrote: what the fuzzer and the replay of its corpus run.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::disk_queue::SimDiskQueue;
use crate::random::Random;
use crate::timeline::Timeline;
use base::disk::{Disk, DiskQueue};
use base::driver::Waker;
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use txlog::{
    FileLog, FileOptions, Follower, LogError, Queues, Record, Stamper, TransactionLog, WriterId,
};

const DIRECTORY: &str = "/log";
/// Bytes of a segment that an input may overwrite.
const SEGMENT_BYTES: u64 = 16 << 10;

/// Decodes arbitrary bytes as a record; what decodes must encode to the same bytes.
///
/// # Panics
/// If it does not: the finding.
pub fn decode_record(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    if let Ok(record) = Record::decode(&bytes) {
        assert_eq!(record.encode(), bytes, "a record that decodes is written the same way");
    }
}

/// Writes a log, overwrites parts of its newest segment as the input says, and opens it. Whatever
/// is there, the log is refused or read, and what is read once is read again.
///
/// The input is a list of patches: two bytes of offset, one byte of length, that many bytes.
///
/// # Panics
/// If the same directory is read differently twice: the finding.
pub fn open_patched_log(input: &[u8]) {
    let disk = SimDisk::new(1);
    let Ok(mut log) = open(&disk, 1) else { return };
    let origin = Position { sequence: Sequence::ZERO, ..tail(&mut log) };
    let mut stamper = Stamper::new(WriterId(1), log.first_chain(), UnixMillis(0));
    log.append(origin, stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO));
    let mut at = origin.next();
    for clock in 2..20 {
        log.append(at, stamper.renew(1000, &[], UnixMillis(clock), at.sequence));
        at = at.next();
        log.commit_inline();
    }
    drop(log);
    disk.kill_process();
    patch(&disk, input);
    let Ok(first) = read(&disk, 2) else { return };
    disk.kill_process();
    let second = read(&disk, 3).expect("a log that was taken over can be opened again");
    assert_eq!(first, second, "what a writer found is kept");
}

fn tail(log: &mut FileLog) -> Position {
    let mut events = Vec::new();
    log.tail();
    log.poll(&mut events);
    let position = events.iter().find_map(|event| match event {
        txlog::LogEvent::Tail { position, .. } => Some(*position),
        _ => None,
    });
    position.expect("a writer knows its tail at once")
}

fn open(disk: &SimDisk, seed: u64) -> Result<FileLog, LogError> {
    let timeline = Timeline::new();
    let queue = |seed| -> Box<dyn DiskQueue> {
        let waker = Waker(Arc::new(|| {}));
        Box::new(SimDiskQueue::new(&timeline, Random::from_seed(seed), 1, waker))
    };
    let queues = Queues { commits: queue(seed), background: queue(seed + 1) };
    let mut options = FileOptions::new(seed);
    options.record_bytes_max = 1 << 10;
    options.batch_bytes_max = 2 << 10;
    options.segment_bytes = SEGMENT_BYTES;
    options.first_segment_bytes = SEGMENT_BYTES;
    let clock = Arc::new(SimClock::new(&timeline));
    let directory = Path::new(DIRECTORY);
    FileLog::open(Arc::new(disk.clone()), clock, queues, directory, options).map(|(log, _)| log)
}

fn read(disk: &SimDisk, seed: u64) -> Result<Vec<Bytes>, LogError> {
    let log = open(disk, seed)?;
    let mut replay = log.replay(Sequence(1))?;
    let mut follower = Follower::new(Sequence::ZERO, log.first_chain());
    let mut records = Vec::new();
    while let Some((position, bytes)) = replay.next_record()? {
        // A reader may stop at what it does not know; it must not panic.
        let _ = follower.consume(position.sequence, &bytes);
        records.push(bytes);
    }
    Ok(records)
}

fn newest_segment(disk: &SimDisk) -> Option<PathBuf> {
    let entries = disk.list(Path::new(DIRECTORY)).ok()?;
    let newest = entries.iter().rfind(|entry| entry.name.ends_with(".segment"))?;
    Some(Path::new(DIRECTORY).join(&newest.name))
}

fn patch(disk: &SimDisk, mut input: &[u8]) {
    let Some(file) = newest_segment(disk).and_then(|path| disk.open_write(&path).ok()) else {
        return;
    };
    while let Some((&[low, high, length], rest)) = input.split_first_chunk() {
        let (bytes, rest) = rest.split_at(usize::from(length).min(rest.len()));
        let offset = u64::from(u16::from_le_bytes([low, high])) % (SEGMENT_BYTES - 256);
        // A disk without faults fails no write.
        let _ = file.write_at(offset, bytes);
        input = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_patches_are_survived() {
        let mut random = Random::stream(1, "patches");
        for _ in 0..400 {
            let mut input = Vec::new();
            for _ in 0..random.within(1..6) {
                let offset = random.within(0..6000) as u16;
                let length = random.within(0..40) as u8;
                input.extend_from_slice(&offset.to_le_bytes());
                input.push(length);
                input.extend((0..length).map(|_| random.draw() as u8));
            }
            open_patched_log(&input);
        }
    }

    #[test]
    fn random_records_are_survived() {
        let mut random = Random::stream(2, "records");
        for length in 0..500 {
            let bytes: Vec<u8> = (0..length).map(|_| random.draw() as u8).collect();
            decode_record(&bytes);
        }
    }
}
