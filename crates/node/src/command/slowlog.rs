//! SLOWLOG (Redis documentation, SLOWLOG).

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;
use engine::value::text::canonical_integer;

pub const COMMANDS: &[Command<NodeFn>] = &[
    slowlog("SLOWLOG GET [count]", get)
        .tips(&["request_policy:all_nodes", "nondeterministic_output"])
        .doc("Returns the slow log's entries.")
        .since("2.2.12")
        .cost("O(N) where N is the number of entries returned")
        .with(Flags::WHOLE_KEYSPACE),
    slowlog("SLOWLOG LEN", len)
        .tips(&["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"])
        .doc("Returns the number of entries in the slow log.")
        .since("2.2.12")
        .cost("O(1)"),
    slowlog("SLOWLOG RESET", reset)
        .tips(&["request_policy:all_nodes", "response_policy:all_succeeded"])
        .doc("Clears all entries from the slow log.")
        .since("2.2.12")
        .cost("O(N) where N is the number of entries in the slowlog"),
];

/// Declares a subcommand of SLOWLOG.
const fn slowlog(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).allowed_in_scripts().admin().group(Group::Server)
}

/// Entries that GET returns unless it is told how many (Redis 7.0).
const COUNT_DEFAULT: usize = 10;

fn get(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::arity("slowlog|get"));
    }
    let count = match args.get(2).map(canonical_integer) {
        None => COUNT_DEFAULT,
        Some(Some(-1)) => usize::MAX,
        Some(Some(count @ 0..)) => usize::try_from(count).unwrap_or(usize::MAX),
        Some(_) => {
            return Err(Refusal::of("ERR count should be greater than or equal to -1"));
        }
    };
    let reply = server.core.clients.reply(client);
    reply.array(server.core.process.slowlog.entries().len().min(count));
    let entries = server.core.process.slowlog.entries().take(count);
    server.core.shard.engine.keyspace.work.reply_each(entries, reply, |entry, reply| {
        reply.array(6);
        reply.integer(entry.id as i64);
        reply.integer(entry.at_seconds);
        reply.integer(entry.micros as i64);
        reply.array(entry.arguments.len());
        for argument in &entry.arguments {
            reply.bulk(argument);
        }
        reply.bulk(&entry.peer);
        reply.bulk(&entry.name);
    });
    Ok(())
}

fn len(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.clients.reply(client).integer(server.core.process.slowlog.entries().len() as i64);
    Ok(())
}

fn reset(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.process.slowlog.reset();
    server.core.clients.reply(client).ok();
    Ok(())
}
