//! A shard at work, which knows no client: engine, log, tracker, leadership, start.
//!
//! What a process executes or reads goes through these files, in this order:
//!
//! | module | does |
//! |---|---|
//! | [`loading`] | the start: the newest snapshot, then the log behind it |
//! | [`recovery`] | applies committed records, at the start and on a replica |
//! | [`shard`](Shard) | gathers effects into records and appends them; or follows who does |
//! | [`tracker`] | knows what a reply must wait for |
//! | [`leadership`], [`role`] | primary or replica: who leads, and the lease |
//! | [`lag`] | how far replicas are behind |
//! | [`snapshots`] | writes the keyspace beside commands, lets the log be trimmed |
//! | [`clock`] | the shard's time, which never goes back and never jumps |
//!
//! Deliberately absent: sessions, requests and replies, sockets, configuration, users. Whoever
//! opens a shard gives it plain numbers, and hears what became durable and who leads.
#![forbid(unsafe_code)]

pub mod clock;
pub mod lag;
pub mod leadership;
pub mod loading;
mod news;
mod no_log;
pub mod recovery;
pub mod role;
mod shard;
pub mod snapshots;
pub mod tracker;

pub use leadership::Leadership;
pub use news::News;
pub use role::renewal::Renewal;
pub use shard::{Growth, Progress, RecordId, Shard, Told};
