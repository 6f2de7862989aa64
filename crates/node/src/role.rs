//! Primary or replica: what this process is to its shard, and what that means for clients.
//!
//! | file | holds |
//! |---|---|
//! | [`state`] | leadership and lease as a pure state machine |
//! | [`heartbeat`] | what records say of who leads |
//! | [`renewal`] | when a record renews the lease and says nothing else |
//! | [`member`] | who takes part, as records carry it |
//! | [`wall`] | where a new primary takes its clock from |
//! | `serve` | what a replica refuses, and where it sends its clients |
//!
//! The lease is looked at once a turn, after what was received was executed and before any of it
//! is sent, and again before each part of a key that is migrated. That is enough: whatever is sent
//! then was executed, and so was true, at an instant at which this process held the lease; how long
//! the sending takes does not matter. What was executed and found the lease over is kept until a
//! further record of this holder is durable, which proves that nobody led meanwhile; or it is never
//! sent.

mod serve;
pub mod wall;

use crate::command::info::process::hex_id;
use crate::core::{Core, Stop};
use crate::server::Server;
use base::machine::Identity;
use base::{ConnectionId, MonotonicNanos};
use shard::role::member::{Leader, Member, MemberId};
use shard::role::renewal::{self, Purpose, Renewal};
use shard::role::state::{Present, Roles, Terms, Wish};
use shard::{Progress, Told};
use std::collections::BTreeSet;
use txlog::{Gate, Refusal, WriterId};

/// Nanoseconds in a millisecond.
const MILLI: u64 = 1_000_000;

/// Whose wall clock is further from the shard's than this leaves leadership to others, in
/// milliseconds. Far more than clocks differ that are set by a time service, or than a record is on
/// its way. A new primary's clock goes on from the shard's in any case; it is what it is slewed to
/// that may be wrong.
const CLOCK_OFFSET_MILLIS_MAX: u64 = 10_000;

/// A clock that was that wrong is right again below this, so that one near the bound does not turn
/// with every record.
const CLOCK_RIGHT_MILLIS_MAX: u64 = 8_000;

/// Random delay before standing, as a fraction of a lease, so that two challengers do not collide.
const JITTER_PART: u64 = 10;

impl Core {
    /// Whether this process leads, and its lease is over now, or it has handed over.
    pub(crate) fn has_lapsed(&self) -> bool {
        self.roles.has_yielded()
            || self.roles.leads() && !self.roles.holds_lease(self.process.options.clock.moment())
    }

    /// Whether this process is a replica of whoever writes the transaction log.
    pub fn is_following(&self) -> bool {
        self.roles.follows()
    }

    /// Whether the primary was heard of within its lease.
    pub(crate) fn hears_primary(&self) -> bool {
        self.roles.hears_holder(self.turn.monotonic)
    }
}

impl Server {
    /// This process as a member of its shard: its name in INFO, and where clients find it.
    pub(crate) fn member(&self) -> Member {
        let host = self.announced_host().or_else(|| self.address_for_others());
        let host = host.unwrap_or_else(|| "127.0.0.1".to_owned());
        Member { id: self.member_id(), host, port: self.announced_port() }
    }

    /// Where others find a server that listens on all addresses, unless protected mode turns them
    /// away.
    fn address_for_others(&self) -> Option<String> {
        if self.core.turns_strangers_away() {
            return None;
        }
        let Identity { address_v4, address_v6, .. } = &self.core.process.identity;
        let mut bound =
            self.core.process.settings.bind.iter().map(|host| host.trim_start_matches('-'));
        bound.find_map(|host| match host {
            "*" | "0.0.0.0" => address_v4.clone(),
            "::*" | "::" => address_v6.clone(),
            _ => None,
        })
    }

    /// Whether `replica-priority`, which may change while the process lives, lets it lead.
    fn may_lead(&self) -> bool {
        self.core.process.settings.replica_priority > 0
    }

    fn member_id(&self) -> MemberId {
        MemberId::parse(&hex_id(self.core.process.options.entropy)).unwrap_or_default()
    }

    /// The state machine of a process that has just loaded.
    pub(crate) fn new_roles(&self) -> Roles {
        let lease_nanos = self.core.process.settings.transaction_log_lease * MILLI;
        let jitter_nanos = self.core.process.options.entropy % (lease_nanos / JITTER_PART).max(1);
        let Member { host, port, .. } = self.member();
        tracing::info!(host, port, "other members are told that this server is here");
        let terms = Terms { lease_nanos, jitter_nanos, may_lead: self.may_lead() };
        Roles::new(self.member_id(), terms)
    }

    /// Takes what the log has to say.
    pub(crate) fn poll_log(&mut self) {
        // What counts now may have been appended since the lease was last looked at.
        self.note_appended();
        let mut told = std::mem::take(&mut self.told);
        let progress = self.core.shard.poll(&mut told, &mut self.core.interest);
        for told in told.drain(..) {
            self.hear(told);
        }
        self.told = told;
        self.spread_applied();
        match progress {
            Progress::Durable => {
                let now = self.core.process.options.clock.moment();
                self.core.roles.durable(self.core.shard.tracker.durable(), now);
                self.core.release();
                self.migrations.is_due = true;
            }
            Progress::Nothing => {}
            Progress::Deposed(why) => self.demote(format!("another process may lead: {why}")),
            Progress::Trimmed => self.demote("what it would read next was trimmed".to_owned()),
            Progress::Fatal(why) => self.core.stopping = Some(Stop::LogFailed(why)),
        }
    }

