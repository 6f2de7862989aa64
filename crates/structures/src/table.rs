//! The keyspace table: a segmented extendible hash of references.
//!
//! Requirements that `hashbrown` and Redis's chained dict do not meet together: no pause that
//! grows with the table (a doubling rehash of 5 million keys stalls for half a second), about one
//! cache miss to find a slot, few bytes an item, a SCAN that keeps its guarantee across resizing,
//! and a snapshot walk in slices beside writes.
//!
//! ```text
//!  directory: u32 by the top `depth` bits        segments (64 B each)       buckets (64 B each)
//!  ┌───┬───┬───┬───┬───┬───┬───┬───┐             ┌──────────────────┐       ┌───────────────┐
//!  │ 0 │ 0 │ 1 │ 2 │ 3 │ 3 │ 3 │ 3 │  ────────▶  │ depth, prefix,   │ ────▶ │ 7 fp │ 7 slots│
//!  └───┴───┴───┴───┴───┴───┴───┴───┘             │ count, overflow  │       ├───────────────┤
//!   a segment of depth d is named by             └──────────────────┘       │   1 … 64      │
//!   2^(depth − d) neighbouring entries                                      └───────────────┘
//! ```
//! * A segment owns one contiguous range of hashes; buckets divide it in hash order. So the whole
//!   table is ordered by hash, to the precision of a bucket, and a position in that order (a scan's
//!   cursor, a walk's mark) survives every change of layout.
//! * Growing: one bucket, then steps of about a fifth up to 64, then the segment splits. At most
//!   [`segment::BUCKETS_MAX`] × 7 entries move at once, normally without being read. The size at
//!   which a segment splits differs from segment to segment, or all would split at the same time.
//! * Shrinking: sparse segments shrink, sparse halves merge, the directory halves: what scans and
//!   random picks cost follows the entries that are there, not those that were.
//! * Elements are 48-bit values ([`Element`]): tagged integers or addresses of one allocation.
//!
//! Everything that can go wrong with memory is in the implementations of [`Element`]; the table
//! itself only keeps the promise that each raw value it was given lives in exactly one slot.
//!
//! | module | holds |
//! |---|---|
//! | `bucket` | the cache line |
//! | `segment` | buckets and overflow of one range of hashes, and many entries laid out at once |
//! | `segments` | the list of all segments |
//! | `packed` | the buckets of each segment, packed in a large table |
//! | `resize` | growing, splitting, merging, the directory |
//! | `scan` | iteration, SCAN, random picks |
//! | `walk` | the snapshot walk |
//! | `moving` | blocks allocated anew |
//! | `occupied` | a found element that may be changed or removed |

mod bucket;
mod hasher;
mod moving;
mod occupied;
mod packed;
mod resize;
mod scan;
mod segment;
mod segments;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twins"))]
pub(crate) mod twin;
mod walk;

use std::marker::PhantomData;

use bucket::{RAW_MASK, Stored, fingerprint};
pub use hasher::KeyHasher;
pub use occupied::Occupied;
use packed::Packed;
use segment::{Segment, Spot};
use segments::Segments;
use walk::Walk;

use crate::mover::Mover;
use crate::prefetch::prefetch;

/// What a table holds: an owner that can be turned into 48 bits and back.
///
/// # Safety
/// `into_raw` must return at most 48 bits, and must hand its ownership over to them: `from_raw`
/// gives the same owner back, and `borrow` and `borrow_mut` give access to it for as long as the
/// value has not been given back. `borrow` must be sound for many borrowers at once.
pub unsafe trait Element: Sized {
    /// Shared access; a small handle, so that what it lends lives as long as the table's borrow.
    type Ref<'a>: Copy
    where
        Self: 'a;
    /// Exclusive access. It must not be able to change the key.
    type Mut<'a>
    where
        Self: 'a;

