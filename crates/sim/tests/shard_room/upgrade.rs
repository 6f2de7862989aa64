//! Replicas of an older release in a shard whose primary was of a newer one.

use crate::three::Three;
use node::Stop;

/// Three servers whose primary has ended, and a last record of it.
fn behind_a_record(reader_version_min: u32) -> Three {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    three.end(0);
    three.put_for_readers(reader_version_min);
    three
}

#[test]
fn a_replica_that_does_not_know_a_record_stops_and_never_leads() {
    let mut three = behind_a_record(3);
    assert_eq!(three.leader_after(5), None);
    for number in [1, 2] {
        let Some(Stop::LogFailed(why)) = three.end_of(number) else { panic!("it goes on") };
        assert!(why.contains("needs reader version 3, this is 2"), "{why}");
    }
}

#[test]
fn replicas_that_know_it_go_on() {
    let mut three = behind_a_record(2);
    assert!(three.leader_after(5).is_some());
}
