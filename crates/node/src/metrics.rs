//! Figures for Prometheus, as the loop publishes them and another thread reads them.
//!
//! The loop stores numbers at each tick, ten times a second; whoever scrapes renders them. So a
//! scrape never waits for the loop, nor the loop for a scrape. Counters begin at the start of the
//! process, or at CONFIG RESETSTAT where INFO's do.

use crate::core::Core;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One figure: its name, what it is, and where the number comes from.
struct Figure {
    name: &'static str,
    kind: &'static str,
    help: &'static str,
    read: fn(&Core) -> u64,
}

const fn counter(name: &'static str, help: &'static str, read: fn(&Core) -> u64) -> Figure {
    Figure { name, kind: "counter", help, read }
}

const fn gauge(name: &'static str, help: &'static str, read: fn(&Core) -> u64) -> Figure {
    Figure { name, kind: "gauge", help, read }
}

/// All figures, in the order in which they are shown.
const FIGURES: [Figure; 21] = [
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
        s.shard.engine.keyspace.used_bytes() as u64
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

/// The numbers as they were at the last tick.
#[derive(Default, Debug)]
pub struct Metrics {
    values: [AtomicU64; FIGURES.len()],
}

impl Metrics {
    /// The figures in Prometheus's text format (its documentation, "Exposition formats").
    pub fn render(&self) -> String {
        let mut text = String::new();
        for (Figure { name, kind, help, .. }, value) in FIGURES.iter().zip(&self.values) {
            let value = value.load(Relaxed);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
        }
        text
    }

    /// Shows what is so now.
    pub(crate) fn publish(&self, core: &Core) {
        for (figure, value) in FIGURES.iter().zip(&self.values) {
            value.store((figure.read)(core), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_figure_has_a_name_of_its_own_that_says_its_kind() {
        let names: BTreeSet<&str> = FIGURES.iter().map(|figure| figure.name).collect();
        assert_eq!(names.len(), FIGURES.len());
        for figure in &FIGURES {
            assert!(figure.name.starts_with("kiln_"), "{}", figure.name);
            assert_eq!(
                figure.name.ends_with("_total"),
                figure.kind == "counter",
                "{}",
                figure.name
            );
        }
    }

    #[test]
    fn figures_are_rendered_with_help_and_type() {
        let metrics = Metrics::default();
        metrics.values[0].store(7, Relaxed);
        let text = metrics.render();
        let expected = "# HELP kiln_clients_connected Connected clients.\n\
                        # TYPE kiln_clients_connected gauge\nkiln_clients_connected 7\n";
        assert!(text.starts_with(expected), "{text}");
        assert_eq!(text.lines().count(), 3 * FIGURES.len());
    }
}
