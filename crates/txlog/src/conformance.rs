//! What every backend must keep, as tests over an implementation of [`Bench`].
//!
//! A backend may fence deposed writers itself (the file log does) or check numbers only (JetStream
//! does). The suite asks for what readers see, which must be the same for both.

mod gate;
mod history;

use crate::chain::{Chain, Consumed, Follower, Stamper, empty_record};
use crate::log::{AppendError, History, LogEvent, Ticket, TransactionLog};
use crate::record::{Kind, Part, WriterId};
use base::{Position, Sequence, UnixMillis};
use bytes::Bytes;
use history::compare;

/// Turns of waiting after which an event is missing.
const TURNS_MAX: usize = 10_000;
const LEASE_MILLIS: u64 = 1000;

/// What the suite may lose on the way of the next append.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Loss {
    /// It is stored, and the acknowledgement is lost.
    Acknowledgement,
    /// It is not stored.
    Record,
}

/// A backend under test.
pub trait Bench {
    /// Begins with a log that was never used.
    fn reset(&mut self);
    /// A handle, as another process gets it. Earlier handles live on.
    fn open(&mut self) -> Box<dyn TransactionLog>;
    /// The position before the log's first record.
    fn origin(&self) -> Position;
    /// Lets a little time pass.
    fn wait(&mut self);
    /// Takes every process down, and the machine with it where there is one.
    fn crash(&mut self);
    /// Deletes the log and creates it anew.
    fn recreate(&mut self);
    /// Arranges for a loss on the way of the next append of any handle. False if it cannot.
    fn lose_next(&mut self, loss: Loss) -> bool;
    /// Whether a deposed writer's records are accepted if their numbers fit: the service checks
    /// numbers only, and several are under way at a time.
    fn accepts_by_number(&self) -> bool;
    /// Whether a handle resolves doubts itself, and goes on behind records that are void. If not,
    /// it tells its user of them.
    fn resolves_doubts(&self) -> bool {
        false
    }
    /// Whether a leader's tail is confirmed. Not where the service may answer from the past.
    fn confirms_tail(&self) -> bool {
        true
    }
    /// What reads the log from its origin. A test may break it, to see the suite notice.
    fn follower(&self) -> Follower {
        Follower::new(Sequence::ZERO, Chain::start(self.origin().incarnation))
    }
}

/// Runs the whole suite.
///
/// # Panics
/// At the first promise that the backend breaks.
pub fn run(bench: &mut dyn Bench) {
    let cases: [fn(&mut dyn Bench); 16] = [
        records_are_read_in_the_order_of_their_appends,
        an_append_at_another_place_is_a_conflict,
        what_a_deposed_writer_sent_ahead_is_void,
        a_candidate_that_comes_late_reads_on_and_leads,
        a_reader_tails_what_another_appends,
        reading_begins_in_the_middle,
        history::a_log_tells_its_history_from_another,
        a_lost_acknowledgement_leaves_one_record,
        a_lost_record_is_sent_again_unchanged,
        trimming_forgets_no_more_than_asked,
        a_log_created_anew_is_lost,
        a_position_behind_the_tail_is_lost,
        history::the_origin_is_the_history_of_every_log,
        a_record_too_large_is_refused_alone,
        acknowledged_records_survive_a_crash,
        gate::a_gate_stays_until_the_writer_acts,
    ];
    for case in cases {
        bench.reset();
        case(bench);
    }
}

/// A leader under test.
struct Leader {
    log: Box<dyn TransactionLog>,
    stamper: Stamper,
    /// The place of the last append.
    at: Position,
}

impl Leader {
    /// Reads everything and appends a `Lead`.
    fn elect(bench: &mut dyn Bench, writer: u64) -> Self {
        let mut log = bench.open();
        let reading = read(bench, &mut *log);
        let stamper = Stamper::new(WriterId(writer), reading.chain, UnixMillis(0));
        let mut leader = Self { log, stamper, at: reading.tail };
        let lead = leader.stamper.lead(LEASE_MILLIS, &[], UnixMillis(1), leader.at.sequence);
        leader.append(lead);
        assert_eq!(leader.settle(bench), [], "a Lead at the tail is accepted");
        leader
    }

