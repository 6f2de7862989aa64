//! The conformance suite over the backends that run in the simulator.

use crate::harness::{options, try_open};
use base::{Incarnation, Position, Sequence};
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use txlog::conformance::{Bench, Loss, run};
use txlog::log::{AppendError, Gate, Limits, LogEvent, Ticket};
use txlog::memory::{MemoryFaults, MemoryHandle, MemoryLog};
use txlog::{Chain, Follower, Kind, TransactionLog};

struct FileBench {
    disk: SimDisk,
    timeline: Timeline,
    random: Random,
    origin: Position,
}

impl FileBench {
    fn new() -> Self {
        Self {
            disk: SimDisk::new(0),
            timeline: Timeline::new(),
            random: Random::from_seed(1),
            origin: Position::default(),
        }
    }
}

impl Bench for FileBench {
    fn reset(&mut self) {
        self.disk = SimDisk::new(self.random.draw());
        drop(self.open());
    }

    fn open(&mut self) -> Box<dyn TransactionLog> {
        let seed = self.random.draw();
        let (log, recovery) =
            try_open(&self.disk, &self.timeline, seed, options(seed)).expect("the log is whole");
        self.origin = recovery.tail.at(Sequence::ZERO);
        Box::new(log)
    }

    fn origin(&self) -> Position {
        self.origin
    }

    fn wait(&mut self) {
        self.timeline.pass(1_000_000);
    }

    fn crash(&mut self) {
        self.disk.cut_power();
        self.disk.restart();
    }

    fn recreate(&mut self) {
        self.disk.remove_all();
        drop(self.open());
    }

    fn lose_next(&mut self, _: Loss) -> bool {
        false
    }

    fn accepts_by_number(&self) -> bool {
        false
    }
}

#[test]
fn the_file_log_conforms() {
    run(&mut FileBench::new());
}

struct MemoryBench {
    log: MemoryLog,
    incarnations: u64,
    loss: std::rc::Rc<std::cell::Cell<Option<Loss>>>,
}

impl MemoryBench {
    fn new() -> Self {
        let log = MemoryLog::new(Incarnation(0));
        Self { log, incarnations: 0, loss: std::rc::Rc::default() }
    }

    fn next_incarnation(&mut self) -> Incarnation {
        self.incarnations += 1;
        Incarnation(self.incarnations)
    }
}

/// Hands a loss that the suite arranged to the handle that appends next.
struct Lossy {
    handle: MemoryHandle,
    loss: std::rc::Rc<std::cell::Cell<Option<Loss>>>,
}

impl TransactionLog for Lossy {
    fn limits(&self) -> Limits {
        self.handle.limits()
    }
    fn gate(&self) -> Gate {
        self.handle.gate()
    }
    fn append(&mut self, after: Position, record: bytes::Bytes) -> Ticket {
        let loss = self.loss.take();
        if txlog::Record::decode(&record).is_ok_and(|record| record.header.kind == Kind::Lead) {
            self.handle.reopen();
        }
        self.handle.set_faults(MemoryFaults {
            loses_next_ack: loss == Some(Loss::Acknowledgement),
            loses_next_append: loss == Some(Loss::Record),
            ..MemoryFaults::default()
        });
        self.handle.append(after, record)
    }
    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        self.handle.poll(events);
    }
    fn is_busy(&self) -> bool {
        self.handle.is_busy()
    }
    fn read_from(&mut self, from: Position) {
        self.handle.read_from(from);
    }
    fn stop_reading(&mut self) {
        self.handle.stop_reading();
    }
    fn tail(&mut self) -> Ticket {
        self.handle.tail()
    }
    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        self.handle.compare(position, chain)
    }
    fn trim(&mut self, through: Position) {
        self.handle.trim(through);
    }
    fn first(&mut self) -> Ticket {
        self.handle.first()
    }
}

impl Bench for MemoryBench {
    fn reset(&mut self) {
        self.loss.set(None);
        self.log = MemoryLog::new(self.next_incarnation());
    }

    fn open(&mut self) -> Box<dyn TransactionLog> {
        Box::new(Lossy { handle: self.log.handle(4096), loss: std::rc::Rc::clone(&self.loss) })
    }

