//! The simulated driver serves an echo, under every kind of fault.

use super::*;
use crate::network::{ClientState, NetworkFaults, SimClient};
use crate::timeline::Timeline;
use std::collections::BTreeMap;

struct World {
    timeline: Timeline,
    network: SimNetwork,
    driver: SimDriver,
    /// Bytes received and not yet sent back.
    pending: BTreeMap<ConnectionId, Vec<u8>>,
    events: Vec<Event>,
    seen: Vec<Event>,
}

impl World {
    fn new(seed: u64, faults: NetworkFaults) -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, seed, faults);
        let driver = SimDriver::listen(&network, "a", SimClock::new(&timeline), seed);
        let pending = BTreeMap::new();
        Self { timeline, network, driver, pending, events: Vec::new(), seen: Vec::new() }
    }

    /// One turn of a node that echoes.
    fn turn(&mut self) {
        let mut events = std::mem::take(&mut self.events);
        self.driver.wait(Some(1_000_000_000), &mut events);
        self.seen.extend(events.iter().cloned());
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, .. } => {
                    assert!(self.pending.insert(connection, Vec::new()).is_none());
                }
                Event::Readable(id) => {
                    let pending = self.pending.get_mut(&id).expect("was accepted");
                    if self.driver.receive(id, pending, 100) == Received::Closed {
                        self.close(id);
                    } else {
                        self.echo(id);
                    }
                }
                Event::Writable(id) => self.echo(id),
                Event::Broken(id) => self.close(id),
                Event::Connected { .. }
                | Event::Unreachable { .. }
                | Event::Ended(_)
                | Event::Shutdown => {}
            }
        }
        self.events = events;
    }

    fn echo(&mut self, id: ConnectionId) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        match self.driver.send(id, pending) {
            Sent::Bytes(count) => drop(pending.drain(..count)),
            Sent::Closed => self.close(id),
        }
    }

    fn close(&mut self, id: ConnectionId) {
        self.driver.close(id);
        self.pending.remove(&id);
    }
}

/// Clients that say a text each and end; what they heard, how it ended, and the trace.
fn echo_run(seed: u64, faults: NetworkFaults) -> (Vec<(Vec<u8>, ClientState)>, u64) {
    let mut world = World::new(seed, faults);
    let clients: Vec<SimClient> = (0..20).map(|_| world.network.connect("a")).collect();
    let mut heard = vec![Vec::new(); clients.len()];
    for (number, client) in clients.iter().enumerate() {
        client.send(&text(number));
    }
    for _ in 0..20_000 {
        world.turn();
        for (number, client) in clients.iter().enumerate() {
            heard[number].extend(client.received());
            if heard[number].len() == text(number).len() {
                client.close();
            }
        }
        let is_over = |client: &SimClient| {
            !matches!(client.state(), ClientState::Connecting | ClientState::Open)
        };
        if clients.iter().all(is_over) {
            let states = clients.iter().map(SimClient::state);
            assert!(world.timeline.recorded() > 100);
            return (heard.into_iter().zip(states).collect(), world.timeline.trace());
        }
    }
    panic!("seed {seed}: not over");
}

fn text(number: usize) -> Vec<u8> {
    format!("the words of client {number};").repeat(20 * number + 1).into_bytes()
}

#[test]
fn a_benign_network_delivers_everything() {
    for seed in 0..20 {
        for (number, (heard, state)) in
            echo_run(seed, NetworkFaults::benign()).0.into_iter().enumerate()
        {
            assert!(heard == text(number), "seed {seed}, client {number}");
            assert_eq!(state, ClientState::Closed);
        }
    }
}

#[test]
fn a_harsh_network_delivers_a_prefix_and_sometimes_resets() {
    let mut resets = 0;
    for seed in 0..20 {
        let (outcomes, _) = echo_run(seed, NetworkFaults::harsh());
        for (number, (heard, state)) in outcomes.into_iter().enumerate() {
            assert!(text(number).starts_with(&heard), "seed {seed}, client {number}");
            match state {
                ClientState::Closed => assert!(heard == text(number)),
                ClientState::Reset => resets += 1,
                other => panic!("{other:?}"),
            }
        }
    }
    assert!(resets > 0, "no connection was reset in 20 seeds");
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let run = |seed| echo_run(seed, NetworkFaults::harsh());
    assert_eq!(run(5), run(5));
    assert_ne!(run(5).1, run(6).1);
}

