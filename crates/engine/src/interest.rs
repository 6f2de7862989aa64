//! Who is interested in a key: clients that watch it for a transaction, clients that wait for it.
//!
//! Both maps are empty on most servers most of the time, and [`crate::tx::Tx`] asks that first.

use crate::unit::{WaiterId, WatcherId};
use base::DatabaseId;
use std::collections::{BTreeMap, VecDeque};

type Place = (DatabaseId, Vec<u8>);

/// Watched keys (WATCH). Node registers and forgets; the engine tells who is dirtied.
#[derive(Default)]
pub struct Watchers {
    by_key: BTreeMap<Place, Vec<WatcherId>>,
}

impl Watchers {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Watches a key; watching it twice is watching it once.
    pub fn watch(&mut self, watcher: WatcherId, database: DatabaseId, key: &[u8]) {
        let watchers = self.by_key.entry((database, key.to_vec())).or_default();
        if !watchers.contains(&watcher) {
            watchers.push(watcher);
        }
    }

    pub fn unwatch(&mut self, watcher: WatcherId, database: DatabaseId, key: &[u8]) {
        let place = (database, key.to_vec());
        if let Some(watchers) = self.by_key.get_mut(&place) {
            watchers.retain(|w| *w != watcher);
            if watchers.is_empty() {
                self.by_key.remove(&place);
            }
        }
    }

    /// Appends the watchers of a key that changed.
    pub fn dirty(&self, database: DatabaseId, key: &[u8], dirtied: &mut Vec<WatcherId>) {
        if let Some(watchers) = self.by_key.get(&(database, key.to_vec())) {
            dirtied.extend_from_slice(watchers);
        }
    }

    /// All watched keys of a database with their watchers.
    pub fn of_database(
        &self,
        database: DatabaseId,
    ) -> impl Iterator<Item = (&[u8], &[WatcherId])> {
        self.by_key
            .range((database, Vec::new())..(DatabaseId(database.0 + 1), Vec::new()))
            .map(|((_, key), watchers)| (key.as_slice(), watchers.as_slice()))
    }
}

/// Keys that blocked clients wait for, first come first served.
#[derive(Default)]
pub struct Waiters {
    by_key: BTreeMap<Place, VecDeque<WaiterId>>,
}

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether anybody waits for the key.
    pub fn wait_for(&self, database: DatabaseId, key: &[u8]) -> bool {
        self.by_key.contains_key(&(database, key.to_vec()))
    }

    /// Puts a client at the end of a key's queue, once.
    pub fn add(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8]) {
        let queue = self.by_key.entry((database, key.to_vec())).or_default();
        if !queue.contains(&waiter) {
            queue.push_back(waiter);
        }
    }

    pub fn remove(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8]) {
        let place = (database, key.to_vec());
        if let Some(queue) = self.by_key.get_mut(&place) {
            queue.retain(|w| *w != waiter);
            if queue.is_empty() {
                self.by_key.remove(&place);
            }
        }
    }

    /// The clients that wait for a key, in the order in which they came.
    pub fn queue(&self, database: DatabaseId, key: &[u8]) -> Vec<WaiterId> {
        self.by_key
            .get(&(database, key.to_vec()))
            .map(|queue| queue.iter().copied().collect())
            .unwrap_or_default()
    }

    /// The keys of a database that somebody waits for.
    pub fn keys_of(&self, database: DatabaseId) -> impl Iterator<Item = &[u8]> {
        self.by_key
            .range((database, Vec::new())..(DatabaseId(database.0 + 1), Vec::new()))
            .map(|((_, key), _)| key.as_slice())
    }
}
