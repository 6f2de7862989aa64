//! Growing, splitting, shrinking and merging of segments, and the directory over them.

use super::packed::{Buckets, Packed};
use super::segment::{
    BUCKETS_MAX, DEPTH_ABOVE_BASE_MAX, OVERFLOW_MAX, Segment, buckets_for, entries_limit,
};
use super::segments::Segments;
use super::{Element, Position, Table};

/// The deepest directory: 2^30 entries for 10^11 elements. Prefixes are 32 bits wide.
const DEPTH_MAX: u8 = 30;
/// Entries of the directory that any table may have; beyond them it has at most one for each
/// element, so that hashes that nothing can tell apart fill an overflow instead of doubling the
/// directory for ever. In a normal table there are 75 elements or more for each entry. Why so many
/// are allowed: to bring n keys into one segment somebody has to find n whose hashes agree in as
/// many bits as the directory may use, and each bit doubles that search.
const DIRECTORY_ALWAYS_ALLOWED: usize = 64;
/// Elements for which a segment is laid out beforehand at most: by chance it gets some more, and
/// should not split for them. The lowest number at which one splits is 254.
const RESERVED_MAX: usize = 208;
/// Two halves merge when together they hold fewer entries: far below the 254 to 406 at which the
/// result would split again.
const MERGE_BELOW: usize = 96;

/// A table with so many segments packs their buckets: what it then has beside them, less than
/// eight arrays of each size, is little beside 1.5 MB. Holes of smaller tables are few or are
/// filled by others.
const PACKED_SEGMENTS_MIN: usize = 512;