#[test]
fn a_client_that_does_not_read_makes_sends_short() {
    let mut world = World::new(1, NetworkFaults { window_bytes: 10, ..NetworkFaults::benign() });
    let client = world.network.connect("a");
    client.set_reading(false);
    client.send(&[b'x'; 30]);
    for _ in 0..200 {
        world.turn();
    }
    assert_eq!(client.received(), b"");
    assert_eq!(world.pending[&client.id()].len(), 20);
    client.set_reading(true);
    let mut heard = client.received();
    assert_eq!(heard.len(), 10);
    for _ in 0..200 {
        world.turn();
        heard.extend(client.received());
    }
    assert_eq!(heard, [b'x'; 30]);
}

#[test]
fn a_short_receive_says_that_more_waits() {
    let faults = NetworkFaults { short_receive_percent: 100, ..NetworkFaults::benign() };
    let mut world = World::new(7, faults);
    let client = world.network.connect("a");
    client.send(&[b'x'; 1_000]);
    for _ in 0..10 {
        world.driver.wait(Some(1_000_000), &mut world.events);
    }
    let (mut heard, mut receives) = (Vec::new(), 0);
    loop {
        receives += 1;
        match world.driver.receive(client.id(), &mut heard, 2_000) {
            Received::Bytes { count, more } => {
                assert!(count > 0);
                assert_eq!(more, heard.len() < 1_000);
            }
            Received::WouldBlock => break,
            Received::Closed => panic!("nobody closed"),
        }
    }
    assert_eq!(heard, [b'x'; 1_000]);
    assert!(receives > 2);
}

#[test]
fn a_reset_is_told_once_as_broken() {
    let mut world = World::new(2, NetworkFaults::benign());
    let client = world.network.connect("a");
    for _ in 0..10 {
        world.turn();
    }
    client.reset();
    for _ in 0..10 {
        world.turn();
    }
    let broken = world.seen.iter().filter(|event| **event == Event::Broken(client.id())).count();
    assert_eq!(broken, 1);
    assert_eq!(client.state(), ClientState::Reset);
    assert_eq!(world.driver.send(client.id(), b"x"), Sent::Closed);
}

#[test]
fn a_dead_process_ends_its_connections_and_its_name_can_be_taken_again() {
    let mut world = World::new(3, NetworkFaults::benign());
    let client = world.network.connect("a");
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(client.state(), ClientState::Open);
    let World { timeline, network, driver, .. } = world;
    drop(driver);
    let refused = network.connect("a");
    timeline.pass(1_000_000_000);
    assert_eq!(client.state(), ClientState::Closed);
    assert_eq!(refused.state(), ClientState::Refused);
    let _again = SimDriver::listen(&network, "a", SimClock::new(&timeline), 3);
}

#[test]
fn connections_that_both_sides_left_are_forgotten() {
    let mut world = World::new(6, NetworkFaults::benign());
    for _ in 0..30 {
        let client = world.network.connect("a");
        client.send(b"hello");
        drop(client);
        for _ in 0..10 {
            world.turn();
        }
    }
    world.timeline.pass(1_000_000_000);
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(world.network.state().links.len(), 0);
}

#[test]
fn a_stopped_acceptor_leaves_connections_waiting() {
    let mut world = World::new(4, NetworkFaults::benign());
    world.driver.set_accepting(false);
    let _client = world.network.connect("a");
    for _ in 0..10 {
        world.turn();
    }
    assert_eq!(world.seen, []);
    world.driver.set_accepting(true);
    world.turn();
    assert!(matches!(world.seen[..], [Event::Accepted { .. }]));
}

