use super::*;
use crate::size_class::{growth_class, size_class};
use crate::twin::Dice;
use proptest::prelude::*;

const EVERYTHING: Bounds = Bounds { min_bytes: 0, max_bytes: usize::MAX };

/// Bytes that the walk of a simulated server moves in one turn.
const MOVED_BYTES_A_TURN: usize = 256 << 10;

struct Block {
    bytes: usize,
    memory: Memory,
}

/// Stands for what allocates values, and for the walk that moves some.
struct Heap {
    ratio: Ratio,
    share: f64,
    blocks: Vec<Block>,
    hand: usize,
    moved_bytes: usize,
    dice: Dice,
}

fn policy(fast: u32, slow: u32, bounds: Bounds) -> Policy {
    Policy::Ratio { share: Share::of_ratio(fast, slow).unwrap(), bounds, first_bytes: usize::MAX }
}

impl Heap {
    fn new(fast: u32, slow: u32, bounds: Bounds, seed: u64) -> Self {
        let ratio = Ratio::new();
        ratio.set(policy(fast, slow, bounds));
        Self {
            ratio,
            share: f64::from(slow) / f64::from(fast + slow),
            blocks: Vec::new(),
            hand: 0,
            moved_bytes: 0,
            dice: Dice::new(seed),
        }
    }

    fn allocate(&mut self, bytes: usize) {
        let bytes = size_class(bytes);
        let memory = self.ratio.place(bytes);
        self.ratio.add(bytes, memory);
        self.blocks.push(Block { bytes, memory });
    }

    fn free(&mut self, index: usize) {
        let Block { bytes, memory } = self.blocks.swap_remove(index);
        self.ratio.remove(bytes, memory);
    }

    /// One turn of the server: it looks at the whole, and its walk at so many blocks.
    fn turn(&mut self, blocks: usize) {
        let mut left = MOVED_BYTES_A_TURN;
        self.ratio.adjust();
        for _ in 0..blocks.min(self.blocks.len()) {
            if !self.ratio.wants_moves() || left == 0 {
                return;
            }
            self.hand = (self.hand + 1) % self.blocks.len();
            let Block { bytes, memory } = &mut self.blocks[self.hand];
            if let Some(to) = self.ratio.wish(*bytes, *memory) {
                let totals = self.ratio.counts.totals();
                let slow = totals.slow as f64 / totals.all() as f64;
                assert_eq!(to == Memory::Slow, slow < self.share, "moved away from the share");
                self.ratio.remove(*bytes, *memory);
                self.ratio.add(*bytes, to);
                *memory = to;
                self.moved_bytes += *bytes;
                left = left.saturating_sub(*bytes);
            }
        }
    }

    /// Walks for two rounds, each as long as if everything were moved, and says whether nothing is
    /// to be moved any more. Two, because a threshold may still be computed anew in the first.
    fn comes_to_rest(&mut self) -> bool {
        let turns = self.blocks.iter().map(|block| block.bytes).sum::<usize>() / MOVED_BYTES_A_TURN;
        for _ in 0..2 * (turns + self.blocks.len() / 512 + 4) {
            self.turn(512);
        }
        self.ratio.adjust();
        !self.ratio.wants_moves()
    }

    fn check_sums(&self) {
        let sum = |memory| {
            let lying = self.blocks.iter().filter(|block| block.memory == memory);
            lying.map(|block| block.bytes as u64).sum::<u64>()
        };
        assert_eq!(self.ratio.slow_bytes(), sum(Memory::Slow));
        assert_eq!(self.ratio.live_bytes(), sum(Memory::Slow) + sum(Memory::Fast));
        assert_eq!(self.ratio.counts.read().blocks, self.ratio.counts.blocks());
    }

    /// How far the share is off, of all bytes.
    fn off(&self) -> f64 {
        let live = self.ratio.live_bytes().max(1) as f64;
        (self.ratio.slow_bytes() as f64 / live - self.share).abs()
    }

