//! The clients that are blocked until a key has something for them (BLPOP and its kin), by key. The
//! node adds and removes them; [`super::Interest`] asks whether anybody waits for a changed key.

use super::ByKey;
use crate::ids::WaiterId;
use base::DatabaseId;
use std::collections::VecDeque;

/// Keys that blocked clients wait for, first come first served.
#[derive(Default)]
pub struct Waiters {
    by_key: ByKey<Queue>,
    /// Counts the lists of ready keys: a new one begins whenever the node has taken the last.
    list: u64,
}

/// The clients that wait for one key.
#[derive(Default)]
struct Queue {
    waiters: VecDeque<Waiter>,
    /// How many of the clients in the queue must hear when the key is deleted or changes its type.
    hear_end: usize,
    /// The key stands in this list of ready keys: once is enough, however often it changes.
    told_in: u64,
}

/// A client in a key's queue.
#[derive(Clone, Copy)]
struct Waiter {
    id: WaiterId,
    /// Whether it must hear when the key is deleted or changes its type.
    hears_end: bool,
}

impl Waiters {
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Appends a key that may serve somebody once the unit ends, if somebody waits for it.
    pub(crate) fn serve(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        ready: &mut Vec<(DatabaseId, Vec<u8>)>,
    ) {
        self.list += u64::from(ready.is_empty());
        let queue = self.by_key.get_mut(&database).and_then(|keys| keys.get_mut(key));
        if let Some(queue) = queue.filter(|queue| queue.told_in != self.list) {
            queue.told_in = self.list;
            ready.push((database, key.to_vec()));
        }
    }

    /// Puts a client at the end of a key's queue, once. `hears_end`: it must also hear when the key
    /// is deleted or changes its type.
    pub fn add(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8], hears_end: bool) {
        let queue = self.by_key.entry(database).or_default().entry(key.to_vec()).or_default();
        // All keys of a command are added together: the client can only be the last in the queue.
        if queue.waiters.back().is_none_or(|last| last.id != waiter) {
            queue.waiters.push_back(Waiter { id: waiter, hears_end });
            queue.hear_end += usize::from(hears_end);
        }
    }

    pub fn remove(&mut self, waiter: WaiterId, database: DatabaseId, key: &[u8]) {
        let Some(keys) = self.by_key.get_mut(&database) else { return };
        if let Some(queue) = keys.get_mut(key) {
            // Who is served stands in front; only a timeout or a hangup looks further.
            if let Some(at) = queue.waiters.iter().position(|other| other.id == waiter) {
                let removed = queue.waiters.remove(at);
                queue.hear_end -= usize::from(removed.is_some_and(|it| it.hears_end));
            }
            if queue.waiters.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.by_key.remove(&database);
        }
    }

    /// The client with `at` others before it among those that wait for a key.
    pub fn nth(&self, database: DatabaseId, key: &[u8], at: usize) -> Option<WaiterId> {
        self.by_key.get(&database)?.get(key)?.waiters.get(at).map(|waiter| waiter.id)
    }

    /// Whether a client waits for the key and must hear when the key is deleted or changes its
    /// type.
    pub fn hears_end(&self, database: DatabaseId, key: &[u8]) -> bool {
        let queue = self.by_key.get(&database).and_then(|keys| keys.get(key));
        queue.is_some_and(|queue| queue.hear_end > 0)
    }

    /// The keys of a database that somebody waits for.
    pub fn keys_of(&self, database: DatabaseId) -> impl Iterator<Item = &[u8]> {
        self.by_key.get(&database).into_iter().flatten().map(|(key, _)| key.as_slice())
    }
}
