//! INFO clients, stats, replication, keyspace.

use super::Text;
use crate::command::replicaof::describe_link;
use crate::server::Server;
use crate::session::Blocked;
use base::ConnectionId;
use base::time::MILLISECOND;
use engine::subscribers::Sort;
use peers::failover::Failover;
use shard::compaction::Compaction;

pub(super) fn clients(server: &Server, _: ConnectionId, text: &mut Text) {
    let blocked = server
        .core
        .sessions()
        .filter(|session| {
            let blocked = session.blocked.as_ref();
            blocked.is_some_and(|blocked| !matches!(blocked, Blocked::Snapshot))
        })
        .count();
    let replicas = server.feed.attached().count();
    text.line("connected_clients", server.core.client_count() - replicas);
    text.line("cluster_connections", 0);
    text.line("maxclients", server.core.process.clients_max());
    text.line("client_recent_max_input_buffer", server.core.process.statistics.input_bytes_max);
    text.line("client_recent_max_output_buffer", server.core.process.statistics.output_bytes_max);
    text.line("blocked_clients", blocked);
    text.line("tracking_clients", server.core.interest.caches.clients_len());
    text.line("clients_in_timeout_table", server.core.clients.deadlines.len());
}

pub(super) fn stats(server: &Server, _: ConnectionId, text: &mut Text) {
    let counts = &server.core.process.statistics;
    let keyspace = &server.core.shard.engine.keyspace.statistics;
    let kilobytes = |rate: f64| format!("{:.2}", rate / 1024.0);
    text.line("total_connections_received", counts.connections_received);
    text.line("total_commands_processed", counts.commands_processed);
    text.line("instantaneous_ops_per_sec", counts.operations_rate.per_second().round() as u64);
    text.line("total_net_input_bytes", counts.input_bytes);
    text.line("total_net_output_bytes", counts.output_bytes);
    text.line("total_net_repl_input_bytes", counts.link_input_bytes);
    text.line("total_net_repl_output_bytes", 0);
    text.line("instantaneous_input_kbps", kilobytes(counts.input_rate.per_second()));
    text.line("instantaneous_output_kbps", kilobytes(counts.output_rate.per_second()));
    text.line("instantaneous_input_repl_kbps", "0.00");
    text.line("instantaneous_output_repl_kbps", "0.00");
    text.line("rejected_connections", counts.connections_rejected);
    text.line("sync_full", server.feed.syncs_full);
    text.line("sync_partial_ok", server.feed.syncs_partial);
    text.line("sync_partial_err", server.feed.syncs_partial_refused);
    text.line("expired_keys", keyspace.expired_keys.get());
    text.line("expired_subkeys", keyspace.expired_fields.get());
    text.line("expired_stale_perc", "0.00");
    text.line("expired_time_cap_reached_count", 0);
    text.line("expire_cycle_cpu_milliseconds", counts.expire_nanos / 1_000_000);
    text.line("evicted_keys", keyspace.evicted_keys.get());
    text.line("evicted_clients", counts.evicted_clients);
    text.line("total_eviction_exceeded_time", 0);
    text.line("current_eviction_exceeded_time", 0);
    text.line("keyspace_hits", keyspace.keyspace_hits.get());
    text.line("keyspace_misses", keyspace.keyspace_misses.get());
    let subscribers = &server.core.interest.subscribers;
    text.line("pubsub_channels", subscribers.names_len(Sort::Channel));
    text.line("pubsub_patterns", subscribers.names_len(Sort::Pattern));
    text.line("pubsubshard_channels", subscribers.names_len(Sort::Shard));
    text.line("latest_fork_usec", 0);
    text.line("total_forks", 0);
    text.line("migrate_cached_sockets", server.migrations.idle_connections());
    text.line("slave_expires_tracked_keys", 0);
    defragmentation(server, text);
    let caches = &server.core.interest.caches;
    text.line("tracking_total_keys", caches.keys_len());
    text.line("tracking_total_items", caches.items_len());
    text.line("tracking_total_prefixes", caches.prefixes_len());
    text.line("unexpected_error_replies", 0);
    text.line("total_error_replies", counts.error_replies);
    text.line("dump_payload_sanitizations", 0);
    text.line("total_reads_processed", counts.reads);
    text.line("total_writes_processed", counts.writes);
    for field in [
        "io_threaded_reads_processed",
        "io_threaded_writes_processed",
        "reply_buffer_shrinks",
        "reply_buffer_expands",
    ] {
        text.line(field, 0);
    }
    text.line("eventloop_cycles", counts.turns.count);
    text.line("eventloop_duration_sum", counts.turns.nanos / 1000);
    text.line("kiln_eventloop_duration_max", counts.turns.nanos_max / 1000);
    text.line("kiln_eventloop_cpu_max", counts.turns.cpu_nanos_max / 1000);
    text.line("kiln_client_output_limit_disconnections", counts.output_limit_disconnections);
    text.line("kiln_client_input_limit_disconnections", counts.input_limit_disconnections);
}

