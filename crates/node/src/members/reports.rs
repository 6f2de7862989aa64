//! What the primary makes of its replicas' reports.

use super::exchange::Answer;
use super::{Known, Members, Report};
use crate::core::Core;
use crate::session::ClientKind;
use base::{ConnectionId, MonotonicNanos, Sequence};
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;

/// The last report of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    pub report: Report,
    pub at: MonotonicNanos,
}

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
        let lag = core.leadership.lag_of(report.applied);
        let now = core.turn.monotonic;
        if !self.reports.contains_key(&client) {
            let session = core.clients.at_mut(client);
            session.kind = ClientKind::Member;
            let Report { member, .. } = &report;
            let (client, peer) = (session.who.id, &session.who.peer);
            let (host, port) = (&member.host, member.port);
            tracing::info!(host, port, client, peer, "a replica of the log is here");
        }
        self.reports.insert(client, Reported { report, at: now });
        let mut members = self.reporting(core);
        members.sort_by_key(|known| known.member.id);
        let (newest, snapshot) = (core.shard.newest_id(), core.newest_snapshot());
        Answer { newest, lag, snapshot, members }.encode(core.clients.reply(client));
        Ok(())
    }

    /// The replicas that report.
    pub(super) fn reporting(&self, core: &Core) -> Vec<Known> {
        let reports = self.reports.values();
        reports.map(|it| it.known(core.turn.monotonic)).collect()
    }

    /// The last reports, in the order in which their replicas connected.
    pub fn reports(&self) -> impl Iterator<Item = (ConnectionId, &Reported)> {
        self.reports.iter().map(|(client, reported)| (*client, reported))
    }

    /// A client is gone; what it reported last, if it is a replica.
    pub(crate) fn forget(&mut self, client: ConnectionId) -> Option<Reported> {
        self.reports.remove(&client)
    }

    /// How many of them have applied a record that a session wrote.
    pub(crate) fn through(&self, core: &Core, wrote: Sequence) -> usize {
        let place = core.shard.in_log(wrote).sequence;
        let reports = self.reports.values();
        reports.filter(|it| it.report.applied >= place).count()
    }

    /// How many of them reported within so many seconds.
    pub(crate) fn near(&self, core: &Core, seconds: u64) -> usize {
        let reports = self.reports.values();
        reports.filter(|it| core.turn.monotonic.since(it.at) / 1_000_000_000 <= seconds).count()
    }
}

impl Reported {
    /// Where the replica says that it is.
    pub fn address(&self) -> String {
        format!("{}:{}", self.report.member.host, self.report.member.port)
    }

    fn known(&self, now: MonotonicNanos) -> Known {
        Known {
            member: self.report.member.clone(),
            applied: self.report.applied,
            silence_millis: now.since(self.at) / 1_000_000,
        }
    }
}
