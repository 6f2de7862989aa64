//! Functions: FCALL, FUNCTION (Redis documentation, "Redis functions"). What a library is here, and
//! how it is compiled, stands in `libraries`; how a function runs, in `server/script`.

use super::{NodeFn, node};
use crate::libraries::{Libraries, Registered};
use crate::server::Server;
use crate::server::script::{Wanted, key_count};
use base::{ConnectionId, DatabaseId};
use engine::command::{Args, Command, Flags, Group, KeySpec, Outcome};
use engine::dump::{LibrariesError, dump_libraries, libraries_of};
use engine::effect::Effect;
use engine::functions::Header;
use engine::glob;
use engine::refusal::Refusal;
use lua::Kind;
use resp::Reply;

/// How long the code of a library may run when it is loaded. Redis's number.
const LOAD_NANOS_MAX: u64 = 500_000_000;

pub const COMMANDS: &[Command<NodeFn>] = &[
    run("FCALL function numkeys [key [key ...]] [arg [arg ...]]", fcall)
        .key_use("RW+access+update")
        .doc("Invokes a function.")
        .with(Flags::MAY_REPLICATE),
    run("FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]", fcall_ro)
        .key_use("RO+access")
        .doc("Invokes a read-only function.")
        .with(Flags::READONLY),
    function("FUNCTION DELETE library-name", delete)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Deletes a library and its functions.")
        .cost("O(1)")
        .with(Flags::WRITE),
    function("FUNCTION DUMP", dump)
        .doc("Dumps all libraries into a serialized binary payload.")
        .cost("O(N) where N is the number of functions"),
    function("FUNCTION FLUSH [ASYNC | SYNC]", flush)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Deletes all libraries and functions.")
        .cost("O(N) where N is the number of functions deleted")
        .with(Flags::WRITE),
    function("FUNCTION KILL", kill)
        .tips(&["request_policy:all_shards", "response_policy:one_succeeded"])
        .doc("Terminates a function during execution.")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY),
    function("FUNCTION LIST [LIBRARYNAME library-name-pattern] [WITHCODE]", list)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns information about all libraries.")
        .cost("O(N) where N is the number of functions"),
    function("FUNCTION LOAD [REPLACE] function-code", load)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Creates a library.")
        .cost("O(1) (considering compilation time is redundant)")
        .with(Flags::WRITE.union(Flags::DENYOOM)),
    function("FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]", restore)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Restores all libraries from a payload.")
        .cost("O(N) where N is the number of functions on the payload")
        .with(Flags::WRITE.union(Flags::DENYOOM)),
    function("FUNCTION STATS", stats)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("Returns information about a function during execution.")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY),
];

/// Declares a subcommand of FUNCTION.
const fn function(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .allowed_in_scripts()
        .needs_data()
        .group(Group::Scripting)
        .since("7.0.0")
        .with(Flags::NOSCRIPT)
}

/// Declares a command that runs a function.
const fn run(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .needs_data()
        .group(Group::Scripting)
        .since("7.0.0")
        .cost("Depends on the function that is executed.")
        .keys(&[KeySpec::Counted { count: 2, first: 3 }])
        .with(Flags::SKIP_MONITOR.union(Flags::NO_MANDATORY_KEYS).union(Flags::STALE))
        .with(Flags::RUNS_SCRIPT)
}

impl Server {
    /// The libraries, as the shard has them now.
    pub(crate) fn libraries(&mut self) -> &mut Libraries {
        let data = self.core.shard.engine.keyspace.libraries();
        if self.libraries.is_behind(data) {
            self.libraries.follow(data);
        }
        &mut self.libraries
    }

    fn change_libraries(&mut self, effect: Effect<'_>) {
        let shard = &mut self.core.shard;
        let context = engine::unit::Context::background(self.core.turn.now, DatabaseId(0));
        shard
            .engine
            .tx(context, &mut shard.unit, &mut self.core.interest)
            .change_all(DatabaseId(0), effect);
    }

