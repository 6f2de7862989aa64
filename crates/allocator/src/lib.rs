//! jemalloc: the allocator itself, what it tells about its memory, and when it gives memory back.
//!
//! Small values by the million are what a server holds: jemalloc has size classes with little
//! waste. It is a crate of its own because its C takes minutes to build, which nothing but the
//! program should wait for, and because much of what it offers needs `unsafe`: the safe interface
//! leaves it out. Absent on purpose: any use of it by name. What allocates asks Rust's global
//! allocator, and for blocks of values `structures::heap`, which asks [`slow`] if there is slow
//! memory.
//!
//! Pages that were freed stay with the allocator for a while, because taking them back from the
//! system costs a fault each. That while ends by itself only where allocations go on; a server
//! that has just loaded and then idles would keep what loading freed.

mod global;
mod heap;
pub mod slow;

use base::machine::AllocatorUsage;
use std::ffi::{CStr, CString, c_uint};
use std::ptr;
use tikv_jemalloc_ctl::{arenas, epoch, stats};

pub use global::Jemalloc;
pub use heap::JemallocHeap;
pub use slow::SlowHeap;

/// How long freed pages are kept, in milliseconds. A table that grows frees and takes segments all
/// the time: those of the last second are worth keeping, those of the last ten (jemalloc's own
/// choice) were a fifth of what a set of integers occupied after loading.
const KEPT_MILLIS: isize = 1000;

/// What INFO calls it, as Redis would.
pub const NAME: &str = "jemalloc-5.3.1";

/// What the allocator holds now. All 0 where it does not tell.
pub fn usage() -> AllocatorUsage {
    // The figures are cached until the epoch is advanced.
    if epoch::advance().is_err() {
        return AllocatorUsage::default();
    }
    let bytes = |result: Result<usize, _>| result.map_or(0, |bytes| bytes as u64);
    AllocatorUsage {
        allocated: bytes(stats::allocated::read()),
        active: bytes(stats::active::read()),
        resident: bytes(stats::resident::read()),
    }
}

/// Lets a thread of the allocator's own give freed pages back.
///
/// # Errors
/// jemalloc's error number, and what was asked of it.
pub fn give_back_in_background() -> Result<(), String> {
    keep_freed(KEPT_MILLIS)?;
    write(c"background_thread", true)
}

/// Has freed pages go back when nobody wanted them for so long.
///
/// # Errors
/// jemalloc's error number, and what was asked of it.
fn keep_freed(millis: isize) -> Result<(), String> {
    // Of arenas to come, and of those that threads have already.
    write(c"arenas.dirty_decay_ms", millis)?;
    let arenas = arenas::narenas::read().map_err(|error| error.to_string())?;
    for index in 0..arenas {
        let name = CString::new(format!("arena.{index}.dirty_decay_ms")).unwrap_or_default();
        // One that no thread has yet is refused, and takes the value above when one comes.
        let _ = write(&name, millis);
    }
    Ok(())
}

/// Gives all freed pages back now (MEMORY PURGE).
///
/// # Errors
/// jemalloc's error number, and what was asked of it.
pub fn give_back_now() -> Result<(), String> {
    slow::empty_caches();
    // 4096 stands for all arenas (MALLCTL_ARENAS_ALL).
    let name = c"arena.4096.purge";
    // SAFETY: the name is a C string, and null pointers are what a command without values takes.
    let outcome = unsafe {
        let (none, no_length) = (ptr::null_mut(), ptr::null_mut());
        tikv_jemalloc_sys::mallctl(name.as_ptr(), none, no_length, ptr::null_mut(), 0)
    };
    check(outcome, name)
}

/// Sets one of jemalloc's options, or asks a command of it. `T` must be the option's C type:
/// `isize` for times, `bool`, `c_uint` for numbers of caches, a pointer for hooks.
fn write<T: Copy>(name: &CStr, mut value: T) -> Result<(), String> {
    // SAFETY: the name is a C string; the value is read through a pointer to its full length, which
    // lives until the call returns, and jemalloc compares the length with its option's.
    let outcome = unsafe {
        let new = ptr::from_mut(&mut value).cast();
        let (none, no_length) = (ptr::null_mut(), ptr::null_mut());
        tikv_jemalloc_sys::mallctl(name.as_ptr(), none, no_length, new, size_of::<T>())
    };
    check(outcome, name)
}

/// Makes an arena or a cache; its number.
fn create(name: &CStr) -> Result<c_uint, String> {
    let mut number: c_uint = 0;
    let mut bytes = size_of::<c_uint>();
    // SAFETY: the name is a C string; the answer has room for the number that both commands
    // return, and jemalloc compares its length.
    let outcome = unsafe {
        let answer = ptr::from_mut(&mut number).cast();
        tikv_jemalloc_sys::mallctl(name.as_ptr(), answer, &raw mut bytes, ptr::null_mut(), 0)
    };
    check(outcome, name)?;
    Ok(number)
}

fn check(outcome: i32, name: &CStr) -> Result<(), String> {
    match outcome {
        0 => Ok(()),
        error => Err(format!("jemalloc refuses {}: error {error}", name.to_string_lossy())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use structures::heap::ByteBox;

    #[test]
    fn the_allocator_takes_what_it_is_asked() {
        give_back_in_background().unwrap();
        give_back_now().unwrap();
    }

    #[test]
    fn an_option_that_does_not_exist_is_an_error() {
        let refused = write(c"no.such.option", 1_isize).unwrap_err();
        assert!(refused.contains("no.such.option"), "{refused}");
    }

    #[test]
    fn blocks_are_counted_with_the_sizes_that_the_allocator_gives_them() {
        for bytes in (1..10_000).chain((10_000..4 << 20).step_by(1009)) {
            // SAFETY: the size is not 0.
            let given = unsafe { tikv_jemalloc_sys::nallocx(bytes, 0) };
            let counted = ByteBox::zeroed(bytes).allocated_bytes();
            if bytes <= 256 << 10 {
                assert_eq!(counted, given, "{bytes}");
            } else {
                // It gives whole pages, which are closer together than the classes.
                assert!((given..given + given / 32).contains(&counted), "{bytes}");
            }
        }
    }
}
