//! What clients are told of the shard by a primary, by a replica, and by one that knows no primary.
//! Who leads is set by hand: that the log says it rightly is tested elsewhere.

use base::{Epoch, MonotonicNanos};
use node::Scratch;
use node::Server;
use shard::role::member::{Leader, Member, MemberId};
use shard::role::state::{Roles, Terms};
use sim::clock::SimClock;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{ClientState, NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;

/// More turns than any request needs.
const TURNS_MAX: usize = 10_000;

/// Behind a request: its answer is the last one.
const END: &str = "+PONG\r\n";

struct Node {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    network: SimNetwork,
}

impl Node {
    /// A server that leads a log of its own.
    fn new() -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let clock = SimClock::new(&timeline);
        let server = lone::server(&clock);
        let driver = SimDriver::listen(&network, "here", clock, 1);
        Self { server, driver, scratch: Scratch::default(), network }
    }

    /// A server that follows `leader`.
    fn following(leader: Option<Member>) -> Self {
        let mut node = Self::new();
        let terms = Terms { lease_nanos: 1 << 40, jitter_nanos: 0, may_lead: false };
        let mut roles = Roles::new(MemberId([1; 20]), terms);
        if let Some(member) = leader {
            let leader = Leader { epoch: Epoch(7), member };
            let now = MonotonicNanos(0);
            let heartbeat =
                shard::role::heartbeat::Heartbeat::Lease { leader, lease_nanos: 1 << 40 };
            roles.saw(heartbeat, now);
        }
        node.server.core.leadership.roles = roles;
        node
    }

    fn connect(&self) -> SimClient {
        self.network.connect("here")
    }

    /// The replies to requests of one connection, as RESP.
    fn ask(&mut self, client: &SimClient, request: &str) -> String {
        let mut received = String::new();
        let mut is_sent = false;
        for _ in 0..TURNS_MAX {
            self.server.turn(&mut self.driver, &mut self.scratch);
            if !is_sent && client.state() == ClientState::Open {
                client.send(format!("{request}\r\nPING\r\n").as_bytes());
                is_sent = true;
            }
            received.push_str(&String::from_utf8_lossy(&client.received()));
            if let Some(reply) = received.strip_suffix(END) {
                return reply.to_owned();
            }
        }
        panic!("no reply to {request}, only {received:?}");
    }

    fn call(&mut self, request: &str) -> String {
        let client = self.connect();
        self.ask(&client, request)
    }
}

fn elsewhere() -> Member {
    Member { id: MemberId([0xab; 20]), host: "10.0.0.2".to_owned(), port: 7000 }
}

/// A text reply without its length.
fn text(reply: &str) -> &str {
    reply.split_once("\r\n").map_or("", |(_, text)| text)
}

#[test]
fn a_lone_server_is_a_cluster_of_one_that_owns_all_slots() {
    let mut node = Node::new();
    let id = node.call("CLUSTER MYID");
    let id = text(&id).trim_end().to_owned();
    assert_eq!(id.len(), 40);
    assert!(node.call("INFO server").contains(&format!("run_id:{id}\r\n")));
    let slots = format!(
        "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:6379\r\n$40\r\n{id}\r\n*0\r\n"
    );
    assert_eq!(node.call("CLUSTER SLOTS"), slots);
    let nodes = node.call("CLUSTER NODES");
    let line = format!("{id} 127.0.0.1:6379@0 myself,master - 0 0 0 connected 0-16383\n");
    assert_eq!(text(&nodes), line + "\r\n");
    let info = node.call("CLUSTER INFO");
    assert!(info.contains("cluster_state:ok\r\ncluster_slots_assigned:16384\r\n"), "{info}");
    assert_eq!(node.call(&format!("CLUSTER REPLICAS {id}")), "*0\r\n");
    assert_eq!(node.call("CLUSTER REPLICAS nobody"), "-ERR Unknown node nobody\r\n");
    assert!(node.call("CLUSTER MEET 10.0.0.1 1").starts_with("-ERR The transaction log says who"));
    assert!(node.call("INFO cluster").contains("cluster_enabled:0"));
    assert_eq!(node.call("SELECT 1"), "+OK\r\n", "who is no cluster client is not disturbed");
}

