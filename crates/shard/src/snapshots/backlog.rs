//! The backlog of a snapshot: bytes that wait for the disk, and limits at which others wait for it.

use super::{Pace, Running, Snapshots};
use crate::shard::Shard;

/// The part of `maxmemory` that may wait for the disk before the walk of a snapshot stops, if there
/// is a tier; and bytes of a small one.
const BACKLOG_SHARE: u64 = 64;
const BACKLOG_BYTES_MIN: usize = 1 << 20;

/// Bytes that wait for the disk: so many stop the walk, and so many writing commands.
pub(super) struct Backlog {
    pub bytes_max: usize,
    pub bytes_blocking: usize,
}

impl Snapshots {
    /// True if writing commands must wait, because much waits for the disk, to be written there or
    /// read, or for memory that was flushed; clients occupy `client_bytes` of `maxmemory`.
    pub fn is_behind(&self, shard: &Shard, client_bytes: u64) -> bool {
        // Asked for each request, and mostly none is under way.
        let Some(running) = &self.running else { return false };
        let keyspace = &shard.engine.keyspace;
        let is_overfull =
            keyspace.snapshot_is_overfull() || keyspace.lacks_room_for_flushed(client_bytes);
        is_overfull || running.backlog_bytes > self.backlog_of(shard).bytes_blocking
    }

    /// Limits of the backlog: with a tier a part of `maxmemory`, which does not count it.
    pub(super) fn backlog_of(&self, shard: &Shard) -> Backlog {
        let Pace { backlog_bytes_max, backlog_bytes_blocking, .. } = self.pace;
        let maxmemory = shard.engine.keyspace.settings.maxmemory;
        if maxmemory == 0 || shard.tiering.is_none() {
            return Backlog {
                bytes_max: backlog_bytes_max,
                bytes_blocking: backlog_bytes_blocking,
            };
        }
        let share = ((maxmemory / BACKLOG_SHARE) as usize).max(BACKLOG_BYTES_MIN);
        Backlog {
            bytes_max: share.min(backlog_bytes_max),
            bytes_blocking: (2 * share).min(backlog_bytes_blocking),
        }
    }

    /// True if values of a tier that were read are written though the walk waits for the disk: who
    /// wants to change others waits for them.
    pub(super) fn takes_come(&self, running: &Running, shard: &Shard) -> bool {
        running.backlog_bytes < self.backlog_of(shard).bytes_blocking
    }
}
