//! Requests that wait for values that are not in memory.
//!
//! A request is parked until every value that it needs has come, and judged again from the gate
//! then. Meanwhile the values that it needs are pinned: those that have come must not go before
//! the last one is there.

use base::{ConnectionId, MonotonicNanos};
use engine::ids::KeyHash;
use std::collections::BTreeMap;
use tier::Place;

/// Who waits for which values.
#[derive(Default)]
pub(crate) struct Fetches {
    /// Clients by the place that they wait for.
    waiting: BTreeMap<u64, Vec<ConnectionId>>,
    /// What each client waits for.
    clients: BTreeMap<ConnectionId, Waiting>,
}

/// What a client's request waits for.
struct Waiting {
    /// When it began to wait.
    since: MonotonicNanos,
    /// Values that have not come yet.
    places: usize,
    /// The keys whose values it needs.
    pinned: Vec<KeyHash>,
}

impl Fetches {
    /// A client waits from `since` on for the values at these places, and has these keys pinned.
    pub fn add(
        &mut self,
        client: ConnectionId,
        places: &[Place],
        pinned: Vec<KeyHash>,
        since: MonotonicNanos,
    ) {
        for place in places {
            self.waiting.entry(place.bits()).or_default().push(client);
        }
        self.clients.insert(client, Waiting { since, places: places.len(), pinned });
    }

    /// The value at a place has come, or is there no more; hands over who waits for nothing else,
    /// and since when.
    pub fn hear(&mut self, place: Place, mut tell: impl FnMut(ConnectionId, MonotonicNanos)) {
        for client in self.waiting.remove(&place.bits()).unwrap_or_default() {
            let Some(waiting) = self.clients.get_mut(&client) else { continue };
            waiting.places = waiting.places.saturating_sub(1);
            if waiting.places == 0 {
                tell(client, waiting.since);
            }
        }
    }

    /// A client waits no more; which keys were pinned for it.
    pub fn take_pinned(&mut self, client: ConnectionId) -> Vec<KeyHash> {
        if self.clients.is_empty() {
            return Vec::new();
        }
        self.clients.remove(&client).map_or(Vec::new(), |waiting| waiting.pinned)
    }

    /// Whether no client waits.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }
}
