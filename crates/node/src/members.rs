//! The members of a shard know each other: replicas tell their primary that they exist and how far
//! they are, and hear where the log stands and who else is there.
//!
//! ```text
//! replica ── REPLCONF MEMBER: who, where, how far, the newest snapshot seen ──▶ primary
//!         ◀─ the newest record, the lag, the newest snapshot, the members ─
//! ```
//! Nothing of leadership depends on it: the log is what they share. Of durability one thing does:
//! the log is not trimmed while a replica that reports does not see the snapshots
//! ([`shard::snapshots`]). It serves those who ask: INFO, ROLE, CLUSTER, WAIT; a planned failover,
//! which wants a successor that is near; and linearizable reads on replicas, which want to know
//! where the log stands.
//!
//! | file | holds |
//! |---|---|
//! | `reports` | what the primary answers to a report |
//! | `reads` | linearizable reads on a replica |
//! | `failover` | a planned failover |
//!
//! The words themselves, and who should lead next, stand in [`peers`].

pub(crate) mod failover;
mod reads;
mod reports;

use crate::core::Core;
use base::driver::{Endpoint, Received, Sent};
use base::{ConnectionId, Driver, MonotonicNanos, Sequence};
use peers::failover::Failover;
use peers::report::{Answer, Known, Report, ReportDialogue};
use peers::reports::{PRIORITY_LAST, Reports};
pub use reads::Reads;
use shard::Lag;
use shard::role::member::Member;
use shard::snapshots::Sighting;

/// Time between two reports of a replica that came further, in nanoseconds. A report costs the
/// primary some microseconds: of five replicas, 0.3 % of a core at most.
const NEWS_NANOS: u64 = 20_000_000;

/// The same of one that did not, in nanoseconds. As Redis's replicas.
const ALIVE_NANOS: u64 = 1_000_000_000;

/// Time between two attempts to reach the primary, in nanoseconds. Short, because reads may wait
/// for it.
const RETRY_NANOS: u64 = 250_000_000;

/// How long a primary may take to answer or to accept, in nanoseconds; the replica then tries anew.
const ANSWER_NANOS_MAX: u64 = 5_000_000_000;

/// Bytes received at a time.
const RECEIVE_BYTES: usize = 16 << 10;

/// Bytes of an answer under way, at most: thousands of members.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// How far the connection to the primary is.
#[derive(Default)]
enum Phase {
    #[default]
    Apart,
    Dialing,
    Open(Box<ReportDialogue>),
}

/// What a replica keeps up with its primary.
#[derive(Default)]
pub struct Members {
    phase: Phase,
    connection: Option<ConnectionId>,
    /// Whom the connection goes to.
    primary: Option<Member>,
    retry_at: MonotonicNanos,
    /// When the connection was asked for, or the last report sent.
    said: MonotonicNanos,
    /// What was applied then.
    said_of: Sequence,
    /// The priority that it named.
    said_priority: u32,
    /// What the primary said last.
    lag: Lag,
    heard: Vec<Known>,
    snapshot: Option<Sighting>,
    /// The failure that was last written to the log: a lasting one is told once.
    told: Option<String>,
    pub(crate) reads: Reads,
    /// The last reports of replicas, by their connections.
    pub(crate) reports: Reports,
    /// A planned failover.
    pub(crate) failover: Option<Failover>,
    /// Connections given up, to be closed.
    dropped: Vec<ConnectionId>,
}

impl Members {
    /// Every connection to a primary.
    pub(crate) fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.connection.into_iter().chain(self.dropped.iter().copied())
    }

    /// How far this replica was behind when its primary last said so; `None`: nothing was heard on
    /// this connection.
    pub fn lag(&self) -> Option<Lag> {
        matches!(self.phase, Phase::Open(_)).then_some(self.lag)
    }

    /// The newest snapshot that the primary published, if it is still heard.
    pub(crate) fn primary_snapshot(&self) -> Option<Sighting> {
        self.snapshot.filter(|_| self.lag().is_some())
    }

    fn is_own(&self, connection: ConnectionId) -> bool {
        self.connection == Some(connection)
    }

    /// Ends whatever is under way; the reads wait on.
    fn hang_up(&mut self) {
        self.phase = Phase::Apart;
        self.dropped.extend(self.connection.take());
        self.reads.ask_again();
    }

    /// Whether a report should go out now.
    fn is_report_due(&self, applied: Sequence, priority: u32, now: MonotonicNanos) -> bool {
        let since = now.since(self.said);
        self.reads.wants()
            || priority != self.said_priority
            || since >= ALIVE_NANOS
            || applied > self.said_of && since >= NEWS_NANOS
    }
}

impl Members {
    /// The replicas of this shard, as far as this process knows: a primary those that report, a
    /// replica those that its primary told it of.
    pub fn known(&self, core: &Core) -> Vec<Known> {
        if core.is_following() {
            self.heard.clone()
        } else {
            self.reports.known(core.turn.monotonic)
        }
    }

