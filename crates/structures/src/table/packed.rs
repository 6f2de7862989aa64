//! The buckets of a segment, and how those of a large table lie: packed, without holes.
//!
//! All segments of an evenly growing table widen at about the same time. Had each a block of its
//! own, what they leave would lie scattered between what the others still use, and the allocator
//! could give it to nobody: 4 bytes for each of ten million members of a set. So a large table
//! takes blocks of sixteen arrays, and where an array leaves, the last one of its size moves in:
//!
//! ```text
//!  ┌─ 0 ─┬─ 1 ─┬─ 2 ─┬─ … ─┬─ 7 ─┐  ┌─ 8 ─┬─ 9 ─┬─ free … ─┐    owners: the segment of each
//!  └─────┴──▲──┴─────┴─────┴─────┘  └─────┴──┬──┴──────────┘
//!           └── left ◀───────────────────────┘
//! ```
//! That costs a copy of up to a page whenever a segment changes its size, some fifty insertions
//! apart; its segment learns of it through its number in the list of segments.
//!
//! Absent on purpose: when a table packs, and the segments themselves, which `resize` knows.

use super::bucket::Bucket;
use super::segment::BUCKETS_MAX;
use crate::heap::TableSlice;
use crate::mover::Mover;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Arrays in a block. Those of 32 to 64 buckets, which most have, then make blocks of 16 to 32 KiB:
/// sizes for which the allocator takes whole pages, and shares none of them out.
const ARRAYS_PER_BLOCK: usize = 8;

/// Smaller arrays have blocks of their own: few segments of a large table have any.
const PACKED_BUCKETS_MIN: usize = 16;

/// Packed arrays have a multiple of so many buckets.
const PACKED_STEP: usize = 4;

/// Not a place: the array has a block of its own.
const ALONE: u32 = u32::MAX;

/// Owns an array of buckets. A packed one must go back to where it was packed
/// ([`Packed::give_back`]); one that is only dropped would keep its place as long as the table
/// lives.
pub(super) struct Buckets {
    start: NonNull<Bucket>,
    count: u32,
    /// Among all packed arrays of this size, or [`ALONE`].
    place: u32,
}

// SAFETY: it owns its buckets alone, like a `Box<[Bucket]>`, and blocks are freed on any thread.
unsafe impl Send for Buckets {}
// SAFETY: whoever shares it can only read buckets.
unsafe impl Sync for Buckets {}

impl Buckets {
    /// Empty buckets in a block of their own.
    pub fn alone(count: usize) -> Self {
        Self::in_block(TableSlice::filled(Bucket::EMPTY, count))
    }

    fn in_block(block: TableSlice<Bucket>) -> Self {
        let (start, count) = block.into_parts();
        Self { start, count: count as u32, place: ALONE }
    }

    fn is_packed(&self) -> bool {
        self.place != ALONE
    }

    /// Moves them to another block, if they have their own and `mover` takes it. A block of packed
    /// ones has no holes to be closed.
    pub fn move_by(&mut self, mover: &mut Mover<'_>) {
        if !self.is_packed() && mover.takes_ordinary(self.start.as_ptr().addr()) {
            *self = Self::in_block(TableSlice::copied(self));
        }
    }
}

impl Deref for Buckets {
    type Target = [Bucket];

    #[inline]
    fn deref(&self) -> &[Bucket] {
        // SAFETY: so many buckets begin there, all of which have a value, and they are shared.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.count as usize) }
    }
}

impl DerefMut for Buckets {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Bucket] {
        // SAFETY: as above, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.count as usize) }
    }
}

impl Drop for Buckets {
    #[inline]
    fn drop(&mut self) {
        if !self.is_packed() {
            // SAFETY: the parts are those of a block that this one owned, and it ends here.
            drop(unsafe { TableSlice::from_parts(self.start, self.count as usize) });
        }
    }
}

/// The packed arrays of one size.
#[derive(Default)]
struct Class {
    /// Full of arrays, but for the last.
    blocks: Vec<TableSlice<MaybeUninit<Bucket>>>,
    /// The number of the segment that each array belongs to, by place.
    owners: Vec<u32>,
}

impl Class {
    /// Where the array at a place begins, each having `count` buckets.
    fn start_of(&self, place: usize, count: usize) -> NonNull<Bucket> {
        let block = self.blocks[place / ARRAYS_PER_BLOCK].start().cast();
        // SAFETY: a block has room for so many arrays of this size.
        unsafe { block.add(place % ARRAYS_PER_BLOCK * count) }
    }

    fn list_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<TableSlice<Bucket>>()
            + self.owners.capacity() * size_of::<u32>()
    }

    /// Gives back what the lists do not need.
    fn shrink_lists(&mut self) {
        if self.owners.capacity() > 4 * self.owners.len() {
            self.owners.shrink_to(2 * self.owners.len());
            self.blocks.shrink_to(2 * self.blocks.len());
        }
    }
}

