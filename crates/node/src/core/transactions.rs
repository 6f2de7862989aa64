//! What WATCH and MULTI keep for a client, and how it ends.

use super::Core;
use base::{ConnectionId, DatabaseId};
use engine::ids::WatcherId;
use engine::unit::Overdue;

impl Core {
    /// Forgets a session's queued commands and watched keys.
    pub(crate) fn discard_transaction(&mut self, client: ConnectionId) {
        self.clients.at_mut(client).transaction = None;
        self.unwatch(client);
    }

    pub(crate) fn unwatch(&mut self, client: ConnectionId) {
        let (work, watcher) = (self.work(), WatcherId(client.0));
        for (database, key) in std::mem::take(&mut self.clients.at_mut(client).watched).iter() {
            work.step();
            self.interest.watchers.unwatch(watcher, *database, key);
        }
        self.clients.at_mut(client).is_dirty = false;
    }

    /// The watched keys that became due and are not deleted yet, and those with fields that are
    /// due. Fields count also if they were due when the key was watched: where due fields are
    /// deleted, they soon will be, and a transaction that is tried again finds them gone.
    pub(crate) fn expired_watched_keys(&self, client: ConnectionId) -> Vec<(DatabaseId, Vec<u8>)> {
        let keyspace = &self.shard.engine.keyspace;
        let watcher = WatcherId(client.0);
        let context = self.context(&self.asker(client));
        let due_by = context.due_by();
        let is_expired = |(database, key): &&(DatabaseId, Vec<u8>)| {
            keyspace.work.step();
            let is_expired = keyspace.is_expired(*database, key, due_by)
                || context.overdue == Overdue::Deleted
                    && keyspace.has_due_fields(*database, key, due_by);
            is_expired && !self.interest.watchers.was_expired(watcher, *database, key)
        };
        self.clients.at(client).watched.iter().filter(is_expired).cloned().collect()
    }

    /// Keys are shown to be past their time, as by a read.
    pub(crate) fn note_expired(&mut self, client: ConnectionId, keys: &[(DatabaseId, Vec<u8>)]) {
        let context = self.context(&self.asker(client));
        let shard = &mut self.shard;
        shard.engine.look(context, &mut shard.unit, &mut self.interest, |view| {
            for (database, key) in keys {
                view.peek_in(*database, key);
            }
        });
    }
}
