//! REPLICAOF, ROLE, and what INFO says of the link to a master (Redis documentation, REPLICAOF,
//! ROLE, INFO).

use super::info::Text;
use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::master::{Master, ReplicaOf};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;
use peers::report::Report;
use peers::reports::Reported;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("ROLE", role)
        .categories(&["admin", "dangerous"])
        .doc("Returns the replication role.")
        .group(Group::Server)
        .since("2.8.12")
        .cost("O(1)")
        .fast(),
    node("REPLICAOF host port", replica_of)
        .admin()
        .group(Group::Server)
        .doc("Configures a server as replica of another, or promotes it to a master.")
        .since("5.0.0")
        .cost("O(1)")
        .without(Flags::LOADING)
        // The log says whom the shard follows.
        .with(Flags::NO_ASYNC_LOADING.union(Flags::WRITES_LOG)),
    node("SLAVEOF host port", replica_of)
        .admin()
        .group(Group::Server)
        .doc("Sets a server as a replica of another, or promotes it to being a master.")
        .cost("O(1)")
        .without(Flags::LOADING)
        // The log says whom the shard follows.
        .with(Flags::NO_ASYNC_LOADING.union(Flags::WRITES_LOG)),
];

fn replica_of(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if server.core.clients.at(client).is_master() {
        return Err(Refusal::of("ERR Command is not valid when client is a replica."));
    }
    if server.members.failover.is_some() {
        return Err(Refusal::of("ERR REPLICAOF not allowed while failing over."));
    }
    if !server.core.leadership.roles.leads() {
        return Err(crate::core::verdict::READ_ONLY);
    }
    if args.is(1, "NO") && args.is(2, "ONE") {
        if *server.core.shard.engine.keyspace.replica_of() != ReplicaOf::NoOne {
            server.link.follow_no_one(&mut server.core);
            tracing::info!(
                client = server.core.clients.at(client).who.id,
                "follows no master any more"
            );
        }
        server.core.clients.reply(client).ok();
        return Ok(());
    }
    let port = canonical_integer(args.at(2)).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or(Refusal::of("ERR Invalid master port"))?;
    let host = std::str::from_utf8(args.at(1)).ok();
    let master = host.and_then(|host| Master::new(host, port)).ok_or(Refusal::INVALID_HOST)?;
    if server.core.master().is_some_and(|present| present.is_same(&master)) {
        server.core.clients.reply(client).simple("OK Already connected to specified master");
        return Ok(());
    }
    tracing::info!(client = server.core.clients.at(client).who.id, host, port, "follows a master");
    server.unblock_everybody();
    server.feed.drop_replicas(&mut server.core);
    server.link.follow(&mut server.core, master);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn role(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.is_following() {
        describe_following(server, client);
        return Ok(());
    }
    let Some(master) = server.core.master().cloned() else {
        describe_replicas(server, client);
        return Ok(());
    };
    let reply = server.core.clients.reply(client);
    reply.array(5);
    reply.bulk("slave");
    reply.bulk(master.host());
    reply.integer(i64::from(master.port()));
    reply.bulk(server.link.state());
    let offset = server.link.offset().filter(|_| server.link.is_up());
    reply.integer(offset.map_or(-1, |offset| offset as i64));
    Ok(())
}

/// ROLE of a replica of the transaction log. Its offset is the last record that it has applied.
fn describe_following(server: &mut Server, client: ConnectionId) {
    let leader = server
        .core
        .leadership
        .roles
        .leader()
        .map(|leader| leader.member.clone())
        .unwrap_or_default();
    let hears_primary = server.core.hears_primary();
    let reply = server.core.clients.reply(client);
    reply.array(5);
    reply.bulk("slave");
    reply.bulk(&leader.host);
    reply.integer(i64::from(leader.port));
    reply.bulk(if hears_primary { "connected" } else { "connect" });
    reply.integer(server.core.shard.appended().sequence.0 as i64);
}

/// ROLE of a server that others may follow.
fn describe_replicas(server: &mut Server, client: ConnectionId) {
    let online = server.feed.attached().filter(|(_, replica)| replica.is_online());
    let online = online.map(|(client, replica)| {
        (replica.place(&server.core.clients.at(client).who.peer), replica.acknowledged)
    });
    let place = |it: &Reported| {
        let Report { member, applied, .. } = &it.report;
        ((member.host.clone(), i64::from(member.port)), applied.0)
    };
    let members = server.members.reports.iter().map(|(_, reported)| place(reported));
    let online: Vec<_> = online.chain(members).collect();
    let offset = server.offset_shown() as i64;
    let reply = server.core.clients.reply(client);
    reply.array(3);
    reply.bulk("master");
    reply.integer(offset);
    reply.array(online.len());
    for ((address, port), acknowledged) in online {
        reply.array(3);
        reply.bulk(address);
        reply.bulk(port.to_string());
        reply.bulk(acknowledged.to_string());
    }
}

/// The lines of INFO replication that a replica has behind its role.
pub(crate) fn describe_link(server: &Server, text: &mut Text) {
    if server.core.is_following() {
        describe_log(server, text);
        return;
    }
    let link = &server.link;
    let Some(master) = server.core.master().cloned() else { return };
    let seconds = |nanos: u64| nanos / 1_000_000_000;
    let silence = seconds(link.silence_nanos(server.core.turn.monotonic));
    text.line("master_host", master.host());
    text.line("master_port", master.port());
    text.line("master_link_status", if link.is_up() { "up" } else { "down" });
    text.line("master_last_io_seconds_ago", if link.is_up() { silence as i64 } else { -1 });
    text.line("master_sync_in_progress", u8::from(link.transfer().is_some()));
    text.line("slave_read_repl_offset", link.offset_received().unwrap_or(1));
    text.line("slave_repl_offset", link.offset().unwrap_or(1));
    if let Some(transfer) = link.transfer() {
        let total = transfer.data_set.total_bytes.unwrap_or(0);
        let read = transfer.data_set.received_bytes;
        let percent = read as f64 * 100.0 / total.max(1) as f64;
        text.line("master_sync_total_bytes", total);
        text.line("master_sync_read_bytes", read);
        text.line("master_sync_left_bytes", total as i64 - read as i64);
        text.line("master_sync_perc", format!("{:.2}", if total > 0 { percent } else { 0.0 }));
        text.line("master_sync_last_io_seconds_ago", silence);
    }
    if !link.is_up() {
        let since = link.down_since().map(|at| server.core.turn.monotonic.seconds_since(at) as i64);
        text.line("master_link_down_since_seconds", since.unwrap_or(-1));
    }
    text.line("slave_priority", server.core.process.settings.replica_priority);
    text.line("slave_read_only", u8::from(server.core.process.settings.replica_read_only));
    text.line("replica_announced", u8::from(server.core.process.settings.replica_announced));
    if let Some(error) = link.error() {
        text.line("kiln_link_error", error.replace(['\r', '\n'], " "));
    }
}

/// The same for a replica of the transaction log. Offsets are records.
fn describe_log(server: &Server, text: &mut Text) {
    let leader = server
        .core
        .leadership
        .roles
        .leader()
        .map(|leader| leader.member.clone())
        .unwrap_or_default();
    let silence =
        server.core.turn.monotonic.since(server.core.leadership.roles.heard()) / 1_000_000_000;
    let applied = server.core.shard.appended().sequence;
    text.line("master_host", &leader.host);
    text.line("master_port", leader.port);
    text.line("master_link_status", if server.core.hears_primary() { "up" } else { "down" });
    text.line("master_last_io_seconds_ago", silence);
    text.line("master_sync_in_progress", u8::from(!server.core.leadership.roles.is_current()));
    text.line("slave_read_repl_offset", applied);
    text.line("slave_repl_offset", applied);
    if let Some(lag) = server.members.lag() {
        text.line("kiln_lag_records", lag.records);
        text.line("kiln_lag_bytes", lag.bytes);
        text.line("kiln_lag_ms", lag.millis);
    }
    text.line("slave_priority", server.core.process.settings.replica_priority);
    text.line("slave_read_only", 1);
    text.line("replica_announced", u8::from(server.core.process.settings.replica_announced));
}
