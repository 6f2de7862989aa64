//! Memory that is lost between blocks is won back, a little at a time, beside commands.
//!
//! Values that go leave holes of their size. Where what comes next is of another size, and on a
//! node with a tier it always is, the allocator's pages stay with a few blocks each, and the
//! process takes far more memory than its data. So while much is lost, a walk over all keys has
//! the blocks of the emptiest pages allocated anew, where others of their size lie.
//!
//! ```text
//! survey, ten times a second ─▶ much is lost? ─▶ a round over all keys, in slices ─▶ survey
//!                                                     └ nothing won? rest until it is worse
//! ```
//! The same walk moves values between ordinary and slow memory, where some lie in the wrong one:
//! [`preference`] says which ones first.
//!
//! Absent on purpose: what is sparse, which the allocator says ([`base::heap`]), and what a block
//! is, which the engine knows.

use base::heap::{Heap, Holes};
use base::time::{MILLISECOND, MonotonicNanos, SECOND};
use base::{Clock, UnixMillis};
use engine::access::Idleness;
use engine::keyspace::Keyspace;
use engine::moving::{Met, Mover, MovingHand, WHOLE_BYTES_MAX};
use preference::Preference;
use std::cell::Cell;
use std::sync::Arc;

/// Between two surveys, in nanoseconds.
const SURVEY_NANOS: u64 = 100 * MILLISECOND;

/// The longest slice, the longest where there is a tier, whose turns are meant to stay below 2 ms,
/// and the shortest, in nanoseconds. A slice begins and ends with the thread's cache of free blocks
/// being emptied, some 20 µs.
const SLICE_NANOS_MAX: u64 = MILLISECOND / 2;
const TIERED_SLICE_NANOS_MAX: u64 = 3 * MILLISECOND / 10;
const SLICE_NANOS_MIN: u64 = MILLISECOND / 5;

/// Steps between two looks at the clock: some 20 µs where little moves.
const STEPS_AT_ONCE: u32 = 8;

/// Bytes that are moved between two looks at the clock, some 50 µs' worth; one block may exceed
/// them. What is left of a step then waits for the next round.
const BYTES_AT_ONCE: usize = 256 << 10;

/// What a block counts for whose size is not known, in bytes.
const ORDINARY_BYTES: usize = 1 << 10;

/// After a round that moved nothing, values that lie in the wrong memory are not looked for for so
/// long, in nanoseconds: none of them may be moved.
const FRUITLESS_NANOS: u64 = 10 * SECOND;

/// Cold entries have no more bytes than this, as a rule: classes above say nothing about them.
const LIGHT_BYTES_MAX: usize = 128;

/// A round in which less than this part of the blocks moved has won little: what is lost must grow
/// by so much before the next one, in percent.
const HOPELESS_PART: u64 = 100;
const WORSE_PERCENT: u64 = 10;

/// Of the time, so much at least goes to values that lie in the wrong memory, in percent: some
/// 60 MB a second of small ones. A guess.
const MISPLACED_TIME_PERCENT: u64 = 5;

/// When memory is won back, and how much time that may take: Redis's `active-defrag-*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CompactionSettings {
    pub is_on: bool,
    /// Nothing is done while fewer bytes are lost.
    pub lost_bytes_min: u64,
    /// Nothing is done while less is lost for each hundred bytes in use; from the second number on
    /// as much as may be.
    pub lost_percent_min: u64,
    pub lost_percent_max: u64,
    /// Of the time, in percent.
    pub time_percent_min: u64,
    pub time_percent_max: u64,
    /// Elements of a value that are walked over in one step.
    pub elements_max: usize,
    /// How long the allocator keeps freed pages, in milliseconds; `None`: as long as by default.
    pub kept_millis: Option<u64>,
}

impl CompactionSettings {
    pub const OFF: Self = Self {
        is_on: false,
        lost_bytes_min: 0,
        lost_percent_min: 0,
        lost_percent_max: 0,
        time_percent_min: 0,
        time_percent_max: 0,
        elements_max: 1,
        kept_millis: None,
    };

    /// The part of the time that is spent, in percent.
    fn time_percent(&self, lost_percent: u64) -> u64 {
        let (from, to) = (self.lost_percent_min, self.lost_percent_max.max(self.lost_percent_min));
        let above = lost_percent.clamp(from, to) - from;
        let more = self.time_percent_max.saturating_sub(self.time_percent_min);
        self.time_percent_min + (above * more).checked_div(to - from).unwrap_or(more)
    }
}

