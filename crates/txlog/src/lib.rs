//! The transaction log: records in durable order.
//!
//! ```text
//! effects ─▶ Stamper ─▶ record ─▶ TransactionLog: FileLog, RemoteLog ─▶ disk, service
//!                                        │ committed records, void ones included
//!                                        ▼
//!                          Follower, Reader: what counts, units whole
//! ```
//!
//! | file | holds |
//! |---|---|
//! | [`record`] | one record: header, payload, bytes |
//! | `chain` | the void rule, split units, and the stamping of a leader's records |
//! | `checksum` | the running checksum of what the records say, and the record that holds it |
//! | `origin` | the first record of a log that did not begin empty |
//! | [`log`] | the trait every backend fulfils, its events and errors |
//! | [`file`] | the log in a directory of one machine |
//! | [`remote`] | the log that other machines keep, over any service that stores numbered records |
//! | [`reader`] | reading outside a server: from a record on, up to a goal |
//! | [`unit_position`] | a place among what was read, as text |
//! | [`resume`] | going on at such a place, if the log still is that history |
//! | `conformance` | what every backend must keep, as tests (a feature) |
//! | [`memory`] | the reference backend, with faults on demand |
//!
//! Absent on purpose: Redis, because payloads are opaque bytes; threads, sockets and the clock,
//! which are passed in; who shall lead, which `shard` decides. A log only says whether a record has
//! the place that it was to have.
#![forbid(unsafe_code)]

mod chain;
mod checksum;
#[cfg(feature = "conformance")]
pub mod conformance;
pub mod file;
pub mod log;
pub mod memory;
mod origin;
pub mod reader;
pub mod record;
pub mod remote;
pub mod resume;
pub mod unit_position;

pub use chain::{ANOTHER_HISTORY, Chain, Consumed, FollowError, Follower, Stamper, empty_record};
pub use checksum::{Checksum, LogSum};
pub use file::{FileLog, FileOptions, LogError, Queues, Recovery, Replay};
pub use log::{AppendError, Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};
pub use origin::Origin;
pub use reader::{Readable, Reader};
pub use record::{Header, Kind, Part, Record, RecordError, WriterId};
pub use unit_position::UnitPosition;
