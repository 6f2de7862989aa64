//! How often an operation on the service that keeps a log meets which fault.

use crate::random::Random;
use base::time::MILLISECOND;
use txlog::remote::memory::Fate;

/// In percent of all operations.
#[derive(Clone, Copy, Debug)]
pub struct Odds {
    pub lost: u64,
    pub unanswered: u64,
    /// Goes a way of its own, and may land after whatever came later.
    pub stray: u64,
    pub full: u64,
    /// Answered as by a server that was cut off.
    pub stale: u64,
    /// The longest way there, and the way back is half of it, of an operation that does not stray.
    pub way_nanos: u64,
    /// The longest way of one that strays: longer than leases, so that it may land in another's.
    pub stray_way_nanos: u64,
}

impl Odds {
    /// Nothing goes wrong.
    pub fn benign() -> Self {
        Self {
            lost: 0,
            unanswered: 0,
            stray: 0,
            full: 0,
            stale: 0,
            way_nanos: MILLISECOND,
            stray_way_nanos: 400 * MILLISECOND,
        }
    }

    /// Each fault is absent or more or less frequent; or most operations stray, so that puts land
    /// behind another's Lead, which is rare otherwise.
    pub fn draw(random: &mut Random) -> Self {
        if random.chance(30) {
            let stray_way_nanos = *random.choose(&[400 * MILLISECOND, 1600 * MILLISECOND]);
            return Self { stray: 70, unanswered: 20, stray_way_nanos, ..Self::benign() };
        }
        let mut percent = || if random.chance(60) { 0 } else { random.within(1..20) };
        Self {
            lost: percent(),
            unanswered: percent(),
            stray: percent(),
            full: percent() / 4,
            stale: percent(),
            way_nanos: *random.choose(&[MILLISECOND, 3 * MILLISECOND, 40 * MILLISECOND]),
            stray_way_nanos: *random.choose(&[400 * MILLISECOND, 8000 * MILLISECOND]),
        }
    }

    /// What becomes of one operation.
    pub fn fate(&self, random: &mut Random) -> Fate {
        let mut nanos = random.within(MILLISECOND / 10..self.way_nanos);
        let strays = random.chance(self.stray);
        if strays {
            nanos = random.within(MILLISECOND..self.stray_way_nanos);
        }
        Fate {
            arrives_nanos: (!random.chance(self.lost)).then_some(nanos),
            answers_nanos: (!random.chance(self.unanswered)).then_some(nanos / 2),
            strays,
            is_full: random.chance(self.full),
            stale_by: if random.chance(self.stale) { random.within(1..6) } else { 0 },
        }
    }
}
