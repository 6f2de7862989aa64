//! A segment: up to 64 buckets that own one contiguous range of hashes.
//!
//! The hash, from its top bit:
//!
//! ```text
//!  ┌─ prefix: depth bits ─┬─ fraction: 10 bits ─┬───────────────────┬─ fingerprint: 8 ─┐
//!  └──────────────────────┴─────────────────────┴───────────────────┴──────────────────┘
//!             ├── tag: 16 bits from bit `base` ──┤      base ≤ depth ≤ base + 6
//! ```
//! The home bucket is `fraction × buckets / 1024`, so any number of buckets works and bucket order
//! is hash order: a segment grows in steps of about a fifth instead of doubling, and a scan's
//! position means the same before and after it. The tag always covers the fraction, so growing,
//! merging and up to six splits in a row move entries without reading them. Only the seventh must
//! recompute the hashes ([`Segment::rebase`]), once per 64-fold growth of the table.
//!
//! An entry lives in its home bucket, else in the next one, else in the segment's overflow list.

mod filling;

use super::bucket::{SLOTS, Stored, fingerprint};
use super::packed::Buckets;
use crate::mover::Mover;
use crate::slow_touch::touched;
use filling::Filling;

/// Bits of the hash that choose the bucket. 1024 fractions over 40 buckets give 25 or 26 each.
pub(super) const FRACTION_BITS: u32 = 10;
pub(super) const FRACTIONS: u32 = 1 << FRACTION_BITS;
/// A segment's first level splits below its base before the tag runs out of bits.
pub(super) const DEPTH_ABOVE_BASE_MAX: u8 = (u16::BITS - FRACTION_BITS) as u8;
/// 64 buckets of 64 bytes are one page.
pub(super) const BUCKETS_MAX: usize = 64;
/// Longest overflow that a segment tolerates while it can still grow or split: a lookup that
/// reaches it compares this many fingerprints. A guess, rarely reached below the load limit.
pub(super) const OVERFLOW_MAX: usize = 12;
/// Bucket counts that a segment takes, each also an allocator size class when times 64 bytes. With
/// steps half as wide a key takes 0.24 bytes less, and an eighth more time to be added.
const BUCKET_STEPS: [u8; 19] =
    [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 56, BUCKETS_MAX as u8];

/// The position of an entry in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    Bucket { bucket: u8, place: u8 },
    Overflow(u32),
}

/// Entries that `buckets` may hold before the segment grows or splits: 29/32 of its slots. Above
/// that the overflow grows quickly; a single bucket may fill up.
pub(super) fn entries_limit(buckets: usize) -> usize {
    if buckets == 1 { SLOTS } else { buckets * SLOTS * 29 / 32 }
}

/// The fewest buckets that hold `entries` and some more before they must grow.
pub(super) fn buckets_for(entries: usize) -> usize {
    let wanted = entries + entries / 16;
    let step = BUCKET_STEPS.iter().find(|&&step| entries_limit(step.into()) >= wanted);
    step.map_or(BUCKETS_MAX, |&step| step.into())
}

const _: () = assert!(size_of::<Segment>() == 64);

pub(super) struct Segment {
    buckets: Buckets,
    overflow: Vec<Stored>,
    /// The cells that the walk of `walk_epoch` has visited, by the top six bits of the fraction.
    pub walked: u64,
    pub walk_epoch: u32,
    /// The top `depth` bits of every hash in here.
    pub prefix: u32,
    count: u32,
    pub depth: u8,
    /// The hash bit at which tags begin.
    pub base: u8,
}

impl Segment {
    /// Without entries; `buckets` are empty.
    pub fn new(depth: u8, base: u8, prefix: u32, buckets: Buckets) -> Self {
        assert!(base <= depth && depth - base <= DEPTH_ABOVE_BASE_MAX);
        Self {
            buckets,
            overflow: Vec::new(),
            walked: 0,
            walk_epoch: 0,
            prefix,
            count: 0,
            depth,
            base,
        }
    }

    pub fn len(&self) -> usize {
        self.count as usize
    }

