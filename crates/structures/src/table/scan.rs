//! Iteration, SCAN and random picks.

use super::bucket::SLOTS;
use super::segment::{BUCKETS_MAX, FRACTION_BITS, FRACTIONS, Segment};
use super::{Element, Table};

/// Bits of the hash below those that a cursor keeps: cursors have 48 bits, so that clients that
/// hold them as floating-point numbers or signed integers keep them intact.
const CURSOR_SHIFT: u32 = 16;
/// Buckets that one call may pass for each element wanted: a sparse table must not make it long.
const BUCKETS_PER_ELEMENT_MAX: usize = 10;
/// Places that a random pick counts for each segment: every slot and some overflow.
const RANDOM_PLACES: usize = BUCKETS_MAX * SLOTS + 64;
/// Rejected places before a random pick settles for the next element. With a quarter of the
/// places filled the probability of as many rejections is 10^-16.
const RANDOM_TRIES_MAX: usize = 128;

impl<E: Element> Table<E> {
    /// Every element once, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = E::Ref<'_>> {
        self.segments.iter().flat_map(Segment::iter).map(|stored| {
            // SAFETY: `stored` lies in a slot, and the table is borrowed for the result's lifetime.
            unsafe { E::borrow(stored.raw()) }
        })
    }

    /// Visits about `count` elements from `cursor` on, in hash order, and returns the cursor to go
    /// on with; 0 begins and 0 ends. What is present from the first call to the last is visited at
    /// least once, whatever happens to the table between calls; usually exactly once.
    ///
    /// Source: <https://redis.io/docs/latest/commands/scan/>, "Scan guarantees".
    pub fn scan<'t>(&'t self, cursor: u64, count: usize, mut visit: impl FnMut(E::Ref<'t>)) -> u64 {
        let mut position = cursor << CURSOR_SHIFT;
        if cursor > u64::MAX >> CURSOR_SHIFT || self.segments.is_empty() {
            return 0;
        }
        let count = count.max(1);
        let mut visited = 0;
        let mut buckets = 0;
        while visited < count && buckets < count.saturating_mul(BUCKETS_PER_ELEMENT_MAX) {
            let segment = self.segment_of(position);
            let from = segment.fraction_of_hash(position);
            let to = segment.home_end(segment.home(from));
            segment.for_fractions(from, to, |stored| E::prefetch(stored.raw()));
            segment.for_fractions(from, to, |stored| {
                visited += 1;
                // SAFETY: `stored` lies in a slot, and the table is borrowed for `'t`.
                visit(unsafe { E::borrow(stored.raw()) });
            });
            buckets += 1;
            match segment.position_of(to) {
                Some(next) => position = next,
                None => return 0,
            }
        }
        position >> CURSOR_SHIFT
    }

    /// Visits the elements that are not light ([`Element::is_light`]) from the hash `position` on,
    /// in hash order, in up to `buckets_max` buckets: a walk that goes round and round, in which
    /// light elements cost no memory access but their bucket's. Returns where to go on, `None` at
    /// the end of the table.
    pub fn sweep<'t>(
        &'t self,
        mut position: u64,
        buckets_max: usize,
        mut visit: impl FnMut(E::Ref<'t>),
    ) -> Option<u64> {
        if self.segments.is_empty() {
            return None;
        }
        for _ in 0..buckets_max {
            let segment = self.segment_of(position);
            let from = segment.fraction_of_hash(position);
            let to = segment.home_end(segment.home(from));
            let heavy = |visit: &mut dyn FnMut(u64)| {
                segment.for_fractions(from, to, |stored| {
                    if !E::is_light(stored.raw()) {
                        visit(stored.raw());
                    }
                });
            };
            heavy(&mut |raw| E::prefetch(raw));
            // SAFETY: `raw` lies in a slot, and the table is borrowed for `'t`.
            heavy(&mut |raw| visit(unsafe { E::borrow(raw) }));
            position = segment.position_of(to)?;
        }
        Some(position)
    }

    /// An element chosen evenly by `random`, 64 random bits; `None` if there is none.
    pub fn random(&self, random: u64) -> Option<E::Ref<'_>> {
        if self.len == 0 {
            return None;
        }
        let mut state = random;
        // Every place of every segment is equally likely and empty ones are rejected, so every
        // element is equally likely, however unevenly the segments are filled.
        let alone = self.segments.len() == 1;
        let places = if alone { self.segments[0].places() } else { RANDOM_PLACES };
        let everywhere = (places * self.segments.len()) as u64;
        let mut at = 0;
        for _ in 0..RANDOM_TRIES_MAX {
            let scaled = u128::from(next_random(&mut state)) * u128::from(everywhere);
            at = (scaled >> 64) as usize;
            if let Some(stored) = self.segments[at / places].at(at % places) {
                // SAFETY: `stored` lies in a slot, and the table is borrowed for the result.
                return Some(unsafe { E::borrow(stored.raw()) });
            }
        }
        let from = at / places;
        let segments = self.segments.iter().skip(from).chain(self.segments.iter().take(from));
        let stored = segments.flat_map(Segment::iter).next()?;
        // SAFETY: as above.
        Some(unsafe { E::borrow(stored.raw()) })
    }

    /// What it takes to find each element once, in entries looked at: those whose key is compared,
    /// and those that are passed by in an overflow. A measure for tests of what chosen keys cost,
    /// which no busy machine disturbs.
    #[cfg(any(test, feature = "twins"))]
    pub fn lookup_steps(&self) -> u64 {
        let steps = |segment: &Segment, raw: u64| {
            // SAFETY: `raw` lies in a slot, and the table is borrowed during the call.
            let hash = E::hash(unsafe { E::borrow(raw) }, &self.hasher);
            let mut compared = 0;
            let spot = segment.find(hash, |found| {
                compared += 1;
                found == raw
            });
            match spot {
                Some(super::segment::Spot::Overflow(at)) => compared + u64::from(at),
                _ => compared,
            }
        };
        let of_segment = |segment: &Segment| -> u64 {
            segment.iter().map(|stored| steps(segment, stored.raw())).sum()
        };
        self.segments.iter().map(of_segment).sum()
    }

    /// The segment that owns `position`. There must be segments.
    pub(super) fn segment_of(&self, position: u64) -> &Segment {
        &self.segments[self.directory[self.directory_index(position)] as usize]
    }
}

impl Segment {
    /// The hash at which `fraction` begins; `None` past the last hash of all. A `fraction` of
    /// 1024 is the beginning of the next segment.
    pub(super) fn position_of(&self, fraction: u32) -> Option<u64> {
        debug_assert!(fraction <= FRACTIONS);
        let bits = u32::from(self.depth) + FRACTION_BITS;
        let ordinal = (u64::from(self.prefix) << FRACTION_BITS) + u64::from(fraction);
        (ordinal >> bits == 0).then(|| ordinal << (u64::BITS - bits))
    }
}

/// The next value of the splitmix64 sequence.
fn next_random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
