//! Takes snapshots of a shard off the box: in a process that serves nobody, so that no client ever
//! feels one.
//!
//! ```text
//! archive ─ newest snapshot ─▶ engine ◀─ log, through its tail
//!                                │ parts                       digest of what it holds
//!                                ▼                                       ║ the same?
//! archive ◀─ written ─ read back ─▶ a second engine ─▶ digest ═══════════╝
//!                                │  ◀─ log, through the next Checksum: the primary's keys, too?
//!                                ▼
//!                            published
//! ```
//! It needs nothing but the log, which it only reads, and the archive. Where anything differs on
//! the way nothing is published, and the snapshots that were there stay what they were. Killed at
//! any step it leaves a draft that whoever tidies the archive removes.
//!
//! | file | holds |
//! |---|---|
//! | [`due`](Rates) | whether a start would read more of the log than of the snapshot |
//! | [`take`](Worker) | one snapshot from its beginning to its publication |
//! | [`found`](ShardData) | a new log with data: of another one's moment, or imported |
//! | [`branch`](Fork) | a new log with the data of another one's moment, which stays where it is |
//! | `prove` | restores what was written, and compares |
//! | `lanes` | the threads that write parts |
//! | [`progress`](Progress) | how far it is, for a terminal, the log and the claim |
//!
//! Absent on purpose: threads, sockets and the process, which are passed in, so that the simulator
//! runs a worker as it runs a server; the loop around it.
#![forbid(unsafe_code)]

mod branch;
mod due;
mod found;
mod lanes;
mod progress;
mod prove;
mod take;

pub use branch::Fork;
pub use due::{Freshness, Rates};
pub use found::ShardData;
pub use progress::{Phase, Progress};
pub use take::{Broken, Claimed, Outcome, Taken, Worker};
