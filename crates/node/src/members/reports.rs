//! What the primary answers to its replicas' reports.

use super::Members;
use crate::core::Core;
use crate::session::ClientKind;
use base::{ConnectionId, Sequence};
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use peers::report::{Answer, Report};

impl Members {
    /// REPLCONF MEMBER: takes a report, and answers.
    pub(crate) fn take_report(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        args: Args<'_>,
    ) -> Outcome {
        if !core.leadership.roles.leads() || core.leadership.roles.is_alone() {
            return Err(crate::core::verdict::READ_ONLY);
        }
        const FOREIGN: Refusal = Refusal::of("ERR REPLCONF MEMBER of another release");
        let words: Vec<&[u8]> = args.from(2).collect();
        let report = Report::parse(&words).ok_or(FOREIGN)?;
        // What it said as a replica, to whoever led before at its own address.
        if report.member.id == core.process.member_id() {
            return Err(crate::core::verdict::READ_ONLY);
        }
        // It is told the stream of commands, between which no answer may stand.
        if core.clients.at(client).is_replica() {
            return Err(Refusal::of("ERR REPLCONF MEMBER of a replica that asked for PSYNC"));
        }
        let lag = core.leadership.lag_of(report.applied);
        let now = core.turn.monotonic;
        let (host, port) = (report.member.host.clone(), report.member.port);
        if self.reports.take(client, report, now) {
            let session = core.clients.at_mut(client);
            session.kind = ClientKind::Member;
            let (client, peer) = (session.who.id, &session.who.peer);
            tracing::info!(host, port, client, peer, "a replica of the log is here");
        }
        let mut members = self.reports.known(now);
        members.sort_by_key(|known| known.member.id);
        let (newest, snapshot) = (core.shard.newest_id(), core.newest_snapshot());
        Answer { newest, lag, snapshot, members }.encode(core.clients.reply(client));
        Ok(())
    }

    /// How many replicas have applied a record that a session wrote.
    pub(crate) fn through(&self, core: &Core, wrote: Sequence) -> usize {
        self.reports.through(core.shard.in_log(wrote).sequence)
    }
}
