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
//! | module | holds |
//! |---|---|
//! | [`manifest`] | what a snapshot says about itself |
//! | [`store`] | which snapshots there are, and how many stay |
//! | [`writer`] | a snapshot in the making: written, verified, published |
//! | [`reader`] | a part as a stream that checks itself |
#![forbid(unsafe_code)]

pub mod manifest;
pub mod reader;
pub mod store;
pub mod writer;

pub use manifest::{Manifest, Part};
pub use reader::PartReader;
pub use store::{Candidate, Pruned, RETAINED, Snapshot, SnapshotStore};
pub use writer::{Facts, SnapshotWriter};
