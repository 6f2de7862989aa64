//! Snapshots as opaque bytes: parts, manifests, publication, retention.
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
//! | `limits` | how large parts become, and how many snapshots stay |
//! | `store` | which snapshots there are, and which stay |
//! | `reader` | a part as a stream that checks itself |
//! | `archive` | where the bytes lie: a trait, for names and bytes |
//! | `encrypted` | what is encrypted on its way to an archive, and decrypted on its way back |
//! | `directory` | the archive that is a directory |
//! | `conformance` | what every archive must keep, as tests (a feature) |
//!
//! Absent on purpose: what the parts hold, and when a snapshot is due or the log trimmed, which
//! `shard` decides; threads: every call blocks, and is made from a queue of disk jobs or in a
//! start.
#![forbid(unsafe_code)]

mod archive;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod directory;
mod encrypted;
mod limits;
mod manifest;
mod reader;
mod store;
mod writer;

#[cfg(test)]
mod tests;

pub use archive::{
    Archive, CLAIM_BYTES_MAX, CLAIM_RENEWAL, CLAIM_SILENCE, Claim, Draft, Entry, NewPart, PREFIX,
    StoredPart, Unfinished,
};
pub use directory::DirectoryArchive;
pub use limits::Limits;
pub use manifest::{FORMAT, Facts, Manifest, Part, Proof, SnapshotPoint};
pub use reader::PartReader;
pub use store::{Candidate, Pruned, Snapshot, SnapshotStore};
pub use writer::{FinishedPart, PartWriter, SnapshotWriter};