    /// Keeps up the connection to the primary, and reports.
    pub(crate) fn advance(&mut self, core: &Core, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.dropped) {
            driver.close(connection);
        }
        let primary = core.leadership.roles.leader().map(|leader| &leader.member);
        let primary = primary.filter(|it| it.port > 0 && it.id != core.leadership.roles.id());
        let primary = primary.filter(|_| core.is_following() && core.stopping.is_none());
        if primary != self.primary.as_ref() {
            let primary = primary.cloned();
            self.hang_up();
            self.primary = primary;
            self.retry_at = core.turn.monotonic;
        }
        self.dial_primary(core, driver);
        self.report(core, driver);
    }

    fn dial_primary(&mut self, core: &Core, driver: &mut dyn Driver) {
        let Some(primary) = &self.primary else { return };
        if !matches!(self.phase, Phase::Apart) || self.retry_at > core.turn.monotonic {
            return;
        }
        let endpoint = Endpoint::tcp(&*primary.host, primary.port);
        self.connection = Some(driver.connect(&endpoint));
        self.phase = Phase::Dialing;
        self.said = core.turn.monotonic;
    }

    /// Only once everything that the turn brings was received: a read that is received later may
    /// have arrived later than the primary answers.
    fn report(&mut self, core: &Core, driver: &mut dyn Driver) {
        let applied = core.shard.appended().sequence;
        let awaits = match &self.phase {
            Phase::Apart => return,
            Phase::Dialing => true,
            Phase::Open(dialogue) => dialogue.awaits(),
        };
        if awaits {
            if core.turn.monotonic.since(self.said) > ANSWER_NANOS_MAX {
                self.lose_primary(core, "it does not answer");
            }
            return;
        }
        let priority = self.priority(core);
        if !self.is_report_due(applied, priority, core.turn.monotonic) {
            return;
        }
        let (member, newest) = (core.process.member(), core.shard.newest_id());
        let snapshot = core.newest_snapshot();
        let report = Report { member, newest, applied, priority, snapshot };
        if let Phase::Open(dialogue) = &mut self.phase {
            dialogue.report(&report, core.turn.number);
            self.said = core.turn.monotonic;
            self.said_of = applied;
            self.said_priority = priority;
            self.reads.asked();
        }
        self.flush(core, driver);
    }

    /// How little this replica should lead: Redis's replica-priority, and the last one to be chosen
    /// while it leaves leadership to others.
    fn priority(&self, core: &Core) -> u32 {
        let priority = core.process.settings.replica_priority;
        if core.leadership.leaves_it_to_others() && priority > 0 { PRIORITY_LAST } else { priority }
    }

    /// In how many nanoseconds there is something to do; `None`: not by time.
    pub(crate) fn wait_nanos(&self, core: &Core) -> Option<u64> {
        self.primary.as_ref()?;
        let now = core.turn.monotonic;
        let (since, period) = match &self.phase {
            Phase::Apart => return Some(self.retry_at.since(now)),
            Phase::Open(dialogue) if !dialogue.awaits() => {
                let has_news = core.shard.appended().sequence > self.said_of;
                (self.said, if has_news { NEWS_NANOS } else { ALIVE_NANOS })
            }
            _ => (self.said, ANSWER_NANOS_MAX),
        };
        Some(period.saturating_sub(now.since(since)))
    }

    fn lose_primary(&mut self, core: &Core, why: &str) {
        if self.told.as_deref() != Some(why) {
            tracing::warn!("cannot tell the primary of this replica: {why}");
            self.told = Some(why.to_owned());
        }
        self.hang_up();
        self.retry_at = MonotonicNanos(core.turn.monotonic.0 + RETRY_NANOS);
    }

    /// Whether a connection that stands is one to the primary; then it is taken.
    pub(crate) fn connected(
        &mut self,
        core: &Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.is_own(connection) {
            return false;
        }
        let dialogue = ReportDialogue::new(
            &core.process.settings.masteruser,
            &core.process.settings.masterauth,
        );
        self.phase = Phase::Open(Box::new(dialogue));
        self.flush(core, driver);
        true
    }

    /// As [`Self::connected`], for one that could not be had.
    pub(crate) fn unreachable(&mut self, core: &Core, connection: ConnectionId, why: &str) -> bool {
        let is_own = self.is_own(connection);
        if is_own {
            self.connection = None;
            self.lose_primary(core, why);
        }
        is_own
    }

    /// As [`Self::connected`], for one that broke.
    pub(crate) fn broken(&mut self, core: &Core, connection: ConnectionId) -> bool {
        let is_own = self.is_own(connection);
        if is_own {
            self.lose_primary(core, "the connection broke");
        }
        is_own
    }

    /// As [`Self::connected`], for one that takes bytes again.
    pub(crate) fn writable(
        &mut self,
        core: &Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        let is_own = self.is_own(connection);
        if is_own {
            self.flush(core, driver);
        }
        is_own
    }

    fn flush(&mut self, core: &Core, driver: &mut dyn Driver) {
        let (Phase::Open(dialogue), Some(connection)) = (&mut self.phase, self.connection) else {
            return;
        };
        match driver.send(connection, &dialogue.output) {
            Sent::Bytes(count) => drop(dialogue.output.drain(..count)),
            Sent::Closed => self.lose_primary(core, "the connection broke"),
        }
    }

    /// As [`Self::connected`], for one on which bytes arrived.
    pub(crate) fn readable(
        &mut self,
        core: &Core,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.is_own(connection) {
            return false;
        }
        let Phase::Open(dialogue) = &mut self.phase else { return true };
        let received = driver.receive(connection, &mut dialogue.input, RECEIVE_BYTES);
        let is_too_long = dialogue.input.len() > INPUT_BYTES_MAX;
        loop {
            let Phase::Open(dialogue) = &mut self.phase else { return true };
            match dialogue.hear() {
                Ok(Some((answer, turn))) => self.take_answer(answer, turn),
                Ok(None) => break,
                Err(why) => {
                    self.lose_primary(core, &why);
                    return true;
                }
            }
        }
        if received == Received::Closed || is_too_long {
            self.lose_primary(core, "the connection ended");
        }
        true
    }

    fn take_answer(&mut self, answer: Answer, turn: u64) {
        self.told = None;
        self.lag = answer.lag;
        self.heard = answer.members;
        self.snapshot = answer.snapshot;
        self.reads.learned(answer.newest, turn);
    }
}
