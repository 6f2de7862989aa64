//! Snapshots, as clients know them: who asked for one, who waits for it, and what INFO shows. The
//! shard takes them (`shard/snapshots.rs`).

use crate::server::Server;
use crate::session::{Blocked, Session};
use base::{ConnectionId, Sequence};
use engine::refusal::Refusal;
use peers::reports::Reported;
use shard::snapshots::{Busy, MemberSighting, TurnFacts, Unseen};

impl Server {
    /// Asks for a snapshot (BGSAVE). With `schedule` one that runs already is followed by another.
    ///
    /// # Errors
    /// One is under way, or there is no place for snapshots.
    pub(crate) fn request_snapshot(&mut self, schedule: bool) -> Result<(), Refusal> {
        let now = self.core.turn.monotonic;
        let busy = |_: Busy| Refusal::of("ERR Background save already in progress");
        self.core.snapshots_to_take()?.request(schedule, now).map_err(busy)
    }

    /// Asks for a snapshot that holds everything until now.
    ///
    /// # Errors
    /// There is no place for snapshots.
    pub(crate) fn want_snapshot_for_replica(&mut self) -> Result<(), Refusal> {
        let now = self.core.turn.monotonic;
        self.core.snapshots_to_take()?.request_of_now(now);
        Ok(())
    }

    /// Leaves a session waiting for the snapshot that was just asked for (SAVE).
    pub(crate) fn wait_for_snapshot(&mut self, client: ConnectionId) {
        self.saves_waiting.push(client);
        self.core.block(client, Blocked::Snapshot);
    }

    /// One turn's share of the snapshots.
    pub(crate) fn advance_snapshots(&mut self) {
        let turn = TurnFacts {
            now: self.core.turn.now,
            monotonic: self.core.turn.monotonic,
            leads: self.core.leadership.roles.leads(),
            is_private: self.core.process.settings.snapshots_are_private,
            hears_primary: self.members.lag().is_some(),
            client_bytes: self.core.client_bytes(),
        };
        let Some(snapshots) = &mut self.core.snapshots else { return };
        snapshots.collect(&mut self.core.shard, &turn, &mut self.news);
        // Who is sent what was published pins it before the next step removes what nobody needs.
        self.take_news();
        let Some(snapshots) = &mut self.core.snapshots else { return };
        if snapshots.is_judgement_due(&turn) {
            let reports = self.sightings();
            if let Some(snapshots) = &mut self.core.snapshots {
                snapshots.judge(&mut self.core.shard, &turn, &reports);
            }
        }
        if let Some(snapshots) = &mut self.core.snapshots {
            snapshots.advance(&mut self.core.shard, &turn, &mut self.news);
        }
        let garbage = self.core.shard.engine.keyspace.take_garbage();
        self.core.discard(garbage);
        self.take_news();
    }

    /// Answers the clients that wait for the snapshot.
    pub(crate) fn answer_saves(&mut self, is_ok: bool) {
        for client in std::mem::take(&mut self.saves_waiting) {
            let waits = |it: &Session| matches!(it.blocked, Some(Blocked::Snapshot));
            if !self.core.clients.has(client) || !waits(self.core.clients.at(client)) {
                continue;
            }
            self.core.unblock(client);
            let written = self.core.clients.at(client).output.end();
            let reply = self.core.clients.reply(client);
            if is_ok {
                reply.ok();
            } else {
                reply.error(b"ERR the snapshot failed, the log says why");
            }
            self.core.finish_reply(client, written, Sequence::ZERO);
            self.core.enqueue(client);
        }
    }

    /// What is said of the snapshots: to a primary by its replicas; by a primary to this replica.
    fn sightings(&self) -> Vec<MemberSighting> {
        if self.core.leadership.roles.leads() {
            let reports = self.members.reports.iter();
            return reports.map(|(client, reported)| self.sighting(client, reported)).collect();
        }
        let Some(newest) = self.members.primary_snapshot() else { return Vec::new() };
        let member = self.core.process.member();
        let address = format!("{}:{}", member.host, member.port);
        let at = self.core.turn.monotonic;
        vec![MemberSighting { address, snapshot: Some(newest), at, client: String::new() }]
    }

    /// The connection of a replica is gone.
    pub(crate) fn note_departed(&mut self, client: ConnectionId) {
        let Some(reported) = self.members.reports.forget(client) else { return };
        let report = self.sighting(client, &reported);
        if self.core.leadership.roles.leads()
            && let Some(snapshots) = &mut self.core.snapshots
        {
            snapshots.note_departed(report);
        }
    }

    /// Which snapshots a replica sees that reports.
    fn sighting(&self, client: ConnectionId, reported: &Reported) -> MemberSighting {
        let session = self.core.clients.at(client);
        MemberSighting {
            address: reported.address(),
            snapshot: reported.report.snapshot,
            at: reported.at,
            client: format!("client {} from {}", session.who.id, session.who.peer),
        }
    }

    /// For INFO: who does not see the snapshots, and what waits for them.
    pub(crate) fn snapshots_unseen(&self) -> Unseen {
        let now = self.core.turn.monotonic;
        self.core.snapshots.as_ref().map(|it| it.unseen(now)).unwrap_or_default()
    }
}
