//! The store alone: numbers, reading, and everything it must notice.

use super::cluster::{cluster, three_servers};
use crate::driven::{self, Driven, brings_nothing, first, get, stored, trim, unique_record};
use crate::outside::{PATIENCE, fresh_name, now, until};
use crate::place::Place;
use base::Sequence;
use bytes::Bytes;
use serde_json::json;
use txlog::remote::store::{Operation, Outcome};

#[test]
fn puts_under_way_follow_each_other_and_are_read_in_order() {
    let Some(cluster) = three_servers() else { return };
    let name = fresh_name();
    let mut store = Driven::open(&cluster, &name).expect("the log opens");
    assert_eq!(store.store.trouble(), None);
    let first = store.ask(get(1, false));
    assert_eq!(first, Outcome::Records { records: Vec::new(), tail: Sequence(0) });
    let records: Vec<Bytes> = (0..100).map(|number| unique_record(number * 997)).collect();
    for (round, window) in records.chunks(store.store.limits().puts_max).enumerate() {
        let at = (round * store.store.limits().puts_max) as u64 + 1;
        let puts: Vec<_> =
            window.iter().enumerate().map(|(i, r)| store.put(at + i as u64, r)).collect();
        let outcomes: Vec<_> = puts.into_iter().map(|put| store.outcome(put)).collect();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Stored), "{outcomes:?}");
    }
    assert_eq!(store.read(1), records);
    let tail = store.ask(Operation::Tail);
    assert_eq!(tail, Outcome::Tail { sequence: Sequence(100), is_confirmed: false });
    let mut other = Driven::open(&cluster, &name).expect("the log opens");
    assert_eq!(other.store.incarnation(), store.store.incarnation());
    assert_eq!(other.read(51), records[50..]);
    let beyond = other.ask(get(102, false));
    assert_eq!(beyond, Outcome::Records { records: Vec::new(), tail: Sequence(100) });
}

#[test]
fn a_put_at_another_place_is_misplaced_and_leaves_nothing() {
    let Some(cluster) = three_servers() else { return };
    let mut store = Driven::open(&cluster, &fresh_name()).expect("the log opens");
    for (sequence, record) in [(1, b"a"), (2, b"b")] {
        assert_eq!(store.put_and_see(sequence, record), Outcome::Stored);
    }
    for sequence in [1, 2, 4, 900] {
        assert_eq!(store.put_and_see(sequence, b"no"), Outcome::Misplaced, "at {sequence}");
    }
    // The numbers of those sent ahead fit again once the gap is filled, and only then.
    let (late, next) = (store.put(4, b"d"), store.put(3, b"c"));
    assert_eq!((store.outcome(late), store.outcome(next)), (Outcome::Misplaced, Outcome::Stored));
    assert_eq!(store.read(1), ["a", "b", "c"]);
}

#[test]
fn a_reader_waits_at_the_end_until_there_is_more() {
    let Some(cluster) = three_servers() else { return };
    driven::a_reader_waits_at_the_end(&cluster);
}

#[test]
fn a_piece_is_bounded_and_holds_at_least_one_record() {
    let Some(cluster) = three_servers() else { return };
    let mut store = Driven::open(&cluster, &fresh_name()).expect("the log opens");
    let largest = store.store.limits().record_bytes_max;
    assert!(largest > 1_000_000, "a server takes 1 MiB unless told otherwise: {largest}");
    let records: Vec<Bytes> = (0..12).map(|_| unique_record(largest)).collect();
    for (index, record) in records.iter().enumerate() {
        assert_eq!(store.put_and_see(index as u64 + 1, record), Outcome::Stored);
    }
    // Whichever server has the consumer may be behind the others.
    let mut read: Vec<Bytes> = Vec::new();
    let began = now();
    while read.len() < records.len() {
        assert!(began.elapsed() < PATIENCE, "{} records came", read.len());
        let from = Sequence(read.len() as u64 + 1);
        let piece = store.ask(Operation::Get { from, bytes_max: 1, waits: false });
        let Outcome::Records { records, tail } = piece else { panic!("{piece:?}") };
        assert!(records.len() <= 1, "{} records in a piece of one byte", records.len());
        read.extend(records);
        assert!((read.len() as u64..=12).contains(&tail.0), "{tail} after {}", read.len());
    }
    assert_eq!(read, records);
    let too_large = store.put(13, &unique_record(largest + 1024));
    let outcome = store.outcome(too_large);
    assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
}

