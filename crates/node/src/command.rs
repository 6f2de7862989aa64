//! The node's own commands: those that need a session, the server or other sessions.

pub mod acl;
pub mod client;
pub mod cluster;
pub mod commands;
pub mod config;
pub mod connection;
pub mod debug;
pub mod failover;
pub mod function;
pub mod help;
pub mod info;
pub mod latency;
pub mod memory;
pub mod migrate;
pub mod module;
pub mod pubsub;
pub mod replicaof;
pub mod replication;
pub mod scripting;
pub mod sentinel;
pub mod server;
pub mod slowlog;
pub mod transaction;

use crate::server::Server;
pub use crate::server::functions::NodeFn;
use crate::server::functions::{Function, Functions};
use catalog::Catalog;
use engine::command::{Command, Flags};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;
use std::sync::OnceLock;

/// Declares a command of the node. Clients may call it at any time, scripts may not, unless its row
/// says otherwise. A family whose rows have more in common has a function of its own name for that.
pub const fn node(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    Command::new(usage, function, Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE))
}

/// Reads a timeout in milliseconds: how long something lasts from now on. As in Redis, one whose
/// end no clock could show is refused.
fn timeout_millis(server: &Server, text: &[u8]) -> Result<u64, Refusal> {
    const NO_TIMEOUT: Refusal = Refusal::of("ERR timeout is not an integer or out of range");
    let millis = canonical_integer(text).ok_or(NO_TIMEOUT)?;
    server.core.turn.now.0.checked_add(millis).ok_or(NO_TIMEOUT)?;
    u64::try_from(millis).map_err(|_| Refusal::of("ERR timeout is negative"))
}

/// Every family of the node.
pub const FAMILIES: &[&[Command<NodeFn>]] = &[
    acl::COMMANDS,
    client::COMMANDS,
    cluster::COMMANDS,
    commands::COMMANDS,
    config::COMMANDS,
    connection::COMMANDS,
    debug::COMMANDS,
    failover::COMMANDS,
    function::COMMANDS,
    info::COMMANDS,
    latency::COMMANDS,
    memory::COMMANDS,
    migrate::COMMANDS,
    module::COMMANDS,
    pubsub::COMMANDS,
    replicaof::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    sentinel::COMMANDS,
    server::COMMANDS,
    slowlog::COMMANDS,
    transaction::COMMANDS,
    // Last, so that containers come into being with their other subcommands.
    help::COMMANDS,
];

/// Every family of the engine and of the node, merged once per process: the catalogue, in which no
/// command is renamed, and the functions.
pub fn standard() -> (&'static Catalog, &'static Functions) {
    static STANDARD: OnceLock<(Catalog, Functions)> = OnceLock::new();
    let (catalog, functions) = STANDARD.get_or_init(|| {
        let data = engine::command::FAMILIES.iter().flat_map(|family| family.iter());
        let data = data.map(|row| row.with_function(Function::Data(row.function)));
        let of_node = FAMILIES.iter().flat_map(|family| family.iter());
        let of_node = of_node.map(|row| row.with_function(Function::Node(row.function)));
        let (catalog, functions) = Catalog::new(data.chain(of_node), Function::kind);
        (catalog, Functions::new(functions))
    });
    (catalog, functions)
}

#[cfg(test)]
mod tests;
