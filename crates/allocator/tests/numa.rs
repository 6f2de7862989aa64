//! Values on a slow node, on a machine that has one: `tests/numa/run` emulates such a machine and
//! runs these there, one at a time; elsewhere they are ignored.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "these are tests")]

use allocator::SlowHeap;
use std::sync::OnceLock;
use std::thread;
use std::time::Duration;
use structures::entry::Payload;
use structures::heap::{self, ByteBox, ByteVec};
use structures::quicklist::{End, NodeLimits};
use structures::ratio::{Bounds, Policy, Share};
use structures::{Entry, Met, Mover, Quicklist};
use world::numa::nodes::available_bytes;
use world::numa::{NodeId, Nodes, SlowRange};

#[global_allocator]
static ALLOCATOR: allocator::Jemalloc = allocator::Jemalloc;

const SLOW: NodeId = NodeId(1);
const MIB: usize = 1 << 20;

/// The process's slow memory, with a policy, and without any blocks.
fn slow_memory(policy: Policy) -> &'static SlowHeap {
    static HEAP: OnceLock<&SlowHeap> = OnceLock::new();
    let heap = HEAP.get_or_init(|| {
        let nodes = Nodes::of_machine();
        let bytes = 2 * nodes.check(SLOW).unwrap().memory_bytes as usize;
        let range = SlowRange::reserve(&nodes, SLOW, bytes).unwrap();
        allocator::give_back_in_background().unwrap();
        let heap = SlowHeap::over(vec![range]).unwrap();
        assert!(heap::install(heap, policy));
        heap
    });
    heap::set_policy(policy);
    let usage = heap::usage().unwrap();
    assert_eq!((usage.fast_bytes, usage.slow_bytes), (0, 0), "another test left blocks behind");
    allocator::give_back_now().unwrap();
    heap
}

fn ratio(fast: u32, slow: u32) -> Policy {
    let bounds = Bounds { min_bytes: 24, max_bytes: 10_000 };
    Policy::Ratio { share: Share::of_ratio(fast, slow).unwrap(), bounds, first_bytes: 64 }
}

/// Waits until the heap keeps less memory than this: what another thread gives back may take its
/// time on a busy machine.
fn wait_until_kept(heap: &SlowHeap, bytes: usize) {
    let kept = || heap.bytes_by_node().unwrap().into_values().sum::<usize>();
    for _ in 0..2000 {
        allocator::give_back_now().unwrap();
        if kept() < bytes {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{} bytes are kept", kept());
}

fn free_bytes(id: NodeId) -> usize {
    Nodes::of_machine().find(id).unwrap().free_bytes as usize
}

/// A number below `bound`, from a sequence that is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }
}

#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn every_slow_block_lies_on_its_node_and_no_other_does() {
    let heap = slow_memory(Policy::Threshold { bytes: 256 });
    let free_before = free_bytes(SLOW);
    let mut dice = Dice(1);
    let (mut values, mut others) = (Vec::new(), Vec::new());
    for _ in 0..300_000 {
        let bytes_max = 16 << dice.below(10);
        let bytes = 1 + dice.below(bytes_max);
        match dice.below(4) {
            0 | 1 => values.push(ByteBox::copied(&vec![7; bytes])),
            2 => others.push(vec![7_u8; bytes]),
            _ if !values.is_empty() && !others.is_empty() => {
                values.swap_remove(dice.below(values.len()));
                others.swap_remove(dice.below(others.len()));
            }
            _ => {}
        }
    }
    let is_slow = |bytes: &[u8]| {
        use structures::heap::SlowMemory as _;
        heap.contains(bytes.as_ptr().addr())
    };
    // The classes are 8 bytes apart there.
    assert!(values.iter().all(|value| is_slow(value) == (value.len() > 248)));
    assert!(!others.iter().any(|other| is_slow(other)));
    let slow_bytes = heap::usage().unwrap().slow_bytes as usize;
    let by_node = heap.bytes_by_node().unwrap();
    assert_eq!(by_node.keys().collect::<Vec<_>>(), [&SLOW], "{by_node:?}");
    assert!(by_node[&SLOW] >= slow_bytes, "{by_node:?}, {slow_bytes}");
    let taken = free_before - free_bytes(SLOW);
    assert!(taken < by_node[&SLOW] + 16 * MIB, "{taken} bytes are taken of {by_node:?}");
    drop(values);
    wait_until_kept(heap, 8 * MIB);
}

