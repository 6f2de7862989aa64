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
use crate::limits::RECEIVED_BYTES;
use base::driver::Endpoint;
use base::{ConnectionId, Driver, Event, MonotonicNanos, Sequence};
use peers::failover::Failover;
use peers::outgoing::{End, Happened, Outgoing, Retry};
use peers::report::{Answer, KnownReplica, Report, ReportDialogue};
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

/// Time between two attempts to reach the primary. Short, because reads may wait for it.
const RETRY: Retry = Retry { first_nanos: 250_000_000, nanos_max: 250_000_000 };

/// How long a primary may take to answer or to accept, in nanoseconds; the replica then tries anew.
const ANSWER_NANOS_MAX: u64 = 5_000_000_000;

/// What a replica keeps up with its primary.
#[derive(Default)]
pub struct Members {
    /// The connection to the primary. It is waited for since it was asked for, or since the last
    /// report.
    line: Outgoing,
    /// What is said on it, once it stands.
    dialogue: Option<Box<ReportDialogue>>,
    /// Whom the connection goes to.
    primary: Option<Member>,
    /// What was applied at the last report.
    said_of: Sequence,
    /// The priority that it named.
    said_priority: u32,
    /// What the primary said last.
    lag: Lag,
    heard: Vec<KnownReplica>,
    snapshot: Option<Sighting>,
    /// The failure that was last written to the log: a lasting one is told once.
    told: Option<String>,
    pub(crate) reads: Reads,
    /// The last reports of replicas, by their connections.
    pub(crate) reports: Reports,
    /// A planned failover.
    pub(crate) failover: Option<Failover>,
}

impl Members {
    /// The connection to the primary.
    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        self.line.connection()
    }

    /// How far this replica was behind when its primary last said so; `None`: nothing was heard on
    /// this connection.
    pub fn lag(&self) -> Option<Lag> {
        self.dialogue.is_some().then_some(self.lag)
    }

    /// The newest snapshot that the primary published, if it is still heard.
    pub(crate) fn primary_snapshot(&self) -> Option<Sighting> {
        self.snapshot.filter(|_| self.lag().is_some())
    }

    /// Ends whatever is under way; the reads wait on.
    fn hang_up(&mut self, driver: &mut dyn Driver) {
        if let Some(connection) = self.line.hang_up() {
            driver.close(connection);
        }
        self.dialogue = None;
        self.reads.ask_again();
    }

    /// Whether a report should go out now.
    fn is_report_due(&self, applied: Sequence, priority: u32, now: MonotonicNanos) -> bool {
        let since = self.line.waited_nanos(now);
        self.reads.wants()
            || priority != self.said_priority
            || since >= ALIVE_NANOS
            || applied > self.said_of && since >= NEWS_NANOS
    }
}

impl Members {
    /// The replicas of this shard, as far as this process knows: a primary those that report, a
    /// replica those that its primary told it of.
    pub fn known(&self, core: &Core) -> Vec<KnownReplica> {
        if core.is_following() {
            self.heard.clone()
        } else {
            self.reports.known(core.turn.monotonic)
        }
    }

    /// Keeps up the connection to the primary, and reports.
    pub(crate) fn advance(&mut self, core: &Core, driver: &mut dyn Driver) {
        let primary = core.leadership.roles.leader().map(|leader| &leader.member);
        let primary = primary.filter(|it| it.port > 0 && it.id != core.leadership.roles.id());
        let primary = primary.filter(|_| core.is_following() && core.stopping.is_none());
        if primary != self.primary.as_ref() {
            let primary = primary.cloned();
            self.hang_up(driver);
            self.primary = primary;
        }
        let now = core.turn.monotonic;
        if let Some(Member { host, port, .. }) = &self.primary
            && self.line.is_apart()
            && self.line.nanos_to_retry(now) == 0
        {
            let endpoint = Endpoint::tcp(host.as_str(), *port);
            self.line.dial(driver, &endpoint.encrypted(core.process.is_found_by_tls()), now);
        }
        self.report(core, driver);
    }

