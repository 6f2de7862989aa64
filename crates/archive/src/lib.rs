//! Snapshots as opaque bytes: parts, manifests, publication, retention.
//!
//! ```text
//! <store>/snapshot-<sequence>-<n>/part-0000.rdb      the bytes
//!                                 manifest.json      makes it a snapshot: written last, renamed in
//! ```
//! A directory without a manifest is not a snapshot: it is under way or was left by a process that
//! died, and the next start removes it. What the parts hold is not this crate's business.
//! `docs/formats/snapshot.md` is normative.
//!
//! | file | holds |
//! |---|---|
//! | `writer` | a snapshot in the making: written, verified, published |
//! | `manifest` | what a snapshot says about itself |
//! | `store` | which snapshots there are, and how many stay |
//! | `reader` | a part as a stream that checks itself |
//!
//! Absent on purpose: what the parts hold, and when a snapshot is due or the log trimmed, which
//! `shard` decides; threads: every call blocks, and is made from a queue of disk jobs.
#![forbid(unsafe_code)]

mod manifest;
mod reader;
mod store;
mod writer;

pub use manifest::{Manifest, Part, SnapshotPoint};
pub use reader::PartReader;
pub use store::{Candidate, Pruned, RETAINED, Snapshot, SnapshotStore};
pub use writer::{Facts, SnapshotWriter};
