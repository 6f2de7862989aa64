//! Slow memory, if the machine has some and the operator wants values there.
//!
//! Set up before anything holds a value, since values are counted from then on. What cannot be is
//! said once in the log, and all values then lie in ordinary memory: the data is the same, and
//! whoever starts a server wants it served.

use allocator::SlowHeap;
use base::slow_memory::{MemoryDivision, MemoryPolicy, SlowMemoryKeeper};
use config::settings::slow_memory::SlowMemorySettings;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use structures::heap;
use structures::ratio::{Bounds, Memory, Policy, Share};
use world::numa::nodes::available_bytes;
use world::numa::{KernelMoves, Node, NodeId, Nodes, SlowRange};

/// Addresses for each byte of a node. Freed addresses are used again only for what fits, and those
/// without memory cost nothing. A guess.
const ADDRESSES_PER_BYTE: u64 = 2;

/// A node with less than this part of its memory left gives values no more of it, and so many bytes
/// at least. The kernel keeps some free, of a small node 20 MB and more, and below that takes pages
/// from other nodes; and some are allocated between two looks. A guess, tried on a node of 512 MiB.
const LEFT_PART: u64 = 64;
const LEFT_BYTES_MIN: u64 = 64 << 20;

/// Part of that, in percent, from which on a closed node gives memory again: each change is a line
/// in the log.
const REOPENED_PERCENT: u64 = 125;

/// Divides values between the memories, once there are two, and says where tables lie. `None`: all
/// lie in ordinary memory.
pub fn set_up(settings: &SlowMemorySettings) -> Option<Arc<dyn SlowMemoryKeeper>> {
    if settings.policy == MemoryPolicy::OnlyDram {
        return None;
    }
    let nodes = Nodes::of_machine();
    let ranges = reserve(&nodes, settings.nodes.as_deref());
    if ranges.is_empty() {
        // Of nodes that were named, each was told.
        if settings.nodes.is_none() {
            tracing::warn!("{}", nodes.why_none_is_slow());
        }
        tracing::warn!("there is no slow memory: all values lie in ordinary memory");
        return None;
    }
    let heap = match SlowHeap::over(ranges) {
        Ok(heap) => heap,
        Err(error) => {
            tracing::warn!("all values lie in ordinary memory: {error}");
            return None;
        }
    };
    heap::install(heap, policy_of(settings.policy));
    heap::set_tables(if settings.table_on_dram { Memory::Fast } else { Memory::Slow });
    #[cfg(feature = "slow-touch")]
    answer_late();
    for warning in KernelMoves::of_machine().warnings() {
        tracing::warn!("{warning}");
    }
    let nodes: Vec<_> = heap.nodes().filter_map(|id| nodes.find(id)).map(Slow::of).collect();
    for Slow { id, memory_bytes, .. } in &nodes {
        tracing::info!(node = id.0, memory_bytes, "values may lie in slow memory");
    }
    Some(Arc::new(Keeper { heap, nodes }))
}

/// Has slow memory answer late, for measurements: by 200 ns, what CXL takes more than ordinary
/// memory. The environment says whether lines overlap.
#[cfg(feature = "slow-touch")]
fn answer_late() {
    use base::Clock;
    use structures::slow_touch::{simulate, ticks};
    use world::clock::RealClock;

    const LATE_NANOS: u64 = 200;
    /// How long the ticks of a second are counted.
    const COUNTED_NANOS: u64 = 50_000_000;

    let (began, first) = (RealClock.monotonic(), ticks());
    let nanos = loop {
        let nanos = RealClock.monotonic().since(began);
        if nanos >= COUNTED_NANOS {
            break nanos;
        }
    };
    let late_ticks = (ticks() - first) * LATE_NANOS / nanos;
    let overlaps = std::env::var_os("KILN_SLOW_TOUCH").is_none_or(|how| how != "alone");
    tracing::warn!(late_ticks, overlaps, "slow memory answers late: a build for measurements");
    simulate(late_ticks, overlaps);
}

