//! Leadership and its lease, as a pure state machine: instants, what the log says and commands go
//! in, wishes come out. It reads no clock and touches no log.
//!
//! ```text
//!              the last record's lease is over, or its writer dead, or it yielded
//!   Follows ───────────────────────────────────────────────────────────▶ Bids
//!      ▲  ▲                    Lead failed: read on                        │ Lead durable
//!      │  └───────────────────────────────────────────────────────────────┘
//!      │ (the process starts anew: Demoted)                                 ▼
//!      └──────── an append failed ◀────────────────────────────────────  Leads ──▶ Yields
//! ```
//! What makes it safe, with clocks that only must not drift apart by more than the margin:
//!
//! - A `Lead` is appended right behind what its candidate has applied, so the log takes it only
//!   from who has seen everything. A record that lands before it makes it fail; one that lands
//!   after it is void.
//! - The holder counts its lease from *before* it handed a record to the log, a challenger from
//!   *after* it read that record. So the challenger's wait begins later and, by twice the margin,
//!   lasts longer.
//! - The holder counts by its monotonic or its wall clock, whichever has gone further, so that a
//!   machine that a hypervisor had frozen does not serve by a clock that stood still meanwhile, if
//!   anything tells it. All its instants are readings of one [`super::lease_clock`], which takes
//!   nothing back. A challenger waits by the monotonic clock alone.
//! - The holder looks at the clock whenever it has executed and before it sends any of that (see
//!   [`super`]).
//! - A holder whose lease lapsed answers nothing until a further record of its own is durable at
//!   the place it predicted. That proves that nobody led meanwhile.

use super::heartbeat::Heartbeat;
use super::member::{Leader, Member, MemberId};
use super::renewal;
use base::time::LEASE_NANOS_MAX;
use base::{Moment, MonotonicNanos, Sequence};
use std::collections::VecDeque;

/// The margin is this part of a lease: how far apart two clocks may run while one lease lasts. The
/// holder stops so much earlier, and a challenger waits so much longer.
const MARGIN_PART: u64 = 20;

/// A holder is asked whether it is dead after this part of its lease: a renewal is overdue then.
const SILENCE_PART: u64 = 3;

/// A candidate that failed waits for this part of a lease, so that another one has its turn.
const REST_PART: u64 = 8;

/// An idle holder whom nobody watches says this often what time it is, in nanoseconds: a day. A
/// later start compares its wall clock with the newest record (`clock-ahead-max`).
const IDLE_NANOS_MAX: u64 = 86_400_000_000_000;

/// How often a silent holder is asked whether it is dead, in nanoseconds.
const PROBE_NANOS: u64 = 50_000_000;

/// What the operator decided.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Terms {
    /// The lease that this process takes when it leads.
    pub lease_nanos: u64,
    /// Added to what a challenger waits, so that two do not stand at the same instant.
    pub jitter_nanos: u64,
    /// `replica-priority` is not 0.
    pub may_lead: bool,
}

/// What the state machine asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Append a `Lead` behind what is applied, then call [`Roles::bid`].
    Lead,
    /// Append a `Renew`.
    Renew,
    /// Ask the log whether the holder is dead.
    Probe,
}

/// What holds at an instant, for [`Roles::wish`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Present {
    pub now: Moment,
    /// Somebody may be waiting for the lease to end.
    pub is_watched: bool,
    /// Clients have been served since the last record, or wait for it.
    pub is_busy: bool,
}

/// A rule that a test breaks on purpose, so that it can prove that it would notice.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broken {
    /// A holder serves whether or not its lease is over.
    ServesWithoutLease,
    /// A challenger does not wait for the holder's lease to end.
    WaitsForNobody,
    /// A holder counts its lease by the monotonic clock alone.
    TrustsMonotonic,
    /// A holder counts its lease from when it heard that a record is durable.
    CountsFromDurable,
}

