//! MODULE (Redis documentation, MODULE LIST): there are no modules, and none can be loaded. Tools
//! ask for the list, and whoever loads one is told that it failed.

use super::NodeFn;
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<NodeFn>] = &[
    module("MODULE LIST", list)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns the modules that are loaded: none.")
        .since("4.0.0")
        .cost("O(1)"),
    module("MODULE LOAD path [arg ...]", load)
        .doc("Fails: modules cannot be loaded.")
        .since("4.0.0")
        .cost("O(1)")
        .with(CHANGES),
    module(
        "MODULE LOADEX path [CONFIG name value [CONFIG name value ...]] [ARGS arg [arg ...]]",
        load,
    )
    .doc("Fails: modules cannot be loaded.")
    .since("7.0.0")
    .cost("O(1)")
    .with(CHANGES)
    .arity(-3),
    module("MODULE UNLOAD name", unload)
        .doc("Fails: no module is loaded.")
        .since("4.0.0")
        .cost("O(1)")
        .with(CHANGES),
];

const CHANGES: Flags = Flags::NO_ASYNC_LOADING.union(Flags::CHANGES_MODULES);

/// Declares a subcommand of MODULE. Unlike others of the node it waits until the data is loaded, as
/// in Redis.
const fn module(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    Command::new(usage, function, Flags::NOSCRIPT).admin().group(Group::Server)
}

fn list(server: &mut Server, client: ConnectionId, _args: Args<'_>) -> Outcome {
    server.core.clients.reply(client).array(0);
    Ok(())
}

fn load(_server: &mut Server, _client: ConnectionId, args: Args<'_>) -> Outcome {
    let path = String::from_utf8_lossy(args.at(2));
    tracing::warn!(%path, "a module was to be loaded: there are none");
    Err(Refusal::of("ERR Error loading the extension. Please check the server logs."))
}

fn unload(_server: &mut Server, _client: ConnectionId, _args: Args<'_>) -> Outcome {
    Err(Refusal::of("ERR Error unloading module: no such module with that name"))
}
