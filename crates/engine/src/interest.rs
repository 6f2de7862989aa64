//! Who is interested in a key: clients that watch it for a transaction, clients that wait for it.
//!
//! Both maps are empty on most servers most of the time, and [`crate::tx::Tx`] asks that first.

use crate::unit::{WaiterId, WatcherId};
use base::DatabaseId;
use std::collections::{BTreeMap, VecDeque};

/// A value for some keys of some databases. Two levels, so that a lookup needs no owned key. No
/// database's map is empty.
type ByKey<T> = BTreeMap<DatabaseId, BTreeMap<Vec<u8>, T>>;

/// Watched keys (WATCH). Node registers and forgets; the engine tells who is dirtied.
#[derive(Default)]
pub struct Watchers {
    by_key: ByKey<Vec<Watch>>,
}

/// One client's watch on one key.
#[derive(Clone, Copy)]
struct Watch {
    watcher: WatcherId,
    /// The key was there but past its time when the client began to watch: for the client it was
    /// absent, so its deletion is no change.
    was_expired: bool,
}

/// What becomes of a watched key when its database is emptied or exchanged.
#[derive(Clone, Copy)]
pub(crate) struct Replaced {
    /// It was there before.
    pub existed: bool,
    /// It is there afterwards.
    pub exists: bool,
    /// It is there afterwards, but past its time.
    pub is_expired: bool,
}

impl Watchers {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Watches a key; whether this client did not watch it already, for watching it twice is
    /// watching it once. `is_expired`: it is there, but past its time.
    pub fn watch(
        &mut self,
        watcher: WatcherId,
        database: DatabaseId,
        key: &[u8],
        is_expired: bool,
    ) -> bool {
        let keys = self.by_key.entry(database).or_default();
        let watches = keys.entry(key.to_vec()).or_default();
        let is_new = !watches.iter().any(|watch| watch.watcher == watcher);
        if is_new {
            watches.push(Watch { watcher, was_expired: is_expired });
        }
        is_new
    }

    pub fn unwatch(&mut self, watcher: WatcherId, database: DatabaseId, key: &[u8]) {
        let Some(keys) = self.by_key.get_mut(&database) else { return };
        if let Some(watches) = keys.get_mut(key) {
            watches.retain(|watch| watch.watcher != watcher);
            if watches.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.by_key.remove(&database);
        }
    }

    /// Whether the key was past its time already when this client began to watch it.
    pub fn was_expired(&self, watcher: WatcherId, database: DatabaseId, key: &[u8]) -> bool {
        let watches = self.by_key.get(&database).and_then(|keys| keys.get(key));
        let mut watches = watches.into_iter().flatten();
        watches.any(|watch| watch.watcher == watcher && watch.was_expired)
    }

    /// Appends the watchers of a key that changed. `exists`: it is there after the change.
    pub(crate) fn dirty(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        exists: bool,
        dirtied: &mut Vec<WatcherId>,
    ) {
        let watches = self.by_key.get_mut(&database).and_then(|keys| keys.get_mut(key));
        for watch in watches.into_iter().flatten() {
            if watch.was_expired && !exists {
                watch.was_expired = false;
            } else {
                dirtied.push(watch.watcher);
            }
        }
    }

    /// Appends the watchers of a database that is emptied or exchanged, but for those whose key
    /// stays absent. `look` tells what becomes of a key.
    pub(crate) fn replace_database(
        &mut self,
        database: DatabaseId,
        dirtied: &mut Vec<WatcherId>,
        look: impl Fn(&[u8]) -> Replaced,
    ) {
        for (key, watches) in self.by_key.get_mut(&database).into_iter().flatten() {
            let replaced = look(key);
            for watch in watches {
                let was_there = replaced.existed && !watch.was_expired;
                let is_there = replaced.exists && !replaced.is_expired;
                watch.was_expired = replaced.is_expired;
                if was_there || is_there {
                    dirtied.push(watch.watcher);
                }
            }
        }
    }
}

/// Keys that blocked clients wait for, first come first served.
#[derive(Default)]
pub struct Waiters {
    by_key: ByKey<VecDeque<WaiterId>>,
}

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether anybody waits for the key.
    pub fn wait_for(&self, database: DatabaseId, key: &[u8]) -> bool {
        self.by_key.get(&database).is_some_and(|keys| keys.contains_key(key))
    }

    /// Puts a client at the end of a key's queue, once.
    pub fn add(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8]) {
        let queue = self.by_key.entry(database).or_default().entry(key.to_vec()).or_default();
        // All keys of a command are added together: the client can only be the last in the queue.
        if queue.back() != Some(&waiter) {
            queue.push_back(waiter);
        }
    }

    pub fn remove(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8]) {
        let Some(keys) = self.by_key.get_mut(&database) else { return };
        if let Some(queue) = keys.get_mut(key) {
            // Who is served stands in front; only a timeout or a hangup looks further.
            if let Some(at) = queue.iter().position(|other| *other == waiter) {
                queue.remove(at);
            }
            if queue.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.by_key.remove(&database);
        }
    }

    /// The client with `at` others before it among those that wait for a key.
    pub fn nth(&self, database: DatabaseId, key: &[u8], at: usize) -> Option<WaiterId> {
        self.by_key.get(&database)?.get(key)?.get(at).copied()
    }

    /// The keys of a database that somebody waits for.
    pub fn keys_of(&self, database: DatabaseId) -> impl Iterator<Item = &[u8]> {
        self.by_key.get(&database).into_iter().flatten().map(|(key, _)| key.as_slice())
    }
}
