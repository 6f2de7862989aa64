//! The log in an object store, against real servers, which `tests/logs/objects` starts and names in
//! the environment. Without it only the log in a directory is tested here.

#[path = "objects/bench.rs"]
mod bench;
#[path = "objects/faults.rs"]
mod faults;
#[path = "objects/stores.rs"]
mod stores;
#[path = "objects/wire.rs"]
mod wire;
#[path = "objects/writer.rs"]
mod writer;
