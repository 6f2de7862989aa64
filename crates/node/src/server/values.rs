//! Values that are not in memory: fetched for requests that wait; all moved out again, where a test
//! wants that.

use crate::core::Stop;
use crate::core::cold::needed_bytes;
use crate::fetches::Needed;
use crate::server::Server;
use crate::session::{Blocked, OwnedRequest, Why};
use base::ConnectionId;
use tier::Place;

impl Server {
    /// Has the values come that a request needs, which is being parked. Those that are there need
    /// not be waited for.
    pub(crate) fn fetch_for(&mut self, client: ConnectionId, request: &OwnedRequest) {
        let (pinned, cold) = self.core.needed_of(client, request);
        let bytes = cold.iter().map(|(_, value)| needed_bytes(*value)).sum();
        let (bytes_max, now) = (self.core.pinned_bytes_max(), self.core.lap_time());
        let Some(since) = self.fetches.ask_room(client, bytes, bytes_max, now) else { return };
        let (shard, mut places) = (&mut self.core.shard, Vec::new());
        let keyspace = &mut shard.engine.keyspace;
        if let Some(store) = keyspace.cold_mut() {
            pinned.iter().for_each(|hash| store.pin(*hash));
        }
        if let Some(tiering) = &mut shard.tiering {
            let need = tiering.need_of(cold.len(), bytes);
            for (hash, value) in cold {
                keyspace.work.step();
                if tiering.fetch(keyspace, hash, value, need) {
                    places.push(value.place);
                }
            }
        }
        if places.is_empty() {
            self.core.clients.resuming.push_back(client);
        }
        self.fetches.add(client, Needed { places, pinned, bytes }, since);
    }

    /// A client's request was judged again, and waits for values no more unless it has asked for
    /// room anew: others may have their turn.
    pub(crate) fn end_asking(&mut self, client: ConnectionId) {
        let waits = |why: &Blocked| matches!(why, Blocked::Parked { why: Why::Values, .. });
        let session = self.core.clients.sessions.get(client);
        if !session.and_then(|session| session.blocked.as_ref()).is_some_and(waits) {
            self.fetches.give_up(client);
        }
        self.admit_fetches();
    }

    /// A client has gone.
    pub(crate) fn forget_fetches(&mut self, client: ConnectionId) {
        if let Some(waited) = self.fetches.take(client) {
            self.core.unpin(&waited.pinned);
        }
        self.fetches.give_up(client);
        self.admit_fetches();
    }

    /// Has the requests judged again for whose values there is room now.
    fn admit_fetches(&mut self) {
        while let Some(client) = self.fetches.admit(self.core.pinned_bytes_max()) {
            self.core.clients.resuming.push_back(client);
        }
    }

    /// Reads what a snapshot under way needs of values that are not in memory.
    pub(crate) fn read_for_snapshot(&mut self) {
        let shard = &mut self.core.shard;
        if let Some(tiering) = &mut shard.tiering {
            tiering.read_for_snapshot(&mut shard.engine.keyspace);
        }
    }

    /// Takes up what was read and written of values that are not in memory.
    pub(crate) fn poll_tier(&mut self) {
        let shard = &mut self.core.shard;
        let Some(tiering) = &mut shard.tiering else { return };
        let mut arrived = std::mem::take(&mut self.arrived);
        let now = self.core.turn.monotonic;
        tiering.poll(&mut shard.engine.keyspace, now, &mut arrived);
        self.resume_for(arrived);
        // The limit may have changed.
        self.admit_fetches();
        self.discard_garbage();
        if let Some(why) = self.core.shard.engine.keyspace.cold_failure()
            && !matches!(self.core.stopping, Some(Stop::Demoted(_) | Stop::Now))
        {
            tracing::error!("{why}: begins again from snapshot and log, which have it");
            self.demote(why);
        }
    }

    /// Takes up what was read since the turn began: who waits for it need not wait for the next.
    /// How many these are: they come last in [`crate::core::Clients::resuming`].
    pub(crate) fn take_arrived(&mut self) -> usize {
        let before = self.core.clients.resuming.len();
        let shard = &mut self.core.shard;
        let Some(tiering) = &mut shard.tiering else { return 0 };
        let mut arrived = std::mem::take(&mut self.arrived);
        tiering.take_arrived(&mut shard.engine.keyspace, &mut arrived);
        self.resume_for(arrived);
        self.core.clients.resuming.len() - before
    }

    /// Has the requests judged again whose values have arrived.
    fn resume_for(&mut self, mut arrived: Vec<Place>) {
        if !arrived.is_empty() {
            let now = self.core.lap_time();
            let resuming = &mut self.core.clients.resuming;
            let durations = &mut self.core.process.tier_waits.fetches;
            for place in arrived.drain(..) {
                self.fetches.hear(place, |client, since| {
                    resuming.push_back(client);
                    durations.record(now.since(since));
                });
            }
        }
        self.arrived = arrived;
    }

    /// Moves every value out, behind each unit: where tests want none where it was.
    pub(crate) fn spill_all(&mut self) {
        if !self.core.process.settings.tier.is_all_cold {
            return;
        }
        let shard = &mut self.core.shard;
        let unit = &shard.unit;
        match unit.whole {
            true => shard.engine.keyspace.spill_all(self.core.turn.now),
            false => {
                let keyspace = &mut shard.engine.keyspace;
                keyspace.spill_keys(&unit.observed, self.core.turn.now);
                keyspace.spill_keys(&unit.written, self.core.turn.now);
            }
        }
        if let Some(store) = shard.engine.keyspace.cold_mut() {
            store.tier.close_pieces();
        }
        self.discard_garbage();
    }

    /// Has the big values freed that left memory.
    pub(crate) fn discard_garbage(&mut self) {
        let garbage = self.core.shard.engine.keyspace.take_garbage();
        if !garbage.is_empty() {
            self.core.discard(garbage);
        }
    }
}