/// One process's part in its shard.
pub struct Roles {
    me: MemberId,
    terms: Terms,
    stage: Stage,
    leader: Option<Leader>,
    /// Of the holder, as its records say; the longest there is while none was read that says it.
    lease_nanos: u64,
    /// When something was last heard of the holder.
    heard: MonotonicNanos,
    probe_at: MonotonicNanos,
    is_held_back: bool,
    broken: Option<Broken>,
}

enum Stage {
    /// The only one there is, for ever: nobody else can reach its log.
    Alone,
    Follows(Following),
    /// A `Lead` is under way; the instant before it was sent. It reads on meanwhile, and what it
    /// reads may be all that there is.
    Bids {
        sent: Moment,
        following: Following,
    },
    Leads(Holding),
    /// It has served its last, and said so.
    Yields,
}

#[derive(Default)]
struct Following {
    /// It has once applied all that there was. Before, it neither serves nor stands.
    is_current: bool,
    /// It stands at this instant; `None` while nothing is known of a holder.
    stand_at: Option<MonotonicNanos>,
    /// It has applied the log through here when it last reached the end, and stands only behind
    /// `stand_behind`.
    reached: Sequence,
    stand_behind: Sequence,
    /// The log says that no holder is alive: what was read before is no reason to wait.
    is_free: bool,
    /// The holder has handed over to another, who has until `stand_at` to lead.
    is_promised: bool,
    /// The holder has handed over to this process.
    is_chosen: bool,
}

struct Holding {
    lease_nanos: u64,
    /// Before the newest durable record was sent: the lease counts from there.
    since: Moment,
    /// Records under way, and the instants before they were sent.
    sent: VecDeque<(Sequence, Moment)>,
    last_sent: Moment,
    /// When a record last said who leads, for those who begin to read later.
    last_said: MonotonicNanos,
    /// The clocks have parted since the lease began.
    has_gap: bool,
}

impl Roles {
    /// A process that leads a log which nobody else can reach.
    pub fn alone() -> Self {
        let terms = Terms { lease_nanos: u64::MAX, jitter_nanos: 0, may_lead: true };
        Self { stage: Stage::Alone, ..Self::new(MemberId::default(), terms) }
    }

    /// A process that begins to follow.
    pub fn new(me: MemberId, terms: Terms) -> Self {
        Self {
            me,
            terms,
            stage: Stage::Follows(Following::default()),
            leader: None,
            lease_nanos: LEASE_NANOS_MAX,
            heard: MonotonicNanos(0),
            probe_at: MonotonicNanos(0),
            is_held_back: false,
            broken: None,
        }
    }

    #[doc(hidden)]
    pub fn break_rule(&mut self, broken: Broken) {
        self.broken = Some(broken);
    }

    /// A record that counts was applied.
    pub fn saw(&mut self, heartbeat: Heartbeat, now: MonotonicNanos) {
        self.heard = now;
        let is_promised =
            matches!(heartbeat, Heartbeat::Yield { successor: Some(id) } if id != self.me);
        let is_chosen =
            matches!(heartbeat, Heartbeat::Yield { successor: Some(id) } if id == self.me);
        let stand_at = match heartbeat {
            Heartbeat::Lease { leader, lease_nanos } => {
                self.note_leader(leader);
                self.lease_nanos = lease_nanos;
                self.terms.wait_from(now, lease_nanos)
            }
            Heartbeat::Alive => self.terms.wait_from(now, self.lease_nanos),
            Heartbeat::Yield { successor: Some(id) } if id == self.me => now,
            Heartbeat::Yield { successor: Some(_) } => self.terms.wait_from(now, self.lease_nanos),
            Heartbeat::Yield { successor: None } => MonotonicNanos(now.0 + self.terms.jitter_nanos),
        };
        if let Some(following) = self.following() {
            following.stand_at = Some(stand_at);
            following.is_chosen = is_chosen;
            following.is_free &= !following.is_current;
            following.is_promised = is_promised;
        }
    }