    fn data(&mut self, payload: &[u8]) -> Bytes {
        let mut buffer = empty_record(payload.len());
        buffer.extend_from_slice(payload);
        let (clock, durable) = (UnixMillis(1), Sequence::ZERO);
        self.stamper.stamp(Kind::Data, Part::Whole, buffer, clock, durable)
    }

    fn append(&mut self, record: Bytes) -> Ticket {
        let ticket = self.log.append(self.at, record);
        self.at = self.at.next();
        ticket
    }

    fn append_data(&mut self, payload: &[u8]) -> Ticket {
        let record = self.data(payload);
        self.append(record)
    }

    /// Waits until the last append is durable or something failed; the failures.
    fn settle(&mut self, bench: &mut dyn Bench) -> Vec<(Ticket, AppendError)> {
        let mut failures = Vec::new();
        let mut durable = Sequence::ZERO;
        for _ in 0..TURNS_MAX {
            let mut events = Vec::new();
            self.log.poll(&mut events);
            for event in events {
                match event {
                    LogEvent::Durable(position) => {
                        assert!(position.sequence > durable, "durability only grows");
                        assert!(position <= self.at, "nothing is durable that was not appended");
                        durable = position.sequence;
                    }
                    LogEvent::Shifted { by } => self.at.sequence.0 += by,
                    LogEvent::Failed(ticket, error) => failures.push((ticket, error)),
                    _ => {}
                }
            }
            if durable == self.at.sequence || (!failures.is_empty() && !self.log.is_busy()) {
                return failures;
            }
            bench.wait();
        }
        panic!("append {} neither became durable nor failed: {failures:?}", self.at.sequence);
    }
}

/// What a reader makes of a log.
struct Reading {
    tail: Position,
    records: Vec<Bytes>,
    /// Payloads of the Data records that count.
    payloads: Vec<Bytes>,
    voids: usize,
    chain: Chain,
}

fn read(bench: &mut dyn Bench, log: &mut dyn TransactionLog) -> Reading {
    let origin = bench.origin();
    let mut follower = bench.follower();
    let mut reading = Reading {
        tail: origin,
        records: Vec::new(),
        payloads: Vec::new(),
        voids: 0,
        chain: follower.chain(),
    };
    log.read_from(origin.next());
    let caught_up = await_event(bench, log, |event| match event {
        LogEvent::Read(position, bytes) => {
            assert_eq!(position, reading.tail.next(), "reading is gapless and in order");
            reading.tail = position;
            match follower.consume(position.sequence, &bytes).expect("records are readable") {
                Consumed::Record(record) if record.header.kind == Kind::Data => {
                    reading.payloads.push(record.payload);
                }
                Consumed::Void => reading.voids += 1,
                Consumed::Record(_) | Consumed::Buffered => {}
            }
            reading.records.push(bytes);
            None
        }
        LogEvent::CaughtUp(position) => Some(position),
        LogEvent::Durable(_) | LogEvent::Failed(..) => None,
        other => panic!("reading gave {other:?}"),
    });
    assert_eq!(caught_up, reading.tail, "caught up means that everything was handed out");
    reading.chain = follower.chain();
    reading
}

/// Polls until `pick` finds what it looks for.
fn await_event<T>(
    bench: &mut dyn Bench,
    log: &mut dyn TransactionLog,
    mut pick: impl FnMut(LogEvent) -> Option<T>,
) -> T {
    for _ in 0..TURNS_MAX {
        let mut events = Vec::new();
        log.poll(&mut events);
        let found = events.into_iter().filter_map(&mut pick).last();
        if let Some(found) = found {
            return found;
        }
        bench.wait();
    }
    panic!("the event never came");
}

fn read_new(bench: &mut dyn Bench) -> Reading {
    let mut log = bench.open();
    read(bench, &mut *log)
}

fn payload(number: usize) -> Vec<u8> {
    vec![number as u8; number * 7 % 300]
}

