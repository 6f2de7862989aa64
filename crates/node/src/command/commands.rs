//! COMMAND (Redis documentation, COMMAND): what the catalogue knows about every command.

mod docs;

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use catalog::category::Categories;
use catalog::{Catalog, Registered};
use engine::command::{Args, Command, Flags, Group, KeyUse, Outcome, Secrets};
use engine::glob;
use engine::refusal::Refusal;
use resp::Reply;

pub const COMMANDS: &[Command<NodeFn>] = &[
    command("COMMAND", all)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns detailed information about all commands.")
        .arity(-1),
    command("COMMAND COUNT", count).doc("Returns a count of commands."),
    command("COMMAND DOCS [command-name [command-name ...]]", docs::docs)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns documentary information about commands.")
        .since("7.0.0"),
    command("COMMAND GETKEYS command [arg [arg ...]]", keys)
        .secrets(Secrets::InRequest(2))
        .doc("Extracts the key names from an arbitrary command.")
        .arity(-4),
    command("COMMAND GETKEYSANDFLAGS command [arg [arg ...]]", keys_and_flags)
        .secrets(Secrets::InRequest(2))
        .doc("Extracts the key names and access flags for an arbitrary command.")
        .since("7.0.0")
        .arity(-4),
    command("COMMAND INFO [command-name [command-name ...]]", info)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns information about one, multiple or all commands."),
    command(
        "COMMAND LIST [FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]",
        list,
    )
    .tips(&["nondeterministic_output_order"])
    .doc("Returns a list of command names.")
    .since("7.0.0"),
];

/// Declares COMMAND or a subcommand of it.
const fn command(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).allowed_in_scripts().group(Group::Server).since("2.8.13").cost("O(N)")
}

/// The commands that are no subcommands, and that clients can call.
fn top_level(catalog: &Catalog) -> Vec<&Registered> {
    let is_callable = |command: &&Registered| !command.called.is_empty();
    catalog.iter().filter(|c| c.parent.is_none()).filter(is_callable).collect()
}

/// A command by `name` or `container|subcommand`.
fn lookup<'a>(catalog: &'a Catalog, name: &[u8]) -> Option<&'a Registered> {
    match name.iter().position(|byte| *byte == b'|') {
        Some(at) => {
            let found = catalog.find(&name[..at], Some(&name[at + 1..]))?;
            found.parent.is_some().then_some(found)
        }
        None => catalog.find(name, None),
    }
}

/// COMMAND without a subcommand.
fn all(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    write_all(server, client);
    Ok(())
}

fn write_all(server: &mut Server, client: ConnectionId) {
    let catalog = server.core.process.catalog;
    let commands = top_level(catalog);
    server.core.clients.reply(client).array(commands.len());
    server.core.shard.engine.keyspace.work.reply_each(
        commands,
        server.core.clients.reply(client),
        |command, reply| {
            write_info(catalog, command, reply);
        },
    );
}

fn count(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let catalog = server.core.process.catalog;
    server.core.clients.reply(client).integer(top_level(catalog).len() as i64);
    Ok(())
}

fn info(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let catalog = server.core.process.catalog;
    if args.len() == 2 {
        write_all(server, client);
        return Ok(());
    }
    server.core.clients.reply(client).array(args.len() - 2);
    server.core.shard.engine.keyspace.work.reply_each(
        args.from(2),
        server.core.clients.reply(client),
        |name, reply| match lookup(catalog, name) {
            Some(command) => write_info(catalog, command, reply),
            None => reply.null(),
        },
    );
    Ok(())
}

fn write_info(catalog: &Catalog, command: &Registered, reply: &mut Reply) {
    let (first, last, step) = command.declared.range();
    reply.array(10);
    reply.bulk(command.name());
    reply.integer(i64::from(command.declared.arity));
    let flags: Vec<&str> = command.flags.words().collect();
    reply.set(flags.len());
    for flag in flags {
        reply.simple(flag);
    }
    reply.integer(first as i64);
    reply.integer(i64::from(last));
    reply.integer(step as i64);
    let categories = command.categories.names();
    reply.set(command.categories.names().count());
    for category in categories {
        reply.simple(format!("@{category}"));
    }
    let tips = command.row.tips;
    reply.set(tips.len());
    for tip in tips {
        reply.bulk(tip);
    }
    reply.set(command.specs.len());
    for spec in &command.specs {
        spec.write(reply);
    }
    // Without any it is an empty set, in Redis too.
    match command.subcommands.len() {
        0 => reply.set(0),
        count => reply.array(count),
    }
    for id in &command.subcommands {
        write_info(catalog, catalog.command(*id), reply);
    }
}

fn list(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let catalog = server.core.process.catalog;
    let every = || catalog.iter();
    let found: Vec<&Registered> = match args.len() {
        2 => every().collect(),
        5 if args.is(2, "FILTERBY") => {
            let word = args.at(4);
            if args.is(3, "MODULE") {
                Vec::new()
            } else if args.is(3, "ACLCAT") {
                let wanted = Categories::named(word).unwrap_or_default();
                every().filter(|c| c.categories.intersects(wanted)).collect()
            } else if args.is(3, "PATTERN") {
                let work = server.core.work();
                let fits =
                    |c: &&Registered| glob::matches_ignoring_case(word, c.name().as_bytes(), &work);
                every().filter(fits).collect()
            } else {
                return Err(Refusal::SYNTAX);
            }
        }
        _ => return Err(Refusal::SYNTAX),
    };
    server.core.clients.reply(client).array(found.len());
    server.core.shard.engine.keyspace.work.reply_each(
        found,
        server.core.clients.reply(client),
        |command, reply| reply.bulk(command.name()),
    );
    Ok(())
}

/// The keys of the request that begins with argument 2; their indexes count from there.
fn find_keys(server: &Server, args: Args<'_>) -> Result<Vec<(usize, KeyUse)>, Refusal> {
    let found = server.core.process.catalog.find(args.at(2), args.get(3));
    let command = found
        // A container whose subcommand is none is no command.
        .filter(|command| command.subcommands.is_empty() || args.len() == 3)
        .ok_or(Refusal::of("ERR Invalid command specified"))?;
    if !command.may_have_keys() {
        return Err(Refusal::of("ERR The command has no key arguments"));
    }
    let request = args.tail(2);
    if !command.admits(request.len()) {
        return Err(Refusal::of("ERR Invalid number of arguments specified for command"));
    }
    let mut keys = Vec::new();
    command.for_each_key(request, |index, uses| keys.push((index, uses)));
    if keys.is_empty() && !command.flags.contains(Flags::NO_MANDATORY_KEYS) {
        return Err(Refusal::of("ERR Invalid arguments specified for command"));
    }
    Ok(keys)
}

fn keys(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let keys = find_keys(server, args)?;
    server.core.clients.reply(client).array(keys.len());
    server.core.shard.engine.keyspace.work.reply_each(
        keys,
        server.core.clients.reply(client),
        |(index, _), reply| {
            reply.bulk(args.at(index + 2));
        },
    );
    Ok(())
}

fn keys_and_flags(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let keys = find_keys(server, args)?;
    let reply = server.core.clients.reply(client);
    reply.array(keys.len());
    server.core.shard.engine.keyspace.work.reply_each(keys, reply, |(index, uses), reply| {
        reply.array(2);
        reply.bulk(args.at(index + 2));
        reply.set(uses.words().count());
        for word in uses.words() {
            reply.simple(word);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests;