    /// What no division can do better than: half of the largest block.
    fn grain(&self) -> f64 {
        let largest = self.blocks.iter().map(|block| block.bytes).max();
        largest.unwrap_or(0) as f64 / self.ratio.live_bytes().max(1) as f64 / 2.0
    }

    /// A size between two, each doubling as likely as another.
    fn size(&mut self, min: usize, max: usize) -> usize {
        let doublings = (max / min).max(1).ilog2() as usize + 1;
        let low = (min << self.dice.below(doublings)).min(max);
        low + self.dice.below(low.min(max - low) + 1)
    }
}

/// What happens to a heap between two looks at it.
#[derive(Clone, Debug)]
enum Phase {
    Load {
        count: usize,
        min: usize,
        max: usize,
    },
    OfOneSize {
        count: usize,
        bytes: usize,
    },
    /// Nodes of lists: almost all of a size, and some that are not full.
    Lists {
        count: usize,
    },
    FreeHalf,
    /// Frees all blocks of at least, or below, a size.
    FreeBySize {
        bytes: usize,
        large: bool,
    },
    Replace {
        count: usize,
        min: usize,
        max: usize,
    },
}

fn phases() -> impl Strategy<Value = Vec<Phase>> {
    let sizes = (4..14u32, 0..8u32).prop_map(|(low, wide)| (1usize << low, 1usize << (low + wide)));
    let load = (500..6_000usize, sizes.clone());
    let phase = prop_oneof![
        load.clone().prop_map(|(count, (min, max))| Phase::Load { count, min, max }),
        (2_000..8_000usize, 16..10_000usize)
            .prop_map(|(count, bytes)| Phase::OfOneSize { count, bytes }),
        (1_000..4_000usize).prop_map(|count| Phase::Lists { count }),
        Just(Phase::FreeHalf),
        (16..10_000usize, any::<bool>())
            .prop_map(|(bytes, large)| Phase::FreeBySize { bytes, large }),
        load.prop_map(|(count, (min, max))| Phase::Replace { count, min, max }),
    ];
    prop::collection::vec(phase, 1..6)
}

fn play(heap: &mut Heap, phase: &Phase) {
    match *phase {
        Phase::Load { count, min, max } => {
            for _ in 0..count {
                let bytes = heap.size(min, max);
                heap.allocate(bytes);
            }
        }
        Phase::OfOneSize { count, bytes } => (0..count).for_each(|_| heap.allocate(bytes)),
        Phase::Lists { count } => {
            for _ in 0..count {
                let bytes = if heap.dice.below(8) == 0 { heap.size(16, 8192) } else { 8192 };
                heap.allocate(bytes);
            }
        }
        Phase::FreeHalf => {
            for _ in 0..heap.blocks.len() / 2 {
                let index = heap.dice.below(heap.blocks.len());
                heap.free(index);
            }
        }
        Phase::FreeBySize { bytes, large } => {
            for index in (0..heap.blocks.len()).rev() {
                if (heap.blocks[index].bytes >= bytes) == large {
                    heap.free(index);
                }
            }
        }
        Phase::Replace { count, min, max } => {
            for _ in 0..count.min(heap.blocks.len()) {
                let index = heap.dice.below(heap.blocks.len());
                heap.free(index);
                let bytes = heap.size(min, max);
                heap.allocate(bytes);
                heap.turn(8);
            }
        }
    }
}

fn ratios() -> impl Strategy<Value = (u32, u32)> {
    prop_oneof![Just((1, 3)), Just((1, 1)), Just((3, 1)), Just((1, 9)), (1..20u32, 1..20u32)]
}

