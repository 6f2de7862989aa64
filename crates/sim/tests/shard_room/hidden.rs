//! Keys that are hidden although no effect says that they went: the reply waits for the record
//! whose clock says it.

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
