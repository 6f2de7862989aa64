//! Clients of a replica that watch keys and listen, while the primary writes and is replaced.

use crate::three::Three;
use sim::network::SimClient;

/// Milliseconds in which a request is answered and what it wrote reaches every replica.
const WHILE: u64 = 100;

/// What a client is told from now on, having sent these lines.
fn ask(three: &mut Three, client: &SimClient, lines: &str) -> String {
    client.send(lines.as_bytes());
    three.pass(WHILE);
    String::from_utf8_lossy(&client.received()).into_owned()
}

/// A client of a replica that has seen the stock, and watches it.
fn watching(three: &mut Three) -> (SimClient, SimClient) {
    assert_eq!(three.leader_after(3), Some(0));
    let (primary, replica) = (three.connect(0), three.connect(1));
    assert_eq!(ask(three, &primary, "SET stock 10\r\n"), "+OK\r\n");
    let seen = ask(three, &replica, "READONLY\r\nWATCH stock\r\nGET stock\r\n");
    assert_eq!(seen, "+OK\r\n+OK\r\n$2\r\n10\r\n");
    (primary, replica)
}

const ABORTED: &str = "*-1\r\n";

#[test]
fn a_transaction_on_a_replica_is_aborted_by_what_the_primary_wrote() {
    let mut three = Three::new(&[]);
    let (primary, replica) = watching(&mut three);
    let reading = "MULTI\r\nGET stock\r\nEXEC\r\n";
    assert!(!ask(&mut three, &replica, reading).ends_with(ABORTED), "nothing was written");
    ask(&mut three, &replica, "WATCH stock\r\n");
    assert_eq!(ask(&mut three, &primary, "DECRBY stock 10\r\n"), ":0\r\n");
    assert!(ask(&mut three, &replica, reading).ends_with(ABORTED));
}

/// Otherwise the tests here would prove nothing.
#[test]
fn a_replica_that_tells_nobody_what_it_applies_is_noticed() {
    let mut three = Three::new(&[]);
    let (primary, replica) = watching(&mut three);
    three.member(1).core.interest.ignore_applied();
    ask(&mut three, &primary, "DECRBY stock 10\r\n");
    let told = ask(&mut three, &replica, "MULTI\r\nGET stock\r\nEXEC\r\n");
    assert!(!told.ends_with(ABORTED), "{told}");
}

#[test]
fn a_transaction_on_a_new_primary_is_aborted_by_what_the_one_before_it_wrote() {
    for written in ["DECRBY stock 10\r\n", "FLUSHALL\r\n", "SWAPDB 0 1\r\n"] {
        let mut three = Three::new(&[]);
        let (primary, replica) = watching(&mut three);
        let other = three.connect(2);
        ask(&mut three, &other, "READONLY\r\nWATCH stock\r\n");
        ask(&mut three, &primary, written);
        three.end(0);
        let watching = match three.leader_after(4) {
            Some(1) => replica,
            Some(2) => other,
            leader => panic!("{leader:?} leads"),
        };
        let told = ask(&mut three, &watching, "MULTI\r\nSET stock 9\r\nEXEC\r\nGET stock\r\n");
        assert!(told.contains(ABORTED), "{written}: {told}");
        assert!(!told.ends_with("9\r\n"), "{written}: {told}");
    }
}

#[test]
fn a_replica_tells_its_subscribers_what_happens_to_keys() {
    let mut three = Three::new(&["--notify-keyspace-events", "KEA"]);
    assert_eq!(three.leader_after(3), Some(0));
    let (primary, replica) = (three.connect(0), three.connect(1));
    let subscribe = "READONLY\r\nPSUBSCRIBE __keyevent@0__:*\r\n";
    assert!(ask(&mut three, &replica, subscribe).ends_with(":1\r\n"));
    ask(&mut three, &primary, "RPUSH l a b\r\nLPOP l 2\r\nSET k v PX 20\r\n");
    let told = ask(&mut three, &replica, "");
    let events = told.lines().filter_map(|line| line.strip_prefix("__keyevent@0__:"));
    let events: Vec<&str> = events.filter(|event| *event != "*").collect();
    assert_eq!(events, ["rpush", "lpop", "del", "set", "expire", "expired"]);
}
