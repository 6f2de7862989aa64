//! Snapshots, as clients know them: who asked for one, who waits for it, and what INFO shows. The
//! shard takes them (`shard/snapshots.rs`).

use crate::core::Core;
use crate::members::Reported;
use crate::server::Server;
use crate::session::{Blocked, Session};
use archive::SnapshotStore;
use base::{ConnectionId, DiskQueue, Sequence, UnixMillis};
use engine::refusal::Refusal;
use shard::snapshots::{Busy, Pace, Report, Sighting, Snapshots, Status, Turn, Unseen};
use std::sync::Arc;

impl Core {
    /// Whether so much waits for the snapshot's disk that writing commands must wait too.
    pub(crate) fn is_snapshot_behind(&self) -> bool {
        self.snapshots.as_ref().is_some_and(Snapshots::is_behind)
    }

    /// Whether the next turn should not wait, because a snapshot can go on.
    pub(crate) fn is_snapshot_ready(&self) -> bool {
        let is_ready = |it: &Snapshots| it.is_ready(&self.shard);
        self.leadership.roles.leads() && self.snapshots.as_ref().is_some_and(is_ready)
    }

    /// The newest snapshot in the own store, as far as others should be able to see it.
    pub(crate) fn newest_snapshot(&self) -> Option<Sighting> {
        let is_private = self.process.settings.snapshots_are_private;
        self.snapshots.as_ref().filter(|_| !is_private).and_then(Snapshots::newest)
    }

    /// Lets the server take snapshots, at this pace. `queue` is for nothing else: what the log
    /// waits for must not wait for snapshots.
    pub fn keep_snapshots(&mut self, store: SnapshotStore, queue: Box<dyn DiskQueue>, pace: Pace) {
        let clock = Arc::clone(&self.process.options.clock);
        self.snapshots = Some(Snapshots::new(store, queue, clock, pace));
    }

    /// How the snapshots of this life went.
    pub fn saving(&self) -> Status {
        self.snapshots.as_ref().map(Snapshots::status).unwrap_or_default()
    }

    /// When the last snapshot was published; the beginning of this life, if there is none.
    pub(crate) fn last_save(&self) -> UnixMillis {
        self.saving().last_published.unwrap_or(self.persistence.began)
    }

    fn snapshots_to_take(&mut self) -> Result<&mut Snapshots, Refusal> {
        const FOLLOWS: Refusal =
            Refusal::of("ERR the primary takes the snapshots, and this is a replica");
        if self.is_following() {
            return Err(FOLLOWS);
        }
        self.snapshots.as_mut().ok_or(Refusal::of("ERR there is no snapshot store"))
    }
}

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
        let turn = Turn {
            now: self.core.turn.now,
            monotonic: self.core.turn.monotonic,
            leads: self.core.leadership.roles.leads(),
            is_alone: self.core.leadership.roles.is_alone(),
            is_private: self.core.process.settings.snapshots_are_private,
            hears_primary: self.members.lag().is_some(),
        };
        let Some(snapshots) = &mut self.core.snapshots else { return };
        snapshots.collect(&mut self.core.shard, &turn, &mut self.news);
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
    fn sightings(&self) -> Vec<Report> {
        if self.core.leadership.roles.leads() {
            let reports = self.members.reports();
            return reports.map(|(client, reported)| self.sighting(client, reported)).collect();
        }
        let Some(newest) = self.members.primary_snapshot() else { return Vec::new() };
        let member = self.core.process.member();
        let address = format!("{}:{}", member.host, member.port);
        let at = self.core.turn.monotonic;
        vec![Report { address, snapshot: Some(newest), at, client: String::new() }]
    }

    /// The connection of a replica is gone.
    pub(crate) fn note_departed(&mut self, client: ConnectionId) {
        let Some(reported) = self.members.forget(client) else { return };
        let report = self.sighting(client, &reported);
        if self.core.leadership.roles.leads()
            && let Some(snapshots) = &mut self.core.snapshots
        {
            snapshots.note_departed(report);
        }
    }

    /// Which snapshots a replica sees that reports.
    fn sighting(&self, client: ConnectionId, reported: &Reported) -> Report {
        let session = self.core.clients.at(client);
        Report {
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
