//! Snapshots, and the log that was trimmed, as opaque bytes: parts, manifests, publication,
//! retention.
//!
//! A snapshot is parts and a manifest that names them, published last. Until then it is none: it is
//! under way or was left by a process that died. A start that holds the log, and whoever removes
//! old snapshots, remove what no process will finish.
//! What the parts hold is not this crate's business. `docs/formats/snapshot.md` is normative.
//!
//! | file | holds |
//! |---|---|
//! | `writer` | a snapshot in the making: written, verified, published |
//! | `manifest` | what a snapshot says about itself |
//! | `branch` | a snapshot whose data is another shard's, and what keeps that |
//! | `limits` | how large parts become, and how many snapshots stay |
//! | `retention` | which snapshots a restore window needs |
//! | `store` | which snapshots there are, and which stay |
//! | `log_store` | the log that was trimmed: which stretches of it there are |
//! | `stretch` | what one of them says about itself |
//! | `pruning` | what is removed of both |
//! | `reader` | a part as a stream that checks itself |
//! | `archive` | where the bytes lie: a trait, for names and bytes |
//! | `encrypted` | what is encrypted on its way to an archive, and decrypted on its way back |
//! | `names` | what entries are called |
//! | `directory` | the archive that is a directory |
//! | `conformance` | what every archive must keep, as tests (a feature) |
//!
//! Absent on purpose: what the parts hold, and when a snapshot is due or the log trimmed, which
//! `shard` decides; threads: every call blocks, and is made from a queue of disk jobs or in a
//! start.
#![forbid(unsafe_code)]

mod archive;
mod branch;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod directory;
mod encrypted;
mod limits;
mod log_store;
mod manifest;
mod names;
mod pruning;
mod reader;
mod retention;
mod store;
mod stretch;
mod writer;

#[cfg(test)]
mod tests;

pub use archive::{
    Archive, CLAIM_BYTES_MAX, CLAIM_RENEWAL, CLAIM_SILENCE, Claim, Draft, Entry, NewPart,
    Published, StoredPart, Unfinished,
};
pub use branch::{BranchPoint, Parent, Pin};
pub use directory::DirectoryArchive;
pub use limits::{Limits, PARTS_OF_ONE_SIZE};
pub use log_store::{Coverage, LogStore, covered, is_useless};
pub use manifest::{FORMAT, FORMAT_MAX, FORMAT_MIN, Facts, Manifest, Part, Proof, SnapshotPoint};
pub use names::{Content, Extent};
pub use pruning::Pruned;
pub use reader::PartReader;
pub use store::{Access, Candidate, OfLog, OpenArchive, Snapshot, SnapshotStore};
pub use stretch::{ChainPoint, Stretch, StretchFacts};
pub use writer::{FinishedPart, PartWriter, SnapshotWriter};