#[test]
fn a_block_that_brings_the_share_no_nearer_stays() {
    let mut heap = Heap::new(10, 1, EVERYTHING, 1);
    (0..90).for_each(|_| heap.allocate(8192));
    (0..3).for_each(|_| heap.allocate(256 << 10));
    assert!(heap.comes_to_rest());
    let moved = heap.moved_bytes;
    assert!(moved <= 256 << 10, "{moved}");
    assert!(heap.comes_to_rest());
    assert_eq!(heap.moved_bytes, moved, "it moves to and fro");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn the_share_is_reached_after_any_load_and_then_nothing_moves(
        (fast, slow) in ratios(),
        phases in phases(),
        seed in any::<u64>(),
    ) {
        let mut heap = Heap::new(fast, slow, EVERYTHING, seed);
        for phase in &phases {
            play(&mut heap, phase);
            prop_assert!(heap.comes_to_rest(), "two rounds are not enough: {phase:?}");
            heap.check_sums();
            if heap.ratio.live_bytes() > CHANGED_BYTES_MIN * 50 {
                let (off, grain) = (heap.off(), heap.grain());
                prop_assert!(off <= 0.02_f64.max(0.01 + grain), "{phase:?}: {off}, {grain}");
            }
            let moved = heap.moved_bytes;
            prop_assert!(heap.comes_to_rest());
            prop_assert_eq!(heap.moved_bytes, moved, "moved at rest: {:?}", phase);
        }
    }
}

#[test]
fn a_load_is_placed_right_while_it_goes_on() {
    for (fast, slow) in [(1, 3), (1, 1), (9, 1)] {
        let mut heap = Heap::new(fast, slow, EVERYTHING, 5);
        for count in 1..=50_000 {
            let bytes = heap.size(16, 4096);
            heap.allocate(bytes);
            assert!(count < 5_000 || heap.off() < 0.02, "{fast}:{slow}, {count}: {}", heap.off());
        }
        assert!(!heap.ratio.wants_moves());
        assert_eq!(heap.moved_bytes, 0);
    }
}

#[test]
fn blocks_of_a_single_size_are_divided() {
    for bytes in [16, 100, 8192, 1 << 20] {
        for (fast, slow) in [(1, 3), (1, 1), (19, 1)] {
            let mut heap = Heap::new(fast, slow, EVERYTHING, bytes as u64);
            (0..20_000).for_each(|_| heap.allocate(bytes));
            assert!(heap.comes_to_rest());
            assert!(heap.off() < 0.02, "{bytes} B, {fast}:{slow}: {}", heap.off());
            // What came before there was something to go by.
            assert!(heap.moved_bytes as u64 <= CHANGED_BYTES_MIN, "{}", heap.moved_bytes);
            while heap.blocks.len() > 10_000 {
                let index = heap.dice.below(heap.blocks.len());
                heap.free(index);
            }
            assert!(heap.comes_to_rest());
            assert!(heap.off() < 0.02, "{bytes} B, {fast}:{slow}: {}", heap.off());
        }
    }
}

/// The threshold is off by 2 % when the load ends, and moving finds that out.
#[test]
fn a_threshold_is_computed_anew_when_moving_comes_to_its_end_outside_of_the_band() {
    let mut heap = Heap::new(1, 1, EVERYTHING, 13_463_169_282_329_536_130);
    play(&mut heap, &Phase::Lists { count: 1792 });
    assert!(heap.comes_to_rest());
    play(&mut heap, &Phase::OfOneSize { count: 2161, bytes: 1423 });
    assert!(heap.ratio.wants_moves());
    assert!(heap.comes_to_rest());
    assert!(heap.off() < 0.02, "{}", heap.off());
}

/// A part of a few blocks that ends amid one of them: whether one is missing, and which one is
/// asked to move, are the same question.
#[test]
fn a_handful_of_blocks_of_the_divided_class_comes_to_rest() {
    let mut heap = Heap::new(3, 1, EVERYTHING, 3_200_218_249_608_978_783);
    for phase in [
        Phase::Lists { count: 3025 },
        Phase::FreeBySize { bytes: 6145, large: true },
        Phase::FreeHalf,
        Phase::Replace { count: 500, min: 32, max: 128 },
    ] {
        play(&mut heap, &phase);
        assert!(heap.comes_to_rest(), "{phase:?}");
    }
}

