//! Watched keys.

use super::ByKey;
use crate::unit::WatcherId;
use base::DatabaseId;

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
