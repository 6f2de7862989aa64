//! Which blocks are moved between ordinary and slow memory where only some of a size need to be.
//!
//! Idle ones go to slow memory first, and used ones come to ordinary memory first: on the first
//! round those that are as idle as the average of what could be moved, or idler; and likewise as
//! used. If that was not enough, whatever comes goes on the next round, so that it ends.
//!
//! Absent on purpose: moving anything because of its use alone. Where the ratio holds, nothing
//! moves, however uses change.

use base::heap::Misplaced;

/// The average is that of about so many blocks that were met last. A guess.
const AVERAGED: u64 = 64;

#[derive(Debug, Default)]
pub(super) struct Preference {
    /// The round before was choosy, and was not enough.
    takes_any: bool,
    /// [`AVERAGED`] times the average. `None` before the first block.
    idleness_sum: Option<u64>,
}

impl Preference {
    /// Whether a block is moved on this round, of a key that is so idle, in whatever unit.
    pub fn takes(&mut self, misplaced: Misplaced, idleness: impl FnOnce() -> u32) -> bool {
        match misplaced {
            Misplaced::No => false,
            Misplaced::Yes => true,
            _ if self.takes_any => true,
            Misplaced::IfIdle => self.compared(idleness()).is_ge(),
            Misplaced::IfUsed => self.compared(idleness()).is_le(),
        }
    }

    /// How idle a block is beside the average, which is its own from now on.
    fn compared(&mut self, idleness: u32) -> std::cmp::Ordering {
        let idleness = u64::from(idleness);
        let sum = self.idleness_sum.get_or_insert(idleness * AVERAGED);
        *sum = *sum - *sum / AVERAGED + idleness;
        idleness.cmp(&(*sum / AVERAGED))
    }

    /// A round has ended. Whether there is hope that the next one moves what this one did not.
    pub fn end_round(&mut self, has_more_to_move: bool) -> bool {
        self.idleness_sum = None;
        self.takes_any = !self.takes_any && has_more_to_move;
        self.takes_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_blocks_go_to_slow_memory_first_and_used_ones_come_back_first() {
        // One of eight is used all the time.
        let idleness = |index: u32| if index.is_multiple_of(8) { 0 } else { 1000 + index % 3 };
        for (misplaced, takes_used) in [(Misplaced::IfIdle, false), (Misplaced::IfUsed, true)] {
            let mut preference = Preference::default();
            for index in 0..5000 {
                let takes = preference.takes(misplaced, || idleness(index));
                // Behind the first ones, which make the average.
                if index > 2 * AVERAGED as u32 {
                    let is_used = idleness(index) == 0;
                    assert_eq!(takes, is_used == takes_used, "{misplaced:?} {index}");
                }
            }
            assert!(preference.end_round(true));
            assert!((0..100).all(|index| preference.takes(misplaced, || idleness(index))));
        }
    }

    #[test]
    fn a_round_that_takes_any_follows_one_that_was_choosy_and_not_enough() {
        let mut preference = Preference::default();
        assert!(!preference.end_round(false), "it was enough");
        assert!(preference.end_round(true));
        assert!(!preference.end_round(true), "any was taken, and more there is not");
        assert!(preference.end_round(true));
    }

    #[test]
    fn what_no_size_divides_is_moved_whoever_uses_it() {
        let mut preference = Preference::default();
        let unused = || panic!("it is not asked");
        assert!(preference.takes(Misplaced::Yes, unused));
        assert!(!preference.takes(Misplaced::No, unused));
    }
}