/// Counters, for INFO.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct CompactionStatistics {
    /// Blocks that were allocated anew, and blocks that were looked at and stayed.
    pub moved: u64,
    pub stayed: u64,
    /// Keys of which some block was allocated anew, and keys of which none was.
    pub keys_moved: u64,
    pub keys_stayed: u64,
    /// Time in which rounds were under way, in nanoseconds.
    pub nanos: u64,
}

/// Wins back memory that is lost between blocks.
pub struct Compaction {
    heap: Option<Arc<dyn Heap>>,
    clock: Arc<dyn Clock>,
    pub settings: CompactionSettings,
    hand: MovingHand,
    round: Option<Round>,
    surveyed: MonotonicNanos,
    /// The survey before was long ago, or none: what a heap tells that takes stock beside says
    /// nothing of now.
    is_out_of_date: bool,
    holes: Holes,
    /// What was lost after a round that won little.
    hopeless_bytes: u64,
    /// Values that lie in the wrong memory are not looked for before.
    fruitless_until: MonotonicNanos,
    preference: Preference,
    pub statistics: CompactionStatistics,
    /// How long the allocator was told last to keep freed pages; as by default before that.
    told_millis: Option<u64>,
}

/// A round under way.
struct Round {
    began: MonotonicNanos,
    /// What was lost then.
    lost_bytes: u64,
    /// The counters then.
    moved_before: u64,
    stayed_before: u64,
    /// Of the time, in percent.
    time_percent: u64,
    /// Since when the time for the next slice adds up.
    rests_since: MonotonicNanos,
}

impl Compaction {
    /// `heap`: the allocator, if it tells where blocks lie; without it nothing is ever done.
    pub fn new(
        heap: Option<Arc<dyn Heap>>,
        clock: Arc<dyn Clock>,
        settings: CompactionSettings,
    ) -> Self {
        Self {
            heap,
            surveyed: clock.monotonic(),
            is_out_of_date: true,
            clock,
            settings,
            hand: MovingHand::default(),
            round: None,
            holes: Holes::default(),
            hopeless_bytes: 0,
            fruitless_until: MonotonicNanos(0),
            preference: Preference::default(),
            statistics: CompactionStatistics::default(),
            told_millis: None,
        }
    }

    /// The part of the time that it takes now, in percent; 0 while it rests.
    pub fn running_percent(&self) -> u64 {
        self.round.as_ref().map_or(0, |round| round.time_percent)
    }

    /// Since when a round is under way.
    pub fn running_since(&self) -> Option<MonotonicNanos> {
        self.round.as_ref().map(|round| round.began)
    }

    /// In how many nanoseconds there is a slice to be done, if there is.
    pub fn wait_nanos(&self, keyspace: &Keyspace, now: MonotonicNanos) -> Option<u64> {
        let round = self.round.as_ref()?;
        let rests = self.slice_nanos_max(keyspace) * 100 / round.time_percent.max(1);
        Some(rests.saturating_sub(now.since(round.rests_since)))
    }

    /// Looks how much is lost, when it is time to, and goes on with the round if one is under way.
    pub fn advance(&mut self, keyspace: &mut Keyspace) {
        let kept_millis = self.settings.kept_millis;
        if self.told_millis != kept_millis {
            self.told_millis = kept_millis;
            self.heap.iter().for_each(|heap| heap.keep_freed(kept_millis));
        }
        let is_asked = |heap: &Arc<dyn Heap>| self.settings.is_on || heap.wants_moves();
        let Some(heap) = self.heap.clone().filter(is_asked) else {
            self.is_out_of_date = true;
            if let Some(round) = self.round.take() {
                self.statistics.nanos += self.clock.monotonic().since(round.began);
                self.hand.pause();
                self.preference = Preference::default();
            }
            return;
        };
        let now = self.clock.monotonic();
        if now.since(self.surveyed) >= SURVEY_NANOS {
            self.survey(&*heap, now);
        }
        let Some(round) = &mut self.round else { return };
        let allowed = now.since(round.rests_since) / 100 * round.time_percent;
        if allowed < SLICE_NANOS_MIN {
            return;
        }
        let longest = self.slice_nanos_max(keyspace);
        let has_come_round = self.slice(&*heap, keyspace, now, allowed.min(longest));
        let now = self.clock.monotonic();
        if let Some(round) = &mut self.round {
            round.rests_since = now;
        }
        if has_come_round {
            self.end_round(&*heap, now);
        }
    }

    fn slice_nanos_max(&self, keyspace: &Keyspace) -> u64 {
        match keyspace.cold() {
            Some(_) => TIERED_SLICE_NANOS_MAX,
            None => SLICE_NANOS_MAX,
        }
    }

