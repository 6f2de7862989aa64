//! For measurements alone: has the processor wait where memory of a slower kind would make it wait.
//!
//! Few machines have memory behind CXL. With the feature `slow-touch`, blocks that lie in slow
//! memory, whatever memory that really is, are reached so many nanoseconds late: who touches one
//! spins until then. Without the feature there is no code here.
//!
//! **What is simulated.** The first touch of a block by a look-up, of the line of 64 bytes that it
//! begins with: the entry or member whose key is compared, a bucket of a table, a list's node that
//! is read or changed. A line that was asked for beforehand ([`asked`], a prefetch) is on its
//! way from then on, and a touch waits for the rest; [`IN_FLIGHT_MAX`] lines are at a time. So
//! many lines as [`LINES`] that came last are there at once, as those in a cache are.
//!
//! **What is not.** Further lines of a block, which processors fetch by themselves when they see
//! the first; writes to new blocks, for which no processor waits; walks over all that there is, as
//! of snapshots; trees of sorted sets, streams, and long strings; how many bytes a second the
//! memory gives. The model's own work, some 20 ns for each line, is part of what is measured.

#[cfg(feature = "slow-touch")]
pub(crate) use simulated::{asked, touched};
#[cfg(feature = "slow-touch")]
pub use simulated::{simulate, ticks};

/// The processor was asked to load this address.
#[cfg(not(feature = "slow-touch"))]
#[inline(always)]
pub(crate) fn asked(_address: *const u8) {}

/// This address is read next.
#[cfg(not(feature = "slow-touch"))]
#[inline(always)]
pub(crate) fn touched(_address: *const u8) {}

#[cfg(feature = "slow-touch")]
mod simulated {
    use crate::heap::is_slow;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

    #[cfg(not(target_arch = "x86_64"))]
    compile_error!("the feature slow-touch counts ticks as x86-64 has them");

    /// Lines that the simulated cache holds: 64 KiB, little more than a first-level cache.
    const LINES: usize = 1024;
    const LINE_BYTES: usize = 64;

    /// Lines that one core waits for at a time: the fill buffers of most of Intel's.
    const IN_FLIGHT_MAX: usize = 12;

    /// The tick at which a line came that has been waited for.
    const HERE: u64 = 0;

    /// What slow memory takes, in ticks. 0: no longer than the memory that it is.
    static WAIT_TICKS: AtomicU64 = AtomicU64::new(0);

    /// Whether lines that were asked for come while other things are done.
    static OVERLAPS: AtomicBool = AtomicBool::new(true);

    /// The ticks of the processor's own clock, which runs evenly.
    pub fn ticks() -> u64 {
        // SAFETY: every x86-64 has the instruction, which only reads a counter.
        unsafe { std::arch::x86_64::_rdtsc() }
    }

    /// Has slow memory take so many ticks from now on. `overlaps`: what was asked for beforehand
    /// is on its way from then on; otherwise each touch takes all of them.
    pub fn simulate(wait_ticks: u64, overlaps: bool) {
        OVERLAPS.store(overlaps, Relaxed);
        WAIT_TICKS.store(wait_ticks, Relaxed);
    }

    /// The lines of slow memory that this thread's core has, or will have.
    struct Cache {
        /// Each line's number, and the tick at which it is there.
        lines: [Cell<(usize, u64)>; LINES],
        /// The ticks at which the last lines came, and which of them is the oldest.
        came: [Cell<u64>; IN_FLIGHT_MAX],
        oldest: Cell<usize>,
    }

    impl Cache {
        const fn new() -> Self {
            Self {
                lines: [const { Cell::new((0, 0)) }; LINES],
                came: [const { Cell::new(0) }; IN_FLIGHT_MAX],
                oldest: Cell::new(0),
            }
        }

        /// The tick at which the line of an address is there, if it is asked for now.
        fn comes_at(&self, address: usize) -> u64 {
            let line = address / LINE_BYTES;
            let place = &self.lines[line % LINES];
            let (there, came) = place.get();
            if there == line {
                return came;
            }
            let oldest = &self.came[self.oldest.get()];
            let comes = ticks().max(oldest.get()) + WAIT_TICKS.load(Relaxed);
            oldest.set(comes);
            self.oldest.set((self.oldest.get() + 1) % IN_FLIGHT_MAX);
            place.set((line, comes));
            comes
        }

        /// Waits until the line of an address is there.
        fn wait_for(&self, address: usize) {
            let comes = self.comes_at(address);
            // Most lines are touched more than once, and clocks are slow to read.
            if comes != HERE {
                while ticks() < comes {
                    std::hint::spin_loop();
                }
                let line = address / LINE_BYTES;
                self.lines[line % LINES].set((line, HERE));
            }
        }
    }

    thread_local! {
        static CACHE: Cache = const { Cache::new() };
    }

    /// The processor was asked to load this address.
    pub(crate) fn asked(address: *const u8) {
        if OVERLAPS.load(Relaxed) && is_slow(address.addr()) {
            CACHE.with(|cache| cache.comes_at(address.addr()));
        }
    }

    /// This address is read next.
    pub(crate) fn touched(address: *const u8) {
        if is_slow(address.addr()) {
            CACHE.with(|cache| cache.wait_for(address.addr()));
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_line_comes_late_once_and_a_few_come_at_a_time() {
            const WAIT: u64 = 1 << 40;
            simulate(WAIT, true);
            let (cache, began) = (Cache::new(), ticks());
            let first = cache.comes_at(6400);
            assert!(first >= began + WAIT && first < began + 2 * WAIT);
            assert_eq!(cache.comes_at(6400 + LINE_BYTES - 1), first, "it is on its way");
            let others: Vec<_> =
                (1..IN_FLIGHT_MAX + 2).map(|n| cache.comes_at(64_000 * n)).collect();
            let beside = others.iter().filter(|comes| **comes < began + 2 * WAIT).count();
            assert_eq!(beside, IN_FLIGHT_MAX - 1);
            assert_eq!(others[IN_FLIGHT_MAX - 1], first + WAIT, "it waits for the first");
            let elsewhere = 6400 + LINES * LINE_BYTES;
            assert_ne!(cache.comes_at(elsewhere), first);
            assert!(cache.comes_at(6400) > first, "another took its place");
            simulate(1 << 16, true);
            let (cache, began) = (Cache::new(), ticks());
            cache.wait_for(6400);
            assert!(ticks() >= began + (1 << 16));
            assert_eq!((cache.comes_at(6400), cache.comes_at(6463)), (HERE, HERE));
            simulate(0, true);
        }
    }
}
