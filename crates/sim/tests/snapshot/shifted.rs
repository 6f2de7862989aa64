//! Void records take the places that a server's records were meant for: replies still wait for the
//! very records they reveal, and snapshots name the places where those stand.

use super::world::{Ledger, Life, store};
use archive::Candidate;
use base::{Position, Sequence};
use bytes::Bytes;
use sim::disk::SimDisk;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use txlog::{Chain, Gate, Limits, LogEvent, Ticket, TransactionLog};

/// Turns after which something must be stuck.
const TURNS_MAX: u32 = 20_000;

/// What the test tells the log to do.
#[derive(Default)]
struct Orders {
    /// Appends wait, and so many of them may go on.
    is_held: bool,
    released: usize,
    /// So many void records take the next places.
    shift_by: u64,
    /// What waits.
    held: usize,
}

/// A log in which others' records, which are void, take places that the server counted on.
struct Shifting {
    log: Box<dyn TransactionLog>,
    orders: Rc<RefCell<Orders>>,
    /// The place of the last append, with the void records and without.
    predicted: Position,
    appended: Position,
    held: VecDeque<Bytes>,
    shift: u64,
}

impl Shifting {
    fn install(life: &mut Life) -> Rc<RefCell<Orders>> {
        let orders: Rc<RefCell<Orders>> = Rc::default();
        let of_log = Rc::clone(&orders);
        let at = life.server.core.shard.appended();
        life.server.core.shard.wrap_log(|log| {
            let held = VecDeque::new();
            Box::new(Self { log, orders: of_log, predicted: at, appended: at, held, shift: 0 })
        });
        orders
    }
}

impl TransactionLog for Shifting {
    fn limits(&self) -> Limits {
        self.log.limits()
    }

    fn gate(&self) -> Gate {
        self.log.gate()
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        assert_eq!(after, self.predicted, "the server knows where the log ends");
        self.predicted = after.next();
        self.held.push_back(record);
        Ticket(u64::MAX)
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        let mut orders = self.orders.borrow_mut();
        let by = std::mem::take(&mut orders.shift_by);
        if by > 0 {
            self.shift += by;
            self.predicted.sequence.0 += by;
            events.push(LogEvent::Shifted { by });
        }
        while !self.held.is_empty() && (!orders.is_held || orders.released > 0) {
            orders.released = orders.released.saturating_sub(1);
            let record = self.held.pop_front().expect("it is not empty");
            self.log.append(self.appended, record);
            self.appended = self.appended.next();
        }
        orders.held = self.held.len();
        let mut told = Vec::new();
        self.log.poll(&mut told);
        events.extend(told.into_iter().map(|event| match event {
            LogEvent::Durable(at) => LogEvent::Durable(at.at(Sequence(at.sequence.0 + self.shift))),
            other => other,
        }));
    }

    fn is_busy(&self) -> bool {
        !self.held.is_empty() || self.log.is_busy()
    }

    fn read_from(&mut self, from: Position) {
        self.log.read_from(from);
    }

    fn stop_reading(&mut self) {
        self.log.stop_reading();
    }

    fn wait_nanos(&self) -> Option<u64> {
        self.log.wait_nanos()
    }

    fn is_watched(&mut self) -> bool {
        self.log.is_watched()
    }

    fn tail(&mut self) -> Ticket {
        self.log.tail()
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        self.log.compare(position, chain)
    }

    fn trim(&mut self, through: Position) {
        self.log.trim(through);
    }

    fn first(&mut self) -> Ticket {
        self.log.first()
    }
}