    /// Only once everything that the turn brings was received: a read that is received later may
    /// have arrived later than the primary answers.
    fn report(&mut self, core: &Core, driver: &mut dyn Driver) {
        if self.line.is_apart() {
            return;
        }
        let now = core.turn.monotonic;
        if self.is_awaiting() {
            if self.line.waited_nanos(now) > ANSWER_NANOS_MAX {
                self.lose_primary(core, driver, "it does not answer");
            }
            return;
        }
        let (applied, priority) = (core.shard.appended().sequence, self.priority(core));
        if !self.is_report_due(applied, priority, now) {
            return;
        }
        let (member, newest) = (core.process.member(), core.shard.newest_id());
        let snapshot = core.newest_snapshot();
        let report = Report { member, newest, applied, priority, snapshot };
        if let Some(dialogue) = &mut self.dialogue {
            let said = dialogue.report(&report, core.turn.number);
            self.line.output.extend_from_slice(&said);
            self.line.wait_from(now);
            self.said_of = applied;
            self.said_priority = priority;
            self.reads.asked();
        }
        self.flush(core, driver);
    }

    /// Whether the primary is to do something: accept the connection, or answer.
    fn is_awaiting(&self) -> bool {
        self.dialogue.as_ref().is_none_or(|dialogue| dialogue.awaits())
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
        if self.line.is_apart() {
            return Some(self.line.nanos_to_retry(now));
        }
        let period = if self.is_awaiting() {
            ANSWER_NANOS_MAX
        } else if core.shard.appended().sequence > self.said_of {
            NEWS_NANOS
        } else {
            ALIVE_NANOS
        };
        Some(period.saturating_sub(self.line.waited_nanos(now)))
    }

    fn lose_primary(&mut self, core: &Core, driver: &mut dyn Driver, why: &str) {
        if self.told.as_deref() != Some(why) {
            tracing::warn!("cannot tell the primary of this replica: {why}");
            self.told = Some(why.to_owned());
        }
        self.hang_up(driver);
        self.line.retry_later(&RETRY, 0, core.turn.monotonic);
    }

    /// Takes an event, if it is about the connection to the primary; whether it is.
    pub(crate) fn hear(&mut self, core: &Core, driver: &mut dyn Driver, event: &Event) -> bool {
        let Some(happened) = self.line.take(driver, event, RECEIVED_BYTES) else { return false };
        match happened {
            Happened::Connected => {
                let settings = &core.process.settings;
                let (dialogue, first) =
                    ReportDialogue::begin(&settings.masteruser, &settings.masterauth);
                self.dialogue = Some(Box::new(dialogue));
                self.line.output.extend_from_slice(&first);
                self.flush(core, driver);
            }
            Happened::Received(_) => {
                if let Err(why) = self.take_answers() {
                    self.lose_primary(core, driver, &why);
                }
            }
            Happened::Sent => {}
            Happened::Ended(End::Unreachable(why)) => self.lose_primary(core, driver, &why),
            Happened::Ended(End::Closed) => {
                self.lose_primary(core, driver, "the connection ended");
            }
            Happened::Ended(End::Broken) => {
                self.lose_primary(core, driver, "the connection broke");
            }
        }
        true
    }

    fn flush(&mut self, core: &Core, driver: &mut dyn Driver) {
        if self.line.flush(driver).is_err() {
            self.lose_primary(core, driver, "the connection broke");
        }
    }

    /// Takes the answers that have arrived.
    fn take_answers(&mut self) -> Result<(), String> {
        while let Some(dialogue) = &mut self.dialogue
            && let Some((answer, turn)) = dialogue.hear(&mut self.line.input)?
        {
            self.take_answer(answer, turn);
        }
        Ok(())
    }

    fn take_answer(&mut self, answer: Answer, turn: u64) {
        self.told = None;
        self.lag = answer.lag;
        self.heard = answer.members;
        self.snapshot = answer.snapshot;
        self.reads.learned(answer.newest, turn);
    }
}