/// What a request to a consumer may bring is bounded in records and bytes. Whoever follows the log
/// goes on from one to the next and misses nothing.
#[test]
fn a_follower_goes_on_from_one_request_to_the_next() {
    let Some(cluster) = three_servers() else { return };
    let name = fresh_name();
    let mut writer = Driven::open(&cluster, &name).expect("the log opens");
    let mut follower = Driven::open(&cluster, &name).expect("the log opens");
    let largest = writer.store.limits().record_bytes_max;
    let small = (0..1100).map(|_| unique_record(20));
    let large = (0..6).map(|_| unique_record(largest));
    let records: Vec<Bytes> = small.chain(large).collect();
    let mut read: Vec<Bytes> = Vec::new();
    for (round, window) in records.chunks(8).enumerate() {
        let waiting = follower.begin(get(read.len() as u64 + 1, true));
        let puts: Vec<_> = (round as u64 * 8 + 1..)
            .zip(window)
            .map(|(sequence, record)| writer.put(sequence, record))
            .collect();
        for put in puts {
            assert_eq!(writer.outcome(put), Outcome::Stored);
        }
        if let Outcome::Records { records, .. } = follower.outcome(waiting) {
            read.extend(records);
        }
    }
    while read.len() < records.len() {
        let Outcome::Records { records: piece, tail } =
            follower.ask(get(read.len() as u64 + 1, true))
        else {
            panic!("records that are there can be read");
        };
        read.extend(piece);
        assert!(tail.0 >= read.len() as u64, "{tail} after {} records", read.len());
    }
    assert_eq!(read, records);
    // Who does not wait is told where the log ends, although a request is open.
    let last = records.len() as u64;
    let waiting = follower.begin(get(last + 1, true));
    let end = Outcome::Records { records: Vec::new(), tail: Sequence(last) };
    until("the end of the log", || follower.ask(get(last + 1, false)) == end);
    assert_eq!(writer.put_and_see(last + 1, b"more"), Outcome::Stored);
    let mut more = follower.outcome(waiting);
    // On a busy machine the wait may have ended before.
    while brings_nothing(&more) {
        more = follower.ask(get(last + 1, true));
    }
    let tail = Sequence(last + 1);
    assert_eq!(more, Outcome::Records { records: vec!["more".into()], tail });
}

#[test]
fn trimming_keeps_what_follows_and_the_newest() {
    let Some(cluster) = three_servers() else { return };
    let mut store = stored(&cluster, &fresh_name(), 20);
    assert_eq!(store.ask(Operation::First), first(1));
    let reading = store.ask(Operation::Get { from: Sequence(1), bytes_max: 1, waits: false });
    assert!(matches!(reading, Outcome::Records { .. }));
    assert_eq!(store.ask(trim(9)), first(10));
    assert_eq!(store.ask(trim(4)), first(10));
    assert_eq!(store.ask(Operation::First), first(10));
    assert_eq!(store.ask(get(5, false)), Outcome::Trimmed { first: Sequence(10) });
    assert_eq!(store.read(10).len(), 11);
    assert_eq!(store.ask(trim(99)), first(20));
    assert_eq!(store.read(20), [Bytes::copy_from_slice(&20u64.to_le_bytes())]);
    assert_eq!(store.put_and_see(21, b"on"), Outcome::Stored);
}

#[test]
fn a_stream_made_anew_is_another_log() {
    let Some(cluster) = three_servers() else { return };
    let name = fresh_name();
    let mut old = Driven::open(&cluster, &name).expect("the log opens");
    assert_eq!(old.put_and_see(1, b"one"), Outcome::Stored);
    cluster.delete(&name);
    let mut new = Driven::open(&cluster, &name).expect("the log opens");
    assert_ne!(new.store.incarnation(), old.store.incarnation());
    // The very number that the new stream waits for.
    let put = old.put(1, b"strange");
    let outcome = old.outcome(put);
    assert!(!matches!(outcome, Outcome::Stored | Outcome::Misplaced), "{outcome:?}");
    let tail = old.ask(Operation::Tail);
    assert!(matches!(tail, Outcome::Lost(_)), "{tail:?}");
    assert!(matches!(old.ask(get(2, false)), Outcome::Lost(_)));
    assert_eq!(new.read(1), [""; 0]);
    old.await_trouble("a lost log", |trouble| {
        trouble.is_some_and(|text| text.contains("deleted or replaced"))
    });
    cluster.delete(&name);
    assert!(matches!(new.ask(Operation::Tail), Outcome::Lost(_)));
}

