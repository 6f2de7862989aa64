//! FCALL, FUNCTION (Redis documentation, "Redis functions"). How a library is kept and compiled
//! stands in `libraries`, how a function runs in `server/script`.

mod restore;

use super::{NodeFn, node};
use crate::core::Core;
use crate::libraries::{Registered, header_of};
use crate::scripts::PAUSE_WORK_STEPS;
use crate::server::Server;
use crate::server::script::{Wanted, key_count};
use base::{ConnectionId, DatabaseId, MonotonicNanos};
use engine::command::{Args, Command, Flags, Group, KeySpec, Outcome};
use engine::effect::Effect;
use engine::functions::Header;
use engine::glob;
use engine::refusal::{Refusal, quoted};
use engine::work::Work;
use lua::CodeKind;
use resp::Reply;
use restore::{dump, restore};

/// The longest time that the code of a library may run when it is loaded. Redis's number.
const LOAD_NANOS_MAX: u64 = 500_000_000;

/// The longest time that all code of one payload may run when it is restored: a server that renews
/// its lease between two turns must not be still for longer.
const RESTORE_NANOS_MAX: u64 = 5_000_000_000;

/// The longest time that the code of one command of a master may run: the master has run it, and
/// what is refused here is missing here. It bounds what never ends.
const MASTER_NANOS_MAX: u64 = 60_000_000_000;

/// The flags of commands that load libraries.
const LOADS: Flags = Flags::WRITE.union(Flags::DENYOOM).union(Flags::NEEDS_LIBRARIES);

pub const COMMANDS: &[Command<NodeFn>] = &[
    run("FCALL function numkeys [key [key ...]] [arg [arg ...]]", fcall)
        .key_use("RW+access+update")
        .doc("Invokes a function.")
        .with(Flags::MAY_REPLICATE.union(Flags::NEEDS_LIBRARIES)),
    run("FCALL_RO function numkeys [key [key ...]] [arg [arg ...]]", fcall_ro)
        .key_use("RO+access")
        .doc("Invokes a read-only function.")
        .with(Flags::READONLY.union(Flags::NEEDS_LIBRARIES)),
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
        .cost("O(N) where N is the number of functions")
        .with(Flags::NEEDS_LIBRARIES),
    function("FUNCTION LOAD [REPLACE] function-code", load)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Creates a library.")
        .cost("O(1) (considering compilation time is redundant)")
        .with(LOADS),
    function("FUNCTION RESTORE serialized-value [FLUSH | APPEND | REPLACE]", restore)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Restores all libraries from a payload.")
        .cost("O(N) where N is the number of functions on the payload")
        .with(LOADS),
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
    /// Changes the shard's libraries by a command.
    fn change_libraries(&mut self, effect: Effect<'_>) {
        let shard = &mut self.core.shard;
        let context = engine::unit::Context::background(self.core.turn.now, DatabaseId(0));
        shard
            .engine
            .tx(context, &mut shard.unit, &mut self.core.interest)
            .change_all(DatabaseId(0), effect);
    }

    /// Deletes libraries. What was compiled of them is forgotten at once, so that the rest of the
    /// unit does not find it.
    fn delete_libraries(&mut self, effect: Effect<'_>) {
        self.change_libraries(effect);
        let keyspace = &self.core.shard.engine.keyspace;
        self.libraries.follow(keyspace.libraries(), &keyspace.work);
    }

    /// Puts a library into the shard's state, and keeps its compiled functions.
    fn put_library(&mut self, code: &[u8], functions: Registered) {
        self.change_libraries(Effect::FunctionLoad { code });
        self.libraries.adopt(
            &name_of(code),
            functions,
            self.core.shard.engine.keyspace.libraries(),
        );
    }

    /// Compiles the code of one library of a command, which began with its first one at `began`.
    ///
    /// # Errors
    /// It is too long, ran for too long, is no library, or takes too much memory. A master's may
    /// take what it takes, but for time without end: the master has it already.
    fn compile_library(
        &mut self,
        client: ConnectionId,
        code: &[u8],
        began: MonotonicNanos,
    ) -> Result<Registered, Refusal> {
        let is_bound = !self.core.clients.at(client).is_master();
        if is_bound && code.len() > lua::SOURCE_BYTES_MAX {
            let text = "the code of a library may not be longer than";
            return Err(Refusal::new(format!("ERR {text} {} bytes", lua::SOURCE_BYTES_MAX)));
        }
        let name_bytes = Header::of(code).map_or(0, |header| header.name.len());
        if is_bound && name_bytes > LIBRARY_NAME_BYTES_MAX {
            let text = "the name of a library may not be longer than";
            return Err(Refusal::new(format!("ERR {text} {LIBRARY_NAME_BYTES_MAX} bytes")));
        }
        let (own_max, all_max) = match is_bound {
            true => (LOAD_NANOS_MAX, RESTORE_NANOS_MAX),
            false => (MASTER_NANOS_MAX, MASTER_NANOS_MAX),
        };
        let clock = std::sync::Arc::clone(&self.core.process.options.clock);
        let own_began = clock.monotonic();
        let work = self.core.work();
        let mut is_late = || {
            work.steps(PAUSE_WORK_STEPS);
            let now = clock.monotonic();
            now.since(own_began) > own_max || now.since(began) > all_max
        };
        let functions = self.libraries.compile(code, &mut is_late)?;
        if is_bound && !self.libraries.leaves_room(&work) {
            self.libraries.discard(functions);
            return Err(TOO_LARGE);
        }
        Ok(functions)
    }
}

