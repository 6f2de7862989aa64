//! Primary or replica: what this process is to its shard. It turns what the log says and what the
//! clocks show into what the state machine ([`role::state`](crate::role::state)) is told, does what
//! that asks for, and says what came of it ([`News`]).
//!
//! The lease is looked at once a turn, after what was received was executed and before any of it
//! is sent, and again before each part of a key that is migrated. That is enough: whatever is sent
//! then was executed, and so was true, at an instant at which this process held the lease; how long
//! the sending takes does not matter. What was executed and found the lease over is kept until a
//! further record of this holder is durable, which proves that nobody led meanwhile; or it is never
//! sent.

mod wall;

use crate::News;
use crate::clock::{Heard, ShardClock, wall_ahead_of};
use crate::lag::{Lag, Samples};
use crate::role::heartbeat::Heartbeats;
use crate::role::lease_clock::LeaseClock;
use crate::role::member::{Leader, Member, MemberId};
use crate::role::renewal::{self, Purpose, Renewal};
use crate::role::state::{Present, Roles, Terms, Wish};
use crate::shard::{Progress, Shard, Told};
use base::time::MILLISECOND;
use base::{Clock, Moment, MonotonicNanos, Sequence, UnixMillis};
use engine::interest::Interest;
use std::rc::Rc;
use std::sync::Arc;
use txlog::{Gate, Refusal, WriterId};
use wall::Wall;

/// Largest offset between this machine's wall clock and the shard's, in milliseconds, at which the
/// process still stands for leadership at once; beyond it, it leaves that to others. Far more than
/// clocks differ that are set by a time service, or than a record is on its way. A new primary's
/// clock goes on from the shard's in any case; it is what it is slewed to that may be wrong.
const CLOCK_OFFSET_MILLIS_MAX: u64 = 10_000;

/// Once the offset has exceeded that bound, it must fall below this before the process stands
/// normally again, so that one near the bound does not turn with every record.
const CLOCK_RIGHT_MILLIS_MAX: u64 = 8_000;

/// Random delay before standing, as a fraction of a lease, so that two challengers do not collide.
const JITTER_PART: u64 = 10;

/// What the operator decided, and may change while the process lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Policy {
    /// This process may lead.
    pub may_lead: bool,
    /// This machine's wall clock is right, whatever the log says.
    pub wall_is_right: bool,
    /// How far the wall clock may be ahead of the newest record for this process to lead by it, in
    /// seconds; 0: by any time.
    pub clock_ahead_seconds_max: u64,
}

impl Default for Policy {
    /// It leads if it can, by a clock that is ahead by any time.
    fn default() -> Self {
        Self { may_lead: true, wall_is_right: false, clock_ahead_seconds_max: 0 }
    }
}

/// What a loading found of who leads.
pub struct Found {
    /// What the records that were applied say.
    pub heartbeats: Heartbeats,
    /// No lease need be waited for.
    pub is_free: bool,
    /// The end of the log, as it was found.
    pub through: Sequence,
}

/// How a process says who it is: its name, and where its clients find it. Asked when a record is to
/// say so, because it may change.
pub type Introduce<'a> = &'a dyn Fn() -> Member;

/// One process's part in its shard.
pub struct Leadership {
    pub roles: Roles,
    pub policy: Policy,
    /// Clients were served since this holder's last record.
    pub has_served: bool,
    /// The lease was over when it was last looked at: nobody is served.
    pub is_lapsed: bool,
    clock: Arc<dyn Clock>,
    lease_clock: Rc<LeaseClock>,
    /// Unpredictable bits, which make the names of this process as a writer.
    entropy: u64,
    /// How often this process has stood for leadership in this life.
    stands: u64,
    /// The lease's clocks at the beginning of this turn, and the time of this turn: the shard's on
    /// a primary, else that of this machine's wall clock.
    moment: Moment,
    now: UnixMillis,
    shard_clock: ShardClock,
    /// What the primary's clock showed in the first record that was heard. It may have stood still
    /// for long by then, so it is not known to run before it shows something else.
    first_clock: Option<UnixMillis>,
    /// What the primary's clock showed when it was last heard running, and when that was.
    heard_clock: Option<Heard>,
    /// Whether this machine's wall clock may become the shard's.
    wall: Wall,
    /// A follower that could not write if it led: the log's service refuses or cannot be reached.
    is_in_trouble: bool,
    /// Whether the log of this primary is full, as was last written to the server's log.
    is_log_full: bool,
    /// How the log has grown lately, for the lag of replicas.
    samples: Samples,
    /// Of whom was told that they lead.
    told_leader: Option<Leader>,
    /// The time has not advanced since this turn, because a unit outlives it: see
    /// [`Self::stand_still`].
    stands_still: bool,
    /// A buffer for what the log tells.
    told: Vec<Told>,
}

