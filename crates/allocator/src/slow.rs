//! Slow memory as a heap: jemalloc in ranges of addresses whose memory lies on slow nodes.
//!
//! ```text
//! block ─▶ cache of this thread ─▶ arena ─▶ extents ─▶ range of addresses ─▶ node
//! ```
//! Each range has an arena of its own, which takes extents from the range and from nowhere else.
//! Ordinary memory must not be mixed in, and the other way round. Arenas alone do not keep them
//! apart: jemalloc keeps freed blocks by thread, whatever arena they are from, and hands them out
//! for the next allocation of that size. So each thread has a second cache per range, made when it
//! first allocates there, and every call names it, or none.
//!
//! An extent that jemalloc no longer needs stays its own: pages go back to the system, addresses
//! do not, of which the range has no others. Its records of extents lie in ordinary memory.
//!
//! A node that is nearly full is closed, for pages and not for blocks: what was freed and still
//! has memory is handed out again, and only what would need more of it is refused.

use crate::global::QUANTUM;
use crate::{create, write};
use std::alloc::Layout;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CString, c_uint, c_void};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use structures::heap::SlowMemory;
use tikv_jemalloc_sys::{
    MALLOCX_ALIGN, MALLOCX_ARENA, MALLOCX_TCACHE, MALLOCX_TCACHE_NONE, extent_hooks_t, mallocx,
    sdallocx,
};
use world::numa::{NodeId, NumaError, SlowRange};

/// Ranges that are used, the first ones: a thread has a cache for each.
const RANGES_MAX: usize = base::slow_memory::NODES_MAX;

/// The numbers of all arenas in slow memory.
static NUMBERS: Mutex<Vec<c_uint>> = Mutex::new(Vec::new());

/// The numbers of all arenas in slow memory, in the order in which they came.
pub(crate) fn arenas() -> Vec<usize> {
    let numbers = NUMBERS.lock().unwrap_or_else(PoisonError::into_inner);
    numbers.iter().map(|number| *number as usize).collect()
}

/// The heap in slow memory. The process's own, for as long as it lives.
pub struct SlowHeap {
    arenas: Vec<Arena>,
}

struct Arena {
    number: c_uint,
    /// The place of its cache among a thread's.
    place: usize,
    extents: &'static Extents,
}

/// A range, and how much of it was handed to jemalloc. The hooks come first, so that the address
/// which jemalloc passes to them is also that of the rest.
#[repr(C)]
struct Extents {
    hooks: extent_hooks_t,
    range: SlowRange,
    taken_bytes: AtomicUsize,
    /// Takes no more memory, because its node has next to none left.
    is_closed: AtomicBool,
}

impl SlowHeap {
    /// The heap in these ranges, of which the first are filled first. It stays, and they with it.
    ///
    /// # Errors
    /// jemalloc's error number, and what was asked of it.
    pub fn over(ranges: Vec<SlowRange>) -> Result<&'static Self, String> {
        let ranges = ranges.into_iter().take(RANGES_MAX).enumerate();
        let arenas: Result<_, String> =
            ranges.map(|(place, range)| Arena::over(place, range)).collect();
        Ok(Box::leak(Box::new(Self { arenas: arenas? })))
    }

    /// The nodes that the memory lies on, as long as they have some.
    pub fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.arenas.iter().map(|arena| arena.extents.range.node())
    }

    /// Closes a node, which then gives no more memory, or opens it again. All are open at first.
    pub fn set_closed(&self, node: NodeId, is_closed: bool) {
        for arena in self.arenas.iter().filter(|arena| arena.extents.range.node() == node) {
            arena.extents.is_closed.store(is_closed, Relaxed);
        }
    }

    /// Bytes that have memory, by the nodes on which they lie: for tests and for operators, as
    /// [`SlowRange::bytes_by_node`] is.
    ///
    /// # Errors
    /// [`NumaError`] if the process may not ask.
    pub fn bytes_by_node(&self) -> Result<BTreeMap<NodeId, usize>, NumaError> {
        let mut found = BTreeMap::new();
        for arena in &self.arenas {
            for (node, bytes) in arena.extents.range.bytes_by_node()? {
                *found.entry(node).or_default() += bytes;
            }
        }
        Ok(found)
    }

    fn arena_of(&self, address: usize) -> Option<&Arena> {
        self.arenas.iter().find(|arena| arena.extents.contains(address))
    }
}

