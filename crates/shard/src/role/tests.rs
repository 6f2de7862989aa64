//! The state machine by itself: leases, challengers, hand-over.

use super::heartbeat::Heartbeat;
use super::lease_clock::Readings;
use super::member::{Leader, Member, MemberId};
use super::state::{Present, Roles, Terms, Wish};
use base::time::{LEASE_NANOS_MAX, MILLISECOND, SECOND};
use base::{Epoch, Moment, MonotonicNanos, Sequence};

const LEASE: u64 = 2 * SECOND;

fn roles(number: u8) -> Roles {
    let terms = Terms { lease_nanos: LEASE, jitter_nanos: 0, may_lead: true };
    Roles::new(MemberId([number; 20]), terms)
}

fn yields(to: Option<u8>) -> Heartbeat {
    Heartbeat::Yield { successor: to.map(|id| MemberId([id; 20])) }
}

fn at(nanos: u64) -> MonotonicNanos {
    MonotonicNanos(nanos)
}

/// Both clocks at an instant, in agreement.
fn moment(nanos: u64) -> Moment {
    let micros = (nanos / 1000).cast_signed();
    Moment { monotonic: at(nanos), wall_micros: micros, disruptions: 0 }
}

fn holds(epoch: u64) -> Heartbeat {
    let member = Member { id: MemberId([9; 20]), host: "there".to_owned(), port: 1 };
    Heartbeat::Lease { leader: Leader { epoch: Epoch(epoch), member }, lease_nanos: LEASE }
}

fn quiet(nanos: u64) -> Present {
    Present { now: moment(nanos), is_watched: false, is_busy: false }
}

fn watched(nanos: u64) -> Present {
    Present { is_watched: true, ..quiet(nanos) }
}

/// A process that leads since an instant, with nothing under way.
fn leading_since(nanos: u64) -> Roles {
    let mut roles = roles(1);
    roles.is_free(at(nanos));
    roles.caught_up(Sequence(5), at(nanos));
    assert_eq!(roles.wish(quiet(nanos)), Some(Wish::Lead));
    roles.bid(moment(nanos));
    roles.led();
    assert!(roles.leads());
    roles
}

#[test]
fn a_challenger_waits_longer_than_the_holder_serves() {
    let mut challenger = roles(2);
    challenger.saw(holds(1), at(10 * SECOND));
    challenger.caught_up(Sequence(1), at(10 * SECOND));
    let mut stands_after = 0;
    while challenger.wish(quiet(10 * SECOND + stands_after)) != Some(Wish::Lead) {
        stands_after += SECOND / 100;
    }
    let mut serves_until = 0;
    let mut holder = leading_since(10 * SECOND);
    holder.appended(Sequence(7), moment(10 * SECOND));
    holder.durable(Sequence(7), moment(0));
    while holder.holds_lease(moment(10 * SECOND + serves_until)) {
        serves_until += SECOND / 100;
    }
    assert!(serves_until + LEASE / 10 <= stands_after, "{serves_until} {stands_after}");
}

#[test]
fn each_sign_of_life_begins_the_wait_anew() {
    let mut challenger = roles(2);
    challenger.saw(holds(1), at(0));
    challenger.caught_up(Sequence(1), at(0));
    for second in 0..100 {
        challenger.saw(Heartbeat::Alive, at(second * SECOND));
        assert_ne!(challenger.wish(quiet((second + 1) * SECOND - 1)), Some(Wish::Lead));
    }
    assert_eq!(challenger.wish(quiet(103 * SECOND)), Some(Wish::Lead));
}

