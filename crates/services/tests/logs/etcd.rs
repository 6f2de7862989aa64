//! The log in etcd.

mod cluster;
mod faults;
mod store;

use super::bench;
use cluster::three_members;

#[test]
fn it_keeps_what_every_log_must() {
    let Some(cluster) = three_members() else { return };
    bench::run(cluster);
}