    /// Everything that the log held when it looked was applied, through this place.
    pub fn caught_up(&mut self, through: Sequence, now: MonotonicNanos) {
        // Nobody holds a log without records; one may be about to lead it.
        let is_empty = through == Sequence::ZERO;
        let lease_nanos = if is_empty { self.terms.lease_nanos } else { self.lease_nanos };
        let unheard = self.terms.wait_from(now, lease_nanos);
        let Some(following) = self.following() else { return };
        following.reached = through;
        if through < following.stand_behind {
            return;
        }
        following.is_current = true;
        if following.is_free && !following.is_promised {
            following.stand_no_later_than(now);
        } else if following.stand_at.is_none() {
            following.stand_at = Some(unheard);
        }
    }

    /// No holder is alive: there is no lease to wait for.
    pub fn is_free(&mut self, now: MonotonicNanos) {
        if let Stage::Follows(following) = &mut self.stage {
            following.is_free = true;
            if following.is_current && !following.is_promised {
                following.stand_no_later_than(now);
            }
        }
    }

    /// Whether others should rather lead: then this process stands a lease later than it might,
    /// when nobody else has. Whom the holder chose stands at once all the same.
    pub fn hold_back(&mut self, is_held_back: bool) {
        self.is_held_back = is_held_back;
    }

    /// The operator decided anew whether this process may lead. One that leads goes on.
    pub fn set_may_lead(&mut self, may_lead: bool) {
        self.terms.may_lead = may_lead;
    }

    /// What is to be done now.
    pub fn wish(&mut self, present: Present) -> Option<Wish> {
        let now = present.now.monotonic;
        let held_back = self.held_back_nanos();
        match &mut self.stage {
            Stage::Follows(following) if following.is_current && self.terms.may_lead => {
                let has_read = following.reached >= following.stand_behind;
                let has_waited = self.broken == Some(Broken::WaitsForNobody)
                    || following.stands_from(held_back).is_some_and(|at| now >= at);
                if has_read && has_waited {
                    return Some(Wish::Lead);
                }
                let lease_nanos = self.lease_nanos.min(self.terms.lease_nanos);
                let is_silent = now.since(self.heard) > lease_nanos / SILENCE_PART;
                if is_silent && now >= self.probe_at {
                    self.probe_at = MonotonicNanos(now.0 + PROBE_NANOS);
                    return Some(Wish::Probe);
                }
                None
            }
            Stage::Leads(holding) => {
                let since_sent = present.now.longest_since(holding.last_sent);
                let is_due = renewal::is_due(holding.lease_nanos, since_sent);
                let is_old = since_sent >= IDLE_NANOS_MAX;
                let is_wanted = present.is_watched || present.is_busy || is_old;
                let is_forgotten = now.since(holding.last_said) >= holding.lease_nanos;
                let renews = is_due && is_wanted && holding.sent.is_empty();
                (renews || is_forgotten && present.is_watched).then_some(Wish::Renew)
            }
            _ => None,
        }
    }

    /// What a reader of the log has read, whether it bids or not.
    fn following(&mut self) -> Option<&mut Following> {
        match &mut self.stage {
            Stage::Follows(following) | Stage::Bids { following, .. } => Some(following),
            Stage::Alone | Stage::Leads(_) | Stage::Yields => None,
        }
    }

    /// A `Lead` was handed to the log; `sent` is an instant before that.
    pub fn bid(&mut self, sent: Moment) {
        let following = self.following().map(std::mem::take).unwrap_or_default();
        self.stage = Stage::Bids { sent, following };
    }

    /// The `Lead` failed, because the log goes on to `tail` at least, as far as it says. The
    /// process reads on.
    pub fn lost_bid(&mut self, tail: Sequence, now: MonotonicNanos) {
        let rest = self.terms.lease_nanos / REST_PART + self.terms.jitter_nanos;
        let rested = MonotonicNanos(now.0 + rest);
        let read = self.following().map(std::mem::take).unwrap_or_default();
        self.stage = Stage::Follows(Following {
            is_current: true,
            stand_at: Some(read.stand_at.map_or(rested, |at| at.max(rested))),
            reached: read.reached,
            stand_behind: tail,
            is_free: false,
            is_promised: read.is_promised,
            is_chosen: read.is_chosen,
        });
    }

