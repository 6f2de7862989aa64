//! When memory that is lost between blocks is won back: as `activedefrag` says, and whenever there
//! is a tier, because values that go leave holes of their size.

use super::{Core, Process};
use base::time::MonotonicNanos;
use config::settings::defrag::DefragSettings;
use shard::Shard;
use shard::compaction::{Compaction, CompactionSettings};
use std::sync::Arc;

/// With a tier, so much may be lost of each hundred bytes in use, and from the second number on as
/// much time is spent as may be. Who sets `maxmemory` for a machine counts on a quarter at most.
const TIER_LOST_PERCENT_MIN: u64 = 4;
const TIER_LOST_PERCENT_MAX: u64 = 12;

/// With a tier, of the time, in percent, at least.
const TIER_TIME_PERCENT_MIN: u64 = 5;

/// With a tier, what may be lost whatever is in use: this part of `maxmemory`, and in bytes.
const TIER_LOST_SHARE: u64 = 32;
const TIER_LOST_BYTES_MIN: u64 = 2 << 20;

/// With a tier, how long the allocator keeps freed pages, in milliseconds: values that leave free
/// some hundred megabytes a second, of which a second's worth would be a good part of the memory.
const TIER_KEPT_MILLIS: u64 = 100;

impl Process {
    /// What wins memory back, for a shard that is loaded now.
    pub(crate) fn compaction(&self) -> Compaction {
        let clock = Arc::clone(&self.options.clock);
        Compaction::new(self.options.machine.heap(), clock, self.compaction_settings())
    }

    fn compaction_settings(&self) -> CompactionSettings {
        let defrag = DefragSettings::of(&self.config);
        let has_tier = self.settings.tier.path.is_some();
        let share = self.engine_settings().maxmemory / TIER_LOST_SHARE;
        let with_tier = |of_tier: u64, of_defrag: u64| match (has_tier, defrag.is_on) {
            (true, true) => of_tier.min(of_defrag),
            (true, false) => of_tier,
            (false, _) => of_defrag,
        };
        CompactionSettings {
            is_on: defrag.is_on || has_tier,
            lost_bytes_min: with_tier(share.max(TIER_LOST_BYTES_MIN), defrag.ignore_bytes),
            lost_percent_min: with_tier(TIER_LOST_PERCENT_MIN, defrag.threshold_lower),
            lost_percent_max: with_tier(TIER_LOST_PERCENT_MAX, defrag.threshold_upper),
            time_percent_min: match has_tier {
                true => defrag.cycle_min.max(TIER_TIME_PERCENT_MIN),
                false => defrag.cycle_min,
            },
            time_percent_max: defrag.cycle_max,
            elements_max: defrag.max_scan_fields as usize,
            kept_millis: has_tier.then_some(TIER_KEPT_MILLIS),
        }
    }
}

impl Core {
    /// Puts the settings in force.
    pub(crate) fn set_compaction(&mut self) {
        let settings = self.process.compaction_settings();
        if let Some(compaction) = &mut self.shard.compaction {
            compaction.settings = settings;
        }
    }

    /// Goes on with winning memory back. The loop does not come here amid a script.
    pub(crate) fn compact(&mut self) {
        let Shard { engine, compaction, .. } = &mut self.shard;
        if let Some(compaction) = compaction {
            compaction.advance(&mut engine.keyspace);
        }
    }

    /// In how many nanoseconds there is more of it to do, if there is.
    pub(crate) fn compaction_wait_nanos(&self, now: MonotonicNanos) -> Option<u64> {
        let Shard { engine, compaction, .. } = &self.shard;
        compaction.as_ref()?.wait_nanos(&engine.keyspace, now)
    }
}
