//! The remote log over a store whose every answer the test gives: what it asks for, in which order,
//! and what it makes of the answers.

use base::time::SECOND;
use base::{Clock, Epoch, Incarnation, MonotonicNanos, Position, Sequence, UnixMillis};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use txlog::log::{AppendError, Gate, History, LogEvent, Refusal, Ticket, TransactionLog};
use txlog::remote::store::{Operation, OperationId, Outcome, RecordStore, StoreLimits};
use txlog::remote::{Broken, RemoteLog};
use txlog::{Chain, Kind, Part, Stamper, WriterId, empty_record};

const LOG: Incarnation = Incarnation(5);

#[derive(Default)]
struct Script {
    begun: Vec<(OperationId, Operation)>,
    answers: Vec<(OperationId, Outcome)>,
    ids: u64,
    trouble: Option<Refusal>,
}

#[derive(Clone, Default)]
struct Scripted {
    script: Arc<Mutex<Script>>,
    puts_max: usize,
}

impl RecordStore for Scripted {
    fn limits(&self) -> StoreLimits {
        StoreLimits { record_bytes_max: 1000, puts_max: self.puts_max, record_cost_bytes: 0 }
    }
    fn incarnation(&self) -> Incarnation {
        LOG
    }
    fn begin(&mut self, operation: Operation) -> OperationId {
        let mut script = self.script.lock().expect("not poisoned");
        script.ids += 1;
        let id = OperationId(script.ids);
        script.begun.push((id, operation));
        id
    }
    fn poll(&mut self, outcomes: &mut Vec<(OperationId, Outcome)>) {
        outcomes.append(&mut self.script.lock().expect("not poisoned").answers);
    }
    fn trouble(&self) -> Option<Refusal> {
        self.script.lock().expect("not poisoned").trouble.clone()
    }
}

#[derive(Default)]
struct HandClock(AtomicU64);

impl Clock for HandClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.load(Ordering::SeqCst))
    }
}

struct Bench {
    log: RemoteLog,
    store: Scripted,
    clock: Arc<HandClock>,
    stamper: Stamper,
    appended: Sequence,
    /// What was appended, in order, and how many places further on it stands now.
    records: Vec<Bytes>,
    shifted: u64,
    /// The last of them that was told durable, and its place.
    ours: Option<(Sequence, Bytes)>,
    /// Asked of the store and not yet answered.
    open: Vec<(OperationId, Operation)>,
}

fn at(sequence: u64) -> Position {
    Position { incarnation: LOG, sequence: Sequence(sequence) }
}

fn stamper(writer: u64) -> Stamper {
    Stamper::new(WriterId(writer), Chain::start(LOG), UnixMillis(0))
}

fn data(stamper: &mut Stamper, payload: &[u8]) -> Bytes {
    let mut buffer = empty_record(payload.len());
    buffer.extend_from_slice(payload);
    stamper.stamp(Kind::Data, Part::Whole, buffer, UnixMillis(0), Sequence::ZERO)
}

fn put(sequence: u64, record: &Bytes) -> Operation {
    Operation::Put { sequence: Sequence(sequence), record: record.clone() }
}

fn records(records: &[&Bytes], tail: u64) -> Outcome {
    let records = records.iter().map(|record| (*record).clone()).collect();
    Outcome::Records { records, tail: Sequence(tail) }
}

fn doubt() -> Outcome {
    Outcome::InDoubt("no answer".to_owned())
}

impl Bench {
    fn new(puts_max: usize) -> Self {
        let store = Scripted { puts_max, ..Scripted::default() };
        let clock = Arc::new(HandClock(AtomicU64::new(SECOND)));
        let log = RemoteLog::new(Box::new(store.clone()), clock.clone());
        let (stamper, appended) = (stamper(1), Sequence::ZERO);
        let (records, open) = (Vec::new(), Vec::new());
        Self { log, store, clock, stamper, appended, records, shifted: 0, ours: None, open }
    }

