//! What a process has seen of the log, and when: enough for a reader to know whether an answer can
//! be trusted without reading the floor.
//!
//! A place that was trimmed looks free, and a ghost may stand there ([`super::hands`]): a slow
//! reader must not take it for the record that it missed. Whoever doubts reads the floor, which was
//! written before the record was deleted, so before any ghost. Reading it with every answer would
//! cost requests of its own. They are spared by time:
//!
//! 1. A trimmer trims a place only once it has known for the *trim age*, by its own clock, that
//!    the place was taken.
//! 2. A place that was still free when this process began to ask, at `R`, was taken later. So it
//!    is trimmed no earlier than `R` + trim age, and no ghost stands there before.
//! 3. An answer about this place or a later one (which was free at `R` as well) that comes within a
//!    quarter of the trim age after `R` is therefore about the place's true record.
//!
//! Both clocks count suspended time, and only their rates are compared, never their readings: a
//! trimmer's clock would have to run four times as fast as this one to break the argument. A
//! process that was stopped in between finds its quarter over, and reads the floor. One whose
//! clock stood still meanwhile, because a hypervisor froze its machine, may take a ghost for a
//! record, or a trimmed place for the end. That is why no writer goes by this. What such a reader
//! can do is to answer from the past, as replicas may, and to stand: its `Lead` changes hands, so
//! it reads the floor. The ghosts that it can meet are `Lead`s that were never acknowledged, or
//! records put twice.

use super::hands::Hands;
use crate::opening::Broken;
use base::{MonotonicNanos, Sequence};
use std::collections::VecDeque;

/// Parts of the trim age within which an answer is trusted. See the head of this file.
const TRUSTED_SHARE: u64 = 4;

/// Observations that a trim age is divided into: a trim comes at most an eighth later than it
/// might.
const MARKS_PER_AGE: u64 = 8;

/// Nanoseconds after which the log's identity is looked at again, whatever else is known: nobody
/// but an operator deletes a log, so this need not be soon, only never forgotten. After the trim
/// age, if that is shorter.
const LOOK_NANOS: u64 = 5_000_000_000;

/// What one process knows of its log.
#[derive(Clone, Debug)]
pub struct Known {
    trim_age_nanos: u64,
    /// The newest place known to have been taken.
    taken: Sequence,
    /// The highest floor seen.
    floor: Sequence,
    /// A place that was free at a time, and so all behind it.
    free: Option<(Sequence, MonotonicNanos)>,
    /// When which place was known to be taken, oldest first.
    marks: VecDeque<(MonotonicNanos, Sequence)>,
    /// When the log's identity was last looked at.
    looked: MonotonicNanos,
    /// What this process has put itself.
    pub hands: Hands,
    pub broken: Option<Broken>,
}

impl Known {
    /// Of a log whose identity was looked at when `now` was read, or later.
    pub fn new(trim_age_ms: u64, now: MonotonicNanos) -> Self {
        Self {
            trim_age_nanos: trim_age_ms.saturating_mul(1_000_000),
            taken: Sequence::ZERO,
            floor: Sequence::ZERO,
            free: None,
            marks: VecDeque::new(),
            looked: now,
            hands: Hands::default(),
            broken: None,
        }
    }

    pub fn trusts_all(&self) -> bool {
        self.broken == Some(Broken::TrustsAll)
    }

    pub fn taken(&self) -> Sequence {
        self.taken
    }

    pub fn floor(&self) -> Sequence {
        self.floor
    }

    /// A record, or its ghost, was seen there: either way the place was taken once.
    pub fn saw_taken(&mut self, sequence: Sequence, now: MonotonicNanos) {
        self.taken = self.taken.max(sequence);
        let spacing = self.trim_age_nanos / MARKS_PER_AGE;
        let is_due = |&(at, _): &(MonotonicNanos, Sequence)| since(at, now) >= spacing;
        if self.marks.back().is_none_or(is_due) {
            self.marks.push_back((now, self.taken));
        }
        // The newest mark that is old enough speaks for all before it.
        while self.marks.get(1).is_some_and(|&(at, _)| since(at, now) >= self.trim_age_nanos) {
            self.marks.pop_front();
        }
    }

    /// The place was free when `asked` was read, or later.
    pub fn saw_free(&mut self, sequence: Sequence, asked: MonotonicNanos) {
        if self.free.is_none_or(|(_, before)| before < asked) {
            self.free = Some((sequence, asked));
        }
    }

    pub fn saw_floor(&mut self, floor: Sequence) {
        self.floor = self.floor.max(floor);
        self.taken = self.taken.max(floor);
    }

    /// The log's identity was found unchanged by a question begun at `asked`.
    pub fn saw_life(&mut self, asked: MonotonicNanos) {
        self.looked = self.looked.max(asked);
    }

    /// Whether a put that succeeded needs no look at floor and identity. How long it was under way
    /// does not matter.
    pub fn is_put_sure(&self, sequence: Sequence, now: MonotonicNanos) -> bool {
        self.hands.go_on_at(sequence) && self.has_looked(now) || self.trusts_all()
    }

