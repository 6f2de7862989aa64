//! Which segment is worth cleaning: the one that gives most room.
//!
//! A look examines so many segments that it takes some 20 µs at most; tiers of up to 64 GiB are
//! examined as a whole. In larger ones the best of thousands is nearly the best of all. A round
//! that found nothing is not repeated before something changed: whoever asks each turn pays nothing
//! meanwhile.

use crate::limits::Limits;
use crate::segment::Segment;

/// Segments that one look examines.
const EXAMINED_MAX: usize = 8192;

#[derive(Default)]
pub(crate) struct Search {
    /// Where the next look begins.
    next: usize,
    /// Segments examined in a row without one worth cleaning.
    fruitless: usize,
    /// A whole round found nothing, and no segment has become worth cleaning since.
    is_resting: bool,
}

impl Search {
    /// The segment that gives most room, and enough; none if there is none, or was none lately.
    pub(crate) fn choose(&mut self, table: &[Segment], limits: &Limits) -> Option<u32> {
        if table.is_empty() || self.is_resting {
            return None;
        }
        let begin = self.next % table.len();
        let count = table.len().min(EXAMINED_MAX);
        let around = (begin..table.len()).chain(0..begin).take(count);
        let mut best = None;
        let mut best_bytes = limits.segment_bytes as u64 - room_bytes_min(limits) + 1;
        for index in around {
            let segment = &table[index];
            // What is occupied is at least what is live: most segments are passed by without a
            // division.
            if u64::from(segment.live_bytes) < best_bytes
                && segment.can_be_cleaned()
                && segment.occupied_bytes() < best_bytes
            {
                best = Some(index as u32);
                best_bytes = segment.occupied_bytes();
            }
        }
        self.next = (begin + count) % table.len();
        self.fruitless = if best.is_some() { 0 } else { self.fruitless + count };
        if self.fruitless >= table.len() {
            self.fruitless = 0;
            self.is_resting = true;
        }
        best
    }

    /// Something changed that may have made any segment worth cleaning.
    pub(crate) fn look_again(&mut self) {
        self.is_resting = false;
    }

    /// A segment changed: if it is worth cleaning now, looking for it is as well.
    pub(crate) fn look_again_at(&mut self, segment: &Segment, limits: &Limits) {
        if self.is_resting && segment.can_be_cleaned() {
            let room = (limits.segment_bytes as u64).saturating_sub(segment.occupied_bytes());
            self.is_resting = room < room_bytes_min(limits);
        }
    }
}

/// Room that cleaning a segment has to give.
fn room_bytes_min(limits: &Limits) -> u64 {
    limits.segment_bytes as u64 * limits.room_percent_min / 100
}