fn turn_until(life: &mut Life, what: &str, mut is_so: impl FnMut(&Life) -> bool) {
    for _ in 0..TURNS_MAX {
        if is_so(life) {
            return;
        }
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
    panic!("it never came to pass: {what}");
}

fn turn_some(life: &mut Life) {
    for _ in 0..500 {
        assert!(life.turn(&mut Ledger::default()), "{:?}", life.server.core.stopping);
    }
}

fn start(seed: u64) -> (SimDisk, Life, Rc<RefCell<Orders>>) {
    let disk = SimDisk::new(seed);
    let mut life = Life::start(&disk, seed, &mut Ledger::default()).expect("the disk is whole");
    let orders = Shifting::install(&mut life);
    (disk, life, orders)
}

#[test]
fn a_reply_waits_for_its_record_wherever_that_comes_to_stand() {
    let (_disk, mut life, orders) = start(1);
    orders.borrow_mut().is_held = true;
    for held in 1..=3 {
        life.client.send(b"INCR count\r\n");
        turn_until(&mut life, "a record waits", |_| orders.borrow().held == held);
    }
    orders.borrow_mut().shift_by = 2;
    turn_some(&mut life);
    assert_eq!(life.replies, b"");
    for expected in [":1\r\n", ":1\r\n:2\r\n", ":1\r\n:2\r\n:3\r\n"] {
        orders.borrow_mut().released = 1;
        turn_some(&mut life);
        assert_eq!(String::from_utf8_lossy(&life.replies), expected);
    }
    // The next ones know of the shift from the start.
    orders.borrow_mut().is_held = false;
    life.client.send(b"INCR count\r\n");
    turn_until(&mut life, "a reply", |life| life.replies.ends_with(b":4\r\n"));
    assert!(!life.server.core.shard.is_in_flight());
}

/// The records behind which the published snapshots stand.
fn snapshots(disk: &SimDisk) -> Vec<Sequence> {
    let store = store(disk).expect("the store can be opened");
    let candidates = store.list().expect("the store can be read").into_iter();
    let point = |candidate| match candidate {
        Candidate::Whole(snapshot) => snapshot.point.position.sequence,
        Candidate::Damaged { name, why, .. } => panic!("{name} was published damaged: {why}"),
    };
    candidates.map(point).collect()
}

#[test]
fn a_snapshot_whose_record_moves_is_given_up() {
    let (disk, mut life, orders) = start(2);
    life.client.send(b"SET key value\r\n");
    turn_until(&mut life, "a reply", |life| life.replies == b"+OK\r\n");
    life.replies.clear();
    orders.borrow_mut().is_held = true;
    life.client.send(b"SET key other\r\n");
    turn_until(&mut life, "a record waits", |_| orders.borrow().held == 1);
    let saver = life.connect();
    saver.send(b"SAVE\r\n");
    turn_some(&mut life);
    assert_eq!(saver.received(), b"", "it waits for the record");
    orders.borrow_mut().shift_by = 3;
    orders.borrow_mut().is_held = false;
    turn_some(&mut life);
    assert_eq!(saver.received(), b"-ERR the snapshot failed, the log says why\r\n");
    assert_eq!(life.replies, b"+OK\r\n");
    assert_eq!(snapshots(&disk), []);
    saver.send(b"SAVE\r\n");
    turn_some(&mut life);
    assert_eq!(saver.received(), b"+OK\r\n");
    assert_eq!(snapshots(&disk), [life.server.core.shard.appended().sequence]);
}

#[test]
fn a_snapshot_whose_record_was_durable_before_stays() {
    let (disk, mut life, orders) = start(3);
    life.client.send(b"SET key value\r\n");
    turn_until(&mut life, "a reply", |life| life.replies == b"+OK\r\n");
    let newest = life.server.core.shard.appended().sequence;
    orders.borrow_mut().is_held = true;
    let saver = life.connect();
    saver.send(b"SAVE\r\n");
    turn_until(&mut life, "it has begun", |life| life.server.core.saving().is_saving);
    life.client.send(b"SET key other\r\n");
    turn_until(&mut life, "a record waits", |_| orders.borrow().held == 1);
    orders.borrow_mut().shift_by = 3;
    turn_some(&mut life);
    assert_eq!(saver.received(), b"+OK\r\n");
    assert_eq!(snapshots(&disk), [newest]);
    // Behind three that are nobody's, and perhaps there was time for a checksum.
    let moved = life.server.core.shard.appended().sequence.0 - newest.0;
    assert!((4..=5).contains(&moved), "{moved}");
}
