//! Scripts and functions: as much of them as there is without running any.
//!
//! SCRIPT keeps bodies by their hash, as Redis does, in memory alone: a restart forgets them, and
//! clients load them again. Nothing compiles them yet, so a body that is no Lua is kept as well.
//! There are no functions to load, so there is only the command that removes them all: Redis's own
//! test suite begins every file with it.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("FUNCTION FLUSH [ASYNC | SYNC]", function_flush)
        .allowed_in_scripts()
        .needs_data()
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Deletes all libraries and functions.")
        .group(Group::Scripting)
        .since("7.0.0")
        .cost("O(N) where N is the number of functions deleted")
        .with(Flags::WRITE.union(Flags::NOSCRIPT)),
    script("SCRIPT EXISTS sha1 [sha1 ...]", exists)
        .tips(&["request_policy:all_shards", "response_policy:agg_logical_and"])
        .doc("Determines whether scripts are kept.")
        .cost(
            "O(N) with N being the number of scripts to check (so checking a single script is an \
             O(1) operation).",
        ),
    script("SCRIPT FLUSH [ASYNC | SYNC]", flush)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Forgets all scripts.")
        .cost("O(N) with N being the number of scripts in cache"),
    script("SCRIPT LOAD script", load)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Keeps a script and returns the hash that names it.")
        .cost("O(N) with N being the length in bytes of the script body.")
        .with(Flags::STALE),
    script("SCRIPT SHOW sha1", show)
        .doc("Shows a script that is kept.")
        .since("8.0.0")
        .cost("O(1)")
        .with(Flags::STALE),
];

/// Declares a subcommand of SCRIPT.
const fn script(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).needs_data().group(Group::Scripting).since("2.6.0")
}

fn load(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let hash = server.scripts.load(args.at(2))?;
    let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    server.core.clients.reply(client).bulk(text);
    Ok(())
}

fn show(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let body = server.scripts.body(args.at(2));
    let body = body.ok_or(Refusal::of("NOSCRIPT No matching script."))?;
    server.core.clients.reply(client).bulk(body);
    Ok(())
}

fn exists(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    server.core.clients.reply(client).array(args.len() - 2);
    server.core.work().reply_each(
        args.from(2),
        server.core.clients.reply(client),
        |text, reply| {
            reply.integer(i64::from(server.scripts.contains(text)));
        },
    );
    Ok(())
}

fn flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    check_mode(args, "ERR SCRIPT FLUSH only support SYNC|ASYNC option")?;
    let scripts = std::mem::take(&mut server.scripts);
    server.core.discard(vec![Box::new(scripts)]);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn function_flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::subcommand("FUNCTION", args.at(1)));
    }
    check_mode(args, "ERR FUNCTION FLUSH only supports SYNC|ASYNC option")?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Both ways of flushing are one: what is big is freed on a thread of its own.
fn check_mode(args: Args<'_>, refusal: &'static str) -> Outcome {
    let is_mode = args.is(2, "SYNC") || args.is(2, "ASYNC");
    if args.len() > 3 || args.len() == 3 && !is_mode {
        return Err(Refusal::of(refusal));
    }
    Ok(())
}