    /// A handle whose `Lead` stands at 1.
    fn leader(puts_max: usize) -> Self {
        let mut bench = Self::new(puts_max);
        let lead = bench.stamper.lead(1000, &[], UnixMillis(0), Sequence::ZERO);
        bench.append(&lead);
        assert_eq!(bench.poll(), []);
        bench.answer(&put(1, &lead), Outcome::Stored);
        assert_eq!(bench.poll(), [LogEvent::Durable(at(1))]);
        assert_eq!(bench.log.gate(), Gate::Open);
        bench
    }

    fn append(&mut self, record: &Bytes) -> Ticket {
        let ticket = self.log.append(at(self.appended.0), record.clone());
        self.appended = self.appended.next();
        self.records.push(record.clone());
        ticket
    }

    /// Appends records named by letters.
    fn write(&mut self, names: &str) -> Vec<Bytes> {
        let record = |name: char| {
            let record = data(&mut self.stamper, name.to_string().as_bytes());
            self.append(&record);
            record
        };
        names.chars().map(record).collect()
    }

    fn poll(&mut self) -> Vec<LogEvent> {
        let mut events = Vec::new();
        self.log.poll(&mut events);
        for event in &events {
            match event {
                LogEvent::Shifted { by } => self.shifted += by,
                LogEvent::Durable(at) => {
                    let index = (at.sequence.0 - self.shifted - 1) as usize;
                    self.ours = self.records.get(index).map(|it| (at.sequence, it.clone()));
                }
                _ => {}
            }
        }
        self.open.append(&mut self.store.script.lock().expect("not poisoned").begun);
        events
    }

    /// What the store was asked for and has not answered.
    fn asked(&self) -> Vec<Operation> {
        self.open.iter().map(|(_, operation)| operation.clone()).collect()
    }

    /// Answers the oldest such operation.
    fn answer(&mut self, operation: &Operation, outcome: Outcome) {
        let index = self.open.iter().position(|(_, open)| open == operation);
        let (id, _) = self.open.remove(index.expect("the store was asked for it"));
        self.store.script.lock().expect("not poisoned").answers.push((id, outcome));
    }

    /// Answers the reading back from `from` on. If it begins with the last record that was told
    /// durable, that one stands there unless the log ends before it, and void ones behind it.
    fn answer_check(&mut self, from: u64, mut outcome: Outcome) {
        let [(_, Operation::Get { from: asked, waits: false, .. })] = self.open[..] else {
            panic!("nothing else may be under way: {:?}", self.open);
        };
        let operation = self.open[0].1.clone();
        if asked == Sequence(from) {
            self.answer(&operation, outcome);
            return;
        }
        let (ours_at, ours) = self.ours.clone().expect("something of ours is durable");
        assert_eq!(asked, ours_at, "it begins with that, or behind it");
        match &mut outcome {
            Outcome::Records { records, tail } if *tail >= ours_at => {
                let settled = (asked.0..from).map(|_| ours.clone());
                records.splice(0..0, settled);
            }
            Outcome::Trimmed { .. } => {
                self.answer(&operation, outcome.clone());
                assert_eq!(self.poll(), [], "what is in doubt need not be trimmed");
                return self.answer_check(from, outcome);
            }
            _ => {}
        }
        self.answer(&operation, outcome);
    }

    fn pass(&self, nanos: u64) {
        self.clock.0.fetch_add(nanos, Ordering::SeqCst);
    }
}

#[test]
fn puts_go_out_in_a_window_and_count_in_order() {
    let mut bench = Bench::leader(2);
    let r = bench.write("abc");
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.asked(), [put(2, &r[0]), put(3, &r[1])]);
    bench.answer(&put(3, &r[1]), Outcome::Stored);
    assert_eq!(bench.poll(), [], "an earlier one is not acknowledged");
    assert_eq!(bench.asked(), [put(2, &r[0])], "nor does the window move");
    bench.answer(&put(2, &r[0]), Outcome::Stored);
    assert_eq!(bench.poll(), [LogEvent::Durable(at(3))]);
    assert_eq!(bench.asked(), [put(4, &r[2])]);
}

