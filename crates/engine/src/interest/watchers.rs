//! The clients that watch keys (WATCH), by key. The node registers them and forgets them;
//! [`super::Interest`] asks whose transaction a change aborts.

use super::ByKey;
use crate::ids::WatcherId;
use base::DatabaseId;
use std::collections::BTreeMap;

/// Watched keys, and who watches each.
#[derive(Default)]
pub struct Watchers {
    by_key: ByKey<Watched>,
    /// Counts the lists of dirtied clients: a new one begins whenever the node has taken the last.
    list: u64,
}

/// The clients that watch one key.
#[derive(Default)]
struct Watched {
    watches: Vec<Watch>,
    /// All of them stand in this list of dirtied clients. A command may change a key any number of
    /// times, and the list is to be no longer for that.
    told_in: u64,
}

/// One client's watch on one key.
#[derive(Clone, Copy)]
struct Watch {
    watcher: WatcherId,
    /// The key was there but past its time when the client began to watch: for the client it was
    /// absent, so its deletion is no change.
    was_expired: bool,
}

/// A watched key before and after its database is emptied or exchanged.
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
        let watched = keys.entry(key.to_vec()).or_default();
        let is_new = !watched.watches.iter().any(|watch| watch.watcher == watcher);
        if is_new {
            watched.watches.push(Watch { watcher, was_expired: is_expired });
            watched.told_in = 0;
        }
        is_new
    }

    pub fn unwatch(&mut self, watcher: WatcherId, database: DatabaseId, key: &[u8]) {
        let Some(keys) = self.by_key.get_mut(&database) else { return };
        if let Some(watched) = keys.get_mut(key) {
            watched.watches.retain(|watch| watch.watcher != watcher);
            if watched.watches.is_empty() {
                keys.remove(key);
            }
        }
        if keys.is_empty() {
            self.by_key.remove(&database);
        }
    }

    /// Whether the key was past its time already when this client began to watch it.
    pub fn was_expired(&self, watcher: WatcherId, database: DatabaseId, key: &[u8]) -> bool {
        let watched = self.by_key.get(&database).and_then(|keys| keys.get(key));
        let mut watches = watched.into_iter().flat_map(|watched| &watched.watches);
        watches.any(|watch| watch.watcher == watcher && watch.was_expired)
    }

    /// How many keys of a database are watched.
    pub(crate) fn keys_len(&self, database: DatabaseId) -> usize {
        self.by_key.get(&database).map_or(0, BTreeMap::len)
    }

    /// The list that `dirtied` is.
    fn list_of(&mut self, dirtied: &[WatcherId]) -> u64 {
        self.list += u64::from(dirtied.is_empty());
        self.list
    }

    /// Appends the watchers of a key that changed. `exists`: it is there after the change.
    pub(crate) fn dirty(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        exists: bool,
        dirtied: &mut Vec<WatcherId>,
    ) {
        let list = self.list_of(dirtied);
        let watched = self.by_key.get_mut(&database).and_then(|keys| keys.get_mut(key));
        let Some(watched) = watched.filter(|watched| watched.told_in != list) else { return };
        watched.told_in = list;
        for watch in &mut watched.watches {
            if watch.was_expired && !exists {
                watch.was_expired = false;
                watched.told_in = 0;
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
        let list = self.list_of(dirtied);
        for (key, watched) in self.by_key.get_mut(&database).into_iter().flatten() {
            let replaced = look(key);
            let is_told = watched.told_in == list;
            watched.told_in = list;
            for watch in &mut watched.watches {
                let was_there = replaced.existed && !watch.was_expired;
                let is_there = replaced.exists && !replaced.is_expired;
                watch.was_expired = replaced.is_expired;
                if is_told {
                    continue;
                }
                if was_there || is_there {
                    dirtied.push(watch.watcher);
                } else {
                    watched.told_in = 0;
                }
            }
        }
    }
}