    /// A `Renew` was handed to the log at this instant.
    pub fn said(&mut self, now: MonotonicNanos) {
        if let Stage::Leads(holding) = &mut self.stage {
            holding.last_said = now;
        }
    }

    /// A record of this holder was handed to the log; `sent` is an instant before that.
    pub fn appended(&mut self, place: Sequence, sent: Moment) {
        if let Stage::Leads(holding) = &mut self.stage {
            holding.last_sent = sent;
            holding.sent.push_back((place, sent));
        }
    }

    /// The log says that this process's own `Lead` is durable. That its place is durable says
    /// nothing: another's record may stand there.
    pub fn led(&mut self) {
        if let Stage::Bids { sent, .. } = self.stage {
            self.stage = Stage::Leads(Holding {
                lease_nanos: self.terms.lease_nanos,
                since: sent,
                sent: VecDeque::new(),
                last_sent: sent,
                last_said: sent.monotonic,
                has_gap: false,
            });
        }
    }

    /// The log is durable through this place: of a holder, records of its own, and void ones. That
    /// this is told `now` extends no lease.
    pub fn durable(&mut self, through: Sequence, now: Moment) {
        let counts_late = self.broken == Some(Broken::CountsFromDurable);
        if let Stage::Leads(holding) = &mut self.stage {
            while let Some((_, sent)) = holding.sent.pop_front_if(|(place, _)| *place <= through) {
                holding.since = if counts_late { now } else { sent };
            }
        }
    }

    /// This holder serves no more and hands over.
    pub fn yields(&mut self) {
        self.stage = Stage::Yields;
    }

    /// Whether this process has served its last.
    pub fn has_yielded(&self) -> bool {
        matches!(self.stage, Stage::Yields)
    }

    /// Whether this process leads, with or without a valid lease.
    pub fn leads(&self) -> bool {
        matches!(self.stage, Stage::Alone | Stage::Leads(_))
    }

    /// Whether nobody else can reach the log.
    pub fn is_alone(&self) -> bool {
        matches!(self.stage, Stage::Alone)
    }

    /// Whether a `Lead` of this process has just been sent. Nothing is executed meanwhile: amid a
    /// command that takes long it would not hear that it leads, and its lease would run out.
    pub fn has_just_bid(&self, now: MonotonicNanos) -> bool {
        let Stage::Bids { sent, .. } = self.stage else { return false };
        !renewal::is_due(self.terms.lease_nanos, now.since(sent.monotonic))
    }

    /// Whether this process reads what another writes, or would write.
    pub fn follows(&self) -> bool {
        matches!(self.stage, Stage::Follows(_) | Stage::Bids { .. })
    }

    /// Whether what this process serves now is the newest there is.
    pub fn holds_lease(&self, now: Moment) -> bool {
        match &self.stage {
            Stage::Alone => true,
            Stage::Leads(holding) => {
                let gone = match self.broken {
                    Some(Broken::ServesWithoutLease) => 0,
                    Some(Broken::TrustsMonotonic) => now.monotonic.since(holding.since.monotonic),
                    _ => now.longest_since(holding.since),
                };
                gone < holding.lease_nanos - holding.lease_nanos / MARGIN_PART
            }
            _ => false,
        }
    }

    /// By how many nanoseconds a holder's clocks have parted since its lease began, if that is more
    /// than the margin is for and was not told before: the machine was frozen, or its wall clock
    /// was set.
    pub fn new_gap(&mut self, now: Moment) -> Option<u64> {
        let Stage::Leads(holding) = &mut self.stage else { return None };
        let gap = now.gap_since(holding.since);
        let is_wide = gap > holding.lease_nanos / MARGIN_PART;
        let was_wide = std::mem::replace(&mut holding.has_gap, is_wide);
        (is_wide && !was_wide).then_some(gap)
    }

