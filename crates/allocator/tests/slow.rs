//! Slow memory beside ordinary memory, in one process that uses both.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "these are tests")]

use allocator::SlowHeap;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use structures::heap::SlowMemory;
use world::numa::{NodeId, Nodes, NumaError, SlowRange};

#[global_allocator]
static ALLOCATOR: allocator::Jemalloc = allocator::Jemalloc;

const MIB: usize = 1 << 20;

/// A heap in so much memory of an ordinary node; none where the kernel has no nodes, or a container
/// forbids it.
fn heap(bytes: &[usize]) -> Option<&'static SlowHeap> {
    let nodes = Nodes::of_machine();
    let node = nodes.iter().find(|node| nodes.check(node.id).is_ok())?.id;
    let ranges: Result<Vec<_>, _> =
        (bytes.iter()).map(|bytes| SlowRange::reserve(&nodes, node, *bytes)).collect();
    match ranges {
        Ok(ranges) => Some(SlowHeap::over(ranges).unwrap()),
        Err(NumaError::NotPermitted { .. } | NumaError::NotSupported { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, 8).unwrap()
}

/// A block whose bytes say whose it is.
struct Block {
    start: NonNull<u8>,
    layout: Layout,
    mark: u8,
}

// SAFETY: a block is whoever's who has it.
unsafe impl Send for Block {}

impl Block {
    fn new(heap: &SlowHeap, bytes: usize, mark: u8) -> Option<Self> {
        let layout = layout(bytes);
        let start = heap.allocate(layout)?;
        assert!(heap.contains(start.as_ptr().addr()));
        assert!(heap.contains(start.as_ptr().addr() + bytes - 1));
        // SAFETY: the block is new and has so many bytes.
        unsafe { start.write_bytes(mark, bytes) };
        Some(Self { start, layout, mark })
    }

    /// As [`Self::new`], where there is room. What is being given back to the system by another
    /// thread, that of another test for one, is nobody's for that moment.
    fn where_there_is_room(heap: &SlowHeap, bytes: usize, mark: u8) -> Self {
        for _ in 0..2000 {
            if let Some(block) = Self::new(heap, bytes, mark) {
                return block;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("{bytes} bytes are refused");
    }

    fn free(self, heap: &SlowHeap) {
        // SAFETY: the block is live, and was filled by `new`.
        unsafe {
            let bytes = std::slice::from_raw_parts(self.start.as_ptr(), self.layout.size());
            assert!(bytes.iter().all(|byte| *byte == self.mark), "another block lies here, too");
            heap.free(self.start, self.layout);
        }
    }
}

/// A number below `bound`, from a sequence that is the same each time.
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % bound
    }

    fn size(&mut self) -> usize {
        let bytes_max = 16 << self.below(13);
        1 + self.below(bytes_max)
    }
}

/// Slow and ordinary blocks of all sizes, allocated and freed in turns.
fn work(heap: &'static SlowHeap, seed: u64, others: &mpsc::Sender<Block>) {
    let mut dice = Dice(seed);
    let (mut slow, mut ordinary) = (Vec::new(), Vec::new());
    for _ in 0..50_000 {
        let size = dice.size();
        match dice.below(8) {
            0..3 => slow.extend(Block::new(heap, size, seed as u8)),
            3 | 4 => {
                let bytes = vec![0xEE_u8; size];
                assert!(!heap.contains(bytes.as_ptr().addr()), "ordinary memory is slow");
                ordinary.push(bytes);
            }
            5 if !slow.is_empty() => slow.swap_remove(dice.below(slow.len())).free(heap),
            6 if !slow.is_empty() => others.send(slow.swap_remove(dice.below(slow.len()))).unwrap(),
            7 if !ordinary.is_empty() => drop(ordinary.swap_remove(dice.below(ordinary.len()))),
            _ => {}
        }
    }
    assert!(ordinary.iter().all(|bytes| bytes.iter().all(|byte| *byte == 0xEE)));
    slow.into_iter().for_each(|block| block.free(heap));
}

#[test]
fn slow_blocks_lie_in_their_range_and_ordinary_ones_elsewhere() {
    let Some(heap) = heap(&[512 * MIB]) else { return };
    let (sender, receiver) = mpsc::channel::<Block>();
    // Frees what others allocated, and never allocates there itself.
    let freeing = thread::spawn(move || receiver.into_iter().for_each(|block| block.free(heap)));
    let threads: Vec<_> = (1..5)
        .map(|seed| {
            let sender = sender.clone();
            thread::spawn(move || work(heap, seed, &sender))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(sender);
    freeing.join().unwrap();
    // Threads that have ended leave their caches to their arenas.
    wait_until_resident(heap, 8 * MIB);
}

/// Waits until so little memory of the heap is there: on a busy machine what another thread gives
/// back may take its time.
fn wait_until_resident(heap: &SlowHeap, bytes_max: usize) {
    let resident = || heap.bytes_by_node().unwrap().into_values().sum::<usize>();
    for _ in 0..2000 {
        allocator::give_back_now().unwrap();
        if resident() <= bytes_max {
            return;
        }
        thread::sleep(Duration::from_millis(10));
    }
    panic!("{} bytes are kept", resident());
}

#[test]
fn memory_goes_back_to_the_system_and_addresses_are_used_again() {
    let Some(heap) = heap(&[64 * MIB]) else { return };
    let resident = || heap.bytes_by_node().unwrap().into_values().sum::<usize>();
    for round in 0..20 {
        let size = [100, 1000, 40_000, 3 * MIB][round % 4];
        let blocks: Vec<_> =
            (0..40 * MIB / size).map(|_| Block::where_there_is_room(heap, size, 3)).collect();
        assert!(resident() >= 38 * MIB, "{}", resident());
        blocks.into_iter().for_each(|block| block.free(heap));
        wait_until_resident(heap, 4 * MIB);
    }
}

#[test]
fn a_full_range_refuses_until_something_is_freed() {
    let Some(heap) = heap(&[8 * MIB]) else { return };
    let mut blocks = Vec::new();
    while let Some(block) = Block::new(heap, 10_000, 5) {
        blocks.push(block);
    }
    let filled = blocks.len() * 10_240;
    assert!((6 * MIB..=8 * MIB).contains(&filled), "{filled}");
    assert!(heap.allocate(layout(9 * MIB)).is_none());
    blocks.into_iter().for_each(|block| block.free(heap));
    Block::where_there_is_room(heap, 10_000, 6).free(heap);
}

#[test]
fn a_second_range_is_used_when_the_first_is_full_or_closed() {
    let Some(heap) = heap(&[8 * MIB, 8 * MIB]) else { return };
    let mut blocks = Vec::new();
    while let Some(block) = Block::new(heap, 10_000, 5) {
        blocks.push(block);
    }
    let filled = blocks.len() * 10_240;
    assert!((12 * MIB..=16 * MIB).contains(&filled), "{filled}");
    blocks.into_iter().for_each(|block| block.free(heap));
    let node: NodeId = heap.nodes().next().unwrap();
    wait_until_resident(heap, MIB);
    heap.set_closed(node, true);
    assert!(!heap.has_room());
    assert!(heap.allocate(layout(MIB)).is_none(), "both ranges are of this node");
    heap.set_closed(node, false);
    assert!(heap.has_room());
    Block::where_there_is_room(heap, MIB, 1).free(heap);
}

#[test]
fn what_is_freed_of_a_closed_node_is_used_again_and_no_more_memory_is() {
    let Some(heap) = heap(&[64 * MIB]) else { return };
    let node: NodeId = heap.nodes().next().unwrap();
    let resident = || heap.bytes_by_node().unwrap().into_values().sum::<usize>();
    for size in [100, 320, 5000, 100_000, MIB] {
        let count = 16 * MIB / size;
        let mut blocks: Vec<_> = (0..count).map(|_| Block::new(heap, size, 3).unwrap()).collect();
        heap.set_closed(node, true);
        // Of what jemalloc may use already, some was not touched yet.
        let resident_max = resident() + 8 * MIB;
        let mut dice = Dice(size as u64);
        let mut lost = 0;
        for _ in 0..4 * count {
            let at = dice.below(blocks.len());
            blocks.swap_remove(at).free(heap);
            // A page of a large one may have gone back meanwhile.
            match Block::new(heap, size, 4) {
                Some(block) => blocks.push(block),
                None => lost += 1,
            }
        }
        assert!(lost <= count / 20 + 1, "{lost} of {count} blocks of {size} bytes are gone");
        assert!(resident() <= resident_max, "{size}: {} of {resident_max}", resident());
        while let Some(block) = Block::new(heap, size, 5) {
            blocks.push(block);
        }
        assert!(resident() <= resident_max, "{size}: {} of {resident_max}", resident());
        blocks.into_iter().for_each(|block| block.free(heap));
        heap.set_closed(node, false);
        wait_until_resident(heap, 4 * MIB);
    }
}

#[test]
fn large_alignments_are_kept() {
    let Some(heap) = heap(&[64 * MIB]) else { return };
    for align in [1, 8, 16, 64, 4096, 4 * MIB] {
        for size in [1, 100, 5000] {
            let layout = Layout::from_size_align(size, align).unwrap();
            let block = heap.allocate(layout).unwrap();
            assert_eq!(block.as_ptr().addr() % align, 0);
            // SAFETY: the block is live, and of this layout.
            unsafe { heap.free(block, layout) };
        }
    }
}
