//! What a primary appends amid a command that takes long: what ended before it, in its place, or a
//! renewal; and nothing once the command has no end.

use base::{Moment, Sequence};
use bytes::Bytes;
use engine::effect::EffectDecoder;
use engine::work::Pulse;
use node::reactor::Scratch;
use node::role::member::MemberId;
use node::role::state::{Roles, Terms};
use node::{Keeping, Server};
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::tapped_log::{Listener, TappedLog};
use sim::timeline::Timeline;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use txlog::Kind;
use txlog::record::{HEADER_BYTES, decode_header};

const MILLISECOND: u64 = 1_000_000;
const LEASE_MILLIS: u64 = 1000;

/// What was appended: its place, its kind, the keys of its effects, and the clock that it shows.
type Appended = (u64, Kind, Vec<String>, i64);

/// Writes down what is appended, and says that somebody waits for the lease to end.
struct Scribe(Rc<RefCell<Vec<Appended>>>);

impl Listener for Scribe {
    fn appends(&mut self, place: Sequence, record: &Bytes) {
        let header = decode_header(record, false).expect("a record of our own");
        let mut keys = Vec::new();
        if header.kind == Kind::Data {
            let mut effects = EffectDecoder::new(&record[HEADER_BYTES..]);
            while let Some((_, key, _)) = effects.next_effect().expect("effects of our own") {
                keys.push(String::from_utf8_lossy(key).into_owned());
            }
        }
        self.0.borrow_mut().push((place.0, header.kind, keys, header.clock.0));
    }

    fn watches(&mut self, _: bool) -> bool {
        true
    }
}

/// Lets so much time pass at each step of a command, from the moment at which it is told to.
struct Slow {
    pulse: Rc<RefCell<dyn Pulse>>,
    timeline: Timeline,
    skipped: Rc<Cell<u32>>,
    millis: Rc<Cell<u64>>,
}

impl Pulse for Slow {
    fn beat(&mut self) {
        if let Some(left) = self.skipped.get().checked_sub(1) {
            self.skipped.set(left);
        } else {
            self.timeline.pass(self.millis.get() * MILLISECOND);
        }
        self.pulse.borrow_mut().beat();
    }
}

struct Primary {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    timeline: Timeline,
    network: SimNetwork,
    client: SimClient,
    appended: Rc<RefCell<Vec<Appended>>>,
    /// Steps that take no time, before those of so many milliseconds.
    skipped: Rc<Cell<u32>>,
    millis: Rc<Cell<u64>>,
}

impl Primary {
    fn new() -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let appended = Rc::new(RefCell::new(Vec::new()));
        let listener = Scribe(Rc::clone(&appended));
        let (skipped, millis) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let mut server = lone::server(&clock);
        server.shard.wrap_log(|log| Box::new(TappedLog { log, listener }));
        let lease_nanos = LEASE_MILLIS * MILLISECOND;
        let terms = Terms { lease_nanos, jitter_nanos: 0, may_lead: true };
        server.roles = Roles::new(MemberId([1; 20]), terms);
        server.roles.bid(Moment::default());
        server.roles.led();
        server.shard.keep_lease(Keeping {
            lease_nanos,
            lease_millis: LEASE_MILLIS,
            member: vec![],
        });
        let work = &server.shard.engine.keyspace.work;
        work.set_steps_per_pulse(1);
        work.wrap_pulse(|pulse| {
            let timeline = timeline.clone();
            let (skipped, millis) = (Rc::clone(&skipped), Rc::clone(&millis));
            Rc::new(RefCell::new(Slow { pulse, timeline, skipped, millis }))
        });
        let driver = SimDriver::listen(&network, "here", clock, 1);
        let client = network.connect("here");
        let scratch = Scratch::default();
        let mut primary =
            Self { server, driver, scratch, timeline, network, client, appended, skipped, millis };
        primary.pass();
        primary.appended.borrow_mut().clear();
        primary
    }

    /// What the client receives in some turns.
    fn pass(&mut self) -> String {
        let mut received = Vec::new();
        for _ in 0..20 {
            self.timeline.pass(10 * MILLISECOND);
            self.server.turn(&mut self.driver, &mut self.scratch);
            received.extend(self.client.received());
        }
        String::from_utf8(received).expect("replies are text")
    }

    /// What is answered to requests whose steps take so long, and what was appended meanwhile.
    fn ask(&mut self, requests: &str, skipped: u32, millis: u64) -> (String, Vec<Appended>) {
        self.appended.borrow_mut().clear();
        self.client.send(requests.as_bytes());
        self.timeline.pass(MILLISECOND);
        self.skipped.set(skipped);
        self.millis.set(millis);
        self.server.turn(&mut self.driver, &mut self.scratch);
        self.millis.set(0);
        let appended = self.appended.borrow().clone();
        let mut received = self.client.received();
        received.extend(self.pass().into_bytes());
        (String::from_utf8(received).expect("replies are text"), appended)
    }
}

