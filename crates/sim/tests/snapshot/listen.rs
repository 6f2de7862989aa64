//! Clients that subscribe while the server still loads: client libraries do, right after a restart.

use archive::SnapshotStore;
use base::Incarnation;
use node::Scratch;
use node::Start;
use shard::loading::OpenLog;
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::driver::SimDriver;
use sim::lone;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::memory::MemoryLog;

const NODE: &str = "node";
const LOG: Incarnation = Incarnation(7);

/// Turns in which whatever is under way in a network without faults arrives.
const TURNS: u32 = 200;

#[test]
fn subscriptions_made_while_loading_are_heard_afterwards() {
    let timeline = Timeline::new();
    let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
    let clock = SimClock::new(&timeline);
    let mut driver = SimDriver::listen(&network, NODE, clock.clone(), 1);
    let mut server = lone::server(&clock);
    let disk = Arc::new(SimDisk::new(1));
    let store = SnapshotStore::open(disk, Path::new("/data")).expect("an empty store");
    let handle = Box::new(MemoryLog::new(LOG).handle(1 << 20));
    let log = OpenLog { handle, incarnation: LOG, is_free: true };
    let loading = server.open_shard(store, |_| Ok(log)).expect("an empty log");
    let mut start = Start::new(loading);
    let mut scratch = Scratch::default();
    server.core.persistence.is_loading = true;

    let (listener, other) = (network.connect(NODE), network.connect(NODE));
    let mut turn = |server: &mut node::Server| {
        for _ in 0..TURNS {
            server.turn(&mut driver, &mut scratch);
        }
    };
    listener.send(b"SUBSCRIBE c\r\nPSUBSCRIBE __keyevent*\r\nSSUBSCRIBE s\r\n");
    other.send(b"GET k\r\nCONFIG SET notify-keyspace-events KEA\r\n");
    turn(&mut server);
    assert!(text(&other).starts_with("-LOADING"), "it loads");
    assert_eq!(text(&listener).matches("subscribe").count(), 3, "each is confirmed");

    for _ in 0..TURNS {
        if server.advance_start(&mut start).expect("it starts") {
            break;
        }
        turn(&mut server);
    }
    other.send(b"PUBLISH c one\r\nSPUBLISH s two\r\nSET k v\r\nPUBSUB NUMSUB c\r\n");
    turn(&mut server);
    assert_eq!(text(&other), ":1\r\n:1\r\n+OK\r\n*2\r\n$1\r\nc\r\n:1\r\n");
    let heard = text(&listener);
    for message in ["one", "two", "__keyevent@0__:set"] {
        assert!(heard.contains(message), "{message} of {heard}");
    }
}

fn text(client: &SimClient) -> String {
    String::from_utf8_lossy(&client.received()).into_owned()
}
