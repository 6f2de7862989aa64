//! Many entries laid out in an empty segment at once, as growing and splitting do. Each entry of a
//! growing table is laid out anew some seven times.

use super::{BUCKETS_MAX, SLOTS, Segment, Stored};

/// As many find their home full, as a rule.
const REST_ORDINARY: usize = 16;

/// An empty segment that gets entries.
pub(super) struct Filling {
    segment: Segment,
    /// Entries of each bucket, which lie in its first places: no vacant one is looked for.
    used: [u8; BUCKETS_MAX],
    /// Those that found their home full. They come last, and so take no place from one at home.
    rest: Vec<Stored>,
}

impl Filling {
    pub fn of(segment: Segment) -> Self {
        debug_assert!(segment.len() == 0);
        Self { segment, used: [0; BUCKETS_MAX], rest: Vec::new() }
    }

    #[inline]
    pub fn add(&mut self, stored: Stored) {
        let home = self.segment.home(self.segment.fraction_of_tag(stored.tag()));
        let used = usize::from(self.used[home]);
        if used == SLOTS {
            if self.rest.is_empty() {
                self.rest.reserve(REST_ORDINARY);
            }
            self.rest.push(stored);
            return;
        }
        self.segment.buckets[home].put(used, stored);
        self.used[home] += 1;
    }

    pub fn finish(self) -> Segment {
        let Self { mut segment, used, rest } = self;
        segment.count = used.iter().map(|&used| u32::from(used)).sum();
        for stored in rest {
            segment.add(stored);
        }
        segment
    }
}