    fn origin(&self) -> Position {
        self.log.tail().at(Sequence::ZERO)
    }

    fn wait(&mut self) {}

    fn crash(&mut self) {}

    fn recreate(&mut self) {
        let incarnation = self.next_incarnation();
        self.log.recreate(incarnation);
    }

    fn lose_next(&mut self, loss: Loss) -> bool {
        self.loss.set(Some(loss));
        true
    }

    fn accepts_by_number(&self) -> bool {
        true
    }
}

#[test]
fn the_memory_log_conforms() {
    run(&mut MemoryBench::new());
}

/// A backend that acknowledges what it did not store.
struct Forgetful(MemoryBench);

struct ForgetfulLog {
    handle: Box<dyn TransactionLog>,
    pending: Vec<Position>,
    appends: u32,
}

impl TransactionLog for ForgetfulLog {
    fn limits(&self) -> Limits {
        self.handle.limits()
    }
    fn gate(&self) -> Gate {
        Gate::Open
    }
    fn append(&mut self, after: Position, record: bytes::Bytes) -> Ticket {
        self.appends += 1;
        if self.appends > 10 {
            self.pending.push(after.next());
            return Ticket(u64::MAX);
        }
        self.handle.append(after, record)
    }
    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        self.handle.poll(events);
        events.extend(self.pending.drain(..).map(LogEvent::Durable));
    }
    fn is_busy(&self) -> bool {
        false
    }
    fn read_from(&mut self, from: Position) {
        self.handle.read_from(from);
    }
    fn stop_reading(&mut self) {
        self.handle.stop_reading();
    }
    fn tail(&mut self) -> Ticket {
        self.handle.tail()
    }
    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        self.handle.compare(position, chain)
    }
    fn trim(&mut self, through: Position) {
        self.handle.trim(through);
    }
    fn first(&mut self) -> Ticket {
        self.handle.first()
    }
}

impl Bench for Forgetful {
    fn reset(&mut self) {
        self.0.reset();
    }
    fn open(&mut self) -> Box<dyn TransactionLog> {
        Box::new(ForgetfulLog { handle: self.0.open(), pending: Vec::new(), appends: 0 })
    }
    fn origin(&self) -> Position {
        self.0.origin()
    }
    fn wait(&mut self) {}
    fn crash(&mut self) {}
    fn recreate(&mut self) {
        self.0.recreate();
    }
    fn lose_next(&mut self, loss: Loss) -> bool {
        self.0.lose_next(loss)
    }
    fn accepts_by_number(&self) -> bool {
        true
    }
}

#[test]
#[should_panic(expected = "assertion")]
fn a_log_that_forgets_is_caught() {
    run(&mut Forgetful(MemoryBench::new()));
}

/// Readers to whom every record counts, whoever was deposed when it came.
struct Trusting(MemoryBench);

impl Bench for Trusting {
    fn reset(&mut self) {
        self.0.reset();
    }
    fn open(&mut self) -> Box<dyn TransactionLog> {
        self.0.open()
    }
    fn origin(&self) -> Position {
        self.0.origin()
    }
    fn wait(&mut self) {}
    fn crash(&mut self) {}
    fn recreate(&mut self) {
        self.0.recreate();
    }
    fn lose_next(&mut self, loss: Loss) -> bool {
        self.0.lose_next(loss)
    }
    fn accepts_by_number(&self) -> bool {
        true
    }
    fn follower(&self) -> Follower {
        let mut follower = self.0.follower();
        follower.counts_void_records = true;
        follower
    }
}

#[test]
#[should_panic(expected = "never")]
fn readers_without_the_void_rule_are_caught() {
    run(&mut Trusting(MemoryBench::new()));
}

#[test]
fn a_failed_append_of_the_memory_log_closes_its_gate() {
    let log = MemoryLog::new(Incarnation(1));
    let mut handle = log.handle(4096);
    handle.set_faults(MemoryFaults { loses_next_append: true, ..MemoryFaults::default() });
    let ticket = handle.append(log.tail(), bytes::Bytes::from_static(b"x"));
    let mut events = Vec::new();
    handle.poll(&mut events);
    assert_eq!(events, [LogEvent::Failed(ticket, AppendError::InDoubt)]);
    assert_ne!(handle.gate(), Gate::Open);
}
