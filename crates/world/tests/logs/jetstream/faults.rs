//! A writer whose servers are killed and stopped: what it was told to be durable is read back in
//! order, exactly once.

use super::cluster::{Cluster, three_servers};
use crate::outside::{faults, tell};
use crate::writer::{RECORDS_BETWEEN, Writer};
use std::time::Duration;
use world::log::jetstream::Broken;

/// Longer than the longest election, which takes 9 s.
const LONG_PAUSE: Duration = Duration::from_secs(11);

/// Crashes of all servers after which a writer that is wrong must have been caught.
const CRASHES_MAX: usize = 20;

fn leader_of(writer: &Writer<'_, Cluster>) -> String {
    tell(&format!("leader kiln-{}", writer.name))
}

#[test]
fn a_killed_leader_costs_nothing_that_was_acknowledged() {
    let Some(cluster) = three_servers() else { return };
    Writer::lead(&cluster).survive(1, |writer, _| {
        tell(&format!("kill {}", leader_of(writer)));
        writer.go_on(RECORDS_BETWEEN);
        writer.check();
    });
}

/// As many faults as the environment asks for, of every kind, one after the other.
#[test]
fn many_faults_cost_nothing_that_was_acknowledged() {
    let (Some(cluster), Some(count)) = (three_servers(), faults()) else { return };
    Writer::lead(&cluster).survive(count, |writer, chosen| {
        let server = chosen / 16 % 3;
        match chosen % 5 {
            0 => drop(tell(&format!("kill {}", leader_of(writer)))),
            1 => drop(tell(&format!("kill {server}"))),
            2 => {
                let leader = leader_of(writer);
                pause(writer, &leader, LONG_PAUSE);
            }
            3 => pause(writer, &server.to_string(), Duration::from_secs(chosen / 64 % 6)),
            _ => {
                for other in (0..3).filter(|other| *other != server) {
                    tell(&format!("kill {other}"));
                }
                writer.work_for(Duration::from_secs(chosen / 64 % 4));
            }
        }
        writer.work_for(Duration::from_millis(chosen / 1024 % 500));
    });
}

fn pause(writer: &mut Writer<'_, Cluster>, server: &str, time: Duration) {
    tell(&format!("pause {server}"));
    writer.work_for(time);
    tell(&format!("resume {server}"));
}

#[test]
fn a_writer_that_assumes_the_best_is_noticed() {
    let Some(cluster) = three_servers() else { return };
    let cluster = cluster.breaking(Broken::AssumesTheBest);
    let mut writer = Writer::lead(&cluster);
    writer.go_on(RECORDS_BETWEEN);
    let run = std::panic::AssertUnwindSafe(|| {
        for _ in 0..CRASHES_MAX {
            // Of what is under way, hardly ever all is stored.
            writer.turn();
            tell("crash");
            writer.work_for(Duration::from_secs(2));
            writer.check_within(Duration::from_secs(10));
        }
    });
    assert!(std::panic::catch_unwind(run).is_err(), "lost records were not missed");
}
