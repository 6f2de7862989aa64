//! Memory on a slow node, on a machine that has one: two nodes, the second without processors.
//! `tests/numa/run` emulates such a machine and runs these there; elsewhere they are ignored.

use std::collections::BTreeMap;
use std::ptr::NonNull;
use world::numa::{Node, NodeId, Nodes, NumaError, SlowRange};

const FAST: NodeId = NodeId(0);
const SLOW: NodeId = NodeId(1);

/// What the emulated machine has on each node is in `tests/numa/machine.py`; the kernel takes a
/// part of it for itself.
const FAST_BYTES: u64 = 1 << 30;
const SLOW_BYTES: u64 = 512 << 20;

fn node(nodes: &Nodes, id: NodeId) -> &Node {
    nodes.check(id).expect("the emulated machine has it")
}

/// Writes to every byte of the range.
fn fill(range: &SlowRange) {
    // SAFETY: the range is mapped, writable, and only this test has it.
    unsafe { range.start().as_ptr().write_bytes(0xa5, range.bytes()) };
}

#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn the_node_without_processors_is_found_and_slow() {
    let nodes = Nodes::of_machine();
    assert_eq!(nodes.iter().count(), 2, "{nodes:?}");
    let (fast, slow) = (node(&nodes, FAST), node(&nodes, SLOW));
    assert_eq!(nodes.slow(), [slow]);
    assert_eq!((fast.has_processors, slow.has_processors), (true, false));
    assert_eq!((fast.distance, slow.distance), (Some(10), Some(20)));
    assert_eq!((fast.access.read_latency_ns, slow.access.read_latency_ns), (Some(10), Some(300)));
    assert!(fast.access.read_bandwidth_mib > slow.access.read_bandwidth_mib, "{nodes:?}");
    for (node, bytes) in [(fast, FAST_BYTES), (slow, SLOW_BYTES)] {
        assert!((bytes / 2..=bytes).contains(&node.memory_bytes), "{node:?}");
        assert!((1..=node.memory_bytes).contains(&node.free_bytes), "{node:?}");
    }
}

#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn every_page_of_a_range_lies_on_its_node_and_memory_beside_it_does_not() {
    let nodes = Nodes::of_machine();
    let range = SlowRange::reserve(&nodes, SLOW, 64 << 20).expect("there is room");
    assert_eq!(range.bytes_by_node(), Ok(BTreeMap::new()), "it takes memory unused");
    fill(&range);
    assert_eq!(range.bytes_by_node(), Ok(BTreeMap::from([(SLOW, 64 << 20)])));
    let beside = SlowRange::reserve(&nodes, FAST, 64 << 20).expect("there is room");
    fill(&beside);
    assert_eq!(beside.bytes_by_node(), Ok(BTreeMap::from([(FAST, 64 << 20)])));
}

/// Memory that nobody bound: what the table of keys gets.
#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn memory_from_the_allocator_lies_beside_the_processors() {
    let nodes = Nodes::of_machine();
    let range = SlowRange::reserve(&nodes, SLOW, 64 << 20).expect("there is room");
    fill(&range);
    let mut blocks: Vec<Vec<u8>> = (0..64).map(|_| vec![0xa5; 1 << 20]).collect();
    let address = NonNull::from(&mut blocks[0][0]).as_ptr();
    assert!(!range.contains(address));
    let found = pages_beside(&range);
    assert!(found[&FAST] >= (64 << 20) / rustix::param::page_size(), "{found:?}");
    assert_eq!(found.get(&SLOW), None, "{found:?}");
}

/// This process's own memory outside of a range, by node, in pages (`/proc/self/numa_maps`, man 7
/// numa). What a node has free says less: pages that were freed just before count as such later.
fn pages_beside(range: &SlowRange) -> BTreeMap<NodeId, usize> {
    let maps = std::fs::read_to_string("/proc/self/numa_maps").expect("the kernel knows nodes");
    let mut found = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.split(' ');
        let start = words.next().and_then(|word| usize::from_str_radix(word, 16).ok());
        let start = start.expect("a mapping begins with its address");
        if range.contains(std::ptr::without_provenance(start)) || line.contains(" file=") {
            continue;
        }
        for (node, pages) in words.filter_map(|word| word.strip_prefix('N')?.split_once('=')) {
            let node = NodeId(node.parse().expect("a node has a number"));
            *found.entry(node).or_default() += pages.parse::<usize>().expect("pages are counted");
        }
    }
    found
}

/// A process that the kernel kills fails this test without a word of its own.
#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn a_full_node_falls_back_and_nobody_is_killed() {
    let nodes = Nodes::of_machine();
    let reserve = |bytes| SlowRange::reserve(&nodes, SLOW, bytes).expect("there is room");
    let (range, rest) = (reserve((SLOW_BYTES + SLOW_BYTES / 4) as usize), reserve(64 << 20));
    fill(&range);
    let found = range.bytes_by_node().expect("this process may ask");
    assert_eq!(found.values().sum::<usize>(), range.bytes());
    assert!(found[&SLOW] > (SLOW_BYTES / 4 * 3) as usize, "{found:?}");
    assert!(found[&FAST] >= (SLOW_BYTES / 4) as usize, "{found:?}");
    // What is left over.
    fill(&rest);
    let full = SlowRange::reserve(&Nodes::of_machine(), SLOW, 1);
    let error = full.expect_err("the node is full");
    assert_eq!(error, NumaError::Elsewhere { wanted: SLOW, found: FAST });
    drop((range, rest));
    reserve(1);
}

#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn a_node_that_is_not_there_is_named() {
    let nodes = Nodes::of_machine();
    for node in [NodeId(2), NodeId(1023), NodeId(u32::MAX)] {
        let error = SlowRange::reserve(&nodes, node, 1).expect_err("there is none");
        assert_eq!(error, NumaError::NodeMissing { node, present: vec![FAST, SLOW] });
    }
}

/// Run by itself, in a control group whose cpuset has the fast node only.
#[test]
#[ignore = "needs a cpuset without the slow node: tests/numa/run"]
fn a_node_outside_of_the_cpuset_is_named() {
    let nodes = Nodes::of_machine();
    let error = SlowRange::reserve(&nodes, SLOW, 1).expect_err("it is not allowed");
    assert_eq!(error, NumaError::NodeNotAllowed { node: SLOW, allowed: vec![FAST] });
    SlowRange::reserve(&nodes, FAST, 1).expect("it is allowed");
}
