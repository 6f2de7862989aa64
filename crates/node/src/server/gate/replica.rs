//! What a replica of the transaction log answers: what it has applied, to who asked for that; and
//! where its primary is, to everybody else.
//!
//! Writes to keys are sent there too, as a replica of a cluster does it: a client that has not
//! heard of a failover follows, and would be stuck with READONLY. What has no key cannot be moved.

use crate::core::asker::Asker;
use crate::core::verdict::Verdict;
use crate::server::Server;
use base::Slot;
use catalog::{Demand, Registered};
use engine::command::{Args, Flags};
use engine::refusal::Refusal;

impl Server {
    /// Refuses what a replica does not do, of the log or of a master. A transaction is judged by
    /// what it holds.
    pub(crate) fn judge_role(
        &self,
        asker: &Asker,
        command: &Registered,
        demand: Demand,
        args: Args<'_>,
    ) -> Verdict {
        if self.core.persistence.is_loading {
            return Verdict::Run;
        }
        if !self.core.is_following() {
            return self.judge_write_on_replica(asker, demand);
        }
        if (demand.has(Demand::PRIMARY) || !asker.reads_replica)
            && let Some(key) = first_key(command, args)
        {
            return Verdict::Refuse(self.moved(key));
        }
        if demand.has(Demand::PRIMARY) {
            return Verdict::Refuse(crate::core::verdict::READ_ONLY);
        }
        Verdict::Run
    }

    /// Where the primary is that answers for a key (Redis Cluster specification, MOVED
    /// redirection).
    fn moved(&self, key: &[u8]) -> Refusal {
        let Slot(slot) = engine::slot::of_key(key);
        match self.primary_elsewhere() {
            Some(member) => Refusal::new(format!("MOVED {slot} {}:{}", member.host, member.port)),
            None if self.core.leadership.doubts_wall() => Refusal::of(
                "CLUSTERDOWN Hash slot not served: this server does not lead because of its \
                 machine's clock, as its log says",
            ),
            None => Refusal::of("CLUSTERDOWN Hash slot not served"),
        }
    }
}

/// The first key of a request. The channel of SPUBLISH is none: messages are a server's own.
pub(in crate::server) fn first_key<'a>(command: &Registered, args: Args<'a>) -> Option<&'a [u8]> {
    if command.first_key > 0 {
        let is_channel = command.flags.contains(Flags::PUBSUB);
        return args.get(command.first_key).filter(|_| !is_channel);
    }
    command.first_key_of(args)
}