impl Leadership {
    /// Of a process that loads, or whose log nobody else can reach: it is alone. `entropy` must be
    /// unpredictable, and another in each life.
    pub fn new(clock: Arc<dyn Clock>, entropy: u64) -> Self {
        Self {
            roles: Roles::alone(),
            policy: Policy::default(),
            has_served: false,
            is_lapsed: false,
            lease_clock: Rc::new(LeaseClock::new(Arc::clone(&clock))),
            clock,
            entropy,
            stands: 0,
            moment: Moment::default(),
            now: UnixMillis(0),
            shard_clock: ShardClock::default(),
            first_clock: None,
            heard_clock: None,
            wall: Wall::default(),
            is_in_trouble: false,
            is_log_full: false,
            samples: Samples::default(),
            told_leader: None,
            stands_still: false,
            told: Vec::new(),
        }
    }

    /// Lets a wall clock that is set back take back that the machine was frozen.
    #[doc(hidden)]
    pub fn break_clock(&self) {
        self.lease_clock.break_memory();
    }

    /// Of the same process in its next life: it knows what it was told of its wall clock.
    #[must_use]
    pub fn in_next_life(self, entropy: u64) -> Self {
        Self {
            wall: self.wall.in_next_life(),
            policy: self.policy,
            ..Self::new(self.clock, entropy)
        }
    }

    /// Begins to follow a log that was loaded. `lease_nanos` is the lease that this process takes
    /// when it leads.
    pub fn follow(&mut self, me: MemberId, lease_nanos: u64, found: Found) {
        let now = self.clock.monotonic();
        let jitter_nanos = self.entropy % (lease_nanos / JITTER_PART).max(1);
        let terms = Terms { lease_nanos, jitter_nanos, may_lead: self.policy.may_lead };
        self.roles = Roles::new(me, terms);
        for heartbeat in found.heartbeats.into_order() {
            self.roles.saw(heartbeat, now);
        }
        if found.is_free {
            self.roles.is_free(now);
        }
        self.roles.caught_up(found.through, now);
    }

    /// A turn of the loop begins; `moment` was read just now. Returns its time: the shard's on a
    /// primary.
    pub fn begin_turn(&mut self, shard: &mut Shard, moment: Moment) -> UnixMillis {
        self.moment = self.lease_clock.take(moment);
        let shown = self.shard_clock.read(moment.wall_micros, moment.monotonic);
        if !self.stands_still {
            self.now = shown;
        }
        shard.begin_turn(&self.lease_clock, self.moment, self.now);
        self.now
    }

    /// Stops the time of records from this turn on, or lets it advance again from the next turn on.
    /// A unit that outlives a turn has one time, and no record may have a later one before the
    /// unit's own: a replica would expire keys that the unit still sees.
    pub fn stand_still(&mut self, stands_still: bool) {
        self.stands_still = stands_still;
    }

    /// The time of this turn. It jumps where this process begins to lead.
    pub fn now(&self) -> UnixMillis {
        self.now
    }

    /// Takes what the log has to say; `interest` is told what was applied.
    pub fn poll(
        &mut self,
        shard: &mut Shard,
        interest: &mut Interest,
        introduce: Introduce<'_>,
        news: &mut Vec<News>,
    ) {
        // What counts now may have been appended since the lease was last looked at.
        self.note_appended(shard);
        let mut told = std::mem::take(&mut self.told);
        let progress = shard.poll(&mut told, interest);
        for told in told.drain(..) {
            self.hear(told, shard, introduce, news);
        }
        self.told = told;
        if interest.has_notices() {
            news.push(News::Applied);
        }
        match progress {
            Progress::Durable => {
                // A renewal that went ahead of held records is told with its durability.
                self.note_appended(shard);
                self.roles.durable(shard.tracker.durable(), self.lease_clock.moment());
                news.push(News::Durable);
            }
            Progress::Nothing => {}
            Progress::Deposed(why) => {
                news.push(News::Demoted(format!("another process may lead: {why}")));
            }
            Progress::Trimmed => {
                news.push(News::Demoted("what it would read next was trimmed".to_owned()));
            }
            Progress::Fatal(why) => news.push(News::Fatal(why)),
        }
    }

    fn hear(
        &mut self,
        told: Told,
        shard: &mut Shard,
        introduce: Introduce<'_>,
        news: &mut Vec<News>,
    ) {
        // Not the turn's instant: what was read may have been written since.
        let now = self.clock.monotonic();
        self.tell_leader(news);
        match told {
            Told::Heartbeat(heartbeat) => {
                // While it still catches up, or what it has read must wait, its records are old.
                if self.roles.is_current() && !shard.is_late() {
                    self.hear_clock(shard, now);
                }
                self.roles.saw(heartbeat, now);
            }
            Told::CaughtUp(through) => self.roles.caught_up(through, now),
            Told::HolderDead => self.roles.is_free(now),
            Told::Lost { tail } => self.roles.lost_bid(tail, now),
            Told::Led => self.begin_to_lead(shard, introduce),
        }
        self.tell_leader(news);
    }

