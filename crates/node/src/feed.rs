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
mod wait;

pub use replica::{Replica, Stage};

use crate::server::Server;
use backlog::Backlog;
use base::disk::{DiskOutcome, DiskTicket};
use base::{ConnectionId, DiskQueue, MonotonicNanos};
use std::collections::BTreeSet;

/// Nanoseconds in a second.
const SECOND: u64 = 1_000_000_000;

/// What all replicas have in common.
#[derive(Default)]
pub struct Feed {
    /// Reads snapshots' files. `None`: there is no place for snapshots, and no replica either.
    queue: Option<Box<dyn DiskQueue>>,
    done: Vec<(DiskTicket, DiskOutcome)>,
    /// Sessions that asked to follow.
    replicas: BTreeSet<ConnectionId>,
    backlog: Option<Backlog>,
    /// When the last replica left.
    deserted_at: MonotonicNanos,
    pinged_at: MonotonicNanos,
    ticked_at: MonotonicNanos,
    /// Sessions that run WAIT.
    waiters: BTreeSet<ConnectionId>,
    /// Full and partial synchronisations, and partial ones refused, for INFO.
    pub syncs_full: u64,
    pub syncs_partial: u64,
    pub syncs_partial_refused: u64,
}

impl Feed {
    /// The first byte that the backlog still has, and how many it has; `None` without a backlog.
    pub fn backlog(&self) -> Option<(u64, usize)> {
        self.backlog.as_ref().map(|backlog| (backlog.first(), backlog.len()))
    }
}

impl Server {
    /// Lets replicas follow. `queue` reads the files of snapshots, and is for nothing else: a file
    /// must not wait for the next snapshot.
    pub fn feed_replicas(&mut self, queue: Box<dyn DiskQueue>) {
        self.feed.queue = Some(queue);
    }

    /// Hands on what was told in this turn. It leaves when everything that happened until now is
    /// durable.
    pub(crate) fn deliver_feed(&mut self) {
        let Some(bytes) = self.core.stream.take() else { return };
        if let Some(backlog) = &mut self.feed.backlog {
            backlog.push(&bytes, self.core.process.settings.repl_backlog_size);
        }
        let newest = self.core.shard.newest();
        for connection in self.replicas() {
            let Some(session) = self.core.clients.sessions.get_mut(connection) else { continue };
            match session.replica.as_mut() {
                Some(replica) if replica.is_online() && !session.is_cut => {
                    session.reply().raw(&bytes);
                    self.core.hold(connection, newest);
                }
                Some(replica) if replica.is_gathering() => {
                    replica.keep(&bytes);
                    self.core.check_output(connection);
                }
                _ => {}
            }
        }
    }

    /// Sessions that follow or are about to.
    fn replicas(&self) -> Vec<ConnectionId> {
        self.feed.replicas.iter().copied().collect()
    }

    /// The replicas' share of a turn: files go on, and once a second who is silent is told that the
    /// server lives, and who was silent for too long is dropped.
    pub(crate) fn advance_feed(&mut self) {
        self.collect_file_chunks();
        self.read_file_chunks();
        if self.core.turn.monotonic.since(self.feed.ticked_at) >= SECOND {
            self.feed.ticked_at = self.core.turn.monotonic;
            self.tick_feed();
        }
    }

    fn tick_feed(&mut self) {
        let ping_nanos = u64::from(self.core.process.settings.repl_ping_replica_period) * SECOND;
        let is_followed = !self.feed.replicas.is_empty();
        if is_followed && self.core.turn.monotonic.since(self.feed.pinged_at) >= ping_nanos {
            self.feed.pinged_at = self.core.turn.monotonic;
            if self.core.shard.unit.feed.is_on() {
                self.core.stream.tell(&["PING"]);
            }
        }
        for connection in self.replicas() {
            if !self.core.clients.has(connection) {
                continue;
            }
            if self.core.clients.at(connection).is_waiting_for_file() {
                // Redis's sign of life while there is nothing to send.
                self.core.clients.reply(connection).raw(b"\n");
                self.core.hold(connection, base::Sequence::ZERO);
            }
            let lag_max = u64::from(self.core.process.settings.repl_timeout);
            let waiting = self.core.clients.at(connection).output.pending_bytes();
            let taken = self.core.clients.at(connection).output.end() - waiting as u64;
            let lag = self.core.clients.at_mut(connection).replica.as_mut().and_then(|replica| {
                let stuck = replica.stuck_seconds(taken, waiting, self.core.turn.monotonic);
                stuck.or(replica.lag_seconds(self.core.turn.monotonic))
            });
            if lag.is_some_and(|lag| lag > lag_max) {
                tracing::warn!(
                    client = self.core.clients.at(connection).id,
                    "a replica does not answer: disconnected"
                );
                self.core.close_session(connection);
            }
        }
        let kept_nanos = self.core.process.settings.repl_backlog_ttl.saturating_mul(SECOND);
        let is_deserted = self.core.turn.monotonic.since(self.feed.deserted_at) > kept_nanos;
        if !is_followed && is_deserted && kept_nanos > 0 && self.feed.backlog.is_some() {
            self.stop_telling();
        }
    }

    /// Begins to tell what happens, if nobody was told before.
    fn start_telling(&mut self) {
        if self.feed.backlog.is_none() {
            self.feed.backlog = Some(Backlog::new(self.core.stream.offset));
            self.core.shard.unit.feed.switch(true);
        }
    }

    /// Ends it. What happens from now on is missing from the stream, so the stream is another one
    /// when it goes on.
    fn stop_telling(&mut self) {
        self.feed.backlog = None;
        self.core.shard.unit.feed.switch(false);
        self.change_replication_id();
    }

    /// Lets nobody follow any more: this server follows another, and what it holds becomes another
    /// history.
    pub(crate) fn drop_replicas(&mut self) {
        for connection in self.replicas() {
            self.core.close(connection);
        }
        if self.feed.backlog.is_some() {
            self.stop_telling();
        }
    }

    /// Makes the history that replicas know another one.
    pub(crate) fn change_replication_id(&mut self) {
        self.replication_seed = self.replication_seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }

    /// A session that follows is gone.
    pub(crate) fn forget_replica(&mut self, connection: ConnectionId) {
        if self.feed.replicas.remove(&connection) && self.feed.replicas.is_empty() {
            self.feed.deserted_at = self.core.turn.monotonic;
        }
        self.feed.waiters.remove(&connection);
    }
}
