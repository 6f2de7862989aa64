//! Keys that blocked clients wait for.

use super::ByKey;
use crate::unit::WaiterId;
use base::DatabaseId;
use std::collections::VecDeque;

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