    fn into_raw(self) -> u64;
    /// # Safety
    /// `raw` came from [`Self::into_raw`] and its ownership is given back only once.
    unsafe fn from_raw(raw: u64) -> Self;
    /// # Safety
    /// `raw` came from [`Self::into_raw`], and during `'a` it is neither given back nor borrowed
    /// exclusively.
    unsafe fn borrow<'a>(raw: u64) -> Self::Ref<'a>
    where
        Self: 'a;
    /// # Safety
    /// `raw` came from [`Self::into_raw`], and during `'a` it is neither given back nor borrowed
    /// by anyone else.
    unsafe fn borrow_mut<'a>(raw: u64) -> Self::Mut<'a>
    where
        Self: 'a;
    fn has_key(element: Self::Ref<'_>, key: &[u8]) -> bool;
    fn has_same_key(a: Self::Ref<'_>, b: Self::Ref<'_>) -> bool;
    /// The hash of the key, always the same for one hasher.
    fn hash(element: Self::Ref<'_>, hasher: &KeyHasher) -> u64;
    /// Whether what `raw` refers to holds little in memory: [`Table::sweep`] passes it by without
    /// a look. What its owner says of itself in [`Self::into_raw`].
    #[inline]
    fn is_light(_raw: u64) -> bool {
        false
    }
    /// Asks the processor to load what `raw` refers to. Any value is allowed.
    #[inline]
    fn prefetch(_raw: u64) {}
    /// Moves the blocks of `raw` that `mover` takes, and returns what stands for the element now.
    /// Panics, if `mover` does, before anything has moved.
    ///
    /// # Safety
    /// `raw` came from [`Self::into_raw`], and nobody else borrows it. Its ownership goes over to
    /// what is returned.
    unsafe fn moved(raw: u64, mover: &mut Mover<'_>) -> u64;
}

/// A hash table of `E`, keyed by the bytes that each element carries.
///
/// The caller computes `hash` with the table's own [`KeyHasher`], once per request, and passes it
/// to every call: prefetching, the tracker and the walk need it too.
pub struct Table<E: Element> {
    hasher: KeyHasher,
    /// Indexes into `segments` by the top `depth` bits of the hash; empty in an empty table.
    directory: Vec<u32>,
    /// In no particular order, without holes.
    segments: Segments,
    /// Where the buckets of a large table lie.
    packed: Option<Box<Packed>>,
    len: usize,
    /// Bytes that the segments own, beside the lists here.
    segment_bytes: usize,
    /// Segments whose depth is the directory's.
    deepest: u32,
    depth: u8,
    walk: Walk,
    elements: PhantomData<E>,
}

/// The position of an element in the table. Stale once an element was added or removed.
#[derive(Clone, Copy)]
pub(crate) struct Position {
    segment: u32,
    spot: Spot,
}

impl<E: Element> Table<E> {
    /// An empty table; it allocates nothing before the first insertion.
    pub const fn new(hasher: KeyHasher) -> Self {
        Self {
            hasher,
            directory: Vec::new(),
            segments: Segments::new(),
            packed: None,
            len: 0,
            segment_bytes: 0,
            deepest: 0,
            depth: 0,
            walk: Walk::NONE,
            elements: PhantomData,
        }
    }

    pub fn hasher(&self) -> &KeyHasher {
        &self.hasher
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bytes of the table's structure, without what its elements own.
    pub fn allocated_bytes(&self) -> usize {
        self.segment_bytes
            + self.packed.as_ref().map_or(0, |packed| packed.spare_bytes())
            + self.segments.allocated_bytes()
            + self.directory.capacity() * size_of::<u32>()
    }

    #[inline]
    fn directory_index(&self, hash: u64) -> usize {
        // Two shifts, because a shift by 64 is not defined when the depth is 0.
        (hash >> 1 >> (63 - self.depth)) as usize
    }

    /// The index of the segment that owns `hash`; `None` in a table without segments.
    #[inline]
    fn segment_index(&self, hash: u64) -> Option<usize> {
        self.directory.get(self.directory_index(hash)).map(|&index| index as usize)
    }

    #[inline]
    fn place_by(&self, hash: u64, same: impl Fn(E::Ref<'_>) -> bool) -> Option<Position> {
        let index = self.segment_index(hash)?;
        let spot = self.segments[index].find(hash, |raw| {
            // SAFETY: `raw` lies in a slot, so it came from `into_raw` and was not given back;
            // exclusive borrows of elements borrow the whole table, so there is none now.
            same(unsafe { E::borrow(raw) })
        })?;
        Some(Position { segment: index as u32, spot })
    }

    /// Keys tell which element it is, where they are compared; elsewhere the whole hash has to.
    fn place_where(&self, hash: u64, wanted: impl Fn(E::Ref<'_>) -> bool) -> Option<Position> {
        self.place_by(hash, |element| wanted(element) && E::hash(element, &self.hasher) == hash)
    }

    #[inline]
    fn raw_at(&self, place: Position) -> u64 {
        self.segments[place.segment as usize].stored(place.spot).raw()
    }

    #[inline]
    fn element_at(&self, place: Position) -> E::Ref<'_> {
        // SAFETY: a place names an occupied slot (its makers look it up and change nothing in
        // between); the borrow of the table keeps the element shared for the result's lifetime.
        unsafe { E::borrow(self.raw_at(place)) }
    }

    /// The element with this key.
    #[inline]
    pub fn find(&self, hash: u64, key: &[u8]) -> Option<E::Ref<'_>> {
        let place = self.place_by(hash, |element| E::has_key(element, key))?;
        Some(self.element_at(place))
    }

    /// An element whose key has this hash, all of it, that satisfies `wanted`: for who has kept a
    /// hash and not the key.
    pub fn find_where(&self, hash: u64, wanted: impl Fn(E::Ref<'_>) -> bool) -> Option<E::Ref<'_>> {
        let place = self.place_where(hash, wanted)?;
        Some(self.element_at(place))
    }

    /// As [`Self::find_where`], but for the bits of the hash that slots do not have: of some
    /// billions of pairs of keys one shares all others. For who only guesses what will be asked
    /// for.
    pub fn find_likely(
        &self,
        hash: u64,
        wanted: impl Fn(E::Ref<'_>) -> bool,
    ) -> Option<E::Ref<'_>> {
        let place = self.place_by(hash, wanted)?;
        Some(self.element_at(place))
    }

    /// The element with this key, to be changed, replaced or removed.
    #[inline]
    pub fn find_mut(&mut self, hash: u64, key: &[u8]) -> Option<Occupied<'_, E>> {
        let place = self.place_by(hash, |element| E::has_key(element, key))?;
        Some(Occupied::new(self, place))
    }

    /// As [`Self::find_where`], to be changed, replaced or removed.
    pub fn find_mut_where(
        &mut self,
        hash: u64,
        wanted: impl Fn(E::Ref<'_>) -> bool,
    ) -> Option<Occupied<'_, E>> {
        let place = self.place_where(hash, wanted)?;
        Some(Occupied::new(self, place))
    }

    pub fn contains(&self, hash: u64, key: &[u8]) -> bool {
        self.place_by(hash, |element| E::has_key(element, key)).is_some()
    }

    /// Stores `element`, whose key has this `hash`, and returns the element it replaces.
    pub fn insert(&mut self, hash: u64, element: E) -> Option<E> {
        let raw = raw_of(element);
        // SAFETY: `raw` was just made and is not stored or given back before its last use here.
        let new = unsafe { E::borrow(raw) };
        let Some(place) = self.place_by(hash, |stored| E::has_same_key(stored, new)) else {
            self.add(hash, raw);
            return None;
        };
        Some(self.exchange(place, raw))
    }

    /// Stores `element`, whose key has this `hash` and is known to be absent: [`Self::insert`]
    /// without the search. A second element of one key would shadow the first.
    pub fn insert_new(&mut self, hash: u64, element: E) -> Occupied<'_, E> {
        let raw = raw_of(element);
        // SAFETY: `raw` was just made and is not stored or given back before its last use here.
        let new = unsafe { E::borrow(raw) };
        debug_assert!(self.place_by(hash, |stored| E::has_same_key(stored, new)).is_none());
        let place = self.add(hash, raw);
        Occupied::new(self, place)
    }

    /// Removes the element with this key and returns it.
    pub fn remove(&mut self, hash: u64, key: &[u8]) -> Option<E> {
        self.find_mut(hash, key).map(Occupied::remove)
    }

    /// Passes the element through `change`, which may return another allocation of the same key.
    /// Returns false if there is none. Should `change` panic, the element is gone.
    pub fn update(&mut self, hash: u64, key: &[u8], change: impl FnOnce(E) -> E) -> bool {
        self.find_mut(hash, key).map(|mut found| found.update(change)).is_some()
    }

    /// Drops every element and frees everything. A walk under way has nothing left to visit: who
    /// needs its rest must [`Self::take`] instead.
    pub fn clear(&mut self) {
        drop(self.take());
    }

    /// Moves everything out, a walk under way included, and leaves an empty table.
    pub fn take(&mut self) -> Self {
        std::mem::replace(self, Self::new(self.hasher))
    }

    /// First stage of a prefetch: asks for what is known of the segment that has `hash`. There are
    /// too many to lie all in the caches that are near.
    #[inline]
    pub fn prefetch_segment(&self, hash: u64) {
        if let Some(index) = self.segment_index(hash) {
            prefetch((&raw const self.segments[index]).cast());
        }
    }

    /// Second stage: asks for the bucket that a lookup of `hash` starts in.
    #[inline]
    pub fn prefetch_bucket(&self, hash: u64) {
        if let Some(index) = self.segment_index(hash) {
            prefetch(self.segments[index].home_bucket_address(hash));
        }
    }

    /// Third stage: asks for the element that a lookup of `hash` would compare first; there is
    /// seldom a second one. False if the lookup may go on elsewhere: what it looks at there was
    /// asked for, and [`Self::prefetch_displaced`] is a stage of its own.
    #[inline]
    pub fn prefetch_entry(&self, hash: u64) -> bool {
        let Some(index) = self.segment_index(hash) else { return true };
        let elsewhere = self.segments[index].find_home(hash, E::prefetch);
        if let Some(address) = elsewhere {
            prefetch(address);
        }
        elsewhere.is_none()
    }

    /// As [`Self::prefetch_entry`], wherever the element is.
    #[inline]
    pub fn prefetch_displaced(&self, hash: u64) {
        if let Some(index) = self.segment_index(hash) {
            self.segments[index].find(hash, |raw| {
                E::prefetch(raw);
                true
            });
        }
    }

    fn add(&mut self, hash: u64, raw: u64) -> Position {
        let index = self.make_room(hash);
        let segment = &mut self.segments[index];
        let bytes_before = segment.allocated_bytes();
        let spot = segment.add(Stored::new(raw, segment.tag_of_hash(hash), fingerprint(hash)));
        self.segment_bytes += segment.allocated_bytes() - bytes_before;
        self.len += 1;
        Position { segment: index as u32, spot }
    }

    /// Puts `raw` where another element was, and returns that one.
    fn exchange(&mut self, place: Position, raw: u64) -> E {
        let old = self.raw_at(place);
        self.segments[place.segment as usize].set_raw(place.spot, raw);
        // SAFETY: `old` has just left its slot, the only one that held it.
        unsafe { E::from_raw(old) }
    }

    fn remove_at(&mut self, place: Position) -> E {
        let raw = self.segments[place.segment as usize].remove(place.spot);
        self.len -= 1;
        self.give_room_back(place.segment as usize);
        // SAFETY: `raw` has just left its slot, the only one that held it.
        unsafe { E::from_raw(raw) }
    }
}

/// Turns `element` into the bits of a slot; checked, because a slot has no room for more.
#[inline]
fn raw_of<E: Element>(element: E) -> u64 {
    let raw = element.into_raw();
    assert!(raw <= RAW_MASK, "an element's reference exceeds 48 bits");
    raw
}

impl<E: Element> Drop for Table<E> {
    fn drop(&mut self) {
        let segments = std::mem::take(&mut self.segments);
        for stored in segments.iter().flat_map(Segment::iter) {
            // SAFETY: each slot owns its element; the segments are out of the table's reach, so
            // none is given back twice, not even if a destructor panics.
            drop(unsafe { E::from_raw(stored.raw()) });
        }
    }
}

impl<E: Element> std::fmt::Debug for Table<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table")
            .field("len", &self.len)
            .field("depth", &self.depth)
            .field("segments", &self.segments.len())
            .finish_non_exhaustive()
    }
}
