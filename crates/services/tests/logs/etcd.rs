//! The log in etcd.

mod cluster;
mod faults;
mod store;

use super::bench;
use super::reading;
use cluster::three_members;

#[test]
fn it_keeps_what_every_log_must() {
    let Some(cluster) = three_members() else { return };
    bench::run(cluster);
}

#[test]
fn a_tool_reads_it_and_begins_none() {
    let Some(cluster) = three_members() else { return };
    reading::a_tool_reads_it_and_begins_none(&cluster);
}
