//! MEMORY (Redis documentation, MEMORY).

use super::info::process::Memory;
use super::info::ratio;
use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::refusal::Refusal;
use engine::value::entry_bytes;
use engine::value::text::canonical_integer;
use resp::Reply;

pub const COMMANDS: &[Command<NodeFn>] = &[
    memory("MEMORY DOCTOR", doctor)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("Outputs a memory problems report."),
    memory("MEMORY MALLOC-STATS", allocator)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("Returns the allocator statistics."),
    memory("MEMORY PURGE", purge)
        .tips(&["request_policy:all_shards", "response_policy:all_succeeded"])
        .doc("Asks the allocator to release memory."),
    memory("MEMORY STATS", stats)
        .tips(&["nondeterministic_output", "request_policy:all_shards", "response_policy:special"])
        .doc("Returns details about memory usage.")
        .with(Flags::WHOLE_KEYSPACE),
    memory("MEMORY USAGE key [SAMPLES count]", usage)
        .needs_no_value()
        .key_use("RO")
        .doc("Estimates the memory usage of a key.")
        .with(Flags::READONLY),
];

/// Declares a subcommand of MEMORY.
const fn memory(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function)
        .allowed_in_scripts()
        .needs_data()
        .group(Group::Server)
        .since("4.0.0")
        .cost("O(1)")
}

/// The engine counts bytes as it goes, so nothing is sampled: SAMPLES is checked and changes
/// nothing.
fn usage(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    match args.len() {
        3 => {}
        5 if args.is(3, "SAMPLES") => {
            let samples = canonical_integer(args.at(4)).ok_or(Refusal::NOT_AN_INTEGER)?;
            if samples < 0 {
                return Err(Refusal::SYNTAX);
            }
        }
        _ => return Err(Refusal::SYNTAX),
    }
    let key = args.at(2);
    let context = server.core.context(&server.core.asker(client));
    let shard = &mut server.core.shard;
    let bytes = shard.engine.look(context, &mut shard.unit, &mut server.core.interest, |view| {
        // Of a value that is not in memory, what is: its key, its expiry and where it lies.
        view.peek(key).map(entry_bytes)
    });
    match bytes {
        Some(bytes) => server.core.clients.reply(client).integer(bytes as i64),
        None => server.core.clients.reply(client).null(),
    }
    Ok(())
}

fn stats(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let memory = Memory::of(server);
    let machine = server.core.process.options.machine.usage();
    let keys = server.core.shard.engine.keyspace.len() as u64;
    let databases: Vec<(u32, u64, u64)> = server
        .core
        .shard
        .engine
        .keyspace
        .databases()
        .filter(|(_, database)| !database.is_empty())
        .map(|(id, database)| {
            let expiries = database.expiry_bytes() as u64;
            (id.0, database.table().allocated_bytes() as u64, expiries)
        })
        .collect();
    let reply = server.core.clients.reply(client);
    // The fixed fields below, and one for each database with keys.
    reply.map(27 + databases.len());
    count(reply, "peak.allocated", memory.peak);
    count(reply, "total.allocated", memory.used);
    for name in ["startup.allocated", "replication.backlog"] {
        count(reply, name, 0);
    }
    count(reply, "clients.slaves", memory.replicas);
    count(reply, "clients.normal", memory.clients);
    for name in ["cluster.links", "aof.buffer", "lua.caches", "functions.caches"] {
        count(reply, name, 0);
    }
    for (id, table, expiries) in databases {
        reply.bulk(format!("db.{id}"));
        reply.map(3);
        count(reply, "overhead.hashtable.main", table);
        count(reply, "overhead.hashtable.expires", expiries);
        count(reply, "overhead.hashtable.slot-to-keys", 0);
    }
    count(reply, "overhead.total", memory.overhead);
    count(reply, "keys.count", keys);
    count(reply, "keys.bytes-per-key", memory.dataset().checked_div(keys).unwrap_or(0));
    count(reply, "dataset.bytes", memory.dataset());
    double(reply, "dataset.percentage", ratio(memory.dataset(), memory.used) * 100.0);
    double(reply, "peak.percentage", ratio(memory.used, memory.peak) * 100.0);
    let (allocator, resident) = (machine.allocator, machine.resident_bytes);
    count(reply, "allocator.allocated", allocator.allocated);
    count(reply, "allocator.active", allocator.active);
    count(reply, "allocator.resident", allocator.resident);
    let pairs = [
        ("allocator-fragmentation", allocator.active, allocator.allocated),
        ("allocator-rss", allocator.resident, allocator.active),
        ("rss-overhead", resident, allocator.resident),
    ];
    for (name, larger, smaller) in pairs {
        double(reply, &format!("{name}.ratio"), ratio(larger, smaller));
        count(reply, &format!("{name}.bytes"), larger.saturating_sub(smaller));
    }
    double(reply, "fragmentation", ratio(resident, memory.used));
    count(reply, "fragmentation.bytes", resident.saturating_sub(memory.used));
    Ok(())
}

fn count(reply: &mut Reply, name: &str, value: u64) {
    reply.bulk(name);
    reply.integer(value as i64);
}

fn double(reply: &mut Reply, name: &str, value: f64) {
    reply.bulk(name);
    reply.double(value);
}

/// Data below this much is not worth a diagnosis (Redis 7.0).
const SMALL_BYTES: u64 = 5 << 20;

fn doctor(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let memory = Memory::of(server);
    let usage = server.core.process.options.machine.usage();
    let mut report = String::new();
    if memory.used < SMALL_BYTES {
        report.push_str(
            "Hi Sam, this instance is empty or is using very little memory, so there is nothing \
             to say about it yet.\n",
        );
    } else {
        if memory.peak as f64 > memory.used as f64 * 1.5 {
            report.push_str(
                " * Peak memory: the data was more than 1.5 times as large at some time. The \
                 allocator keeps part of that and gives it back slowly.\n",
            );
        }
        if usage.resident_bytes as f64 > memory.used as f64 * 1.4 {
            report.push_str(
                " * High fragmentation: the process holds more than 1.4 times the bytes of its \
                 data.\n",
            );
        }
        if report.is_empty() {
            report.push_str("Hi Sam, I can't find any memory issue in your instance.\n");
        } else {
            report.insert_str(0, "Sam, I detected a few issues in this instance:\n\n");
        }
    }
    server.core.clients.reply(client).verbatim(b"txt", report);
    Ok(())
}

fn purge(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.process.options.machine.purge();
    server.core.clients.reply(client).ok();
    Ok(())
}

fn allocator(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let report = server.core.process.options.machine.allocator_report();
    server.core.clients.reply(client).verbatim(b"txt", report);
    Ok(())
}