    /// Ends this life: whatever it holds may not be what the log says.
    fn demote(&mut self, why: String) {
        let is_leaving = matches!(self.core.stopping, Some(Stop::Clean | Stop::Now));
        self.core.stopping = Some(if is_leaving { Stop::Now } else { Stop::Demoted(why) });
    }

    fn hear(&mut self, told: Told) {
        // Not the turn's instant: what was read may have been written since.
        let now = self.core.process.options.clock.monotonic();
        self.tell_of_switch();
        match told {
            Told::Heartbeat(heartbeat) => {
                // While it still catches up, what it reads may be old.
                if self.core.roles.is_current() {
                    self.hear_clock(now);
                }
                self.core.roles.saw(heartbeat, now);
            }
            Told::CaughtUp(through) => self.core.roles.caught_up(through, now),
            Told::HolderDead => self.core.roles.is_free(now),
            Told::Lost { tail } => self.core.roles.lost_bid(tail, now),
            Told::Led => self.begin_to_lead(),
        }
        self.tell_of_switch();
    }

    /// Notes what the shard's clock showed. While the primary is amid a command that takes long,
    /// its records show the same instant again and again, and it runs on from the first of them.
    fn hear_clock(&mut self, now: MonotonicNanos) {
        let shown = self.core.shard.applied_clock();
        if let Some(clock) = shown.filter(|new| self.heard_clock.is_none_or(|it| it.0 != *new)) {
            self.heard_clock = Some((clock, now));
        }
    }

    /// How far this machine's wall clock is ahead of the shard's, in milliseconds.
    pub(crate) fn wall_ahead_millis(&self) -> i64 {
        if let Some(doubt) = &self.wall.doubt {
            return doubt.ahead_millis();
        }
        match self.heard_clock {
            Some(heard) if self.core.roles.follows() => shard::clock::wall_ahead_of(
                heard,
                self.core.process.options.clock.unix_micros(),
                self.core.turn.monotonic,
            ),
            _ => self.clock.wall_ahead_millis(),
        }
    }

    /// Leaves leadership to others, if there are any, while the log would take nothing from here. A
    /// log that is full takes nothing from anybody.
    fn judge_reach(&mut self) {
        let trouble = if self.core.roles.follows() { self.core.shard.trouble() } else { None };
        let trouble = trouble.filter(|why| *why != Refusal::DiskFull);
        if let Some(why) = &trouble
            && !self.is_in_trouble
        {
            tracing::warn!("leads only if nobody else does: {why}");
        }
        self.is_in_trouble = trouble.is_some();
    }

    /// Whether others should rather lead.
    pub(crate) fn leaves_it_to_others(&self) -> bool {
        self.wall.is_off || self.is_in_trouble
    }

    /// Leaves leadership to others, if there are any, while the wall clock is wrong or the shard's
    /// is: nobody can tell which.
    fn judge_clock(&mut self) {
        let ahead_ms = self.wall_ahead_millis();
        let bound = if self.wall.is_off { CLOCK_RIGHT_MILLIS_MAX } else { CLOCK_OFFSET_MILLIS_MAX };
        let is_off = self.core.roles.follows() && ahead_ms.unsigned_abs() > bound;
        if is_off && !self.wall.is_off {
            tracing::warn!(
                ahead_ms,
                "this machine's clock is not the shard's: leads only if nobody else does"
            );
        }
        self.wall.is_off = is_off;
    }

    fn begin_to_lead(&mut self) {
        let place = self.core.shard.newest_appended();
        self.core.roles.led();
        self.note_clock();
        let leader = Leader { epoch: self.core.shard.chain().epoch, member: self.member() };
        tracing::info!(epoch = leader.epoch.0, sequence = place.0, "leads the shard");
        self.core.roles.note_leader(leader);
        self.core.shard.renew_amid(self.renewal());
        let at = self.core.shard.appended().sequence;
        self.progress.begin(at, self.core.shard.bytes_appended, self.core.turn.monotonic);
    }

