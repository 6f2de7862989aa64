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
use crate::server::Server;
use base::{DatabaseId, UnixMillis};
use engine::unit::{Context, Overdue};
use shard::leadership::may_renew;
use shard::role::renewal::Purpose;
use txlog::Gate;

/// Keys deleted per turn because their time has come.
const EXPIRED_KEYS_MAX: usize = 256;

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

impl Server {
    /// Appends a record for the clock in it, if the time of a key has come since the newest one and
    /// no deletion says so. Not while a failover waits for a replica to have the newest record: it
    /// might wait for ever; and not to a log that is short of room.
    pub(crate) fn tell_time(&mut self) {
        let (_, Some(recorded)) = self.core.expiry() else { return };
        let is_wanted = self.core.leadership.has_served
            && self.core.leadership.roles.leads()
            && !self.core.pause.is_failing_over;
        // Who is told LOADING is shown nothing.
        let is_wanted =
            is_wanted && !self.core.persistence.is_loading && !self.core.shard.has_gathered();
        if is_wanted
            && may_renew(&self.core.shard, Purpose::Clock)
            && self.core.shard.engine.has_due_since(recorded, self.core.turn.now)
        {
            self.renew();
        }
    }

    /// Deletes keys whose time has come.
    pub(crate) fn expire(&mut self) {
        let is_open = self.core.shard.gate() == Gate::Open;
        // An end that waits for what is under way must come.
        let is_ending = self.core.stopping.is_some();
        let is_paused = self.core.pause.paused().is_some();
        let stands_still = is_paused || self.core.is_replica() || is_ending;
        if !self.core.process.is_active_expiry_on
            || stands_still
            || self.core.persistence.is_loading
            || !is_open
        {
            return;
        }
        if !self.core.shard.engine.has_due(self.core.turn.now) {
            return;
        }
        let began = self.core.process.options.clock.monotonic();
        self.core.shard.unit.clear();
        let unit = &mut self.core.shard.unit;
        self.core.shard.engine.expire_due(
            self.core.turn.now,
            EXPIRED_KEYS_MAX,
            unit,
            &mut self.core.interest,
        );
        if self.core.shard.unit.changes > 0 {
            let observed = self.core.settle_unit();
            self.core.spread(observed, None);
            self.wake_ready();
        }
        let nanos = self.core.process.options.clock.monotonic().since(began);
        self.core.process.statistics.expire_nanos += nanos;
        self.core.note_latency("expire-cycle", nanos / 1_000_000);
    }
}
