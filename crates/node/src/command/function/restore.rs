//! FUNCTION DUMP, FUNCTION RESTORE: all libraries as one payload.

use super::{already_there, library_already_there, name_of};
use crate::libraries::{CompiledLibraries, Registered};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Outcome};
use engine::dump::{LibrariesError, dump_libraries, libraries_of};
use engine::effect::Effect;
use engine::refusal::Refusal;
use std::collections::BTreeSet;

pub(super) fn dump(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let keyspace = &server.core.shard.engine.keyspace;
    let payload = dump_libraries(keyspace.libraries(), &keyspace.work);
    server.core.clients.reply(client).bulk(payload);
    Ok(())
}

/// The policy of FUNCTION RESTORE for existing libraries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Flush,
    Append,
    Replace,
}

pub(super) fn restore(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let policy = match args.len() {
        3 => Policy::Append,
        4 if args.is(3, "APPEND") => Policy::Append,
        4 if args.is(3, "REPLACE") => Policy::Replace,
        4 if args.is(3, "FLUSH") => Policy::Flush,
        4 => {
            return Err(Refusal::of(
                "ERR Wrong restore policy given, value should be either FLUSH, APPEND or REPLACE.",
            ));
        }
        _ => return Err(Refusal::subcommand("FUNCTION", args.at(1))),
    };
    let codes = libraries_of(args.at(2), &server.core.work()).map_err(|error| match error {
        LibrariesError::Footer => Refusal::of("ERR DUMP payload version or checksum are wrong"),
        LibrariesError::Preview => Refusal::of("ERR Pre-GA function format not supported"),
        LibrariesError::Other => Refusal::of("ERR given type is not a function"),
        LibrariesError::Torn => Refusal::of("ERR failed loading the given functions payload"),
    })?;
    let began = server.core.process.options.clock.monotonic();
    let mut compiled = Vec::new();
    let mut refused = Ok(());
    for code in &codes {
        match server.compile_library(client, code, began) {
            Ok(functions) => compiled.push((code, functions)),
            Err(refusal) => {
                refused = Err(refusal);
                break;
            }
        }
    }
    let refused = refused.and_then(|()| check_names(&server.libraries, &compiled, policy));
    if let Err(refusal) = refused {
        compiled.into_iter().for_each(|(_, functions)| server.libraries.discard(functions));
        return Err(refusal);
    }
    if policy == Policy::Flush && !server.core.shard.engine.keyspace.libraries().is_empty() {
        server.delete_libraries(Effect::FunctionFlush);
    }
    for (code, functions) in compiled {
        server.put_library(code, functions);
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

/// Refuses a RESTORE in which two libraries, or functions of two of them, would have the same name.
/// Within a library names may differ in case alone, as FUNCTION LOAD lets them.
fn check_names(
    libraries: &CompiledLibraries,
    compiled: &[(&Vec<u8>, Registered)],
    policy: Policy,
) -> Outcome {
    let mut names = BTreeSet::new();
    let mut functions = BTreeSet::new();
    for (code, registered) in compiled {
        let name = name_of(code);
        if names.contains(&name) {
            return Err(library_already_there(&name));
        }
        names.insert(name);
        let own: BTreeSet<_> = registered.keys().map(|it| it.to_ascii_lowercase()).collect();
        if let Some(function) = own.intersection(&functions).next() {
            return Err(already_there("Function", function));
        }
        functions.extend(own);
    }
    if policy == Policy::Flush {
        return Ok(());
    }
    let replaces = policy == Policy::Replace;
    if let Some(name) = names.iter().find(|name| !replaces && libraries.contains(name)) {
        return Err(already_there("Library", name));
    }
    let is_taken =
        |function: &[u8]| libraries.owner(function).is_some_and(|it| !names.contains(it));
    let mut all = compiled.iter().flat_map(|(_, registered)| registered.keys());
    match all.find(|function| is_taken(function)) {
        Some(function) => Err(already_there("Function", function)),
        None => Ok(()),
    }
}
