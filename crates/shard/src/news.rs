//! What happened to a shard, for whoever serves clients from it.

use base::DiskFile;
use std::sync::Arc;

/// One thing that happened; told once, in the order in which things happened.
pub enum News {
    /// A snapshot began. It holds everything that has executed until now, and stands at the end of
    /// the newest record.
    SnapshotBegan,
    /// The snapshot is published.
    SnapshotPublished {
        /// Its one file, open: it stays readable whatever becomes of the snapshot.
        file: Arc<dyn DiskFile>,
        /// Length of that file.
        bytes: u64,
    },
    /// The snapshot was given up; why, stands in the log.
    SnapshotFailed,
}