#[test]
fn the_gate_waits_when_much_is_under_way() {
    let mut bench = Bench::leader(2);
    bench.write("abc");
    assert_eq!(bench.log.gate(), Gate::Open);
    bench.write("d");
    assert_eq!(bench.log.gate(), Gate::Wait);
    assert_eq!(bench.log.limits().in_flight_records_max, 4);
}

#[test]
fn what_is_absent_is_put_again_unchanged_once_nothing_is_under_way() {
    let mut bench = Bench::leader(3);
    let r = bench.write("abcd");
    bench.poll();
    bench.answer(&put(2, &r[0]), doubt());
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.asked(), [put(3, &r[1]), put(4, &r[2])], "two are still under way");
    assert_eq!(bench.log.gate(), Gate::Wait);
    bench.answer(&put(3, &r[1]), Outcome::Misplaced);
    bench.answer(&put(4, &r[2]), Outcome::Misplaced);
    bench.poll();
    bench.answer_check(2, records(&[], 1));
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.asked(), [put(2, &r[0]), put(3, &r[1]), put(4, &r[2])]);
    // The first attempt landed meanwhile: the second one meets it.
    bench.answer(&put(2, &r[0]), Outcome::Misplaced);
    bench.answer(&put(3, &r[1]), Outcome::Stored);
    bench.answer(&put(4, &r[2]), Outcome::Stored);
    assert_eq!(bench.poll(), []);
    bench.pass(SECOND);
    bench.poll();
    bench.answer_check(2, records(&[&r[0], &r[1]], 4));
    assert_eq!(bench.poll(), [LogEvent::Durable(at(3))]);
    bench.answer_check(4, records(&[&r[2]], 4));
    assert_eq!(bench.poll(), [LogEvent::Durable(at(4))]);
    assert_eq!(bench.asked(), [put(5, &r[3])]);
}

#[test]
fn stragglers_are_passed_and_so_are_our_own_that_landed_behind_a_gap() {
    let mut bench = Bench::leader(3);
    let r = bench.write("abc");
    let straggler = data(&mut stamper(9), b"straggler");
    bench.poll();
    bench.answer(&put(2, &r[0]), Outcome::Misplaced);
    bench.answer(&put(3, &r[1]), Outcome::Stored);
    bench.answer(&put(4, &r[2]), doubt());
    bench.poll();
    // Ours at 3 names a predecessor that does not stand before it: it is void, stored or not.
    bench.answer_check(2, records(&[&straggler, &r[1]], 3));
    assert_eq!(bench.poll(), [LogEvent::Shifted { by: 2 }]);
    assert_eq!(bench.asked(), [put(4, &r[0]), put(5, &r[1]), put(6, &r[2])]);
    // The attempt in doubt lands after all, where its number fits.
    bench.answer(&put(4, &r[0]), Outcome::Misplaced);
    bench.answer(&put(5, &r[1]), Outcome::Stored);
    bench.answer(&put(6, &r[2]), Outcome::Stored);
    bench.poll();
    bench.answer_check(4, records(&[&r[2], &r[1], &r[2]], 6));
    assert_eq!(bench.poll(), [LogEvent::Shifted { by: 3 }]);
    for (place, record) in (7..).zip(&r) {
        bench.answer(&put(place, record), Outcome::Stored);
    }
    assert_eq!(bench.poll(), [7, 8, 9].map(|place| LogEvent::Durable(at(place))));
    let next = data(&mut bench.stamper, b"next");
    bench.log.append(at(9), next.clone());
    bench.poll();
    assert_eq!(bench.asked(), [put(10, &next)]);
}

