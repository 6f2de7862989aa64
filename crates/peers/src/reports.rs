//! What a primary knows of the replicas that report to it, and which of them should lead next.

use crate::report::{KnownReplica, Report};
use base::{ConnectionId, MonotonicNanos, Sequence};
use shard::role::member::MemberId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The priority of whoever is chosen only if there is nobody else. An operator cannot give it.
pub const PRIORITY_LAST: u32 = u32::MAX;

/// A replica that has not reported for so long is no successor, in nanoseconds.
const SILENCE_NANOS_MAX: u64 = 3_000_000_000;

/// The last report that came on a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    pub report: Report,
    pub at: MonotonicNanos,
}

impl Reported {
    /// Where the replica says that it is.
    pub fn address(&self) -> String {
        format!("{}:{}", self.report.member.host, self.report.member.port)
    }

    /// Whether the replica is reached at this address.
    pub fn is_at(&self, host: &str, port: u16) -> bool {
        self.report.member.host == host && self.report.member.port == port
    }

    fn known(&self, now: MonotonicNanos) -> KnownReplica {
        KnownReplica {
            member: self.report.member.clone(),
            applied: self.report.applied,
            silence_millis: now.since(self.at) / 1_000_000,
        }
    }
}

/// The last reports of replicas, by their connections.
#[derive(Default, Debug)]
pub struct Reports(BTreeMap<ConnectionId, Reported>);

impl Reports {
    /// Takes a report; whether it is the first on its connection.
    pub fn take(&mut self, client: ConnectionId, report: Report, at: MonotonicNanos) -> bool {
        self.0.insert(client, Reported { report, at }).is_none()
    }

    /// A connection is gone; what it reported last.
    pub fn forget(&mut self, client: ConnectionId) -> Option<Reported> {
        self.0.remove(&client)
    }

    /// All of them, in the order in which their replicas connected.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ConnectionId, &Reported)> {
        self.0.iter().map(|(client, reported)| (*client, reported))
    }

    /// The replicas, as others are told of them.
    pub fn known(&self, now: MonotonicNanos) -> Vec<KnownReplica> {
        self.0.values().map(|it| it.known(now)).collect()
    }

    /// How many of them have applied the record with this number.
    pub fn through(&self, place: Sequence) -> usize {
        self.0.values().filter(|it| it.report.applied >= place).count()
    }

    /// How many of them reported within so many seconds.
    pub fn near(&self, seconds: u64, now: MonotonicNanos) -> usize {
        self.0.values().filter(|it| now.since(it.at) / 1_000_000_000 <= seconds).count()
    }

    /// Replicas that may take over.
    pub fn successors(&self, now: MonotonicNanos) -> impl Iterator<Item = &Reported> {
        let reports = self.0.values();
        reports.filter(move |it| it.report.priority > 0 && now.since(it.at) < SILENCE_NANOS_MAX)
    }

    /// Who should lead next if this process ends now: of those who are furthest, the one that is
    /// preferred most. One that leaves it to others only if there is no other.
    pub fn best_successor(&self, now: MonotonicNanos) -> Option<MemberId> {
        let rank = |it: &&Reported| rank(it.report.priority, it.report.applied);
        self.successors(now).max_by_key(rank).map(|it| it.report.member.id)
    }
}

/// How much a replica should lead, of several if the primary ends now.
fn rank(priority: u32, applied: Sequence) -> impl Ord {
    (priority != PRIORITY_LAST, applied, Reverse(priority))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use base::Epoch;
    use base::time::SECOND;
    use shard::RecordId;
    use shard::role::member::Member;
    use txlog::Chain;
    use txlog::record::ChainValue;

    /// The record with this number.
    pub fn record(sequence: u64) -> RecordId {
        let chain = Chain { value: ChainValue(sequence), epoch: Epoch(1) };
        RecordId { chain, counter: sequence }
    }

    /// What a replica says that has applied so much.
    pub fn report(number: u8, priority: u32, applied: u64) -> Report {
        let member = Member { id: MemberId([number; 20]), host: format!("h{number}"), port: 1 };
        let (newest, applied) = (record(applied), Sequence(applied));
        Report { member, newest, applied, priority, snapshot: None }
    }

    #[test]
    fn who_is_furthest_leads_then_who_is_preferred_and_a_wrong_clock_last() {
        let best_first = [(100, 9), (50, 8), (100, 8), (PRIORITY_LAST, 20), (PRIORITY_LAST, 9)];
        for (better, worse) in best_first.iter().zip(&best_first[1..]) {
            let of = |(priority, applied): &(u32, u64)| rank(*priority, Sequence(*applied));
            assert!(of(better) > of(worse), "{better:?} before {worse:?}");
        }
    }

    #[test]
    fn who_is_silent_or_never_leads_is_no_successor() {
        let mut reports = Reports::default();
        let now = MonotonicNanos(10 * SECOND);
        assert!(reports.take(ConnectionId(1), report(1, 100, 5), MonotonicNanos(6 * SECOND)));
        assert!(reports.take(ConnectionId(2), report(2, 0, 9), now));
        assert_eq!(reports.best_successor(now), None);
        assert_eq!((reports.near(2, now), reports.near(4, now)), (1, 2));
        assert_eq!((reports.through(Sequence(6)), reports.through(Sequence(5))), (1, 2));
        assert!(!reports.take(ConnectionId(1), report(1, 100, 6), now), "not the first");
        assert_eq!(reports.best_successor(now), Some(MemberId([1; 20])));
        let gone = reports.forget(ConnectionId(1)).map(|it| it.address());
        assert_eq!((gone.as_deref(), reports.iter().len()), (Some("h1:1"), 1));
    }
}
