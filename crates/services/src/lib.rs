//! The clients of services that keep a log, or snapshots: NATS JetStream, object stores, etcd.
//!
//! ```text
//! txlog::remote::RemoteLog ─▶ ServiceStore ═ bounded queue ═▶ thread: tokio + client ─▶ service
//!    order, doubt, reading        ▲ outcomes, waker ◀═══════════╝
//! archive::SnapshotStore ──▶ ObjectArchive ═ callers wait ════▶ thread: tokio + client ─▶ store
//! ```
//!
//! | file | holds |
//! |---|---|
//! | `open` | the client that the URL of a log or an archive asks for, if this build has it |
//! | `opening` | what every client is told when it opens a log or an archive |
//! | `service` | the thread on which a client works, and the way there and back |
//! | `address` | what the URLs of logs have in common |
//! | `jetstream` | the log in a NATS JetStream cluster |
//! | `objects` | the log in an object store: S3, what speaks like it, a directory |
//! | `etcd` | the log in etcd |
//! | `object_archive` | snapshots in an object store |
//! | `bucket` | object stores: their URLs, a proof that they keep their word, their errors |
//!
//! Each service is a feature, because its client is larger than all of Kiln, and etcd's needs
//! `protoc` to be built.
//!
//! Absent on purpose: what makes a log of numbered records. Order, doubts, fencing and reading are
//! the same for every service and lie in `txlog::remote`, which the simulator runs. A client here
//! says how a put ended and draws no conclusion. Nothing above this crate knows `async`.
#![forbid(unsafe_code)]

#[cfg(any(feature = "etcd", feature = "jetstream"))]
mod address;
#[cfg(feature = "objects")]
mod bucket;
#[cfg(feature = "etcd")]
mod etcd;
#[cfg(feature = "jetstream")]
mod jetstream;
#[cfg(feature = "objects")]
mod object_archive;
#[cfg(feature = "objects")]
mod objects;
mod open;
mod opening;
#[cfg(feature = "client")]
mod service;

pub use open::{
    archive_schemes, open, open_archive, open_archive_renewing, open_archive_to_read, open_broken,
    open_to_read, schemes,
};
pub use opening::Broken;