/// Half of all bytes is one block: nothing is between all of it and none of it.
#[test]
fn one_giant_among_small_blocks_is_moved_at_most_once() {
    let mut heap = Heap::new(1, 3, EVERYTHING, 7);
    (0..10_000).for_each(|_| heap.allocate(1 << 10));
    heap.allocate(10_000 << 10);
    assert!(heap.comes_to_rest());
    assert!(heap.off() < 0.02, "{}", heap.off());
    heap.ratio.set(policy(3, 1, EVERYTHING));
    heap.share = 0.25;
    let moved = heap.moved_bytes;
    assert!(heap.comes_to_rest());
    assert!(heap.moved_bytes - moved <= heap.ratio.live_bytes() as usize);
    let moved = heap.moved_bytes;
    assert!(heap.comes_to_rest() && heap.moved_bytes == moved);
}

#[test]
fn replacing_blocks_of_the_same_kind_moves_next_to_nothing() {
    let mut heap = Heap::new(1, 2, EVERYTHING, 3);
    play(&mut heap, &Phase::Load { count: 20_000, min: 16, max: 8192 });
    assert!(heap.comes_to_rest());
    let (mut thresholds, mut last) = (0, heap.ratio.threshold_bytes());
    for _ in 0..50 {
        play(&mut heap, &Phase::Replace { count: 4_000, min: 16, max: 8192 });
        thresholds += u32::from(heap.ratio.threshold_bytes() != last);
        last = heap.ratio.threshold_bytes();
        assert!(heap.off() < 0.03, "{}", heap.off());
    }
    let replaced = heap.ratio.live_bytes() as usize * 10;
    assert!(heap.moved_bytes < replaced / 100, "{} of {replaced}", heap.moved_bytes);
    assert!(thresholds < 10, "{thresholds}");
}

#[test]
fn bounds_hold_whatever_becomes_of_the_share() {
    let bounds = Bounds { min_bytes: 64, max_bytes: 1024 };
    for (fast, slow) in [(1, 99), (99, 1)] {
        let mut heap = Heap::new(fast, slow, bounds, 11);
        for bytes in [32, 63, 500, 1024, 4000] {
            (0..2_000).for_each(|_| heap.allocate(bytes));
        }
        assert!(heap.comes_to_rest());
        for block in &heap.blocks {
            assert!(block.bytes >= 64 || block.memory == Memory::Fast, "{}", block.bytes);
            assert!(block.bytes < 1024 || block.memory == Memory::Slow, "{}", block.bytes);
        }
        let threshold = heap.ratio.threshold_bytes();
        assert!((64..=1024).contains(&threshold), "{threshold}");
    }
}

#[test]
fn without_a_share_neither_direction_waits_for_the_other() {
    let ratio = Ratio::new();
    ratio.set(Policy::Threshold { bytes: 64 });
    // Slow memory was full when the larger ones came.
    (0..1000).for_each(|_| ratio.add(128, Memory::Slow));
    (0..1000).for_each(|_| ratio.add(2048, Memory::Fast));
    ratio.set(Policy::Threshold { bytes: 1024 });
    assert!(ratio.wants_moves());
    assert_eq!(ratio.wish(128, Memory::Slow), Some(Memory::Fast));
    assert_eq!(ratio.wish(2048, Memory::Fast), Some(Memory::Slow));
    assert_eq!((ratio.wish(128, Memory::Fast), ratio.wish(2048, Memory::Slow)), (None, None));
}

#[test]
fn a_threshold_between_two_sizes_leaves_nothing_on_the_wrong_side() {
    for (bytes, below, above) in [(300, 256, 320), (60, 48, 64), (256, 224, 256)] {
        let ratio = Ratio::new();
        ratio.set(Policy::OnlySlow);
        ratio.add(below, Memory::Slow);
        ratio.add(above, Memory::Slow);
        ratio.set(Policy::Threshold { bytes });
        assert_eq!(ratio.wish(below, Memory::Slow), Some(Memory::Fast), "{bytes}");
        assert_eq!(ratio.wish(above, Memory::Slow), None, "{bytes}");
        ratio.remove(below, Memory::Slow);
        ratio.add(below, Memory::Fast);
        ratio.adjust();
        assert!(!ratio.wants_moves(), "{bytes}");
    }
}

