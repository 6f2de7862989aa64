//! HELP of every container, written from the rows of its subcommands.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};

/// A container's HELP.
const fn help_of(usage: &'static str, group: Group, since: &'static str) -> Command<NodeFn> {
    node(usage, help)
        .allowed_in_scripts()
        .doc("Prints this help.")
        .group(group)
        .since(since)
        .cost("O(1)")
}

pub const COMMANDS: &[Command<NodeFn>] = &[
    help_of("ACL HELP", Group::Server, "6.0.0"),
    help_of("CLIENT HELP", Group::Connection, "5.0.0").with(Flags::KEEPS_CACHING),
    help_of("CLUSTER HELP", Group::Cluster, "5.0.0"),
    help_of("COMMAND HELP", Group::Server, "5.0.0"),
    help_of("CONFIG HELP", Group::Server, "5.0.0"),
    help_of("FUNCTION HELP", Group::Scripting, "7.0.0"),
    help_of("LATENCY HELP", Group::Server, "2.8.13"),
    help_of("MEMORY HELP", Group::Server, "4.0.0"),
    help_of("MODULE HELP", Group::Server, "5.0.0"),
    help_of("OBJECT HELP", Group::Generic, "6.2.0").with(Flags::KEYSPACE),
    help_of("PUBSUB HELP", Group::PubSub, "6.2.0"),
    help_of("SCRIPT HELP", Group::Scripting, "5.0.0"),
    help_of("SENTINEL HELP", Group::Sentinel, "6.2.0"),
    help_of("SLOWLOG HELP", Group::Server, "6.2.0"),
    help_of("XGROUP HELP", Group::Stream, "5.0.0"),
    help_of("XINFO HELP", Group::Stream, "5.0.0"),
];

/// Shows usage and summary of each subcommand.
pub fn help(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let container = String::from_utf8_lossy(args.at(0)).to_ascii_uppercase();
    let mut lines =
        vec![format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:")];
    let catalog = server.core.process.catalog;
    let subcommands = catalog.find(args.at(0), None).into_iter().flat_map(|c| &c.subcommands);
    for row in subcommands.map(|id| &catalog.command(*id).row) {
        // The usage line begins with the container's name and a space.
        let usage = row.usage.get(container.len() + 1..).unwrap_or(row.usage);
        if usage != "HELP" {
            lines.push(usage.to_owned());
            lines.push(format!("    {}", row.summary));
        }
    }
    lines.extend(["HELP".to_owned(), "    Prints this help.".to_owned()]);
    let reply = server.core.clients.reply(client);
    reply.array(lines.len());
    for line in lines {
        reply.simple(line);
    }
    Ok(())
}
