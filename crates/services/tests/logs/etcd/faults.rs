//! Members that are killed, stopped and cut off under a writer: what it was told to be durable is
//! read back in order, exactly once.

use super::cluster::three_members;
use crate::outside::{faults, tell};
use crate::writer::{RECORDS_BETWEEN, Writer};
use std::time::Duration;

#[test]
fn a_killed_leader_costs_nothing_that_was_acknowledged() {
    let Some(cluster) = three_members() else { return };
    Writer::lead(&cluster).survive(1, |writer, _| {
        tell("kill leader");
        writer.go_on(RECORDS_BETWEEN);
        writer.check();
    });
}

/// As many faults as the environment asks for, of every kind, one after the other.
#[test]
fn many_faults_cost_nothing_that_was_acknowledged() {
    let (Some(cluster), Some(count)) = (three_members(), faults()) else { return };
    Writer::lead(&cluster).survive(count, |writer, chosen| {
        let member = chosen / 16 % 3;
        let others = (0..3).filter(|other| *other != member);
        match chosen % 8 {
            0 => drop(tell("kill leader")),
            1 => drop(tell(&format!("kill {member}"))),
            2 => drop(tell("pause leader")),
            3 => drop(tell(&format!("pause {member}"))),
            4 => others.for_each(|other| drop(tell(&format!("kill {other}")))),
            5 => others.for_each(|other| drop(tell(&format!("pause {other}")))),
            6 => drop(tell("move leader")),
            _ => drop(tell("crash")),
        }
        // At times longer than a put waits, and than an election takes.
        writer.work_for(Duration::from_millis(chosen / 1024 % 6000));
    });
}
