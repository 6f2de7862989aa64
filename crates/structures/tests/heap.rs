//! Values in a process that has slow memory. A test of its own, since memory is the process's.
#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "these are tests")]

use std::alloc::{Layout, alloc_zeroed};
use std::collections::HashMap;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread;
use structures::entry::Payload;
use structures::heap::{self, ByteBox, ByteVec, Replacement, SlowMemory};
use structures::quicklist::{End, NodeLimits};
use structures::ratio::{Bounds, Memory, Policy, Share};
use structures::{
    Cold, Entry, EntryRef, Intset, KeyHasher, Listpack, Met, Mover, Quicklist, Table,
};

const REGION_BYTES: usize = 256 << 20;

/// Stands for slow memory: a region of ordinary one that is handed out from its start on. What is
/// freed is handed out again for the same layout.
struct Region {
    start: usize,
    is_full: AtomicBool,
    state: Mutex<(usize, HashMap<Layout, Vec<usize>>)>,
}

impl Region {
    fn new() -> Self {
        let layout = Layout::from_size_align(REGION_BYTES, 4096).unwrap();
        // SAFETY: the size is not zero. The region is never freed.
        let start = unsafe { alloc_zeroed(layout) }.expose_provenance();
        assert_ne!(start, 0);
        Self { start, is_full: AtomicBool::new(false), state: Mutex::default() }
    }
}

// SAFETY: blocks lie apart in the region, which is this one's own and begins with a page, and
// behind each other by multiples of 64 bytes, which is what a table's align to, and no other more.
unsafe impl SlowMemory for Region {
    fn allocate(&self, layout: Layout) -> Option<NonNull<u8>> {
        assert!(layout.align() <= 64 && layout.size() > 0);
        if self.is_full.load(Relaxed) {
            return None;
        }
        let mut state = self.state.lock().unwrap();
        let freed = state.1.get_mut(&layout).and_then(Vec::pop);
        let address = freed.unwrap_or_else(|| {
            let address = self.start + state.0;
            state.0 += layout.size().next_multiple_of(64);
            assert!(state.0 <= REGION_BYTES, "a test needs more than there is");
            address
        });
        NonNull::new(std::ptr::with_exposed_provenance_mut(address))
    }

    unsafe fn free(&self, block: NonNull<u8>, layout: Layout) {
        assert!(self.contains(block.as_ptr().addr()));
        // SAFETY: the block is nobody's any more. Whoever still reads it will notice.
        unsafe { block.write_bytes(0xA5, layout.size()) };
        self.state.lock().unwrap().1.entry(layout).or_default().push(block.as_ptr().addr());
    }

    fn contains(&self, address: usize) -> bool {
        (self.start..self.start + REGION_BYTES).contains(&address)
    }

    fn has_room(&self) -> bool {
        !self.is_full.load(Relaxed)
    }
}

/// The process's slow memory, for one test at a time, which leaves no block behind.
struct Turn {
    region: &'static Region,
    _turn: MutexGuard<'static, ()>,
}

impl Turn {
    fn with(policy: Policy) -> Self {
        static TURNS: Mutex<()> = Mutex::new(());
        static REGION: OnceLock<&'static Region> = OnceLock::new();
        let turn = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
        let region = REGION.get_or_init(|| {
            let region: &'static Region = Box::leak(Box::new(Region::new()));
            assert!(heap::install(region, policy) && !heap::install(region, policy));
            region
        });
        heap::set_policy(policy);
        heap::set_tables(Memory::Fast);
        region.is_full.store(false, Relaxed);
        heap::adjust(0);
        Self { region, _turn: turn }
    }

    fn is_slow(&self, bytes: &[u8]) -> bool {
        self.region.contains(bytes.as_ptr().addr())
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !thread::panicking() {
            let usage = heap::usage().unwrap();
            assert_eq!((usage.fast_bytes, usage.slow_bytes), (0, 0), "a block was left behind");
        }
    }
}

fn slow_share() -> f64 {
    let usage = heap::usage().unwrap();
    usage.slow_bytes as f64 / (usage.fast_bytes + usage.slow_bytes) as f64
}