    /// Compiles the code of a library that is to be loaded.
    fn compile_library(
        &mut self,
        client: ConnectionId,
        code: &[u8],
    ) -> Result<Registered, Refusal> {
        let clock = std::sync::Arc::clone(&self.core.process.options.clock);
        let began = clock.monotonic();
        let is_bound = !self.core.clients.at(client).is_master();
        let work = self.core.work();
        let mut is_late = || {
            work.steps(crate::server::script::PAUSE_WORK_STEPS);
            is_bound && clock.monotonic().since(began) > LOAD_NANOS_MAX
        };
        self.libraries.compile(code, &mut is_late)
    }
}

fn fcall(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    call(server, client, args, false)
}

fn fcall_ro(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    call(server, client, args, true)
}

fn call(server: &mut Server, client: ConnectionId, args: Args<'_>, is_read_only: bool) -> Outcome {
    server.show_script_call(client, args);
    let function = server.libraries().function(args.at(1));
    let function = function.ok_or(Refusal::of("ERR Function not found"))?;
    let (name, script, declared) = (function.0.to_vec(), function.1.compiled, function.1.declared);
    if resp::integer::parse_i64(args.at(2)).is_none() {
        return Err(Refusal::of("ERR Bad number of keys provided"));
    }
    let keys = key_count(args, 2)?;
    let wanted = Wanted {
        kind: Kind::Functions,
        name: String::from_utf8_lossy(&name).into_owned(),
        script,
        declared: Some(declared),
        is_read_only,
    };
    server.run_script(client, wanted, args.tail(3), keys)
}

fn load(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let mut replaces = false;
    for index in 2..args.len() - 1 {
        if !args.is(index, "REPLACE") {
            let option = String::from_utf8_lossy(args.at(index));
            return Err(Refusal::new(format!("ERR Unknown option given: {option}")));
        }
        replaces = true;
    }
    let code = args.at(args.len() - 1);
    let name = Header::of(code).map_err(|text| Refusal::new(format!("ERR {text}")))?.name;
    if !replaces && server.libraries().library(name).is_some() {
        let name = String::from_utf8_lossy(name);
        return Err(Refusal::new(format!("ERR Library '{name}' already exists")));
    }
    server.libraries();
    let functions = server.compile_library(client, code)?;
    let taken = functions
        .keys()
        .find(|function| server.libraries.owner(function).is_some_and(|owner| owner != name));
    if let Some(function) = taken {
        let refusal = already_there("Function", function);
        server.libraries.discard(functions);
        return Err(refusal);
    }
    server.change_libraries(Effect::FunctionLoad { code });
    adopt(server, name, functions);
    server.core.clients.reply(client).bulk(name);
    Ok(())
}

/// Takes what was compiled of a library that has just been loaded.
fn adopt(server: &mut Server, name: &[u8], functions: Registered) {
    let data = server.core.shard.engine.keyspace.libraries();
    if let Some(code) = data.code(name) {
        server.libraries.adopt(name, code, functions);
    }
}

fn already_there(what: &str, name: &[u8]) -> Refusal {
    Refusal::new(format!("ERR {what} {} already exists", String::from_utf8_lossy(name)))
}

fn delete(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let name = args.at(2);
    if server.core.shard.engine.keyspace.libraries().code(name).is_none() {
        return Err(Refusal::of("ERR Library not found"));
    }
    server.change_libraries(Effect::FunctionDelete { name });
    server.core.clients.reply(client).ok();
    Ok(())
}

