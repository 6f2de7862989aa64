//! Whether a log whose service names an end before a known record has lost that record.
//!
//! [`super::reading`], [`super::history`] and [`super::doubt`] ask it. One answer does not tell: a
//! server that was cut off from its peers may answer from the past until it notices. So a record is
//! lost only if a quorum confirms the end, or if every answer says so for longer than a server can
//! be mistaken.

use base::{MonotonicNanos, Sequence};

/// How long every answer must name an end before the record until that is believed although nobody
/// confirms it. A leader in JetStream looks every ten seconds whether it has heard from a quorum
/// within the last ten (`lostQuorumCheck`): that takes it up to twenty.
const LOST_NANOS: u64 = 25_000_000_000;

/// What the answers about one record have said.
#[derive(Default)]
pub(super) struct Shortfall {
    /// Since when every answer names an end before it.
    since: Option<MonotonicNanos>,
}

impl Shortfall {
    /// Whether the last answer named an end before the record: then the end is to be asked for.
    pub(super) fn is_suspected(&self) -> bool {
        self.since.is_some()
    }

    /// Takes an answer that the log ends with `tail`, and says whether the record at `place` is
    /// lost. `is_confirmed`: a quorum says so.
    pub(super) fn proves_loss(
        &mut self,
        place: Sequence,
        tail: Sequence,
        is_confirmed: bool,
        now: MonotonicNanos,
    ) -> bool {
        if tail >= place {
            self.since = None;
            return false;
        }
        let since = *self.since.get_or_insert(now);
        is_confirmed || now.since(since) > LOST_NANOS
    }
}
