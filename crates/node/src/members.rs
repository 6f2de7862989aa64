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
//! | [`exchange`] | the words, without connection or clock |
//! | `reports` | what the primary makes of reports |
//! | `reads` | linearizable reads on a replica |
//! | [`failover`] | a planned failover |

pub mod exchange;
pub mod failover;
mod reads;
mod reports;

use crate::server::Server;
use base::driver::{Received, Sent};
use base::{ConnectionId, Driver, MonotonicNanos, Sequence};
use exchange::{Answer, Exchange};
pub use reads::Reads;
pub(crate) use reads::UNKNOWN;
pub use reports::Reported;
use shard::Lag;
use shard::RecordId;
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

/// The priority of whoever is chosen only if there is nobody else. An operator cannot give it.
const PRIORITY_LAST: u32 = u32::MAX;

/// Bytes received at a time.
const RECEIVE_BYTES: usize = 16 << 10;

/// Bytes of an answer under way, at most: thousands of members.
const INPUT_BYTES_MAX: usize = 1 << 20;

/// What a replica says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    pub member: Member,
    /// The last record applied, and its number in the log.
    pub newest: RecordId,
    pub applied: Sequence,
    /// `replica-priority`: 0 never leads.
    pub priority: u32,
    /// The newest snapshot in its store.
    pub snapshot: Option<Sighting>,
}

/// A replica, as others know it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    pub member: Member,
    pub applied: Sequence,
    /// Since it last reported.
    pub silence_millis: u64,
}

/// How far the connection to the primary is.
#[derive(Default)]
enum Phase {
    #[default]
    Apart,
    Dialing,
    Open(Box<Exchange>),
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

impl Server {
    /// The replicas of this shard, as far as this process knows: a primary those that report, a
    /// replica those that its primary told it of.
    pub fn known_members(&self) -> Vec<Known> {
        if self.core.is_following() { self.members.heard.clone() } else { self.reporting_members() }
    }

    /// Keeps up the connection to the primary, and reports.
    pub(crate) fn advance_members(&mut self, driver: &mut dyn Driver) {
        for connection in std::mem::take(&mut self.members.dropped) {
            driver.close(connection);
        }
        let primary = self.core.leadership.roles.leader().map(|leader| &leader.member);
        let primary = primary.filter(|it| it.port > 0 && it.id != self.core.leadership.roles.id());
        let primary = primary.filter(|_| self.core.is_following() && self.core.stopping.is_none());
        if primary != self.members.primary.as_ref() {
            let primary = primary.cloned();
            self.members.hang_up();
            self.members.primary = primary;
            self.members.retry_at = self.core.turn.monotonic;
        }
        self.dial_primary(driver);
        self.report(driver);
    }

    fn dial_primary(&mut self, driver: &mut dyn Driver) {
        let Some(primary) = &self.members.primary else { return };
        if !matches!(self.members.phase, Phase::Apart)
            || self.members.retry_at > self.core.turn.monotonic
        {
            return;
        }
        self.members.connection = Some(driver.connect(&primary.host, primary.port));
        self.members.phase = Phase::Dialing;
        self.members.said = self.core.turn.monotonic;
    }

    /// Only once everything that the turn brings was received: a read that is received later may
    /// have arrived later than the primary answers.
    fn report(&mut self, driver: &mut dyn Driver) {
        let applied = self.core.shard.appended().sequence;
        let awaits = match &self.members.phase {
            Phase::Apart => return,
            Phase::Dialing => true,
            Phase::Open(exchange) => exchange.awaits(),
        };
        if awaits {
            if self.core.turn.monotonic.since(self.members.said) > ANSWER_NANOS_MAX {
                self.lose_primary("it does not answer");
            }
            return;
        }
        let priority = self.priority();
        if !self.members.is_report_due(applied, priority, self.core.turn.monotonic) {
            return;
        }
        let (member, newest) = (self.core.process.member(), self.core.shard.newest_id());
        let snapshot = self.newest_snapshot();
        let report = Report { member, newest, applied, priority, snapshot };
        let members = &mut self.members;
        if let Phase::Open(exchange) = &mut members.phase {
            exchange.report(&report, self.core.turn.number);
            members.said = self.core.turn.monotonic;
            members.said_of = applied;
            members.said_priority = priority;
            members.reads.asked();
        }
        self.flush_members(driver);
    }

