//! The stream of commands that replicas of Redis follow.
//!
//! ```text
//! unit ─▶ its commands, SELECT and MULTI … EXEC added ─▶ gathered for the turn
//!   end of the turn ─▶ backlog
//!                   ─▶ each replica: online ─▶ its output, held until durable
//!                                    not yet ─▶ kept behind the snapshot's file
//! SYNC ─▶ waits ─▶ a snapshot begins: commands are kept ─▶ it is published: its file goes out
//!   in chunks ─▶ what was kept follows ─▶ online
//! ```
//! A replica reveals what it is told, so nothing leaves before it is durable: the file because a
//! snapshot is published only then, commands because they are held like replies. The start of what
//! is kept and the snapshot are the same point, the end of a record, so that nothing is missing
//! and nothing comes twice.
//!
//! Nothing is told and nothing costs while no replica is attached, or was within
//! `repl-backlog-ttl`.

mod backlog;
mod replica;
pub(crate) mod sync;
mod transfer;

pub use replica::{Filter, Replica, Stage};

use crate::core::{Core, hex_id};
use crate::session::ClientKind;
use backlog::Backlog;
use base::disk::{DiskOutcome, DiskTicket};
use base::time::SECOND;
use base::{ConnectionId, DiskQueue, MonotonicNanos, Sequence};
use std::collections::BTreeMap;

/// The replicas of Redis, and what they have in common.
pub struct Feed {
    /// Reads snapshots' files. `None`: there is no place for snapshots, and no replica either.
    queue: Option<Box<dyn DiskQueue>>,
    done: Vec<(DiskTicket, DiskOutcome)>,
    /// Clients that have said something of themselves as replicas, and those that follow.
    replicas: BTreeMap<ConnectionId, Replica>,
    backlog: Option<Backlog>,
    /// Names the history that replicas know.
    history: u64,
    /// When the last replica left.
    deserted_at: MonotonicNanos,
    pinged_at: MonotonicNanos,
    ticked_at: MonotonicNanos,
    /// Full and partial synchronisations, and partial ones refused, for INFO.
    pub syncs_full: u64,
    pub syncs_partial: u64,
    pub syncs_partial_refused: u64,
}

impl Feed {
    /// Without replicas. `history` is a number that no other history has.
    pub fn new(history: u64) -> Self {
        Self {
            queue: None,
            done: Vec::new(),
            replicas: BTreeMap::new(),
            backlog: None,
            history,
            deserted_at: MonotonicNanos(0),
            pinged_at: MonotonicNanos(0),
            ticked_at: MonotonicNanos(0),
            syncs_full: 0,
            syncs_partial: 0,
            syncs_partial_refused: 0,
        }
    }

    /// The first byte that the backlog still has, and how many it has; `None` without a backlog.
    pub fn backlog(&self) -> Option<(u64, usize)> {
        self.backlog.as_ref().map(|backlog| (backlog.first(), backlog.len()))
    }

    /// The clients that follow or are about to, in the order in which they connected.
    pub fn attached(&self) -> impl Iterator<Item = (ConnectionId, &Replica)> {
        let attached = self.replicas.iter().filter(|(_, replica)| replica.is_attached());
        attached.map(|(client, replica)| (*client, replica))
    }

    /// What is known of a client as a replica, also before it follows.
    pub(crate) fn replica_mut(&mut self, client: ConnectionId) -> &mut Replica {
        self.replicas.entry(client).or_default()
    }

    /// Lets replicas follow. `queue` reads the files of snapshots, and is for nothing else: a file
    /// must not wait for the next snapshot.
    pub fn read_files_by(&mut self, queue: Box<dyn DiskQueue>) {
        self.queue = Some(queue);
    }

    fn connections(&self) -> Vec<ConnectionId> {
        self.attached().map(|(client, _)| client).collect()
    }

    /// Hands on what was told in this turn. It leaves when everything that happened until now is
    /// durable.
    pub(crate) fn deliver(&mut self, core: &mut Core) {
        let Some(bytes) = core.stream.take() else { return };
        if let Some(backlog) = &mut self.backlog {
            backlog.push(&bytes, core.process.settings.repl_backlog_size);
        }
        let newest = core.shard.newest();
        for (&client, replica) in &mut self.replicas {
            let Some(session) = core.clients.sessions.get_mut(client) else { continue };
            if replica.is_online() && !session.flow.is_cut {
                session.reply().raw(&bytes);
                core.hold(client, newest);
            } else if replica.is_gathering() {
                replica.keep(&bytes);
                session.flow.apart_bytes = replica.kept_bytes();
                core.check_output(client);
            }
        }
    }

