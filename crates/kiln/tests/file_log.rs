//! The file log on the machine's own disk and threads.

use base::driver::Waker;
use base::{Clock, MonotonicNanos, Sequence, UnixMillis};
use bytes::{Bytes, BytesMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use txlog::file::inspect;
use txlog::reader::{Goal, Next, Reader, Start};
use txlog::record::WriterId;
use txlog::{
    Chain, Consumed, FileLog, FileOptions, Follower, Kind, LogEvent, Part, Queues, Recovery,
    Stamper, TransactionLog, empty_record,
};
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};

struct TestClock(Instant);

impl Clock for TestClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.elapsed().as_nanos() as u64)
    }
}

fn directory(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("kiln-log-{}-{name}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

fn queues() -> Queues {
    let queue = |name| {
        let waker = Waker(Arc::new(|| {}));
        ThreadDiskQueue::start(name, Urgency::Prompt, waker).expect("a thread to run jobs")
    };
    Queues { commits: Box::new(queue("commits")), background: Box::new(queue("background")) }
}

fn options() -> FileOptions {
    let mut options = FileOptions::new(0x1234_5678_9abc_def0);
    options.record_bytes_max = 8 << 10;
    options.batch_bytes_max = 16 << 10;
    options.first_segment_bytes = 64 << 10;
    options.segment_bytes = 64 << 10;
    options
}

fn open(path: &Path) -> (FileLog, Recovery) {
    #[expect(clippy::disallowed_methods, reason = "a test of the real world needs its clock")]
    let clock = Arc::new(TestClock(Instant::now()));
    FileLog::open(Arc::new(RealDisk), clock, queues(), path, options()).expect("the log is whole")
}

/// Replays everything and hands out the payloads that count.
fn replayed(log: &FileLog) -> (Vec<Bytes>, Chain) {
    let mut replay = log.replay(Sequence(1)).expect("the log begins there");
    let mut follower = Follower::new(Sequence::ZERO, log.first_chain());
    let mut payloads = Vec::new();
    while let Some((position, bytes)) = replay.next_record().expect("no record is damaged") {
        if let Consumed::Record(record) =
            follower.consume(position.sequence, &bytes).expect("these records can be followed")
            && record.header.kind == Kind::Data
        {
            payloads.push(record.payload);
        }
    }
    (payloads, follower.chain())
}

fn data(stamper: &mut Stamper, payload: &[u8]) -> Bytes {
    let mut buffer: BytesMut = empty_record(payload.len());
    buffer.extend_from_slice(payload);
    stamper.stamp(Kind::Data, Part::Whole, buffer, UnixMillis(1), Sequence::ZERO)
}

#[test]
fn records_survive_restarts_and_rolls_in_order() {
    let path = directory("restart");
    let mut expected: Vec<Bytes> = Vec::new();
    for round in 0..5_u32 {
        let (mut log, recovery) = open(&path);
        assert!(recovery.is_writer);
        assert_eq!(recovery.is_new, round == 0);
        let (payloads, chain) = replayed(&log);
        assert_eq!(payloads, expected);
        assert_eq!(recovery.chain, Some(chain));
        let mut stamper = Stamper::new(WriterId(u64::from(round)), chain, UnixMillis(0));
        let mut at = recovery.tail;
        log.append(at, stamper.lead(1000, &[], UnixMillis(1), at.sequence));
        at = at.next();
        for number in 0..200_u32 {
            let payload = vec![number as u8; (number as usize * 37) % 4000];
            log.append(at, data(&mut stamper, &payload));
            expected.push(payload.into());
            at = at.next();
            if number % 7 == 0 {
                log.commit_inline();
            }
        }
        log.drain();
        let mut events = Vec::new();
        log.poll(&mut events);
        assert_eq!(events.last(), Some(&LogEvent::Durable(at)));
    }
    std::fs::remove_dir_all(path).expect("the test made the directory");
}

#[test]
fn a_second_process_reads_until_the_first_is_dead() {
    let path = directory("rival");
    let (mut first, recovery) = open(&path);
    let mut stamper = Stamper::new(
        WriterId(1),
        recovery.chain.expect("a log that was written to has a chain"),
        UnixMillis(0),
    );
    first.append(recovery.tail, stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO));
    first.append(recovery.tail.next(), data(&mut stamper, b"payload"));
    first.drain();
    let (second, recovery) = open(&path);
    assert!(!recovery.is_writer);
    assert_eq!(replayed(&second).0, [Bytes::from_static(b"payload")]);
    drop(second);
    drop(first);
    let (third, recovery) = open(&path);
    assert!(recovery.is_writer);
    assert_eq!(replayed(&third).0, [Bytes::from_static(b"payload")]);
    std::fs::remove_dir_all(path).expect("the test made the directory");
}

/// What a tool reads of the directory, beside the server that writes: payloads, and why it ended.
fn inspected(path: &Path) -> (Vec<Bytes>, Option<String>) {
    let mut found = inspect(Arc::new(RealDisk), path).expect("there is a log");
    let start = Start::Oldest(found.tail.incarnation);
    let mut reader = Reader::new(&mut found, start, Goal::Tail);
    let mut payloads = Vec::new();
    loop {
        match reader.next(&mut found) {
            Ok(Next::Record(read)) => {
                if let Consumed::Record(record) = read.consumed
                    && record.header.kind == Kind::Data
                {
                    payloads.push(record.payload);
                }
            }
            Ok(Next::Wait) => {}
            Ok(Next::Done) => return (payloads, None),
            Err(error) => return (payloads, Some(error.to_string())),
        }
    }
}

/// More than one piece of reading holds, in several segments, one of which is damaged later.
#[test]
#[expect(clippy::disallowed_methods, reason = "the test damages a file")]
fn a_directory_is_read_while_it_is_written_and_up_to_its_damage() {
    let path = directory("inspected");
    let (mut log, recovery) = open(&path);
    let chain = recovery.chain.expect("a log that was written to has a chain");
    let mut stamper = Stamper::new(WriterId(1), chain, UnixMillis(0));
    let mut at = recovery.tail;
    log.append(at, stamper.lead(1000, &[], UnixMillis(1), at.sequence));
    let mut written = Vec::new();
    for number in 0..400_u32 {
        at = at.next();
        let payload = vec![number as u8; 4000];
        log.append(at, data(&mut stamper, &payload));
        written.push(Bytes::from(payload));
        log.drain();
    }
    assert_eq!(inspected(&path), (written.clone(), None));
    drop(log);
    let mut segments: Vec<PathBuf> = std::fs::read_dir(&path)
        .expect("the log lies there")
        .map(|entry| entry.expect("it can be listed").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "segment"))
        .collect();
    segments.sort();
    let damaged = &segments[segments.len() / 2];
    let mut bytes = std::fs::read(damaged).expect("it is a file");
    bytes[4096 + 100] ^= 1;
    std::fs::write(damaged, bytes).expect("it is a file");
    let (read, damage) = inspected(&path);
    assert!(read.len() < written.len() && read == written[..read.len()]);
    let name = damaged.file_name().expect("it has one").to_string_lossy().into_owned();
    assert!(damage.as_ref().is_some_and(|what| what.contains(&name)), "{damage:?}");
    std::fs::remove_dir_all(path).expect("the test made the directory");
}
