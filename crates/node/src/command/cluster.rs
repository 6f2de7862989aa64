//! CLUSTER, and what clients of a cluster say on each connection (Redis documentation, group
//! cluster).
//!
//! To such a client every Kiln is a cluster of one shard that owns all slots. So it asks any server
//! who the primary is, is told what the log says, and follows a failover with nothing configured.
//! These commands answer whatever `cluster-enabled` says: who does not ask is not disturbed.
//! docs/compatibility.md has the reasons.
//!
//! | file | holds |
//! |---|---|
//! | [`nodes`] | who is in the shard, and where |
//! | `topology` | the replies that say so |
//! | `keys` | slots of keys, and the keys of a slot |

mod keys;
mod topology;

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<NodeFn>] = &[
    cluster("READONLY", read_only)
        .fast()
        .categories(&["connection"])
        .doc("Enables read-only queries for a connection to a Redis Cluster replica node.")
        .with(Flags::LOADING.union(Flags::STALE)),
    cluster("READWRITE", read_write)
        .fast()
        .categories(&["connection"])
        .doc("Enables read-write queries for a connection to a Redis Cluster replica node.")
        .with(Flags::LOADING.union(Flags::STALE)),
    cluster("ASKING", asking)
        .fast()
        .categories(&["connection"])
        .doc("Signals that a cluster client is following an -ASK redirect."),
    cluster("CLUSTER SLOTS", topology::slots)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns the mapping of cluster slots to nodes.")
        .cost("O(N) where N is the total number of Cluster nodes"),
    cluster("CLUSTER SHARDS", topology::shards)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns the mapping of cluster slots to shards.")
        .since("7.0.0")
        .cost("O(N) where N is the total number of cluster nodes"),
    cluster("CLUSTER NODES", topology::nodes)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns the cluster configuration for a node.")
        .cost("O(N) where N is the total number of Cluster nodes"),
    cluster("CLUSTER INFO", topology::info)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns information about the state of a node."),
    cluster("CLUSTER MYID", topology::my_id).with(Flags::STALE).doc("Returns the ID of a node."),
    cluster("CLUSTER MYSHARDID", topology::my_shard_id)
        .with(Flags::STALE)
        .doc("Returns the shard ID of a node.")
        .since("7.2.0"),
    cluster("CLUSTER LINKS", topology::links)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns a list of all TCP links to and from peer nodes.")
        .since("7.0.0")
        .cost("O(N) where N is the total number of Cluster nodes"),
    cluster("CLUSTER REPLICAS node-id", topology::replicas)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Lists the replica nodes of a master node.")
        .since("5.0.0")
        .with(Flags::ADMIN),
    cluster("CLUSTER SLAVES node-id", topology::replicas)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Lists the replica nodes of a master node.")
        .with(Flags::ADMIN),
    cluster("CLUSTER COUNT-FAILURE-REPORTS node-id", topology::count_failure_reports)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns the number of active failure reports active for a node.")
        .cost("O(N) where N is the number of failure reports")
        .with(Flags::ADMIN),
    cluster("CLUSTER KEYSLOT key", keys::slot_of)
        .with(Flags::STALE)
        .doc("Returns the hash slot for a key.")
        .cost("O(N) where N is the number of bytes in the key")
        .keys(&[]),
    cluster("CLUSTER COUNTKEYSINSLOT slot", keys::count)
        .with(Flags::STALE)
        .doc("Returns the number of keys in a hash slot.")
        .cost("O(N) where N is the number of keys in the database")
        .with(Flags::WHOLE_KEYSPACE),
    cluster("CLUSTER GETKEYSINSLOT slot count", keys::list)
        .with(Flags::STALE)
        .tips(&["nondeterministic_output"])
        .doc("Returns the key names in a hash slot.")
        .cost("O(N) where N is the number of keys in the database")
        .with(Flags::WHOLE_KEYSPACE),
    cluster("CLUSTER SAVECONFIG", save)
        .with(ARRANGES)
        .doc("Forces a node to save the cluster configuration to disk."),
    cluster("CLUSTER ADDSLOTS slot [slot ...]", refuse)
        .with(ARRANGES)
        .doc("Assigns new hash slots to a node."),
    cluster("CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]", refuse)
        .with(ARRANGES)
        .doc("Assigns new hash slot ranges to a node.")
        .since("7.0.0"),
    cluster("CLUSTER DELSLOTS slot [slot ...]", refuse)
        .with(ARRANGES)
        .doc("Sets hash slots as unbound for a node."),
    cluster("CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]", refuse)
        .with(ARRANGES)
        .doc("Sets hash slot ranges as unbound for a node.")
        .since("7.0.0"),
    cluster("CLUSTER FLUSHSLOTS", refuse)
        .with(ARRANGES)
        .doc("Deletes all slots information from a node."),
    cluster("CLUSTER SETSLOT slot option [node-id]", refuse)
        .with(ARRANGES)
        .doc("Binds a hash slot to a node."),
    cluster("CLUSTER MEET ip port [cluster-bus-port]", refuse)
        .with(ARRANGES)
        .doc("Forces a node to handshake with another node."),
    cluster("CLUSTER FORGET node-id", refuse)
        .with(ARRANGES)
        .doc("Removes a node from the nodes table."),
    cluster("CLUSTER REPLICATE node-id", refuse)
        .with(ARRANGES)
        .doc("Configure a node as replica of a master node."),
    cluster("CLUSTER FAILOVER [FORCE | TAKEOVER]", refuse)
        .with(ARRANGES)
        .doc("Forces a replica to perform a manual failover of its master."),
    cluster("CLUSTER BUMPEPOCH", refuse)
        .with(ARRANGES)
        .tips(&["nondeterministic_output"])
        .doc("Advances the cluster config epoch."),
    cluster("CLUSTER SET-CONFIG-EPOCH config-epoch", refuse)
        .with(ARRANGES)
        .doc("Sets the configuration epoch for a new node."),
    cluster("CLUSTER RESET [HARD | SOFT]", refuse)
        .with(ARRANGES)
        .doc("Resets a node.")
        .with(Flags::NOSCRIPT)
        .without(Flags::NO_ASYNC_LOADING),
];

/// Declares a command about the cluster.
const fn cluster(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .allowed_in_scripts()
        .needs_data()
        .group(Group::Cluster)
        .since("3.0.0")
        .cost("O(1)")
}

/// By which an operator of Redis arranges a cluster.
const ARRANGES: Flags = Flags::STALE.union(Flags::ADMIN).union(Flags::NO_ASYNC_LOADING);

fn read_only(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).reads_replica = true;
    server.core.clients.reply(client).ok();
    Ok(())
}

fn read_write(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.at_mut(client).reads_replica = false;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// No slot is ever on its way to another server, so what is asked for next is here or moved.
fn asking(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).ok();
    Ok(())
}

/// There is no configuration beside the log that could be lost.
fn save(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).ok();
    Ok(())
}

fn refuse(_: &mut Server, _: ConnectionId, _: Args<'_>) -> Outcome {
    Err(Refusal::of(
        "ERR The transaction log says who is in this shard and who leads it, and the shard owns \
         all slots",
    ))
}
