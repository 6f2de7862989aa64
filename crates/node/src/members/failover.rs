//! A planned failover: leadership goes to a replica that has everything.
//!
//! ```text
//! FAILOVER ─▶ writes wait ─▶ a replica has it all ─▶ nothing is served ─▶ Yield durable
//!     ─▶ the successor leads at once; this process begins again as a replica
//! ABORT, or the time is up ─▶ writes go on
//! ```
//! That the successor has everything only makes it quick. Were it gone, others lead a lease later,
//! and the log lets nobody lead who has not read everything.

use super::{PRIORITY_LAST, Reported};
use crate::core::{Core, Stop};
use crate::server::Server;
use base::{MonotonicNanos, Sequence};
use shard::role::member::MemberId;
use std::cmp::Reverse;
use txlog::Gate;

/// A replica that has not reported for so long is no successor, in nanoseconds.
const SILENCE_NANOS_MAX: u64 = 3_000_000_000;

/// How long a `Yield` may be under way, in nanoseconds. Nothing is served any more, so it is safe
/// to go without its answer.
const YIELD_NANOS_MAX: u64 = 5_000_000_000;

/// What FAILOVER asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failover {
    /// To whom; `None`: to whoever is ready first, and of several to the one of lowest priority.
    pub target: Option<(String, u16)>,
    /// When to give up waiting for the successor; `None`: never.
    pub until: Option<MonotonicNanos>,
    /// Then not to give up, but to hand over as it is.
    pub forces: bool,
    /// Since when a `Yield` is under way.
    yielding_since: Option<MonotonicNanos>,
}

impl Failover {
    pub fn new(target: Option<(String, u16)>, until: Option<MonotonicNanos>, forces: bool) -> Self {
        Self { target, until, forces, yielding_since: None }
    }

    /// As INFO names it.
    pub fn state(failover: Option<&Self>) -> &'static str {
        match failover {
            None => "no-failover",
            Some(Self { yielding_since: None, .. }) => "waiting-for-sync",
            Some(_) => "failover-in-progress",
        }
    }

    fn concerns(&self, reported: &Reported) -> bool {
        let member = &reported.report.member;
        self.target.as_ref().is_none_or(|(host, port)| member.host == *host && member.port == *port)
    }
}

/// How much a replica should lead, of several if the primary ends now.
fn rank(priority: u32, applied: Sequence) -> impl Ord {
    (priority != PRIORITY_LAST, applied, Reverse(priority))
}

impl Server {
    /// Replicas that may take over, with how far they are.
    fn successors(&self) -> impl Iterator<Item = &Reported> {
        let reports = self.core.sessions().filter_map(|session| session.member.as_deref());
        reports.filter(|it| {
            it.report.priority > 0 && self.core.turn.monotonic.since(it.at) < SILENCE_NANOS_MAX
        })
    }

    /// Whether a replica is reached at this address, and may take over.
    pub(crate) fn is_successor(&self, host: &str, port: u16) -> bool {
        let target = Failover::new(Some((host.to_owned(), port)), None, false);
        self.successors().any(|it| target.concerns(it))
    }

    pub(crate) fn has_successors(&self) -> bool {
        self.successors().next().is_some()
    }

    /// Who should lead next if this process ends now: of those who are furthest, the one that is
    /// preferred most. One that leaves it to others only if there is no other.
    pub(crate) fn best_successor(&self) -> Option<MemberId> {
        let best =
            self.successors().max_by_key(|it| rank(it.report.priority, it.report.applied))?;
        Some(best.report.member.id)
    }

    pub(crate) fn begin_failover(&mut self, failover: Failover) {
        tracing::info!(target = ?failover.target, "failover requested");
        self.core.pause.is_failing_over = true;
        self.failover = Some(failover);
    }

    /// Ends a failover that has not handed over yet; whether there was one.
    pub(crate) fn abort_failover(&mut self, why: &str) -> bool {
        let is_waiting = matches!(&self.failover, Some(Failover { yielding_since: None, .. }));
        if is_waiting {
            tracing::warn!("failover aborted: {why}");
            self.failover = None;
            self.core.pause.is_failing_over = false;
        }
        is_waiting
    }

    /// Does what a failover needs next.
    pub(crate) fn advance_failover(&mut self) {
        let Some(failover) = &self.failover else { return };
        if let Some(since) = failover.yielding_since {
            let is_late = self.core.turn.monotonic.since(since) > YIELD_NANOS_MAX;
            if is_late || !self.core.shard.is_in_flight() {
                let why = "leadership was handed over".to_owned();
                self.core.stopping.get_or_insert(Stop::Demoted(why));
            }
            return;
        }
        let is_late = failover.until.is_some_and(|until| self.core.turn.monotonic >= until);
        if is_late && !failover.forces {
            self.abort_failover("no replica was ready in time");
            return;
        }
        let newest = self.core.shard.newest_id();
        let concerned = || self.successors().filter(|it| failover.concerns(it));
        let is_last = |it: &Reported| it.report.priority == PRIORITY_LAST;
        let has_better = concerned().any(|it| !is_last(it));
        let ready = concerned()
            .filter(|it| !(has_better && is_last(it)))
            .filter(|it| is_late || it.report.newest.covers(&newest));
        let successor = ready.min_by_key(|it| it.report.priority).map(|it| it.report.member.id);
        if let Some(successor) = successor
            && self.is_quiet()
        {
            tracing::info!(%successor, "hands leadership over");
            self.yield_to(Some(successor));
            if let Some(failover) = &mut self.failover {
                failover.yielding_since = Some(self.core.turn.monotonic);
            }
        } else if is_late && successor.is_none() {
            self.abort_failover("the replica is gone");
        }
    }

    /// Whether everything executed is durable and sent, and the log takes a record.
    fn is_quiet(&self) -> bool {
        let is_written = !self.core.shard.has_gathered() && !self.core.shard.is_in_flight();
        let is_sent = self.core.clients.flushing.is_empty() && self.core.clients.held.is_empty();
        is_written
            && is_sent
            && self.core.leadership.roles.leads()
            && self.core.shard.gate() == Gate::Open
    }

    /// Serves no more, then says so in the log.
    pub(crate) fn yield_to(&mut self, successor: Option<MemberId>) {
        let Core { leadership, shard, .. } = &mut self.core;
        leadership.hand_over(shard, successor);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_furthest_leads_then_who_is_preferred_and_a_wrong_clock_last() {
        let best_first = [(100, 9), (50, 8), (100, 8), (PRIORITY_LAST, 20), (PRIORITY_LAST, 9)];
        for (better, worse) in best_first.iter().zip(&best_first[1..]) {
            let of = |(priority, applied): &(u32, u64)| rank(*priority, Sequence(*applied));
            assert!(of(better) > of(worse), "{better:?} before {worse:?}");
        }
    }
}