    /// Asks for the figures, and begins a round if too much is lost.
    fn survey(&mut self, heap: &dyn Heap, now: MonotonicNanos) {
        self.holes = heap.survey();
        self.surveyed = now;
        if std::mem::take(&mut self.is_out_of_date) {
            return;
        }
        let settings = &self.settings;
        let (lost, percent) = (self.holes.lost_bytes, self.holes.percent());
        let least = if heap.wants_moves() { MISPLACED_TIME_PERCENT } else { 0 };
        let for_holes = if settings.is_on { settings.time_percent(percent) } else { 0 };
        let time_percent = for_holes.max(least);
        if let Some(round) = &mut self.round {
            round.time_percent = time_percent;
            return;
        }
        self.hopeless_bytes = self.hopeless_bytes.min(lost);
        let is_much = settings.is_on
            && lost >= settings.lost_bytes_min
            && percent >= settings.lost_percent_min;
        let is_worth_it = is_much && lost > self.hopeless_bytes / 100 * (100 + WORSE_PERCENT);
        if is_worth_it || heap.wants_moves() && now >= self.fruitless_until {
            self.round = Some(Round {
                began: now,
                lost_bytes: lost,
                moved_before: self.statistics.moved,
                stayed_before: self.statistics.stayed,
                time_percent,
                rests_since: now,
            });
        }
    }

    /// Walks on for so long. Whether that ends a round.
    fn slice(
        &mut self,
        heap: &dyn Heap,
        keyspace: &mut Keyspace,
        began: MonotonicNanos,
        nanos: u64,
    ) -> bool {
        let Self { hand, clock, statistics, settings, preference, .. } = self;
        let now = UnixMillis(clock.unix_micros() / 1000);
        let idleness = Idleness::at(now, &keyspace.settings);
        let mut has_come_round = false;
        heap.moving(&mut || {
            // What lies in the wrong memory is moved whether or not holes are to be closed.
            let (is_on, wants_moves) = (settings.is_on, heap.wants_moves());
            // What was moved since the last look at the clock.
            let moved_bytes = Cell::new(0);
            let wanted = &mut |Met { address, bytes, access }: Met<'_>| {
                if moved_bytes.get() >= BYTES_AT_ONCE {
                    return false;
                }
                let mut is_misplaced = |bytes: usize| {
                    preference.takes(heap.misplaced(address, bytes), || idleness.of(access))
                };
                let is_wanted = is_on && heap.is_sparse(address)
                    || wants_moves && bytes.is_some_and(|bytes| is_misplaced(bytes()));
                if is_wanted {
                    let bytes = bytes.map_or(ORDINARY_BYTES, |bytes| bytes());
                    // A larger block is not moved at once.
                    moved_bytes.update(|sum| sum + bytes * usize::from(bytes <= WHOLE_BYTES_MAX));
                }
                is_wanted
            };
            let mut mover = Mover::new(wanted);
            mover.moves_light = wants_moves || heap.has_holes(0..=LIGHT_BYTES_MAX);
            while !has_come_round && clock.monotonic().since(began) < nanos {
                moved_bytes.set(0);
                for _ in 0..STEPS_AT_ONCE {
                    has_come_round = keyspace.move_blocks(hand, settings.elements_max, &mut mover);
                    if has_come_round || moved_bytes.get() >= BYTES_AT_ONCE {
                        break;
                    }
                }
            }
            statistics.moved += mover.moved;
            statistics.stayed += mover.asked - mover.moved;
            (statistics.keys_moved, statistics.keys_stayed) = (hand.keys_moved, hand.keys_stayed);
        });
        has_come_round
    }

    fn end_round(&mut self, heap: &dyn Heap, now: MonotonicNanos) {
        let Some(round) = self.round.take() else { return };
        self.statistics.nanos += now.since(round.began);
        // Perhaps of a tenth of a second before; the next survey lowers what is taken for hopeless.
        self.holes = heap.survey();
        self.surveyed = now;
        let lost = self.holes.lost_bytes;
        let moved = self.statistics.moved - round.moved_before;
        let stayed = self.statistics.stayed - round.stayed_before;
        let has_hope = self.preference.end_round(heap.wants_moves());
        if moved == 0 && !has_hope {
            self.fruitless_until = MonotonicNanos(now.0.saturating_add(FRUITLESS_NANOS));
        }
        // More may be lost than before although much was won: commands go on.
        let is_hopeless = moved < (moved + stayed) / HOPELESS_PART;
        self.hopeless_bytes = if is_hopeless { lost } else { 0 };
        tracing::debug!(lost_before = round.lost_bytes, lost, "memory between blocks was won back");
    }
}

mod preference;
#[cfg(test)]
mod tests;
