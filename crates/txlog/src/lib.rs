//! The transaction log: records in durable order. It does not know Redis; payloads are opaque.
//!
//! | file | holds |
//! |---|---|
//! | [`log`] | the trait every backend fulfils, its events and errors |
//! | [`record`] | one record: header, payload, bytes |
//! | [`chain`] | the void rule, split units, and the stamping of a leader's records |
//! | [`file`] | the log in a directory of one machine |
//! | [`remote`] | the log that other machines keep, over any service that stores numbered records |
//! | `conformance` | what every backend must keep, as tests (a feature) |
//! | [`reader`] | reading outside a server: from a record on, up to a goal |
//! | [`memory`] | the reference backend, with faults on demand |
#![forbid(unsafe_code)]

pub mod chain;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod file;
pub mod log;
pub mod memory;
pub mod reader;
pub mod record;
pub mod remote;

pub use chain::{ANOTHER_HISTORY, Chain, Consumed, FollowError, Follower, Stamper, empty_record};
pub use file::{FileLog, FileOptions, LogError, Queues, Recovery, Replay};
pub use log::{AppendError, Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};
pub use reader::{Readable, Reader};
pub use record::{Header, Kind, Part, Record, RecordError, WriterId};
