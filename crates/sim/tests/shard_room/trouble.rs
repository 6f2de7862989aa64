//! Servers from whom the log takes nothing, or that it does not answer.

use crate::three::Three;

#[test]
fn who_could_not_write_leads_only_if_nobody_else_does() {
    let mut three = Three::new(&[]);
    three.trouble(0, true);
    assert_eq!(three.leader_after(3), Some(1), "the first to stand may not write");
    three.trouble(0, false);
    three.end(1);
    assert_eq!(three.leader_after(3), Some(0), "it may again");
    three.trouble(2, true);
    three.end(0);
    assert_eq!(three.leader_after(4), Some(2), "who else");
}

#[test]
fn a_log_that_is_silent_is_not_given_more_and_more_renewals() {
    let mut three = Three::new(&[]);
    assert_eq!(three.leader_after(3), Some(0));
    three.stall();
    three.leader_after(20);
    assert!(three.under_way(0) <= 2, "{} records", three.under_way(0));
}
