//! One process with a file log on a simulated disk, and the ledger that it is judged by.

use base::disk::DiskQueue;
use base::driver::Waker;
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::disk_queue::SimDiskQueue;
use sim::random::Random;
use sim::timeline::Timeline;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use txlog::{
    AppendError, Consumed, FileLog, FileOptions, Follower, Kind, LogError, LogEvent, Part, Queues,
    Recovery, Stamper, TransactionLog, WriterId, empty_record,
};

pub const DIRECTORY: &str = "/data/log";

/// Small sizes, so that a short run rolls several times.
pub fn options(entropy: u64) -> FileOptions {
    let mut options = FileOptions::new(entropy);
    options.record_bytes_max = 1 << 10;
    options.batch_bytes_max = 2 << 10;
    options.segment_bytes = 10 << 10;
    options.first_segment_bytes = 9 << 10;
    options.in_flight_bytes_max = 4 << 10;
    options
}

/// What must hold across every life of the log.
#[derive(Default)]
pub struct Ledger {
    /// Every byte string ever appended at a place.
    submitted: BTreeMap<Sequence, Vec<Bytes>>,
    /// What was acknowledged, or found durable by a writer that opened the log.
    kept: BTreeMap<Sequence, Bytes>,
    /// The last record that a process was ever told to forget.
    trimmed: Sequence,
}

impl Ledger {
    pub fn submit(&mut self, sequence: Sequence, bytes: &Bytes) {
        self.submitted.entry(sequence).or_default().push(bytes.clone());
    }

    /// The last of what was submitted, through `sequence`, is acknowledged.
    pub fn acknowledge(&mut self, sequence: Sequence) {
        let from = self.kept.last_key_value().map_or(Sequence(1), |(last, _)| last.next());
        for (at, bytes) in self.submitted.range(from..=sequence) {
            self.kept.insert(*at, bytes.last().expect("entries are not empty").clone());
        }
    }

    pub fn kept(&self) -> usize {
        self.kept.len()
    }

    /// Compares a recovered log with the ledger; what was recovered is kept from now on.
    pub fn check(&mut self, first: Sequence, records: &[(Sequence, Bytes)]) -> Result<(), String> {
        if first > self.trimmed.next() {
            return Err(format!("the log begins with {first}, trimmed through {}", self.trimmed));
        }
        let mut expected = first;
        for (sequence, bytes) in records {
            if *sequence != expected {
                return Err(format!("record {sequence} follows, {expected} was expected"));
            }
            expected = sequence.next();
            let known = self.submitted.get(sequence).is_some_and(|all| all.contains(bytes));
            if !known {
                return Err(format!("record {sequence} was never appended like this"));
            }
            if self.kept.get(sequence).is_some_and(|kept| kept != bytes) {
                return Err(format!("record {sequence} was acknowledged with other bytes"));
            }
        }
        if let Some((last, _)) = self.kept.last_key_value()
            && *last >= expected
        {
            return Err(format!("record {last} was acknowledged, the log ends before {expected}"));
        }
        self.kept.extend(records.iter().cloned());
        Ok(())
    }
}

/// A process.
pub struct Process {
    pub log: FileLog,
    pub timeline: Timeline,
    pub stamper: Stamper,
    pub at: Position,
    pub durable: Sequence,
    pub failures: Vec<AppendError>,
    /// Whether [`Self::run`] forgets old records now and then, as after a snapshot.
    pub trims: bool,
}

pub fn try_open(
    disk: &SimDisk,
    timeline: &Timeline,
    seed: u64,
    options: FileOptions,
) -> Result<(FileLog, Recovery), LogError> {
    let queue = |seed| -> Box<dyn DiskQueue> {
        let waker = Waker(Arc::new(|| {}));
        Box::new(SimDiskQueue::new(timeline, Random::from_seed(seed), 50_000, waker))
    };
    let queues = Queues { commits: queue(seed), background: queue(seed ^ 1) };
    let clock = Arc::new(SimClock::new(timeline));
    FileLog::open(Arc::new(disk.clone()), clock, queues, Path::new(DIRECTORY), options)
}