fn flush(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let is_mode = args.is(2, "SYNC") || args.is(2, "ASYNC");
    if args.len() > 3 {
        return Err(Refusal::subcommand("FUNCTION", args.at(1)));
    }
    if args.len() == 3 && !is_mode {
        return Err(Refusal::of("ERR FUNCTION FLUSH only supports SYNC|ASYNC option"));
    }
    if !server.core.shard.engine.keyspace.libraries().is_empty() {
        server.change_libraries(Effect::FunctionFlush);
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

fn dump(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let keyspace = &server.core.shard.engine.keyspace;
    let payload = dump_libraries(keyspace.libraries(), &keyspace.work);
    server.core.clients.reply(client).bulk(payload);
    Ok(())
}

/// What RESTORE does with the libraries that are there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Flush,
    Append,
    Replace,
}

fn restore(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
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
    server.libraries();
    let mut compiled = Vec::new();
    let mut refused = Ok(());
    for code in &codes {
        match server.compile_library(client, code) {
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
        server.change_libraries(Effect::FunctionFlush);
    }
    for (code, functions) in compiled {
        server.change_libraries(Effect::FunctionLoad { code });
        let name = name_of(code);
        adopt(server, name, functions);
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

/// The name of a library that was compiled.
fn name_of(code: &[u8]) -> &[u8] {
    Header::of(code).expect("what was compiled has a first line").name
}

/// Whether new libraries may come beside those that stay: no two of one name, also of functions.
fn check_names(
    libraries: &Libraries,
    compiled: &[(&Vec<u8>, Registered)],
    policy: Policy,
) -> Outcome {
    let mut names = std::collections::BTreeSet::new();
    let mut functions = std::collections::BTreeSet::new();
    for (code, registered) in compiled {
        let name = name_of(code);
        if !names.insert(name) {
            let name = String::from_utf8_lossy(name);
            return Err(Refusal::new(format!("ERR Library '{name}' already exists")));
        }
        if let Some(function) =
            registered.keys().find(|it| !functions.insert(it.to_ascii_lowercase()))
        {
            return Err(already_there("Function", function));
        }
    }
    if policy == Policy::Flush {
        return Ok(());
    }
    let replaces = policy == Policy::Replace;
    if let Some(name) = names.iter().find(|name| !replaces && libraries.library(name).is_some()) {
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

fn list(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let (mut with_code, mut pattern) = (false, None);
    let mut index = 2;
    while index < args.len() {
        if !with_code && args.is(index, "WITHCODE") {
            with_code = true;
        } else if pattern.is_none() && args.is(index, "LIBRARYNAME") {
            index += 1;
            let text = args.get(index);
            pattern = Some(text.ok_or(Refusal::of("ERR library name argument was not given"))?);
        } else {
            let argument = String::from_utf8_lossy(args.at(index));
            return Err(Refusal::new(format!("ERR Unknown argument {argument}")));
        }
        index += 1;
    }
    server.libraries();
    let work = server.core.work();
    let reply = server.core.clients.reply(client);
    let header = reply.begin_array();
    let mut count = 0;
    for (name, library) in server.libraries.iter() {
        work.step();
        if pattern.is_some_and(|pattern| !glob::matches_ignoring_case(pattern, name, &work)) {
            continue;
        }
        count += 1;
        reply.map(3 + usize::from(with_code));
        reply.bulk("library_name");
        reply.bulk(name);
        reply.bulk("engine");
        reply.bulk("LUA");
        reply.bulk("functions");
        put_functions(reply, &library.functions);
        if with_code {
            reply.bulk("library_code");
            reply.bulk(&library.code);
        }
    }
    reply.end(header, count);
    Ok(())
}

fn put_functions(reply: &mut Reply, functions: &Registered) {
    reply.array(functions.len());
    for (name, function) in functions {
        reply.map(3);
        reply.bulk("name");
        reply.bulk(name);
        reply.bulk("description");
        match &function.description {
            Some(text) => reply.bulk(text),
            None => reply.null(),
        }
        reply.bulk("flags");
        let flags = lua::FUNCTION_FLAGS.into_iter().filter(|flag| function.flags.contains(flag));
        reply.set(function.flags.len());
        flags.for_each(|flag| reply.simple(flag));
    }
}

fn stats(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let running = server.running_function()?;
    let (libraries, functions) = server.libraries.counts();
    let reply = server.core.clients.reply(client);
    reply.map(2);
    reply.bulk("running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(running.name);
            reply.bulk("command");
            reply.array(running.command.len());
            running.command.iter().for_each(|word| reply.bulk(word));
            reply.bulk("duration_ms");
            reply.integer(running.millis);
        }
    }
    reply.bulk("engines");
    reply.map(1);
    reply.bulk("LUA");
    reply.map(2);
    reply.bulk("libraries_count");
    reply.integer(libraries as i64);
    reply.bulk("functions_count");
    reply.integer(functions as i64);
    Ok(())
}

fn kill(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.kill_script(Kind::Functions)?;
    server.core.clients.reply(client).ok();
    Ok(())
}
