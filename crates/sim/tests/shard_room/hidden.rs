//! Keys and fields that are hidden although no effect says that they went: the reply waits for the
//! record whose clock says it.

use crate::primary::{Primary, Tells};
use base::time::MILLISECOND;

/// What the client receives at once.
fn ask(primary: &mut Primary, requests: &str) -> String {
    primary.client.send(requests.as_bytes());
    primary.timeline.pass(MILLISECOND);
    for _ in 0..3 {
        primary.turn();
    }
    String::from_utf8(primary.client.received()).expect("replies are text")
}

#[test]
fn that_a_key_is_past_its_time_is_told_when_a_durable_record_says_so() {
    let mut primary = Primary::new();
    let replies = ask(&mut primary, "SET k v PX 30\r\nCLIENT PAUSE 100000 WRITE\r\n");
    assert_eq!(replies, "+OK\r\n+OK\r\n");
    primary.tells.set(Tells::Nothing);
    primary.timeline.pass(40 * MILLISECOND);
    // Its time has come, and no record says so: one is appended for that.
    primary.appended.borrow_mut().clear();
    assert_eq!(ask(&mut primary, "GET k\r\n"), "$1\r\nv\r\n");
    assert_eq!(primary.appended.borrow().len(), 1, "a record for the time");
    assert_eq!(ask(&mut primary, "GET k\r\n"), "", "whoever leads next may never have read it");
    primary.tells.set(Tells::All);
    assert_eq!(primary.pass(), "$-1\r\n");
}

#[test]
fn that_a_field_is_past_its_time_is_told_when_a_durable_record_says_so() {
    let mut primary = Primary::new();
    let requests = "HSETEX h PX 30 FIELDS 1 f v\r\nHSET h g w\r\nCLIENT PAUSE 100000 WRITE\r\n";
    assert_eq!(ask(&mut primary, requests), ":1\r\n:1\r\n+OK\r\n");
    primary.tells.set(Tells::Nothing);
    primary.timeline.pass(40 * MILLISECOND);
    primary.appended.borrow_mut().clear();
    assert_eq!(ask(&mut primary, "HGET h f\r\n"), "$1\r\nv\r\n");
    assert_eq!(primary.appended.borrow().len(), 1, "a record for the time");
    assert_eq!(ask(&mut primary, "HLEN h\r\n"), "", "whoever leads next may never have read it");
    primary.tells.set(Tells::All);
    assert_eq!(primary.pass(), ":1\r\n");
}

#[test]
fn a_field_that_came_to_its_time_aborts_the_transaction_that_watches_its_hash() {
    let mut primary = Primary::new();
    let requests = "HSETEX h PX 30 FIELDS 1 f v\r\nHSET h g w\r\nWATCH h\r\nHGET h f\r\n";
    assert_eq!(ask(&mut primary, requests), ":1\r\n:1\r\n+OK\r\n$1\r\nv\r\n");
    primary.timeline.pass(40 * MILLISECOND);
    let transaction = "MULTI\r\nHSET h g x\r\nEXEC\r\n";
    assert_eq!(ask(&mut primary, transaction), "+OK\r\n+QUEUED\r\n*-1\r\n");
    assert_eq!(ask(&mut primary, "WATCH h\r\nHLEN h\r\n"), "+OK\r\n:1\r\n");
    assert_eq!(ask(&mut primary, transaction), "+OK\r\n+QUEUED\r\n*1\r\n:0\r\n");
}
