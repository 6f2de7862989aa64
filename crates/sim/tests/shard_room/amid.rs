//! What a primary appends amid a command that takes long: what ended before it, in its place, or a
//! renewal; and nothing once the command has no end.

use crate::primary::{Appended, LEASE_MILLIS, Primary, Refuses, Tells};
use base::time::MILLISECOND;
use node::Broken;
use node::Stop;
use txlog::Kind;

#[test]
fn what_ended_before_a_long_command_is_appended_amid_it() {
    let mut primary = Primary::new();
    // The first command's steps take no time, those of the second three leases each.
    primary.client.send(b"SET count x\r\n");
    let before = primary.skipped.get();
    primary.skipped.set(1000);
    primary.pass();
    let steps = 1000 - primary.skipped.get();
    primary.skipped.set(before);
    let (replies, appended) = primary.ask("SET a 1\r\nSET b 2\r\n", steps, 3 * LEASE_MILLIS);
    assert_eq!(replies, "+OK\r\n+OK\r\n");
    let [(first, kind, keys, clock), between @ .., (last, last_kind, last_keys, last_clock)] =
        appended.as_slice()
    else {
        panic!("{appended:?}");
    };
    assert_eq!((kind, keys.as_slice()), (&Kind::Data, &["a".to_owned()][..]), "{appended:?}");
    assert_eq!((last_kind, last_keys.as_slice()), (&Kind::Data, &["b".to_owned()][..]));
    assert!(between.iter().all(|(_, kind, ..)| *kind == Kind::Renew), "{appended:?}");
    assert_eq!(last - first, 1 + between.len() as u64, "places follow each other");
    assert_eq!(clock, last_clock, "time stands still amid a command");
}

#[test]
fn a_command_that_only_reads_renews() {
    let mut primary = Primary::new();
    let (replies, appended) = primary.ask("GET a\r\n", 0, 2 * LEASE_MILLIS);
    assert_eq!(replies, "$-1\r\n");
    assert!(!appended.is_empty());
    assert!(appended.iter().all(|(_, kind, ..)| *kind == Kind::Renew), "{appended:?}");
}

#[test]
fn a_short_command_appends_nothing_of_its_own() {
    let mut primary = Primary::new();
    let (replies, appended) = primary.ask("GET a\r\n", 0, LEASE_MILLIS / 50);
    assert_eq!((replies.as_str(), appended), ("$-1\r\n", vec![]));
}

#[test]
fn a_command_without_end_renews_nothing_in_the_long_run() {
    let mut primary = Primary::new();
    let keys = (0..200).map(|key| format!(" k{key}")).collect::<String>();
    let (_, appended) = primary.ask(&format!("EXISTS{keys}\r\n"), 0, LEASE_MILLIS);
    // Within 60 s; without the bound there would be a record for each of 200 keys.
    assert!((50..=61).contains(&appended.len()), "{} records", appended.len());
}

#[test]
fn what_the_log_says_amid_a_command_counts_for_the_next_of_its_pipeline() {
    let mut primary = Primary::new();
    // The log is polled amid a command while something is under way.
    primary.tells.set(Tells::Nothing);
    primary.turn_slowly("SET before 1\r\n", 0, 0);
    primary.refuses.set(Refuses::AmidCommand);
    primary.turn_slowly("SET a 1\r\nSET b 1\r\nSET c 1\r\n", 0, 0);
    assert_eq!(primary.refuses.get(), Refuses::Now);
    primary.tells.set(Tells::All);
    let replies = primary.pass();
    let refused = replies.lines().filter(|line| line.starts_with("-MISCONF")).count();
    assert_eq!(refused, 2, "{replies}");
}

/// Whether a client whose wait a transaction ends is told of it before all of the transaction is
/// durable: of what is appended amid it, everything is but the record with the transaction.
fn hears_early(broken: Option<Broken>) -> bool {
    let mut primary = Primary::new();
    primary.server.core.broken = broken;
    let waiter = primary.network.connect("here");
    waiter.send(b"CLIENT ID\r\nBLPOP queue 0\r\n");
    assert_eq!(primary.pass(), "");
    let id = String::from_utf8(waiter.received()).expect("a number");
    let id = id.trim_start_matches(':').trim_end();
    let unit = format!("MULTI\r\nSET flag 1\r\nCLIENT UNBLOCK {id}\r\nSET last 1\r\nEXEC\r\n");
    primary.tells.set(Tells::UpToData);
    let appended = primary.turn_slowly(&unit, 0, LEASE_MILLIS);
    let is_renewal = |(_, kind, ..): &Appended| *kind == Kind::Renew;
    match appended.as_slice() {
        [before @ .., last] if last.1 == Kind::Data && before.iter().all(is_renewal) => {
            assert!(before.len() > 1, "the record moved on by nothing: {appended:?}");
        }
        other => panic!("{other:?}"),
    }
    primary.pass();
    let early = waiter.received();
    assert!(early.is_empty() || early == b"*-1\r\n", "{}", early.escape_ascii());
    primary.tells.set(Tells::All);
    primary.pass();
    let all = [early.clone(), waiter.received()].concat();
    assert_eq!(all, b"*-1\r\n", "{}", all.escape_ascii());
    !early.is_empty()
}

#[test]
fn who_is_unblocked_by_a_transaction_hears_of_it_when_all_of_it_is_durable() {
    assert!(!hears_early(None));
}

/// Otherwise the test above would prove nothing.
#[test]
fn a_wait_whose_end_is_told_before_its_transaction_is_durable_is_noticed() {
    assert!(hears_early(Some(Broken::TellsEndOfWaitAtOnce)));
}

#[test]
fn a_renewal_amid_a_transaction_moves_no_key_past_its_time() {
    let mut primary = Primary::new();
    let unit = "SET k v PX 30\r\nCLIENT PAUSE 100000 WRITE\r\nMULTI\r\nGET k\r\nGET k\r\n";
    primary.client.send(unit.as_bytes());
    primary.timeline.pass(MILLISECOND);
    for _ in 0..3 {
        primary.turn();
    }
    assert_eq!(primary.client.received(), b"+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n");
    // The key's time comes. Clients are paused, so it goes by the newest record, which is older.
    primary.timeline.pass(40 * MILLISECOND);
    let (replies, appended) = primary.ask("EXEC\r\n", 0, LEASE_MILLIS);
    assert!(appended.len() > 1, "the lease is renewed amid it: {appended:?}");
    assert_eq!(replies, "*2\r\n$1\r\nv\r\n$1\r\nv\r\n");
    let (replies, _) = primary.ask("GET k\r\n", 0, 0);
    assert_eq!(replies, "$-1\r\n", "afterwards it is gone: a record says so");
}

#[test]
fn who_waited_for_the_end_of_a_pause_is_not_served_by_a_server_that_ends() {
    let mut primary = Primary::new();
    primary.client.send(b"CLIENT PAUSE 50 WRITE\r\nSET k v\r\n");
    primary.timeline.pass(MILLISECOND);
    primary.turn();
    primary.server.core.stopping = Some(Stop::Clean);
    primary.appended.borrow_mut().clear();
    let received = primary.pass();
    assert_eq!(received, "+OK\r\n", "the reply to the first alone");
    let appended = primary.appended.borrow();
    assert!(appended.iter().all(|(_, kind, ..)| *kind != Kind::Data), "{appended:?}");
}