    /// Whether the log's identity was looked at lately.
    fn has_looked(&self, now: MonotonicNanos) -> bool {
        since(self.looked, now) < LOOK_NANOS.min(self.trim_age_nanos)
    }

    /// Whether what was read at this place, before `now`, needs no look at floor and identity.
    pub fn is_sure(&self, sequence: Sequence, now: MonotonicNanos) -> bool {
        let trusted = self.trim_age_nanos / TRUSTED_SHARE;
        let was_free =
            self.free.is_some_and(|(from, at)| sequence >= from && since(at, now) < trusted);
        let is_young = was_free && self.has_looked(now);
        is_young && !self.hands.may_haunt(sequence) || self.trusts_all()
    }

    /// What may be trimmed now. Never the newest record: it says where the log ends.
    pub fn trimmable(&mut self, now: MonotonicNanos) -> Sequence {
        // What was taken since the last mark ages too, even if nothing follows it.
        self.saw_taken(self.taken, now);
        let aged = |&&(at, _): &&(MonotonicNanos, Sequence)| since(at, now) >= self.trim_age_nanos;
        let newest = self.marks.iter().rev().find(aged).map_or(Sequence::ZERO, |&(_, at)| at);
        newest.min(Sequence(self.taken.0.saturating_sub(1)))
    }
}

fn since(then: MonotonicNanos, now: MonotonicNanos) -> u64 {
    now.0.saturating_sub(then.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGE_MS: u64 = 1000;

    fn at(millis: u64) -> MonotonicNanos {
        MonotonicNanos(millis * 1_000_000)
    }

    #[test]
    fn only_a_young_answer_about_a_place_that_was_free_is_sure() {
        let mut known = Known::new(AGE_MS, at(0));
        assert!(!known.is_sure(Sequence(5), at(0)), "nothing is known yet");
        known.saw_free(Sequence(5), at(100));
        assert!(known.is_sure(Sequence(5), at(100)));
        assert!(known.is_sure(Sequence(6), at(349)), "what lies behind was free as well");
        assert!(!known.is_sure(Sequence(4), at(100)), "what lies before may be trimmed any time");
        assert!(!known.is_sure(Sequence(5), at(350)), "a quarter of the trim age is over");
    }

    #[test]
    fn an_older_observation_takes_nothing_from_a_newer_one() {
        let mut known = Known::new(AGE_MS, at(0));
        known.saw_free(Sequence(5), at(200));
        known.saw_free(Sequence(3), at(100));
        assert!(known.is_sure(Sequence(5), at(449)));
        assert!(!known.is_sure(Sequence(3), at(100)));
    }

    #[test]
    fn the_identity_is_looked_at_again_however_busy_the_log_is() {
        let mut known = Known::new(AGE_MS, at(0));
        let late = at(LOOK_NANOS / 1_000_000);
        known.saw_free(Sequence(5), late);
        assert!(!known.is_sure(Sequence(5), late));
        known.saw_life(late);
        assert!(known.is_sure(Sequence(5), late));
    }

    #[test]
    fn a_place_is_trimmed_only_when_it_was_known_for_the_whole_age() {
        let mut known = Known::new(AGE_MS, at(0));
        known.saw_taken(Sequence(10), at(0));
        known.saw_taken(Sequence(20), at(500));
        assert_eq!(known.trimmable(at(999)), Sequence(0));
        assert_eq!(known.trimmable(at(1000)), Sequence(10));
        assert_eq!(known.trimmable(at(1500)), Sequence(19), "never the newest record");
    }

    #[test]
    fn what_came_between_two_marks_is_trimmed_when_it_has_aged() {
        let mut known = Known::new(AGE_MS, at(0));
        known.saw_taken(Sequence(3), at(0));
        known.saw_taken(Sequence(6), at(1));
        assert_eq!(known.trimmable(at(1000)), Sequence(3));
        assert_eq!(known.trimmable(at(2000)), Sequence(5));
    }

    #[test]
    fn marks_are_few_and_the_aged_one_is_kept() {
        let mut known = Known::new(AGE_MS, at(0));
        for millis in 0..10_000 {
            known.saw_taken(Sequence(millis), at(millis));
            assert!(known.marks.len() <= MARKS_PER_AGE as usize + 2);
            let trimmable = known.trimmable(at(millis)).0;
            assert!(trimmable <= millis.saturating_sub(AGE_MS), "{trimmable} at {millis}");
            let late = AGE_MS + AGE_MS / MARKS_PER_AGE;
            assert!(trimmable + 1 >= millis.saturating_sub(late), "{trimmable} at {millis}");
        }
    }

    #[test]
    fn with_no_trim_age_nothing_is_sure_and_all_but_the_newest_can_go() {
        let mut known = Known::new(0, at(0));
        known.saw_taken(Sequence(3), at(7));
        known.saw_free(Sequence(3), at(7));
        assert!(!known.is_sure(Sequence(3), at(7)));
        assert_eq!(known.trimmable(at(7)), Sequence(2));
        known.saw_taken(Sequence(4), at(7));
        assert_eq!(known.trimmable(at(7)), Sequence(3));
    }
}
