//! MIGRATE between two simulated servers: the target is not there, keeps silent, or dies after any
//! number of turns of the loop. Their logs are in memory.

use base::DatabaseId;
use node::Scratch;
use node::Server;
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;

/// Seeds of the network, each with its own delays and pieces.
const SEEDS: u64 = 200;

/// More turns than any of these requests needs.
const TURNS_MAX: usize = 5000;

struct Node {
    server: Server,
    /// `None`: its process is dead.
    driver: Option<SimDriver>,
    scratch: Scratch,
}

impl Node {
    fn new(network: &SimNetwork, timeline: &Timeline, name: &str) -> Self {
        let clock = SimClock::new(timeline);
        let server = lone::server(&clock);
        let driver = Some(SimDriver::listen(network, name, clock, 1));
        Self { server, driver, scratch: Scratch::default() }
    }

    fn turn(&mut self) {
        if let Some(driver) = &mut self.driver {
            self.server.turn(driver, &mut self.scratch);
        }
    }

    fn has(&self, key: &str) -> bool {
        self.server.core.shard.engine.keyspace.exists(DatabaseId(0), key.as_bytes())
    }
}

/// Two servers, and a client of the first.
struct Pair {
    nodes: [Node; 2],
    client: SimClient,
    timeline: Timeline,
    /// What the client received and did not look at.
    received: String,
    turns: usize,
}

impl Pair {
    fn new(seed: u64) -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, seed, NetworkFaults::benign());
        let nodes = ["here", "there"].map(|name| Node::new(&network, &timeline, name));
        let client = network.connect("here");
        Self { nodes, client, timeline, received: String::new(), turns: 0 }
    }

    fn turn(&mut self) {
        self.turns += 1;
        assert!(self.turns < TURNS_MAX, "nothing comes");
        for node in &mut self.nodes {
            node.turn();
        }
        self.received.push_str(&String::from_utf8_lossy(&self.client.received()));
    }

    fn send(&mut self, request: &str) {
        // A request can be sent once the connection stands.
        while self.client.state() != sim::network::ClientState::Open {
            self.turn();
        }
        self.client.send(format!("{request}\r\n").as_bytes());
    }

    /// A request's reply, a line.
    fn call(&mut self, request: &str) -> String {
        self.send(request);
        while !self.received.ends_with('\n') {
            self.turn();
        }
        std::mem::take(&mut self.received).trim_end().to_owned()
    }
}

const MIGRATE: &str = "MIGRATE there 6379 \"\" 0 1000 KEYS a b c";

#[test]
fn keys_move_and_the_connection_is_kept_for_a_while() {
    let mut pair = Pair::new(1);
    assert_eq!(pair.call("MSET a 1 b 2 c 3 d 4"), "+OK");
    assert_eq!(pair.call(MIGRATE), "+OK");
    assert_eq!(pair.call(MIGRATE), "+NOKEY");
    for key in ["a", "b", "c"] {
        assert!(pair.nodes[1].has(key) && !pair.nodes[0].has(key), "{key}");
    }
    assert_eq!(pair.call("MIGRATE there 6379 d 0 1000 COPY"), "+OK");
    assert!(pair.nodes[0].has("d") && pair.nodes[1].has("d"));
}

#[test]
fn a_target_that_is_not_there_is_an_error_and_keys_stay() {
    let mut pair = Pair::new(1);
    assert_eq!(pair.call("SET a 1"), "+OK");
    let reply = pair.call("MIGRATE nowhere 6379 a 0 1000");
    assert_eq!(reply, "-IOERR error or timeout connecting to the client");
    assert!(pair.nodes[0].has("a"));
}

#[test]
fn a_silent_target_is_waited_for_as_long_as_was_said() {
    let mut pair = Pair::new(1);
    assert_eq!(pair.call("SET a 1"), "+OK");
    assert_eq!(pair.call("SET warm 1"), "+OK");
    assert_eq!(pair.call("MIGRATE there 6379 warm 0 1000"), "+OK");
    let began = pair.timeline.now();
    pair.send("MIGRATE there 6379 a 0 1000");
    while pair.received.is_empty() {
        pair.nodes[0].turn();
        pair.received.push_str(&String::from_utf8_lossy(&pair.client.received()));
    }
    assert_eq!(pair.received, "-IOERR error or timeout reading from target instance\r\n");
    let took = pair.timeline.now().since(began);
    assert!((1_000_000_000..2_000_000_000).contains(&took), "{took} ns");
    assert!(pair.nodes[0].has("a"));
}

/// Moves three keys to a target that dies after so many turns. Whether that was too late.
fn move_to_a_target_that_dies(seed: u64, turns: usize, seen: &mut Seen) -> bool {
    let mut pair = Pair::new(seed);
    assert_eq!(pair.call("MSET a 1 b 2 c 3"), "+OK");
    pair.send(MIGRATE);
    for _ in 0..turns {
        pair.turn();
    }
    let is_over = !pair.received.is_empty();
    pair.nodes[1].driver = None;
    while !pair.received.ends_with('\n') {
        pair.turn();
    }
    let is_told_to_be_gone = pair.received.starts_with("+OK");
    for key in ["a", "b", "c"] {
        let [here, there] = [0, 1].map(|side: usize| pair.nodes[side].has(key));
        let when = format!("seed {seed}, the target dies after {turns} turns: {key}");
        assert!(here || there, "{when} is lost");
        assert!(!here || !is_told_to_be_gone, "{when} is still here");
        seen.only_here |= !there;
        seen.only_there |= !here;
        seen.on_both |= here && there;
    }
    seen.in_part |= pair.nodes[0].has("c") != pair.nodes[0].has("a");
    is_over
}

/// Where keys were found in the end.
#[derive(Default, Debug)]
struct Seen {
    only_here: bool,
    on_both: bool,
    only_there: bool,
    /// Some of the keys moved, and others did not.
    in_part: bool,
}

#[test]
fn a_key_is_on_one_side_at_least_whenever_the_target_dies() {
    let mut seen = Seen::default();
    for seed in 1..=SEEDS {
        let mut turns = 0;
        while !move_to_a_target_that_dies(seed, turns, &mut seen) {
            turns += 1;
        }
    }
    let is_all = seen.only_here && seen.on_both && seen.only_there && seen.in_part;
    assert!(is_all, "the runs prove too little: {seen:?}");
}
