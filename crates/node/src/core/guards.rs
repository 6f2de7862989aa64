//! Keys that the server itself watches, as WATCH does it: a key under way to another server must
//! still be what was sent when it is deleted here.

use engine::ids::WatcherId;
use std::collections::BTreeMap;

/// Sets the names of guards apart from those of connections, which are counted from 1.
const GUARD: u64 = 1 << 63;

/// The guards, and whether the key of each changed.
#[derive(Default)]
pub(crate) struct Guards {
    changed: BTreeMap<WatcherId, bool>,
    made: u64,
}

impl Guards {
    /// A new guard, of a key that is what it should be.
    pub fn add(&mut self) -> WatcherId {
        self.made += 1;
        let guard = WatcherId(GUARD | self.made);
        self.changed.insert(guard, false);
        guard
    }

    /// Forgets a guard; whether its key changed.
    pub fn remove(&mut self, guard: WatcherId) -> Option<bool> {
        self.changed.remove(&guard)
    }

    /// What a watcher watches was changed; whether it is a guard.
    pub fn note_changed(&mut self, watcher: WatcherId) -> bool {
        if let Some(changed) = self.changed.get_mut(&watcher) {
            *changed = true;
        }
        watcher.0 & GUARD != 0
    }
}
