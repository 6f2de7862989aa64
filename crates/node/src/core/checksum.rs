//! When this process, as the primary, appends a checksum to the log: between turns, when everything
//! that has executed stands in records, and never where a newest record is being waited for.

use crate::core::Core;

impl Core {
    /// Appends one if it is due. Whether the lease is over does not matter: an idle primary lets it
    /// lapse, and any record renews it.
    pub(crate) fn append_checksum(&mut self) {
        let roles = &self.leadership.roles;
        let may = roles.leads() && !roles.has_yielded();
        // A failover and an end wait until what is appended has arrived.
        let is_awaited = self.pause.is_failing_over || self.stopping.is_some();
        if may && !is_awaited && !self.persistence.is_loading {
            self.shard.append_checksum_if_due(self.turn.now, self.turn.monotonic);
        }
    }
}