    /// Whether it is known which part this process plays: it leads, or follows one that is alive
    /// or was until a lease ago.
    pub fn is_role_known(&self) -> bool {
        match &self.stage {
            Stage::Follows(following) => {
                let stands_at_once = following.is_free && !following.is_promised;
                following.is_current && !(stands_at_once && self.terms.may_lead)
            }
            Stage::Bids { .. } => false,
            Stage::Alone | Stage::Leads(_) | Stage::Yields => true,
        }
    }

    /// Whether the following has once reached the end of the log.
    pub fn is_current(&self) -> bool {
        match &self.stage {
            Stage::Follows(following) => following.is_current,
            _ => true,
        }
    }

    /// Who leads, as far as the log was read.
    pub fn leader(&self) -> Option<&Leader> {
        self.leader.as_ref()
    }

    /// Somebody leads; the log says so. A record that does not say who changes nothing in its
    /// epoch.
    pub fn note_leader(&mut self, leader: Leader) {
        let is_said = leader.member != Member::default();
        if is_said || self.leader.as_ref().is_none_or(|known| known.epoch != leader.epoch) {
            self.leader = Some(leader);
        }
    }

    pub fn id(&self) -> MemberId {
        self.me
    }

    /// Whether a follower has heard of the holder within its lease.
    pub fn hears_holder(&self, now: MonotonicNanos) -> bool {
        self.leader.is_some() && now.since(self.heard) <= self.lease_nanos
    }

    /// When something was last heard of the holder.
    pub fn heard(&self) -> MonotonicNanos {
        self.heard
    }

    /// The lease that a `Lead` or `Renew` of this process carries, in milliseconds.
    pub fn lease_millis(&self) -> u64 {
        self.terms.lease_nanos / 1_000_000
    }

    /// How much time it leaves others beyond the instant at which it might stand.
    fn held_back_nanos(&self) -> u64 {
        if self.is_held_back { self.lease_nanos.min(self.terms.lease_nanos) } else { 0 }
    }

    /// In how many nanoseconds [`Self::wish`] may have something new to say; `None`: not by time.
    pub fn wait_nanos(&self, present: Present) -> Option<u64> {
        match &self.stage {
            Stage::Follows(following) if following.is_current && self.terms.may_lead => {
                let has_read = following.reached >= following.stand_behind;
                let until = following.stands_from(self.held_back_nanos()).filter(|_| has_read);
                let until = until.map(|at| at.since(present.now.monotonic));
                Some(until.unwrap_or(PROBE_NANOS).min(PROBE_NANOS))
            }
            Stage::Leads(holding) if present.is_watched && holding.sent.is_empty() => {
                let since_sent = present.now.longest_since(holding.last_sent);
                Some(renewal::interval_nanos(holding.lease_nanos).saturating_sub(since_sent))
            }
            _ => None,
        }
    }
}

impl Following {
    /// Told again and again, it does not put off whoever is held back from this instant on.
    fn stand_no_later_than(&mut self, now: MonotonicNanos) {
        self.stand_at = Some(self.stand_at.map_or(now, |at| at.min(now)));
    }

    /// When it stands, if it leaves others so much time.
    fn stands_from(&self, held_back: u64) -> Option<MonotonicNanos> {
        let held_back = if self.is_chosen { 0 } else { held_back };
        Some(MonotonicNanos(self.stand_at?.0.saturating_add(held_back)))
    }
}

impl Terms {
    /// Until when a challenger waits that has just seen a record.
    fn wait_from(&self, seen: MonotonicNanos, lease_nanos: u64) -> MonotonicNanos {
        let margin = lease_nanos / MARGIN_PART;
        let wait = lease_nanos.saturating_add(margin).saturating_add(self.jitter_nanos);
        MonotonicNanos(seen.0.saturating_add(wait))
    }
}