fn records_are_read_in_the_order_of_their_appends(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let expected: Vec<Bytes> = (0..200).map(|number| payload(number).into()).collect();
    for (number, payload) in expected.iter().enumerate() {
        leader.append_data(payload);
        if number % 20 == 19 {
            assert_eq!(leader.settle(bench), []);
        }
    }
    let ticket = leader.log.tail();
    let (position, confirmed) = await_event(bench, &mut *leader.log, |event| match event {
        LogEvent::Tail { ticket: of, position, confirmed } if of == ticket => {
            Some((position, confirmed))
        }
        _ => None,
    });
    assert_eq!(position, leader.at);
    assert_eq!(confirmed, bench.confirms_tail(), "whether a leader's tail is confirmed");
    let reading = read(bench, &mut *leader.log);
    assert_eq!((reading.payloads, reading.voids), (expected, 0));
}

fn an_append_at_another_place_is_a_conflict(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    leader.append_data(b"one");
    assert_eq!(leader.settle(bench), []);
    let tail = leader.at;
    let record = leader.data(b"two");
    for wrong in [Sequence(tail.sequence.0 - 1), tail.sequence.next()] {
        let ticket = leader.log.append(tail.at(wrong), record.clone());
        let error = await_event(bench, &mut *leader.log, |event| match event {
            LogEvent::Failed(of, error) if of == ticket => Some(error),
            _ => None,
        });
        assert_eq!(error, AppendError::Conflict { tail });
    }
    assert_eq!(read_new(bench).payloads, [Bytes::from_static(b"one")]);
}

fn what_a_deposed_writer_sent_ahead_is_void(bench: &mut dyn Bench) {
    let mut old = Leader::elect(bench, 1);
    old.append_data(b"before");
    assert_eq!(old.settle(bench), []);
    let mut new = Leader::elect(bench, 2);
    // The first of these meets the new Lead; the numbers of the other two fit.
    for _ in 0..3 {
        old.append_data(b"never");
    }
    assert!(!old.settle(bench).is_empty(), "a deposed writer learns that it failed");
    if bench.accepts_by_number() && !bench.resolves_doubts() {
        // What a leader does on a conflict: read, find no foreign Lead, append at the new tail.
        new.at = read_new(bench).tail;
    }
    new.append_data(b"after");
    new.append_data(b"and on");
    assert_eq!(new.settle(bench), []);
    let reading = read_new(bench);
    assert_eq!(reading.payloads, [&b"before"[..], b"after", b"and on"]);
    assert_eq!(reading.tail, new.at, "a leader knows where its records stand");
    assert_eq!(reading.voids, if bench.accepts_by_number() { 2 } else { 0 });
}

fn a_candidate_that_comes_late_reads_on_and_leads(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let mut log = bench.open();
    let early = read(bench, &mut *log);
    leader.append_data(b"one");
    leader.append_data(b"two");
    assert_eq!(leader.settle(bench), []);
    let mut stamper = Stamper::new(WriterId(2), early.chain, UnixMillis(0));
    let lead = stamper.lead(LEASE_MILLIS, &[], UnixMillis(1), early.tail.sequence);
    let ticket = log.append(early.tail, lead);
    let error = await_event(bench, &mut *log, |event| match event {
        LogEvent::Failed(of, error) if of == ticket => Some(error),
        _ => None,
    });
    let AppendError::Conflict { tail } = error else { panic!("a late Lead gave {error:?}") };
    assert!(tail > early.tail && tail <= leader.at, "the tail is {tail:?}");
    let reading = read(bench, &mut *log);
    assert_eq!(reading.payloads, [&b"one"[..], b"two"]);
    let stamper = Stamper::new(WriterId(3), reading.chain, UnixMillis(0));
    let mut late = Leader { log, stamper, at: reading.tail };
    let lead = late.stamper.lead(LEASE_MILLIS, &[], UnixMillis(1), late.at.sequence);
    late.append(lead);
    late.append_data(b"three");
    assert_eq!(late.settle(bench), []);
    leader.append_data(b"never");
    assert!(!leader.settle(bench).is_empty(), "it was deposed");
    assert_eq!(read_new(bench).payloads, [&b"one"[..], b"two", b"three"]);
}

