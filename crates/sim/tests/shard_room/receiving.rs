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
    /// A server that may send a client so many bytes before it reads them.
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
fn others_are_answered_while_a_long_request_arrives() {
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

#[test]
fn who_has_closed_its_side_waits_for_nothing() {
    // Some with so much behind the request that blocks them that they are not read from.
    for behind in [0, 1, 6 << 20] {
        for first in [["BLPOP", "queue", "0"], ["WAIT", "1", "0"]] {
            for ends_at_once in [true, false] {
                let mut turning = Turning::new(usize::MAX);
                let client = turning.network.connect("here");
                let other = turning.network.connect("here");
                client.send(request(&["SET", "key", "value"]).as_bytes());
                client.send(request(&first).as_bytes());
                if behind > 0 {
                    client.send(request(&["ECHO", &"x".repeat(behind)]).as_bytes());
                }
                if ends_at_once {
                    client.close();
                }
                (0..100).for_each(|_| turning.turn());
                client.close();
                (0..100).for_each(|_| turning.turn());
                let case = format!("{first:?}, {behind} bytes behind, at once: {ends_at_once}");
                assert_eq!(client.received(), b"+OK\r\n", "{case}");
                assert_ne!(client.state(), ClientState::Open, "{case}");
                assert_eq!(turning.ask(&other, &["RPUSH", "queue", "x"]), ":1\r\n");
                assert_eq!(turning.ask(&other, &["LLEN", "queue"]), ":1\r\n", "{case}");
            }
        }
    }
}

#[test]
fn what_a_request_allows_counts_for_those_behind_it() {
    let mut turning = Turning::new(usize::MAX);
    let client = turning.network.connect("here");
    let long = "x".repeat(2_000_000);
    assert_eq!(turning.ask(&client, &["CONFIG", "SET", "proto-max-bulk-len", "1mb"]), "+OK\r\n");
    assert_eq!(turning.ask(&client, &["CONFIG", "SET", "requirepass", "secret"]), "+OK\r\n");
    let longer = ["CONFIG", "SET", "proto-max-bulk-len", "4mb"];
    let stranger = turning.network.connect("here");
    let pipeline = [
        request(&["AUTH", "secret"]),
        request(&["SET", "key", &"x".repeat(20_000)]),
        request(&longer),
        request(&["SET", "key", &long]),
        request(&[&["DEL"][..], &["a"; 20]].concat()),
    ];
    stranger.send(pipeline.concat().as_bytes());
    (0..50).for_each(|_| turning.turn());
    let received = String::from_utf8(stranger.received()).expect("replies are text");
    assert_eq!(received, "+OK\r\n+OK\r\n+OK\r\n+OK\r\n:0\r\n");
    // Who is still a stranger is refused, behind the answers to what came before.
    let other = turning.network.connect("here");
    let pipeline = [request(&["AUTH", "wrong"]), request(&["SET", "key", &long])];
    other.send(pipeline.concat().as_bytes());
    (0..50).for_each(|_| turning.turn());
    let received = String::from_utf8(other.received()).expect("replies are text");
    let (first, rest) = received.split_once("\r\n").expect("two errors");
    assert!(first.starts_with("-WRONGPASS"), "{received}");
    assert_eq!(rest, "-ERR Protocol error: unauthenticated bulk length\r\n");
}

#[test]
fn a_request_just_within_the_limit_is_not_refused_for_what_follows_it() {
    let mut turning = Turning::new(usize::MAX);
    let client = turning.network.connect("here");
    let limit = ["CONFIG", "SET", "client-query-buffer-limit", "1mb"];
    assert_eq!(turning.ask(&client, &limit), "+OK\r\n");
    for bytes in [500_000, 900_000, 1_000_000, 1_040_000] {
        let words = [&["EXISTS"][..], &vec!["012345678"; bytes / 15]].concat();
        client.send(request(&words).repeat(5).as_bytes());
        (0..100).for_each(|_| turning.turn());
        let received = String::from_utf8(client.received()).expect("replies are text");
        assert_eq!(received, ":0\r\n".repeat(5), "{bytes}");
    }
    let words = [&["EXISTS"][..], &vec!["012345678"; 1_060_000 / 15]].concat();
    client.send(request(&words).as_bytes());
    (0..100).for_each(|_| turning.turn());
    assert_eq!(client.received(), b"");
    assert_ne!(client.state(), ClientState::Open, "it is beyond the limit");
}

/// They are little for who sends them, and each takes some time.
#[test]
fn many_blank_lines_hold_nobody_up() {
    let mut turning = Turning::new(usize::MAX);
    let senders: Vec<_> = (0..10).map(|_| turning.network.connect("here")).collect();
    turning.turn();
    let blank = "\r\n".repeat(50_000);
    let none = "*0\r\n".repeat(20_000);
    let pipeline = format!("PING\r\n{blank}PING\r\n{none}{blank}PING\r\n");
    senders.iter().for_each(|client| client.send(pipeline.as_bytes()));
    let (mut answered, mut turns) = (vec![Vec::new(); senders.len()], 0);
    while answered.iter().any(|all| all != b"+PONG\r\n+PONG\r\n+PONG\r\n") {
        turns += 1;
        assert!(turns < 5000, "all are answered in the end");
        turning.turn();
        for (all, client) in answered.iter_mut().zip(&senders) {
            all.extend(client.received());
        }
    }
    let requests_max = turning.server.core.process.options.limits.turn.requests_max;
    assert!(turns > senders.len() * 120_000 / requests_max, "{turns} turns");
}

#[test]
fn many_who_send_long_requests_are_received_from_in_turn() {
    let mut turning = Turning::new(usize::MAX);
    let other = turning.network.connect("here");
    let clients: Vec<_> = (0..20).map(|_| turning.network.connect("here")).collect();
    turning.turn();
    let limits = turning.server.core.process.options.limits.turn;
    let (all_max, client_max) = (limits.received_bytes_max, limits.client_received_bytes_max);
    // Each takes two rounds.
    let set = request(&["SET", "key", &"x".repeat(2 * client_max - 1000)]);
    clients.iter().for_each(|client| client.send(set.as_bytes()));
    let (mut pongs, mut turns) = (0, 0);
    let mut ends: Vec<Option<usize>> = vec![None; clients.len()];
    let mut heard = vec![Vec::new(); clients.len()];
    while ends.contains(&None) {
        turns += 1;
        assert!(turns < 100, "all are answered: {ends:?}");
        other.send(b"PING\r\n");
        let before = turning.server.core.process.statistics.input_bytes;
        turning.turn();
        let received = turning.server.core.process.statistics.input_bytes - before;
        // The last one may be in the middle of its share.
        assert!(received as usize <= all_max + client_max, "{received} bytes in turn {turns}");
        pongs += other.received().len() / "+PONG\r\n".len();
        for ((end, heard), client) in ends.iter_mut().zip(&mut heard).zip(&clients) {
            heard.extend(client.received());
            if end.is_none() && heard == b"+OK\r\n" {
                *end = Some(turns);
            }
        }
    }
    let ends: Vec<usize> = ends.into_iter().flatten().collect();
    // Nobody is a round behind another: all have had their first share before one has its second.
    let round = clients.len() * client_max / (all_max + client_max);
    assert!(ends.iter().all(|end| *end > round), "a round takes {round} turns: {ends:?}");
    // Another client has its place among them.
    assert!(pongs * (round + 2) >= turns, "it was answered {pongs} times in {turns} turns");
}