#[test]
fn what_is_found_among_stragglers_is_told_in_order() {
    let mut bench = Bench::leader(2);
    let r = bench.write("ab");
    let straggler = data(&mut stamper(9), b"straggler");
    bench.poll();
    bench.answer(&put(2, &r[0]), doubt());
    bench.answer(&put(3, &r[1]), doubt());
    bench.poll();
    bench.answer_check(2, records(&[&r[0], &straggler, &straggler, &r[1]], 5));
    let told = [LogEvent::Durable(at(2)), LogEvent::Shifted { by: 2 }, LogEvent::Durable(at(5))];
    assert_eq!(bench.poll(), told);
    assert_eq!(bench.log.gate(), Gate::Open);
}

#[test]
fn a_foreign_lead_deposes_until_the_next_one_of_ours() {
    let mut bench = Bench::leader(2);
    let mut rival = Stamper::new(WriterId(2), bench.stamper.chain(), UnixMillis(0));
    let lead = rival.lead(1000, &[], UnixMillis(0), Sequence::ZERO);
    let r = bench.write("abc");
    bench.poll();
    bench.answer(&put(2, &r[0]), Outcome::Misplaced);
    bench.answer(&put(3, &r[1]), Outcome::Stored);
    bench.poll();
    bench.answer_check(2, records(&[&lead, &r[1]], 3));
    let told = [
        LogEvent::Failed(Ticket(2), AppendError::Conflict { tail: at(3) }),
        LogEvent::Failed(Ticket(3), AppendError::InDoubt),
        LogEvent::Failed(Ticket(4), AppendError::NotAttempted),
    ];
    assert_eq!(bench.poll(), told);
    assert_eq!(bench.log.gate(), Gate::Refuse(Refusal::NotWriter));
    let refused = bench.log.append(at(4), r[0].clone());
    assert_eq!(bench.poll(), [LogEvent::Failed(refused, AppendError::NotAttempted)]);
    let again = rival.lead(1000, &[], UnixMillis(0), Sequence::ZERO);
    bench.log.append(at(3), again.clone());
    bench.poll();
    bench.answer(&put(4, &again), Outcome::Stored);
    assert_eq!(bench.poll(), [LogEvent::Durable(at(4))]);
    assert_eq!(bench.log.gate(), Gate::Open);
}

#[test]
fn nothing_is_put_behind_a_lead_that_is_not_durable() {
    let mut bench = Bench::new(8);
    let lead = bench.stamper.lead(1000, &[], UnixMillis(0), Sequence::ZERO);
    bench.append(&lead);
    let r = bench.write("a");
    bench.poll();
    assert_eq!(bench.asked(), [put(1, &lead)]);
    bench.answer(&put(1, &lead), Outcome::Stored);
    bench.poll();
    assert_eq!(bench.asked(), [put(2, &r[0])]);
}

/// A leader whose log was restored to its state before "b", and led on by somebody who writes
/// `more` records. Its next put meets the last of them.
fn restored_under_its_leader(broken: Option<Broken>, more: usize) -> Vec<LogEvent> {
    let mut bench = Bench::leader(1);
    if let Some(broken) = broken {
        bench.log.break_rule(broken);
    }
    let before = bench.stamper.chain();
    let b = bench.write("b");
    bench.poll();
    bench.answer(&put(2, &b[0]), Outcome::Stored);
    bench.poll();
    let mut other = Stamper::new(WriterId(2), before, UnixMillis(0));
    // As many epochs as ours: the numbers tell nothing.
    let theirs: Vec<Bytes> = (0..more).map(|_| data(&mut other, b"theirs")).collect();
    let c = bench.write("c");
    bench.poll();
    bench.answer(&put(3, &c[0]), Outcome::Misplaced);
    bench.poll();
    let Operation::Get { from, .. } = bench.asked()[0] else { panic!("it reads back") };
    let stored: Vec<&Bytes> = theirs.iter().skip(from.0 as usize - 2).collect();
    let get = bench.asked()[0].clone();
    bench.answer(&get, records(&stored, 1 + more as u64));
    bench.poll()
}

#[test]
fn a_leader_goes_on_in_its_own_history_only() {
    let lost = [LogEvent::Failed(Ticket(3), AppendError::LogLost)];
    assert_eq!(restored_under_its_leader(None, 2), lost);
}

