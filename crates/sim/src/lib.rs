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
//! | [`faulty_disk`] | a disk as one of its users sees it: operations fail, and users die |
//! | [`disk_queue`] | disk jobs that end at simulated instants |
//! | [`driver`] | a node's end of the network |
//! | [`tapped_log`] | a log that is listened to |
//! | [`tier`] | a file of values that memory has no room for, and how a run uses it |
//! | [`limits`] | how much a process does at a time: from the seed, in both rooms |
//! | [`odds`] | what goes wrong with operations on the service that keeps a log |
//! | [`hostile`] | what an enemy or a bad disk may hand over: the fuzzer's targets |
//! | [`network`] | clients, the bytes under way, and what goes wrong with them |
//! | [`random`] | numbers from a seed |
//!
//! What the rooms' words stand for:
//!
//! | word | plainly |
//! |---|---|
//! | room, shard room | a run: one server and its clients; several servers on one log |
//! | plan | what a run is told: how long, how many, what is broken on purpose |
//! | crowd, user | all clients of a run; one of them, on one connection at a time |
//! | habit | what a client sends |
//! | errand | what the operator does while those who have a ledger are silent |
//! | token | a unique value, which is recognised wherever it appears |
//! | ledger, queue | what clients may count on: each in its own keys; in a list they share |
//! | account, history | the same in a shard room: of all keys; of one, by the order of the log |
//! | volatile | the same of keys that expire |
//! | witness | a room's checker: holds what leaves the server against what its disk has synced |
//! | shadow | a room's replica: applies each record as it is appended |
//! | chronicle | a shard room's checker: reads the log as it is stored, and asks no process |
//! | climate, weather | which faults a run has, and how often; the faults, as they come |
//! | odds | how likely a service loses, delays or repeats an answer |
//! | tether | what a process's driver and log know together: whether it died, what it leads |
//! | pressure | why values leave memory in a run that has a file for them |
//! | stray | a request to a service that arrives long after it was sent |

pub mod campaign;
pub mod clock;
pub mod disk;
pub mod disk_queue;
pub mod driver;
pub mod faulty_disk;
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
pub mod tier;
pub mod timeline;
