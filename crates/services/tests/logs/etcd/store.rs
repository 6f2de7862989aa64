//! The store alone: numbers, reading, and everything it must notice.

use super::cluster::{Cluster, cluster, three_members};
use crate::driven::{self, Driven, first, get, stored, trim, unique_record};
use crate::outside::fresh_name;
use crate::place::Place;
use crate::writer::Writer;
use base::Sequence;
use bytes::Bytes;
use std::io::ErrorKind;
use txlog::TransactionLog;
use txlog::remote::store::{Operation, Outcome};

#[test]
fn a_put_at_another_place_is_misplaced_and_leaves_nothing() {
    let Some(cluster) = three_members() else { return };
    let mut store = stored(&cluster, &fresh_name(), 2);
    for sequence in [0, 1, 2, 4, 900] {
        assert_eq!(store.put_and_see(sequence, b"no"), Outcome::Misplaced, "at {sequence}");
    }
    assert_eq!(
        store.read(1),
        [1u64, 2].map(|number| Bytes::copy_from_slice(&number.to_le_bytes()))
    );
    let tail = Outcome::Tail { sequence: Sequence(2), is_confirmed: true };
    assert_eq!(store.ask(Operation::Tail), tail);
}

#[test]
fn a_reader_waits_at_the_end_until_there_is_more() {
    let Some(cluster) = three_members() else { return };
    driven::a_reader_waits_at_the_end(&cluster);
}

/// More than one answer holds, small ones and then the largest, which come after the reader has
/// learnt to ask for many.
#[test]
fn pieces_are_bounded_whatever_the_records_sizes() {
    let Some(cluster) = three_members() else { return };
    let name = fresh_name();
    let mut store = stored(&cluster, &name, 0);
    let largest = store.store.limits().record_bytes_max;
    let sizes = [vec![8; 300], vec![largest; 40], vec![8; 3]].concat();
    let records: Vec<Bytes> = sizes.into_iter().map(unique_record).collect();
    for (index, record) in records.iter().enumerate() {
        assert_eq!(store.put_and_see(index as u64 + 1, record), Outcome::Stored);
    }
    assert!(store.read(1) == records, "other records");
    let piece = store.ask(Operation::Get { from: Sequence(301), bytes_max: 1, waits: false });
    let Outcome::Records { records, tail } = piece else { panic!("{piece:?}") };
    assert_eq!((records.len(), tail), (1, Sequence(343)));
}

#[test]
fn trimming_keeps_what_follows_and_the_newest() {
    let Some(cluster) = three_members() else { return };
    let name = fresh_name();
    let mut store = stored(&cluster, &name, 20);
    let mut reader = stored(&cluster, &name, 0);
    assert_eq!(store.ask(Operation::First), first(1));
    assert_eq!(store.ask(trim(9)), first(10));
    assert_eq!(store.ask(trim(4)), first(10));
    assert_eq!(store.ask(get(5, false)), Outcome::Trimmed { first: Sequence(10) });
    assert_eq!(store.read(10).len(), 11);
    // A reader that waits sees what comes after history was compacted.
    let waiting = reader.begin(get(21, true));
    assert_eq!(store.ask(trim(99)), first(20));
    assert_eq!(store.put_and_see(21, b"on"), Outcome::Stored);
    reader.outcome(waiting);
    assert_eq!(reader.read(20).len(), 2);
}

#[test]
fn a_log_begun_anew_is_another_log() {
    let Some(cluster) = three_members() else { return };
    let name = fresh_name();
    let mut old = stored(&cluster, &name, 1);
    cluster.delete(&name);
    let mut new = stored(&cluster, &name, 0);
    assert_ne!(new.store.incarnation(), old.store.incarnation());
    // The very number that the new log waits for, and the one that the old one did.
    for sequence in [1, 2] {
        let outcome = old.put_and_see(sequence, b"strange");
        assert!(matches!(outcome, Outcome::Lost(_)), "{outcome:?}");
    }
    for question in [Operation::Tail, Operation::First, get(2, true), trim(1)] {
        let outcome = old.ask(question.clone());
        assert!(matches!(outcome, Outcome::Lost(_)), "{question:?}: {outcome:?}");
    }
    old.await_trouble("a lost log", |trouble| {
        trouble.is_some_and(|text| text.contains("deleted or replaced"))
    });
    assert_eq!(new.read(1), [""; 0]);
    cluster.delete(&name);
    assert!(matches!(new.ask(Operation::Tail), Outcome::Lost(_)));
}