#[test]
fn a_leader_that_goes_on_in_any_history_is_caught() {
    let broken = Some(Broken::TrustsHistory);
    assert_eq!(restored_under_its_leader(broken, 2), [LogEvent::Shifted { by: 1 }]);
}

#[test]
fn a_comparison_is_asked_again_until_the_service_answers() {
    let mut bench = Bench::new(1);
    let mut writer = stamper(1);
    let record = data(&mut writer, b"x");
    let chain = Chain::behind(&record).expect("a record");
    for (chain, history) in
        [(chain, History::Same), (Chain { epoch: Epoch(9), ..chain }, History::Other)]
    {
        let ticket = bench.log.compare(at(4), chain);
        bench.poll();
        let get = Operation::Get { from: Sequence(4), bytes_max: 1, waits: false };
        let known = Outcome::Tail { sequence: Sequence(9), is_confirmed: false };
        for (question, outcome) in [
            (&get, Outcome::Failed("away".to_owned())),
            // It withholds the record, or does not know of it yet.
            (&get, records(&[], 9)),
            (&get, records(&[], 2)),
            (&Operation::Tail, known),
            (&get, records(&[&record], 9)),
        ] {
            assert_eq!(bench.asked(), std::slice::from_ref(question));
            bench.answer(question, outcome);
            let told = bench.poll();
            if bench.log.is_busy() {
                assert_eq!(told, []);
            } else {
                assert_eq!(told, [LogEvent::Compared { ticket, history }]);
            }
            bench.pass(SECOND);
            bench.poll();
        }
    }
    let ticket = bench.log.compare(at(4), chain);
    bench.poll();
    let get = bench.asked()[0].clone();
    bench.answer(&get, Outcome::Trimmed { first: Sequence(5) });
    let history = History::Trimmed;
    assert_eq!(bench.poll(), [LogEvent::Compared { ticket, history }]);
}

#[test]
fn a_comparison_believes_a_short_log_only_if_it_is_confirmed_or_stays_so() {
    for is_confirmed in [true, false] {
        let mut bench = Bench::new(1);
        let chain = Chain::start(LOG);
        let tickets = [bench.log.compare(at(4), chain), bench.log.compare(at(2), chain)];
        bench.poll();
        let get = |from| Operation::Get { from: Sequence(from), bytes_max: 1, waits: false };
        bench.answer(&get(4), records(&[], 3));
        assert_eq!(bench.poll(), []);
        let began = bench.clock.monotonic().0;
        let history = History::Lost;
        let tail = Outcome::Tail { sequence: Sequence(3), is_confirmed };
        loop {
            bench.pass(SECOND / 2);
            bench.poll();
            if bench.asked() == [Operation::Tail] {
                bench.answer(&Operation::Tail, tail.clone());
            }
            if bench.poll() == [LogEvent::Compared { ticket: tickets[0], history }] {
                break;
            }
            assert!(!is_confirmed);
        }
        let seconds = (bench.clock.monotonic().0 - began) / SECOND;
        assert_eq!(seconds > 14, !is_confirmed, "after {seconds} s");
        // The next one begins without suspicion.
        bench.pass(SECOND);
        bench.poll();
        bench.answer(&get(2), Outcome::Lost("it was deleted".to_owned()));
        assert_eq!(bench.poll(), [LogEvent::Compared { ticket: tickets[1], history }]);
    }
}

#[test]
fn a_candidate_does_not_pass_what_it_has_not_read() {
    let mut bench = Bench::new(2);
    let lead = bench.stamper.lead(1000, &[], UnixMillis(0), Sequence::ZERO);
    let ticket = bench.append(&lead);
    let straggler = data(&mut stamper(9), b"straggler");
    bench.poll();
    bench.answer(&put(1, &lead), Outcome::Misplaced);
    bench.poll();
    bench.answer_check(1, records(&[&straggler], 1));
    let conflict = AppendError::Conflict { tail: at(1) };
    assert_eq!(bench.poll(), [LogEvent::Failed(ticket, conflict)]);
}