/// The number of entries at which a segment splits: 254 to 406, by its place in the table. With
/// one number for all, every segment of an evenly growing table would split at the same time.
fn split_limit(segment: &Segment) -> usize {
    let full = entries_limit(BUCKETS_MAX);
    let place = u64::from(segment.prefix) << 8 | u64::from(segment.depth);
    let spread = (place + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    full - (spread as usize % (full * 3 / 8))
}

impl<E: Element> Table<E> {
    /// Lays an empty table out for about `elements`, so that filling it moves few of them again:
    /// growing in steps is half of what loading a snapshot of small values costs otherwise. Does
    /// nothing to a table that has elements. The caller answers for the number: memory for all of
    /// them is taken at once.
    pub fn reserve(&mut self, elements: usize) {
        if elements == 0 || !self.segments.is_empty() {
            return;
        }
        let segments = elements.div_ceil(RESERVED_MAX).next_power_of_two();
        let depth = segments.trailing_zeros().min(u32::from(DEPTH_MAX)) as u8;
        let segments = 1_u32 << depth;
        let buckets = buckets_for(elements / segments as usize + 1);
        self.pack_if_large(segments as usize);
        for prefix in 0..segments {
            let buckets = self.new_buckets(buckets, prefix as usize);
            let segment = Segment::new(depth, depth, prefix, buckets);
            self.segment_bytes += segment.allocated_bytes();
            self.segments.push(segment);
        }
        self.directory = (0..segments).collect();
        self.deepest = segments;
        self.depth = depth;
    }

    fn pack_if_large(&mut self, segments: usize) {
        if segments >= PACKED_SEGMENTS_MIN && self.packed.is_none() {
            self.packed = Some(Packed::new());
        }
    }

    /// Empty buckets for the segment of that index.
    fn new_buckets(&mut self, count: usize, index: usize) -> Buckets {
        match &mut self.packed {
            Some(packed) if Packed::takes(count) => packed.take(count, index),
            _ => Buckets::alone(count),
        }
    }

    /// Frees buckets that no segment has any more. All other packed ones must be in the segment of
    /// their owner's index, since any of them may move.
    fn free_buckets(&mut self, buckets: Buckets) {
        let Some(packed) = &mut self.packed else { return };
        if let Some((index, moved)) = packed.give_back(buckets) {
            self.segments[index].set_array(moved);
        }
    }

    /// The index of the segment that owns `hash`, with room for one more entry.
    pub(super) fn make_room(&mut self, hash: u64) -> usize {
        let Some(index) = self.segment_index(hash) else {
            return self.add_first_segment();
        };
        let segment = &self.segments[index];
        let entries = segment.len() + 1;
        let crowded = segment.overflow_len() >= OVERFLOW_MAX;
        let splits = entries > split_limit(segment) || crowded && segment.buckets() == BUCKETS_MAX;
        if splits && self.split(index) {
            return self.segment_index(hash).expect("a split leaves the directory filled");
        }
        let segment = &self.segments[index];
        if (crowded || entries > entries_limit(segment.buckets()))
            && segment.buckets() < BUCKETS_MAX
        {
            let wider = buckets_for(entries_limit(segment.buckets()) + 1);
            self.resize_segment(index, wider.max(buckets_for(entries)));
        }
        index
    }

    #[cold]
    fn add_first_segment(&mut self) -> usize {
        let segment = Segment::new(0, 0, 0, Buckets::alone(1));
        self.segment_bytes = segment.allocated_bytes();
        self.segments.push(segment);
        self.directory.reserve_exact(1);
        self.directory.push(0);
        self.deepest = 1;
        self.depth = 0;
        0
    }

    fn resize_segment(&mut self, index: usize, buckets: usize) {
        let buckets = self.new_buckets(buckets, index);
        let segment = &mut self.segments[index];
        self.segment_bytes -= segment.allocated_bytes();
        let old = segment.resize(buckets);
        self.segment_bytes += segment.allocated_bytes();
        self.free_buckets(old);
    }

    /// Splits the segment in two; false if the directory may not grow for it.
    #[cold]
    fn split(&mut self, index: usize) -> bool {
        let depth = self.segments[index].depth;
        if depth == self.depth && !self.double_directory() {
            return false;
        }
        if depth - self.segments[index].base == DEPTH_ABOVE_BASE_MAX {
            let hasher = self.hasher;
            self.segments[index].iter().for_each(|stored| E::prefetch(stored.raw()));
            self.segments[index].rebase(|raw| {
                // SAFETY: `raw` lies in a slot of this table, which is borrowed exclusively.
                E::hash(unsafe { E::borrow(raw) }, &hasher)
            });
        }
        let counts = self.segments[index].halves();
        let other = self.segments.len();
        self.pack_if_large(other + 1);
        let for_low = self.new_buckets(buckets_for(counts[0]), index);
        let for_high = self.new_buckets(buckets_for(counts[1]), other);
        let [low, high] = self.segments[index].split([for_low, for_high]);
        self.segment_bytes -= self.segments[index].allocated_bytes();
        self.segment_bytes += low.allocated_bytes() + high.allocated_bytes();
        if low.depth == self.depth {
            self.deepest += 2;
        }
        let old = std::mem::replace(&mut self.segments[index], low);
        self.segments.push(high);
        self.point_directory_at(other);
        self.free_buckets(old.into_array());
        true
    }

    fn double_directory(&mut self) -> bool {
        let entries = self.directory.len() * 2;
        if self.depth == DEPTH_MAX || entries > self.len.max(DIRECTORY_ALWAYS_ALLOWED) {
            return false;
        }
        self.directory = self.directory.iter().flat_map(|&index| [index, index]).collect();
        self.depth += 1;
        self.deepest = 0;
        true
    }

    /// Names the segment in every directory entry of its range.
    fn point_directory_at(&mut self, index: usize) {
        let segment = &self.segments[index];
        let below = self.depth - segment.depth;
        let from = (segment.prefix as usize) << below;
        self.directory[from..from + (1 << below)].fill(index as u32);
    }

    /// After a removal from the segment: shrinks it, or merges it with its other half.
    pub(super) fn give_room_back(&mut self, index: usize) {
        if self.len == 0 {
            self.free_segments();
            return;
        }
        let segment = &self.segments[index];
        let entries = segment.len();
        if entries < MERGE_BELOW && segment.depth > 0 && !self.walk.is_active() {
            self.merge(index);
            return;
        }
        if entries * 4 < entries_limit(segment.buckets()) && segment.buckets() > 1 {
            self.resize_segment(index, buckets_for(entries + entries / 2));
        }
    }

    #[cold]
    fn free_segments(&mut self) {
        self.segments = Segments::new();
        self.packed = None;
        self.directory = Vec::new();
        self.segment_bytes = 0;
        self.depth = 0;
        self.deepest = 0;
        // Every element was visited before it was removed.
        self.end_walk();
    }

    /// Merges the segment with its other half while both together are sparse.
    fn merge(&mut self, mut index: usize) {
        loop {
            let segment = &self.segments[index];
            if segment.depth == 0 {
                break;
            }
            let sibling = segment.prefix ^ 1;
            let at = (sibling as usize) << (self.depth - segment.depth);
            let other = self.directory[at] as usize;
            let fits = segment.len() + self.segments[other].len() < MERGE_BELOW;
            if self.segments[other].depth != segment.depth || !fits {
                break;
            }
            let (low, high) = if sibling & 1 == 1 { (index, other) } else { (other, index) };
            index = self.merge_pair(low, high);
        }
        let segment = &self.segments[index];
        if segment.len() * 4 < entries_limit(segment.buckets()) && segment.buckets() > 1 {
            self.resize_segment(index, buckets_for(segment.len() + segment.len() / 2));
        }
    }

    /// Replaces two halves by their union and returns its index.
    fn merge_pair(&mut self, low: usize, high: usize) -> usize {
        let buckets = buckets_for(self.segments[low].len() + self.segments[high].len());
        let buckets = self.new_buckets(buckets, low);
        let merged = Segment::merge(&self.segments[low], &self.segments[high], buckets);
        for half in [low, high] {
            self.segment_bytes -= self.segments[half].allocated_bytes();
            self.deepest -= u32::from(self.segments[half].depth == self.depth);
        }
        self.segment_bytes += merged.allocated_bytes();
        let old = std::mem::replace(&mut self.segments[low], merged);
        self.free_buckets(old.into_array());
        self.point_directory_at(low);
        let old = self.segments.swap_remove(high);
        if high < self.segments.len() {
            self.point_directory_at(high);
            if let Some(packed) = &mut self.packed {
                packed.set_owner(self.segments[high].array(), high);
            }
        }
        self.free_buckets(old.into_array());
        if self.deepest == 0 {
            self.halve_directory();
        }
        // The last segment moved into the hole; if that was the union, it is there now.
        if low == self.segments.len() { high } else { low }
    }

    fn halve_directory(&mut self) {
        while self.depth > 0 && self.deepest == 0 {
            self.directory = self.directory.iter().step_by(2).copied().collect();
            self.depth -= 1;
            let deepest = self.segments.iter().filter(|segment| segment.depth == self.depth);
            self.deepest = deepest.count() as u32;
        }
    }

    /// Empties a slot without touching what it refers to.
    pub(super) fn forget_at(&mut self, place: Position) {
        self.segments[place.segment as usize].remove(place.spot);
        self.len -= 1;
        self.give_room_back(place.segment as usize);
    }
}
