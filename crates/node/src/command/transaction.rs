//! Transactions: MULTI, EXEC, DISCARD, WATCH, UNWATCH.

use super::{SessionFn, session};
use crate::server::Server;
use crate::session::{Session, Transaction};
use base::DatabaseId;
use engine::command::{Args, Command, Flags, Group, Outcome};
use engine::ids::WatcherId;
use engine::refusal::Refusal;

pub const COMMANDS: &[Command<SessionFn>] = &[
    session("MULTI", multi)
        .doc("Starts a transaction.")
        .group(Group::Transactions)
        .since("1.2.0")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY)
        .fast(),
    session("EXEC", exec)
        .doc("Executes all commands in a transaction.")
        .group(Group::Transactions)
        .since("1.2.0")
        .cost("Depends on commands in the transaction")
        .with(Flags::SKIP_SLOWLOG),
    session("DISCARD", discard)
        .doc("Discards a transaction.")
        .group(Group::Transactions)
        .since("2.0.0")
        .cost("O(N), when N is the number of queued commands")
        .with(Flags::ALLOW_BUSY)
        .fast(),
    session("WATCH key [key ...]", watch)
        .doc("Monitors changes to keys to determine the execution of a transaction.")
        .group(Group::Transactions)
        .since("2.2.0")
        .cost("O(1) for every key.")
        .with(Flags::ALLOW_BUSY)
        .fast(),
    session("UNWATCH", unwatch)
        .doc("Forgets about watched keys of a transaction.")
        .group(Group::Transactions)
        .since("2.2.0")
        .cost("O(1)")
        .with(Flags::ALLOW_BUSY)
        .fast(),
];

fn multi(_: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    if session.transaction.is_some() {
        return Err(Refusal::of("ERR MULTI calls can not be nested"));
    }
    session.transaction = Some(Transaction::default());
    session.reply().ok();
    Ok(())
}

fn exec(server: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    let Some(transaction) = session.transaction.take() else {
        return Err(Refusal::of("ERR EXEC without MULTI"));
    };
    let expired = server.expired_watched_keys(session);
    let is_dirty = session.is_dirty || !expired.is_empty();
    server.unwatch(session);
    if transaction.is_broken {
        return Err(Refusal::of("EXECABORT Transaction discarded because of previous errors."));
    }
    if is_dirty {
        // The abort reveals that somebody changed a watched key, or that its time has come.
        server.core.shard.unit.whole = true;
        server.note_expired(session, &expired);
        session.reply().null_array();
        return Ok(());
    }
    session.reply().array(transaction.queued().len());
    session.is_in_exec = true;
    let begun = server.context(session);
    let work = server.work();
    for request in transaction.queued() {
        work.step();
        let mut context = server.context(session);
        context.may_block = false;
        // A record that renews the lease meanwhile moves no key past its time.
        (context.overdue, context.stands_at) = (begun.overdue, begun.stands_at);
        let written = session.output.end();
        let command = server.core.process.registry.command(request.command);
        // A right that was taken away since is missed by its command alone, as in Redis.
        if let Some(denied) = server.denied(session, command, request.args()) {
            server.refuse(session, written, &denied.refusal_in_exec());
            continue;
        }
        // What else may refuse was asked before EXEC: from here on it is all or nothing, also if
        // memory runs short on the way.
        server.call(session, request.command, request.args(), context);
    }
    session.is_in_exec = false;
    Ok(())
}

fn discard(server: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    if session.transaction.is_none() {
        return Err(Refusal::of("ERR DISCARD without MULTI"));
    }
    server.discard_transaction(session);
    session.reply().ok();
    Ok(())
}

fn watch(server: &mut Server, session: &mut Session, args: Args<'_>) -> Outcome {
    if session.transaction.is_some() {
        return Err(Refusal::of("ERR WATCH inside MULTI is not allowed"));
    }
    let database = session.database;
    let due_by = server.context(session).due_by();
    let work = server.work();
    for key in args.from(1) {
        work.step();
        let watcher = WatcherId(session.connection.0);
        let is_expired = server.core.shard.engine.keyspace.is_expired(database, key, due_by);
        // Asked of the key's watchers, which are few, rather than of the client's keys.
        if server.core.interest.watchers.watch(watcher, database, key, is_expired) {
            session.watched.add(database, key);
        }
    }
    session.reply().ok();
    Ok(())
}

fn unwatch(server: &mut Server, session: &mut Session, _: Args<'_>) -> Outcome {
    server.unwatch(session);
    session.reply().ok();
    Ok(())
}

impl Server {
    /// Forgets a session's queued commands and watched keys.
    pub(crate) fn discard_transaction(&mut self, session: &mut Session) {
        session.transaction = None;
        self.unwatch(session);
    }

    fn unwatch(&mut self, session: &mut Session) {
        let (work, watcher) = (self.work(), WatcherId(session.connection.0));
        for (database, key) in std::mem::take(&mut session.watched).iter() {
            work.step();
            self.core.interest.watchers.unwatch(watcher, *database, key);
        }
        session.is_dirty = false;
    }

    /// The watched keys whose time has come although nobody deleted them yet.
    fn expired_watched_keys(&self, session: &Session) -> Vec<(DatabaseId, Vec<u8>)> {
        let keyspace = &self.core.shard.engine.keyspace;
        let watcher = WatcherId(session.connection.0);
        let due_by = self.context(session).due_by();
        let is_expired = |(database, key): &&(DatabaseId, Vec<u8>)| {
            keyspace.work.step();
            keyspace.is_expired(*database, key, due_by)
                && !self.core.interest.watchers.was_expired(watcher, *database, key)
        };
        session.watched.iter().filter(is_expired).cloned().collect()
    }

    /// Keys are shown to be past their time, as by a read.
    fn note_expired(&mut self, session: &Session, keys: &[(DatabaseId, Vec<u8>)]) {
        let context = self.context(session);
        let shard = &mut self.core.shard;
        shard.engine.look(context, &mut shard.unit, &mut self.core.interest, |view| {
            for (database, key) in keys {
                view.peek_in(*database, key);
            }
        });
    }
}
