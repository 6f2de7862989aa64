//! What a server receives in a turn, and from whom it receives no more.

use crate::three::request;
use base::time::MILLISECOND;
use node::{Scratch, Server};
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{ClientState, NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;

struct Turning {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    timeline: Timeline,
    network: SimNetwork,
}

impl Turning {
    /// A server that a client owes so many bytes at most.
    fn new(window_bytes: usize) -> Self {
        let timeline = Timeline::new();
        let faults = NetworkFaults { window_bytes, ..NetworkFaults::benign() };
        let network = SimNetwork::new(&timeline, 1, faults);
        let clock = SimClock::new(&timeline);
        let server = lone::server(&clock);
        let driver = SimDriver::listen(&network, "here", clock, 1);
        Self { server, driver, scratch: Scratch::default(), timeline, network }
    }

    /// A turn, and time for what it says to arrive.
    fn turn(&mut self) {
        self.timeline.pass(10 * MILLISECOND);
        self.server.turn(&mut self.driver, &mut self.scratch);
        self.timeline.pass(10 * MILLISECOND);
    }

    /// What a client is answered in some turns.
    fn ask(&mut self, client: &SimClient, words: &[&str]) -> String {
        client.send(request(words).as_bytes());
        (0..5).for_each(|_| self.turn());
        String::from_utf8(client.received()).expect("replies are text")
    }

    /// How often the server has tried to receive.
    fn reads(&mut self, client: &SimClient) -> u64 {
        let stats = self.ask(client, &["INFO", "stats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix("total_reads_processed:"));
        line.expect("INFO counts them").parse().expect("a number")
    }
}

#[test]
fn one_long_request_arrives_in_as_many_turns_as_many_short_ones() {
    const VALUE_BYTES: usize = 16 << 20;
    let mut turning = Turning::new(usize::MAX);
    let (client, other) = (turning.network.connect("here"), turning.network.connect("here"));
    let value = "x".repeat(VALUE_BYTES);
    client.send(request(&["SET", "long", &value]).as_bytes());
    client.send(request(&["STRLEN", "long"]).as_bytes());
    let (mut received, mut pongs) = (Vec::new(), 0);
    for _ in 0..200 {
        other.send(b"PING\r\n");
        turning.turn();
        received.extend(client.received());
        if received.ends_with(b"16777216\r\n") {
            break;
        }
        pongs += other.received().len() / "+PONG\r\n".len();
    }
    assert_eq!(String::from_utf8_lossy(&received), format!("+OK\r\n:{VALUE_BYTES}\r\n"));
    assert!(pongs >= 7, "another client was answered {pongs} times meanwhile");
}

#[test]
fn who_has_closed_its_side_is_asked_for_bytes_once() {
    let mut turning = Turning::new(1000);
    let (client, other) = (turning.network.connect("here"), turning.network.connect("here"));
    let value = "x".repeat(100_000);
    assert_eq!(turning.ask(&other, &["SET", "long", &value]), "+OK\r\n");
    client.set_reading(false);
    client.send(request(&["GET", "long"]).as_bytes());
    client.close();
    (0..5).for_each(|_| turning.turn());
    let before = turning.reads(&other);
    (0..100).for_each(|_| turning.turn());
    let more = turning.reads(&other) - before;
    assert!(more < 10, "{more} reads in 100 turns");
    // What it asked for before is answered.
    client.set_reading(true);
    let mut received = 0;
    for _ in 0..1000 {
        turning.turn();
        received += client.received().len();
    }
    assert_eq!(received, "$100000\r\n".len() + value.len() + 2);
    assert_eq!(client.state(), ClientState::Closed);
}

#[test]
fn a_blocked_client_is_held_back_amid_its_next_request() {
    let mut turning = Turning::new(usize::MAX);
    let (client, other) = (turning.network.connect("here"), turning.network.connect("here"));
    let limit = ["CONFIG", "SET", "client-query-buffer-limit", "4mb"];
    assert_eq!(turning.ask(&other, &limit), "+OK\r\n");
    let next = request(&["ECHO", &"x".repeat(3 << 20)]);
    let pipeline = [request(&["BLPOP", "queue", "0"]), next.repeat(4)].concat();
    let (head, rest) = pipeline.split_at(100);
    client.send(head.as_bytes());
    turning.turn();
    client.send(rest.as_bytes());
    (0..50).for_each(|_| turning.turn());
    assert_eq!(client.state(), ClientState::Open, "it waits because of the server");
    assert_eq!(turning.ask(&other, &["RPUSH", "queue", "x"]), ":1\r\n");
    let mut received = client.received().len();
    for _ in 0..500 {
        turning.turn();
        received += client.received().len();
    }
    assert!(received > 12 << 20, "{received} bytes of replies");
}
