//! How a session becomes a replica: it goes on where it was, or gets a snapshot first.

use super::transfer::Transfer;
use super::{ClientKind, Feed, Stage};
use crate::core::Core;
use base::{ConnectionId, Sequence};
use engine::refusal::Refusal;
use shard::snapshots::SnapshotFile;

/// From where a replica wants to go on (PSYNC).
pub(crate) struct Wanted<'a> {
    /// The history that it knows.
    pub id: &'a [u8],
    /// The number of the first byte that it lacks.
    pub from: i64,
}

/// Under what name the snapshot stays that a replica is sent.
pub(super) fn pin_of(core: &Core, client: ConnectionId) -> String {
    format!("replica-client-{}", core.clients.at(client).who.id)
}

impl Feed {
    /// Whether a client may follow.
    ///
    /// # Errors
    /// The server follows a master itself, something is still on its way to the client, or it needs
    /// a snapshot and there is no place for one.
    pub(crate) fn admits(&self, core: &Core, client: ConnectionId) -> Result<(), Refusal> {
        if core.is_replica() {
            return Err(Refusal::of("NOMASTERLINK Can't SYNC while this server follows a master"));
        }
        if core.clients.at(client).output.pending_bytes() > 0 {
            return Err(Refusal::of("ERR SYNC and PSYNC are invalid with pending output"));
        }
        let needs_snapshot = self.replicas.get(&client).is_none_or(|it| it.filter.is_none());
        if self.queue.is_none() && needs_snapshot {
            return Err(Refusal::of("ERR there is no snapshot store"));
        }
        Ok(())
    }

    /// The bytes that a replica missed, if it knows this history and all of them are here. If not,
    /// it needs a snapshot.
    pub(crate) fn missed(&mut self, wanted: Option<&Wanted<'_>>) -> Option<Vec<u8>> {
        let missed = wanted.and_then(|wanted| {
            let is_ours = wanted.id.eq_ignore_ascii_case(self.replication_id().as_bytes());
            self.backlog.as_ref().filter(|_| is_ours)?.since(u64::try_from(wanted.from).ok()?)
        });
        if missed.is_none() {
            self.syncs_full += 1;
            let has_history = wanted.is_some_and(|wanted| wanted.id != b"?");
            self.syncs_partial_refused += u64::from(has_history);
        }
        missed
    }

    /// Makes a client a replica, which goes on with what it missed, or waits for the snapshot that
    /// was asked for. One that speaks PSYNC acknowledges.
    pub(crate) fn attach(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        missed: Option<Vec<u8>>,
        acknowledges: bool,
    ) {
        // What it was subscribed to would come between the commands.
        core.forget_subscriptions(client);
        if self.attached().next().is_none() {
            // The period begins with the first of them, not with the machine's clock.
            self.pinged_at = core.turn.monotonic;
        }
        let is_partial = missed.is_some();
        let replica = self.replica_mut(client);
        replica.acknowledges = acknowledges;
        replica.stage = if is_partial { Stage::Online } else { Stage::Waiting };
        replica.acknowledged_at = core.turn.monotonic;
        let session = core.clients.at_mut(client);
        session.kind = ClientKind::Replica;
        tracing::info!(client = session.who.id, is_partial, "a replica asks for synchronisation");
        if let Some(missed) = missed {
            self.syncs_partial += 1;
            let line = format!("+CONTINUE {}\r\n", self.replication_id());
            session.pushes.extend_from_slice(line.as_bytes());
            session.pushes.extend_from_slice(&missed);
            // It may not be durable yet.
            core.shard.unit.whole = true;
        }
    }

    /// Makes a client a replica that is sent this file, without keys, and goes on from here; or
    /// that wants the file and nothing more. One that speaks PSYNC acknowledges.
    pub(crate) fn attach_with(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        file: &[u8],
        acknowledges: bool,
    ) {
        // Others are told first what happened until now.
        self.deliver(core);
        self.syncs_full += 1;
        let head = match acknowledges {
            true => format!("+FULLRESYNC {} {}\r\n", self.replication_id(), core.stream.offset),
            false => String::new(),
        };
        let session = core.clients.at_mut(client);
        session.pushes.extend_from_slice(format!("{head}${}\r\n", file.len()).as_bytes());
        session.pushes.extend_from_slice(file);
        // What the file says of libraries may not be durable yet.
        core.shard.unit.whole = true;
        if self.replica_mut(client).wants_only_file {
            core.clients.at_mut(client).flow.is_closing = true;
            return;
        }
        core.forget_subscriptions(client);
        if self.attached().next().is_none() {
            self.pinged_at = core.turn.monotonic;
        }
        let replica = self.replica_mut(client);
        replica.acknowledges = acknowledges;
        replica.stage = Stage::Online;
        replica.acknowledged_at = core.turn.monotonic;
        core.clients.at_mut(client).kind = ClientKind::Replica;
        self.start_telling(core);
        core.stream.select_anew();
    }

    /// From here on replicas that wait for a snapshot are told what happens: one begins now, and it
    /// holds everything until now.
    pub(crate) fn start_gathering(&mut self, core: &mut Core) {
        self.deliver(core);
        for client in self.at_stage(|stage| matches!(stage, Stage::Waiting)) {
            let replica = self.replica_mut(client);
            replica.stage = Stage::Gathering;
            let acknowledges = replica.acknowledges;
            self.start_telling(core);
            core.stream.select_anew();
            if acknowledges {
                let (id, offset) = (self.replication_id(), core.stream.offset);
                let line = format!("+FULLRESYNC {id} {offset}\r\n");
                core.clients.reply(client).raw(line.as_bytes());
                core.hold(client, Sequence::ZERO);
            }
        }
    }

    /// The snapshot that replicas waited for is published, and this is its file.
    pub(crate) fn send_file(&mut self, core: &mut Core, file: &SnapshotFile) {
        let bytes = file.length();
        for client in self.at_stage(|stage| matches!(stage, Stage::Gathering)) {
            self.replica_mut(client).stage = Stage::Sending(Transfer::new(file));
            // Its parts are read as the replica takes them.
            let name = pin_of(core, client);
            core.shard.pin_snapshot(name, file.name());
            core.clients.reply(client).raw(format!("${bytes}\r\n").as_bytes());
            core.hold(client, Sequence::ZERO);
        }
    }

    /// The snapshot failed: who waited for it must ask again.
    pub(crate) fn give_up_gathering(&mut self, core: &mut Core) {
        for client in self.at_stage(|stage| matches!(stage, Stage::Gathering)) {
            core.close(client);
        }
    }

    fn at_stage(&self, is_there: impl Fn(&Stage) -> bool) -> Vec<ConnectionId> {
        let there = self.attached().filter(|(_, replica)| is_there(&replica.stage));
        there.map(|(client, _)| client).collect()
    }
}
