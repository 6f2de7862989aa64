//! The log in JetStream.

mod cluster;
mod faults;
mod store;

use super::bench;
use super::reading;
use cluster::three_servers;
use services::Broken;

#[test]
fn it_keeps_what_every_log_must() {
    let Some(cluster) = three_servers() else { return };
    bench::run(cluster);
}

#[test]
fn puts_without_a_number_are_noticed() {
    let Some(cluster) = three_servers() else { return };
    let broken = cluster.breaking(Broken::IgnoresNumbers);
    let run = std::panic::AssertUnwindSafe(|| bench::run(broken));
    assert!(std::panic::catch_unwind(run).is_err(), "the suite passed a log without an order");
}

#[test]
fn a_tool_reads_it_and_begins_none() {
    let Some(cluster) = three_servers() else { return };
    reading::a_tool_reads_it_and_begins_none(&cluster);
}
