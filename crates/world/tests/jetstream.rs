//! The log in JetStream, against real servers, which `tests/logs/jetstream` starts and names in the
//! environment. Without it nothing is tested here.

#[path = "jetstream/bench.rs"]
mod bench;
#[path = "jetstream/cluster.rs"]
mod cluster;
#[path = "jetstream/faults.rs"]
mod faults;
#[path = "jetstream/store.rs"]
mod store;
