//! What goes wrong, where and when: drawn from the seed.
//!
//! A climate says which sorts of faults a run has and how often; faults of several sorts overlap,
//! and most meet the primary, since they matter most there.

use crate::clock::Awakening;
use crate::odds::Odds;
use crate::random::Random;
use base::MonotonicNanos;

/// How far a clock may be off while the margin of the lease still bears it, in millionths. The
/// holder of a lease serves for 0.95 of it, a challenger waits for 1.05, each by its own clock; so
/// with one clock fast and one slow by this much, a hair's breadth is left.
const DRIFT_PPM_MAX: u64 = 49_000;

/// Mean time between two disturbances, in parts of a lease.
const CALM_PART: u64 = 2;

/// What sorts of faults a run has.
#[derive(Clone, Copy, Debug)]
pub struct Climate {
    /// Clients' connections fail.
    pub is_harsh: bool,
    pauses: bool,
    lingers: bool,
    crashes: bool,
    stops: bool,
    cuts: bool,
    stalls: bool,
    odds: bool,
    jumps: bool,
    drifts: bool,
    freezes: bool,
    /// Commands take long, some longer than a lease.
    works: bool,
}

impl Climate {
    /// Each sort is there in two of three runs, long commands in one of four.
    pub fn draw(random: &mut Random) -> Self {
        let mut is_there = || random.chance(66);
        Self {
            is_harsh: is_there(),
            pauses: is_there(),
            lingers: is_there(),
            crashes: is_there(),
            stops: is_there(),
            cuts: is_there(),
            stalls: is_there(),
            odds: is_there(),
            jumps: is_there(),
            drifts: is_there(),
            freezes: is_there(),
            // Long commands leave less time for everything else.
            works: random.chance(25),
        }
    }

    /// Nothing goes wrong, but commands take long.
    pub fn calm() -> Self {
        Self {
            is_harsh: false,
            pauses: false,
            lingers: false,
            crashes: false,
            stops: false,
            cuts: false,
            stalls: false,
            odds: false,
            jumps: false,
            drifts: false,
            freezes: false,
            works: true,
        }
    }

    /// How much faster than true time a machine's clock runs.
    pub fn drift_ppm(&self, random: &mut Random) -> i64 {
        if !self.drifts {
            return 0;
        }
        // The extremes are what matters.
        let ppm = *random.choose(&[0, DRIFT_PPM_MAX / 2, DRIFT_PPM_MAX, DRIFT_PPM_MAX]) as i64;
        if random.chance(50) { ppm } else { -ppm }
    }
}

/// Something that goes wrong, and for how long in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub enum Disturbance {
    /// A process stands still between two turns.
    Pause(u64),
    /// A machine stands still between two turns, and its monotonic clock with it.
    Freeze(u64, Awakening),
    Crash,
    /// It is asked to stop, and hands over.
    Stop,
    /// It cannot reach the log, and knows it.
    Cut(u64),
    /// The service does nothing.
    Stall(u64),
    /// Operations of a process meet faults at these odds from now on.
    Odds(Odds),
    /// A wall clock jumps by so many microseconds.
    Jump(i64),
}

/// Whether time passes in the middle of a turn.
#[derive(Clone, Copy, Default, Debug)]
pub struct Lingering {
    pub nanos: Option<u64>,
    /// The machine is frozen meanwhile, and wakes like this.
    pub freezes: Option<Awakening>,
    /// The process does not survive it.
    pub dies: bool,
}

/// A command that takes long: so many pulses, so many nanoseconds apart.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub pulses: u64,
    pub pulse_nanos: u64,
}

/// One of so many steps of commands begins a long piece of work.
const WORK_PART: u64 = 600;

/// What goes wrong from here on.
pub struct Weather {
    climate: Climate,
    lease_nanos: u64,
    random: Random,
    next_at: Option<MonotonicNanos>,
    is_over: bool,
    /// How frozen machines wake; `None`: in any way in which they notice.
    pub awakening: Option<Awakening>,
}

