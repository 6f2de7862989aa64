//! The replies that say who is in the shard, in the shapes of Redis 7.0.15.

use crate::command::info::Text;
use crate::core::hex_id;
use crate::server::Server;
use crate::server::nodes::{Node, Nodes};
use base::ConnectionId;
use engine::command::{Args, Outcome};
use engine::refusal::{Refusal, quoted};
use engine::slot::SLOTS;
use resp::Reply;

const LAST_SLOT: i64 = SLOTS as i64 - 1;

pub fn slots(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let reply = server.core.clients.reply(client);
    let Some(primary) = nodes.primary() else {
        reply.array(0);
        return Ok(());
    };
    let readable: Vec<&Node> = nodes.replicas().filter(|node| !node.has_failed).collect();
    reply.array(1);
    reply.array(3 + readable.len());
    reply.integer(0);
    reply.integer(LAST_SLOT);
    for node in std::iter::once(primary).chain(readable) {
        reply.array(4);
        reply.bulk(&node.member.host);
        reply.integer(i64::from(node.member.port));
        reply.bulk(node.member.id.to_string());
        // Further addresses: none is known beside the one that clients are to use.
        reply.map(0);
    }
    Ok(())
}

pub fn shards(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let reply = server.core.clients.reply(client);
    reply.array(1);
    reply.map(2);
    reply.bulk("slots");
    if nodes.primary().is_some() {
        reply.array(2);
        reply.integer(0);
        reply.integer(LAST_SLOT);
    } else {
        reply.array(0);
    }
    reply.bulk("nodes");
    reply.array(nodes.0.len());
    for node in &nodes.0 {
        describe_in_shard(node, reply);
    }
    Ok(())
}

fn describe_in_shard(node: &Node, reply: &mut Reply) {
    let role = if node.is_primary { "master" } else { "replica" };
    let health = if node.has_failed { "fail" } else { "online" };
    reply.map(7);
    reply.bulk("id");
    reply.bulk(node.member.id.to_string());
    reply.bulk("port");
    reply.integer(i64::from(node.member.port));
    for (field, value) in [("ip", &node.member.host), ("endpoint", &node.member.host)] {
        reply.bulk(field);
        reply.bulk(value);
    }
    reply.bulk("role");
    reply.bulk(role);
    reply.bulk("replication-offset");
    reply.integer(node.offset as i64);
    reply.bulk("health");
    reply.bulk(health);
}

pub fn nodes(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let lines: Vec<String> = nodes.0.iter().map(|node| line(server, &nodes, node)).collect();
    server.core.clients.reply(client).verbatim(b"txt", lines.join("\n") + "\n");
    Ok(())
}

/// A node's line in CLUSTER NODES. There is no cluster bus: its port is 0, nobody is pinged, and
/// "pong" is when something was last heard of the node.
fn line(server: &Server, nodes: &Nodes, node: &Node) -> String {
    let mut flags = vec![node.role()];
    if node.is_self {
        flags.insert(0, "myself");
    }
    if node.has_failed {
        flags.push("fail");
    }
    let master = match nodes.primary() {
        Some(primary) if !node.is_primary => primary.member.id.to_string(),
        _ => "-".to_owned(),
    };
    let heard = if node.is_self { 0 } else { server.core.turn.now.0 - node.silence_millis as i64 };
    let link = if node.has_failed { "disconnected" } else { "connected" };
    let slots = if node.is_primary { format!(" 0-{LAST_SLOT}") } else { String::new() };
    format!(
        "{} {}:{}@0 {} {master} 0 {heard} {} {link}{slots}",
        node.member.id,
        node.member.host,
        node.member.port,
        flags.join(","),
        server.core.shard.chain().epoch.0,
    )
}

pub fn info(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let assigned = if nodes.primary().is_some() { SLOTS } else { 0 };
    let served = match nodes.primary() {
        Some(primary) if !primary.has_failed => SLOTS,
        _ => 0,
    };
    let epoch = server.core.shard.chain().epoch.0;
    let mut text = Text::default();
    text.line("cluster_state", if served > 0 { "ok" } else { "fail" });
    text.line("cluster_slots_assigned", assigned);
    text.line("cluster_slots_ok", served);
    text.line("cluster_slots_pfail", 0);
    text.line("cluster_slots_fail", assigned - served);
    text.line("cluster_known_nodes", nodes.0.len());
    text.line("cluster_size", u8::from(assigned > 0));
    text.line("cluster_current_epoch", epoch);
    text.line("cluster_my_epoch", epoch);
    for field in [
        "cluster_stats_messages_sent",
        "cluster_stats_messages_received",
        "total_cluster_links_buffer_limit_exceeded",
    ] {
        text.line(field, 0);
    }
    server.core.clients.reply(client).verbatim(b"txt", text.into_string());
    Ok(())
}

pub fn my_id(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let id = server.core.process.member().id.to_string();
    server.core.clients.reply(client).bulk(id);
    Ok(())
}

/// The servers on one log are one shard, whoever leads it.
pub fn my_shard_id(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).bulk(hex_id(server.core.shard.appended().incarnation.0));
    Ok(())
}

pub fn links(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).array(0);
    Ok(())
}

pub fn replicas(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let node = nodes.find(args.at(2)).ok_or_else(|| unknown(args.at(2)))?;
    if !node.is_primary {
        return Err(Refusal::of("ERR The specified node is not a master"));
    }
    let lines: Vec<String> = nodes.replicas().map(|node| line(server, &nodes, node)).collect();
    server.core.clients.reply(client).array(lines.len());
    for line in lines {
        server.core.clients.reply(client).bulk(line);
    }
    Ok(())
}

/// Nobody reports failures: a lease that is over says enough.
pub fn count_failure_reports(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.nodes(client).find(args.at(2)).ok_or_else(|| unknown(args.at(2)))?;
    server.core.clients.reply(client).integer(0);
    Ok(())
}

fn unknown(id: &[u8]) -> Refusal {
    Refusal::new(format!("ERR Unknown node {}", quoted(id)))
}
