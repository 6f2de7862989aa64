//! COMMAND DOCS: summary, history and arguments of each command.

use super::{lookup, top_level};
use crate::server::Server;
use base::ConnectionId;
use catalog::arguments::{Argument, Kind, arguments};
use catalog::key_specs::Spec;
use catalog::{Catalog, Registered, history};
use engine::command::{Args, Outcome};
use resp::Reply;

pub(super) fn docs(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let catalog = server.core.process.catalog;
    let work = server.core.work();
    let wanted: Vec<&Registered> = match args.len() {
        2 => top_level(catalog),
        _ => {
            let names = args.from(2).inspect(|_| work.step());
            names.filter_map(|name| lookup(catalog, name)).collect()
        }
    };
    server.core.clients.reply(client).map(wanted.len());
    work.reply_each(wanted, server.core.clients.reply(client), |command, reply| {
        reply.bulk(command.name());
        write_command(catalog, command, reply);
    });
    Ok(())
}

/// The documentation of one command, in the order of Redis's fields.
fn write_command(catalog: &Catalog, command: &Registered, reply: &mut Reply) {
    let row = &command.row;
    // Redis's name, also if the command was renamed.
    let name = command.declared.name.as_str();
    let deprecated = history::deprecated(name);
    let (since, instead) = deprecated.unwrap_or_default();
    let mut flags = Vec::new();
    flags.extend(deprecated.map(|_| "deprecated"));
    flags.extend(history::is_system(name).then_some("syscmd"));
    let changes = history::changes(name);
    let is_container = !command.subcommands.is_empty();
    let tree = if is_container { Vec::new() } else { arguments(name, row.usage) };
    let of_container = format!("Container of the {} commands.", name.to_ascii_uppercase());
    let is_silent = is_container && row.summary.is_empty();
    let texts = [
        ("summary", if is_silent { of_container.as_str() } else { row.summary }),
        ("since", row.since),
        ("group", row.group.name()),
        ("complexity", row.complexity),
    ];
    let texts = texts.iter().filter(|(_, text)| !text.is_empty());
    let past = [("deprecated_since", since), ("replaced_by", instead)];
    let past = past.iter().filter(|(_, text)| !text.is_empty());
    let has = [!flags.is_empty(), changes.clone().next().is_some(), !tree.is_empty(), is_container];
    let fields = has.iter().filter(|has| **has).count();
    reply.map(texts.clone().count() + past.clone().count() + fields);
    for (field, text) in texts {
        reply.bulk(field);
        reply.bulk(text);
    }
    if !flags.is_empty() {
        reply.bulk("doc_flags");
        reply.set(flags.len());
        flags.iter().for_each(|flag| reply.simple(flag));
    }
    for (field, text) in past {
        reply.bulk(field);
        reply.bulk(text);
    }
    if has[1] {
        write_changes(changes, reply);
    }
    if !tree.is_empty() {
        reply.bulk("arguments");
        write_arguments(&tree, &command.specs, &mut 0, reply);
    }
    if is_container {
        reply.bulk("subcommands");
        reply.map(command.subcommands.len());
        for id in &command.subcommands {
            let subcommand = catalog.command(*id);
            reply.bulk(subcommand.name());
            write_command(catalog, subcommand, reply);
        }
    }
}

fn write_changes<'a>(changes: impl Iterator<Item = (&'a str, &'a str)> + Clone, reply: &mut Reply) {
    reply.bulk("history");
    reply.set(changes.clone().count());
    for (release, change) in changes {
        reply.array(2);
        reply.bulk(release);
        reply.bulk(change);
    }
}

/// Writes the arguments. `keys` counts the keys written so far: each key without a token has the
/// next key specification, as far as there are any.
fn write_arguments(tree: &[Argument], specs: &[Spec], keys: &mut usize, reply: &mut Reply) {
    reply.array(tree.len());
    for argument in tree {
        let spec = (argument.kind == Kind::Key).then(|| spec_of(argument, specs, keys)).flatten();
        let has_flags = argument.flags().next().is_some();
        let has =
            [spec.is_some(), argument.token.is_some(), has_flags, !argument.arguments.is_empty()];
        reply.map(2 + has.iter().filter(|has| **has).count());
        reply.bulk("name");
        reply.bulk(&argument.name);
        reply.bulk("type");
        reply.bulk(argument.kind.word());
        if let Some(spec) = spec {
            reply.bulk("key_spec_index");
            reply.integer(spec as i64);
        }
        if let Some(token) = &argument.token {
            reply.bulk("token");
            reply.bulk(token);
        }
        if has_flags {
            reply.bulk("flags");
            reply.set(argument.flags().count());
            argument.flags().for_each(|flag| reply.simple(flag));
        }
        if !argument.arguments.is_empty() {
            reply.bulk("arguments");
            write_arguments(&argument.arguments, specs, keys, reply);
        }
    }
}

/// The index of the key specification for a key argument.
fn spec_of(argument: &Argument, specs: &[Spec], keys: &mut usize) -> Option<usize> {
    let behind = |token: &String| specs.iter().position(|spec| spec.is_behind(token));
    if let Some(found) = argument.token.as_ref().and_then(behind) {
        return Some(found);
    }
    let index = *keys;
    *keys += 1;
    Some(index.min(specs.len().checked_sub(1)?))
}
