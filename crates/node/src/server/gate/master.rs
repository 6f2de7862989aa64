//! What a server refuses while it follows a master, or holds a part of one's data set.

use crate::core::asker::Asker;
use crate::core::verdict::{READ_ONLY, Verdict};
use crate::server::Server;
use catalog::Demand;
use engine::refusal::Refusal;

pub(in crate::server) const STALE: Refusal =
    Refusal::of("MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.");
const PARTIAL: Refusal = Refusal::of(
    "MASTERDOWN The transfer of a master's data set was cut short, and what is here is a part of \
     it. All of it is taken anew once the master answers; REPLICAOF NO ONE keeps the part.",
);

impl Server {
    /// Refuses what a read-only replica does not do. A transaction is judged by what it holds.
    pub(crate) fn judge_write_on_replica(&self, asker: &Asker, demand: Demand) -> Verdict {
        let follows = self.core.master().is_some();
        let refuses = follows && self.core.process.settings.replica_read_only && !asker.is_master();
        if refuses && demand.has(Demand::WRITE) {
            return Verdict::Refuse(READ_ONLY);
        }
        Verdict::Run
    }

    /// Refuses what would show data that the master may have changed long ago.
    pub(crate) fn judge_staleness(&self, asker: &Asker, demand: Demand) -> Verdict {
        if demand.has(Demand::FRESH) && self.is_stale(asker) {
            return Verdict::Refuse(STALE);
        }
        Verdict::Run
    }

    /// Whether the data may be out of date and must not be served then.
    pub(crate) fn is_stale(&self, asker: &Asker) -> bool {
        self.core.master().is_some()
            && !self.link.is_up()
            && !self.core.process.settings.replica_serve_stale_data
            && !asker.is_master()
    }

    /// Refuses what would take a part of a master's data set for the whole, or write to it.
    pub(crate) fn judge_part(&self, demand: Demand) -> Verdict {
        if self.core.shard.engine.keyspace.is_partial() && demand.has(Demand::WHOLE) {
            return Verdict::Refuse(PARTIAL);
        }
        Verdict::Run
    }
}
