//! Requests that wait for values that are not in memory.
//!
//! A request is parked until every value that it needs has come, and judged again from the gate
//! then. Meanwhile the values that it needs are pinned: those that have come must not go before
//! the last one is there. So what is pinned for all clients together has a limit: a request that
//! would exceed it waits for others to end, in the order in which they came.
//!
//! ```text
//!               no room           its turn            asks again
//! ask_room ────────────▶ queue ────────────▶ admitted ──────────▶ add ──▶ all came, or it went
//!      └───────────────────── room ───────────────────────────────▲          └──▶ take
//! ```

use base::{ConnectionId, MonotonicNanos};
use engine::ids::KeyHash;
use std::collections::{BTreeMap, VecDeque};
use tier::Place;

/// Who waits for which values.
#[derive(Default)]
pub(crate) struct Fetches {
    /// Clients by the place that they wait for.
    waiting: BTreeMap<u64, Vec<ConnectionId>>,
    /// What each client waits for.
    clients: BTreeMap<ConnectionId, Waiting>,
    /// Clients for whose values there is no room yet.
    queue: VecDeque<Asked>,
    /// Clients whose turn has come, and who have not asked again yet.
    admitted: BTreeMap<ConnectionId, Asked>,
    /// The one client whose request was put off, and whose values stay nevertheless.
    put_off: Option<ConnectionId>,
    /// Bytes of the values that are pinned, or will be for who is admitted.
    pinned_bytes: usize,
}

/// What a client's request waits for.
pub(crate) struct Waiting {
    /// When it began to wait.
    since: MonotonicNanos,
    /// Values that have not come yet.
    places: usize,
    /// The keys whose values it needs.
    pub pinned: Vec<KeyHash>,
    /// Bytes of those that were not in memory.
    bytes: usize,
}

/// Room that a client's request needs.
#[derive(Clone, Copy)]
struct Asked {
    client: ConnectionId,
    bytes: usize,
    since: MonotonicNanos,
}

/// What a client's request needs.
pub(crate) struct Needed {
    /// Values that have not come yet.
    pub places: Vec<Place>,
    /// The keys whose values it needs.
    pub pinned: Vec<KeyHash>,
    /// Bytes of those that were not in memory.
    pub bytes: usize,
}

impl Fetches {
    /// Asks for room for so many bytes of a client's values. Since when it waits, if it has it now;
    /// else [`Self::admit`] tells when its turn comes.
    pub fn ask_room(
        &mut self,
        client: ConnectionId,
        bytes: usize,
        bytes_max: usize,
        now: MonotonicNanos,
    ) -> Option<MonotonicNanos> {
        if let Some(asked) = self.admitted.remove(&client) {
            self.pinned_bytes -= asked.bytes;
            return Some(asked.since);
        }
        if let Some(known) = self.queue.iter_mut().find(|asked| asked.client == client) {
            known.bytes = bytes;
            return None;
        }
        let asked = Asked { client, bytes, since: now };
        if self.queue.is_empty() && self.has_room(&asked, bytes_max) {
            return Some(now);
        }
        self.queue.push_back(asked);
        None
    }

    fn has_room(&self, asked: &Asked, bytes_max: usize) -> bool {
        self.pinned_bytes == 0 || self.pinned_bytes + asked.bytes <= bytes_max
    }

    /// The next client for whose values there is room now: its request is to be judged again.
    pub fn admit(&mut self, bytes_max: usize) -> Option<ConnectionId> {
        let asked = *self.queue.front().filter(|asked| self.has_room(asked, bytes_max))?;
        self.queue.pop_front();
        self.pinned_bytes += asked.bytes;
        self.admitted.insert(asked.client, asked);
        Some(asked.client)
    }

