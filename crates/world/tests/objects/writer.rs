//! The only writer of a log, and a reader that holds it to its word.

use super::stores::{PATIENCE, entropy, now, open_polled, pause};
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use std::time::Duration;
use txlog::record::WriterId;
use txlog::remote::RemoteLog;
use txlog::{Chain, Consumed, Follower, Gate, Kind, LogEvent, Part, Stamper, TransactionLog};

/// Appends as long as the log takes it.
pub struct Writer {
    url: String,
    log: RemoteLog,
    stamper: Stamper,
    at: Position,
    appended: Vec<Bytes>,
    /// Payloads that were told to be durable.
    pub durable: usize,
}

impl Writer {
    /// Leads a log in which nobody wrote yet.
    pub fn lead(url: String) -> Self {
        let log = open_polled(&url);
        let incarnation = log.incarnation();
        let at = Position { incarnation, sequence: Sequence::ZERO };
        let stamper = Stamper::new(WriterId(entropy()), Chain::start(incarnation), UnixMillis(0));
        let mut writer = Self { url, log, stamper, at, appended: Vec::new(), durable: 0 };
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
    fn turn(&mut self) {
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
                LogEvent::Failed(_, error) => panic!("nobody else writes, and yet: {error}"),
                _ => {}
            }
        }
    }

    fn until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) {
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

    pub fn work_for(&mut self, time: Duration) {
        let began = now();
        while began.elapsed() < time {
            self.turn();
            pause(Duration::from_millis(1));
        }
    }

    /// What was told to be durable is there, in order, once; and nothing that was not appended.
    pub fn check(&self) {
        let found = payloads(&self.url);
        assert!(found.len() >= self.durable, "{} of {}", found.len(), self.durable);
        assert!(found == self.appended[..found.len()], "the log holds other records");
    }
}

/// Everything that counts in a log, read by a handle of its own.
fn payloads(url: &str) -> Vec<Bytes> {
    let mut log = open_polled(url);
    let incarnation = log.incarnation();
    let mut follower = Follower::new(Sequence::ZERO, Chain::start(incarnation));
    let mut payloads = Vec::new();
    log.read_from(Position { incarnation, sequence: Sequence(1) });
    let began = now();
    loop {
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
                        Consumed::Void => panic!("{} is void", position.sequence),
                        Consumed::Record(_) | Consumed::Buffered => {}
                    }
                }
                LogEvent::CaughtUp(_) => return payloads,
                other => panic!("reading gave {other:?}"),
            }
        }
        assert!(began.elapsed() < PATIENCE, "the log could not be read");
        pause(Duration::from_millis(1));
    }
}