fn a_reader_tails_what_another_appends(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let mut log = bench.open();
    let mut at = bench.origin();
    log.read_from(at.next());
    for round in 0..5 {
        for number in 0..round * 3 {
            leader.append_data(&payload(number));
        }
        if round > 0 {
            assert_eq!(leader.settle(bench), []);
        }
        let mut told = None;
        await_event(bench, &mut *log, |event| {
            match event {
                LogEvent::Read(position, _) => {
                    assert_eq!(position, at.next(), "reading is gapless and in order");
                    at = position;
                }
                LogEvent::CaughtUp(position) => {
                    assert_eq!(position, at, "caught up means that everything was handed out");
                    assert_ne!(told, Some(position), "told once");
                    told = Some(position);
                }
                other => panic!("reading gave {other:?}"),
            }
            (told == Some(leader.at)).then_some(())
        });
    }
}

fn reading_begins_in_the_middle(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    for number in 0..20 {
        leader.append_data(&payload(number));
    }
    assert_eq!(leader.settle(bench), []);
    let all = read_new(bench).records;
    for (skipped, log) in [(7, &mut *leader.log), (20, &mut *bench.open())] {
        log.read_from(bench.origin().at(Sequence(skipped as u64 + 1)));
        let mut read = Vec::new();
        await_event(bench, log, |event| match event {
            LogEvent::Read(_, bytes) => {
                read.push(bytes);
                None
            }
            LogEvent::CaughtUp(_) => Some(()),
            _ => None,
        });
        assert_eq!(read, all[skipped..]);
    }
}

fn a_lost_acknowledgement_leaves_one_record(bench: &mut dyn Bench) {
    if !bench.lose_next(Loss::Acknowledgement) {
        return;
    }
    bench.reset();
    let mut leader = Leader::elect(bench, 1);
    let before = leader.at;
    bench.lose_next(Loss::Acknowledgement);
    let record = leader.data(b"once");
    let ticket = leader.append(record.clone());
    if bench.resolves_doubts() {
        is_found_out(bench, leader, &record);
        return;
    }
    assert_eq!(leader.settle(bench), [(ticket, AppendError::InDoubt)]);
    // Sent again unchanged, it meets itself.
    let again = leader.log.append(before, record.clone());
    let error = await_event(bench, &mut *leader.log, |event| match event {
        LogEvent::Failed(of, error) if of == again => Some(error),
        _ => None,
    });
    assert_eq!(error, AppendError::Conflict { tail: leader.at });
    let reading = read_new(bench);
    assert_eq!(reading.records.last(), Some(&record));
    assert_eq!(reading.payloads, [&b"once"[..]]);
}

fn a_lost_record_is_sent_again_unchanged(bench: &mut dyn Bench) {
    if !bench.lose_next(Loss::Record) {
        return;
    }
    bench.reset();
    let mut leader = Leader::elect(bench, 1);
    let before = leader.at;
    bench.lose_next(Loss::Record);
    let record = leader.data(b"once");
    let ticket = leader.append(record.clone());
    if bench.resolves_doubts() {
        is_found_out(bench, leader, &record);
        return;
    }
    assert_eq!(leader.settle(bench), [(ticket, AppendError::InDoubt)]);
    assert_eq!(read_new(bench).tail, before, "absent, but that is not final");
    leader.log.append(before, record);
    for _ in 0..3 {
        bench.wait();
        leader.log.poll(&mut Vec::new());
    }
    assert_eq!(read_new(bench).payloads, [&b"once"[..]]);
}

/// What became of `record` is for the handle to find out: it is there once, and so is what follows.
fn is_found_out(bench: &mut dyn Bench, mut leader: Leader, record: &Bytes) {
    leader.append_data(b"next");
    assert_eq!(leader.settle(bench), []);
    let reading = read_new(bench);
    assert_eq!(reading.records.iter().filter(|stored| *stored == record).count(), 1);
    assert_eq!((reading.payloads, reading.voids), (vec!["once".into(), "next".into()], 0));
}

