//! What a replica of the transaction log answers: what it has applied, to who asked for that; and
//! where its primary is, to everybody else.

use crate::gate::Verdict;
use crate::registry::Registered;
use crate::server::Server;
use crate::session::Session;
use base::Slot;
use engine::command::{Args, Flags};
use engine::refusal::Refusal;

impl Server {
    /// Refuses what a replica does not do, of the log or of a master. A transaction is judged by
    /// what it holds.
    pub(crate) fn judge_role(
        &self,
        session: &Session,
        command: &Registered,
        args: Args<'_>,
    ) -> Verdict {
        if self.persistence.is_loading {
            return Verdict::Run;
        }
        if !self.is_following() {
            return self.judge_write_on_replica(session, command);
        }
        // PFCOUNT writes only to spare the next one its work, and here it does not.
        let writes =
            |command: &Registered| command.may_write() && !command.flags.contains(Flags::READONLY);
        if writes(command) || self.is_any_queued(session, command, writes) {
            return Verdict::Refuse(crate::link::READ_ONLY);
        }
        let reads = command.first_key > 0 && !command.flags.contains(Flags::PUBSUB);
        if reads && !session.reads_replica {
            let key = args.get(command.first_key).unwrap_or_default();
            return Verdict::Refuse(self.moved(key));
        }
        Verdict::Run
    }

    /// Where the primary is that answers for a key (Redis Cluster specification, MOVED
    /// redirection).
    fn moved(&self, key: &[u8]) -> Refusal {
        let Slot(slot) = engine::slot::of_key(key);
        let leader = self.roles.leader().map(|leader| &leader.member);
        match leader.filter(|member| !member.host.is_empty()) {
            Some(member) => Refusal::new(format!("MOVED {slot} {}:{}", member.host, member.port)),
            None => Refusal::of("CLUSTERDOWN Hash slot not served"),
        }
    }
}