/// The arrays of buckets of a large table. It frees its blocks with what is in them: no array may
/// be used any more.
pub(super) struct Packed {
    /// By the number of buckets, in steps.
    classes: [Class; BUCKETS_MAX / PACKED_STEP + 1],
    /// Bytes of blocks and lists, and of them those that arrays occupy.
    bytes: usize,
    used_bytes: usize,
}

impl Packed {
    pub fn new() -> Box<Self> {
        let classes = std::array::from_fn(|_| Class::default());
        Box::new(Self { classes, bytes: size_of::<Self>(), used_bytes: 0 })
    }

    /// Whether arrays of so many buckets are packed.
    pub fn takes(count: usize) -> bool {
        count >= PACKED_BUCKETS_MIN && count.is_multiple_of(PACKED_STEP)
    }

    /// Bytes that it has beside those of the arrays.
    pub fn spare_bytes(&self) -> usize {
        self.bytes - self.used_bytes
    }

    /// Empty buckets for the segment of that number, of a count that [`Self::takes`].
    pub fn take(&mut self, count: usize, owner: usize) -> Buckets {
        debug_assert!(Self::takes(count));
        let class = &mut self.classes[count / PACKED_STEP];
        let lists_before = class.list_bytes();
        let place = class.owners.len();
        if place == class.blocks.len() * ARRAYS_PER_BLOCK {
            let block = TableSlice::filled(MaybeUninit::uninit(), count * ARRAYS_PER_BLOCK);
            self.bytes += size_of_val(&*block);
            class.blocks.push(block);
        }
        class.owners.push(owner as u32);
        self.bytes += class.list_bytes() - lists_before;
        self.used_bytes += count * size_of::<Bucket>();
        let start = class.start_of(place, count);
        // SAFETY: the block has so many buckets from there on, and they are nobody's: the place was
        // behind the last one.
        unsafe { (0..count).for_each(|index| start.add(index).write(Bucket::EMPTY)) };
        Buckets { start, count: count as u32, place: place as u32 }
    }

    /// Takes an array back. If another one moved to its place, the number of its segment, and what
    /// it has to own instead of its array of before.
    pub fn give_back(&mut self, buckets: Buckets) -> Option<(usize, Buckets)> {
        if !buckets.is_packed() {
            return None;
        }
        let (count, place) = (buckets.len(), buckets.place as usize);
        let class = &mut self.classes[count / PACKED_STEP];
        let lists_before = class.list_bytes();
        let last = class.owners.len() - 1;
        class.owners.swap_remove(place);
        let moved = (place < last).then(|| {
            let from = class.start_of(last, count);
            // SAFETY: both are arrays of so many buckets, at different places; the one at the last
            // place has values, the other one was just given up by its owner.
            unsafe { buckets.start.copy_from_nonoverlapping(from, count) };
            (class.owners[place] as usize, buckets)
        });
        self.used_bytes -= count * size_of::<Bucket>();
        if last.is_multiple_of(ARRAYS_PER_BLOCK) {
            let freed = class.blocks.pop();
            self.bytes -= freed.map_or(0, |block| size_of_val(&*block));
            class.shrink_lists();
        }
        self.bytes = self.bytes + class.list_bytes() - lists_before;
        moved
    }

    /// The segment that owns these buckets has another number.
    pub fn rename(&mut self, buckets: &Buckets, owner: usize) {
        if buckets.is_packed() {
            let class = &mut self.classes[buckets.len() / PACKED_STEP];
            class.owners[buckets.place as usize] = owner as u32;
        }
    }

    /// Panics unless the arrays are those of the segments, in the order of their numbers.
    #[cfg(any(test, feature = "twins"))]
    pub fn check<'b>(&self, segments: impl Iterator<Item = &'b Buckets>) {
        let mut found = 0;
        for (number, buckets) in segments.enumerate().filter(|(_, buckets)| buckets.is_packed()) {
            let class = &self.classes[buckets.len() / PACKED_STEP];
            assert_eq!(class.owners[buckets.place as usize], number as u32);
            assert_eq!(class.start_of(buckets.place as usize, buckets.len()), buckets.start);
            found += 1;
        }
        let places: usize = self.classes.iter().map(|class| class.owners.len()).sum();
        assert_eq!(places, found);
        let blocks = self.classes.iter().flat_map(|class| &class.blocks);
        let blocks: usize = blocks.map(|block| size_of_val(&**block)).sum();
        let lists: usize = self.classes.iter().map(Class::list_bytes).sum();
        assert_eq!(self.bytes, size_of::<Self>() + blocks + lists);
    }
}