fn ratio(fast: u32, slow: u32) -> Policy {
    let bounds = Bounds { min_bytes: 24, max_bytes: 10_000 };
    Policy::Ratio { share: Share::of_ratio(fast, slow).unwrap(), bounds, first_bytes: 64 }
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
fn blocks_lie_where_their_size_says() {
    let turn = Turn::with(Policy::Threshold { bytes: 256 });
    for len in [0, 1, 100, 255, 256, 257, 5000, 1 << 20] {
        let (zeroed, copied) = (ByteBox::zeroed(len), ByteBox::copied(&vec![7; len]));
        assert!(zeroed.iter().all(|byte| *byte == 0) && copied.iter().all(|byte| *byte == 7));
        // The class of 256 bytes begins behind 224.
        let expected = len > 224;
        assert_eq!((turn.is_slow(&zeroed), turn.is_slow(&copied)), (expected, expected), "{len}");
        let taken = ByteBox::from(vec![9; len]);
        assert!(turn.is_slow(&taken) == expected && taken.iter().all(|byte| *byte == 9));
        assert_eq!(taken.into_vec(), vec![9; len]);
    }
}

#[test]
fn what_grows_keeps_its_bytes_wherever_it_comes_to_lie() {
    let turn = Turn::with(Policy::Threshold { bytes: 512 });
    let mut dice = Dice(1);
    let (mut bytes, mut twin) = (ByteVec::new(), Vec::new());
    let (mut slow, mut fast) = (0, 0);
    for step in 0..5000 {
        let size = dice.below(1500);
        match dice.below(6) {
            0 => {
                bytes.extend_from_slice(&vec![step as u8; size / 4]);
                twin.extend_from_slice(&vec![step as u8; size / 4]);
            }
            1 => {
                bytes.resize(size, 3);
                twin.resize(size, 3);
            }
            2 => bytes.shrink_to(0),
            3 => bytes = ByteVec::from(bytes.into_vec()),
            4 => bytes = bytes.clone(),
            _ => {
                let from = [Policy::OnlySlow, Policy::OnlyFast, Policy::Threshold { bytes: 512 }];
                heap::set_policy(from[dice.below(3)]);
            }
        }
        assert_eq!(*bytes, *twin);
        slow += u32::from(turn.is_slow(&bytes));
        fast += u32::from(!turn.is_slow(&bytes));
    }
    assert!(slow > 500 && fast > 500, "{slow}, {fast}");
    drop(bytes);
}

#[test]
fn a_share_of_all_values_is_slow_while_they_come_and_go() {
    for (fast, slow) in [(1, 3), (1, 8), (3, 1)] {
        let _turn = Turn::with(ratio(fast, slow));
        let share = f64::from(slow) / f64::from(fast + slow);
        let mut dice = Dice(u64::from(slow));
        let mut values = Vec::new();
        let mut lists = Vec::new();
        for index in 0..40_000 {
            let key = format!("key:{index}");
            let value = vec![index as u8; dice.below(700)];
            values.push(Entry::<()>::new(key.as_bytes(), Payload::Bytes(&value), None));
            if index % 100 == 0 {
                let mut list = Quicklist::new(NodeLimits::default());
                (0..200).for_each(|_| list.push(End::Back, &value));
                lists.push(list);
            }
        }
        assert!((slow_share() - share).abs() < 0.02, "{fast}:{slow}: {}", slow_share());
        heap::adjust(0);
        assert!(!heap::wants_moves());
        while values.len() > 20_000 {
            values.swap_remove(dice.below(values.len()));
        }
        heap::adjust(0);
        for list in &mut lists {
            if heap::wants_moves() {
                *list = list.clone();
            }
        }
        let anew = |value: Entry<()>| {
            let address = value.key().as_ptr().addr();
            if !heap::is_misplaced(address, value.allocated_bytes()) {
                return value;
            }
            let key = value.key().to_vec();
            value.with_key(&key)
        };
        let values: Vec<_> = values.into_iter().map(anew).collect();
        assert!((slow_share() - share).abs() < 0.02, "{fast}:{slow}: {}", slow_share());
        assert_eq!((values.len(), lists.len()), (20_000, 400));
    }
}

#[test]
fn small_collections_lie_there_too() {
    let turn = Turn::with(Policy::OnlySlow);
    let (mut pack, mut set) = (Listpack::new(), Intset::new());
    for number in 0..1000 {
        pack.push_back(format!("element {number}").as_bytes());
        set.insert(number * 70_000);
    }
    assert!(turn.is_slow(pack.bytes()) && turn.is_slow(set.bytes()));
    assert_eq!(pack.get(999).unwrap().to_vec(), b"element 999");
    assert!(set.iter().eq((0..1000).map(|number| number * 70_000)));
    let again = Listpack::from_bytes(pack.clone().into_bytes()).unwrap();
    assert!(turn.is_slow(again.bytes()) && again == pack);
}

#[test]
fn what_lies_wrong_is_told_until_it_was_allocated_anew() {
    let turn = Turn::with(Policy::OnlyFast);
    let mut values: Vec<ByteBox> = (0..1000).map(|_| ByteBox::zeroed(100)).collect();
    let misplaced = |values: &[ByteBox]| {
        let is_wrong = |value: &&ByteBox| heap::is_misplaced(value.as_ptr().addr(), value.len());
        values.iter().filter(is_wrong).count()
    };
    assert_eq!((misplaced(&values), heap::wants_moves()), (0, false));
    heap::set_policy(Policy::OnlySlow);
    assert_eq!((misplaced(&values), heap::wants_moves()), (1000, true));
    values.iter_mut().for_each(|value| *value = value.clone());
    assert!(values.iter().all(|value| turn.is_slow(value)));
    heap::adjust(0);
    assert_eq!((misplaced(&values), heap::wants_moves()), (0, false));
}

#[test]
fn a_block_that_found_no_room_says_nothing_of_others_and_nothing_is_moved_where_none_is() {
    let turn = Turn::with(Policy::OnlyFast);
    let values: Vec<ByteBox> = (0..10).map(|_| ByteBox::zeroed(100)).collect();
    let is_misplaced = || heap::is_misplaced(values[0].as_ptr().addr(), values[0].len());
    heap::set_policy(Policy::OnlySlow);
    assert!(heap::wants_moves() && is_misplaced());
    turn.region.is_full.store(true, Relaxed);
    assert!(!turn.is_slow(&ByteBox::zeroed(3000)));
    turn.region.is_full.store(false, Relaxed);
    assert!(!turn.is_slow(&ByteBox::zeroed(3000)), "it is not asked again at once");
    for others in [100, 2900, 3100] {
        assert!(turn.is_slow(&ByteBox::zeroed(others)), "{others} is another size of blocks");
    }
    assert!(heap::wants_moves() && is_misplaced());
    turn.region.is_full.store(true, Relaxed);
    for _ in 0..3 {
        heap::adjust(0);
        assert!(!heap::wants_moves() && !is_misplaced(), "each would be a move to where it lies");
        assert!(heap::usage().unwrap().is_slow_full);
    }
    turn.region.is_full.store(false, Relaxed);
    heap::adjust(0);
    assert!(heap::wants_moves() && turn.is_slow(&ByteBox::zeroed(3000)));
}

#[test]
fn blocks_lie_in_ordinary_memory_when_the_slow_one_is_full() {
    let turn = Turn::with(Policy::OnlySlow);
    turn.region.is_full.store(true, Relaxed);
    let value = ByteBox::zeroed(100);
    assert!(!turn.is_slow(&value));
    heap::set_policy(Policy::OnlySlow);
    let is_misplaced = || heap::is_misplaced(value.as_ptr().addr(), value.len());
    assert!(!is_misplaced(), "to move it would fail again");
    turn.region.is_full.store(false, Relaxed);
    heap::adjust(0);
    assert!(is_misplaced());
}

/// Has a mover take what lies wrong, until there is nothing to come back for. How many times it was
/// come to.
fn move_in_pieces(bytes: &mut ByteVec, copy: &mut Option<Replacement>, times_max: u32) -> u32 {
    let wanted =
        &mut |met: Met<'_>| met.bytes.is_some_and(|bytes| heap::is_misplaced(met.address, bytes()));
    let mut mover = Mover::new(wanted);
    mover.copy = copy.take();
    (mover.whole_bytes_max, mover.piece_bytes) = (10_000, 1000);
    for times in 1..=times_max {
        mover.comes_again = false;
        mover.vec(bytes);
        if !mover.comes_again {
            return times;
        }
    }
    *copy = mover.copy;
    times_max
}

#[test]
fn a_large_block_moves_in_pieces_and_its_copy_counts_when_it_is_whole() {
    let turn = Turn::with(Policy::OnlyFast);
    let content: Vec<u8> = (0..20_000_u32).map(|number| number as u8).collect();
    let mut bytes = ByteVec::from(&content[..]);
    bytes.reserve_exact(500);
    let (capacity, before) = (bytes.capacity(), heap::usage().unwrap());
    heap::set_policy(Policy::OnlySlow);
    let mut copy = None;
    move_in_pieces(&mut bytes, &mut copy, 5);
    let counted = |usage: heap::Usage| (usage.fast_bytes, usage.slow_bytes);
    assert_eq!(copy.as_ref().unwrap().progress(), (bytes.as_ptr().addr(), 5000));
    assert_eq!(counted(heap::usage().unwrap()), counted(before));
    // One that is given up leaves nothing behind, and another begins at the first byte.
    copy = None;
    assert_eq!(move_in_pieces(&mut bytes, &mut copy, 100), 20);
    assert!(copy.is_none() && turn.is_slow(&bytes) && *bytes == *content);
    assert_eq!(bytes.capacity(), capacity);
    assert_eq!(counted(heap::usage().unwrap()), (0, before.fast_bytes));
    heap::adjust(0);
    assert!(!heap::wants_moves());
    // Where there is no room it stays, and nobody comes again.
    heap::set_policy(Policy::OnlyFast);
    move_in_pieces(&mut bytes, &mut copy, 100);
    assert!(!turn.is_slow(&bytes) && *bytes == *content);
    heap::set_policy(Policy::OnlySlow);
    turn.region.is_full.store(true, Relaxed);
    assert_eq!(move_in_pieces(&mut bytes, &mut copy, 100), 1);
    assert!(!turn.is_slow(&bytes) && *bytes == *content);
    assert_eq!(counted(heap::usage().unwrap()), counted(before));
}

#[test]
fn a_ratio_is_met_by_large_blocks_and_then_rests() {
    let turn = Turn::with(ratio(1, 1));
    // More than what is always slow, so that none of them is moved for its size alone.
    let bounds = Bounds { min_bytes: 24, max_bytes: 1 << 20 };
    let with = |fast, slow| {
        let share = Share::of_ratio(fast, slow).unwrap();
        heap::set_policy(Policy::Ratio { share, bounds, first_bytes: 64 });
    };
    with(1, 1);
    let mut values: Vec<ByteVec> =
        (0..400_u32).map(|number| ByteVec::from(&vec![number as u8; 40_000][..])).collect();
    for (fast, slow) in [(1, 3), (3, 1), (1, 1), (1, 8)] {
        with(fast, slow);
        let mut rounds = 0;
        while heap::wants_moves() {
            rounds += 1;
            assert!(rounds < 5, "{fast}:{slow}: it goes on and on: {}", slow_share());
            for value in &mut values {
                move_in_pieces(value, &mut None, 100);
            }
            heap::adjust(0);
        }
        let share = f64::from(slow) / f64::from(fast + slow);
        assert!((slow_share() - share).abs() < 0.02, "{fast}:{slow}: {}", slow_share());
    }
    let slow_count = values.iter().filter(|value| turn.is_slow(value)).count();
    assert!((340..370).contains(&slow_count), "{slow_count}");
    let is_whole = |(number, value): (usize, &ByteVec)| value.iter().all(|it| *it == number as u8);
    assert!(values.iter().enumerate().all(is_whole));
}

type KeyTable = Table<Entry<()>>;

/// A key, the hash of it, and the entry that has it with a value of so many bytes.
fn entry_of(table: &KeyTable, number: usize, bytes: usize) -> (Vec<u8>, u64, Entry<()>) {
    let key = format!("key:{number}").into_bytes();
    let hash = table.hasher().hash(&key);
    let entry = Entry::new(&key, Payload::Bytes(&vec![number as u8; bytes]), None);
    (key, hash, entry)
}

#[test]
fn tables_lie_where_they_are_told_whatever_becomes_of_them() {
    let turn = Turn::with(Policy::OnlyFast);
    let mut table = KeyTable::new(KeyHasher::fixed(1));
    let mut twin = HashMap::new();
    let mut dice = Dice(5);
    let mut seen = [false; 2];
    for step in 0..60_000 {
        if step % 500 == 0 {
            heap::set_tables([Memory::Slow, Memory::Fast][dice.below(2)]);
            turn.region.is_full.store(dice.below(4) == 0, Relaxed);
            heap::adjust(0);
            let usage = heap::usage().unwrap();
            assert!(usage.slow_bytes <= table.allocated_bytes() as u64, "{usage:?}");
            seen[usize::from(usage.slow_bytes > 0)] = true;
        }
        let grows = step / 10_000 % 2 == 0;
        let (key, hash, entry) = entry_of(&table, dice.below(8_000), 20);
        if (dice.below(10) < 8) == grows {
            let old = table.insert(hash, entry).map(|entry| entry.key().to_vec());
            assert_eq!(old, twin.insert(key.clone(), hash).map(|_| key));
        } else {
            let gone = table.remove(hash, &key).map(|entry| entry.key().to_vec());
            assert_eq!(gone, twin.remove(&key).map(|_| key));
        }
        if step % 3_000 == 0 {
            let wanted = &mut |met: Met<'_>| met.bytes.is_none();
            let (mut mover, mut next) = (Mover::new(wanted), Some(0));
            while let Some(position) = next {
                next = table.move_blocks(position, 64, &mut mover, |_, _| ());
            }
            assert!(mover.moved > 0);
        }
    }
    assert!(twin.iter().all(|(key, hash)| table.contains(*hash, key)) && table.len() == twin.len());
    assert_eq!(seen, [true; 2]);
}

#[test]
fn what_a_table_consists_of_lies_in_slow_memory_and_counts() {
    let turn = Turn::with(Policy::OnlyFast);
    heap::set_tables(Memory::Slow);
    let mut table = KeyTable::new(KeyHasher::fixed(1));
    for number in 0..50_000 {
        let (_, hash, entry) = entry_of(&table, number, 20);
        table.insert(hash, entry);
    }
    let slow_bytes = heap::usage().unwrap().slow_bytes as f64;
    let all = table.allocated_bytes() as f64;
    assert!(slow_bytes <= all && slow_bytes > 0.9 * all, "{slow_bytes} of {all}");
    turn.region.is_full.store(true, Relaxed);
    (0..50_000).for_each(|number| {
        let (_, hash, entry) = entry_of(&table, 50_000 + number, 20);
        table.insert(hash, entry);
    });
    assert!((heap::usage().unwrap().slow_bytes as f64) < slow_bytes, "segments are laid out anew");
    assert!(table.allocated_bytes() as f64 > 1.5 * all, "in ordinary memory");
    drop(table);
    assert_eq!(heap::usage().unwrap().slow_bytes, 0);
}

#[test]
fn a_ratio_counts_tables_wherever_they_lie() {
    // Small values, so that the table is a large part of all.
    let tables = [Memory::Slow, Memory::Slow, Memory::Slow, Memory::Fast, Memory::Fast];
    for ((fast, slow), memory) in [(1, 3), (1, 1), (3, 1), (1, 1), (3, 1)].into_iter().zip(tables) {
        let _turn = Turn::with(ratio(fast, slow));
        heap::set_tables(memory);
        let mut table = KeyTable::new(KeyHasher::fixed(1));
        for number in 0..60_000 {
            let (_, hash, entry) = entry_of(&table, number, number % 40);
            table.insert(hash, entry);
        }
        let share = f64::from(slow) / f64::from(fast + slow);
        assert!((slow_share() - share).abs() < 0.02, "{fast}:{slow}: {}", slow_share());
        heap::adjust(0);
        assert!(!heap::wants_moves());
    }
}

/// Walks over all entries, as a server does beside commands, until nothing is to be moved. How
/// many rounds began, and how many blocks moved.
fn move_to_rest(table: &mut KeyTable) -> (u32, u64) {
    const ROUNDS_MAX: u32 = 10;
    let (mut rounds, mut moved) = (0, 0);
    loop {
        heap::adjust(0);
        if !heap::wants_moves() {
            return (rounds, moved);
        }
        rounds += 1;
        assert!(rounds <= ROUNDS_MAX, "it goes on and on: {} slow", slow_share());
        let wanted = &mut |met: Met<'_>| {
            met.bytes.is_some_and(|bytes| heap::is_misplaced(met.address, bytes()))
        };
        let (mut mover, mut next) = (Mover::new(wanted), Some(0));
        while let Some(position) = next {
            // The server looks at the whole ten times a second, which is amid a round.
            heap::adjust(0);
            next = table.move_blocks(position, 256, &mut mover, |_, _| ());
        }
        moved += mover.moved;
    }
}

