//! A planned failover: leadership goes to a replica that has everything.
//!
//! ```text
//! FAILOVER ─▶ writes wait ─▶ a replica has it all ─▶ nothing is served ─▶ Yield durable
//!     ─▶ the successor leads at once; this process begins again as a replica
//! ABORT, or the time is up ─▶ writes go on
//! ```
//! That the successor has everything only makes it quick. Were it gone, others lead a lease later,
//! and the log lets nobody lead who has not read everything.

use super::{Members, PRIORITY_LAST, Reported};
use crate::core::{Core, Stop};
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

impl Members {
    /// Replicas that may take over, with how far they are.
    fn successors(&self, core: &Core) -> impl Iterator<Item = &Reported> {
        let reports = self.reports.values();
        reports.filter(|it| {
            it.report.priority > 0 && core.turn.monotonic.since(it.at) < SILENCE_NANOS_MAX
        })
    }

    /// Whether a replica is reached at this address, and may take over.
    pub(crate) fn is_successor(&self, core: &Core, host: &str, port: u16) -> bool {
        let target = Failover::new(Some((host.to_owned(), port)), None, false);
        self.successors(core).any(|it| target.concerns(it))
    }

    pub(crate) fn has_successors(&self, core: &Core) -> bool {
        self.successors(core).next().is_some()
    }

    /// Who should lead next if this process ends now: of those who are furthest, the one that is
    /// preferred most. One that leaves it to others only if there is no other.
    pub(crate) fn best_successor(&self, core: &Core) -> Option<MemberId> {
        let best =
            self.successors(core).max_by_key(|it| rank(it.report.priority, it.report.applied))?;
        Some(best.report.member.id)
    }

    pub(crate) fn begin_failover(&mut self, core: &mut Core, failover: Failover) {
        tracing::info!(target = ?failover.target, "failover requested");
        core.pause.is_failing_over = true;
        self.failover = Some(failover);
    }

    /// Ends a failover that has not handed over yet; whether there was one.
    pub(crate) fn abort_failover(&mut self, core: &mut Core, why: &str) -> bool {
        let is_waiting = matches!(&self.failover, Some(Failover { yielding_since: None, .. }));
        if is_waiting {
            tracing::warn!("failover aborted: {why}");
            self.failover = None;
            core.pause.is_failing_over = false;
        }
        is_waiting
    }

    /// Does what a failover needs next.
    pub(crate) fn advance_failover(&mut self, core: &mut Core) {
        let Some(failover) = &self.failover else { return };
        if let Some(since) = failover.yielding_since {
            let is_late = core.turn.monotonic.since(since) > YIELD_NANOS_MAX;
            if is_late || !core.shard.is_in_flight() {
                let why = "leadership was handed over".to_owned();
                core.stopping.get_or_insert(Stop::Demoted(why));
            }
            return;
        }
        let is_late = failover.until.is_some_and(|until| core.turn.monotonic >= until);
        if is_late && !failover.forces {
            self.abort_failover(core, "no replica was ready in time");
            return;
        }
        let newest = core.shard.newest_id();
        let concerned = || self.successors(core).filter(|it| failover.concerns(it));
        let is_last = |it: &Reported| it.report.priority == PRIORITY_LAST;
        let has_better = concerned().any(|it| !is_last(it));
        let ready = concerned()
            .filter(|it| !(has_better && is_last(it)))
            .filter(|it| is_late || it.report.newest.covers(&newest));
        let successor = ready.min_by_key(|it| it.report.priority).map(|it| it.report.member.id);
        if let Some(successor) = successor
            && self.is_quiet(core)
        {
            tracing::info!(%successor, "hands leadership over");
            hand_over(core, Some(successor));
            if let Some(failover) = &mut self.failover {
                failover.yielding_since = Some(core.turn.monotonic);
            }
        } else if is_late && successor.is_none() {
            self.abort_failover(core, "the replica is gone");
        }
    }

    /// Whether everything executed is durable and sent, and the log takes a record.
    fn is_quiet(&self, core: &Core) -> bool {
        let is_written = !core.shard.has_gathered() && !core.shard.is_in_flight();
        let is_sent = core.clients.flushing.is_empty() && core.clients.held.is_empty();
        is_written && is_sent && core.leadership.roles.leads() && core.shard.gate() == Gate::Open
    }
}

/// Serves no more, then says so in the log.
pub(crate) fn hand_over(core: &mut Core, successor: Option<MemberId>) {
    let Core { leadership, shard, .. } = core;
    leadership.hand_over(shard, successor);
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
