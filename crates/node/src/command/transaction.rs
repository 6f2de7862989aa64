//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use super::{NodeFn, node};
use crate::server::Server;
use crate::server::queue::Queue;
use crate::session::Transaction;
use base::ConnectionId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::ids::WatcherId;
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<NodeFn>] = &[
    node("MULTI", multi)
        .doc("Starts a transaction.")
        .group(Group::Transactions)
        .since("1.2.0")
        .cost("O(1)")
        .with(Flags::RUNS_INSIDE_MULTI)
        .with(Flags::ALLOW_BUSY)
        .fast(),
    node("EXEC", exec)
        .doc("Executes all commands in a transaction.")
        .group(Group::Transactions)
        .since("1.2.0")
        .cost("Depends on commands in the transaction")
        .with(Flags::EXECUTES_QUEUE.union(Flags::RUNS_INSIDE_MULTI))
        .with(Flags::SKIP_SLOWLOG),
    node("DISCARD", discard)
        .doc("Discards a transaction.")
        .group(Group::Transactions)
        .since("2.0.0")
        .cost("O(N), when N is the number of queued commands")
        .with(Flags::RUNS_INSIDE_MULTI)
        .with(Flags::ALLOW_BUSY)
        .fast(),
    node("WATCH key [key ...]", watch)
        .needs_no_value()
        .key_use("RO")
        .doc("Monitors changes to keys to determine the execution of a transaction.")
        .group(Group::Transactions)
        .since("2.2.0")
        .cost("O(1) for every key.")
        .with(Flags::RUNS_INSIDE_MULTI)
        .with(Flags::ALLOW_BUSY)
        .fast(),
    node("UNWATCH", unwatch)
        .doc("Forgets about watched keys of a transaction.")
        .group(Group::Transactions)
        .since("2.2.0")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY)
        .fast(),
];

fn multi(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.clients.at(client).transaction.is_some() {
        return Err(Refusal::of("ERR MULTI calls can not be nested"));
    }
    server.core.clients.at_mut(client).transaction = Some(Transaction::default());
    server.core.clients.reply(client).ok();
    Ok(())
}

fn exec(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let Some(transaction) = server.core.clients.at_mut(client).transaction.take() else {
        return Err(Refusal::of("ERR EXEC without MULTI"));
    };
    let expired = server.core.expired_watched_keys(client);
    let is_dirty = server.core.clients.at(client).is_dirty || !expired.is_empty();
    server.core.unwatch(client);
    if transaction.is_broken {
        return Err(Refusal::of("EXECABORT Transaction discarded because of previous errors."));
    }
    if is_dirty {
        // The abort reveals that somebody changed a watched key, or that its time has come.
        server.core.shard.unit.whole = true;
        server.core.note_expired(client, &expired);
        server.core.clients.reply(client).null_array();
        return Ok(());
    }
    server.core.clients.reply(client).array(transaction.queued().len());
    server.core.clients.at_mut(client).is_in_exec = true;
    let begun = server.core.context(&server.core.asker(client));
    let began = server.core.process.options.clock.monotonic();
    server.run_queue(client, Queue::new(transaction, begun, began));
    Ok(())
}

fn discard(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    if server.core.clients.at(client).transaction.is_none() {
        return Err(Refusal::of("ERR DISCARD without MULTI"));
    }
    server.core.discard_transaction(client);
    server.core.clients.reply(client).ok();
    Ok(())
}

fn watch(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if server.core.clients.at(client).transaction.is_some() {
        return Err(Refusal::of("ERR WATCH inside MULTI is not allowed"));
    }
    let database = server.core.clients.at(client).database;
    let due_by = server.core.context(&server.core.asker(client)).due_by();
    let work = server.core.work();
    for key in args.from(1) {
        work.step();
        let watcher = WatcherId(client.0);
        let is_expired = server.core.shard.engine.keyspace.is_expired(database, key, due_by);
        // Asked of the key's watchers, which are few, rather than of the client's keys.
        if server.core.interest.watchers.watch(watcher, database, key, is_expired) {
            server.core.clients.at_mut(client).watched.add(database, key);
        }
    }
    server.core.clients.reply(client).ok();
    Ok(())
}

fn unwatch(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    server.core.unwatch(client);
    server.core.clients.reply(client).ok();
    Ok(())
}
