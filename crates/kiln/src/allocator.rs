//! What the allocator tells about itself, for INFO and MEMORY.

use base::machine::AllocatorUsage;
use tikv_jemalloc_ctl::{epoch, stats};
use world::machine::RealMachine;

/// Has freed pages given back while the server does something else, or nothing.
pub fn start() {
    if let Err(error) = world::allocator::give_back_in_background() {
        tracing::warn!("freed memory goes back to the system only while commands run: {error}");
    }
}

/// The machine as this binary knows it.
pub fn machine() -> RealMachine {
    RealMachine { allocator_usage: usage, allocator_purge: purge, allocator_report: report }
}

fn usage() -> AllocatorUsage {
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

fn purge() {
    if let Err(error) = world::allocator::give_back_now() {
        tracing::warn!("MEMORY PURGE: {error}");
    }
}

fn report() -> String {
    let usage = usage();
    format!(
        "jemalloc: allocated {} active {} resident {}\n",
        usage.allocated, usage.active, usage.resident
    )
}
