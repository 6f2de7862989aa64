//! Snapshots in an object store: the conformance suite of `archive`, and a server that is killed
//! and stopped while snapshots are written and read.

use super::places::Objects;
use crate::outside::{PATIENCE, entropy, faults, fresh_name, now, pause, tell};
use archive::conformance::{self, Bench};
use archive::{
    Archive, Candidate, Facts, Limits, Snapshot, SnapshotPoint, SnapshotStore, Unfinished,
};
use base::{Clock, Epoch, Incarnation, MonotonicNanos, Position, Sequence, UnixMillis};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// So often a sign is renewed here, and so long a living writer has to do it.
const RENEWAL: Duration = Duration::from_millis(200);
const SHOWN: Duration = Duration::from_secs(2);

/// Longer than a writer may be silent, or a holder of the claim.
const SILENCE: Duration = Duration::from_secs(61);

/// Goes on when it is told to.
#[derive(Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.load(Ordering::Relaxed))
    }
}

struct ArchiveBench {
    place: Objects,
    name: String,
    clock: Arc<HandClock>,
}

impl ArchiveBench {
    fn new(place: Objects) -> Self {
        Self { place, name: fresh_name(), clock: Arc::default() }
    }

    fn archive(&self) -> Arc<dyn Archive> {
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let url = self.place.archive_url(&self.name);
        services::open_archive_renewing(&url, clock, entropy(), RENEWAL).expect("it opens")
    }

    fn store(&self) -> SnapshotStore {
        let limits = Limits { retained: 3, ..Limits::default() };
        SnapshotStore::over(self.archive()).with_limits(limits)
    }
}

impl Bench for ArchiveBench {
    fn reset(&mut self) {
        self.name = fresh_name();
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        self.archive()
    }

    fn pass_silence(&mut self) {
        pause(SHOWN);
        self.clock.0.fetch_add(SILENCE.as_nanos() as u64, Ordering::Relaxed);
    }

    fn large_bytes(&self) -> usize {
        (20 << 20) + 12_345
    }

    fn at_once(&self, works: Vec<Box<dyn FnOnce() + Send + '_>>) {
        std::thread::scope(|scope| {
            for work in works {
                scope.spawn(work);
            }
        });
    }
}

#[test]
fn a_server_keeps_what_every_archive_must() {
    let Some(place) = Objects::in_gateway() else { return };
    conformance::run(&mut ArchiveBench::new(place));
}

#[test]
fn a_server_keeps_it_of_what_is_encrypted() {
    let Some(place) = Objects::in_gateway() else { return };
    conformance::run_encrypted(&mut ArchiveBench::new(place));
}

#[test]
fn another_server_keeps_what_every_archive_must() {
    let Some(place) = Objects::in_memory() else { return };
    conformance::run(&mut ArchiveBench::new(place));
}

#[test]
fn a_directory_keeps_what_every_archive_must() {
    let path = std::env::temp_dir().join(format!("kiln-snapshots-{}", std::process::id()));
    conformance::run(&mut ArchiveBench::new(Objects::in_directory(path.clone())));
    std::fs::remove_dir_all(path).expect("the snapshots lie there");
}

fn content(sequence: u64, part: u64, bytes: usize) -> Vec<u8> {
    let byte = |at: u64| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
    (0..bytes as u64).map(|at| byte(at + sequence * 7 + part)).collect()
}

/// Bytes of each part: several pieces, or one.
const PARTS: [usize; 3] = [(17 << 20) + 3, 1 << 20, (24 << 20) + 1];

fn point(sequence: u64) -> SnapshotPoint {
    let position = Position { incarnation: Incarnation(1), sequence: Sequence(sequence) };
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began }
}

/// Writes a snapshot, and does something amid its parts.
fn write(store: &SnapshotStore, sequence: u64, amid: &mut dyn FnMut()) -> io::Result<Snapshot> {
    let point = point(sequence);
    let mut writer = store.begin(point.position)?;
    for (index, bytes) in PARTS.into_iter().enumerate() {
        let mut part = writer.begin_part()?;
        for (number, piece) in content(sequence, index as u64, bytes).chunks(1 << 20).enumerate() {
            part.append(piece)?;
            if number == 9 {
                amid();
            }
        }
        writer.take(part.finish()?);
    }
    writer.publish(&Facts::unproven(point, 0, 10))
}

