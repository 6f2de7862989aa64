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
    /// Big values, and all of databases, that another thread frees because they were deleted. Those
    /// that left memory alone are not counted: their keys are there.
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

    /// Counts values that another thread frees, as many as there were keys of a database.
    pub fn left_to_free(&self, count: usize) {
        self.freed_apart.set(self.freed_apart.get() + count as u64);
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

#[cfg(test)]
mod tests {
    use crate::testing::Bench;

    #[test]
    fn what_another_thread_frees_is_counted_and_what_a_start_frees_is_not() {
        let mut bench = Bench::new();
        let freed = |bench: &Bench| {
            let twin = bench.twin.statistics.freed_apart.get();
            (bench.engine.keyspace.statistics.freed_apart.get(), twin)
        };
        bench.run(&format!("RPUSH long{}", " v".repeat(100)));
        bench.check("RPUSH short v", ":1");
        bench.check("DEL long short", ":2");
        assert_eq!(freed(&bench), (1, 0));
        bench.check("MSET a 1 b 2", "+OK");
        bench.check("FLUSHALL", "+OK");
        assert_eq!(freed(&bench), (3, 0), "databases without keys count nothing");
    }
}