    /// The replicas' share of a turn: files go on, and once a second who is silent is told that the
    /// server lives, and who was silent for too long is dropped.
    pub(crate) fn advance(&mut self, core: &mut Core) {
        self.collect_chunks(core);
        self.read_chunks(core);
        if core.turn.monotonic.since(self.ticked_at) >= SECOND {
            self.ticked_at = core.turn.monotonic;
            self.tick(core);
        }
    }

    fn tick(&mut self, core: &mut Core) {
        let now = core.turn.monotonic;
        let ping_nanos = u64::from(core.process.settings.repl_ping_replica_period) * SECOND;
        let is_followed = self.attached().next().is_some();
        if is_followed && now.since(self.pinged_at) >= ping_nanos {
            self.pinged_at = now;
            if core.shard.unit.feed.is_on() {
                core.stream.tell(&["PING"]);
            }
        }
        let lag_max = u64::from(core.process.settings.repl_timeout);
        for (&client, replica) in &mut self.replicas {
            let Some(session) = core.clients.sessions.get_mut(client) else { continue };
            if replica.is_waiting_for_file() {
                // Redis's sign of life while there is nothing to send.
                session.reply().raw(b"\n");
                core.hold(client, Sequence::ZERO);
            }
            let session = core.clients.at(client);
            let waiting = session.output.pending_bytes();
            let taken = session.output.end() - waiting as u64;
            let lag = replica.stuck_seconds(taken, waiting, now).or(replica.lag_seconds(now));
            if lag.is_some_and(|lag| lag > lag_max) {
                tracing::warn!(client = session.who.id, "a replica does not answer: disconnected");
                core.close_session(client);
            }
        }
        let kept_nanos = core.process.settings.repl_backlog_ttl.saturating_mul(SECOND);
        let is_deserted = now.since(self.deserted_at) > kept_nanos;
        if !is_followed && is_deserted && kept_nanos > 0 && self.backlog.is_some() {
            self.stop_telling(core);
        }
    }

    /// Begins to tell what happens, if nobody was told before.
    fn start_telling(&mut self, core: &mut Core) {
        if self.backlog.is_none() {
            self.backlog = Some(Backlog::new(core.stream.offset));
            core.shard.unit.feed.switch(true);
        }
    }

    /// Ends it. What happens from now on is missing from the stream, so the stream is another one
    /// when it goes on.
    fn stop_telling(&mut self, core: &mut Core) {
        self.backlog = None;
        core.shard.unit.feed.switch(false);
        self.change_history();
    }

    /// Lets nobody follow any more: this server follows another, and what it holds becomes another
    /// history.
    pub(crate) fn drop_replicas(&mut self, core: &mut Core) {
        for client in self.connections() {
            core.close(client);
        }
        if self.backlog.is_some() {
            self.stop_telling(core);
        }
    }

    /// Makes the history that replicas know another one.
    pub(crate) fn change_history(&mut self) {
        self.history = self.history.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// The history that replicas know, 40 hexadecimal digits.
    pub fn replication_id(&self) -> String {
        hex_id(self.history)
    }

    /// A client is gone.
    pub(crate) fn forget(&mut self, core: &mut Core, client: ConnectionId) {
        let gone = self.replicas.remove(&client);
        if gone.is_some() {
            let pin = sync::pin_of(core, client);
            core.shard.unpin(&pin);
        }
        let has_followed = gone.is_some_and(|replica| replica.is_attached());
        if has_followed && self.attached().next().is_none() {
            self.deserted_at = core.turn.monotonic;
        }
    }

    /// A replica has executed the stream through `offset`; whether it is one.
    pub(crate) fn note_acknowledged(
        &mut self,
        core: &Core,
        client: ConnectionId,
        offset: u64,
    ) -> bool {
        let replica = self.replicas.get_mut(&client).filter(|replica| replica.is_attached());
        let Some(replica) = replica else { return false };
        replica.acknowledged = replica.acknowledged.max(offset);
        replica.acknowledged_at = core.turn.monotonic;
        true
    }

    /// How many replicas have executed the stream through `offset`.
    pub(crate) fn through(&self, offset: u64) -> usize {
        let replicas = self.replicas.values();
        replicas.filter(|it| it.is_online() && it.acknowledged >= offset).count()
    }

    /// How many replicas were heard of within so many seconds.
    pub(crate) fn near(&self, core: &Core, seconds: u64) -> usize {
        let now = core.turn.monotonic;
        let is_near =
            |it: &&Replica| it.is_online() && now.seconds_since(it.acknowledged_at) <= seconds;
        self.replicas.values().filter(is_near).count()
    }
}