#[test]
fn who_was_not_named_gives_the_successor_time() {
    for is_early in [true, false] {
        let mut other = roles(2);
        other.saw(holds(1), at(0));
        if is_early {
            other.is_free(at(0));
        }
        other.saw(Heartbeat::Yield { successor: Some(MemberId([3; 20])) }, at(SECOND));
        other.caught_up(Sequence(2), at(SECOND));
        other.is_free(at(SECOND));
        assert!(other.is_role_known(), "it is a replica of who is about to lead");
        assert_ne!(other.wish(quiet(3 * SECOND)), Some(Wish::Lead), "known early: {is_early}");
        assert_eq!(other.wish(quiet(4 * SECOND)), Some(Wish::Lead), "the successor is gone");
    }
    let mut named = roles(3);
    named.saw(holds(1), at(0));
    named.saw(Heartbeat::Yield { successor: Some(MemberId([3; 20])) }, at(SECOND));
    named.caught_up(Sequence(2), at(SECOND));
    assert_eq!(named.wish(quiet(SECOND)), Some(Wish::Lead));
}

#[test]
fn a_record_at_the_place_of_a_bid_leads_nobody() {
    let mut candidate = roles(2);
    candidate.is_free(at(0));
    candidate.caught_up(Sequence(5), at(0));
    candidate.bid(moment(0));
    // Another's Lead took place 6, and was read before the log said so of ours.
    candidate.saw(holds(2), at(1));
    candidate.durable(Sequence(6), moment(0));
    assert!(candidate.follows() && !candidate.leads());
    assert!(!candidate.holds_lease(moment(2)));
}

#[test]
fn a_lease_of_unknown_length_is_waited_for_as_if_it_were_the_longest() {
    let is_silent_until = |mut challenger: Roles| {
        challenger.caught_up(Sequence(7), at(0));
        assert_ne!(challenger.wish(quiet(LEASE_NANOS_MAX)), Some(Wish::Lead));
        assert_eq!(challenger.wish(quiet(2 * LEASE_NANOS_MAX)), Some(Wish::Lead));
    };
    is_silent_until(roles(2));
    let mut alive = roles(2);
    alive.saw(Heartbeat::Alive, at(0));
    is_silent_until(alive);
}

#[test]
fn an_empty_log_with_a_living_writer_is_left_to_it() {
    let mut challenger = roles(2);
    challenger.caught_up(Sequence(0), at(0));
    assert!(challenger.is_role_known());
    assert_ne!(challenger.wish(quiet(LEASE)), Some(Wish::Lead));
    assert_eq!(challenger.wish(quiet(LEASE + LEASE / 4)), Some(Wish::Lead));
}

#[test]
fn a_lease_counts_from_before_the_record_was_sent() {
    let mut holder = leading_since(0);
    holder.appended(Sequence(7), moment(SECOND));
    assert!(!holder.holds_lease(moment(LEASE)), "a record under way renews nothing");
    holder.durable(Sequence(7), moment(0));
    assert!(holder.holds_lease(moment(LEASE)));
    assert!(!holder.holds_lease(moment(LEASE + SECOND)));
}

/// A holder that sent a record at 0, which counts, and then was frozen for ten seconds.
fn frozen(clocks: fn(Moment) -> Moment) -> (Roles, Moment) {
    let mut holder = leading_since(0);
    let woken = clocks(moment(SECOND));
    assert!(holder.holds_lease(moment(SECOND)) && !holder.holds_lease(woken));
    assert!(holder.new_gap(woken).is_some() && holder.new_gap(woken).is_none(), "told once");
    (holder, woken)
}

const WALL_IS_RIGHT: fn(Moment) -> Moment =
    |then| Moment { wall_micros: then.wall_micros + 10_000_000, ..then };
const IS_TOLD: fn(Moment) -> Moment = |then| Moment { disruptions: 1, ..then };

#[test]
fn a_lease_is_over_when_the_clocks_say_that_the_machine_was_frozen() {
    for clocks in [WALL_IS_RIGHT, IS_TOLD] {
        let (mut holder, woken) = frozen(clocks);
        let asked = Present { now: woken, is_watched: false, is_busy: true };
        assert_eq!(holder.wait_nanos(Present { is_watched: true, ..asked }), Some(0));
        assert_eq!(holder.wish(asked), Some(Wish::Renew), "at once");
        holder.appended(Sequence(7), woken);
        holder.durable(Sequence(7), moment(0));
        assert!(holder.holds_lease(woken), "nobody led meanwhile");
        assert_eq!(holder.new_gap(woken), None);
    }
}