    /// A client waits from `since` on for what its request needs.
    pub fn add(&mut self, client: ConnectionId, needed: Needed, since: MonotonicNanos) {
        let Needed { places, pinned, bytes } = needed;
        for place in &places {
            self.waiting.entry(place.bits()).or_default().push(client);
        }
        self.pinned_bytes += bytes;
        self.clients.insert(client, Waiting { since, places: places.len(), pinned, bytes });
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

    /// A client waits no more; what it has waited for.
    pub fn take(&mut self, client: ConnectionId) -> Option<Waiting> {
        if self.clients.is_empty() {
            return None;
        }
        let waiting = self.clients.remove(&client)?;
        self.pinned_bytes -= waiting.bytes;
        if self.put_off == Some(client) {
            self.put_off = None;
        }
        Some(waiting)
    }

    /// A client whose request was put off goes on having what was taken, with its pins, unless
    /// another one does: then it is handed back. If all had them, they would wait for each other's
    /// to leave memory; if none had, what came for a request could leave again before its turn.
    pub fn put_back(&mut self, client: ConnectionId, waiting: Waiting) -> Option<Waiting> {
        if self.put_off.is_some() {
            return Some(waiting);
        }
        self.put_off = Some(client);
        self.pinned_bytes += waiting.bytes;
        self.clients.insert(client, waiting);
        None
    }

    /// A client needs no room any more that it has not made use of.
    pub fn give_up(&mut self, client: ConnectionId) {
        if let Some(asked) = self.admitted.remove(&client) {
            self.pinned_bytes -= asked.bytes;
        }
        self.queue.retain(|asked| asked.client != client);
    }

    /// True while a client waits for values that have not come, or for room for them.
    pub fn awaits_values(&self) -> bool {
        !(self.waiting.is_empty() && self.queue.is_empty() && self.admitted.is_empty())
    }

    /// Whether no client waits.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.queue.is_empty() && self.admitted.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: MonotonicNanos = MonotonicNanos(7);

    fn client(number: u64) -> ConnectionId {
        ConnectionId(number)
    }

    fn needed(bytes: usize) -> Needed {
        Needed { places: vec![], pinned: vec![], bytes }
    }

    #[test]
    fn what_exceeds_the_limit_waits_for_others_in_its_turn() {
        let mut fetches = Fetches::default();
        for number in 1..=2 {
            assert_eq!(fetches.ask_room(client(number), 40, 100, NOW), Some(NOW));
            fetches.add(client(number), needed(40), NOW);
        }
        // The second of these would fit, and comes behind the first.
        assert_eq!(fetches.ask_room(client(3), 30, 100, NOW), None);
        assert_eq!(fetches.ask_room(client(4), 10, 100, NOW), None);
        assert_eq!(fetches.admit(100), None);
        fetches.take(client(1));
        let admitted = [(); 3].map(|()| fetches.admit(100));
        assert_eq!(admitted, [Some(client(3)), Some(client(4)), None]);
        assert_eq!(fetches.ask_room(client(3), 30, 100, MonotonicNanos(9)), Some(NOW));
        fetches.add(client(3), needed(30), NOW);
        // It needs it no more, or went.
        fetches.give_up(client(4));
        fetches.take(client(2));
        fetches.take(client(3));
        assert!(fetches.is_empty() && fetches.pinned_bytes == 0);
    }

    #[test]
    fn of_requests_that_are_put_off_one_keeps_what_came_for_it() {
        let mut fetches = Fetches::default();
        for number in 1..=2 {
            fetches.add(client(number), needed(40), NOW);
        }
        let put_off = |fetches: &mut Fetches, number| {
            let waiting = fetches.take(client(number))?;
            fetches.put_back(client(number), waiting)
        };
        for _ in 0..2 {
            assert!(put_off(&mut fetches, 1).is_none());
        }
        assert!(put_off(&mut fetches, 2).is_some());
        assert_eq!(fetches.pinned_bytes, 40);
        assert!(fetches.take(client(1)).is_some());
        fetches.add(client(2), needed(40), NOW);
        assert!(put_off(&mut fetches, 2).is_none());
    }

    #[test]
    fn one_that_exceeds_the_limit_by_itself_has_its_turn_when_no_other_waits() {
        let mut fetches = Fetches::default();
        assert_eq!(fetches.ask_room(client(1), 10, 100, NOW), Some(NOW));
        fetches.add(client(1), needed(10), NOW);
        assert_eq!(fetches.ask_room(client(2), 1000, 100, NOW), None);
        assert_eq!(fetches.ask_room(client(3), 1000, 100, NOW), None);
        fetches.give_up(client(2));
        assert_eq!(fetches.admit(100), None);
        fetches.take(client(1));
        assert_eq!(fetches.admit(100), Some(client(3)));
    }
}