#[test]
fn moving_ends_at_the_ratio_and_rests_whatever_changed() {
    let near = |slow: f64, when: &str| {
        assert!((slow_share() - slow).abs() < 0.02, "{when}: {} and not {slow}", slow_share());
    };
    for tables in [Memory::Fast, Memory::Slow] {
        let _turn = Turn::with(ratio(1, 3));
        heap::set_tables(tables);
        let mut dice = Dice(11);
        let mut table = KeyTable::new(KeyHasher::fixed(1));
        // A third of the values lies on a tier, of which the entry alone is left.
        for number in 0..60_000 {
            let (key, hash, entry) = entry_of(&table, number, dice.below(400));
            let cold = Payload::Cold(Cold { place: number as u64 + 1, count: 0, due: None });
            let is_cold = number % 3 == 0;
            table.insert(hash, if is_cold { Entry::new(&key, cold, None) } else { entry });
        }
        near(0.75, "after the load");
        let mut bytes = heap::usage().unwrap();
        for (fast, slow) in [(1, 1), (1, 8), (3, 1), (1, 3)] {
            heap::set_policy(ratio(fast, slow));
            let (_, moved) = move_to_rest(&mut table);
            assert!(moved > 1000, "{fast}:{slow}: {moved}");
            near(f64::from(slow) / f64::from(fast + slow), "after another ratio");
            assert_eq!(move_to_rest(&mut table), (0, 0), "{fast}:{slow}: it rests");
            let now = heap::usage().unwrap();
            assert_eq!(now.fast_bytes + now.slow_bytes, bytes.fast_bytes + bytes.slow_bytes);
            bytes = now;
        }
        // Half of the keys go: the long values, so that most of what goes was slow.
        for number in 0..60_000 {
            let (key, hash, _) = entry_of(&table, number, 0);
            let is_long = |entry: EntryRef<'_, ()>| entry.allocated_bytes() > 200;
            if table.find(hash, &key).is_some_and(is_long) {
                table.remove(hash, &key);
            }
        }
        assert!(table.len() < 45_000);
        let (_, moved) = move_to_rest(&mut table);
        assert!(moved > 1000, "{moved}");
        near(0.75, "after half the keys went");
        for _ in 0..3 {
            assert_eq!(move_to_rest(&mut table), (0, 0), "it rests");
        }
        assert_eq!(table.iter().count(), table.len());
        assert!(table.iter().any(|entry| entry.is_cold()));
    }
}

#[test]
fn values_are_freed_on_other_threads() {
    let _turn = Turn::with(ratio(1, 3));
    let (sender, receiver) = mpsc::channel::<Vec<ByteBox>>();
    let freeing = thread::spawn(move || receiver.into_iter().map(|some| some.len()).sum::<usize>());
    let allocating = (0..3).map(|seed| {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut dice = Dice(seed);
            for _ in 0..200 {
                let some = (0..100).map(|_| ByteBox::zeroed(dice.below(3000))).collect();
                sender.send(some).unwrap();
            }
        })
    });
    allocating.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
    drop(sender);
    assert_eq!(freeing.join().unwrap(), 60_000);
}