#[test]
fn a_record_that_was_under_way_in_a_freeze_renews_no_lease() {
    for clocks in [WALL_IS_RIGHT, IS_TOLD] {
        let mut holder = leading_since(0);
        holder.appended(Sequence(7), moment(SECOND / 2));
        let woken = clocks(moment(SECOND));
        holder.durable(Sequence(7), moment(0));
        assert!(!holder.holds_lease(woken));
    }
}

#[test]
fn a_wall_clock_that_is_set_back_takes_nothing_from_a_lease() {
    let mut holder = leading_since(0);
    let set_back = |then: Moment| Moment { wall_micros: then.wall_micros - 10_000_000, ..then };
    assert!(holder.holds_lease(set_back(moment(SECOND))));
    assert!(!holder.holds_lease(set_back(moment(LEASE))), "nor does it lengthen it");
    assert_eq!(holder.new_gap(set_back(moment(SECOND))), None);
}

/// Whenever a record was sent, and whenever that was noted: before the freeze, while the wall clock
/// showed it, or once that was set back.
#[test]
fn a_wall_clock_that_is_set_back_hides_no_freeze() {
    let micros = 10_000_000;
    let ahead = |then: Moment| Moment { wall_micros: then.wall_micros + micros, ..then };
    let millis = |count| moment(SECOND + count * MILLISECOND);
    let mut clock = Readings::default();
    // Set back before a freeze, and after one.
    let before = clock.take(ahead(moment(0)));
    let set_back = clock.take(millis(1));
    let woken = clock.take(ahead(millis(2)));
    let again = clock.take(millis(3));
    let sent_from = [before, set_back, woken, again];
    for (noted, now) in sent_from.iter().enumerate() {
        for (sent, from) in sent_from[..=noted].iter().enumerate() {
            let mut candidate = roles(1);
            candidate.is_free(at(0));
            candidate.caught_up(Sequence(5), at(0));
            candidate.bid(*from);
            candidate.led();
            let is_frozen = sent < 2 && noted >= 2;
            assert_eq!(candidate.holds_lease(*now), !is_frozen, "a bid at {sent}, at {noted}");
            let mut holder = leading_since(0);
            holder.appended(Sequence(7), *from);
            holder.durable(Sequence(7), *now);
            assert_eq!(holder.holds_lease(*now), !is_frozen, "a record at {sent}, at {noted}");
        }
    }
}

#[test]
fn a_wall_clock_that_is_set_forward_shortens_nobody_s_wait() {
    let mut challenger = roles(2);
    challenger.saw(holds(1), at(0));
    challenger.caught_up(Sequence(1), at(0));
    let later = WALL_IS_RIGHT(moment(SECOND));
    assert_ne!(challenger.wish(Present { now: later, ..quiet(0) }), Some(Wish::Lead));
}

#[test]
fn a_lapsed_holder_serves_again_once_a_record_of_its_own_is_durable() {
    let mut holder = leading_since(0);
    let late = 10 * LEASE;
    assert!(holder.leads() && !holder.holds_lease(moment(late)));
    assert_eq!(holder.wish(quiet(late)), None, "nobody asks");
    assert_eq!(holder.wish(Present { is_busy: true, ..quiet(late) }), Some(Wish::Renew));
    holder.appended(Sequence(7), moment(late));
    assert_eq!(holder.wish(Present { is_busy: true, ..quiet(late) }), None, "it is under way");
    assert!(!holder.holds_lease(moment(late)));
    holder.durable(Sequence(7), moment(0));
    assert!(holder.holds_lease(moment(late)));
}