#[test]
fn maps_are_maps_to_those_who_speak_resp3() {
    let mut node = Node::new();
    let client = node.connect();
    node.ask(&client, "HELLO 3");
    assert!(node.ask(&client, "CLUSTER SLOTS").ends_with("\r\n%0\r\n"));
    let shards = node.ask(&client, "CLUSTER SHARDS");
    assert!(shards.starts_with("*1\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n:16383\r\n$5\r\nnodes\r\n"));
    assert!(shards.contains("\r\n*1\r\n%7\r\n$2\r\nid\r\n$40\r\n"), "{shards}");
    assert!(node.ask(&client, "CLUSTER NODES").starts_with('='));
    assert!(node.ask(&client, "SENTINEL MASTERS").starts_with("*1\r\n%20\r\n"));
}

#[test]
fn the_keys_of_a_slot_are_found() {
    let mut node = Node::new();
    assert_eq!(node.call("MSET {a}1 x {a}2 x b x"), "+OK\r\n");
    assert_eq!(node.call("CLUSTER KEYSLOT {a}1"), ":15495\r\n");
    assert_eq!(node.call("CLUSTER COUNTKEYSINSLOT 15495"), ":2\r\n");
    assert_eq!(node.call("CLUSTER COUNTKEYSINSLOT 0"), ":0\r\n");
    let keys = node.call("CLUSTER GETKEYSINSLOT 15495 5");
    assert!(keys.starts_with("*2\r\n") && keys.contains("{a}1") && keys.contains("{a}2"), "{keys}");
    assert!(node.call("CLUSTER GETKEYSINSLOT 15495 1").starts_with("*1\r\n"));
    assert_eq!(node.call("CLUSTER COUNTKEYSINSLOT 16384"), "-ERR Invalid slot\r\n");
    assert_eq!(node.call("CLUSTER GETKEYSINSLOT 0 -1"), "-ERR Invalid slot or number of keys\r\n");
    assert_eq!(
        node.call("CLUSTER COUNTKEYSINSLOT x"),
        "-ERR value is not an integer or out of range\r\n"
    );
}

#[test]
fn a_replica_names_the_primary_and_sends_there() {
    let mut node = Node::following(Some(elsewhere()));
    let slots = node.call("CLUSTER SLOTS");
    let primary = "*1\r\n*4\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.2\r\n:7000\r\n";
    assert!(slots.starts_with(primary), "{slots}");
    let nodes = node.call("CLUSTER NODES");
    let (first, second) = text(&nodes).trim_end().split_once('\n').expect("two lines");
    let id = elsewhere().id.to_string();
    assert!(first.starts_with(&format!("{id} 10.0.0.2:7000@0 master - 0 ")), "{first}");
    assert!(first.ends_with(" connected 0-16383"), "{first}");
    assert!(second.contains(&format!(" 127.0.0.1:6379@0 myself,slave {id} 0 0 ")), "{second}");

    let moved = "-MOVED 15495 10.0.0.2:7000\r\n";
    for request in ["GET a", "SET a 1", "ZUNION 1 a", "OBJECT ENCODING a", "BLPOP a 0", "WATCH a"] {
        assert_eq!(node.call(request), moved, "{request}");
    }
    let client = node.connect();
    assert_eq!(node.ask(&client, "READONLY"), "+OK\r\n");
    assert_eq!(node.ask(&client, "GET a"), "$-1\r\n");
    assert_eq!(node.ask(&client, "ZUNION 1 a"), "*0\r\n");
    assert_eq!(node.ask(&client, "SET a 1"), moved);
    let read_only = "-READONLY You can't write against a read only replica.\r\n";
    assert_eq!(node.ask(&client, "FLUSHALL"), read_only, "it has no key to be moved by");
    assert_eq!(node.ask(&client, "RESET\r\nGET a"), format!("+RESET\r\n{moved}"));
}

