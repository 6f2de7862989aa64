//! When a turn's effects are handed to the log: at its end, or of a later one if many clients keep
//! the loop busy.

use node::{Limits, Scratch, Server};
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;

/// Nanoseconds of simulated time in which what was sent arrives.
const DELAY_NANOS: u64 = 1_000;

struct Room {
    timeline: Timeline,
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    clients: Vec<SimClient>,
}

impl Room {
    fn new(clients: usize) -> Self {
        let timeline = Timeline::new();
        let faults = NetworkFaults { delay_nanos: 1..DELAY_NANOS, ..NetworkFaults::whole() };
        let network = SimNetwork::new(&timeline, 1, faults);
        let clock = SimClock::new(&timeline);
        let server = lone::server(&clock);
        let driver = SimDriver::listen(&network, "here", clock, 1);
        let clients = (0..clients).map(|_| network.connect("here")).collect();
        let mut room = Self { timeline, server, driver, scratch: Scratch::default(), clients };
        room.turn();
        room
    }

    /// A turn, with what the first `count` clients send.
    fn serve(&mut self, count: usize) {
        self.clients[..count].iter().for_each(|client| client.send(b"INCR counter\r\n"));
        self.turn();
    }

    fn turn(&mut self) {
        self.timeline.pass(DELAY_NANOS);
        self.server.turn(&mut self.driver, &mut self.scratch);
    }

    fn has_gathered(&self) -> bool {
        self.server.core.shard.has_gathered()
    }

    fn records(&self) -> u64 {
        self.server.core.shard.newest_appended().0
    }
}

#[test]
fn one_record_holds_what_several_turns_did_while_many_ask() {
    let many = Limits::default().turn.gathering_writers_min;
    let mut room = Room::new(many);
    let before = room.records();
    for _ in 0..3 {
        room.serve(many);
        assert!(room.has_gathered());
        assert_eq!(room.records(), before);
    }
    // Nobody asks any more: they all wait for the log.
    room.turn();
    assert_eq!((room.has_gathered(), room.records()), (false, before + 1));
}

#[test]
fn few_do_not_wait_for_others() {
    let few = Limits::default().turn.gathering_writers_min - 1;
    let mut room = Room::new(few);
    let before = room.records();
    for turn in 1..4 {
        room.serve(few);
        assert_eq!((room.has_gathered(), room.records()), (false, before + turn));
    }
}

#[test]
fn who_writes_does_not_wait_for_many_who_read() {
    let many = Limits::default().turn.gathering_writers_min;
    let mut room = Room::new(2 * many);
    let before = room.records();
    room.clients[1..].iter().for_each(|client| client.send(b"GET counter\r\n"));
    room.serve(1);
    assert_eq!((room.has_gathered(), room.records()), (false, before + 1));
}

#[test]
fn what_is_overdue_does_not_wait_for_the_requests_of_another_turn() {
    let limits = Limits::default().turn;
    let mut room = Room::new(limits.gathering_writers_min);
    let before = room.records();
    room.serve(limits.gathering_writers_min);
    room.timeline.pass(limits.gathered_nanos_max);
    room.serve(limits.gathering_writers_min);
    // What was left over is a record of its own; what this turn did may wait in its turn.
    assert_eq!((room.has_gathered(), room.records()), (true, before + 1));
}

#[test]
fn what_was_gathered_waits_no_longer_than_it_may() {
    let limits = Limits::default().turn;
    let mut room = Room::new(limits.gathering_writers_min);
    let before = room.records();
    let turns = limits.gathered_nanos_max / DELAY_NANOS;
    let mut waited = 0;
    while room.records() == before {
        room.serve(limits.gathering_writers_min);
        waited += 1;
        assert!(waited <= turns + 1, "it waits for ever");
    }
    assert!(waited > turns / 2, "{waited} turns: it waits for others");
}