    /// Tells that another process leads than was told before.
    fn tell_leader(&mut self, news: &mut Vec<News>) {
        let leader = self.roles.leader();
        if leader != self.told_leader.as_ref() {
            self.told_leader = leader.cloned();
            news.extend(leader.cloned().map(News::Leader));
        }
    }

    /// Notes what the shard's clock showed. While the primary is amid a command that takes long, or
    /// its log's disk is full, its records show the same instant again and again, and it runs on
    /// from the first of them.
    fn hear_clock(&mut self, shard: &Shard, now: MonotonicNanos) {
        let Some(shown) = shard.applied_clock() else { return };
        let first = *self.first_clock.get_or_insert(shown);
        let last = self.heard_clock.map_or(first, |(clock, _)| clock);
        if shown != last {
            self.heard_clock = Some((shown, now));
        }
    }

    /// How far this machine's wall clock is ahead of the shard's, in milliseconds.
    pub fn wall_ahead_millis(&self) -> i64 {
        if let Some(doubt) = &self.wall.doubt {
            return doubt.ahead_millis();
        }
        match self.heard_clock {
            Some(heard) if self.roles.follows() => {
                wall_ahead_of(heard, self.clock.unix_micros(), self.moment.monotonic)
            }
            _ => self.shard_clock.wall_ahead_millis(),
        }
    }

    /// Whether the wall clock is a reason not to lead at all.
    pub fn doubts_wall(&self) -> bool {
        self.wall.doubt.is_some()
    }

    /// Leaves leadership to others, if there are any, while the log would take nothing from here. A
    /// log that is full takes nothing from anybody.
    fn judge_reach(&mut self, shard: &Shard) {
        let trouble = if self.roles.follows() { shard.trouble() } else { None };
        let trouble = trouble.filter(|why| *why != Refusal::DiskFull);
        if let Some(why) = &trouble
            && !self.is_in_trouble
        {
            tracing::warn!("leads only if nobody else does: {why}");
        }
        self.is_in_trouble = trouble.is_some();
    }

    /// Warns when the log of a primary is full, and says when it no longer is. Other reasons for
    /// which it takes no records are told by the client of its service.
    fn judge_room(&mut self, shard: &Shard) {
        let gate = if self.roles.leads() { shard.gate() } else { Gate::Open };
        let is_full = match gate {
            Gate::Refuse(why) => why == Refusal::DiskFull,
            Gate::Open => false,
            // It makes room, and may fail.
            Gate::Wait => self.is_log_full,
        };
        if is_full && !self.is_log_full {
            let holds_records = shard.holds_records();
            tracing::warn!(holds_records, "{}: writes are refused", Refusal::DiskFull);
        } else if self.is_log_full && !is_full {
            tracing::info!("the transaction log takes writes again");
        }
        self.is_log_full = is_full;
    }

    /// Whether others should rather lead.
    pub fn leaves_it_to_others(&self) -> bool {
        self.wall.is_off || self.is_in_trouble
    }

    /// Leaves leadership to others, if there are any, while the wall clock is wrong or the shard's
    /// is: nobody can tell which.
    fn judge_clock(&mut self) {
        let ahead_ms = self.wall_ahead_millis();
        let bound = if self.wall.is_off { CLOCK_RIGHT_MILLIS_MAX } else { CLOCK_OFFSET_MILLIS_MAX };
        let is_off = self.roles.follows() && ahead_ms.unsigned_abs() > bound;
        if is_off && !self.wall.is_off {
            tracing::warn!(
                ahead_ms,
                "this machine's clock is not the shard's: leads only if nobody else does"
            );
        }
        self.wall.is_off = is_off;
    }

    fn begin_to_lead(&mut self, shard: &mut Shard, introduce: Introduce<'_>) {
        let place = shard.newest_appended();
        self.roles.led();
        self.note_clock(shard);
        let leader = Leader { epoch: shard.chain().epoch, member: introduce() };
        tracing::info!(epoch = leader.epoch.0, sequence = place.0, "leads the shard");
        self.roles.note_leader(leader);
        shard.renew_amid(self.renewal(introduce));
        let at = shard.appended().sequence;
        self.samples.begin(at, shard.bytes_appended, self.moment.monotonic);
    }

