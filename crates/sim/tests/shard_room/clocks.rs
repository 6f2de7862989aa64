//! A server whose wall clock is wrong leads only when nobody else can.

use crate::three::Three;

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
