//! What changes for clients while this server follows a master: which requests it refuses, by which
//! clock keys are past their time, and who is unblocked when it begins.

use crate::core::Core;
use crate::gate::Verdict;
use crate::server::Server;
use crate::session::Blocked;
use base::ConnectionId;
use catalog::Demand;
use engine::refusal::Refusal;
use engine::unit::{Context, Overdue};

pub(crate) const READ_ONLY: Refusal =
    Refusal::of("READONLY You can't write against a read only replica.");
const STALE: Refusal =
    Refusal::of("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
const PARTIAL: Refusal = Refusal::of(
    "MASTERDOWN The transfer of a master's data set was cut short, and what is here is a part of \
     it. All of it is taken anew once the master answers; REPLICAOF NO ONE keeps the part.",
);
const UNBLOCKED: &str =
    "UNBLOCKED force unblock from blocking operation, instance state changed (master -> replica?)";

impl Core {
    /// Whether this server follows a master, or another process that writes its log.
    pub fn is_replica(&self) -> bool {
        self.master().is_some() || self.is_following()
    }

    /// What stands still while a command of a session executes.
    pub(crate) fn context(&self, client: ConnectionId) -> Context {
        let (overdue, stands_at) =
            if self.clients.at(client).is_master() { (Overdue::Kept, None) } else { self.expiry() };
        Context { overdue, stands_at, ..self.clients.at(client).context(self.shard_time()) }
    }

    /// Whether memory is the master's business.
    pub(crate) fn ignores_memory_limit(&self) -> bool {
        self.is_following() || self.is_replica() && self.process.settings.replica_ignore_maxmemory
    }
}

impl Server {
    /// Refuses what a read-only replica does not do. A transaction is judged by what it holds.
    pub(crate) fn judge_write_on_replica(&self, client: ConnectionId, demand: Demand) -> Verdict {
        let follows = self.core.master().is_some();
        let refuses = follows
            && self.core.process.settings.replica_read_only
            && !self.core.clients.at(client).is_master();
        if refuses && demand.has(Demand::WRITE) {
            return Verdict::Refuse(READ_ONLY);
        }
        Verdict::Run
    }

    /// Refuses what would show data that the master may have changed long ago.
    pub(crate) fn judge_staleness(&self, client: ConnectionId, demand: Demand) -> Verdict {
        let is_stale = self.core.master().is_some()
            && !self.link.is_up()
            && !self.core.process.settings.replica_serve_stale_data
            && !self.core.clients.at(client).is_master();
        if is_stale && demand.has(Demand::FRESH) {
            return Verdict::Refuse(STALE);
        }
        Verdict::Run
    }

    /// Refuses what would take a part of a master's data set for the whole, or write to it.
    pub(crate) fn judge_part(&self, demand: Demand) -> Verdict {
        if self.core.shard.engine.keyspace.is_partial() && demand.has(Demand::WHOLE) {
            return Verdict::Refuse(PARTIAL);
        }
        Verdict::Run
    }

    /// Clients that wait for keys would wait for what they may no longer take, and those that wait
    /// for replicas for what no longer comes.
    pub(super) fn unblock_everybody(&mut self) {
        let waiting = self
            .core
            .sessions()
            .filter(|session| {
                let blocked = session.blocked.as_ref();
                blocked
                    .is_some_and(|it| matches!(it, Blocked::Keys { .. } | Blocked::Replicas { .. }))
            })
            .map(|session| session.connection);
        for connection in waiting.collect::<Vec<ConnectionId>>() {
            self.core.process.statistics.error("UNBLOCKED");
            self.end_wait(connection, Some(UNBLOCKED));
            if let Some(session) = self.core.clients.sessions.get_mut(connection) {
                session.is_closing = true;
            }
        }
    }
}