    /// Says that the clocks of a primary disagree. What follows from it is the state machine's.
    fn judge_gap(&mut self, news: &mut Vec<News>) {
        let Some(nanos) = self.roles.new_gap(self.moment) else { return };
        news.push(News::ClocksParted);
        let ms = nanos / MILLISECOND;
        if nanos == u64::MAX {
            tracing::warn!(
                "the machine's clocks were disrupted: renews its lease before it serves"
            );
        } else {
            tracing::warn!(
                ms,
                "the wall clock has gone ahead of the monotonic one: this machine was frozen, or \
                 its time was set; the lease is shorter by that"
            );
        }
    }

    /// Does what leadership and lease ask for. `is_busy`: a client waits for something.
    pub fn advance(
        &mut self,
        shard: &mut Shard,
        is_busy: bool,
        introduce: Introduce<'_>,
        news: &mut Vec<News>,
    ) {
        self.judge_clock();
        self.judge_gap(news);
        self.judge_reach(shard);
        self.judge_room(shard);
        self.roles.hold_back(self.leaves_it_to_others());
        self.judge_wall(shard);
        self.roles.set_may_lead(self.policy.may_lead && !self.doubts_wall());
        let present = self.present(shard, is_busy);
        match self.roles.wish(present) {
            None => {}
            Some(Wish::Probe) => shard.probe_holder(),
            Some(Wish::Lead) => self.stand(shard, introduce),
            Some(Wish::Renew) => {
                shard.commit(self.now);
                if !shard.has_gathered() && may_renew(shard, Purpose::Lease) {
                    self.renew(shard, introduce);
                }
                self.note_appended(shard);
            }
        }
        self.is_lapsed = self.has_lapsed();
    }

    fn stand(&mut self, shard: &mut Shard, introduce: Introduce<'_>) {
        // A writer's records are counted from 1, so each attempt is another writer.
        self.stands += 1;
        let writer = WriterId(self.entropy.wrapping_add(self.stands));
        tracing::info!(behind = shard.appended().sequence.0, "stands for leadership");
        let is_set_back = self.take_over_clock(shard);
        shard.stand(writer, self.roles.lease_millis(), &introduce(), self.now, is_set_back);
        self.roles.bid(self.moment);
    }

    /// Appends a record that only says who leads, and when.
    pub fn renew(&mut self, shard: &mut Shard, introduce: Introduce<'_>) {
        // Where this process is reached may have changed.
        let renewal = self.renewal(introduce);
        shard.renew(&renewal, self.now);
        shard.renew_amid(renewal);
        self.roles.said(self.moment.monotonic);
    }

    fn renewal(&self, introduce: Introduce<'_>) -> Renewal {
        Renewal::new(self.roles.lease_millis(), &introduce())
    }

    fn present(&self, shard: &mut Shard, is_busy: bool) -> Present {
        let is_busy = self.has_served || is_busy;
        Present { now: self.moment, is_watched: shard.is_watched(), is_busy }
    }

    /// The records appended since the last call renew the lease, each from the instant before it
    /// was handed to the log.
    pub fn note_appended(&mut self, shard: &mut Shard) {
        let roles = &mut self.roles;
        if shard.drain_sent(|place, at| roles.appended(place, at)) && roles.leads() {
            self.has_served = false;
            let place = shard.appended().sequence;
            self.samples.note(place, shard.bytes_appended, self.moment.monotonic);
        }
    }

    /// Looks at the lease, before anything is sent.
    pub fn judge_lease(&mut self) {
        self.is_lapsed = self.has_lapsed();
    }

    /// Whether this process leads, and its lease is over now, or it has handed over.
    pub fn has_lapsed(&self) -> bool {
        self.roles.has_yielded()
            || self.roles.leads() && !self.roles.holds_lease(self.lease_clock.moment())
    }

    /// Serves no more, then says so in the log: to `successor`, or to whoever is first.
    pub fn hand_over(&mut self, shard: &mut Shard, successor: Option<MemberId>) {
        self.roles.yields();
        self.is_lapsed = true;
        let id = successor.map(|id| id.0);
        shard.append_yield(id.as_ref().map_or(&[], |id| id), self.now);
    }

    /// In how many nanoseconds leadership or log want a turn; `None`: not by time.
    pub fn wait_nanos(&self, shard: &mut Shard, is_busy: bool) -> Option<u64> {
        let present = self.present(shard, is_busy);
        // A log that makes room first says itself when it has.
        let waits_for_log = self.roles.leads() && !may_renew(shard, Purpose::Lease);
        let role = self.roles.wait_nanos(present).filter(|_| !waits_for_log);
        role.into_iter().chain(shard.log_wait_nanos()).min()
    }

    /// Of a primary: how far behind it a replica is that has applied the log through here.
    pub fn lag_of(&self, applied: Sequence) -> Lag {
        self.samples.lag(applied, self.moment.monotonic)
    }
}

/// Whether the log is to be given a record that only renews.
pub fn may_renew(shard: &Shard, purpose: Purpose) -> bool {
    renewal::may_append(purpose, &shard.gate(), shard.is_in_log())
}
