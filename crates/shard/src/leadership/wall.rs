//! Which clock a process takes for the shard's when it begins to lead, and whether it may lead with
//! it. Asked before and after it stands.
//!
//! It goes on with the clock of the primary that it heard; with its own wall clock if it heard
//! none, or because the operator says so.

use super::{CLOCK_OFFSET_MILLIS_MAX, Leadership};
use crate::clock::wall::{self, Doubt};
use crate::shard::Shard;

/// A process's judgement of its wall clock.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Wall {
    /// Why the process does not lead.
    pub(super) doubt: Option<Doubt>,
    /// It is too far from the shard's clock.
    pub(super) is_off: bool,
    /// The shard's clock was set, as `shard-clock wall` asks.
    is_set: bool,
}

impl Wall {
    /// As it is known in the next life.
    pub(super) fn in_next_life(self) -> Self {
        Self { doubt: None, is_off: false, ..self }
    }
}

impl Leadership {
    /// Looks whether the wall clock may become the shard's, while it would.
    pub(super) fn judge_wall(&mut self, shard: &Shard) {
        if !self.policy.wall_is_right {
            self.wall.is_set = false;
        }
        let doubt = self.doubt(shard);
        match (&self.wall.doubt, &doubt) {
            (None, Some(doubt)) => tracing::error!("does not lead the shard: {doubt}"),
            (Some(_), None) => tracing::info!("this machine's clock is no reason any more"),
            _ => {}
        }
        self.wall.doubt = doubt;
    }

    fn doubt(&self, shard: &Shard) -> Option<Doubt> {
        let takes_wall = self.heard_clock.is_none() || self.takes_wall(shard);
        if !takes_wall || !self.roles.follows() || !self.roles.is_current() {
            return None;
        }
        let (recorded, wall) = (shard.applied_clock()?, self.clock.unix_millis());
        let ahead_max = self.policy.clock_ahead_seconds_max;
        wall::doubt(recorded, wall, ahead_max, self.takes_wall(shard))
    }

    /// Whether the operator says that the wall clock is right, whatever the log says.
    fn takes_wall(&self, shard: &Shard) -> bool {
        self.policy.wall_is_right && !self.wall.is_set && self.is_shards_clock_wrong(shard)
    }

    /// Whether there is anything to set: the directive may stay in the file of every member, and a
    /// shard's clock must not go back at each failover by what two machines differ.
    fn is_shards_clock_wrong(&self, shard: &Shard) -> bool {
        let Some(recorded) = shard.applied_clock() else { return false };
        let wall = self.clock.unix_millis();
        recorded.0.abs_diff(wall.0) > CLOCK_OFFSET_MILLIS_MAX
    }

    /// Sets the clock as it will be if this process leads now; whether that takes it back to before
    /// the newest record.
    pub(super) fn take_over_clock(&mut self, shard: &Shard) -> bool {
        let floor = shard.applied_clock().unwrap_or(self.now);
        let (wall, now) = (self.clock.unix_micros(), self.moment.monotonic);
        if self.takes_wall(shard) {
            self.now = self.shard_clock.set_to_wall(wall, now);
            return self.now < floor;
        }
        self.now = self.shard_clock.take_over(self.heard_clock, floor, wall, now);
        false
    }

    /// Says what became of the clock, once this process leads.
    pub(super) fn note_clock(&mut self, shard: &Shard) {
        let ahead_ms = self.shard_clock.wall_ahead_millis();
        if self.takes_wall(shard) {
            self.wall.is_set = true;
            let now = wall::utc(self.now);
            tracing::warn!(now, "the shard's clock was set to this machine's, once: 'shard-clock'");
        } else if ahead_ms < 0 && ahead_ms.unsigned_abs() > CLOCK_OFFSET_MILLIS_MAX {
            tracing::warn!(
                ahead_ms,
                shards = wall::utc(self.now),
                "the shard's clock is ahead of this machine's, and runs a quarter slower until \
                 both are the same. If this machine's is right, 'shard-clock wall' sets it back \
                 when a server next leads"
            );
        }
    }
}