/// The longest name of a library, in bytes. It is compared for each of the library's functions
/// when those come and go.
const LIBRARY_NAME_BYTES_MAX: usize = 64 << 10;

/// The refusal of a library that might not be loaded again after a restart.
const TOO_LARGE: Refusal = Refusal::of(
    "ERR not enough memory: with this library, functions would take more than half of the memory \
     that they may use",
);

/// The name of a library whose code has been compiled.
fn name_of(code: &[u8]) -> Vec<u8> {
    Header::of(code).expect("what was compiled has a first line").name
}

fn fcall(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    call(server, client, args, false)
}

fn fcall_ro(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    call(server, client, args, true)
}

fn call(server: &mut Server, client: ConnectionId, args: Args<'_>, is_read_only: bool) -> Outcome {
    server.show_script_call(client, args);
    let function = server.libraries.function(args.at(1));
    let function = function.ok_or_else(|| server.libraries.not_found())?;
    let name = String::from_utf8_lossy(function.0).into();
    let (script, declared) = (function.1.compiled, function.1.declared);
    if resp::integer::parse_i64(args.at(2)).is_none() {
        return Err(Refusal::of("ERR Bad number of keys provided"));
    }
    let keys = key_count(args, 2)?;
    let wanted =
        Wanted { kind: CodeKind::Functions, name, script, declared: Some(declared), is_read_only };
    server.run_script(client, wanted, args.tail(3), keys)
}

fn load(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let mut replaces = false;
    for index in 2..args.len() - 1 {
        if !args.is(index, "REPLACE") {
            let option = quoted(args.at(index));
            return Err(Refusal::new(format!("ERR Unknown option given: {option}")));
        }
        replaces = true;
    }
    let code = args.at(args.len() - 1);
    let name = header_of(code)?.name;
    if !replaces && server.libraries.contains(&name) {
        return Err(library_already_there(&name));
    }
    let began = server.core.process.options.clock.monotonic();
    let functions = server.compile_library(client, code, began)?;
    let taken = functions
        .keys()
        .find(|function| server.libraries.owner(function).is_some_and(|owner| owner != name));
    if let Some(function) = taken {
        let refusal = already_there("Function", function);
        server.libraries.discard(functions);
        return Err(refusal);
    }
    server.put_library(code, functions);
    server.core.clients.reply(client).bulk(&name);
    Ok(())
}

/// The refusal of a library whose name is taken, and of two with one name in one payload. That of
/// FUNCTION RESTORE for a name that is taken has no quotes ([`already_there`]).
fn library_already_there(name: &[u8]) -> Refusal {
    Refusal::new(format!("ERR Library '{}' already exists", String::from_utf8_lossy(name)))
}

fn already_there(what: &str, name: &[u8]) -> Refusal {
    Refusal::new(format!("ERR {what} {} already exists", String::from_utf8_lossy(name)))
}

fn delete(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    let name = args.at(2);
    if server.core.shard.engine.keyspace.libraries().code(name).is_none() {
        return Err(Refusal::of("ERR Library not found"));
    }
    server.delete_libraries(Effect::FunctionDelete { name });
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
        server.delete_libraries(Effect::FunctionFlush);
    }
    server.core.clients.reply(client).ok();
    Ok(())
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
            let argument = quoted(args.at(index));
            return Err(Refusal::new(format!("ERR Unknown argument {argument}")));
        }
        index += 1;
    }
    let work = server.core.work();
    let none = Registered::new();
    let Core { clients, shard, .. } = &mut server.core;
    let reply = clients.reply(client);
    let header = reply.begin_array();
    let mut count = 0;
    for (name, code) in shard.engine.keyspace.libraries().iter() {
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
        let compiled = server.libraries.library(name);
        put_functions(reply, compiled.map_or(&none, |library| &library.functions), &work);
        if with_code {
            reply.bulk("library_code");
            reply.bulk(code);
        }
    }
    reply.end(header, count);
    Ok(())
}

fn put_functions(reply: &mut Reply, functions: &Registered, work: &Work) {
    reply.array(functions.len());
    for (name, function) in functions {
        // A library may have a hundred thousand.
        work.step();
        if reply.is_over() {
            return;
        }
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
    let libraries = server.core.shard.engine.keyspace.libraries().len();
    let functions = server.libraries.functions_len();
    let reply = server.core.clients.reply(client);
    reply.map(2);
    reply.bulk("running_script");
    match running {
        None => reply.null(),
        Some(running) => {
            reply.map(3);
            reply.bulk("name");
            reply.bulk(running.name.as_bytes());
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
    server.kill_script(CodeKind::Functions)?;
    server.core.clients.reply(client).ok();
    Ok(())
}