    /// How little this replica should lead: Redis's replica-priority, and the last one to be chosen
    /// while it leaves leadership to others.
    fn priority(&self) -> u32 {
        let priority = self.core.process.settings.replica_priority;
        if self.core.leadership.leaves_it_to_others() && priority > 0 {
            PRIORITY_LAST
        } else {
            priority
        }
    }

    /// In how many nanoseconds there is something to do; `None`: not by time.
    pub(crate) fn members_wait_nanos(&self) -> Option<u64> {
        let members = &self.members;
        members.primary.as_ref()?;
        let now = self.core.turn.monotonic;
        let (since, period) = match &members.phase {
            Phase::Apart => return Some(members.retry_at.since(now)),
            Phase::Open(exchange) if !exchange.awaits() => {
                let has_news = self.core.shard.appended().sequence > members.said_of;
                (members.said, if has_news { NEWS_NANOS } else { ALIVE_NANOS })
            }
            _ => (members.said, ANSWER_NANOS_MAX),
        };
        Some(period.saturating_sub(now.since(since)))
    }

    fn lose_primary(&mut self, why: &str) {
        if self.members.told.as_deref() != Some(why) {
            tracing::warn!("cannot tell the primary of this replica: {why}");
            self.members.told = Some(why.to_owned());
        }
        self.members.hang_up();
        self.members.retry_at = MonotonicNanos(self.core.turn.monotonic.0 + RETRY_NANOS);
    }

    /// Whether a connection that stands is one to the primary; then it is taken.
    pub(crate) fn members_connected(
        &mut self,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.members.is_own(connection) {
            return false;
        }
        let exchange = Exchange::new(
            &self.core.process.settings.masteruser,
            &self.core.process.settings.masterauth,
        );
        self.members.phase = Phase::Open(Box::new(exchange));
        self.flush_members(driver);
        true
    }

    /// As [`Self::members_connected`], for one that could not be had.
    pub(crate) fn members_unreachable(&mut self, connection: ConnectionId, why: &str) -> bool {
        let is_own = self.members.is_own(connection);
        if is_own {
            self.members.connection = None;
            self.lose_primary(why);
        }
        is_own
    }

    /// As [`Self::members_connected`], for one that broke.
    pub(crate) fn members_broken(&mut self, connection: ConnectionId) -> bool {
        let is_own = self.members.is_own(connection);
        if is_own {
            self.lose_primary("the connection broke");
        }
        is_own
    }

    /// As [`Self::members_connected`], for one that takes bytes again.
    pub(crate) fn members_writable(
        &mut self,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        let is_own = self.members.is_own(connection);
        if is_own {
            self.flush_members(driver);
        }
        is_own
    }

    fn flush_members(&mut self, driver: &mut dyn Driver) {
        let members = &mut self.members;
        let (Phase::Open(exchange), Some(connection)) = (&mut members.phase, members.connection)
        else {
            return;
        };
        match driver.send(connection, &exchange.output) {
            Sent::Bytes(count) => drop(exchange.output.drain(..count)),
            Sent::Closed => self.lose_primary("the connection broke"),
        }
    }

    /// As [`Self::members_connected`], for one on which bytes arrived.
    pub(crate) fn members_readable(
        &mut self,
        driver: &mut dyn Driver,
        connection: ConnectionId,
    ) -> bool {
        if !self.members.is_own(connection) {
            return false;
        }
        let Phase::Open(exchange) = &mut self.members.phase else { return true };
        let received = driver.receive(connection, &mut exchange.input, RECEIVE_BYTES);
        let is_too_long = exchange.input.len() > INPUT_BYTES_MAX;
        loop {
            let Phase::Open(exchange) = &mut self.members.phase else { return true };
            match exchange.hear() {
                Ok(Some((answer, turn))) => self.take_answer(answer, turn),
                Ok(None) => break,
                Err(why) => {
                    self.lose_primary(&why);
                    return true;
                }
            }
        }
        if received == Received::Closed || is_too_long {
            self.lose_primary("the connection ended");
        }
        true
    }

    fn take_answer(&mut self, answer: Answer, turn: u64) {
        self.members.told = None;
        self.members.lag = answer.lag;
        self.members.heard = answer.members;
        self.members.snapshot = answer.snapshot;
        self.members.reads.learned(answer.newest, turn);
    }
}