    pub fn buckets(&self) -> usize {
        self.buckets.len()
    }

    pub fn overflow_len(&self) -> usize {
        self.overflow.len()
    }

    /// Bytes outside the struct itself.
    pub fn allocated_bytes(&self) -> usize {
        size_of_val(&*self.buckets) + self.overflow.capacity() * size_of::<Stored>()
    }

    #[inline]
    pub fn fraction_of_hash(&self, hash: u64) -> u32 {
        ((hash << self.depth) >> (u64::BITS - FRACTION_BITS)) as u32
    }

    #[inline]
    fn fraction_of_tag(&self, tag: u16) -> u32 {
        u32::from((tag << (self.depth - self.base)) >> (u16::BITS - FRACTION_BITS))
    }

    #[inline]
    pub fn tag_of_hash(&self, hash: u64) -> u16 {
        ((hash << self.base) >> (u64::BITS - u16::BITS)) as u16
    }

    #[inline]
    pub fn home(&self, fraction: u32) -> usize {
        ((fraction * self.buckets.len() as u32) >> FRACTION_BITS) as usize
    }

    /// The first fraction past bucket `home`.
    pub fn home_end(&self, home: usize) -> u32 {
        ((home as u32 + 1) << FRACTION_BITS).div_ceil(self.buckets.len() as u32)
    }

    #[inline]
    fn next_bucket(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() { 0 } else { bucket + 1 }
    }

    pub fn home_bucket_address(&self, hash: u64) -> *const u8 {
        let home = self.home(self.fraction_of_hash(hash));
        (&raw const self.buckets[home]).cast()
    }

