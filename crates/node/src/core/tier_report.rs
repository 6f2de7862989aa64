//! What is known of the tier, for INFO and the metrics.

use crate::core::Core;
use crate::session::{Blocked, Session, Why};
use base::time::MILLISECOND;
use engine::cold::ColdStatistics;
use shard::tiering::{Tiering, TieringStatistics};
use tier::Figures;

/// The tier at one instant. What its counters count began with the tier, and so in this life of the
/// process.
pub(crate) struct TierReport {
    pub is_open: bool,
    /// The kernel's io_uring reads what is short.
    pub has_ring: bool,
    /// `tier-max`, of a tier that is open.
    pub max_bytes: u64,
    /// Keys whose value is in memory, and keys whose value is on the tier.
    pub items_memory: u64,
    pub items_ssd: u64,
    /// As INFO's `used_memory`, but for what clients occupy.
    pub memory_bytes: u64,
    /// What the tier holds.
    pub figures: Figures,
    /// What was read and written.
    pub file: TieringStatistics,
    /// What happened to values.
    pub values: ColdStatistics,
    pub waiting_clients: u64,
    /// How long half of the requests that had to wait for values waited at most, and 99 in a
    /// hundred of them. It is the process's, and begins anew with CONFIG RESETSTAT.
    pub fetch_p50_micros: u64,
    pub fetch_p99_micros: u64,
    /// How long one request or more waited: for values, for room in memory, for a snapshot. They
    /// begin anew likewise.
    pub values_waited_micros: u64,
    pub room_waited_micros: u64,
    pub snapshot_waited_micros: u64,
    /// How long requests that need memory have been waiting for the tier to take values in.
    pub behind_millis: u64,
}

impl Core {
    /// What is known of the tier now.
    pub(crate) fn tier_report(&self) -> TierReport {
        let keyspace = &self.shard.engine.keyspace;
        let items_ssd = keyspace.cold_keys();
        let tiering = self.shard.tiering.as_ref();
        let waits = |session: &&Session| {
            matches!(session.blocked, Some(Blocked::Parked { why: Why::Values, .. }))
        };
        let behind = tiering.and_then(Tiering::behind_since);
        let settings = &self.process.settings.tier;
        let waits_of = &self.process.tier_waits;
        let micros = |percent| waits_of.fetches.percentile(percent).div_ceil(1000);
        TierReport {
            is_open: tiering.is_some(),
            has_ring: tiering.is_some_and(Tiering::has_ring),
            max_bytes: tiering.map_or(0, |_| settings.bytes_max),
            items_memory: (keyspace.len() - items_ssd) as u64,
            items_ssd: items_ssd as u64,
            memory_bytes: keyspace.used_bytes() as u64,
            figures: keyspace.cold().map(|cold| cold.tier.figures()).unwrap_or_default(),
            file: tiering.map(|tiering| tiering.statistics).unwrap_or_default(),
            values: keyspace.cold().map(|cold| cold.statistics.clone()).unwrap_or_default(),
            waiting_clients: self.sessions().filter(waits).count() as u64,
            fetch_p50_micros: micros(50.0),
            fetch_p99_micros: micros(99.0),
            values_waited_micros: waits_of.values_nanos / 1000,
            room_waited_micros: waits_of.room_nanos / 1000,
            snapshot_waited_micros: waits_of.snapshot_nanos / 1000,
            behind_millis: behind.map_or(0, |since| self.turn.monotonic.since(since) / MILLISECOND),
        }
    }
}

impl TierReport {
    /// Reads of values, whoever waited for them. Those of cleaning are not among them.
    pub fn items_read(&self) -> u64 {
        self.file.reads + self.values.blocking_reads.get()
    }

    pub fn bytes_read(&self) -> u64 {
        self.file.read_bytes + self.values.blocking_read_bytes.get()
    }

    /// Reads that failed or brought something else, by whomever. Those of cleaning are among them.
    pub fn failed_reads(&self) -> u64 {
        self.file.failed_reads + self.values.failed_blocking_reads.get()
    }

    /// Values that were written, those included that cleaning moved.
    pub fn items_written(&self) -> u64 {
        self.figures.put_records + self.figures.survivor_records
    }
}