// SAFETY: a block is jemalloc's, from an arena that has no other memory than that of its range,
// which is mapped as long as the process lives. Ordinary blocks are from arenas that never have
// memory of it: a range is this heap's alone, and so are the caches that its blocks pass through.
unsafe impl SlowMemory for SlowHeap {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.arenas.iter().find_map(|arena| arena.allocate(layout))
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        let arena = self.arena_of(block.as_ptr().addr()).expect("a block lies where it came from");
        let cache = cache_of(arena.place).map_or(MALLOCX_TCACHE_NONE, MALLOCX_TCACHE);
        // SAFETY: the caller's promise; the size and the alignment are those of its allocation.
        unsafe { sdallocx(block.as_ptr().cast(), layout.size(), cache | alignment(layout)) };
    }

    #[inline]
    fn contains(&self, address: usize) -> bool {
        self.arenas.iter().any(|arena| arena.extents.contains(address))
    }

    fn has_room(&self) -> bool {
        self.arenas.iter().any(|arena| !arena.extents.is_closed.load(Relaxed))
    }
}

/// The flag by which jemalloc is told of a block's alignment, if it has to be.
fn alignment(layout: Layout) -> i32 {
    if layout.align() > QUANTUM { MALLOCX_ALIGN(layout.align()) } else { 0 }
}

impl Arena {
    fn over(place: usize, range: SlowRange) -> Result<Self, String> {
        let number = create(c"arenas.create")?;
        NUMBERS.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        let hooks = extent_hooks_t {
            alloc: Some(allocate_extent),
            dalloc: None,
            destroy: None,
            commit: Some(commit_extent),
            decommit: Some(decommit_extent),
            purge_lazy: None,
            purge_forced: Some(purge_extent),
            split: Some(split_extent),
            merge: Some(merge_extents),
        };
        let extents: &'static Extents = Box::leak(Box::new(Extents {
            hooks,
            range,
            taken_bytes: AtomicUsize::new(0),
            is_closed: AtomicBool::new(false),
        }));
        // Not given when the arena is created, or its records would lie in the range, too. It has
        // no extents before it is first asked for a block.
        let name = CString::new(format!("arena.{number}.extent_hooks")).expect("it has no zero");
        write(&name, ptr::from_ref(extents))?;
        Ok(Self { number, place, extents })
    }

    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        let cache = make_cache(self.place).map_or(MALLOCX_TCACHE_NONE, MALLOCX_TCACHE);
        let flags = MALLOCX_ARENA(self.number as usize) | cache | alignment(layout);
        // SAFETY: the size is not zero, and the arena and the cache exist.
        NonNull::new(unsafe { mallocx(layout.size(), flags) }.cast())
    }
}

impl Extents {
    #[inline]
    fn contains(&self, address: usize) -> bool {
        self.range.contains(ptr::without_provenance(address))
    }

    /// Addresses that nobody has yet. None if there are no more.
    fn take(&self, bytes: usize, alignment: usize) -> Option<NonNull<u8>> {
        let start = self.range.start();
        let end_of = |taken: usize| {
            let begin = start.as_ptr().addr().checked_add(taken)?;
            let begin = begin.checked_next_multiple_of(alignment)? - start.as_ptr().addr();
            let end = begin.checked_add(bytes)?;
            (end <= self.range.bytes()).then_some(end)
        };
        let taken = self.taken_bytes.fetch_update(Relaxed, Relaxed, end_of).ok()?;
        let end = end_of(taken)?;
        // SAFETY: inside the range, whose end lies at or behind `end`.
        Some(unsafe { start.add(end - bytes) })
    }
}