#[test]
fn another_share_moves_blocks_and_then_none() {
    let mut heap = Heap::new(3, 1, EVERYTHING, 13);
    play(&mut heap, &Phase::Load { count: 20_000, min: 16, max: 2048 });
    assert!(heap.comes_to_rest());
    heap.ratio.set(policy(1, 3, EVERYTHING));
    heap.share = 0.75;
    assert!(heap.ratio.wants_moves());
    assert!(heap.comes_to_rest());
    assert!(heap.off() < 0.02, "{}", heap.off());
    let live = heap.ratio.live_bytes() as usize;
    assert!((live * 45 / 100..live * 55 / 100).contains(&heap.moved_bytes), "not once each");
    heap.check_sums();
}

#[test]
fn nothing_is_left_of_a_heap_that_was_emptied() {
    let mut heap = Heap::new(1, 1, EVERYTHING, 17);
    play(&mut heap, &Phase::Load { count: 5_000, min: 16, max: 65_536 });
    while !heap.blocks.is_empty() {
        heap.free(0);
    }
    assert_eq!((heap.ratio.live_bytes(), heap.ratio.slow_bytes()), (0, 0));
    assert!(!heap.ratio.wants_moves());
    assert_eq!(heap.ratio.wish(112, Memory::Slow), None);
    play(&mut heap, &Phase::OfOneSize { count: 5_000, bytes: 100 });
    assert!(heap.comes_to_rest());
    assert!(heap.off() < 0.02, "{}", heap.off());
}

#[test]
fn a_share_is_the_slow_part_of_the_whole() {
    assert_eq!(Share::of_ratio(1, 3).map(|share| share.of(400)), Some(300));
    assert_eq!(Share::of_ratio(0, 1).map(|share| share.of(u64::MAX)), Some(u64::MAX));
    assert_eq!(Share::of_ratio(1, 0).map(|share| share.of(u64::MAX)), Some(0));
    assert_eq!(Share::of_ratio(u32::MAX, u32::MAX).map(|share| share.of(10)), Some(5));
    assert_eq!(Share::of_ratio(0, 0), None);
}

#[test]
fn a_policy_without_a_share_wants_each_block_on_its_side() {
    let mut heap = Heap::new(1, 1, EVERYTHING, 19);
    for (policy, slow_from) in [
        (Policy::Threshold { bytes: 300 }, 320),
        (Policy::OnlySlow, 0),
        (Policy::Threshold { bytes: 1 << 20 }, 1 << 20),
        (Policy::OnlyFast, usize::MAX),
    ] {
        // The moves of these go by sizes, and not by what is short.
        heap.share = if policy == Policy::OnlySlow { 1.0 } else { 0.5 };
        heap.ratio.set(policy);
        for bytes in [64, 256, 300, 4000, 1 << 20] {
            (0..10).for_each(|_| heap.allocate(bytes));
        }
        for index in 0..heap.blocks.len() {
            let Block { bytes, memory } = heap.blocks[index];
            let wanted = if bytes >= slow_from { Memory::Slow } else { Memory::Fast };
            heap.ratio.adjust();
            if let Some(to) = heap.ratio.wish(bytes, memory) {
                assert_eq!(to, wanted);
            }
            heap.ratio.remove(bytes, memory);
            heap.ratio.add(bytes, wanted);
            heap.blocks[index].memory = wanted;
        }
        heap.ratio.adjust();
        assert!(!heap.ratio.wants_moves());
        heap.check_sums();
    }
}