    /// Says that the clocks of a primary disagree. What follows from it is the state machine's.
    fn judge_gap(&mut self) {
        let Some(nanos) = self.core.roles.new_gap(self.core.turn.moment) else { return };
        self.core.process.statistics.clock_gaps += 1;
        let ms = nanos / MILLI;
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

    /// Does what leadership and lease ask for.
    pub(crate) fn advance_role(&mut self) {
        self.judge_clock();
        self.judge_gap();
        self.judge_reach();
        self.core.roles.hold_back(self.leaves_it_to_others());
        self.judge_wall();
        self.core.roles.set_may_lead(self.may_lead() && self.wall.doubt.is_none());
        let present = self.present();
        match self.core.roles.wish(present) {
            None => {}
            Some(Wish::Probe) => self.core.shard.probe_holder(),
            Some(Wish::Lead) => {
                // A writer's records are counted from 1, so each attempt is another writer.
                self.stands += 1;
                let writer = WriterId(self.core.process.options.entropy.wrapping_add(self.stands));
                let (lease, member) = (self.core.roles.lease_millis(), self.member());
                tracing::info!(
                    behind = self.core.shard.appended().sequence.0,
                    "stands for leadership"
                );
                let is_set_back = self.take_over_clock();
                self.core.shard.stand(writer, lease, &member, self.core.turn.now, is_set_back);
                self.core.roles.bid(self.core.turn.moment);
            }
            Some(Wish::Renew) => {
                self.core.shard.commit(self.core.turn.now);
                if !self.core.shard.has_gathered() && self.may_renew(Purpose::Lease) {
                    self.renew();
                }
                self.note_appended();
            }
        }
        self.core.is_lapsed = self.core.has_lapsed();
    }

    /// Appends a record that only says who leads, and when.
    pub(crate) fn renew(&mut self) {
        // Where this server is reached may have changed.
        let renewal = self.renewal();
        self.core.shard.renew(&renewal, self.core.turn.now);
        self.core.shard.renew_amid(renewal);
        self.core.roles.said(self.core.turn.monotonic);
    }

    /// Whether the log is to be given a record that only renews.
    pub(crate) fn may_renew(&self, purpose: Purpose) -> bool {
        renewal::may_append(purpose, &self.core.shard.gate(), self.core.shard.is_in_flight())
    }

    fn renewal(&self) -> Renewal {
        Renewal::new(self.core.roles.lease_millis(), &self.member())
    }

    fn present(&mut self) -> Present {
        let is_busy = self.core.has_served
            || !self.core.clients.ready.is_empty()
            || !self.core.clients.flushing.is_empty();
        Present { now: self.core.turn.moment, is_watched: self.core.shard.is_watched(), is_busy }
    }

    /// The records appended since the last call renew the lease, each from the instant before it
    /// was handed to the log.
    pub(crate) fn note_appended(&mut self) {
        let Core { shard, roles, .. } = &mut self.core;
        if shard.drain_sent(|place, at| roles.appended(place, at)) && self.core.roles.leads() {
            self.core.has_served = false;
            let place = self.core.shard.appended().sequence;
            self.progress.note(place, self.core.shard.bytes_appended, self.core.turn.monotonic);
        }
    }

    /// Disconnects who has waited for a lease's time while the lease is over, because the log does
    /// not answer. Nothing may be answered, and what was executed has an unknown outcome: that
    /// is what the end of a connection says, and a client may try elsewhere. Where nobody else
    /// could lead there is no elsewhere: a client of a lone server waits for its slow disk.
    pub(crate) fn shed_unserved(&mut self) {
        let waits = !self.core.clients.ready.is_empty()
            || !self.core.clients.flushing.is_empty()
            || !self.core.clients.held.is_empty();
        if !waits
            || !self.core.is_lapsed
            || !self.core.roles.leads()
            || !self.core.shard.is_watched()
        {
            self.unserved_since = None;
            return;
        }
        // Not the turn's instant, which may lie a long command back: nobody has waited so long.
        let now = self.core.process.options.clock.monotonic();
        let since = *self.unserved_since.get_or_insert(now);
        if now.since(since) < self.core.process.settings.transaction_log_lease * MILLI {
            return;
        }
        self.unserved_since = None;
        let held = self.core.clients.held.iter().map(|(_, connection)| connection);
        let waiting = self.core.clients.ready.iter().chain(&self.core.clients.flushing).chain(held);
        // Some have gone already: what they wait for is forgotten when it is durable.
        let is_here = |connection: &&ConnectionId| self.core.clients.has(**connection);
        let waiting: BTreeSet<ConnectionId> = waiting.filter(is_here).copied().collect();
        if waiting.is_empty() {
            return;
        }
        tracing::warn!(clients = waiting.len(), "the log does not answer: disconnects who waits");
        for connection in waiting {
            self.core.close(connection);
        }
    }

    /// In how many nanoseconds leadership or log want a turn; `None`: not by time.
    pub(crate) fn role_wait_nanos(&mut self) -> Option<u64> {
        let present = self.present();
        // A log that makes room first says itself when it has.
        let waits_for_log = self.core.roles.leads() && !self.may_renew(Purpose::Lease);
        let role = self.core.roles.wait_nanos(present).filter(|_| !waits_for_log);
        role.into_iter().chain(self.core.shard.log_wait_nanos()).min()
    }

    /// Hands leadership over before the process ends, if somebody is there to take it. Whether
    /// that is done.
    pub(crate) fn has_handed_over(&mut self) -> bool {
        let is_alone = self.core.roles.is_alone() || !self.core.shard.is_watched();
        if self.core.roles.leads() && !is_alone && self.core.shard.gate() == Gate::Open {
            let successor = self.best_successor();
            tracing::info!(?successor, "hands leadership over");
            self.yield_to(successor);
            return false;
        }
        !self.core.shard.is_in_flight()
    }
}
