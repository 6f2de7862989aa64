//! What the primary makes of its replicas' reports.

use super::exchange::Answer;
use super::{Known, Lag, Report};
use crate::server::Server;
use base::{ConnectionId, MonotonicNanos, Sequence};
use engine::command::{Args, Outcome};
use engine::refusal::Refusal;
use std::collections::VecDeque;

/// Records appended within so many nanoseconds are told apart by nothing but their number: how
/// exact a lag is told.
const SAMPLE_NANOS: u64 = 50_000_000;

/// Samples kept: of the last 200 s under load. A replica that is further behind is told as if it
/// were so far.
const SAMPLES_MAX: usize = 4096;

/// The last report of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    pub report: Report,
    pub at: MonotonicNanos,
}

/// Records that were appended at about the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Sample {
    /// When the first of them was.
    at: MonotonicNanos,
    /// The last of them, and the bytes appended through it since the process started.
    through: Sequence,
    bytes: u64,
}

/// How the log has grown lately.
#[derive(Default, Debug)]
pub struct Progress {
    samples: VecDeque<Sample>,
}

impl Progress {
    /// Begins where this process begins to append.
    pub fn begin(&mut self, appended: Sequence, bytes: u64, now: MonotonicNanos) {
        let at = MonotonicNanos(now.0.saturating_sub(SAMPLE_NANOS));
        self.samples = [Sample { at, through: appended, bytes }].into();
    }

    /// Notes how far the log is.
    pub fn note(&mut self, appended: Sequence, bytes: u64, now: MonotonicNanos) {
        match self.samples.back_mut() {
            Some(last) if last.through >= appended => {}
            Some(last) if now.since(last.at) < SAMPLE_NANOS => {
                (last.through, last.bytes) = (appended, bytes);
            }
            _ => {
                if self.samples.len() == SAMPLES_MAX {
                    self.samples.pop_front();
                }
                self.samples.push_back(Sample { at: now, through: appended, bytes });
            }
        }
    }

    /// How far behind the newest record noted somebody is who has applied the log through
    /// `applied`.
    pub fn lag(&self, applied: Sequence, now: MonotonicNanos) -> Lag {
        let at = self.samples.partition_point(|sample| sample.through <= applied);
        let (Some(after), Some(newest)) = (self.samples.get(at), self.samples.back()) else {
            return Lag::default();
        };
        let before = at.checked_sub(1).map_or(after, |index| &self.samples[index]);
        let span = after.through.0.saturating_sub(before.through.0).max(1);
        let done = applied.0.saturating_sub(before.through.0).min(span);
        let between = u128::from(after.bytes - before.bytes) * u128::from(done) / u128::from(span);
        Lag {
            records: newest.through.0 - applied.0,
            bytes: newest.bytes - before.bytes - between as u64,
            millis: now.since(after.at) / 1_000_000,
        }
    }
}

impl Server {
    /// REPLCONF MEMBER: takes a report, and answers.
    pub(crate) fn take_report(&mut self, client: ConnectionId, args: Args<'_>) -> Outcome {
        if !self.core.roles.leads() || self.core.roles.is_alone() {
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
    pub(crate) fn lag_of(&self, applied: Sequence) -> Lag {
        self.progress.lag(applied, self.core.turn.monotonic)
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

#[cfg(test)]
mod tests {
    use super::*;

    const MILLI: u64 = 1_000_000;

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * MILLI)
    }

    #[test]
    fn lag_is_told_in_records_bytes_and_time() {
        let mut progress = Progress::default();
        assert_eq!(progress.lag(Sequence(3), at(0)), Lag::default());
        progress.begin(Sequence(10), 1000, at(50));
        progress.note(Sequence(15), 2000, at(100));
        progress.note(Sequence(20), 3000, at(120));
        progress.note(Sequence(30), 5000, at(400));
        progress.note(Sequence(30), 5000, at(450));
        let lag = |applied| progress.lag(Sequence(applied), at(500));
        assert_eq!(lag(30), Lag::default());
        assert_eq!(lag(31), Lag::default(), "it knows more than we do");
        assert_eq!(lag(20), Lag { records: 10, bytes: 2000, millis: 100 });
        assert_eq!(lag(15), Lag { records: 15, bytes: 3000, millis: 400 });
        assert_eq!(lag(10), Lag { records: 20, bytes: 4000, millis: 400 });
        // From before this process led: what others appended is not known.
        assert_eq!(lag(5), Lag { records: 25, bytes: 4000, millis: 500 });
    }

    #[test]
    fn few_samples_are_kept() {
        let mut progress = Progress::default();
        for number in 0..2 * SAMPLES_MAX as u64 {
            progress.note(Sequence(number), number, MonotonicNanos(number * SAMPLE_NANOS));
        }
        assert_eq!(progress.samples.len(), SAMPLES_MAX);
    }
}
