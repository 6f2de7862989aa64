//! What happened to a shard, for whoever serves clients from it.

use crate::role::member::Leader;
use crate::snapshots::SnapshotFile;

/// One thing that happened; told once, in the order in which things happened.
pub enum News {
    /// More is durable: what waited for it may be shown.
    Durable,
    /// What another process wrote was applied, and somebody is interested.
    Applied,
    /// The log says that this process leads, or another one.
    Leader(Leader),
    /// The clocks of a primary parted: its machine was frozen, or its time was set.
    ClocksParted,
    /// This life is over: another process may lead, or what is needed of the log is gone. What this
    /// process holds may not be what the log says. Why.
    Demoted(String),
    /// The log is gone for this process, which must end. Why.
    Fatal(String),
    /// A snapshot began. It holds everything that has executed until now, and stands at the end of
    /// the newest record.
    SnapshotBegan,
    /// The snapshot is published; here it is as one file, open, unless it cannot be read just now.
    SnapshotPublished(Option<Box<SnapshotFile>>),
    /// The snapshot was given up; why, stands in the log.
    SnapshotFailed,
    /// Likewise, and another one begins, for whoever waits for one.
    SnapshotGivenUp,
}