impl Weather {
    pub fn new(climate: Climate, lease_nanos: u64, random: Random) -> Self {
        Self { climate, lease_nanos, random, next_at: None, is_over: false, awakening: None }
    }

    /// Nothing goes wrong any more.
    pub fn end(&mut self) {
        self.is_over = true;
        self.next_at = None;
    }

    /// When something goes wrong next.
    pub fn next_at(&self) -> Option<MonotonicNanos> {
        self.next_at
    }

    /// What goes wrong at this instant.
    pub fn next(&mut self, now: MonotonicNanos) -> Option<Disturbance> {
        if self.is_over {
            return None;
        }
        let is_due = self.next_at.is_some_and(|at| now >= at);
        if is_due || self.next_at.is_none() {
            let calm = self.random.within(0..2 * self.lease_nanos / CALM_PART);
            self.next_at = Some(MonotonicNanos(now.0 + calm));
        }
        if is_due { self.disturbance() } else { None }
    }

    fn disturbance(&mut self) -> Option<Disturbance> {
        let climate = self.climate;
        let nanos = self.span();
        match self.random.within(0..18) {
            0..3 if climate.pauses => Some(Disturbance::Pause(nanos)),
            3..5 if climate.crashes => Some(Disturbance::Crash),
            5..7 if climate.stops => Some(Disturbance::Stop),
            7..9 if climate.cuts => Some(Disturbance::Cut(nanos)),
            9..11 if climate.stalls => Some(Disturbance::Stall(nanos)),
            11..14 if climate.odds => Some(Disturbance::Odds(if self.random.chance(50) {
                Odds::benign()
            } else {
                Odds::draw(&mut self.random)
            })),
            14..16 if climate.jumps => {
                let micros = self.random.within(0..20_000_000) as i64 - 10_000_000;
                // A step of seconds, or the time of another zone.
                Some(Disturbance::Jump(if self.random.chance(10) { micros * 360 } else { micros }))
            }
            16..18 if climate.freezes => Some(Disturbance::Freeze(nanos, self.awakening())),
            _ => None,
        }
    }

    fn awakening(&mut self) -> Awakening {
        let drawn = *self.random.choose(&[Awakening::WallIsRight, Awakening::IsTold]);
        self.awakening.unwrap_or(drawn)
    }

    /// How long something lasts: less than a lease, about as long, or far longer.
    fn span(&mut self) -> u64 {
        let lease = self.lease_nanos;
        match self.random.within(0..8) {
            0..3 => self.random.within(0..lease / 4),
            3..7 => self.random.within(lease / 2..3 * lease / 2),
            _ => self.random.within(lease..4 * lease),
        }
    }

    /// Whether the primary is meant, if there is one.
    pub fn means_primary(&mut self) -> bool {
        self.random.chance(50)
    }

    /// One of so many.
    pub fn victim(&mut self, count: usize) -> usize {
        self.random.within(0..count as u64) as usize
    }

    /// What a step of a command takes, if it takes long: a part of a lease, or several leases. Its
    /// pulses are less than an eighth of a lease apart.
    pub fn works(&mut self) -> Option<Work> {
        if self.is_over || !self.climate.works || self.random.within(0..WORK_PART) > 0 {
            return None;
        }
        let pulse_nanos = self.random.within(self.lease_nanos / 64..self.lease_nanos / 8);
        Some(Work { pulses: self.random.within(1..48), pulse_nanos })
    }

    /// Whether time passes here, in the middle of a turn.
    pub fn lingers(&mut self) -> Lingering {
        if self.is_over || !self.climate.lingers {
            return Lingering::default();
        }
        match self.random.within(0..3000) {
            0 => Lingering { nanos: Some(self.span()), ..Lingering::default() },
            1 if self.climate.crashes => Lingering { dies: true, ..Lingering::default() },
            2..8 => {
                let nanos = self.random.within(1_000..5_000_000);
                Lingering { nanos: Some(nanos), ..Lingering::default() }
            }
            8 if self.climate.freezes => {
                let (nanos, freezes) = (Some(self.span()), Some(self.awakening()));
                Lingering { nanos, freezes, dies: false }
            }
            _ => Lingering::default(),
        }
    }
}
