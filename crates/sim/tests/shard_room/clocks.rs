//! A server whose wall clock is wrong leads only when nobody else can; and never if it has heard no
//! primary and its clock is far ahead of the log.

use crate::three::{Three, request};

const HOUR_MICROS: i64 = 3_600_000_000;

#[test]
fn who_stands_first_leads_if_all_clocks_agree() {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    three.step_wall(1, 5_000_000);
    three.end(0);
    assert_eq!(three.leader_after(3), Some(1), "a clock may be off by seconds");
}

#[test]
fn a_server_with_a_wrong_clock_leads_when_nobody_else_can() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = Three::new(&[]);
        assert_eq!(three.leader_after(3), Some(0));
        three.step_wall(1, wrong);
        three.end(0);
        assert_eq!(three.leader_after(3), Some(2), "its clock is right");
        three.end(2);
        assert_eq!(three.leader_after(4), Some(1), "who else");
    }
}

const YEAR_MICROS: i64 = 365 * 24 * HOUR_MICROS;

/// Three servers that have all ended, after the first one led.
fn ended() -> Three {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    (0..3).for_each(|number| three.end(number));
    three
}

#[test]
fn a_clock_far_ahead_of_the_log_is_not_taken_over() {
    let mut three = ended();
    three.restart(1, 73 * YEAR_MICROS, &[]);
    assert_eq!(three.leader_after(5), None);
    assert!(three.clock_of(1) <= 0, "it lives in the time of the log");
    three.restart(2, 0, &[]);
    assert_eq!(three.leader_after(3), Some(2), "its clock is right");
    three.end(2);
    assert_eq!(three.leader_after(4), Some(1), "who else, since it has heard the shard's clock");
    let clock = three.clock_of(1);
    assert!(clock < HOUR_MICROS / 1000, "which it goes on with, and runs faster: {clock}");
}

#[test]
fn a_server_leads_as_soon_as_its_clock_is_set() {
    let mut three = ended();
    three.restart(1, 73 * YEAR_MICROS, &[]);
    assert_eq!(three.leader_after(5), None);
    three.step_wall(1, -73 * YEAR_MICROS);
    assert_eq!(three.leader_after(1), Some(1));
}

#[test]
fn whoever_is_told_so_takes_over_a_clock_that_is_far_ahead() {
    for line in [["--clock-ahead-max", "0"], ["--shard-clock", "wall"]] {
        let mut three = ended();
        three.restart(1, YEAR_MICROS, &[]);
        assert_eq!(three.leader_after(5), None);
        three.configure(1, &line);
        assert_eq!(three.leader_after(1), Some(1), "{line:?}");
        assert_eq!(three.clock_of(1), YEAR_MICROS / 1000, "{line:?}");
    }
}

#[test]
fn a_clock_that_was_never_set_begins_no_log() {
    let mut three = Three::new(&[]);
    (0..3).for_each(|number| three.end(number));
    three.restart(0, -56 * YEAR_MICROS, &[]);
    assert_eq!(three.leader_after(5), None);
    three.step_wall(0, 56 * YEAR_MICROS);
    assert_eq!(three.leader_after(1), Some(0));
}

#[test]
fn a_shards_clock_that_is_far_ahead_stays_so_until_somebody_sets_it_back() {
    let ahead = 73 * YEAR_MICROS / 1000;
    let mut three = ended();
    three.restart(1, 73 * YEAR_MICROS, &["--clock-ahead-max", "0"]);
    assert_eq!(three.leader_after(3), Some(1));
    three.end(1);
    three.restart(2, 0, &[]);
    assert_eq!(three.leader_after(3), Some(2), "a clock that is behind is no reason not to lead");
    let clock = three.clock_of(2);
    assert!(clock > ahead - HOUR_MICROS / 1000, "nothing takes it back by itself: {clock}");
    three.restart(0, 0, &[]);
    assert_eq!(three.leader_after(1), Some(2));
    assert!(three.clock_of(0) > ahead - HOUR_MICROS / 1000);
    three.restart(1, 0, &[]);
    three.configure(0, &["--shard-clock", "wall"]);
    assert_eq!(three.leader_after(1), Some(2), "who leads goes on");
    three.end(1);
    three.end(2);
    assert_eq!(three.leader_after(5), Some(0));
    assert_eq!(three.clock_of(0), 0);
    // Whoever reads the whole log goes back with it.
    three.restart(1, 0, &[]);
    assert_eq!(three.leader_after(1), Some(0));
    let is_right = |clock: i64| (-1000..=0).contains(&clock);
    assert!(is_right(three.clock_of(1)), "{}", three.clock_of(1));
    three.end(0);
    assert_eq!(three.leader_after(4), Some(1));
    assert!(is_right(three.clock_of(1)), "{}", three.clock_of(1));
}

/// A script's unit has one time, which the renewals amid it say as well. Who is told of no other
/// does not know for how long the shard's clock has stood still.
#[test]
fn a_clock_that_stood_still_before_it_was_heard_is_not_taken_for_the_shards() {
    const STOOD_MILLIS: u64 = 5000;
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    let client = three.connect(0);
    client.send(request(&["EVAL", "while true do end", "0"]).as_bytes());
    three.elapse(STOOD_MILLIS);
    three.end(1);
    three.restart(1, 0, &[]);
    three.elapse(2000);
    let stood = -three.clock_of(1);
    assert!(stood >= STOOD_MILLIS.cast_signed(), "its records show when the script began: {stood}");
    three.end(0);
    three.end(2);
    while three.leader_after(0).is_none() {
        three.pass(1);
    }
    let behind = -three.clock_of(1);
    assert!(behind < 1000, "no key lives for longer by what the script took: {behind}");
}
