//! The end of the tier's file, given back once nothing lies there.
//!
//! A part of it goes at a time, because reads and writes wait meanwhile; and not for every segment
//! that comes and goes at the end.

use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskTicket};
use base::time::{MonotonicNanos, SECOND};
use engine::keyspace::Keyspace;
use std::io;
use std::sync::Arc;

/// Between two looks at the end of the file, in nanoseconds. It takes a look at all free segments
/// there, which are a small part of all.
pub(super) const SHRINK_NANOS: u64 = SECOND / 50;

#[derive(Default)]
pub(super) struct Shrinker {
    /// What the file may have grown to.
    file_bytes: u64,
    /// The cut under way, and what the file may have grown to once it is done.
    cutting: Option<(DiskTicket, u64)>,
    /// The last one failed, which was logged.
    has_failed: bool,
    /// When the end of the file was last looked at.
    looked_at: MonotonicNanos,
}

impl Shrinker {
    /// Gives the end of the file back that the tier has no use for, `bytes_max` of it at most.
    pub(super) fn go_on(
        &mut self,
        keyspace: &mut Keyspace,
        now: MonotonicNanos,
        bytes_max: u64,
        file: &Arc<dyn DiskFile>,
        queue: &mut dyn DiskQueue,
    ) {
        if now.since(self.looked_at) < SHRINK_NANOS {
            return;
        }
        self.looked_at = now;
        let Some(cold) = keyspace.cold_mut() else { return };
        let wanted = cold.tier.drop_free_end();
        if let Some((_, left)) = &mut self.cutting {
            *left = wanted.max(*left);
            return;
        }
        if wanted >= self.file_bytes {
            self.file_bytes = wanted;
            return;
        }
        let length = wanted.max(self.file_bytes.saturating_sub(bytes_max));
        let file = Arc::clone(file);
        // Behind the writes under way, and before those to come.
        let ticket = queue.submit(Box::new(move || -> DiskOutcome {
            let outcome: io::Result<()> = file.set_length(length);
            Box::new(outcome)
        }));
        self.cutting = Some((ticket, length));
    }

    /// Takes the outcome of a cut; whether it is one.
    pub(super) fn take(&mut self, ticket: DiskTicket, outcome: &DiskOutcome) -> bool {
        let is_it = |(cutting, _): &mut (DiskTicket, u64)| *cutting == ticket;
        let Some((_, left)) = self.cutting.take_if(is_it) else { return false };
        match outcome.downcast_ref::<io::Result<()>>() {
            Some(Ok(())) => {
                self.file_bytes = left;
                self.has_failed = false;
            }
            Some(Err(error)) if !self.has_failed => {
                tracing::warn!("the tier's file cannot be made shorter: {error}");
                self.has_failed = true;
            }
            _ => {}
        }
        true
    }

    /// The outcome of a cut under way will not come: it is tried again.
    pub(super) fn forget_cut(&mut self) {
        self.cutting = None;
    }
}