#[test]
fn an_idle_holder_renews_while_somebody_watches() {
    let mut holder = leading_since(0);
    assert_eq!(holder.wish(quiet(LEASE / 2)), None);
    assert_eq!(holder.wish(watched(LEASE / 8)), None, "not yet");
    assert_eq!(holder.wish(watched(LEASE / 2)), Some(Wish::Renew));
    let day = 24 * 3600 * SECOND;
    assert_eq!(holder.wish(quiet(day - 1)), None);
    assert_eq!(holder.wish(quiet(day)), Some(Wish::Renew), "the log knows the day");
}

#[test]
fn a_busy_holder_says_now_and_then_who_it_is() {
    let mut holder = leading_since(0);
    let mut said = 0;
    for record in 0..=100 {
        let now = record * LEASE / 20;
        holder.appended(Sequence(7 + record), moment(now));
        if holder.wish(watched(now)) == Some(Wish::Renew) {
            holder.said(at(now));
            said += 1;
        }
    }
    assert_eq!(said, 5, "once in a lease, although records are under way");
}

#[test]
fn a_candidate_that_failed_reads_on_before_it_stands_again() {
    let mut candidate = roles(2);
    candidate.is_free(at(0));
    candidate.caught_up(Sequence(5), at(0));
    assert_eq!(candidate.wish(quiet(0)), Some(Wish::Lead));
    candidate.bid(moment(0));
    assert!(candidate.follows() && !candidate.leads());
    candidate.lost_bid(Sequence(8), at(0));
    assert_ne!(candidate.wish(quiet(100 * LEASE)), Some(Wish::Lead), "it has not read on");
    candidate.saw(holds(2), at(SECOND));
    candidate.caught_up(Sequence(8), at(SECOND));
    assert_ne!(candidate.wish(quiet(LEASE)), Some(Wish::Lead), "somebody else leads");
    assert_eq!(candidate.wish(quiet(2 * LEASE)), Some(Wish::Lead));
}

#[test]
fn what_a_candidate_read_while_it_stood_counts_when_it_failed() {
    let mut candidate = roles(2);
    candidate.saw(holds(1), at(0));
    candidate.caught_up(Sequence(5), at(0));
    assert_eq!(candidate.wish(quiet(2 * LEASE)), Some(Wish::Lead));
    candidate.bid(moment(2 * LEASE));
    // A record that a dead holder had under way came first, and is all that comes.
    candidate.saw(Heartbeat::Alive, at(2 * LEASE));
    candidate.caught_up(Sequence(6), at(2 * LEASE));
    candidate.lost_bid(Sequence(6), at(2 * LEASE + SECOND));
    let soon = 3 * LEASE - 1;
    assert_ne!(candidate.wish(quiet(soon)), Some(Wish::Lead), "its writer may hold the lease");
    assert_eq!(candidate.wish(quiet(4 * LEASE)), Some(Wish::Lead));
}

#[test]
fn who_must_read_on_before_it_stands_does_not_turn_in_vain() {
    let mut candidate = roles(2);
    candidate.is_free(at(0));
    candidate.caught_up(Sequence(5), at(0));
    candidate.bid(moment(0));
    candidate.lost_bid(Sequence(8), at(0));
    assert!(candidate.wait_nanos(quiet(100 * LEASE)).is_some_and(|nanos| nanos > 0));
}

#[test]
fn a_yield_names_who_may_lead_at_once() {
    for (to, is_at_once) in [(Some(2), true), (Some(3), false), (None, true)] {
        let mut replica = roles(2);
        replica.saw(holds(1), at(0));
        replica.caught_up(Sequence(4), at(0));
        replica.saw(yields(to), at(1));
        assert_eq!(replica.wish(quiet(2)) == Some(Wish::Lead), is_at_once, "{to:?}");
        assert_eq!(replica.wish(quiet(2 * LEASE)), Some(Wish::Lead), "{to:?}");
    }
}