#[test]
fn who_knows_no_primary_says_so() {
    let mut restarted = elsewhere();
    (restarted.host, restarted.port) = ("127.0.0.1".to_owned(), 6379);
    // The second one's former life leads, says the log: nobody is to be sent there, which is here.
    for leader in [None, Some(restarted)] {
        let mut node = Node::following(leader);
        assert_eq!(node.call("GET a"), "-CLUSTERDOWN Hash slot not served\r\n");
        assert_eq!(node.call("SET a 1"), "-CLUSTERDOWN Hash slot not served\r\n");
        assert_eq!(node.call("CLUSTER SLOTS"), "*0\r\n");
        assert!(node.call("CLUSTER INFO").contains("cluster_state:fail\r\n"));
        assert!(text(&node.call("CLUSTER NODES")).contains("myself,slave - 0 0 "));
        assert_eq!(node.call("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"), "*-1\r\n");
        assert_eq!(node.call("SENTINEL MASTERS"), "*0\r\n");
    }
}

#[test]
fn every_server_is_a_sentinel_of_its_shard() {
    let mut node = Node::following(Some(elsewhere()));
    let address = "*2\r\n$8\r\n10.0.0.2\r\n$4\r\n7000\r\n";
    assert_eq!(node.call("SENTINEL GET-MASTER-ADDR-BY-NAME mymaster"), address);
    assert_eq!(node.call("SENTINEL GET-MASTER-ADDR-BY-NAME other"), "*-1\r\n");
    assert_eq!(node.call("SENTINEL MASTER other"), "-ERR No such master with that name\r\n");
    let master = node.call("SENTINEL MASTER mymaster");
    assert!(master.contains("$5\r\nflags\r\n$6\r\nmaster\r\n"), "{master}");
    assert!(master.contains("$19\r\nnum-other-sentinels\r\n$1\r\n1\r\n"), "{master}");
    let sentinels = node.call("SENTINEL SENTINELS mymaster");
    assert!(sentinels.contains("$8\r\nsentinel\r\n"), "{sentinels}");
    assert_eq!(node.call("SENTINEL REPLICAS mymaster"), "*0\r\n");
    assert!(node.call("SENTINEL CKQUORUM mymaster").starts_with("+OK 2 usable Sentinels."));
}

#[test]
fn a_subscriber_hears_of_the_keys_that_its_own_refused_request_evicted() {
    let mut node = Node::new();
    let client = node.connect();
    let requests = [
        "HELLO 3",
        "CONFIG SET notify-keyspace-events Ee",
        "CONFIG SET maxmemory-policy volatile-lru",
        "PSUBSCRIBE __keyevent@0__:evicted",
        "SET stays x",
        "SETEX goes 1000 x",
        // The request behind it makes room, which is not enough.
        "CONFIG SET maxmemory 1\r\nSET new x",
    ];
    let told = node.ask(&client, &requests.join("\r\n"));
    let (message, refusal) = (told.find("pmessage"), told.find("-OOM"));
    assert!(message.is_some() && message < refusal, "{told}");
}

#[test]
fn a_silent_monitor_whose_wait_a_unit_ends_gets_nothing_and_the_server_goes_on() {
    let mut node = Node::new();
    let (monitor, other) = (node.connect(), node.connect());
    let id = node.ask(&monitor, "CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    node.ask(&monitor, "MONITOR");
    monitor.send(b"CLIENT REPLY OFF\r\nWAIT 1 0\r\n");
    node.ask(&other, "PING");
    let told = node.ask(&other, &format!("MULTI\r\nCLIENT UNBLOCK {id}\r\nEXEC"));
    assert!(told.ends_with("*1\r\n:1\r\n"), "{told}");
}

#[test]
fn a_client_is_killed_once() {
    let mut node = Node::new();
    let (victim, other) = (node.connect(), node.connect());
    let id = node.ask(&victim, "CLIENT ID");
    let id = id.trim_start_matches(':').trim_end();
    let twice = format!("CLIENT KILL ID {id}\r\nCLIENT KILL ID {id}");
    assert_eq!(node.ask(&other, &twice), ":1\r\n:0\r\n");
}