/// jemalloc asks for new addresses.
unsafe extern "C" fn allocate_extent(
    hooks: *mut extent_hooks_t,
    at: *mut c_void,
    bytes: usize,
    alignment: usize,
    is_zero: *mut bool,
    _is_committed: *mut bool,
    _arena: c_uint,
) -> *mut c_void {
    // SAFETY: jemalloc passes the hooks that it was given, which stand first in `Extents`.
    let extents = unsafe { &*hooks.cast::<Extents>() };
    // Where the last extent ends might be free, but nothing is lost by another place.
    if !at.is_null() || extents.is_closed.load(Relaxed) {
        return ptr::null_mut();
    }
    let Some(extent) = extents.take(bytes, alignment) else { return ptr::null_mut() };
    // SAFETY: jemalloc passes the address of its own variable. The range is zeros where nobody
    // wrote, and accessible. What jemalloc wants committed is so; of what it does not, it is told
    // nothing else, and asks [`commit_extent`] before it uses it.
    unsafe { is_zero.write(true) };
    extent.as_ptr().cast()
}

/// jemalloc wants to use pages that have no memory. True if they may have none now.
unsafe extern "C" fn commit_extent(
    hooks: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: usize,
    _: usize,
    _arena: c_uint,
) -> bool {
    // SAFETY: as above.
    unsafe { &*hooks.cast::<Extents>() }.is_closed.load(Relaxed)
}

/// jemalloc gives pages back, and will ask before it uses them again. False if they are zeros from
/// now on.
unsafe extern "C" fn decommit_extent(
    hooks: *mut extent_hooks_t,
    extent: *mut c_void,
    extent_bytes: usize,
    offset: usize,
    bytes: usize,
    arena: c_uint,
) -> bool {
    // SAFETY: it is called with the same words.
    unsafe { purge_extent(hooks, extent, extent_bytes, offset, bytes, arena) }
}

/// jemalloc gives pages back. False if they are zeros from now on.
unsafe extern "C" fn purge_extent(
    hooks: *mut extent_hooks_t,
    extent: *mut c_void,
    _extent_bytes: usize,
    offset: usize,
    bytes: usize,
    _arena: c_uint,
) -> bool {
    // SAFETY: as above; the pages are those of an extent from this range which holds no block.
    unsafe {
        let extents = &*hooks.cast::<Extents>();
        let Some(start) = NonNull::new(extent.cast::<u8>().wrapping_add(offset)) else {
            return true;
        };
        !extents.range.give_back(start, bytes)
    }
}

/// jemalloc wants to use an extent in two parts. False, as always: any part of the range is like
/// another.
unsafe extern "C" fn split_extent(
    _: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: usize,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// jemalloc wants to use two extents, one behind the other, as one.
unsafe extern "C" fn merge_extents(
    _: *mut extent_hooks_t,
    _: *mut c_void,
    _: usize,
    _: *mut c_void,
    _: usize,
    _: bool,
    _: c_uint,
) -> bool {
    false
}

/// A thread's caches of blocks, by the place of their arena.
struct Caches([Cell<Option<c_uint>>; RANGES_MAX]);

thread_local! {
    static CACHES: Caches = const { Caches([const { Cell::new(None) }; RANGES_MAX]) };
}

impl Drop for Caches {
    fn drop(&mut self) {
        for cache in &self.0 {
            if let Some(number) = cache.take() {
                // Nothing is lost but its memory if that fails.
                let _ = write(c"tcache.destroy", number);
            }
        }
    }
}

/// This thread's cache, if it has one. None for a thread that is about to end.
fn cache_of(place: usize) -> Option<usize> {
    let number = CACHES.try_with(|caches| caches.0[place].get()).ok()??;
    Some(number as usize)
}

/// This thread's cache, which is made if there is none. None where that fails: blocks then come
/// from the arena itself.
fn make_cache(place: usize) -> Option<usize> {
    if let Some(number) = cache_of(place) {
        return Some(number);
    }
    let make = |caches: &Caches| {
        let number = create(c"tcache.create").ok()?;
        caches.0[place].set(Some(number));
        Some(number as usize)
    };
    CACHES.try_with(make).ok()?
}

/// Gives the blocks that this thread's caches keep back to their arenas.
pub(crate) fn empty_caches() {
    // A thread that is about to end has none any more.
    let _ = CACHES.try_with(|caches| {
        for number in caches.0.iter().filter_map(Cell::get) {
            // It is emptied later if that fails.
            let _ = write(c"tcache.flush", number);
        }
    });
}