#[test]
fn who_may_not_lead_never_stands() {
    let terms = Terms { lease_nanos: LEASE, jitter_nanos: 0, may_lead: false };
    let mut replica = Roles::new(MemberId([2; 20]), terms);
    replica.is_free(at(0));
    replica.caught_up(Sequence(5), at(0));
    assert!(replica.is_role_known());
    assert_eq!(replica.wish(quiet(1000 * LEASE)), None);
}

#[test]
fn who_may_not_lead_stands_once_it_may() {
    let mut replica = roles(2);
    replica.set_may_lead(false);
    replica.is_free(at(0));
    replica.caught_up(Sequence(5), at(0));
    assert!(replica.is_role_known());
    assert_eq!(replica.wish(quiet(1000 * LEASE)), None);
    assert_eq!(replica.wait_nanos(quiet(1000 * LEASE)), None);
    replica.set_may_lead(true);
    assert_eq!(replica.wish(quiet(1000 * LEASE)), Some(Wish::Lead));
}

#[test]
fn who_is_held_back_stands_a_lease_later_than_all_others() {
    let (mut replica, mut other) = (roles(2), roles(3));
    for roles in [&mut replica, &mut other] {
        roles.saw(holds(1), at(0));
        roles.caught_up(Sequence(4), at(0));
    }
    replica.hold_back(true);
    let others = LEASE + LEASE / 20;
    assert_eq!(other.wish(quiet(others)), Some(Wish::Lead));
    assert_ne!(replica.wish(quiet(others)), Some(Wish::Lead));
    let wait = replica.wait_nanos(quiet(others)).expect("it stands some time");
    assert!(wait > 0, "it does not spin meanwhile");
    assert_ne!(replica.wish(quiet(others + LEASE - 1)), Some(Wish::Lead));
    assert_eq!(replica.wish(quiet(others + LEASE)), Some(Wish::Lead), "nobody else has");
    // Another has: its record counts like any other's.
    replica.saw(holds(3), at(others + LEASE));
    assert_ne!(replica.wish(quiet(others + LEASE + LEASE)), Some(Wish::Lead));
    // It is chosen all the same.
    replica.saw(yields(Some(2)), at(others + 2 * LEASE));
    assert_eq!(replica.wish(quiet(others + 2 * LEASE)), Some(Wish::Lead));
}

#[test]
fn who_is_held_back_stands_although_it_is_told_again_that_the_holder_is_dead() {
    let mut replica = roles(2);
    replica.saw(holds(1), at(0));
    replica.caught_up(Sequence(4), at(0));
    replica.hold_back(true);
    let dies = LEASE / 2;
    let stands = (dies..dies + LEASE).step_by(LEASE as usize / 40).find(|&now| {
        if replica.wish(quiet(now)) == Some(Wish::Lead) {
            return true;
        }
        replica.is_free(at(now));
        false
    });
    assert_eq!(stands, None, "others go first");
    assert_eq!(replica.wish(quiet(dies + LEASE)), Some(Wish::Lead));
}

#[test]
fn a_silent_holder_is_asked_whether_it_is_dead() {
    let mut replica = roles(2);
    replica.saw(holds(1), at(0));
    replica.caught_up(Sequence(4), at(0));
    assert_eq!(replica.wish(quiet(LEASE / 4)), None);
    assert_eq!(replica.wish(quiet(LEASE / 2)), Some(Wish::Probe));
    assert_eq!(replica.wish(quiet(LEASE / 2)), None, "one question at a time");
    replica.is_free(at(LEASE / 2));
    assert_eq!(replica.wish(quiet(LEASE / 2)), Some(Wish::Lead));
}

#[test]
fn what_was_read_while_loading_is_no_reason_to_wait_for_the_dead() {
    let mut starting = roles(1);
    starting.saw(holds(3), at(0));
    starting.is_free(at(0));
    starting.saw(Heartbeat::Alive, at(1));
    assert!(!starting.is_role_known());
    starting.caught_up(Sequence(9), at(2));
    assert!(!starting.is_role_known(), "it is about to lead");
    assert_eq!(starting.wish(quiet(2)), Some(Wish::Lead));
}
