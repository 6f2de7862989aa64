//! What a client of Redis Sentinel asks to find the primary (Redis documentation, "Sentinel client
//! spec"), answered by every server on its ordinary port: who knows the log needs nobody to watch.
//!
//! Such a client asks any Sentinel for the primary of a name, connects there, and hears of a
//! failover on the channel `+switch-master`. Replicas are not listed: whoever finds them this way
//! reads from them without saying READONLY, and would be told MOVED. Where none is listed clients
//! read from the primary.

use super::{NodeFn, node};
use crate::server::Server;
use crate::server::nodes::{Node, Nodes};
use base::ConnectionId;
use engine::command::{Args, Command, Group, Outcome};
use engine::refusal::Refusal;
use resp::Reply;

pub const COMMANDS: &[Command<NodeFn>] = &[
    sentinel("SENTINEL GET-MASTER-ADDR-BY-NAME master-name", address)
        .doc("Returns the port and address of a master Redis instance.")
        .since("2.8.4"),
    sentinel("SENTINEL MASTERS", masters).doc("Returns a list of monitored Redis masters."),
    sentinel("SENTINEL MASTER master-name", master)
        .doc("Returns the state of a master Redis instance."),
    sentinel("SENTINEL REPLICAS master-name", replicas)
        .doc("Returns a list of the monitored Redis replicas.")
        .since("5.0.0"),
    sentinel("SENTINEL SLAVES master-name", replicas)
        .doc("Returns a list of the monitored replicas."),
    sentinel("SENTINEL SENTINELS master-name", sentinels)
        .doc("Returns a list of Sentinel instances."),
    sentinel("SENTINEL CKQUORUM master-name", check_quorum)
        .doc("Checks for a Redis Sentinel quorum."),
    sentinel("SENTINEL MYID", my_id).doc("Returns the Redis Sentinel instance ID.").since("6.2.0"),
];

/// Declares a subcommand of SENTINEL.
const fn sentinel(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .allowed_in_scripts()
        .needs_data()
        .admin()
        .group(Group::Sentinel)
        .since("2.8.0")
        .cost("O(N) where N is the number of servers of the shard")
}

impl Server {
    fn is_shard(&self, name: &[u8]) -> bool {
        name == self.core.process.settings.discovery.sentinel_master_name
    }

    /// The shard, if it has this name.
    ///
    /// # Errors
    /// Redis's for another name. A primary that is not known yet is not there.
    fn shard_named(&self, client: ConnectionId, name: &[u8]) -> Result<Nodes, Refusal> {
        let nodes = self.nodes(client);
        if self.is_shard(name) && nodes.primary().is_some() {
            return Ok(nodes);
        }
        Err(Refusal::of("ERR No such master with that name"))
    }
}

fn address(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    let is_shard = server.is_shard(args.at(2));
    let reply = server.core.clients.reply(client);
    match nodes.primary().filter(|_| is_shard) {
        None => reply.null_array(),
        Some(primary) => {
            reply.array(2);
            reply.bulk(&primary.member.host);
            reply.bulk_integer(i64::from(primary.member.port));
        }
    }
    Ok(())
}

fn masters(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let nodes = server.nodes(client);
    server.core.clients.reply(client).array(usize::from(nodes.primary().is_some()));
    if let Some(primary) = nodes.primary() {
        let fields = describe_master(server, &nodes, primary);
        write(&fields, server.core.clients.reply(client));
    }
    Ok(())
}

fn master(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let nodes = server.shard_named(client, args.at(2))?;
    if let Some(primary) = nodes.primary() {
        let fields = describe_master(server, &nodes, primary);
        write(&fields, server.core.clients.reply(client));
    }
    Ok(())
}

fn replicas(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.shard_named(client, args.at(2))?;
    server.core.clients.reply(client).array(0);
    Ok(())
}

fn sentinels(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let nodes = server.shard_named(client, args.at(2))?;
    let others: Vec<&Node> = nodes.0.iter().filter(|node| !node.is_self).collect();
    server.core.clients.reply(client).array(others.len());
    for node in others {
        let fields = describe_sentinel(server, node);
        write(&fields, server.core.clients.reply(client));
    }
    Ok(())
}

fn check_quorum(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let nodes = server.shard_named(client, args.at(2))?;
    let usable = nodes.0.iter().filter(|node| !node.has_failed).count();
    server.core.clients.reply(client).simple(format!(
        "OK {usable} usable Sentinels. Quorum and failover authorization can be reached"
    ));
    Ok(())
}

fn my_id(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let id = server.core.process.member().id.to_string();
    server.core.clients.reply(client).bulk(id);
    Ok(())
}

/// Names and values, as a Sentinel shows an instance.
type Fields = Vec<(&'static str, String)>;

/// Fields that every instance has, in the order of Redis 7.0.15. Nothing is pinged: what the log or
/// a member last said counts as its answer.
fn describe(server: &Server, node: &Node, name: String, flags: &str) -> Fields {
    let flags = match node.has_failed {
        true => format!("s_down,o_down,{flags},disconnected"),
        false => flags.to_owned(),
    };
    let silence = node.silence_millis.to_string();
    let mut fields = vec![
        ("name", name),
        ("ip", node.member.host.clone()),
        ("port", node.member.port.to_string()),
        ("runid", node.member.id.to_string()),
        ("flags", flags),
        ("link-pending-commands", "0".to_owned()),
        ("link-refcount", "1".to_owned()),
        ("last-ping-sent", "0".to_owned()),
        ("last-ok-ping-reply", silence.clone()),
        ("last-ping-reply", silence.clone()),
    ];
    if node.has_failed {
        fields.extend([("s-down-time", silence.clone()), ("o-down-time", silence)]);
    }
    fields.push((
        "down-after-milliseconds",
        server.core.process.settings.transaction_log_lease.to_string(),
    ));
    fields
}

fn describe_master(server: &Server, nodes: &Nodes, primary: &Node) -> Fields {
    let name =
        String::from_utf8_lossy(&server.core.process.settings.discovery.sentinel_master_name)
            .into_owned();
    let silence = primary.silence_millis.to_string();
    let mut fields = describe(server, primary, name, "master");
    fields.extend([
        ("info-refresh", silence.clone()),
        ("role-reported", "master".to_owned()),
        ("role-reported-time", silence),
        ("config-epoch", server.core.shard.chain().epoch.0.to_string()),
        ("num-slaves", "0".to_owned()),
        ("num-other-sentinels", nodes.0.iter().filter(|it| !it.is_self).count().to_string()),
        // One server that sees the log is enough.
        ("quorum", "1".to_owned()),
        ("failover-timeout", server.core.process.settings.transaction_log_lease.to_string()),
        ("parallel-syncs", "1".to_owned()),
    ]);
    fields
}

fn describe_sentinel(server: &Server, node: &Node) -> Fields {
    let mut fields = describe(server, node, node.member.id.to_string(), "sentinel");
    fields.extend([
        ("last-hello-message", node.silence_millis.to_string()),
        ("voted-leader", "?".to_owned()),
        ("voted-leader-epoch", "0".to_owned()),
    ]);
    fields
}

fn write(fields: &[(&'static str, String)], reply: &mut Reply) {
    reply.map(fields.len());
    for (field, value) in fields {
        reply.bulk(field);
        reply.bulk(value);
    }
}