#[test]
fn what_remains_of_a_log_is_refused() {
    let Some(cluster) = three_members() else { return };
    let name = fresh_name();
    drop(stored(&cluster, &name, 3));
    cluster.delete_keys(&format!("logs/{name}/incarnation"));
    let error = Driven::open(&cluster, &name).err().expect("it is refused").to_string();
    assert!(error.contains("records are there"), "{error}");
    cluster.put_key(&format!("logs/{name}/incarnation"), b"kilnetc2 and more");
    let error = Driven::open(&cluster, &name).err().expect("it is refused").to_string();
    assert!(error.contains("no log's of this release"), "{error}");
}

#[test]
fn a_record_that_is_missing_is_a_lost_log_and_no_end() {
    let Some(cluster) = three_members() else { return };
    let name = fresh_name();
    let mut store = stored(&cluster, &name, 5);
    cluster.delete_keys(&format!("logs/{name}/log/{:020}", 3));
    let outcome = store.ask(get(1, false));
    let Outcome::Records { records, tail } = outcome else { panic!("{outcome:?}") };
    assert_eq!((records.len(), tail), (2, Sequence(5)));
    let outcome = store.ask(get(3, false));
    assert!(matches!(outcome, Outcome::Lost(_)), "{outcome:?}");
}

#[test]
fn nodes_that_open_a_new_log_at_once_find_the_same() {
    let Some(cluster) = three_members() else { return };
    for _ in 0..5 {
        let name = fresh_name();
        let found = std::thread::scope(|scope| {
            let open = || stored(&cluster, &name, 0).store.incarnation();
            let others = [(); 3].map(|()| scope.spawn(open));
            others.map(|other| other.join().expect("it opened"))
        });
        assert!(found.iter().all(|incarnation| *incarnation == found[0]), "{found:?}");
    }
}

/// One whose quota is small: writes end, reads and trimming do not, and nobody else is harmed.
#[test]
fn writes_end_before_the_quota_does_and_go_on_after_trimming() {
    let Some(small) = cluster("KILN_TEST_ETCD_SMALL") else { return };
    let mut writer = Writer::lead(&small);
    for _ in 0..2 {
        writer.until("writes are refused", |writer| {
            let trouble = format!("{:?}", writer.log.gate());
            trouble.contains("of its quota") && !writer.log.is_busy()
        });
        // Others may still write: what is left of the quota is theirs too.
        small.put_key("neighbour", &vec![7; 1 << 20]);
        let through = writer.durable_place();
        writer.log.trim(through);
        writer.go_on(10);
    }
}

#[test]
fn tls_and_passwords_are_given_where_demanded_and_never_shown() {
    let Some(secure) = cluster("KILN_TEST_ETCD_SECURE") else { return };
    let ca = std::env::var("KILN_TEST_ETCD_CA").expect("the harness made a certificate");
    let (name, options) = (fresh_name(), format!("ca={ca}"));
    let mut store = stored(&secure.as_user("me:p%40ss").with(&options), &name, 3);
    assert_eq!(store.ask(trim(2)), first(3));
    assert_eq!(store.store.trouble(), None);
    let refused = |place: Cluster| {
        let error = Driven::open(&place, &name).err().expect("it is refused");
        assert!(!error.to_string().contains("hush"), "{error}");
        (error.kind(), error.to_string())
    };
    let (kind, why) = refused(secure.as_user("me:hush").with(&options));
    assert_eq!(kind, ErrorKind::PermissionDenied, "{why}");
    let (kind, why) = refused(secure.with(&options));
    assert_eq!(kind, ErrorKind::PermissionDenied, "{why}");
    let (kind, why) = refused(secure.as_user("me:p%40ss").with("tls=true"));
    assert_eq!(kind, ErrorKind::InvalidData, "{why}");
    assert!(why.contains("certificate"), "{why}");
}
