//! Which blocks lie in slabs that could go back to the machine, if they were allocated anew.
//!
//! jemalloc cuts the blocks of a size class from *slabs* of some pages, and fills the slab with the
//! lowest address first. A slab goes back when its last block is freed. So a block of a slab that
//! is emptier than the average of those with room is worth moving: it goes to a fuller one.
//!
//! Source: <https://jemalloc.net/jemalloc.3.html>, "stats.arenas.<i>.bins.<j>" and
//! "experimental.utilization.batch_query".

use crate::{KEPT_MILLIS, keep_freed, write};
use base::heap::{Heap, Holes, Misplaced};
use std::ffi::{CStr, CString};
use std::ops::RangeInclusive;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tikv_jemalloc_ctl::epoch;

/// Stands for the sum of all arenas (MALLCTL_ARENAS_ALL).
const ALL_ARENAS: usize = 4096;

/// Slabs up to an eighth fuller than the average are emptied too: where all are equally full, some
/// must go.
const ABOVE_AVERAGE: usize = 8;

/// A class that loses less than this is left alone, in bytes. There are some 220 classes up to
/// 16 KiB, which then keep 28 MB between them at most.
const LOST_BYTES_MIN: u64 = 128 << 10;

/// The numbers of an option's or a figure's name, by which jemalloc is asked without a search.
struct Key {
    parts: [usize; 8],
    length: usize,
}

impl Key {
    /// `None`: this jemalloc knows no such name.
    fn of(name: &CStr) -> Option<Self> {
        let (mut parts, mut length) = ([0; 8], 8);
        // SAFETY: the name is a C string, and the numbers have the room that `length` tells.
        let error = unsafe {
            tikv_jemalloc_sys::mallctlnametomib(name.as_ptr(), parts.as_mut_ptr(), &mut length)
        };
        (error == 0).then_some(Self { parts, length })
    }

    /// Reads a value. `T` must be its C type.
    fn read<T: Copy + Default>(&self) -> Option<T> {
        let mut value = T::default();
        let mut bytes = size_of::<T>();
        // SAFETY: the value is written to its full length, which jemalloc compares with its own.
        let error = unsafe {
            let (to, none) = (ptr::from_mut(&mut value).cast(), ptr::null_mut());
            let mib = self.parts.as_ptr();
            tikv_jemalloc_sys::mallctlbymib(mib, self.length, to, &mut bytes, none, 0)
        };
        (error == 0).then_some(value)
    }
}

/// Figures of a size class, of one arena or of all.
struct Counts {
    blocks: Key,
    slabs: Key,
    slabs_with_room: Key,
}

impl Counts {
    /// `arena` by number, or all of them.
    fn of(arena: usize, class: u32) -> Option<Self> {
        let key = |what| {
            let name = format!("stats.arenas.{arena}.bins.{class}.{what}");
            Key::of(&CString::new(name).ok()?)
        };
        Some(Self {
            blocks: key("curregs")?,
            slabs: key("curslabs")?,
            slabs_with_room: key("nonfull_slabs")?,
        })
    }

    fn read(&self) -> [usize; 3] {
        [&self.blocks, &self.slabs, &self.slabs_with_room].map(|key| key.read().unwrap_or(0))
    }
}

/// A size class of small blocks.
struct Class {
    block_bytes: usize,
    blocks_per_slab: usize,
    all: Counts,
    /// Slabs with fewer blocks are to be emptied: in thousandths of a slab. 0: none of the class.
    emptied_below: AtomicUsize,
}

/// jemalloc's classes, and what the last survey found of them.
pub struct JemallocHeap {
    /// By size.
    classes: Vec<Class>,
    /// Of each arena in slow memory, by size: its blocks do not move to fill other slabs, and take
    /// none of the ordinary memory that may be won back.
    slow: Mutex<Vec<Vec<Counts>>>,
    utilization: Key,
}

impl JemallocHeap {
    /// `None`: this jemalloc does not tell.
    pub fn new() -> Option<Self> {
        let count: u32 = Key::of(c"arenas.nbins")?.read()?;
        let classes = (0..count).map(Class::new).collect::<Option<Vec<_>>>()?;
        let utilization = Key::of(c"experimental.utilization.batch_query")?;
        Some(Self { classes, slow: Mutex::new(Vec::new()), utilization })
    }

    /// Free and all blocks of the slab that a block lies in, and the slab's bytes.
    fn slab_of(&self, address: usize) -> Option<[usize; 3]> {
        let mut found = [0_usize; 3];
        let mut bytes = size_of_val(&found);
        let mut asked = address;
        // SAFETY: jemalloc reads one address through `asked`, looks it up without touching what is
        // there, and writes three numbers, whose lengths it compares.
        let error = unsafe {
            let (to, from) = (found.as_mut_ptr().cast(), ptr::from_mut(&mut asked).cast());
            let Key { parts, length } = &self.utilization;
            let asked_bytes = size_of::<usize>();
            tikv_jemalloc_sys::mallctlbymib(
                parts.as_ptr(),
                *length,
                to,
                &mut bytes,
                from,
                asked_bytes,
            )
        };
        (error == 0).then_some(found)
    }
}

