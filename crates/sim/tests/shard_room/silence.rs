//! A primary whose log keeps silent for longer than its lease: who waits for it is told to go where
//! somebody else may lead, and waits where nobody can.

use base::Clock;
use node::Scratch;
use node::{Server, Stop};
use shard::role::member::MemberId;
use shard::role::state::{Roles, Terms};
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{ClientState, NetworkFaults, SimClient, SimNetwork};
use sim::tapped_log::{Listener, TappedLog};
use sim::timeline::Timeline;
use std::cell::Cell;
use std::rc::Rc;
use txlog::LogEvent;

const STEP_NANOS: u64 = 10_000_000;

/// As configured by default.
const LEASE_NANOS: u64 = 2_000_000_000;

/// Holds back what the log says while it is silent, or until it is asked again.
struct Silence {
    is_silent: Rc<Cell<bool>>,
    is_late: Rc<Cell<bool>>,
    is_watched: bool,
    unsaid: Vec<LogEvent>,
}

impl Listener for Silence {
    fn told(&mut self, events: &mut Vec<LogEvent>) {
        let new = std::mem::take(events);
        if self.is_late.get() {
            events.append(&mut self.unsaid);
        }
        self.unsaid.extend(new);
        if !self.is_silent.get() && !self.is_late.get() {
            events.append(&mut self.unsaid);
        }
    }

    fn watches(&mut self, _: bool) -> bool {
        self.is_watched
    }
}

struct Primary {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    timeline: Timeline,
    client: SimClient,
    is_silent: Rc<Cell<bool>>,
    is_late: Rc<Cell<bool>>,
}

impl Primary {
    fn new(is_watched: bool) -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let (is_silent, is_late) = (Rc::new(Cell::new(false)), Rc::new(Cell::new(false)));
        let listener = Silence {
            is_silent: Rc::clone(&is_silent),
            is_late: Rc::clone(&is_late),
            is_watched,
            unsaid: Vec::new(),
        };
        let mut server = lone::server(&clock);
        server.core.shard.wrap_log(|log| Box::new(TappedLog { log, listener }));
        let terms = Terms { lease_nanos: LEASE_NANOS, jitter_nanos: 0, may_lead: true };
        server.core.leadership.roles = Roles::new(MemberId([1; 20]), terms);
        server.core.leadership.roles.bid(clock.moment());
        server.core.leadership.roles.led();
        let driver = SimDriver::listen(&network, "here", clock, 1);
        let client = network.connect("here");
        let scratch = Scratch::default();
        Self { server, driver, scratch, timeline, client, is_silent, is_late }
    }

    /// What the client receives while time passes.
    fn pass(&mut self, nanos: u64) -> String {
        let mut received = Vec::new();
        for _ in 0..nanos / STEP_NANOS {
            self.timeline.pass(STEP_NANOS);
            self.server.turn(&mut self.driver, &mut self.scratch);
            received.extend(self.client.received());
        }
        String::from_utf8(received).expect("replies are text")
    }

    /// A client that has been served asks again when the log is silent, for five leases.
    fn falls_silent(is_watched: bool) -> Self {
        let mut primary = Self::new(is_watched);
        primary.pass(LEASE_NANOS / 4);
        primary.client.send(b"SET a 1\r\n");
        assert_eq!(primary.pass(LEASE_NANOS / 4), "+OK\r\n");
        primary.is_silent.set(true);
        primary.client.send(b"INCR a\r\n");
        assert_eq!(primary.pass(5 * LEASE_NANOS), "", "nothing is durable");
        primary
    }
}

#[test]
fn a_client_is_disconnected_where_another_may_lead() {
    let primary = Primary::falls_silent(true);
    assert_eq!(primary.client.state(), ClientState::Closed);
}

#[test]
fn a_client_of_a_lone_server_waits() {
    let mut primary = Primary::falls_silent(false);
    assert_eq!(primary.client.state(), ClientState::Open);
    primary.is_silent.set(false);
    assert_eq!(primary.pass(LEASE_NANOS), ":2\r\n");
}

#[test]
fn an_end_does_not_wait_for_keys_that_fall_due_meanwhile() {
    let mut primary = Primary::new(false);
    primary.pass(LEASE_NANOS / 4);
    // In each turn another falls due: a turn's wait takes up to 100 ms.
    for key in 0..100 {
        let millis = 2_000 + 50 * key;
        primary.client.send(format!("SET {key} 1 PX {millis}\r\n").as_bytes());
    }
    assert_eq!(primary.pass(5 * STEP_NANOS), "+OK\r\n".repeat(100));
    primary.is_late.set(true);
    primary.pass(20 * STEP_NANOS);
    assert!(primary.server.core.shard.is_in_flight());
    primary.server.core.stopping = Some(Stop::Clean);
    primary.pass(5 * STEP_NANOS);
    assert_eq!(primary.server.ended(), Some(Stop::Clean));
}
