//! The figures for Prometheus, and where their numbers come from. Counters begin at the start of
//! the process, or at CONFIG RESETSTAT where INFO's do; those of the tier with each tier.

mod tier;

use crate::core::Core;
use crate::core::tier_report::TierReport;
use crate::session::Session;
use shard::snapshots::{Proven, Sighting, Snapshots};
use statistics::Metrics;
use statistics::metrics::{Figure, Kind};

/// A figure, and where its number comes from.
type Read<Source> = (Figure, fn(&Source) -> u64);

const fn counter<Source>(
    name: &'static str,
    help: &'static str,
    read: fn(&Source) -> u64,
) -> Read<Source> {
    (Figure { name, kind: Kind::Counter, help }, read)
}

const fn gauge<Source>(
    name: &'static str,
    help: &'static str,
    read: fn(&Source) -> u64,
) -> Read<Source> {
    (Figure { name, kind: Kind::Gauge, help }, read)
}

/// All figures but those of the tier, which follow them, in the order in which they are shown.
const FIGURES: [Read<Core>; 29] = [
    gauge("kiln_clients_connected", "Connected clients.", |s| s.client_count() as u64),
    counter("kiln_connections_received_total", "Connections accepted or turned away.", |s| {
        s.process.statistics.connections_received
    }),
    counter("kiln_connections_rejected_total", "Connections turned away.", |s| {
        s.process.statistics.connections_rejected
    }),
    counter("kiln_commands_processed_total", "Commands executed.", |s| {
        s.process.statistics.commands_processed
    }),
    counter("kiln_error_replies_total", "Error replies.", |s| s.process.statistics.error_replies),
    counter("kiln_input_bytes_total", "Bytes received from clients.", |s| {
        s.process.statistics.input_bytes
    }),
    counter("kiln_output_bytes_total", "Bytes sent to clients.", |s| {
        s.process.statistics.output_bytes
    }),
    gauge("kiln_replies_held_bytes", "Reply bytes that wait for the log.", |s| {
        s.clients.held_bytes as u64
    }),
    gauge("kiln_keys", "Keys in all databases.", |s| s.shard.engine.keyspace.len() as u64),
    gauge("kiln_memory_used_bytes", "Memory in use, as INFO's used_memory.", |s| {
        let sessions: usize = s.sessions().map(Session::memory_bytes).sum();
        (s.shard.engine.keyspace.used_bytes() + sessions) as u64
    }),
    gauge("kiln_memory_pmem_bytes", "Bytes in slow memory, as INFO's used_memory_pmem.", |s| {
        let memory = s.process.options.machine.slow_memory();
        memory.map_or(0, |memory| memory.division().pmem_bytes)
    }),
    gauge("kiln_memory_limit_bytes", "maxmemory; 0 is no limit.", |s| {
        s.shard.engine.keyspace.settings.maxmemory
    }),
    counter("kiln_log_records_appended_total", "Records handed to the log.", |s| {
        s.shard.records_appended
    }),
    counter("kiln_log_bytes_appended_total", "Bytes handed to the log.", |s| {
        s.shard.bytes_appended
    }),
    gauge("kiln_log_sequence_appended", "The last record handed to the log.", |s| {
        s.shard.appended().sequence.0
    }),
    gauge("kiln_log_sequence_durable", "The last record on stable storage.", |s| {
        s.shard.durable().sequence.0
    }),
    gauge("kiln_log_records_since_snapshot", "Records that a restart would replay.", |s| {
        s.shard.grown.records
    }),
    gauge("kiln_log_bytes_since_snapshot", "Log that a restart would replay.", |s| {
        s.shard.grown.bytes
    }),
    gauge("kiln_snapshot_last_record", "Record of the newest snapshot, whoever took it.", |s| {
        newest(s).map_or(0, |it| it.sequence.0)
    }),
    gauge("kiln_snapshot_last_began_seconds", "Unix time of the newest snapshot.", |s| {
        newest(s).map_or(0, |it| it.began.0.div_euclid(1000).unsigned_abs())
    }),
    gauge("kiln_snapshot_proven_record", "Record of the newest proven snapshot.", |s| {
        proven(s).map_or(0, |it| it.snapshot.sequence.0)
    }),
    gauge("kiln_snapshot_proven_began_seconds", "Unix time of the newest proven snapshot.", |s| {
        proven(s).map_or(0, |it| it.snapshot.began.0.div_euclid(1000).unsigned_abs())
    }),
    gauge("kiln_snapshot_proof_seconds", "Unix time of the last proof; 0 if there is none.", |s| {
        proven(s).map_or(0, |it| it.at.0.div_euclid(1000).unsigned_abs())
    }),
    gauge("kiln_snapshot_worker_up", "1 while a worker takes the snapshots off the box.", |s| {
        let snapshots = s.snapshots.as_ref();
        u64::from(snapshots.is_some_and(|it| it.worker(s.turn.monotonic).is_some()))
    }),
    gauge("kiln_log_archived_record", "Last record of the log that is archived.", |s| {
        s.saving().archived.map_or(0, |it| it.0)
    }),
    counter("kiln_snapshots_published_total", "Snapshots published.", |s| s.saving().published),
    gauge("kiln_snapshot_running", "1 while a snapshot is written.", |s| {
        u64::from(s.saving().is_saving)
    }),
    gauge("kiln_snapshot_last_ok", "0 if the last snapshot failed.", |s| {
        u64::from(s.saving().is_last_ok)
    }),
    gauge("kiln_loading", "1 while data is loaded at the start.", |s| {
        u64::from(s.persistence.is_loading)
    }),
];

fn newest(core: &Core) -> Option<Sighting> {
    core.snapshots.as_ref().and_then(Snapshots::newest)
}

fn proven(core: &Core) -> Option<Proven> {
    core.snapshots.as_ref().and_then(Snapshots::proven)
}

/// All figures, in the order in which they are shown.
fn figures() -> impl Iterator<Item = Figure> {
    let tier = tier::FIGURES.iter().map(|(figure, _)| *figure);
    FIGURES.iter().map(|(figure, _)| *figure).chain(tier)
}

/// The figures of a process that has counted nothing yet.
pub(crate) fn metrics() -> Metrics {
    Metrics::new(figures())
}

/// Shows what is so now.
pub(crate) fn publish(metrics: &Metrics, core: &Core) {
    let report: TierReport = core.tier_report();
    let tier = tier::FIGURES.iter().map(|(_, read)| read(&report));
    metrics.publish(FIGURES.iter().map(|(_, read)| read(core)).chain(tier));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_of_its_own_that_says_its_kind() {
        let names: BTreeSet<&str> = figures().map(|figure| figure.name).collect();
        assert_eq!(names.len(), figures().count());
        for Figure { name, kind, .. } in figures() {
            assert!(name.starts_with("kiln_"), "{name}");
            assert_eq!(name.ends_with("_total"), kind == Kind::Counter, "{name}");
        }
    }

    #[test]
    fn every_figure_is_shown() {
        assert_eq!(metrics().render().lines().count(), 3 * figures().count());
    }
}
