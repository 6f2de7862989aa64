//! What the primary makes of its replicas' reports.

use super::exchange::Answer;
use super::{Known, Report};
use crate::server::Server;
use base::{ConnectionId, MonotonicNanos, Sequence};
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;

/// The last report of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    pub report: Report,
    pub at: MonotonicNanos,
}

impl Server {
    /// REPLCONF MEMBER: takes a report, and answers.
    pub(crate) fn take_report(&mut self, client: ConnectionId, args: Args<'_>) -> Outcome {
        if !self.core.leadership.roles.leads() || self.core.leadership.roles.is_alone() {
            return Err(crate::link::READ_ONLY);
        }
        const FOREIGN: Refusal = Refusal::of("ERR REPLCONF MEMBER of another release");
        let words: Vec<&[u8]> = args.from(2).collect();
        let report = Report::parse(&words).ok_or(FOREIGN)?;
        let lag = self.lag_of(report.applied);
        let session = self.core.clients.at_mut(client);
        if session.member.is_none() {
            let Report { member, .. } = &report;
            let (client, peer) = (session.id, &session.peer);
            let (host, port) = (&member.host, member.port);
            tracing::info!(host, port, client, peer, "a replica of the log is here");
        }
        session.member = Some(Box::new(Reported { report, at: self.core.turn.monotonic }));
        let mut members = self.reporting_members();
        members.sort_by_key(|known| known.member.id);
        let (newest, snapshot) = (self.core.shard.newest_id(), self.newest_snapshot());
        Answer { newest, lag, snapshot, members }.encode(self.core.clients.reply(client));
        self.answer_waiters();
        Ok(())
    }

    /// How far behind this primary a replica is that has applied the log through here.
    pub(crate) fn lag_of(&self, applied: Sequence) -> shard::Lag {
        self.core.leadership.lag_of(applied)
    }

    /// How far this server is, in what its replicas count: records if they are replicas of the log,
    /// else bytes of the stream of commands.
    pub(crate) fn offset_shown(&self) -> u64 {
        let is_log = self.core.sessions().any(|session| session.member.is_some());
        let is_fed = self.feed.backlog().is_some();
        if is_log && !is_fed {
            self.core.shard.appended().sequence.0
        } else {
            self.core.stream.offset
        }
    }

    /// The replicas that report.
    pub(super) fn reporting_members(&self) -> Vec<Known> {
        let reports = self.core.sessions().filter_map(|session| session.member.as_deref());
        reports.map(|it| it.known(self.core.turn.monotonic)).collect()
    }

    /// How many of them have applied a record that a session wrote.
    pub(crate) fn members_through(&self, wrote: Sequence) -> usize {
        let place = self.core.shard.in_log(wrote).sequence;
        let reports = self.core.sessions().filter_map(|session| session.member.as_deref());
        reports.filter(|it| it.report.applied >= place).count()
    }

    /// How many of them reported within so many seconds.
    pub(crate) fn near_members(&self, seconds: u64) -> usize {
        let reports = self.core.sessions().filter_map(|session| session.member.as_deref());
        reports
            .filter(|it| self.core.turn.monotonic.since(it.at) / 1_000_000_000 <= seconds)
            .count()
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
