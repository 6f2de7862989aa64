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
//! apart; its segment learns of it through its index in the list of segments. What else was
//! considered: docs/decisions/020-packed-buckets.md.
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

/// Not a number: the array has a block of its own.
const ALONE: u32 = u32::MAX;

/// Owns an array of buckets: with a block of its own, or packed. `resize` keeps the three rules
/// by which a packed one may be used:
///
/// * the [`Packed`] that it came from lives;
/// * it was not given back ([`Packed::give_back`]). One that is only dropped keeps its room as long
///   as the table lives;
/// * where giving another one back has moved it, its segment has the new one before anybody looks
///   into the old one.
pub(super) struct Buckets {
    start: NonNull<Bucket>,
    count: u32,
    /// Its number among all packed arrays of this size, or [`ALONE`].
    number: u32,
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
        Self { start, count: count as u32, number: ALONE }
    }

    /// How many they are, without a look at them.
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    fn is_packed(&self) -> bool {
        self.number != ALONE
    }

    /// Moves them to another block, if they have their own and `mover` takes it. Packed ones stay:
    /// there are no holes between them.
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
        // SAFETY: so many buckets begin there, all of which have a value, and they are shared: if
        // they are packed, by the rules above.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len()) }
    }
}

impl DerefMut for Buckets {
    #[inline]
    fn deref_mut(&mut self) -> &mut [Bucket] {
        // SAFETY: as above, and nobody else has them.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len()) }
    }
}

impl Drop for Buckets {
    #[inline]
    fn drop(&mut self) {
        if !self.is_packed() {
            // SAFETY: the parts are those of a block that this one owned, and it ends here.
            drop(unsafe { TableSlice::from_parts(self.start, self.len()) });
        }
    }
}

/// The packed arrays of one size.
#[derive(Default)]
struct Class {
    /// Full of arrays, but for the last.
    blocks: Vec<TableSlice<MaybeUninit<Bucket>>>,
    /// The index of the segment that each array belongs to, by number. A vector, and copied when
    /// it grows: the directory beside it has more entries, and is copied, too.
    owners: Vec<u32>,
}

impl Class {
    /// Where the array of that number begins, each having `count` buckets.
    fn start_of(&self, number: usize, count: usize) -> NonNull<Bucket> {
        let block = self.blocks[number / ARRAYS_PER_BLOCK].start().cast();
        // SAFETY: a block has room for so many arrays of this size.
        unsafe { block.add(number % ARRAYS_PER_BLOCK * count) }
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

/// The arrays of buckets of a large table. When it is dropped its blocks are freed with all that is
/// in them.
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

    /// Empty buckets for the segment of that index, of a count that [`Self::takes`].
    pub fn take(&mut self, count: usize, owner: usize) -> Buckets {
        debug_assert!(Self::takes(count));
        let class = &mut self.classes[count / PACKED_STEP];
        let lists_before = class.list_bytes();
        let number = class.owners.len();
        if number == class.blocks.len() * ARRAYS_PER_BLOCK {
            let block = TableSlice::filled(MaybeUninit::uninit(), count * ARRAYS_PER_BLOCK);
            self.bytes += block.bytes();
            class.blocks.push(block);
        }
        class.owners.push(owner as u32);
        self.bytes += class.list_bytes() - lists_before;
        self.used_bytes += count * size_of::<Bucket>();
        let start = class.start_of(number, count);
        // SAFETY: the block has so many buckets from there on, and they are nobody's: the number
        // was behind the last one.
        unsafe { (0..count).for_each(|index| start.add(index).write(Bucket::EMPTY)) };
        Buckets { start, count: count as u32, number: number as u32 }
    }

    /// Takes an array back. If another one moved to where it was: the index of that one's segment,
    /// and what it has to own instead of its array of before, into which nobody may look any more.
    #[must_use]
    pub fn give_back(&mut self, buckets: Buckets) -> Option<(usize, Buckets)> {
        if !buckets.is_packed() {
            return None;
        }
        let (count, number) = (buckets.len(), buckets.number as usize);
        let class = &mut self.classes[count / PACKED_STEP];
        let lists_before = class.list_bytes();
        let last = class.owners.len() - 1;
        let from = class.start_of(last, count);
        class.owners.swap_remove(number);
        let moved = (number < last).then(|| {
            // SAFETY: both are arrays of so many buckets, of different numbers; the last one has
            // values, and the other one was just given up by its owner.
            unsafe { buckets.start.copy_from_nonoverlapping(from, count) };
            (class.owners[number] as usize, buckets)
        });
        if cfg!(any(test, feature = "twins")) {
            // A sanitizer does not see who looks into an array that is no more; a twin does.
            // SAFETY: nobody owns the array of the last number now, and its block is still there.
            unsafe { from.cast::<u8>().write_bytes(0xff, count * size_of::<Bucket>()) };
        }
        self.used_bytes -= count * size_of::<Bucket>();
        if last.is_multiple_of(ARRAYS_PER_BLOCK) {
            let freed = class.blocks.pop();
            self.bytes -= freed.map_or(0, |block| block.bytes());
            class.shrink_lists();
        }
        self.bytes = self.bytes + class.list_bytes() - lists_before;
        moved
    }

    /// The segment that owns these buckets has another index.
    pub fn set_owner(&mut self, buckets: &Buckets, owner: usize) {
        if buckets.is_packed() {
            let class = &mut self.classes[buckets.len() / PACKED_STEP];
            class.owners[buckets.number as usize] = owner as u32;
        }
    }

    /// Panics unless the arrays are those of the segments, which come in the order of the list.
    #[cfg(any(test, feature = "twins"))]
    pub fn check<'b>(&self, segments: impl Iterator<Item = &'b Buckets>) {
        let mut found = 0;
        for (index, buckets) in segments.enumerate().filter(|(_, buckets)| buckets.is_packed()) {
            let class = &self.classes[buckets.len() / PACKED_STEP];
            assert_eq!(class.owners[buckets.number as usize], index as u32);
            assert_eq!(class.start_of(buckets.number as usize, buckets.len()), buckets.start);
            found += 1;
        }
        let arrays: usize = self.classes.iter().map(|class| class.owners.len()).sum();
        assert_eq!(arrays, found);
        let blocks = self.classes.iter().flat_map(|class| &class.blocks);
        let blocks: usize = blocks.map(TableSlice::bytes).sum();
        let lists: usize = self.classes.iter().map(Class::list_bytes).sum();
        assert_eq!(self.bytes, size_of::<Self>() + blocks + lists);
    }
}
