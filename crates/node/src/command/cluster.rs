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
pub(crate) mod nodes;
mod topology;

use super::{SessionFn, plain};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<SessionFn>] = &[
    of_connection("READONLY", read_only)
        .categories(&["connection"])
        .doc("Enables read-only queries for a connection to a Redis Cluster replica node.")
        .with(Flags::LOADING.union(Flags::STALE)),
    of_connection("READWRITE", read_write)
        .categories(&["connection"])
        .doc("Enables read-write queries for a connection to a Redis Cluster replica node.")
        .with(Flags::LOADING.union(Flags::STALE)),
    of_connection("ASKING", asking)
        .categories(&["connection"])
        .doc("Signals that a cluster client is following an -ASK redirect."),
    telling("CLUSTER SLOTS", topology::slots)
        .tips(&["nondeterministic_output"])
        .doc("Returns the mapping of cluster slots to nodes.")
        .cost("O(N) where N is the total number of Cluster nodes"),
    telling("CLUSTER SHARDS", topology::shards)
        .tips(&["nondeterministic_output"])
        .doc("Returns the mapping of cluster slots to shards.")
        .since("7.0.0")
        .cost("O(N) where N is the total number of cluster nodes"),
    telling("CLUSTER NODES", topology::nodes)
        .tips(&["nondeterministic_output"])
        .doc("Returns the cluster configuration for a node.")
        .cost("O(N) where N is the total number of Cluster nodes"),
    telling("CLUSTER INFO", topology::info)
        .tips(&["nondeterministic_output"])
        .doc("Returns information about the state of a node."),
    telling("CLUSTER MYID", topology::my_id).doc("Returns the ID of a node."),
    telling("CLUSTER MYSHARDID", topology::my_shard_id)
        .doc("Returns the shard ID of a node.")
        .since("7.2.0"),
    telling("CLUSTER LINKS", topology::links)
        .tips(&["nondeterministic_output"])
        .doc("Returns a list of all TCP links to and from peer nodes.")
        .since("7.0.0")
        .cost("O(N) where N is the total number of Cluster nodes"),
    telling("CLUSTER REPLICAS node-id", topology::replicas)
        .tips(&["nondeterministic_output"])
        .doc("Lists the replica nodes of a master node.")
        .since("5.0.0")
        .with(Flags::ADMIN),
    telling("CLUSTER SLAVES node-id", topology::replicas)
        .tips(&["nondeterministic_output"])
        .doc("Lists the replica nodes of a master node.")
        .with(Flags::ADMIN),
    telling("CLUSTER COUNT-FAILURE-REPORTS node-id", topology::count_failure_reports)
        .tips(&["nondeterministic_output"])
        .doc("Returns the number of active failure reports active for a node.")
        .cost("O(N) where N is the number of failure reports")
        .with(Flags::ADMIN),
    telling("CLUSTER KEYSLOT key", keys::slot_of)
        .doc("Returns the hash slot for a key.")
        .cost("O(N) where N is the number of bytes in the key")
        .keys(&[]),
    telling("CLUSTER COUNTKEYSINSLOT slot", keys::count)
        .doc("Returns the number of keys in a hash slot.")
        .cost("O(N) where N is the number of keys in the database")
        .with(Flags::WHOLE_KEYSPACE),
    telling("CLUSTER GETKEYSINSLOT slot count", keys::list)
        .tips(&["nondeterministic_output"])
        .doc("Returns the key names in a hash slot.")
        .cost("O(N) where N is the number of keys in the database")
        .with(Flags::WHOLE_KEYSPACE),
    arranging("CLUSTER SAVECONFIG", save)
        .doc("Forces a node to save the cluster configuration to disk."),
    arranging("CLUSTER ADDSLOTS slot [slot ...]", refuse).doc("Assigns new hash slots to a node."),
    arranging("CLUSTER ADDSLOTSRANGE start-slot end-slot [start-slot end-slot ...]", refuse)
        .doc("Assigns new hash slot ranges to a node.")
        .since("7.0.0"),
    arranging("CLUSTER DELSLOTS slot [slot ...]", refuse)
        .doc("Sets hash slots as unbound for a node."),
    arranging("CLUSTER DELSLOTSRANGE start-slot end-slot [start-slot end-slot ...]", refuse)
        .doc("Sets hash slot ranges as unbound for a node.")
        .since("7.0.0"),
    arranging("CLUSTER FLUSHSLOTS", refuse).doc("Deletes all slots information from a node."),
    arranging("CLUSTER SETSLOT slot option [node-id]", refuse).doc("Binds a hash slot to a node."),
    arranging("CLUSTER MEET ip port [cluster-bus-port]", refuse)
        .doc("Forces a node to handshake with another node."),
    arranging("CLUSTER FORGET node-id", refuse).doc("Removes a node from the nodes table."),
    arranging("CLUSTER REPLICATE node-id", refuse)
        .doc("Configure a node as replica of a master node."),
    arranging("CLUSTER FAILOVER [FORCE | TAKEOVER]", refuse)
        .doc("Forces a replica to perform a manual failover of its master."),
    arranging("CLUSTER BUMPEPOCH", refuse)
        .tips(&["nondeterministic_output"])
        .doc("Advances the cluster config epoch."),
    arranging("CLUSTER SET-CONFIG-EPOCH config-epoch", refuse)
        .doc("Sets the configuration epoch for a new node."),
    arranging("CLUSTER RESET [HARD | SOFT]", refuse)
        .doc("Resets a node.")
        .with(Flags::NOSCRIPT)
        .without(Flags::NO_ASYNC_LOADING),
];

const fn of_connection(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    plain(usage, function).group(Group::Cluster).since("3.0.0").cost("O(1)").fast()
}

/// Declares a command that tells something of the cluster.
const fn telling(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    plain(usage, function).group(Group::Cluster).since("3.0.0").cost("O(1)").with(Flags::STALE)
}

/// Declares a command by which an operator of Redis arranges a cluster.
const fn arranging(usage: &'static str, function: SessionFn) -> Command<SessionFn> {
    telling(usage, function).with(Flags::ADMIN.union(Flags::NO_ASYNC_LOADING))
}

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