/// Ranges of addresses on each slow node.
fn reserve(nodes: &Nodes, named: Option<&[u32]>) -> Vec<SlowRange> {
    let ids: Vec<NodeId> = match named {
        Some(named) => named.iter().map(|id| NodeId(*id)).collect(),
        None => nodes.slow().into_iter().map(|node| node.id).collect(),
    };
    let range = |id: NodeId| {
        let memory_bytes = nodes.check(id)?.memory_bytes;
        let bytes = memory_bytes.saturating_mul(ADDRESSES_PER_BYTE) as usize;
        SlowRange::reserve(nodes, id, bytes)
    };
    let mut ranges = Vec::new();
    for id in ids {
        match range(id) {
            Ok(range) => ranges.push(range),
            Err(error) => tracing::warn!("no slow memory on node {id}: {error}"),
        }
    }
    ranges
}

fn policy_of(policy: MemoryPolicy) -> Policy {
    match policy {
        MemoryPolicy::OnlyDram => Policy::OnlyFast,
        MemoryPolicy::OnlyPmem => Policy::OnlySlow,
        MemoryPolicy::Threshold { bytes } => Policy::Threshold { bytes },
        MemoryPolicy::Ratio { dram, pmem, first_bytes, min_bytes, max_bytes } => {
            let share = Share::of_ratio(dram, pmem).expect("the directive takes no zeros");
            Policy::Ratio { share, bounds: Bounds { min_bytes, max_bytes }, first_bytes }
        }
    }
}

/// A slow node, and how much of it must be left.
#[derive(Debug)]
struct Slow {
    id: NodeId,
    memory_bytes: u64,
    left_bytes: u64,
    is_closed: AtomicBool,
}

impl Slow {
    fn of(node: &Node) -> Self {
        let left_bytes = (node.memory_bytes / LEFT_PART).max(LEFT_BYTES_MIN);
        let is_closed = AtomicBool::new(false);
        Self { id: node.id, memory_bytes: node.memory_bytes, left_bytes, is_closed }
    }

    /// Closes it or opens it again, by what is left of it. One that says nothing any more is gone:
    /// the kernel would give pages of ordinary memory in its place.
    fn tend(&self, heap: &SlowHeap) {
        let told = available_bytes(self.id);
        let available_bytes = told.unwrap_or(0);
        let was_closed = self.is_closed.load(Relaxed);
        let reopened_from = self.left_bytes / 100 * REOPENED_PERCENT;
        let is_closed = available_bytes < if was_closed { reopened_from } else { self.left_bytes };
        if is_closed == was_closed {
            return;
        }
        self.is_closed.store(is_closed, Relaxed);
        heap.set_closed(self.id, is_closed);
        let node = self.id.0;
        match is_closed {
            true if told.is_none() => tracing::warn!(node, "slow memory is gone: no more is used"),
            true => tracing::warn!(node, available_bytes, "slow memory is full: no more is used"),
            false => tracing::info!(node, available_bytes, "slow memory has room again"),
        }
    }
}

struct Keeper {
    heap: &'static SlowHeap,
    nodes: Vec<Slow>,
}

impl SlowMemoryKeeper for Keeper {
    fn division(&self) -> MemoryDivision {
        heap::usage().map_or_else(MemoryDivision::default, |usage| MemoryDivision {
            pmem_bytes: usage.slow_bytes,
            threshold_bytes: usage.threshold_bytes,
            is_pmem_full: usage.is_slow_full,
        })
    }

    fn tend(&self, used_bytes: u64) {
        self.nodes.iter().for_each(|node| node.tend(self.heap));
        let counted = heap::usage().map_or(0, |usage| usage.fast_bytes + usage.slow_bytes);
        heap::adjust(used_bytes.saturating_sub(counted));
    }

    fn divide_by(&self, policy: MemoryPolicy) {
        heap::set_policy(policy_of(policy));
    }
}

impl fmt::Debug for Keeper {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Keeper").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}