impl Class {
    fn new(index: u32) -> Option<Self> {
        let key = |name: String| Key::of(&CString::new(name).ok()?);
        let in_class = |what| key(format!("arenas.bin.{index}.{what}"));
        Some(Self {
            block_bytes: in_class("size")?.read()?,
            blocks_per_slab: in_class("nregs")?.read::<u32>()? as usize,
            all: Counts::of(ALL_ARENAS, index)?,
            emptied_below: AtomicUsize::new(0),
        })
    }

    /// Takes the class's figures as they are now, without those of the slow arenas.
    fn survey<'a>(&self, slow: impl Iterator<Item = &'a Counts>) -> Holes {
        let [blocks, slabs, with_room] = slow.map(Counts::read).fold(
            self.all.read(),
            |[blocks, slabs, with_room], [slow_blocks, slow_slabs, slow_with_room]| {
                let slabs = slabs.saturating_sub(slow_slabs);
                let with_room = with_room.saturating_sub(slow_with_room);
                [blocks.saturating_sub(slow_blocks), slabs, with_room]
            },
        );
        let room = (slabs * self.blocks_per_slab).saturating_sub(blocks);
        let holes = Holes {
            used_bytes: (blocks * self.block_bytes) as u64,
            lost_bytes: (room * self.block_bytes) as u64,
        };
        // Of the slabs with room: full ones have nothing to give or take.
        let with_room = with_room.min(slabs);
        let in_full = (slabs - with_room) * self.blocks_per_slab;
        let average = (blocks.saturating_sub(in_full) * 1000)
            .checked_div(with_room * self.blocks_per_slab)
            .unwrap_or(0);
        let below = average + average / ABOVE_AVERAGE;
        let is_worth_it = holes.lost_bytes >= LOST_BYTES_MIN;
        self.emptied_below.store(if is_worth_it { below } else { 0 }, Ordering::Relaxed);
        holes
    }
}

impl Heap for JemallocHeap {
    fn survey(&self) -> Holes {
        // The figures are cached until the epoch is advanced.
        if epoch::advance().is_err() {
            return Holes::default();
        }
        let mut slow = self.slow.lock().unwrap_or_else(PoisonError::into_inner);
        for arena in crate::slow::arenas().into_iter().skip(slow.len()) {
            let classes = (0..self.classes.len() as u32).map(|class| Counts::of(arena, class));
            slow.extend(classes.collect::<Option<Vec<_>>>());
        }
        let mut sum = Holes::default();
        for (index, class) in self.classes.iter().enumerate() {
            let of = class.survey(slow.iter().filter_map(|arena| arena.get(index)));
            sum.used_bytes += of.used_bytes;
            sum.lost_bytes += of.lost_bytes;
        }
        sum
    }

    fn has_holes(&self, bytes: RangeInclusive<usize>) -> bool {
        let of_size = self.classes.iter().filter(|class| bytes.contains(&class.block_bytes));
        of_size.into_iter().any(|class| class.emptied_below.load(Ordering::Relaxed) > 0)
    }

    fn is_sparse(&self, address: usize) -> bool {
        // Its holes are used by blocks to come, and no survey counts them.
        if structures::heap::is_slow(address) {
            return false;
        }
        let Some([free, all, slab_bytes]) = self.slab_of(address) else { return false };
        // Of a block that is no part of a slab, there is one.
        if free == 0 || all < 2 {
            return false;
        }
        let block_bytes = slab_bytes / all;
        let class = self.classes.partition_point(|class| class.block_bytes <= block_bytes);
        let Some(class) = class.checked_sub(1).map(|class| &self.classes[class]) else {
            return false;
        };
        (all - free) * 1000 < class.emptied_below.load(Ordering::Relaxed) * all
    }

    fn wants_moves(&self) -> bool {
        structures::heap::wants_moves()
    }

    fn misplaced(&self, address: usize, bytes: usize) -> Misplaced {
        use structures::heap::{is_divided, is_misplaced, is_slow};
        match (is_misplaced(address, bytes), is_divided(bytes)) {
            (false, _) => Misplaced::No,
            (true, false) => Misplaced::Yes,
            (true, true) if is_slow(address) => Misplaced::IfUsed,
            (true, true) => Misplaced::IfIdle,
        }
    }

    fn keep_freed(&self, millis: Option<u64>) {
        // Refused, they go back later, as they did before.
        let _ = keep_freed(millis.map_or(KEPT_MILLIS, |millis| millis as isize));
    }

    fn moving(&self, work: &mut dyn FnMut()) {
        // A thread's own cache would hand out what was freed last.
        let cached = c"thread.tcache.enabled";
        let is_refused = write(cached, false).is_err();
        work();
        if !is_refused {
            write(cached, true).expect("a thread may have a cache if it had one before");
        }
    }
}