pub(super) fn replication(server: &Server, _: ConnectionId, text: &mut Text) {
    text.line("role", if server.core.is_replica() { "slave" } else { "master" });
    describe_link(server, text);
    let log = server.core.shard.appended();
    text.line("kiln_log_epoch", server.core.shard.chain().epoch.0);
    text.line("kiln_log_sequence", log.sequence);
    text.line("kiln_wall_clock_ahead_ms", server.core.leadership.wall_ahead_millis());
    text.line("kiln_replicaof", server.core.shard.engine.keyspace.replica_of());
    text.line("kiln_clock_gaps", server.core.process.statistics.clock_gaps);
    text.line("kiln_data_is_partial", u8::from(server.core.shard.engine.keyspace.is_partial()));
    let members = server.members.reports.iter().len();
    text.line("connected_slaves", server.feed.attached().count() + members);
    if server.core.process.settings.min_replicas_to_write > 0
        && server.core.process.settings.min_replicas_max_lag > 0
    {
        text.line("min_slaves_good_slaves", server.near_replicas());
    }
    for (index, (client, replica)) in server.feed.attached().enumerate() {
        let (address, port) = replica.place(&server.core.clients.at(client).who.peer);
        let (state, offset) = (replica.state(), replica.acknowledged);
        let lag = replica.lag_seconds(server.core.turn.monotonic).unwrap_or(0);
        let line = format!("ip={address},port={port},state={state},offset={offset},lag={lag}");
        text.line(&format!("slave{index}"), line);
    }
    describe_members(server, text);
    text.line("master_failover_state", Failover::state(server.members.failover.as_ref()));
    text.line("master_replid", server.feed.replication_id());
    text.line("master_replid2", "0".repeat(40));
    text.line("master_repl_offset", server.offset_shown());
    text.line("second_repl_offset", -1);
    let backlog = server.feed.backlog();
    let (first, bytes) = backlog.unwrap_or_default();
    text.line("repl_backlog_active", i32::from(backlog.is_some()));
    text.line("repl_backlog_size", server.core.process.settings.repl_backlog_size);
    text.line("repl_backlog_first_byte_offset", first);
    text.line("repl_backlog_histlen", bytes);
}

/// Replicas of the log behind those of Redis. Their offsets are records.
fn describe_members(server: &Server, text: &mut Text) {
    let before = server.feed.attached().count();
    for (index, (_, reported)) in server.members.reports.iter().enumerate() {
        let report = &reported.report;
        let lag = server.core.leadership.lag_of(report.applied);
        let silence = server.core.turn.monotonic.seconds_since(reported.at);
        let line = format!(
            "ip={},port={},state=online,offset={},lag={silence},lag_records={},lag_bytes={},\
             lag_ms={}",
            report.member.host,
            report.member.port,
            report.applied,
            lag.records,
            lag.bytes,
            lag.millis
        );
        text.line(&format!("slave{}", before + index), line);
    }
}

pub(super) fn keyspace(server: &Server, _: ConnectionId, text: &mut Text) {
    let now = server.core.shard_time();
    for (id, database) in server.core.shard.engine.keyspace.databases() {
        if database.is_empty() {
            continue;
        }
        let expires = database.expiries().len();
        let average = database.expiries().average_ttl_millis(now);
        let mut line = format!("keys={},expires={expires},avg_ttl={average}", database.len());
        let hashes = database.field_expiries().len();
        if hashes > 0 {
            // Hashes with field expiries, under Redis's name since 7.4.
            line.push_str(&format!(",subexpiry={hashes}"));
        }
        text.line(&format!("db{}", id.0), line);
    }
}

/// Memory that is lost between blocks, and won back. Times in milliseconds.
fn defragmentation(server: &Server, text: &mut Text) {
    let compaction = server.core.shard.compaction.as_ref();
    let counts = compaction.map(|it| it.statistics).unwrap_or_default();
    let now = server.core.turn.monotonic;
    let running = compaction.and_then(Compaction::running_since).map_or(0, |it| now.since(it));
    text.line("active_defrag_hits", counts.moved);
    text.line("active_defrag_misses", counts.stayed);
    text.line("active_defrag_key_hits", counts.keys_moved);
    text.line("active_defrag_key_misses", counts.keys_stayed);
    text.line("total_active_defrag_time", (counts.nanos + running) / MILLISECOND);
    text.line("current_active_defrag_time", running / MILLISECOND);
}