#[test]
fn a_full_service_keeps_what_is_appended_waiting_and_the_gate_shut() {
    let mut bench = Bench::leader(1);
    let r = bench.write("a");
    bench.poll();
    bench.answer(&put(2, &r[0]), Outcome::Full("no room".to_owned()));
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.log.gate(), Gate::Refuse(Refusal::DiskFull));
    assert_eq!(bench.asked(), [], "it is left alone for a while");
    let wait = bench.log.wait_nanos().expect("it tries again by itself");
    bench.pass(wait);
    bench.poll();
    bench.answer_check(2, records(&[], 1));
    bench.poll();
    assert_eq!(bench.log.gate(), Gate::Refuse(Refusal::DiskFull));
    bench.answer(&put(2, &r[0]), Outcome::Stored);
    assert_eq!(bench.poll(), [LogEvent::Durable(at(2))]);
    assert_eq!(bench.log.gate(), Gate::Open);
}

#[test]
fn silence_and_trouble_shut_the_gate_by_name() {
    let mut bench = Bench::leader(1);
    let r = bench.write("a");
    bench.poll();
    bench.pass(SECOND + 1);
    bench.poll();
    assert!(matches!(bench.log.gate(), Gate::Refuse(Refusal::Unavailable(_))));
    bench.answer(&put(2, &r[0]), Outcome::Stored);
    bench.poll();
    assert_eq!(bench.log.gate(), Gate::Open);
    let trouble = Refusal::Unavailable("no connection".to_owned());
    bench.store.script.lock().expect("not poisoned").trouble = Some(trouble.clone());
    bench.poll();
    assert_eq!(bench.log.gate(), Gate::Refuse(trouble));
}

#[test]
fn an_answer_from_the_past_is_no_absence_and_a_lasting_one_is_a_loss() {
    let mut bench = Bench::leader(1);
    let r = bench.write("a");
    bench.poll();
    bench.answer(&put(2, &r[0]), doubt());
    bench.poll();
    for seconds in 0..=26 {
        bench.answer_check(2, records(&[], 0));
        let told = bench.poll();
        if seconds == 26 {
            assert_eq!(told, [LogEvent::Failed(Ticket(2), AppendError::LogLost)]);
        } else {
            assert_eq!(told, [], "after {seconds} s");
            bench.pass(SECOND);
            bench.poll();
        }
    }
    assert_eq!(bench.log.gate(), Gate::Refuse(Refusal::LogLost));
}

#[test]
fn one_answer_that_knows_of_more_takes_back_that_the_log_seems_lost() {
    let mut bench = Bench::leader(1);
    let r = bench.write("a");
    bench.poll();
    bench.answer(&put(2, &r[0]), doubt());
    bench.poll();
    // From the past, from somebody who knows of a record and withholds it, and from the past again.
    for tail in [0, 7, 0] {
        bench.answer_check(2, records(&[], tail));
        assert_eq!(bench.poll(), [], "not every answer of that time says so");
        bench.pass(20 * SECOND);
        bench.poll();
    }
    bench.answer_check(2, records(&[&r[0]], 2));
    assert_eq!(bench.poll(), [LogEvent::Durable(at(2))]);
}

#[test]
fn a_place_that_was_trimmed_cannot_be_known_any_more() {
    let mut bench = Bench::leader(1);
    let r = bench.write("a");
    bench.poll();
    bench.answer(&put(2, &r[0]), Outcome::Misplaced);
    bench.poll();
    bench.answer_check(2, Outcome::Trimmed { first: Sequence(9) });
    assert_eq!(bench.poll(), [LogEvent::Failed(Ticket(2), AppendError::InDoubt)]);
    assert_eq!(bench.log.gate(), Gate::Refuse(Refusal::NotWriter));
}

