//! A planned failover: leadership goes to a replica that has everything. A machine without log or
//! clock: reports in, what to do next out.
//!
//! ```text
//! FAILOVER ─▶ writes wait ─▶ a replica has it all ─▶ nothing is served ─▶ Yield durable
//!     ─▶ the successor leads at once; this process begins again as a replica
//! ABORT, or the time is up ─▶ writes go on
//! ```
//! That the successor has everything only makes it quick. Were it gone, others lead a lease later,
//! and the log lets nobody lead who has not read everything.

use crate::reports::{PRIORITY_LAST, Reported, Reports};
use base::MonotonicNanos;
use shard::RecordId;
use shard::role::member::MemberId;

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

/// What a failover needs next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Nobody is ready.
    Wait,
    /// Hand over to this replica, once everything executed is durable and sent.
    HandOver(MemberId),
    /// Give up, and why.
    Abort(&'static str),
    /// Leadership was handed over: end this life once that is in the log, or now if it is late.
    End { is_late: bool },
}

impl Failover {
    /// One that was just asked for.
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

    /// Whether it can still be aborted: leadership was not handed over.
    pub fn is_waiting(&self) -> bool {
        self.yielding_since.is_none()
    }

    /// Leadership was handed over.
    pub fn note_yielded(&mut self, now: MonotonicNanos) {
        self.yielding_since = Some(now);
    }

    fn concerns(&self, reported: &Reported) -> bool {
        self.target.as_ref().is_none_or(|(host, port)| reported.is_at(host, *port))
    }

    /// What to do now, where the log ends with this record.
    pub fn next(&self, reports: &Reports, newest: &RecordId, now: MonotonicNanos) -> Next {
        if let Some(since) = self.yielding_since {
            return Next::End { is_late: now.since(since) > YIELD_NANOS_MAX };
        }
        let is_late = self.until.is_some_and(|until| now >= until);
        if is_late && !self.forces {
            return Next::Abort("no replica was ready in time");
        }
        let concerned = || reports.successors(now).filter(|it| self.concerns(it));
        let is_last = |it: &Reported| it.report.priority == PRIORITY_LAST;
        let has_better = concerned().any(|it| !is_last(it));
        let ready = concerned()
            .filter(|it| !(has_better && is_last(it)))
            .filter(|it| is_late || it.report.newest.covers(newest));
        match ready.min_by_key(|it| it.report.priority) {
            Some(successor) => Next::HandOver(successor.report.member.id),
            None if is_late => Next::Abort("the replica is gone"),
            None => Next::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reports::tests::{record, report};
    use base::ConnectionId;

    const NOW: MonotonicNanos = MonotonicNanos(50);

    /// Reports of replicas by priority and by what they have applied, numbered from 0.
    fn reports(of: &[(u32, u64)]) -> Reports {
        let mut reports = Reports::default();
        for (number, (priority, applied)) in (0..).zip(of) {
            let client = ConnectionId(u64::from(number));
            reports.take(client, report(number, *priority, *applied), NOW);
        }
        reports
    }

    fn to(number: u8) -> Next {
        Next::HandOver(MemberId([number; 20]))
    }

    #[test]
    fn it_goes_to_a_replica_that_has_everything_and_is_preferred() {
        let failover = Failover::new(None, None, false);
        let newest = record(7);
        assert_eq!(failover.next(&reports(&[(100, 6)]), &newest, NOW), Next::Wait);
        let both = reports(&[(100, 6), (200, 7)]);
        assert_eq!(failover.next(&both, &newest, NOW), to(1));
        assert_eq!(failover.next(&reports(&[(100, 7), (50, 7)]), &newest, NOW), to(1));
        let last = reports(&[(100, 6), (PRIORITY_LAST, 7)]);
        assert_eq!(failover.next(&last, &newest, NOW), Next::Wait, "there is a better one");
        assert_eq!(failover.next(&reports(&[(PRIORITY_LAST, 7)]), &newest, NOW), to(0));
        let named = Failover::new(Some(("h0".to_owned(), 1)), None, false);
        assert_eq!(named.next(&both, &newest, NOW), Next::Wait);
    }

    #[test]
    fn when_its_time_is_up_it_is_given_up_or_forced() {
        let newest = record(7);
        let behind = reports(&[(100, 6)]);
        let mild = Failover::new(None, Some(NOW), false);
        assert_eq!(mild.next(&behind, &newest, NOW), Next::Abort("no replica was ready in time"));
        let forced = Failover::new(Some(("h0".to_owned(), 1)), Some(NOW), true);
        assert_eq!(forced.next(&behind, &newest, MonotonicNanos(NOW.0 - 1)), Next::Wait);
        assert_eq!(forced.next(&behind, &newest, NOW), to(0));
        let nobody = Reports::default();
        assert_eq!(forced.next(&nobody, &newest, NOW), Next::Abort("the replica is gone"));
    }

    #[test]
    fn once_handed_over_it_ends_in_any_case() {
        let mut failover = Failover::new(None, None, false);
        assert!(failover.is_waiting());
        failover.note_yielded(NOW);
        assert!(!failover.is_waiting());
        let next = |at| failover.next(&Reports::default(), &record(7), at);
        assert_eq!(next(NOW), Next::End { is_late: false });
        assert_eq!(next(NOW.after_millis(5001)), Next::End { is_late: true });
    }
}
