//! How a session becomes a replica: it goes on where it was, or gets a snapshot first.

use super::{Replica, Server, Stage};
use base::{ConnectionId, Sequence};
use engine::refusal::Refusal;
use std::sync::Arc;

/// From where a replica wants to go on (PSYNC).
pub(crate) struct Wanted<'a> {
    /// The history that it knows.
    pub id: &'a [u8],
    /// The number of the first byte that it lacks.
    pub from: i64,
}

impl Server {
    /// Makes a session a replica. `wanted` is `None` for one that speaks SYNC only.
    ///
    /// # Errors
    /// The server follows a master itself, something is still on its way to the client, or there is
    /// no place for snapshots.
    pub(crate) fn attach_replica(
        &mut self,
        client: ConnectionId,
        wanted: Option<Wanted<'_>>,
    ) -> Result<(), Refusal> {
        if self.core.is_replica() {
            return Err(Refusal::of("NOMASTERLINK Can't SYNC while this server follows a master"));
        }
        if self.core.clients.at(client).output.pending_bytes() > 0 {
            return Err(Refusal::of("ERR SYNC and PSYNC are invalid with pending output"));
        }
        if self.feed.queue.is_none() || self.snapshots.is_none() {
            return Err(Refusal::of("ERR there is no snapshot store"));
        }
        let mut replica: Box<Replica> =
            self.core.clients.at_mut(client).replica.take().unwrap_or_default();
        replica.acknowledges = wanted.is_some();
        let missed = wanted.as_ref().and_then(|wanted| self.missed(wanted));
        if missed.is_none() {
            self.feed.syncs_full += 1;
            let has_history = wanted.is_some_and(|wanted| wanted.id != b"?");
            self.feed.syncs_partial_refused += u64::from(has_history);
            self.want_snapshot_for_replica()?;
        }
        // What it was subscribed to would come between the commands.
        self.core.forget_subscriptions(client);
        replica.stage = if missed.is_some() { Stage::Online } else { Stage::Waiting };
        replica.acknowledged_at = self.core.turn.monotonic;
        self.core.clients.at_mut(client).replica = Some(replica);
        if self.feed.replicas.is_empty() {
            // The period begins with the first of them, not with the machine's clock.
            self.feed.pinged_at = self.core.turn.monotonic;
        }
        self.feed.replicas.insert(client);
        let is_partial = missed.is_some();
        tracing::info!(
            client = self.core.clients.at(client).id,
            is_partial,
            "a replica asks for synchronisation"
        );
        if let Some(missed) = missed {
            self.feed.syncs_partial += 1;
            let line = format!("+CONTINUE {}\r\n", self.replication_id());
            self.core.clients.at_mut(client).pushes.extend_from_slice(line.as_bytes());
            self.core.clients.at_mut(client).pushes.extend_from_slice(&missed);
            // It may not be durable yet.
            self.core.shard.unit.whole = true;
        }
        Ok(())
    }

    /// The bytes that a replica missed, if it knows this history and all of them are here.
    fn missed(&self, wanted: &Wanted<'_>) -> Option<Vec<u8>> {
        if !wanted.id.eq_ignore_ascii_case(self.replication_id().as_bytes()) {
            return None;
        }
        self.feed.backlog.as_ref()?.since(u64::try_from(wanted.from).ok()?)
    }

    /// From here on replicas that wait for a snapshot are told what happens: one begins now, and it
    /// holds everything until now.
    pub(crate) fn start_gathering(&mut self) {
        self.deliver_feed();
        for connection in self.replicas() {
            if !self.core.clients.has(connection) {
                continue;
            }
            if let Some(replica) = self.core.clients.at_mut(connection).replica.as_mut()
                && matches!(replica.stage, Stage::Waiting)
            {
                replica.stage = Stage::Gathering;
                let acknowledges = replica.acknowledges;
                self.start_telling();
                self.core.stream.select_anew();
                if acknowledges {
                    let (id, offset) = (self.replication_id(), self.core.stream.offset);
                    self.core
                        .clients
                        .reply(connection)
                        .raw(format!("+FULLRESYNC {id} {offset}\r\n").as_bytes());
                    self.core.hold(connection, Sequence::ZERO);
                }
            }
        }
    }

    /// The snapshot that replicas waited for is published, and this is its file.
    pub(crate) fn send_file(&mut self, file: &Arc<dyn base::DiskFile>, bytes: u64) {
        for connection in self.gathering() {
            if !self.core.clients.has(connection) {
                continue;
            }
            if let Some(replica) = &mut self.core.clients.at_mut(connection).replica {
                replica.stage = Stage::Sending(super::transfer::Transfer::new(file, bytes));
                self.core.clients.reply(connection).raw(format!("${bytes}\r\n").as_bytes());
                self.core.hold(connection, Sequence::ZERO);
            }
        }
    }

    /// The snapshot failed: who waited for it must ask again.
    pub(crate) fn give_up_gathering(&mut self) {
        for connection in self.gathering() {
            self.core.close(connection);
        }
    }

    fn gathering(&self) -> Vec<ConnectionId> {
        let is_gathering = |connection: &ConnectionId| {
            let session = self.core.clients.sessions.get(*connection);
            let replica = session.and_then(|session| session.replica.as_ref());
            replica.is_some_and(|replica| matches!(replica.stage, Stage::Gathering))
        };
        self.feed.replicas.iter().copied().filter(is_gathering).collect()
    }

    /// The history that replicas know, 40 hexadecimal digits.
    pub(crate) fn replication_id(&self) -> String {
        crate::command::info::process::hex_id(self.replication_seed)
    }
}