fn trimming_forgets_no_more_than_asked(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let start = leader.stamper.chain();
    let mut middle = start;
    for number in 0..120 {
        leader.append_data(&payload(number));
        if leader.at.sequence.0 == 61 {
            middle = leader.stamper.chain();
        }
        if number % 10 == 9 {
            assert_eq!(leader.settle(bench), []);
        }
    }
    let all = read_new(bench).records;
    let through = leader.at.at(Sequence(leader.at.sequence.0 / 2));
    leader.log.trim(through);
    let ticket = leader.log.first();
    let first = await_event(bench, &mut *leader.log, |event| match event {
        LogEvent::First { ticket: of, position } if of == ticket => Some(position),
        _ => None,
    });
    assert!(first.sequence > Sequence(2), "more than the first record was forgotten");
    assert!(first.sequence <= through.sequence.next(), "no more than asked");
    leader.log.read_from(through.next());
    let mut read = Vec::new();
    await_event(bench, &mut *leader.log, |event| match event {
        LogEvent::Read(_, bytes) => {
            read.push(bytes);
            None
        }
        LogEvent::CaughtUp(_) => Some(()),
        _ => None,
    });
    assert_eq!(read, all[through.sequence.0 as usize..]);
    for log in [&mut *leader.log, &mut *bench.open()] {
        assert_eq!(compare(bench, log, first.at(Sequence(1)), start), History::Trimmed);
        assert_eq!(compare(bench, log, first.at(Sequence(61)), middle), History::Same);
        log.read_from(first.at(Sequence(1)));
        let trimmed = await_event(bench, log, |event| match event {
            LogEvent::Trimmed { first } => Some(first),
            _ => None,
        });
        assert_eq!(trimmed, first.sequence);
    }
}

fn a_log_created_anew_is_lost(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    leader.append_data(b"one");
    assert_eq!(leader.settle(bench), []);
    bench.recreate();
    let (at, chain) = (leader.at, leader.stamper.chain());
    assert_eq!(compare(bench, &mut *leader.log, at, chain), History::Lost);
    let ticket = leader.append_data(b"two");
    assert_eq!(leader.settle(bench), [(ticket, AppendError::LogLost)]);
    leader.log.read_from(leader.at.at(Sequence(1)));
    await_event(bench, &mut *leader.log, |event| (event == LogEvent::Lost).then_some(()));
    assert_eq!(read_new(bench).payloads, Vec::<Bytes>::new());
}

/// Whoever reads from there, and whoever compares what stood there. Both at a time, because a
/// service that confirms no tail is given long before that is believed.
fn a_position_behind_the_tail_is_lost(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    leader.append_data(b"one");
    assert_eq!(leader.settle(bench), []);
    let mut log = bench.open();
    log.read_from(leader.at.next().next());
    let asked = log.compare(leader.at.next(), leader.stamper.chain());
    let (mut is_lost, mut compared) = (false, None);
    await_event(bench, &mut *log, |event| {
        match event {
            LogEvent::Lost => is_lost = true,
            LogEvent::Compared { ticket, history } if ticket == asked => compared = Some(history),
            _ => {}
        }
        (is_lost && compared.is_some()).then_some(())
    });
    assert_eq!(compared, Some(History::Lost));
}

fn a_record_too_large_is_refused_alone(bench: &mut dyn Bench) {
    let mut leader = Leader::elect(bench, 1);
    let bytes_max = leader.log.limits().record_bytes_max;
    let bytes = bytes_max + 1;
    let ticket = leader.log.append(leader.at, vec![0; bytes].into());
    let error = await_event(bench, &mut *leader.log, |event| match event {
        LogEvent::Failed(of, error) if of == ticket => Some(error),
        _ => None,
    });
    assert_eq!(error, AppendError::TooLarge { bytes, bytes_max });
    let largest = vec![7; bytes_max - crate::record::HEADER_BYTES];
    leader.append_data(&largest);
    assert_eq!(leader.settle(bench), []);
    assert_eq!(read_new(bench).payloads, [largest]);
}

fn acknowledged_records_survive_a_crash(bench: &mut dyn Bench) {
    let mut expected = Vec::new();
    for life in 0..4 {
        let mut leader = Leader::elect(bench, life);
        for number in 0..30 {
            leader.append_data(&payload(number));
            expected.push(Bytes::from(payload(number)));
        }
        assert_eq!(leader.settle(bench), []);
        drop(leader);
        bench.crash();
        let reading = read_new(bench);
        assert_eq!((reading.payloads, reading.voids), (expected.clone(), 0), "life {life}");
    }
}