#[test]
fn a_stream_set_up_otherwise_is_refused_by_name() {
    let Some(cluster) = three_servers() else { return };
    let name = fresh_name();
    let stream = format!("kiln-{name}");
    let config = json!({
        "name": stream, "subjects": [format!("kiln.{name}.>")], "retention": "limits",
        "storage": "file", "discard": "old", "num_replicas": 1, "max_age": 3_600_000_000_000u64,
    });
    let made = cluster.operator(&format!("STREAM.CREATE.{stream}"), &config);
    assert!(made["error"].is_null(), "{made}");
    let error = Driven::open(&cluster, &name).err().expect("it is refused").to_string();
    for part in ["max_age", "discard", "num_replicas", "kiln.incarnation"] {
        assert!(error.contains(part), "{part} in: {error}");
    }
}

#[test]
fn a_change_of_the_stream_closes_the_gate_until_it_is_undone() {
    let Some(cluster) = three_servers() else { return };
    let name = fresh_name();
    let store = Driven::open(&cluster, &name).expect("the log opens");
    let stream = format!("kiln-{name}");
    let info = cluster.operator(&format!("STREAM.INFO.{stream}"), &json!({}));
    let mut config = info["config"].clone();
    config["max_msgs"] = json!(1000);
    let update = format!("STREAM.UPDATE.{stream}");
    assert!(cluster.operator(&update, &config)["error"].is_null());
    store.await_trouble("a changed stream", |trouble| {
        trouble.is_some_and(|text| text.contains("max_msgs is 1000"))
    });
    config["max_msgs"] = json!(-1);
    assert!(cluster.operator(&update, &config)["error"].is_null());
    store.await_trouble("a mended stream", |trouble| trouble.is_none());
}

#[test]
fn servers_that_do_not_sync_are_named() {
    let Some(lax) = cluster("KILN_TEST_JETSTREAM_LAX") else { return };
    let name = fresh_name();
    let mut store = Driven::open(&lax.with("&replicas=1"), &name).expect("the log opens");
    let trouble = store.store.trouble().expect("it is refused").to_string();
    assert!(trouble.contains("server n0") && trouble.contains("sync_interval"), "{trouble}");
    // It can still be read, and by an operator who takes the risk it can be written.
    assert_eq!(store.read(1), [""; 0]);
    let mut risky =
        Driven::open(&lax.with("&replicas=1&sync=unchecked"), &name).expect("the log opens");
    assert_eq!(risky.store.trouble(), None);
    assert_eq!(risky.put_and_see(1, b"x"), Outcome::Stored);
    let deaf =
        Driven::open(&lax.with("&replicas=1&monitor=127.0.0.1:1"), &name).expect("the log opens");
    let trouble = deaf.store.trouble().expect("it is refused").to_string();
    assert!(trouble.contains("unknown") && trouble.contains("127.0.0.1:1"), "{trouble}");
    let error =
        Driven::open(&lax, &fresh_name()).err().expect("one server keeps one copy").to_string();
    assert!(error.contains("replicas"), "{error}");
}

#[test]
fn tls_and_passwords_are_given_where_demanded_and_never_shown() {
    let Some(secure) = cluster("KILN_TEST_JETSTREAM_SECURE") else { return };
    let ca = std::env::var("KILN_TEST_JETSTREAM_CA").expect("the harness made a certificate");
    let (name, options) = (fresh_name(), format!("&replicas=1&tls=true&ca={ca}"));
    let mut store =
        Driven::open(&secure.as_user("me:p%40ss").with(&options), &name).expect("the log opens");
    assert_eq!(store.put_and_see(1, b"x"), Outcome::Stored);
    let stranger = Driven::open(&secure.as_user("me:hush").with(&options), &name)
        .err()
        .expect("it is refused");
    assert_eq!(stranger.kind(), std::io::ErrorKind::PermissionDenied, "{stranger}");
    assert!(!stranger.to_string().contains("hush"), "{stranger}");
    let unknown =
        Driven::open(&secure.as_user("me:p%40ss").with("&replicas=1&tls=true"), &name).err();
    let unknown = unknown.expect("nobody vouches for the certificate");
    assert_eq!(unknown.kind(), std::io::ErrorKind::InvalidData, "{unknown}");
    assert!(unknown.to_string().contains("certificate"), "{unknown}");
}

#[test]
fn nodes_that_open_a_new_log_at_once_find_the_same() {
    let Some(cluster) = three_servers() else { return };
    for _ in 0..5 {
        let name = fresh_name();
        let found = std::thread::scope(|scope| {
            let open = || Driven::open(&cluster, &name).expect("the log opens").store.incarnation();
            let others = [(); 3].map(|()| scope.spawn(open));
            others.map(|other| other.join().expect("it opened"))
        });
        assert!(found.iter().all(|incarnation| *incarnation == found[0]), "{found:?}");
    }
}