/// A string that is copied in pieces to the slow node, and back.
#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn a_large_block_moves_to_its_node_and_back() {
    const BYTES: usize = 40 * MIB;
    let heap = slow_memory(Policy::OnlyFast);
    let mut value = ByteVec::from(vec![7; BYTES]);
    let on_slow = || heap.bytes_by_node().unwrap().into_iter().collect::<Vec<_>>();
    for policy in [Policy::OnlySlow, Policy::OnlyFast, Policy::OnlySlow] {
        heap::set_policy(policy);
        let wanted = &mut |met: Met<'_>| {
            met.bytes.is_some_and(|bytes| heap::is_misplaced(met.address, bytes()))
        };
        let (mut mover, mut pieces) = (Mover::new(wanted), 0);
        while mover.moved == 0 {
            mover.vec(&mut value);
            pieces += 1;
            assert!(pieces <= 10_000, "it goes on and on");
        }
        assert!(pieces > 100, "{pieces}");
        assert!(value.len() == BYTES && value.iter().all(|byte| *byte == 7));
        let usage = heap::usage().unwrap();
        if policy == Policy::OnlySlow {
            assert!(usage.fast_bytes == 0 && usage.slow_bytes as usize >= BYTES, "{usage:?}");
            let lies = on_slow();
            assert!(matches!(lies[..], [(SLOW, bytes)] if bytes >= BYTES), "{lies:?}");
        } else {
            assert!(usage.slow_bytes == 0, "{usage:?}");
            wait_until_kept(heap, 8 * MIB);
        }
    }
    drop(value);
    wait_until_kept(heap, 8 * MIB);
}

/// Strings and lists, in some turns of which half of everything is deleted.
#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn a_ratio_holds_through_loads_lists_and_deletions() {
    for (fast, slow) in [(1, 3), (1, 8)] {
        let heap = slow_memory(ratio(fast, slow));
        let share = f64::from(slow) / f64::from(fast + slow);
        let check = |phase: &str| {
            heap::adjust(0);
            let usage = heap::usage().unwrap();
            let all = (usage.slow_bytes + usage.fast_bytes) as f64;
            let off = (usage.slow_bytes as f64 / all - share).abs();
            assert!(off < 0.02, "{fast}:{slow} {phase}: {usage:?}, off by {off:.4}");
            let by_node = heap.bytes_by_node().unwrap();
            assert_eq!(by_node.keys().collect::<Vec<_>>(), [&SLOW], "{by_node:?}");
            assert!(by_node[&SLOW] as u64 >= usage.slow_bytes, "{by_node:?}, {usage:?}");
        };
        let mut dice = Dice(u64::from(slow));
        let mut strings = Vec::new();
        let load = |strings: &mut Vec<Entry<()>>, dice: &mut Dice, count: usize| {
            for _ in 0..count {
                let (key, value) = (format!("key:{}", dice.below(1 << 30)), [7; 1000]);
                let payload = Payload::Bytes(&value[..dice.below(1000)]);
                strings.push(Entry::new(key.as_bytes(), payload, None));
            }
        };
        load(&mut strings, &mut dice, 60_000);
        check("load");
        let mut lists: Vec<Quicklist> =
            (0..2000).map(|_| Quicklist::new(NodeLimits::default())).collect();
        for _ in 0..200_000 {
            let (list, end) = (dice.below(2000), [End::Front, End::Back][dice.below(2)]);
            match dice.below(4) {
                0 => drop(lists[list].pop(end)),
                _ => lists[list].push(end, &[7; 300][..dice.below(300)]),
            }
        }
        load(&mut strings, &mut dice, 60_000);
        check("lists");
        for _ in 0..60_000 {
            strings.swap_remove(dice.below(strings.len()));
        }
        for _ in 0..1000 {
            lists.swap_remove(dice.below(lists.len()));
        }
        check("half deleted");
    }
}

#[test]
#[ignore = "needs two memory nodes: tests/numa/run"]
fn values_lie_in_ordinary_memory_when_the_node_is_full() {
    let heap = slow_memory(Policy::OnlySlow);
    // Without what the machine's first files take of it.
    let room_bytes = available_bytes(SLOW).unwrap() as usize;
    // More than the kernel keeps free before it falls back to another node.
    let left_bytes = 64 * MIB;
    let tend = || {
        let is_full = available_bytes(SLOW).unwrap() < left_bytes as u64;
        heap.set_closed(SLOW, is_full);
        heap::adjust(0);
    };
    let mut values = Vec::new();
    for _ in 0..room_bytes / MIB + 100 {
        values.push(ByteBox::copied(&vec![7; MIB]));
        tend();
    }
    let usage = heap::usage().unwrap();
    assert!(usage.fast_bytes as usize > 90 * MIB, "{usage:?}, {room_bytes}");
    // The kernel keeps some of it free.
    let least = room_bytes - left_bytes - 128 * MIB;
    assert!(usage.slow_bytes as usize > least, "{usage:?}, {room_bytes}");
    let by_node = heap.bytes_by_node().unwrap();
    assert_eq!(by_node.keys().collect::<Vec<_>>(), [&SLOW], "{by_node:?}");
    assert!(free_bytes(SLOW) > left_bytes / 2, "{}", free_bytes(SLOW));
    drop(values);
    allocator::give_back_now().unwrap();
    tend();
    let value = ByteBox::copied(&vec![7; MIB]);
    assert_eq!(heap::usage().unwrap().fast_bytes, 0, "there is room again");
    drop(value);
    wait_until_kept(heap, 8 * MIB);
}