fn read(store: &SnapshotStore, snapshot: &Snapshot, amid: &mut dyn FnMut()) -> io::Result<()> {
    for (index, bytes) in PARTS.into_iter().enumerate() {
        let mut part = store.open_part(snapshot, index)?;
        let (mut read, mut buffer) = (Vec::new(), vec![0; 256 << 10]);
        loop {
            let count = part.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            read.extend_from_slice(&buffer[..count]);
            if read.len() == 5 << 20 {
                amid();
            }
        }
        let sequence = snapshot.point.position.sequence.0;
        assert!(read == content(sequence, index as u64, bytes), "part {index}");
    }
    Ok(())
}

/// Kills or stops the server, and starts it again a while later, on a thread of its own.
fn fail_for(order: &'static str, time: Duration) -> std::thread::JoinHandle<()> {
    tell(order);
    #[expect(clippy::disallowed_methods, reason = "what is tested waits meanwhile")]
    std::thread::spawn(move || {
        pause(time);
        tell("start");
    })
}

#[test]
fn a_server_that_is_killed_or_stopped_for_a_while_costs_no_snapshot() {
    let Some(place) = Objects::in_gateway() else { return };
    let bench = ArchiveBench::new(place);
    let store = bench.store();
    for (sequence, order) in [(1, "kill"), (2, "pause")] {
        let mut revivals = Vec::new();
        let mut fail = || revivals.push(fail_for(order, Duration::from_secs(3)));
        let written = write(&store, sequence, &mut fail).expect("the server comes back");
        read(&bench.store(), &written, &mut fail).expect("the server comes back");
        assert!(revivals.len() >= 4, "it failed amid writing and amid reading");
        for revival in revivals {
            revival.join().expect("it was started again");
        }
    }
}

/// As many faults as the environment asks for: whatever a writer is told, what is published is
/// whole.
#[test]
fn whatever_happens_to_the_server_what_is_published_is_whole() {
    let Some(place) = Objects::in_gateway() else { return };
    let bench = ArchiveBench::new(place);
    let store = bench.store();
    let mut published = 0;
    for sequence in 1..=faults().map_or(2, |count| count / 10 + 2) {
        let mut revivals = Vec::new();
        let mut chosen = entropy();
        let mut fail = || {
            let order = if chosen.is_multiple_of(2) { "kill" } else { "pause" };
            revivals.push(fail_for(order, Duration::from_millis(chosen / 2 % 4000)));
            chosen /= 8192;
        };
        let written = write(&store, sequence, &mut fail);
        for revival in revivals {
            revival.join().expect("it was started again");
        }
        if let Ok(written) = written {
            published += 1;
            read(&store, &written, &mut || {}).expect("the server is up");
        }
        store.remove_unpublished(Unfinished::Signed).expect("the server is up");
        let pruned = store
            .prune(Incarnation(1), &[], &[], base::UnixMillis(0), base::Sequence::ZERO)
            .expect("the server is up");
        assert!(pruned.failure.is_none(), "{pruned:?}");
        for candidate in store.list().expect("the server is up") {
            assert!(matches!(candidate, Candidate::Whole(_)), "{candidate:?}");
        }
    }
    assert!(published > 0, "some survive");
}

#[test]
fn a_server_that_does_not_come_back_is_told_of_in_time() {
    let Some(place) = Objects::in_gateway() else { return };
    let bench = ArchiveBench::new(place);
    let store = bench.store();
    let began = now();
    let why = write(&store, 1, &mut || drop(tell("kill"))).expect_err("nobody answers");
    assert!(began.elapsed() < 3 * PATIENCE, "{:?}: {why}", began.elapsed());
    tell("start");
    assert!(store.list().expect("the server is up").is_empty());
}

#[test]
fn what_is_wrong_with_a_bucket_is_said_without_a_secret() {
    let Some(place) = Objects::in_gateway() else { return };
    let clock = || Arc::new(HandClock::default()) as Arc<dyn Clock>;
    let url = place.archive_url("x").replace("s3://logs/", "s3://absent/");
    let why = services::open_archive(&url, clock(), 1).err().expect("there is no such bucket");
    assert!(why.to_string().contains("is there such a bucket?"), "{why}");
    assert!(!why.to_string().contains("kiln-secret"), "{why}");
    assert_eq!(services::open_archive_to_read(&url, clock()).expect("unasked").location(), url);
}