#[test]
fn a_lost_log_fails_everything() {
    let mut bench = Bench::leader(2);
    let r = bench.write("abc");
    bench.poll();
    bench.answer(&put(3, &r[1]), Outcome::Lost("another one".to_owned()));
    let told = [2, 3, 4].map(|ticket| LogEvent::Failed(Ticket(ticket), AppendError::LogLost));
    assert_eq!(bench.poll(), told);
    bench.answer(&put(2, &r[0]), Outcome::Stored);
    assert_eq!(bench.poll(), [], "what it says of a lost log is of no interest");
    let ticket = bench.log.append(at(2), r[0].clone());
    assert_eq!(bench.poll(), [LogEvent::Failed(ticket, AppendError::LogLost)]);
}

#[test]
fn reading_asks_for_one_piece_at_a_time_and_waits_at_the_end() {
    let mut bench = Bench::new(1);
    let mut writer = stamper(1);
    let r: Vec<Bytes> = (0..3).map(|_| data(&mut writer, b"x")).collect();
    bench.log.read_from(at(1));
    assert_eq!(bench.poll(), []);
    bench.answer_check(1, records(&[&r[0], &r[1]], 3));
    let read = |place: u64| LogEvent::Read(at(place), r[place as usize - 1].clone());
    assert_eq!(bench.poll(), [read(1), read(2)]);
    assert!(bench.log.is_busy());
    bench.answer_check(3, Outcome::Failed("no leader".to_owned()));
    assert_eq!(bench.poll(), []);
    bench.answer_check(3, Outcome::Failed("no leader".to_owned()));
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.asked(), [], "not again at once");
    bench.pass(bench.log.wait_nanos().expect("it tries again by itself"));
    bench.poll();
    bench.answer_check(3, records(&[&r[2]], 3));
    assert_eq!(bench.poll(), [read(3), LogEvent::CaughtUp(at(3))]);
    let [Operation::Get { from: Sequence(4), waits: true, .. }] = bench.asked()[..] else {
        panic!("it waits for the next record: {:?}", bench.asked());
    };
    assert!(!bench.log.is_busy() && bench.log.wait_nanos().is_none());
    let waiting = bench.asked()[0].clone();
    bench.answer(&waiting, records(&[], 3));
    assert_eq!(bench.poll(), [], "a tail is told once");
    let waiting = bench.asked()[0].clone();
    bench.log.stop_reading();
    bench.answer(&waiting, records(&[], 3));
    assert_eq!(bench.poll(), []);
    assert_eq!(bench.asked(), []);
}

#[test]
fn a_reader_believes_a_short_log_only_if_it_is_confirmed_or_stays_so() {
    for is_confirmed in [true, false] {
        let mut bench = Bench::new(1);
        bench.log.read_from(at(6));
        bench.poll();
        bench.answer_check(6, records(&[], 3));
        assert_eq!(bench.poll(), []);
        let tail = Outcome::Tail { sequence: Sequence(3), is_confirmed };
        let began = bench.clock.monotonic().0;
        loop {
            if bench.asked() == [Operation::Tail] {
                bench.answer(&Operation::Tail, tail.clone());
            }
            if bench.poll() == [LogEvent::Lost] {
                break;
            }
            assert!(!is_confirmed);
            bench.pass(SECOND / 2);
        }
        let seconds = (bench.clock.monotonic().0 - began) / SECOND;
        assert_eq!(seconds > 14, !is_confirmed, "after {seconds} s");
    }
}

#[test]
fn the_first_record_is_asked_for_behind_a_trim() {
    let mut bench = Bench::leader(1);
    bench.log.trim(at(7));
    let ticket = bench.log.first();
    bench.log.trim(at(5));
    bench.poll();
    let trim = Operation::Trim { through: Sequence(7) };
    assert_eq!(bench.open.len(), 1);
    bench.answer(&trim, Outcome::First { sequence: Sequence(8) });
    assert_eq!(bench.poll(), [LogEvent::First { ticket, position: at(8) }]);
}
