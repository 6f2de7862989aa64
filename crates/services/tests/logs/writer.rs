//! The only writer of a log, and a reader that holds it to its word.

use super::outside::{PATIENCE, entropy, fresh_name, now, pause, tell};
use super::place::{Place, polled};
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use std::time::Duration;
use txlog::record::WriterId;
use txlog::remote::RemoteLog;
use txlog::{Chain, Consumed, Follower, Gate, Kind, LogEvent, Part, Stamper, TransactionLog};

/// Records that must become durable between two faults, so that each finds the log at work.
pub const RECORDS_BETWEEN: usize = 100;

/// Faults after which what the log holds is trimmed, so that as many as one likes fit into any
/// quota. Until then every check reads all of it again.
const FAULTS_KEPT: u64 = 10;

/// Appends as long as the log takes it.
pub struct Writer<'p, P> {
    place: &'p P,
    pub name: String,
    pub log: RemoteLog,
    stamper: Stamper,
    /// The place of the last append. It shifts when records before it are found void.
    at: Position,
    appended: Vec<Bytes>,
    /// Payloads that were told to be durable.
    pub durable: usize,
    /// Where a check begins to read: what is before may have been trimmed.
    kept_from: Checked,
}

/// A place through which the log was found to hold what it must.
#[derive(Clone, Copy)]
pub struct Checked {
    at: Sequence,
    chain: Chain,
    /// Payloads through there.
    payloads: usize,
}

impl<'p, P: Place> Writer<'p, P> {
    /// Leads a new log.
    pub fn lead(place: &'p P) -> Self {
        let name = fresh_name();
        let log = place.log(&name, polled());
        let incarnation = log.incarnation();
        let at = Position { incarnation, sequence: Sequence::ZERO };
        let stamper = Stamper::new(WriterId(entropy()), Chain::start(incarnation), UnixMillis(0));
        let appended = Vec::new();
        let chain = Chain::start(incarnation);
        let kept_from = Checked { at: Sequence::ZERO, chain, payloads: 0 };
        let mut writer = Self { place, name, log, stamper, at, appended, durable: 0, kept_from };
        let lead = writer.stamper.lead(60_000, &[], UnixMillis(1), Sequence::ZERO);
        writer.log.append(at, lead);
        writer.at = at.next();
        writer.until("the Lead is durable", |writer| writer.log.gate() == Gate::Open);
        writer
    }

    fn append(&mut self) {
        let number = self.appended.len();
        let mut payload = number.to_le_bytes().to_vec();
        payload.resize(200 + number % 7 * 9_000, number as u8);
        let mut buffer = txlog::empty_record(payload.len());
        buffer.extend_from_slice(&payload);
        let (clock, durable) = (UnixMillis(1), Sequence::ZERO);
        let record = self.stamper.stamp(Kind::Data, Part::Whole, buffer, clock, durable);
        self.log.append(self.at, record);
        self.at = self.at.next();
        self.appended.push(payload.into());
    }

    /// Appends what fits, and looks at what became of it.
    pub fn turn(&mut self) {
        while self.log.gate() == Gate::Open {
            self.append();
        }
        let mut events = Vec::new();
        self.log.poll(&mut events);
        for event in events {
            match event {
                LogEvent::Durable(position) => {
                    let left = (self.at.sequence.0 - position.sequence.0) as usize;
                    self.durable = self.appended.len() - left.min(self.appended.len());
                }
                LogEvent::Shifted { by } => self.at.sequence.0 += by,
                LogEvent::Failed(_, error) => panic!("nobody else writes, and yet: {error}"),
                _ => {}
            }
        }
    }

    pub fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
        let began = now();
        while !is_so(self) {
            assert!(began.elapsed() < PATIENCE, "never came: {what}; {:?}", self.log.gate());
            self.turn();
            pause(Duration::from_millis(1));
        }
    }

    /// Works until so many more records are durable.
    pub fn go_on(&mut self, more: usize) {
        let goal = self.durable + more;
        self.until("more is durable", |writer| writer.durable >= goal);
    }

    /// So many faults, one after the other, each made from a number drawn. The order `start` mends
    /// them. None costs a record that was told to be durable.
    pub fn survive(&mut self, faults: u64, mut fault: impl FnMut(&mut Self, u64)) {
        for round in 0..faults {
            self.go_on(RECORDS_BETWEEN);
            let chosen = entropy();
            println!("fault {round}: {chosen:#x}");
            fault(self, chosen);
            tell("start");
            self.go_on(RECORDS_BETWEEN);
            let checked = self.check();
            if (round + 1) % FAULTS_KEPT == 0 {
                self.kept_from = checked;
                self.log.trim(self.at.at(checked.at));
            }
        }
    }

    pub fn work_for(&mut self, time: Duration) {
        let began = now();
        while began.elapsed() < time {
            self.turn();
            pause(Duration::from_millis(1));
        }
    }

    /// The place of the newest record that was told to be durable.
    pub fn durable_place(&self) -> Position {
        let undurable = (self.appended.len() - self.durable) as u64;
        self.at.at(Sequence(self.at.sequence.0 - undurable))
    }

    /// What was told to be durable is there, in order, once; and nothing that was not appended.
    pub fn check(&self) -> Checked {
        self.check_within(PATIENCE)
    }

    /// As [`Self::check`], for a log that may have lost records and so never ends where it should.
    pub fn check_within(&self, patience: Duration) -> Checked {
        let before = self.kept_from.payloads;
        let (found, checked) = self.read_on(self.durable_place(), patience);
        let through = before + found.len();
        assert!(through >= self.durable, "{through} of {}", self.durable);
        assert!(found == self.appended[before..through], "the log holds other records");
        checked
    }

    /// Everything that counts in the log behind what may have been trimmed, read by a handle of its
    /// own: to `goal` at least, or to where the log ends when patience does. And what was read
    /// through `goal`.
    fn read_on(&self, goal: Position, patience: Duration) -> (Vec<Bytes>, Checked) {
        let mut log = self.place.log(&self.name, polled());
        let incarnation = log.incarnation();
        let mut checked = self.kept_from;
        let mut follower = Follower::new(checked.at, checked.chain);
        let mut payloads = Vec::new();
        log.read_from(Position { incarnation, sequence: checked.at.next() });
        let began = now();
        while began.elapsed() < patience {
            let mut events = Vec::new();
            log.poll(&mut events);
            for event in events {
                match event {
                    LogEvent::Read(position, bytes) => {
                        let consumed = follower.consume(position.sequence, &bytes);
                        match consumed.expect("records can be read") {
                            Consumed::Record(record) if record.header.kind == Kind::Data => {
                                payloads.push(record.payload);
                            }
                            Consumed::Void if !P::ACCEPTS_BY_NUMBER => {
                                panic!("{} is void", position.sequence);
                            }
                            _ => {}
                        }
                        if position == goal {
                            let (at, chain) = (goal.sequence, follower.chain());
                            let payloads = self.kept_from.payloads + payloads.len();
                            checked = Checked { at, chain, payloads };
                        }
                    }
                    // One that answers from a copy may be behind.
                    LogEvent::CaughtUp(position) if position >= goal => return (payloads, checked),
                    LogEvent::CaughtUp(_) if !P::CONFIRMS_TAIL => {}
                    other => panic!("reading gave {other:?}"),
                }
            }
            pause(Duration::from_millis(1));
        }
        (payloads, checked)
    }
}