/// Lists grow from small blocks to large ones, so what was right when they were small is not later.
#[test]
fn lists_that_grow_beside_strings_keep_the_share_without_a_walk() {
    for (fast, slow) in [(1, 3), (1, 8), (1, 1)] {
        let mut heap = Heap::new(fast, slow, Bounds { min_bytes: 24, max_bytes: 10_000 }, 29);
        let mut growing: Vec<Option<(usize, Block)>> = (0..200).map(|_| None).collect();
        let mut worst = 0.0_f64;
        for step in 0..40_000 {
            heap.allocate(growth_class(40 + step % 700));
            let list = &mut growing[step % 200];
            let used = list.as_ref().map_or(7, |(used, _)| *used) + 5 + step % 300;
            if list.as_ref().is_some_and(|(_, block)| block.bytes >= used) {
                if let Some((bytes, _)) = list {
                    *bytes = used;
                }
            } else {
                let bytes = growth_class(used);
                let memory = heap.ratio.place(bytes);
                heap.ratio.add(bytes, memory);
                if let Some((_, old)) = list.replace((used, Block { bytes, memory })) {
                    heap.ratio.remove(old.bytes, old.memory);
                }
                if used > 7800
                    && let Some((_, full)) = list.take()
                {
                    heap.blocks.push(full);
                }
            }
            if step % 100 == 99 {
                heap.ratio.adjust();
            }
            if step > 4000 {
                worst = worst.max(heap.off());
            }
        }
        assert!(worst < 0.035 && heap.off() < 0.01, "{fast}:{slow}: {worst}, {}", heap.off());
    }
}

#[test]
fn what_is_beside_blocks_counts_as_fast() {
    let mut heap = Heap::new(1, 3, EVERYTHING, 23);
    let share = |heap: &Heap, beside: u64| {
        heap.ratio.slow_bytes() as f64 / (heap.ratio.live_bytes() + beside) as f64
    };
    for step in 1..=100 {
        (0..200).for_each(|_| heap.allocate(16 + step * 7));
        let beside = heap.ratio.live_bytes() / 6;
        heap.ratio.set_others(beside);
        assert!(heap.comes_to_rest());
        assert!(step < 10 || (share(&heap, beside) - 0.75).abs() < 0.02, "{step}");
    }
    // More than the share leaves to fast memory: all blocks are slow, and then nothing moves.
    let beside = heap.ratio.live_bytes();
    heap.ratio.set_others(beside);
    assert!(heap.comes_to_rest());
    assert!((share(&heap, beside) - 0.5).abs() < 0.01, "{}", share(&heap, beside));
}

#[test]
fn until_there_are_blocks_to_go_by_the_first_threshold_holds() {
    let bounds = Bounds { min_bytes: 24, max_bytes: 10_000 };
    let share = Share::of_ratio(1, 3).unwrap();
    let ratio = Ratio::new();
    for (first_bytes, threshold) in [(64, 64), (65, 80), (1, 24), (1 << 20, 10_240)] {
        ratio.set(Policy::Ratio { share, bounds, first_bytes });
        ratio.adjust();
        assert_eq!(ratio.threshold_bytes(), threshold, "{first_bytes}");
    }
}

/// Counts are all that threads share.
#[test]
fn many_threads_allocate_and_free() {
    let ratio = Ratio::new();
    ratio.set(policy(1, 3, EVERYTHING));
    let work = |seed: u64| {
        let mut dice = Dice::new(seed);
        let mut blocks = std::collections::VecDeque::new();
        for _ in 0..100_000 {
            let bytes = size_class(dice.below(2000) + 1);
            let memory = ratio.place(bytes);
            ratio.add(bytes, memory);
            blocks.push_back((bytes, memory));
            if blocks.len() > 2000 {
                let (bytes, memory) = blocks.pop_front().unwrap();
                ratio.remove(bytes, memory);
            }
        }
        blocks
    };
    let left: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|seed| scope.spawn(move || work(seed))).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let slow = ratio.slow_bytes() as f64 / ratio.live_bytes() as f64;
    assert!((slow - 0.75).abs() < 0.03, "{slow}");
    left.into_iter().for_each(|(bytes, memory)| ratio.remove(bytes, memory));
    assert_eq!((ratio.live_bytes(), ratio.slow_bytes()), (0, 0));
}

#[test]
#[should_panic(expected = "taken out as it was put in")]
fn a_block_that_was_never_added_is_not_removed() {
    let ratio = Ratio::new();
    ratio.add(112, Memory::Fast);
    ratio.remove(112, Memory::Slow);
}
