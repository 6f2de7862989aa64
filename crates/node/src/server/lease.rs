//! Primary or replica: what the loop asks of the shard's leadership, and what it means for clients
//! that the lease is over. Who leads, and why that is safe, stands in `shard/leadership.rs`; what a
//! replica refuses, and where it sends its clients, in `gate/replica.rs`.

use crate::core::{Clients, Core};
use crate::members::failover::hand_over;
use crate::server::Server;
use base::time::MILLISECOND;
use base::{ConnectionId, Moment};
use shard::leadership::Policy;
use std::collections::BTreeSet;
use txlog::Gate;

impl Server {
    /// A turn of the loop begins at this instant.
    pub(crate) fn begin_turn(&mut self, moment: Moment) {
        self.set_policy();
        let Core { leadership, shard, turn, stopwatch, process, .. } = &mut self.core;
        turn.monotonic = moment.monotonic;
        turn.cpu_began = shard.tiering.is_some().then(|| process.options.clock.thread_nanos());
        stopwatch.set(moment.monotonic, &*process.options.clock);
        turn.now = leadership.begin_turn(shard, moment);
        turn.number += 1;
        process.tier_waits.begin_turn(turn.monotonic, self.fetches.awaits_values());
    }

    /// Tells the shard what the operator decided, which may change while the process lives.
    pub(crate) fn set_policy(&mut self) {
        let settings = &self.core.process.settings;
        self.core.leadership.policy = Policy {
            may_lead: settings.replica_priority > 0,
            wall_is_right: settings.shard_clock_is_wall,
            clock_ahead_seconds_max: settings.clock_ahead_max,
        };
    }

    /// Takes what the log has to say.
    pub(crate) fn poll_log(&mut self) {
        let Core { process, leadership, shard, interest, .. } = &mut self.core;
        leadership.poll(shard, interest, &|| process.member(), &mut self.news);
        // Of the records that a replica has applied, and of what left memory for them.
        self.discard_garbage();
        self.take_news();
    }

    /// Does what leadership and lease ask for.
    pub(crate) fn advance_role(&mut self) {
        let is_busy = self.is_busy();
        let Core { process, leadership, shard, .. } = &mut self.core;
        leadership.advance(shard, is_busy, &|| process.member(), &mut self.news);
        self.core.turn.now = self.core.leadership.now();
        self.take_news();
    }

    /// Whether a client waits for something that the lease is needed for.
    fn is_busy(&self) -> bool {
        let Clients { ready, resuming, flushing, .. } = &self.core.clients;
        let clients_wait = !ready.is_empty() || !resuming.is_empty() || !flushing.is_empty();
        // Nothing of a key is sent without the lease, and no end of a migration is told.
        clients_wait || self.migrations.are_under_way() || self.suspended.is_some()
    }

    /// Disconnects who has waited for a lease's time while the lease is over, because the log does
    /// not answer. Nothing may be answered, and what was executed has an unknown outcome: that
    /// is what the end of a connection says, and a client may try elsewhere. Where nobody else
    /// could lead there is no elsewhere: a client of a lone server waits for its slow disk.
    pub(crate) fn shed_unserved(&mut self) {
        let Clients { ready, resuming, flushing, held, .. } = &self.core.clients;
        let waits = [ready.len(), resuming.len(), flushing.len(), held.len()] != [0; 4];
        if !waits
            || !self.core.leadership.is_lapsed
            || !self.core.leadership.roles.leads()
            || !self.core.shard.is_watched()
        {
            self.unserved_since = None;
            return;
        }
        // Not the turn's instant, which may lie a long command back: nobody has waited so long.
        let now = self.core.process.options.clock.monotonic();
        let since = *self.unserved_since.get_or_insert(now);
        if now.since(since) < self.core.process.settings.transaction_log_lease * MILLISECOND {
            return;
        }
        self.unserved_since = None;
        let Clients { ready, resuming, flushing, held, .. } = &self.core.clients;
        let held = held.iter().map(|(_, connection)| connection);
        let waiting = ready.iter().chain(resuming).chain(flushing).chain(held);
        // Some have gone already: what they wait for is forgotten when it is durable.
        let is_here = |connection: &&ConnectionId| self.core.clients.has(**connection);
        let waiting: BTreeSet<ConnectionId> = waiting.filter(is_here).copied().collect();
        if waiting.is_empty() {
            return;
        }
        tracing::warn!(clients = waiting.len(), "the log does not answer: disconnects who waits");
        for connection in waiting {
            self.core.close(connection);
        }
    }

    /// In how many nanoseconds leadership or log want a turn; `None`: not by time.
    pub(crate) fn role_wait_nanos(&mut self) -> Option<u64> {
        let is_busy = self.is_busy();
        let Core { leadership, shard, .. } = &mut self.core;
        leadership.wait_nanos(shard, is_busy)
    }

    /// Hands leadership over before the process ends, if somebody is there to take it. Whether
    /// that is done.
    pub(crate) fn has_handed_over(&mut self) -> bool {
        let is_alone = self.core.leadership.roles.is_alone() || !self.core.shard.is_watched();
        if self.core.leadership.roles.leads() && !is_alone && self.core.shard.gate() == Gate::Open {
            let successor = self.members.reports.best_successor(self.core.turn.monotonic);
            tracing::info!(?successor, "hands leadership over");
            hand_over(&mut self.core, successor);
            return false;
        }
        !self.core.shard.is_in_flight()
    }
}
