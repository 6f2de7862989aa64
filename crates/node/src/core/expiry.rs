//! Expiry: by which clock a key counts as past its time, and when it is deleted. Every command asks
//! here for the clock it executes by; the loop deletes here what nobody asks for.
//!
//! Nothing shows that a key's time has come unless the log says so too. As a rule whoever meets
//! such a key deletes it, by an effect that its reply waits for. Where no effect may be recorded
//! (writes are paused, the log takes none, a master will say itself that the key went), expiry
//! stands still at the clock of the newest record: a key is hidden by that, and the reply waits
//! for the record. Every later primary's clock goes on from there, and so does every replica's, so
//! a key that was hidden once is nowhere seen again (docs/protocol.md, "Time").
//!
//! Records that only renew the lease carry the clock as well, so a client that reads sees time go
//! on by a quarter of a lease at least. While clients are paused the time of a key is told at once.

use crate::core::Core;
use base::{DatabaseId, UnixMillis};
use engine::unit::{Context, Overdue};
use shard::leadership::may_renew;
use shard::role::renewal::Purpose;
use txlog::Gate;

impl Core {
    /// The time in which commands execute: the shard's. A replica of the log lives in the time of
    /// the records that it has applied.
    pub(crate) fn shard_time(&self) -> UnixMillis {
        self.shard.applied_clock().unwrap_or(self.turn.now)
    }

    /// How a command treats keys past their time, and at which instant expiry stands still, if it
    /// does.
    pub(crate) fn expiry(&self) -> (Overdue, Option<UnixMillis>) {
        if self.is_following() {
            return (Overdue::Hidden, None);
        }
        let has_master = self.master().is_some();
        let is_paused = self.pause.paused().is_some();
        let overdue = match has_master {
            true if self.process.settings.replica_read_only => Overdue::Hidden,
            _ if has_master || is_paused || !self.shard.is_open() => Overdue::Left,
            // Each deletion would have it note one more value.
            _ if self.is_snapshot_behind() => Overdue::Left,
            _ => return (Overdue::Deleted, None),
        };
        (overdue, self.shard.recorded_clock())
    }

    /// The context of work that no client asked for.
    pub(crate) fn background(&self, database: DatabaseId) -> Context {
        let (overdue, stands_at) = self.expiry();
        Context { overdue, stands_at, ..Context::background(self.turn.now, database) }
    }
}

impl Core {
    /// Appends a record for the clock in it, if the time of a key has come since the newest one and
    /// no deletion says so. Not while a failover waits for a replica to have the newest record: it
    /// might wait for ever; and not to a log that is short of room.
    pub(crate) fn tell_time(&mut self) {
        let (_, Some(recorded)) = self.expiry() else { return };
        let is_wanted = self.leadership.has_served
            && self.leadership.roles.leads()
            && !self.pause.is_failing_over;
        // Who is told LOADING is shown nothing.
        let is_wanted = is_wanted && !self.persistence.is_loading && !self.shard.has_gathered();
        if is_wanted
            && may_renew(&self.shard, Purpose::Clock)
            && self.shard.engine.has_due_since(recorded, self.turn.now)
        {
            self.renew();
        }
    }

    /// Deletes keys whose time has come.
    pub(crate) fn expire(&mut self) {
        let is_open = self.shard.gate() == Gate::Open;
        // An end that waits for what is under way must come.
        let is_ending = self.stopping.is_some();
        let is_paused = self.pause.paused().is_some();
        let stands_still = is_paused || self.is_replica() || is_ending;
        if !self.process.is_active_expiry_on
            || stands_still
            || self.persistence.is_loading
            || !is_open
            || self.is_snapshot_behind()
        {
            return;
        }
        if !self.shard.engine.has_due(self.turn.now) {
            return;
        }
        let began = self.process.options.clock.monotonic();
        self.shard.unit.clear();
        let keys_max = self.process.options.limits.expired_keys_max;
        let unit = &mut self.shard.unit;
        self.shard.engine.expire_due(self.turn.now, keys_max, unit, &mut self.interest);
        if self.shard.unit.changes > 0 {
            let observed = self.settle_unit();
            self.spread(observed, None);
        }
        let nanos = self.process.options.clock.monotonic().since(began);
        self.process.statistics.expire_nanos += nanos;
        self.note_latency("expire-cycle", nanos / 1_000_000);
    }
}
