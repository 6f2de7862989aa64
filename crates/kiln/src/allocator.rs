//! The program's allocator, and what it tells for INFO and MEMORY: jemalloc (feature `jemalloc`),
//! or the system's, which tells nothing.

#[cfg(feature = "jemalloc")]
use base::heap::Heap;
use base::machine::KeyHolder;
use base::slow_memory::SlowMemoryKeeper;
use std::sync::Arc;
use world::machine::RealMachine;
use world::net::Listeners;
#[cfg(feature = "jemalloc")]
use world::stocktaking::BackgroundSurvey;
use world::tls::Tls;

#[cfg(feature = "jemalloc")]
#[global_allocator]
static ALLOCATOR: allocator::Jemalloc = allocator::Jemalloc;

/// Has freed pages given back while the server does something else, or nothing.
#[cfg(feature = "jemalloc")]
pub fn start() {
    if let Err(error) = allocator::give_back_in_background() {
        tracing::warn!("freed memory goes back to the system only while commands run: {error}");
    }
}

#[cfg(feature = "jemalloc")]
pub use crate::slow_memory::set_up as slow_memory;

/// The machine as this binary knows it.
#[cfg(feature = "jemalloc")]
pub fn machine(
    tls: Arc<Tls>,
    keys: Arc<dyn KeyHolder>,
    listeners: Arc<Listeners>,
    slow_memory: Option<Arc<dyn SlowMemoryKeeper>>,
) -> RealMachine {
    RealMachine {
        tls,
        keys,
        listeners,
        slow_memory,
        allocator_name: allocator::NAME,
        allocator_usage: allocator::usage,
        allocator_purge: purge,
        allocator_report: report,
        heap: allocator::JemallocHeap::new().map(|heap| surveyed_in_background(Arc::new(heap))),
    }
}

/// Without a thread to be had, whoever asks takes stock.
#[cfg(feature = "jemalloc")]
fn surveyed_in_background(heap: Arc<dyn Heap>) -> Arc<dyn Heap> {
    match BackgroundSurvey::new(Arc::clone(&heap)) {
        Ok(beside) => Arc::new(beside),
        Err(error) => {
            tracing::warn!("no thread takes stock of memory, the one that serves does: {error}");
            heap
        }
    }
}

#[cfg(feature = "jemalloc")]
fn purge() {
    if let Err(error) = allocator::give_back_now() {
        tracing::warn!("MEMORY PURGE: {error}");
    }
}

#[cfg(feature = "jemalloc")]
fn report() -> String {
    let usage = allocator::usage();
    format!(
        "jemalloc: allocated {} active {} resident {}\n",
        usage.allocated, usage.active, usage.resident
    )
}

#[cfg(not(feature = "jemalloc"))]
pub fn start() {}

/// Slow memory needs an allocator that keeps it apart from ordinary memory.
#[cfg(not(feature = "jemalloc"))]
pub fn slow_memory(
    settings: &config::settings::slow_memory::SlowMemorySettings,
) -> Option<Arc<dyn SlowMemoryKeeper>> {
    if settings.policy != base::slow_memory::MemoryPolicy::OnlyDram {
        tracing::warn!("this build has no jemalloc: all values lie in ordinary memory");
    }
    None
}

#[cfg(not(feature = "jemalloc"))]
pub fn machine(
    tls: Arc<Tls>,
    keys: Arc<dyn KeyHolder>,
    listeners: Arc<Listeners>,
    slow_memory: Option<Arc<dyn SlowMemoryKeeper>>,
) -> RealMachine {
    RealMachine {
        tls,
        keys,
        listeners,
        slow_memory,
        allocator_name: "libc",
        allocator_usage: base::machine::AllocatorUsage::default,
        allocator_purge: || {},
        allocator_report: || {
            "this build uses the system's allocator, which tells nothing\n".to_owned()
        },
        heap: None,
    }
}
