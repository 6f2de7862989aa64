#![forbid(unsafe_code)]
//! The simulated world: deterministic from a seed, with faults.
//!
//! | file | holds |
//! |---|---|
//! | [`campaign`] | many seeds of one room |
//! | [`lone`] | a server that leads a log of its own |
//! | [`reply`] | replies as clients read them |
//! | [`room`] | one machine with a server and its clients, and what must hold |
//! | [`shard_room`] | a primary and its replicas on one log, and what must hold |
//! | [`timeline`] | what happens when, and the trace of what did |
//! | [`clock`] | a machine's clocks, which can be wrong |
//! | [`disk`] | a disk that keeps live and durable bytes apart, and loses power |
//! | [`disk_queue`] | disk jobs that end at simulated instants |
//! | [`driver`] | a node's end of the network |
//! | [`tapped_log`] | a log that is listened to |
//! | [`limits`] | how much a process does at a time: from the seed, in both rooms |
//! | [`odds`] | what goes wrong with operations on the service that keeps a log |
//! | [`hostile`] | what an enemy or a bad disk may hand over: the fuzzer's targets |
//! | [`network`] | clients, the bytes under way, and what goes wrong with them |
//! | [`random`] | numbers from a seed |

pub mod campaign;
pub mod clock;
pub mod disk;
pub mod disk_queue;
pub mod driver;
pub mod hostile;
pub mod limits;
pub mod lone;
pub mod network;
pub mod odds;
pub mod random;
pub mod reply;
pub mod room;
pub mod shard_room;
pub mod tapped_log;
pub mod timeline;
