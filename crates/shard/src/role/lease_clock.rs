//! The clocks that a lease is counted by, the monotonic and the wall clock, so that no reading
//! takes back what an earlier one has shown.
//!
//! The wall clock tells of a freeze during which the monotonic one stood still. If it is set back
//! afterwards, it shows less than it did, and the freeze would be forgotten: a primary that was
//! frozen while another led would serve again. So all steps back are added to what it shows from
//! then on. Instants that were read at any time can be compared, in whatever order they are used.

use base::{Clock, Moment, MonotonicNanos};
use std::cell::RefCell;
use std::sync::Arc;

/// One process's clocks, for its lease alone: what their wall clock shows is nobody's time of day.
pub struct LeaseClock {
    clock: Arc<dyn Clock>,
    readings: RefCell<Readings>,
}

impl LeaseClock {
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, readings: RefCell::default() }
    }

    /// Reads the clocks.
    pub fn moment(&self) -> Moment {
        self.take(self.clock.moment())
    }

    /// Takes in a reading of the same clocks that was made just now.
    pub fn take(&self, reading: Moment) -> Moment {
        self.readings.borrow_mut().take(reading)
    }

    pub fn monotonic(&self) -> MonotonicNanos {
        self.clock.monotonic()
    }

    /// Lets a wall clock that is set back take back what it has shown, so that a test can prove
    /// that it would notice.
    #[doc(hidden)]
    pub fn break_memory(&self) {
        self.readings.borrow_mut().forgets = true;
    }
}

/// The newest reading of the clocks, and what later ones are corrected by.
#[derive(Default, Debug)]
pub(super) struct Readings {
    newest: Moment,
    /// All steps back of the wall clock together.
    set_back_micros: u64,
    forgets: bool,
}

impl Readings {
    /// A reading, with a wall clock that was never set back.
    pub fn take(&mut self, reading: Moment) -> Moment {
        let micros = reading.step_back_since(self.newest);
        self.newest = reading;
        if !self.forgets {
            self.set_back_micros = self.set_back_micros.saturating_add(micros);
        }
        let wall_micros = reading.wall_micros.saturating_add_unsigned(self.set_back_micros);
        Moment { wall_micros, ..reading }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::time::MILLISECOND;

    fn moment(monotonic_millis: u64, wall_millis: i64) -> Moment {
        Moment {
            monotonic: MonotonicNanos(monotonic_millis * MILLISECOND),
            wall_micros: wall_millis * 1000,
            disruptions: 0,
        }
    }

    /// By how much the wall clock has gone further between each reading and the last one.
    fn gaps(readings: &[(u64, i64)]) -> Vec<u64> {
        let mut clock = Readings::default();
        let taken: Vec<_> =
            readings.iter().map(|&(then, wall)| clock.take(moment(then, wall))).collect();
        let last = taken.last().expect("some");
        taken.iter().map(|then| last.gap_since(*then) / MILLISECOND).collect()
    }

    #[test]
    fn clocks_that_agree_have_no_gap() {
        assert_eq!(gaps(&[(100, 5000), (200, 5100), (900, 5800)]), [0, 0, 0]);
    }

    #[test]
    fn what_the_wall_clock_has_shown_to_have_gone_stays_gone() {
        assert_eq!(gaps(&[(100, 5000), (200, 6100), (300, 5200)]), [1000, 0, 0]);
        assert_eq!(gaps(&[(100, 5000), (200, 6100), (300, 200), (400, 300)]), [1000, 0, 0, 0]);
        let twice = [(100, 5000), (200, 6100), (300, 5200), (400, 7300), (500, 5400)];
        assert_eq!(gaps(&twice), [3000, 2000, 2000, 0, 0]);
    }

    #[test]
    fn a_step_back_hides_no_step_forward_behind_it() {
        assert_eq!(gaps(&[(100, 5000), (200, 3100), (300, 4200)]), [1000, 1000, 0]);
    }

    /// Nobody can tell more from what was read.
    #[test]
    fn only_between_two_readings_does_a_step_back_hide_one_forward() {
        assert_eq!(gaps(&[(100, 5000), (200, 5100)]), [0, 0], "10 s forward and 10 s back");
        assert_eq!(gaps(&[(100, 5000), (200, 8100)]), [3000, 0], "10 s forward and 7 s back");
    }

    #[test]
    fn a_wall_clock_beyond_all_bounds_is_borne() {
        let mut clock = Readings::default();
        for wall_micros in [i64::MAX, i64::MIN, i64::MAX, i64::MIN, 0] {
            clock.take(Moment { wall_micros, ..moment(1, 0) });
        }
    }
}
