//! Archives the log before it is trimmed.
//!
//! In a queue of its own: a long log takes long, and meanwhile the store is looked at and
//! snapshots are written. Whoever would wait behind it would take a worker for dead that lives, or
//! let the bytes of a snapshot gather until writing commands had to wait.

use super::{Outcome, submit};
use archive::{Candidate, SnapshotStore, Unfinished};
use base::disk::{DiskOutcome, DiskTicket};
use base::{DiskQueue, Incarnation, Sequence, UnixMillis};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Archives what a restore window that ends at a time needs of the log through a record, in a job
/// on a thread of its own: opens the log to read it, and copies it ([`crate::archived::archive`],
/// whose answer is passed on). Ends soon once it is told so. Why it cannot, in words.
pub type ArchiveLog = Arc<
    dyn Fn(&SnapshotStore, UnixMillis, Sequence, &AtomicBool) -> Result<Sequence, String>
        + Send
        + Sync,
>;

/// Says why the log could not be archived: whoever sees the snapshots then leaves it as it is.
pub fn tell_unarchived(why: &dyn fmt::Display) {
    tracing::error!("the log cannot be archived, and is not trimmed: {why}");
}

/// How the log is archived, and where.
pub(super) struct Archiving {
    archive_log: ArchiveLog,
    queue: Box<dyn DiskQueue>,
    /// Whoever archives is to stop: this life of the process is over. Nobody waits for that.
    is_over: Arc<AtomicBool>,
}

impl Archiving {
    /// `queue` is for nothing else.
    pub fn new(archive_log: ArchiveLog, queue: Box<dyn DiskQueue>) -> Self {
        Self { archive_log, queue, is_over: Arc::default() }
    }

    /// Archives the log through the newest snapshot of it. Whoever published that one may have
    /// archived nothing, or not all that there was: nobody knows better than who looks whether the
    /// log still has its beginning.
    pub fn begin(&mut self, store: SnapshotStore, log: Incarnation, now: UnixMillis) {
        let (archive_log, is_over) = (Arc::clone(&self.archive_log), Arc::clone(&self.is_over));
        submit(&mut *self.queue, move || {
            let archive = || {
                // A stretch that a dead process left unfinished has the name of the next one. What
                // else cannot be removed is in nobody's way.
                if let Err(error) = store.remove_unpublished(Unfinished::Signed) {
                    tracing::warn!("unfinished snapshots cannot be removed: {error}");
                }
                match newest(&store, log)? {
                    Some(through) => archive_log(&store, now, through, &is_over),
                    None => Ok(Sequence::ZERO),
                }
            };
            Ok(Outcome::Archived(archive()))
        });
    }

    pub fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        self.queue.poll(done);
    }
}

impl Drop for Archiving {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
    }
}

/// The record of the newest snapshot of this log.
///
/// # Errors
/// There is none, but one that cannot be read and may be whole; the archive's.
fn newest(store: &SnapshotStore, log: Incarnation) -> Result<Option<Sequence>, String> {
    let candidates = store.list_of(log).map_err(|error| error.to_string())?.candidates;
    let newest = candidates.iter().find_map(Candidate::whole);
    let unread = candidates.iter().find_map(|candidate| match candidate {
        Candidate::Damaged { name, why, may_be_whole: true } => Some((name, why)),
        Candidate::Damaged { .. } | Candidate::Whole(_) => None,
    });
    match (newest, unread) {
        (Some(newest), _) => Ok(Some(newest.point.position.sequence)),
        (None, Some((name, why))) => Err(format!("{name} cannot be read: {why}")),
        (None, None) => Ok(None),
    }
}