/// The oldest record that a log still has.
pub fn first_of(log: &FileLog) -> Sequence {
    match log.replay(Sequence(1)) {
        Err(LogError::Trimmed { first }) => first,
        _ => Sequence(1),
    }
}

/// Everything that a log holds, and the follower that read it.
pub fn read_all(log: &FileLog) -> Result<(Vec<(Sequence, Bytes)>, Follower), String> {
    let first = first_of(log);
    let mut replay = log.replay(first).map_err(|error| error.to_string())?;
    let mut follower = Follower::new(Sequence(first.0 - 1), log.first_chain());
    let mut records = Vec::new();
    while let Some((position, bytes)) = replay.next_record().map_err(|error| error.to_string())? {
        let consumed = follower.consume(position.sequence, &bytes);
        if consumed.map_err(|error| error.to_string())? == Consumed::Void {
            return Err(format!("record {} is void", position.sequence));
        }
        records.push((position.sequence, bytes));
    }
    Ok((records, follower))
}

impl Process {
    /// Opens the log, checks it against the ledger, and leads.
    pub fn start(
        disk: &SimDisk,
        seed: u64,
        options: FileOptions,
        ledger: &mut Ledger,
    ) -> Result<Self, String> {
        let timeline = Timeline::new();
        let (log, recovery) =
            try_open(disk, &timeline, seed, options).map_err(|error| error.to_string())?;
        let (records, follower) = read_all(&log)?;
        ledger.check(first_of(&log), &records)?;
        if recovery.is_writer && recovery.chain != Some(follower.chain()) {
            return Err("the log's chain is not the reader's".to_owned());
        }
        let stamper = Stamper::new(WriterId(seed), follower.chain(), UnixMillis(0));
        let (at, durable) = (recovery.tail, recovery.tail.sequence);
        Ok(Self { log, timeline, stamper, at, durable, failures: Vec::new(), trims: false })
    }

    pub fn append(&mut self, bytes: Bytes, ledger: &mut Ledger) {
        ledger.submit(self.at.sequence.next(), &bytes);
        self.log.append(self.at, bytes);
        self.at = self.at.next();
    }

    pub fn lead(&mut self, ledger: &mut Ledger) {
        let lead = self.stamper.lead(1000, &[], UnixMillis(1), self.durable);
        self.append(lead, ledger);
    }

    pub fn append_data(&mut self, random: &mut Random, ledger: &mut Ledger) {
        let bytes_max = if random.chance(12) { 900 } else { 100 };
        let mut buffer = empty_record(bytes_max);
        for _ in 0..random.within(0..bytes_max as u64) {
            buffer.extend_from_slice(&[random.draw() as u8]);
        }
        let clock = UnixMillis(2);
        let record = self.stamper.stamp(Kind::Data, Part::Whole, buffer, clock, self.durable);
        self.append(record, ledger);
    }

    pub fn poll(&mut self, ledger: &mut Ledger) {
        let mut events = Vec::new();
        self.log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Durable(position) => {
                    self.durable = position.sequence;
                    ledger.acknowledge(position.sequence);
                }
                LogEvent::Failed(_, error) => self.failures.push(error),
                _ => {}
            }
        }
    }

    pub fn trim(&mut self, through: Sequence, ledger: &mut Ledger) {
        ledger.trimmed = ledger.trimmed.max(through);
        self.log.trim(self.at.at(through));
    }

    /// Appends and polls in seeded turns until something fails or the turns are over.
    pub fn run(&mut self, random: &mut Random, turns: u32, ledger: &mut Ledger) {
        self.lead(ledger);
        for _ in 0..turns {
            if !self.failures.is_empty() {
                return;
            }
            for _ in 0..random.within(0..4) {
                self.append_data(random, ledger);
            }
            match random.within(0..4) {
                0 => drop(self.log.commit_inline()),
                1 => self.timeline.pass(10_000),
                _ => self.timeline.pass(200_000),
            }
            self.poll(ledger);
            if self.trims && random.chance(10) {
                self.trim(Sequence(random.within(0..self.durable.0 + 1)), ledger);
            }
        }
        self.log.drain();
        self.poll(ledger);
    }
}
