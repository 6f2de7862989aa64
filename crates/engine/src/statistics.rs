//! Counters that reads move too, so they are cells.

use crate::effect::DeleteReason;
use std::cell::Cell;

/// The counters of the keyspace that INFO stats shows.
#[derive(Default, Debug)]
pub struct Statistics {
    pub keyspace_hits: Cell<u64>,
    pub keyspace_misses: Cell<u64>,
    pub expired_keys: Cell<u64>,
    /// Fields of hashes that expired.
    pub expired_fields: Cell<u64>,
    pub evicted_keys: Cell<u64>,
    /// Big values that another thread frees because they were deleted. Those that left memory alone
    /// are not counted: their keys are there.
    pub freed_apart: Cell<u64>,
    /// Changes since the last snapshot, as `rdb_changes_since_last_save` counts them.
    pub dirty: Cell<u64>,
}

fn bump(counter: &Cell<u64>) {
    counter.set(counter.get() + 1);
}

impl Statistics {
    pub fn hit(&self) {
        bump(&self.keyspace_hits);
    }

    pub fn miss(&self) {
        bump(&self.keyspace_misses);
    }

    /// Counts a key that expired or was evicted.
    pub fn dropped(&self, reason: DeleteReason) {
        match reason {
            DeleteReason::Expired => bump(&self.expired_keys),
            DeleteReason::Evicted => bump(&self.evicted_keys),
            DeleteReason::Command => {}
        }
    }

    /// Counts fields of a hash that expired.
    pub fn dropped_fields(&self, count: usize) {
        self.expired_fields.set(self.expired_fields.get() + count as u64);
    }

    /// Counts a value, or a database, that another thread frees.
    pub fn left_to_free(&self) {
        bump(&self.freed_apart);
    }

    /// CONFIG RESETSTAT.
    pub fn reset(&self) {
        for counter in [
            &self.freed_apart,
            &self.keyspace_hits,
            &self.keyspace_misses,
            &self.expired_keys,
            &self.expired_fields,
            &self.evicted_keys,
        ] {
            counter.set(0);
        }
    }
}
