//! The shard's snapshots, as the core asks of them; who waits for one is the server's business
//! (`server/saves.rs`).

use super::Core;
use archive::SnapshotStore;
use base::{DiskQueue, UnixMillis};
use engine::refusal::Refusal;
use shard::snapshots::{ArchiveLog, Pace, Sighting, Snapshots, Status};
use std::sync::Arc;

impl Core {
    /// Whether so much waits for the snapshot's disk that writing commands must wait too.
    pub(crate) fn is_snapshot_behind(&self) -> bool {
        self.snapshots.as_ref().is_some_and(|it| it.is_behind(&self.shard, self.client_bytes()))
    }

    /// Whether the next turn should not wait, because a snapshot can go on.
    pub(crate) fn is_snapshot_ready(&self) -> bool {
        let is_ready = |it: &Snapshots| it.is_ready(&self.shard);
        self.leadership.roles.leads() && self.snapshots.as_ref().is_some_and(is_ready)
    }

    /// The newest snapshot in the own store, as far as others should be able to see it.
    pub(crate) fn newest_snapshot(&self) -> Option<Sighting> {
        let is_private = self.process.settings.snapshots_are_private;
        self.snapshots.as_ref().filter(|_| !is_private).and_then(Snapshots::newest)
    }

    /// Lets the server take snapshots, at this pace. `queue` is for nothing else: what the log
    /// waits for must not wait for snapshots.
    pub fn keep_snapshots(&mut self, store: SnapshotStore, queue: Box<dyn DiskQueue>, pace: Pace) {
        let clock = Arc::clone(&self.process.options.clock);
        self.snapshots = Some(Snapshots::new(store, queue, clock, pace));
    }

    /// Lets the server archive its log in this way, if its store has a restore window. `queue` is
    /// for nothing else.
    pub fn archive_log_by(&mut self, archive_log: ArchiveLog, queue: Box<dyn DiskQueue>) {
        if let Some(snapshots) = &mut self.snapshots {
            snapshots.archive_log_by(archive_log, queue);
        }
    }

    /// How the snapshots of this life went.
    pub fn saving(&self) -> Status {
        self.snapshots.as_ref().map(Snapshots::status).unwrap_or_default()
    }

    /// When the last snapshot was published; the beginning of this life, if there is none.
    pub(crate) fn last_save(&self) -> UnixMillis {
        self.saving().last_published.unwrap_or(self.persistence.began)
    }

    pub(crate) fn snapshots_to_take(&mut self) -> Result<&mut Snapshots, Refusal> {
        const FOLLOWS: Refusal =
            Refusal::of("ERR the primary takes the snapshots, and this is a replica");
        if self.is_following() {
            return Err(FOLLOWS);
        }
        self.snapshots.as_mut().ok_or(Refusal::of("ERR there is no snapshot store"))
    }
}