    /// Finds the entry of `hash` for which `same` holds; `same` is asked only about references
    /// whose fingerprint and tag agree.
    #[inline]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u64) -> bool) -> Option<Spot> {
        let tag = self.tag_of_hash(hash);
        let fp = fingerprint(hash);
        let home = self.home(self.fraction_of_hash(hash));
        let bucket = &self.buckets[home];
        touched((&raw const *bucket).cast());
        if let Some(spot) = self.find_in(home, fp, tag, &mut same) {
            return Some(spot);
        }
        if !bucket.spills() {
            return None;
        }
        self.find_spilled(home, fp, tag, &mut same)
    }

    /// Passes the first reference of the home bucket whose bits are those of `hash` to `found`. If
    /// there is none, and entries of that bucket are elsewhere, where a lookup goes on.
    #[inline]
    pub fn find_home(&self, hash: u64, found: impl FnOnce(u64)) -> Option<*const u8> {
        let tag = self.tag_of_hash(hash);
        let home = self.home(self.fraction_of_hash(hash));
        let bucket = &self.buckets[home];
        touched((&raw const *bucket).cast());
        let mut stored = bucket.matches(fingerprint(hash)).map(|place| bucket.stored(place));
        if let Some(stored) = stored.find(|stored| stored.tag() == tag) {
            found(stored.raw());
            return None;
        }
        let next = &self.buckets[self.next_bucket(home)];
        bucket.spills().then_some((&raw const *next).cast())
    }

    #[inline]
    fn find_in(
        &self,
        bucket: usize,
        fp: u8,
        tag: u16,
        same: &mut impl FnMut(u64) -> bool,
    ) -> Option<Spot> {
        let line = &self.buckets[bucket];
        for place in line.matches(fp) {
            let stored = line.stored(place);
            if stored.tag() == tag && same(stored.raw()) {
                return Some(Spot::Bucket { bucket: bucket as u8, place: place as u8 });
            }
        }
        None
    }

    #[inline(never)]
    fn find_spilled(
        &self,
        home: usize,
        fp: u8,
        tag: u16,
        same: &mut impl FnMut(u64) -> bool,
    ) -> Option<Spot> {
        let line = &self.buckets[home];
        if line.has_displaced()
            && let Some(spot) = self.find_in(self.next_bucket(home), fp, tag, same)
        {
            return Some(spot);
        }
        if !line.has_overflow() {
            return None;
        }
        let fits = |stored: &Stored| stored.fingerprint == fp && stored.tag() == tag;
        let found = self.overflow.iter().position(|stored| fits(stored) && same(stored.raw()));
        found.map(|at| Spot::Overflow(at as u32))
    }

    /// Adds an entry. Never fails: what fits nowhere else goes to the overflow.
    pub fn add(&mut self, stored: Stored) -> Spot {
        let home = self.home(self.fraction_of_tag(stored.tag()));
        self.count += 1;
        if let Some(place) = self.buckets[home].vacant() {
            self.buckets[home].put(place, stored);
            return Spot::Bucket { bucket: home as u8, place: place as u8 };
        }
        let next = self.next_bucket(home);
        if let Some(place) = self.buckets[next].vacant().or_else(|| self.push_on(next)) {
            self.buckets[next].put(place, stored);
            self.buckets[home].add_displaced();
            return Spot::Bucket { bucket: next as u8, place: place as u8 };
        }
        self.buckets[home].add_overflow();
        self.overflow.push(stored);
        Spot::Overflow(self.overflow.len() as u32 - 1)
    }

    /// Makes room in a full bucket by moving one of its own entries to the bucket after it. That
    /// keeps most segments free of overflow up to their load limit.
    fn push_on(&mut self, bucket: usize) -> Option<usize> {
        let after = self.next_bucket(bucket);
        let vacant = self.buckets[after].vacant()?;
        let own = (0..SLOTS).find(|&place| {
            let tag = self.buckets[bucket].stored(place).tag();
            self.home(self.fraction_of_tag(tag)) == bucket
        })?;
        let moved = self.buckets[bucket].take(own);
        self.buckets[after].put(vacant, moved);
        self.buckets[bucket].add_displaced();
        Some(own)
    }

    pub fn stored(&self, spot: Spot) -> Stored {
        match spot {
            Spot::Bucket { bucket, place } => self.buckets[bucket as usize].stored(place.into()),
            Spot::Overflow(at) => self.overflow[at as usize],
        }
    }

    /// Exchanges the reference at `spot`, keeping its hash bits.
    pub fn set_raw(&mut self, spot: Spot, raw: u64) {
        let old = self.stored(spot);
        self.set_stored(spot, Stored::new(raw, old.tag(), old.fingerprint));
    }

    /// Exchanges an entry for one with the same fraction and fingerprint.
    fn set_stored(&mut self, spot: Spot, new: Stored) {
        match spot {
            Spot::Bucket { bucket, place } => {
                self.buckets[bucket as usize].set_slot(place.into(), new.slot);
            }
            Spot::Overflow(at) => self.overflow[at as usize] = new,
        }
    }

    /// Takes the entry at `spot` out and moves an entry that had spilled from there back.
    pub fn remove(&mut self, spot: Spot) -> u64 {
        self.count -= 1;
        match spot {
            Spot::Overflow(at) => {
                let stored = self.overflow.swap_remove(at as usize);
                let home = self.home(self.fraction_of_tag(stored.tag()));
                self.buckets[home].remove_overflow();
                stored.raw()
            }
            Spot::Bucket { bucket, place } => {
                let bucket = bucket as usize;
                let stored = self.buckets[bucket].take(place.into());
                let home = self.home(self.fraction_of_tag(stored.tag()));
                if home != bucket {
                    self.buckets[home].remove_displaced();
                }
                self.refill(bucket, place.into());
                stored.raw()
            }
        }
    }

    /// Fills the hole in `bucket` with one of its own entries from the overflow or the neighbour.
    fn refill(&mut self, bucket: usize, hole: usize) {
        if self.buckets[bucket].has_overflow() {
            let home_of = |s: &Stored| self.home(self.fraction_of_tag(s.tag()));
            if let Some(at) = self.overflow.iter().position(|s| home_of(s) == bucket) {
                let stored = self.overflow.swap_remove(at);
                self.buckets[bucket].remove_overflow();
                self.buckets[bucket].put(hole, stored);
                return;
            }
        }
        let next = self.next_bucket(bucket);
        if !self.buckets[bucket].has_displaced() || next == bucket {
            return;
        }
        let displaced = self.buckets[next].occupied().find(|&place| {
            let tag = self.buckets[next].stored(place).tag();
            self.home(self.fraction_of_tag(tag)) == bucket
        });
        if let Some(place) = displaced {
            let stored = self.buckets[next].take(place);
            self.buckets[bucket].put(hole, stored);
            self.buckets[bucket].remove_displaced();
        }
    }

    /// What one bucket holds, whoever's home it is.
    pub fn bucket(&self, index: usize) -> impl Iterator<Item = Stored> {
        let line = &self.buckets[index];
        line.occupied().map(|place| line.stored(place))
    }

    /// Where the entries of one bucket are, whoever's home it is; with the first one those of the
    /// overflow.
    pub fn spots_in(&self, bucket: usize) -> impl Iterator<Item = Spot> + use<> {
        let places = self.buckets[bucket].occupied();
        let overflow = if bucket == 0 { self.overflow.len() as u32 } else { 0 };
        let bucket = bucket as u8;
        let in_bucket = places.map(move |place| Spot::Bucket { bucket, place: place as u8 });
        in_bucket.chain((0..overflow).map(Spot::Overflow))
    }

    /// Moves the buckets, if `mover` takes them.
    pub fn move_buckets(&mut self, mover: &mut Mover<'_>) {
        self.buckets.move_by(mover);
    }

    /// What holds the entries.
    pub fn array(&self) -> &Buckets {
        &self.buckets
    }

    /// Has the entries elsewhere from now on, where they lie already. Those of before may be gone.
    pub fn set_array(&mut self, moved: Buckets) {
        debug_assert_eq!(moved.len(), self.buckets.len());
        self.buckets = moved;
    }

    /// What held the entries of a segment that is no more.
    pub fn into_array(self) -> Buckets {
        self.buckets
    }

    /// Visits the entries whose fraction lies in `from..to`, wherever they live, once each.
    pub fn for_fractions(&self, from: u32, to: u32, mut visit: impl FnMut(Stored)) {
        if from >= to {
            return;
        }
        for home in self.home(from)..=self.home(to - 1) {
            let mut consider = |stored: Stored| {
                let fraction = self.fraction_of_tag(stored.tag());
                if (from..to).contains(&fraction) && self.home(fraction) == home {
                    visit(stored);
                }
            };
            let line = &self.buckets[home];
            line.occupied().for_each(|place| consider(line.stored(place)));
            let next = self.next_bucket(home);
            if line.has_displaced() && next != home {
                let line = &self.buckets[next];
                line.occupied().for_each(|place| consider(line.stored(place)));
            }
            if line.has_overflow() {
                self.overflow.iter().for_each(|&stored| consider(stored));
            }
        }
    }

    /// The entry at index `at` of all places, buckets first; `None` if the place is empty.
    pub fn at(&self, at: usize) -> Option<Stored> {
        let (bucket, place) = (at / SLOTS, at % SLOTS);
        match self.buckets.get(bucket) {
            Some(line) => line.is_occupied(place).then(|| line.stored(place)),
            None => self.overflow.get(at - self.buckets.len() * SLOTS).copied(),
        }
    }

    /// Places in the buckets and the overflow, empty ones included.
    pub fn places(&self) -> usize {
        self.buckets.len() * SLOTS + self.overflow.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = Stored> {
        let in_buckets =
            self.buckets.iter().flat_map(|line| line.occupied().map(|place| line.stored(place)));
        in_buckets.chain(self.overflow.iter().copied())
    }

    /// Panics unless the counts of a segment are those of its entries.
    #[cfg(any(test, feature = "twins"))]
    pub fn check(&self) {
        let home_of = |stored: Stored| self.home(self.fraction_of_tag(stored.tag()));
        let mut spilled = vec![(0, 0); self.buckets()];
        for bucket in 0..self.buckets() {
            for home in self.bucket(bucket).map(home_of).filter(|&home| home != bucket) {
                assert_eq!(self.next_bucket(home), bucket);
                spilled[home].0 += 1;
            }
        }
        self.overflow.iter().for_each(|&stored| spilled[home_of(stored)].1 += 1);
        for (line, (displaced, overflow)) in self.buckets.iter().zip(spilled) {
            let counted = line.spilled();
            assert_eq!(counted.0, displaced);
            assert!(counted.1 == overflow || counted.1 == 15, "{counted:?} for {overflow}");
        }
        assert_eq!(self.len(), self.iter().count());
    }

    /// Lays the entries out over other buckets, which are empty. Returns those of before.
    pub fn resize(&mut self, buckets: Buckets) -> Buckets {
        let resized = Self::new(self.depth, self.base, self.prefix, buckets);
        let mut filling = Filling::of(resized);
        self.iter().for_each(|stored| filling.add(stored));
        let (walked, walk_epoch) = (self.walked, self.walk_epoch);
        let resized = Self { walked, walk_epoch, ..filling.finish() };
        std::mem::replace(self, resized).buckets
    }

    /// Recomputes every tag from the elements, so that the segment can split six more times. Where
    /// an entry lies stays as it is, since its fraction does.
    pub fn rebase(&mut self, mut hash_of: impl FnMut(u64) -> u64) {
        self.base = self.depth;
        for bucket in 0..self.buckets.len() {
            for spot in self.spots_in(bucket) {
                let old = self.stored(spot);
                let tag = self.tag_of_hash(hash_of(old.raw()));
                self.set_stored(spot, Stored::new(old.raw(), tag, old.fingerprint));
            }
        }
    }

    /// Which half of the range an entry belongs to.
    #[inline]
    fn half_of(&self, stored: Stored) -> usize {
        usize::from(stored.tag() << (self.depth - self.base) >> (u16::BITS - 1))
    }

    /// How many entries each half has.
    pub fn halves(&self) -> [usize; 2] {
        let mut counts = [0; 2];
        self.iter().for_each(|stored| counts[self.half_of(stored)] += 1);
        counts
    }

    /// Divides the entries over two segments by the hash bit after the prefix.
    pub fn split(&self, buckets: [Buckets; 2]) -> [Self; 2] {
        assert!(self.depth - self.base < DEPTH_ABOVE_BASE_MAX, "rebase first");
        let child = |bit: u32, buckets: Buckets| {
            let mut child = Self::new(self.depth + 1, self.base, self.prefix << 1 | bit, buckets);
            child.walk_epoch = self.walk_epoch;
            child.walked = spread(self.walked >> (32 * bit));
            Filling::of(child)
        };
        let [low, high] = buckets;
        let mut children = [child(0, low), child(1, high)];
        self.iter().for_each(|stored| children[self.half_of(stored)].add(stored));
        children.map(Filling::finish)
    }

    /// The union of two halves of one range, `low` being the one whose last prefix bit is 0. The
    /// walk's marks are lost: nothing may be merged while a walk is under way.
    pub fn merge(low: &Self, high: &Self, buckets: Buckets) -> Self {
        assert!(low.depth == high.depth && low.prefix | 1 == high.prefix && low.depth > 0);
        let depth = low.depth - 1;
        let base = low.base.min(high.base).min(depth);
        let mut merged = Filling::of(Self::new(depth, base, low.prefix >> 1, buckets));
        for half in [low, high] {
            // Bits that enter a tag from above are bits of the half's prefix.
            let missing = u32::from(half.base - base);
            let above = half.prefix >> (half.depth - half.base);
            for stored in half.iter() {
                let wide = above << u16::BITS | u32::from(stored.tag());
                let tag = (wide >> missing) as u16;
                merged.add(Stored::new(stored.raw(), tag, stored.fingerprint));
            }
        }
        merged.finish()
    }
}

/// Doubles each of the low 32 bits: a split's child has two cells for each of its parent's.
fn spread(bits: u64) -> u64 {
    (0..32).filter(|bit| bits >> bit & 1 == 1).fold(0, |spread, bit| spread | 3 << (2 * bit))
}
