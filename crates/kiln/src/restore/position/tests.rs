use super::*;
use crate::changes::tests::{LOG, log, read};
use base::Position;
use txlog::Chain;
use txlog::reader::Start;
use txlog::record::ChainValue;

fn checked(position: UnitPosition) -> Result<(), String> {
    let (sleep, _) = Sleep::new();
    check_in(&mut log(), LOG, &Keys::none(), position, &sleep).map_err(|why| why.to_string())
}

#[test]
fn a_restore_ends_at_the_last_position_of_a_record_and_at_no_other() {
    let all = read(&mut log(), Start::Oldest(LOG), Changes::default());
    let mut whole = Vec::new();
    for (key, position) in &all {
        match checked(*position) {
            Ok(()) => whole.push(key.as_str()),
            Err(why) => assert!(why.contains("holds more behind the position"), "{key}: {why}"),
        }
    }
    assert_eq!(whole, ["c3", "d2", "e1"]);
}

#[test]
fn a_position_of_another_history_is_refused_by_name() {
    let (_, position) = read(&mut log(), Start::Oldest(LOG), Changes::default()).remove(5);
    assert_eq!(checked(position), Ok(()));
    let record = Position { incarnation: Incarnation(7), ..position.record };
    let why = checked(UnitPosition { record, ..position }).expect_err("it is of another log");
    assert!(why.contains("of log 0000000000000007, and this is log 0000000000006d1f"), "{why}");
    let chain = Chain { value: ChainValue(7), ..position.chain };
    let why = checked(UnitPosition { chain, ..position }).expect_err("something else was there");
    assert!(why.contains("another history than the one of the position"), "{why}");
    let record = Position { sequence: base::Sequence(99), ..position.record };
    let why = checked(UnitPosition { record, ..position }).expect_err("it ends before");
    assert!(why.contains("ends before record 99"), "{why}");
}
