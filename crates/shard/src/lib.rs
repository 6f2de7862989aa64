//! A shard at work, which knows no client: engine, log, tracker, leadership, start.
//!
//! What a process executes or reads goes through these files, in this order:
//!
//! | module | does |
//! |---|---|
//! | [`loading`] | the start: the newest snapshot, then the log behind it |
//! | [`recovery`] | applies committed records, at the start and on a replica |
//! | [`shard`](Shard) | gathers effects into records and appends them; or follows who does |
//! | [`tracker`](Tracker) | knows what a reply must wait for |
//! | [`leadership`], [`role`] | primary or replica: who leads, and the lease |
//! | [`lag`](Lag) | how far replicas are behind |
//! | [`snapshots`] | writes the keyspace beside commands, lets the log be trimmed |
//! | [`limits`](Limits) | how much it does at a time |
//! | [`archived`] | copies the log into the archive, and reads it there where it was trimmed |
//! | [`tiering`] | values that memory has no room for, on a file |
//! | `foresight` | values that records to come will change, fetched meanwhile |
//! | [`compaction`] | memory that is lost between blocks, won back |
//! | `clock` | the shard's time, which never goes back and never jumps |
//!
//! A tool opens one, reads it and follows it in a few lines, beside a server or without any:
//!
//! ```no_run
//! # use base::{Clock, DatabaseId, Disk, Incarnation, Seeds};
//! # use engine::{interest::Interest, settings::Settings};
//! # use shard::loading::{Failure, KnownLog, OpenLog, Sources};
//! # use std::{path::Path, sync::Arc};
//! # fn tool(
//! #     disk: Arc<dyn Disk>, clock: Arc<dyn Clock>, seeds: Seeds,
//! #     handle: Box<dyn txlog::TransactionLog>, incarnation: Incarnation,
//! # ) -> Result<(), Failure> {
//! let store = archive::SnapshotStore::open(disk, Path::new("/data/snapshots"))?;
//! let sources = Sources { clock, store, settings: Settings::default(), seeds };
//! let log = |_: &KnownLog| Ok(OpenLog { handle, incarnation, is_free: false });
//! let mut shard = shard::open(sources, log, std::thread::yield_now)?;
//! let keyspace = &shard.engine.keyspace;
//! let value = keyspace.database(DatabaseId(0)).find(keyspace.hash(b"key"), b"key");
//! # drop(value);
//! shard.poll(&mut Vec::new(), &mut Interest::default());
//! # Ok(())
//! # }
//! ```
//!
//! Where several things come of one call, they are told as [`News`], in the order in which they
//! happened. Whoever serves clients hands them on; whoever serves none lets them go.
//!
//! Deliberately absent: sessions, requests and replies, sockets, configuration, users. Whoever
//! opens a shard gives it plain numbers, and hears what became durable and who leads.
#![forbid(unsafe_code)]

pub mod archived;
mod clock;
pub mod compaction;
mod foresight;
mod lag;
pub mod leadership;
mod limits;
pub mod loading;
mod news;
mod no_log;
pub mod recovery;
pub mod role;
mod shard;
pub mod snapshots;
pub mod tiering;
mod tracker;

pub use lag::Lag;
pub use leadership::Leadership;
pub use limits::Limits;
pub use loading::open;
pub use news::News;
pub use role::renewal::Renewal;
pub use shard::{Growth, Pins, Progress, RecordId, Shard, Told};
pub use tracker::Tracker;
