//! EVAL and its kin, SCRIPT (Redis documentation, "Scripting with Lua"). How a script runs stands
//! in `server/script`.

use super::{NodeFn, node};
use crate::scripts::Found;
use crate::server::Server;
use crate::server::script::{Wanted, key_count};
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, KeySpec, Outcome};
use engine::refusal::Refusal;
use lua::CodeKind;

pub const COMMANDS: &[Command<NodeFn>] = &[
    run("EVAL script numkeys [key [key ...]] [arg [arg ...]]", eval)
        .key_use("RW+access+update")
        .doc("Executes a server-side Lua script.")
        .since("2.6.0")
        .with(Flags::MAY_REPLICATE),
    run("EVAL_RO script numkeys [key [key ...]] [arg [arg ...]]", eval_ro)
        .key_use("RO+access")
        .doc("Executes a read-only server-side Lua script.")
        .since("7.0.0")
        .with(Flags::READONLY),
    run("EVALSHA sha1 numkeys [key [key ...]] [arg [arg ...]]", evalsha)
        .key_use("RW+access+update")
        .doc("Executes a server-side Lua script by its SHA1 digest.")
        .since("2.6.0")
        .with(Flags::MAY_REPLICATE),
    run("EVALSHA_RO sha1 numkeys [key [key ...]] [arg [arg ...]]", evalsha_ro)
        .key_use("RO+access")
        .doc("Executes a read-only server-side Lua script by its SHA1 digest.")
        .since("7.0.0")
        .with(Flags::READONLY),
    script("SCRIPT DEBUG <YES | SYNC | NO>", debug)
        .doc("Sets the debug mode of server-side Lua scripts.")
        .since("3.2.0")
        .cost("O(1)"),
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
    script("SCRIPT KILL", kill)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
        .doc("Terminates a server-side Lua script during execution.")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY),
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

/// Declares a command that runs a script.
const fn run(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .needs_data()
        .group(Group::Scripting)
        .cost("Depends on the script that is executed.")
        .keys(&[KeySpec::Counted { count: 2, first: 3 }])
        .with(Flags::SKIP_MONITOR.union(Flags::NO_MANDATORY_KEYS).union(Flags::STALE))
        .with(Flags::RUNS_SCRIPT)
}

const NO_SCRIPT: Refusal = Refusal::of("NOSCRIPT No matching script. Please use EVAL.");

fn eval(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    run_body(server, client, args, false)
}

fn eval_ro(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    run_body(server, client, args, true)
}

fn evalsha(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    run_kept(server, client, args, false)
}

fn evalsha_ro(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    run_kept(server, client, args, true)
}

/// Runs the script whose text is in a request.
fn run_body(
    server: &mut Server,
    client: ConnectionId,
    args: Args<'_>,
    is_read_only: bool,
) -> Outcome {
    server.show_script_call(client, args);
    let keys = key_count(args, 2)?;
    let found = server.scripts.of_body(args.at(1), &server.core.work())?;
    server.run_script(client, wanted(found, is_read_only), args.tail(3), keys)
}

/// Runs the script whose hash is in a request.
fn run_kept(
    server: &mut Server,
    client: ConnectionId,
    args: Args<'_>,
    is_read_only: bool,
) -> Outcome {
    server.show_script_call(client, args);
    if args.at(1).len() != 40 {
        return Err(NO_SCRIPT);
    }
    let keys = key_count(args, 2)?;
    let found = server.scripts.of_hash(args.at(1)).ok_or(NO_SCRIPT)?;
    server.run_script(client, wanted(found, is_read_only), args.tail(3), keys)
}

fn wanted(found: Found, is_read_only: bool) -> Wanted {
    Wanted {
        kind: CodeKind::Scripts,
        name: found.name,
        script: found.compiled,
        declared: found.declared,
        is_read_only,
    }
}

fn load(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let hash = server.scripts.load(args.at(2), &server.core.work())?;
    server.core.clients.reply(client).bulk(base::sha1::hex(&hash));
    Ok(())
}

fn kill(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.kill_script(CodeKind::Scripts)?;
    server.core.clients.reply(client).ok();
    Ok(())
}

/// SCRIPT DEBUG. Redis's debugger forks the server or blocks it; here there is none.
fn debug(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.is(2, "NO") {
        server.core.clients.reply(client).ok();
        return Ok(());
    }
    Err(match args.is(2, "YES") || args.is(2, "SYNC") {
        true => Refusal::of("ERR there is no debugger for scripts"),
        false => Refusal::of("ERR Use SCRIPT DEBUG YES/SYNC/NO"),
    })
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

/// SCRIPT FLUSH. ASYNC and SYNC do the same: memory is freed at once.
fn flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_mode = args.is(2, "SYNC") || args.is(2, "ASYNC");
    if args.len() > 3 || args.len() == 3 && !is_mode {
        return Err(Refusal::of("ERR SCRIPT FLUSH only support SYNC|ASYNC option"));
    }
    server.scripts.flush();
    server.core.clients.reply(client).ok();
    Ok(())
}
