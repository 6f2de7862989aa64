//! Commands about the server as a whole: TIME, LASTSAVE, SHUTDOWN, MONITOR and their kin.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;
use resp::integer::parse_i64;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("TIME", time)
        .allowed_in_scripts()
        .tips(&["nondeterministic_output"])
        .doc("Returns the server time.")
        .group(Group::Server)
        .since("2.6.0")
        .cost("O(1)")
        .fast(),
    node("LASTSAVE", last_save)
        .allowed_in_scripts()
        .tips(&["nondeterministic_output"])
        .categories(&["admin", "dangerous"])
        .doc("Returns the Unix timestamp of the last successful save to disk.")
        .group(Group::Server)
        .cost("O(1)")
        .fast(),
    node("SAVE", save)
        .admin()
        .group(Group::Server)
        .doc("Synchronously saves the database(s) to disk.")
        .cost("O(N) where N is the total number of keys in all databases")
        .without(Flags::LOADING.union(Flags::STALE))
        .with(Flags::NO_MULTI.union(Flags::NO_ASYNC_LOADING)),
    node("BGSAVE [SCHEDULE]", save_in_background)
        .admin()
        .group(Group::Server)
        .doc("Asynchronously saves the database(s) to disk.")
        .cost("O(1)")
        .arity(-1)
        .without(Flags::LOADING.union(Flags::STALE))
        .with(Flags::NO_ASYNC_LOADING),
    node("BGREWRITEAOF", rewrite_log)
        .admin()
        .group(Group::Server)
        .doc("Asynchronously rewrites the append-only file to disk.")
        .cost("O(1)")
        .without(Flags::LOADING.union(Flags::STALE))
        .with(Flags::NO_ASYNC_LOADING),
    node("SHUTDOWN [NOSAVE | SAVE] [NOW] [FORCE] [ABORT]", shutdown)
        .admin()
        .group(Group::Server)
        .doc("Synchronously saves the database(s) to disk and shuts down the server.")
        .cost("O(N) when saving, where N is the total number of keys in all databases")
        .arity(-1)
        .with(Flags::NO_MULTI.union(Flags::ALLOW_BUSY)),
    node("MONITOR", monitor)
        .admin()
        .group(Group::Server)
        .doc("Listens for all requests received by the server in real-time.")
        .cost("O(1)"),
    node("LOLWUT [VERSION version]", lolwut)
        .allowed_in_scripts()
        .needs_data()
        .doc("Displays computer art and the version.")
        .group(Group::Server)
        .since("5.0.0")
        .arity(-1)
        .with(Flags::READONLY)
        .fast(),
];

fn time(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let micros = server.core.process.options.clock.unix_micros();
    let reply = server.core.clients.reply(client);
    reply.array(2);
    reply.bulk((micros / 1_000_000).to_string());
    reply.bulk((micros % 1_000_000).to_string());
    Ok(())
}

fn last_save(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let seconds = server.core.last_save().0.div_euclid(1000);
    server.core.clients.reply(client).integer(seconds);
    Ok(())
}

/// Answers when the snapshot is published; other clients are served meanwhile.
fn save(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.request_snapshot(false)?;
    server.wait_for_snapshot(client);
    Ok(())
}

fn save_in_background(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let schedule = match args.len() {
        1 => false,
        2 if args.is(1, "SCHEDULE") => true,
        _ => return Err(Refusal::SYNTAX),
    };
    let is_later = server.core.saving().is_saving || server.core.clients.at(client).is_in_exec;
    server.request_snapshot(schedule)?;
    server.core.clients.reply(client).simple(if is_later {
        "Background saving scheduled"
    } else {
        "Background saving started"
    });
    Ok(())
}

/// A snapshot is what makes the log short.
fn rewrite_log(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let is_later = server.core.saving().is_saving || server.core.clients.at(client).is_in_exec;
    server.request_snapshot(true)?;
    server.core.clients.reply(client).simple(if is_later {
        "Background append only file rewriting scheduled"
    } else {
        "Background append only file rewriting started"
    });
    Ok(())
}

/// Everything executed is in the log, so there is nothing to save first: SAVE and NOSAVE are the
/// same, and the process ends when all of it is durable.
fn shutdown(server: &mut Server, _: ConnectionId, args: Args<'_>) -> Outcome {
    let (mut saves, mut saves_not, mut aborts, mut others) = (false, false, false, false);
    for at in 1..args.len() {
        if args.is(at, "SAVE") {
            saves = true;
        } else if args.is(at, "NOSAVE") {
            saves_not = true;
        } else if args.is(at, "NOW") || args.is(at, "FORCE") {
            others = true;
        } else if args.is(at, "ABORT") {
            aborts = true;
        } else {
            return Err(Refusal::SYNTAX);
        }
    }
    if saves && saves_not || aborts && (saves || saves_not || others) {
        return Err(Refusal::SYNTAX);
    }
    if aborts {
        return Err(Refusal::of("ERR No shutdown in progress."));
    }
    if let Some(refusal) = server.busy_refusal() {
        if !saves_not {
            return Err(refusal);
        }
        server.give_script_up();
    }
    // There is no reply: the connection is closed when the server has stopped.
    server.core.stop_when_durable("SHUTDOWN");
    Ok(())
}

fn monitor(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.clients.at(client).is_in_exec {
        return Err(Refusal::of("ERR MONITOR isn't allowed for DENY BLOCKING client"));
    }
    server.core.clients.monitors.insert(client);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn lolwut(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    // Each version of Redis draws something else; here there is one drawing.
    if args.len() > 2 && args.is(1, "VERSION") && parse_i64(args.at(2)).is_none() {
        return Err(Refusal::NOT_AN_INTEGER);
    }
    let art = format!(
        "   ______________\n  /  __________  \\\n |  |  __  __  |  |\n |  | (  )(  ) |  |  fired, not \
         forgotten\n |__|__________|__|\n\nRedis ver. {}\n",
        crate::REDIS_VERSION
    );
    server.core.clients.reply(client).verbatim(b"txt", art);
    Ok(())
}