#[test]
fn what_ended_before_a_long_command_is_appended_amid_it() {
    let mut primary = Primary::new();
    // The first command's steps take no time, those of the second three leases each.
    primary.client.send(b"SET count x\r\n");
    let before = primary.skipped.get();
    primary.skipped.set(1000);
    primary.pass();
    let steps = 1000 - primary.skipped.get();
    primary.skipped.set(before);
    let (replies, appended) = primary.ask("SET a 1\r\nSET b 2\r\n", steps, 3 * LEASE_MILLIS);
    assert_eq!(replies, "+OK\r\n+OK\r\n");
    let [(first, kind, keys, clock), between @ .., (last, last_kind, last_keys, last_clock)] =
        appended.as_slice()
    else {
        panic!("{appended:?}");
    };
    assert_eq!((kind, keys.as_slice()), (&Kind::Data, &["a".to_owned()][..]), "{appended:?}");
    assert_eq!((last_kind, last_keys.as_slice()), (&Kind::Data, &["b".to_owned()][..]));
    assert!(between.iter().all(|(_, kind, ..)| *kind == Kind::Renew), "{appended:?}");
    assert_eq!(last - first, 1 + between.len() as u64, "places follow each other");
    assert_eq!(clock, last_clock, "time stands still amid a command");
}

#[test]
fn a_command_that_only_reads_renews() {
    let mut primary = Primary::new();
    let (replies, appended) = primary.ask("GET a\r\n", 0, 2 * LEASE_MILLIS);
    assert_eq!(replies, "$-1\r\n");
    assert!(!appended.is_empty());
    assert!(appended.iter().all(|(_, kind, ..)| *kind == Kind::Renew), "{appended:?}");
}

#[test]
fn a_short_command_appends_nothing_of_its_own() {
    let mut primary = Primary::new();
    let (replies, appended) = primary.ask("GET a\r\n", 0, LEASE_MILLIS / 50);
    assert_eq!((replies.as_str(), appended), ("$-1\r\n", vec![]));
}

#[test]
fn a_command_without_end_renews_nothing_in_the_long_run() {
    let mut primary = Primary::new();
    let keys = (0..200).map(|key| format!(" k{key}")).collect::<String>();
    let (_, appended) = primary.ask(&format!("EXISTS{keys}\r\n"), 0, LEASE_MILLIS);
    // Within 60 s; without the bound there would be a record for each of 200 keys.
    assert!((50..=61).contains(&appended.len()), "{} records", appended.len());
}

#[test]
fn who_is_unblocked_by_a_transaction_hears_of_it_when_all_of_it_is_durable() {
    let mut primary = Primary::new();
    let waiter = primary.network.connect("here");
    waiter.send(b"CLIENT ID\r\nBLPOP queue 0\r\n");
    let asked = primary.pass();
    assert_eq!(asked, "");
    let id = String::from_utf8(waiter.received()).expect("a number");
    let id = id.trim_start_matches(':').trim_end();
    let unit = format!("MULTI\r\nSET flag 1\r\nCLIENT UNBLOCK {id}\r\nSET last 1\r\nEXEC\r\n");
    primary.appended.borrow_mut().clear();
    primary.client.send(unit.as_bytes());
    primary.timeline.pass(MILLISECOND);
    primary.millis.set(LEASE_MILLIS);
    primary.server.turn(&mut primary.driver, &mut primary.scratch);
    primary.millis.set(0);
    let appended = primary.appended.borrow().clone();
    let (renewed, (place, ..)) = match appended.as_slice() {
        [between @ .., last] if last.1 == Kind::Data => (between.len(), last.clone()),
        other => panic!("{other:?}"),
    };
    assert!(renewed > 1, "no record came before the unit's: {appended:?}");
    let id: u64 = id.parse().expect("a number");
    let session = primary.server.session_mut(id).expect("it is still there");
    assert_eq!(session.waits_for, Sequence(place), "{appended:?}");
    primary.pass();
    assert_eq!(waiter.received(), b"*-1\r\n");
}