#[test]
fn a_wait_ends_at_the_next_happening_its_timeout_or_a_wake() {
    let mut world = World::new(5, NetworkFaults::benign());
    let mut events = Vec::new();
    let before = world.timeline.now();
    world.driver.wait(Some(500), &mut events);
    assert_eq!(world.timeline.now().since(before), TURN_NANOS + 500);

    // A disk's completion, say, wakes the node at its time.
    let waker = world.driver.waker();
    let before = world.timeline.now();
    world.timeline.schedule(70_000, Box::new(move || waker.wake()));
    world.driver.wait(None, &mut events);
    assert_eq!(world.timeline.now().since(before), 70_000);

    world.driver.waker().wake();
    let before = world.timeline.now();
    world.driver.wait(None, &mut events);
    assert_eq!(world.timeline.now().since(before), TURN_NANOS);

    world.network.ask_to_stop("a");
    world.driver.wait(None, &mut events);
    assert_eq!(events, [Event::Shutdown]);
}

/// Waits until a driver reports something that `wanted` accepts.
fn wait_for(
    drivers: &mut [&mut SimDriver],
    at: usize,
    mut wanted: impl FnMut(&Event) -> bool,
) -> Event {
    for _ in 0..10_000 {
        for (index, driver) in drivers.iter_mut().enumerate() {
            let mut events = Vec::new();
            driver.wait(Some(1_000_000), &mut events);
            if index == at
                && let Some(event) = events.into_iter().find(&mut wanted)
            {
                return event;
            }
        }
    }
    panic!("the event did not come");
}

#[test]
fn a_node_connects_to_another_and_sees_it_close() {
    for seed in 0..20 {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, seed, NetworkFaults::benign());
        let mut a = SimDriver::listen(&network, "a", SimClock::new(&timeline), seed);
        let mut b = SimDriver::listen(&network, "b", SimClock::new(&timeline), seed);
        let id = a.connect(&Endpoint::tcp("b", 6379));
        let is_connected = |event: &Event| matches!(event, Event::Connected { .. });
        wait_for(&mut [&mut a, &mut b], 0, is_connected);
        let mut taken = None;
        for _ in 0..1_000 {
            let mut events = Vec::new();
            b.wait(Some(1_000_000), &mut events);
            if let Some(Event::Accepted { connection, .. }) = events.first() {
                taken = Some(*connection);
                break;
            }
        }
        let at_b = taken.expect("the connection is accepted");
        assert_eq!(a.send(id, b"ping"), Sent::Bytes(4));
        let mut heard = Vec::new();
        while heard.len() < 4 {
            wait_for(&mut [&mut a, &mut b], 1, |event| *event == Event::Readable(at_b));
            assert!(matches!(b.receive(at_b, &mut heard, 2), Received::Bytes { .. }));
        }
        assert_eq!(heard, b"ping");
        let mut sent = 0;
        while sent < 4 {
            let Sent::Bytes(count) = b.send(at_b, &b"pong"[sent..]) else { panic!("closed") };
            sent += count;
        }
        let mut heard = Vec::new();
        while heard.len() < 4 {
            wait_for(&mut [&mut a, &mut b], 0, |event| *event == Event::Readable(id));
            assert!(matches!(a.receive(id, &mut heard, 3), Received::Bytes { .. }));
        }
        assert_eq!(heard, b"pong");
        b.close(at_b);
        wait_for(&mut [&mut a, &mut b], 0, |event| *event == Event::Readable(id));
        assert_eq!(a.receive(id, &mut heard, 3), Received::Closed);
        a.close(id);
        assert_eq!(a.send(id, b"x"), Sent::Closed);
    }
}

#[test]
fn nobody_who_listens_makes_a_host_unreachable() {
    let timeline = Timeline::new();
    let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
    let mut a = SimDriver::listen(&network, "a", SimClock::new(&timeline), 1);
    let id = a.connect(&Endpoint::tcp("nobody", 6379));
    let event = wait_for(&mut [&mut a], 0, |event| matches!(event, Event::Unreachable { .. }));
    assert_eq!(event, Event::Unreachable { connection: id, why: "connection refused".to_owned() });
}
