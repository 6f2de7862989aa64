use super::*;
use base::heap::Misplaced;
use base::time::SECOND;
use base::{DatabaseId, HashKey};
use engine::effect::Effect;
use engine::settings::Settings;
use engine::value::EntryRef;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A clock that goes on by a microsecond with each look.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Ticking {
    fn pass(&self, nanos: u64) {
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for Ticking {
    fn unix_micros(&self) -> i64 {
        self.0.load(Ordering::Relaxed) as i64 / 1000
    }

    fn monotonic(&self) -> MonotonicNanos {
        self.pass(1000);
        MonotonicNanos(self.0.load(Ordering::Relaxed))
    }
}

/// How long it takes to look at a block.
const ASKED_NANOS: u64 = 500;

/// An allocator that has lost what the test says, and whose blocks are all sparse, or none.
struct Fake {
    lost_bytes: AtomicU64,
    surveys: AtomicU64,
    moves: AtomicBool,
    /// All blocks lie in the wrong one of two memories.
    misplaced: AtomicBool,
    /// Idle ones, rather.
    is_divided: AtomicBool,
    clock: Arc<Ticking>,
}

impl Heap for Fake {
    fn survey(&self) -> Holes {
        self.surveys.fetch_add(1, Ordering::Relaxed);
        Holes { used_bytes: 1000 << 20, lost_bytes: self.lost_bytes.load(Ordering::Relaxed) }
    }

    fn has_holes(&self, _: RangeInclusive<usize>) -> bool {
        true
    }

    fn is_sparse(&self, _: usize) -> bool {
        self.clock.pass(ASKED_NANOS);
        self.moves.load(Ordering::Relaxed)
    }

    fn wants_moves(&self) -> bool {
        self.misplaced.load(Ordering::Relaxed)
    }

    fn misplaced(&self, _: usize, bytes: usize) -> Misplaced {
        // As long as it takes to copy, of a large one a piece.
        let copied = if bytes > WHOLE_BYTES_MAX { 64 << 10 } else { bytes };
        self.clock.pass(copied as u64 / 4);
        match self.misplaced.load(Ordering::Relaxed) {
            false => Misplaced::No,
            true if self.is_divided.load(Ordering::Relaxed) => Misplaced::IfIdle,
            true => Misplaced::Yes,
        }
    }

    fn keep_freed(&self, _: Option<u64>) {}

    fn moving(&self, work: &mut dyn FnMut()) {
        work();
    }
}

const SETTINGS: CompactionSettings = CompactionSettings {
    is_on: true,
    lost_bytes_min: 50 << 20,
    lost_percent_min: 10,
    lost_percent_max: 100,
    time_percent_min: 1,
    time_percent_max: 25,
    elements_max: 1000,
    kept_millis: None,
};

struct Scene {
    heap: Arc<Fake>,
    clock: Arc<Ticking>,
    compaction: Compaction,
    keyspace: Keyspace,
}

impl Scene {
    fn new(settings: CompactionSettings) -> Self {
        let clock = Arc::new(Ticking::default());
        let heap = Arc::new(Fake {
            lost_bytes: AtomicU64::new(0),
            surveys: AtomicU64::new(0),
            moves: AtomicBool::new(true),
            misplaced: AtomicBool::new(false),
            is_divided: AtomicBool::new(false),
            clock: clock.clone(),
        });
        let compaction = Compaction::new(Some(heap.clone()), clock.clone(), settings);
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
        for index in 0..KEYS {
            let set = Effect::SetString { value: &[1; 100], expire_at: None };
            keyspace.apply(DatabaseId(0), &index.to_le_bytes(), &set).expect("it fits");
        }
        Self { heap, clock, compaction, keyspace }
    }

    fn lose(&self, mebibytes: u64) {
        self.heap.lost_bytes.store(mebibytes << 20, Ordering::Relaxed);
    }

    /// Turns of a millisecond for so long; how much of the time the compaction took.
    fn turn_for(&mut self, nanos: u64) -> u64 {
        let (until, mut taken) = (self.clock.monotonic().0 + nanos, 0);
        while self.clock.monotonic().0 < until {
            self.clock.pass(MILLISECOND);
            let before = self.clock.monotonic();
            self.compaction.advance(&mut self.keyspace);
            taken += self.clock.monotonic().since(before);
        }
        taken
    }

    fn find(&self, key: &[u8]) -> EntryRef<'_> {
        let hash = self.keyspace.hash(key);
        self.keyspace.database(DatabaseId(0)).find(hash, key).expect("it is there")
    }

    fn moved(&self) -> u64 {
        self.compaction.statistics.moved
    }
}

const KEYS: u32 = 30_000;

#[test]
fn a_round_begins_when_enough_is_lost_and_moves_every_block() {
    let mut scene = Scene::new(SETTINGS);
    scene.lose(99);
    scene.turn_for(SECOND);
    assert_eq!((scene.moved(), scene.compaction.running_percent()), (0, 0));
    assert!(scene.heap.surveys.load(Ordering::Relaxed) >= 9);
    scene.lose(101);
    scene.turn_for(SECOND / 5);
    assert_eq!(scene.compaction.running_percent(), 1);
    assert!(scene.compaction.running_since().is_some());
    // What is won shows at once.
    scene.lose(20);
    scene.turn_for(60 * SECOND);
    // Each entry, and buckets of the table.
    assert!((u64::from(KEYS)..2 * u64::from(KEYS)).contains(&scene.moved()), "{}", scene.moved());
    assert_eq!(scene.compaction.statistics.keys_moved, u64::from(KEYS));
    assert_eq!(scene.compaction.running_percent(), 0);
    assert!(scene.compaction.statistics.nanos > 0);
}

#[test]
fn the_more_is_lost_the_more_time_it_takes_but_never_long_at_once() {
    for (mebibytes, percent) in [(100, 1), (550, 13), (1000, 25), (5000, 25)] {
        let mut scene = Scene::new(SETTINGS);
        scene.lose(mebibytes);
        scene.turn_for(SECOND / 5 + 2 * MILLISECOND);
        assert_eq!(scene.compaction.running_percent(), percent, "of {mebibytes} MiB");
        let taken = scene.turn_for(10 * SECOND);
        let most = 10 * SECOND / 100 * (percent + 1);
        assert!((1..most).contains(&taken), "{taken} of {most}");
    }
    let mut scene = Scene::new(SETTINGS);
    scene.lose(5000);
    for _ in 0..400 {
        assert!(scene.turn_for(2000) < 2 * MILLISECOND);
    }
    assert!(scene.moved() > 0);
}

/// A heap that takes stock beside tells first what was lost when it was asked last.
#[test]
fn the_first_figures_after_a_rest_begin_no_round() {
    let mut scene = Scene::new(CompactionSettings::OFF);
    scene.lose(5000);
    for _ in 0..2 {
        scene.compaction.settings = SETTINGS;
        while scene.heap.surveys.load(Ordering::Relaxed) == 0 {
            scene.turn_for(MILLISECOND);
        }
        assert!(scene.compaction.running_since().is_none(), "they may be old");
        scene.compaction.settings = CompactionSettings::OFF;
        scene.turn_for(MILLISECOND);
        scene.heap.surveys.store(0, Ordering::Relaxed);
    }
    scene.compaction.settings = SETTINGS;
    scene.turn_for(SECOND / 5 + 2 * MILLISECOND);
    assert!(scene.compaction.running_since().is_some(), "the next ones are not");
}

#[test]
fn a_round_in_which_next_to_nothing_moves_is_not_repeated_until_it_is_worse() {
    let mut scene = Scene::new(SETTINGS);
    scene.heap.moves.store(false, Ordering::Relaxed);
    let rounds = |scene: &mut Scene| {
        let before = scene.compaction.statistics.stayed;
        scene.turn_for(60 * SECOND);
        (scene.compaction.statistics.stayed - before) / u64::from(KEYS)
    };
    scene.lose(200);
    assert_eq!(rounds(&mut scene), 1);
    assert_eq!(rounds(&mut scene), 0);
    scene.lose(230);
    assert_eq!(rounds(&mut scene), 1);
    // What was hopeless is forgotten once less is lost.
    scene.lose(10);
    scene.turn_for(SECOND);
    scene.lose(150);
    assert_eq!(rounds(&mut scene), 1);
    // While much moves there is hope, whatever is lost behind it: commands go on meanwhile.
    scene.heap.moves.store(true, Ordering::Relaxed);
    scene.lose(300);
    scene.turn_for(60 * SECOND);
    assert!(scene.moved() > 3 * u64::from(KEYS), "{}", scene.moved());
}

#[test]
fn nothing_is_done_where_it_is_off_or_the_allocator_does_not_tell() {
    let mut scene = Scene::new(CompactionSettings::OFF);
    scene.lose(5000);
    scene.turn_for(SECOND);
    assert_eq!(scene.heap.surveys.load(Ordering::Relaxed), 0);
    let mut scene = Scene::new(SETTINGS);
    scene.compaction = Compaction::new(None, scene.clock.clone(), SETTINGS);
    scene.turn_for(SECOND);
    assert_eq!(
        (scene.moved(), scene.compaction.wait_nanos(&scene.keyspace, MonotonicNanos(0))),
        (0, None)
    );
    // A round under way ends when it is turned off.
    let mut scene = Scene::new(SETTINGS);
    scene.lose(200);
    scene.turn_for(SECOND / 5);
    assert!(scene.compaction.running_percent() > 0);
    scene.compaction.settings.is_on = false;
    scene.turn_for(2000);
    assert_eq!(scene.compaction.running_percent(), 0);
}

#[test]
fn large_values_in_the_wrong_memory_are_moved_one_after_another() {
    let mut scene =
        Scene::new(CompactionSettings { elements_max: 1000, ..CompactionSettings::OFF });
    for index in 0..100_u32 {
        let set = Effect::SetString { value: &[1; 2 << 20], expire_at: None };
        scene.keyspace.apply(DatabaseId(0), &index.to_be_bytes(), &set).expect("it fits");
    }
    scene.heap.misplaced.store(true, Ordering::Relaxed);
    for _ in 0..2000 {
        assert!(scene.turn_for(2000) < 3 * MILLISECOND);
    }
    assert!(scene.moved() > 0);
}

#[test]
fn a_value_that_takes_long_to_copy_is_moved_a_piece_at_a_time() {
    let mut scene =
        Scene::new(CompactionSettings { elements_max: 1000, ..CompactionSettings::OFF });
    let appended = Effect::Append { bytes: &vec![1; 40 << 20] };
    scene.keyspace.apply(DatabaseId(0), b"large", &appended).expect("it fits");
    scene.heap.misplaced.store(true, Ordering::Relaxed);
    let mut longest = 0;
    for _ in 0..100_000 {
        longest = longest.max(scene.turn_for(2000));
        if scene.compaction.statistics.keys_moved > 0 && scene.compaction.running_since().is_none()
        {
            break;
        }
    }
    // Each key's entry, and the string.
    assert_eq!(scene.moved(), u64::from(KEYS) + 2);
    assert!(longest < 2 * MILLISECOND, "{longest}");
}

#[test]
fn idle_values_go_first_and_the_others_only_if_that_is_not_enough() {
    let mut scene =
        Scene::new(CompactionSettings { elements_max: 1000, ..CompactionSettings::OFF });
    let is_used = |index: u32| index.is_multiple_of(4);
    scene.clock.pass(1000 * SECOND);
    let seconds = scene.clock.unix_micros() / 1_000_000;
    for index in (0..KEYS).filter(|index| is_used(*index)) {
        scene.find(&index.to_le_bytes()).set_access(seconds as u32);
    }
    let addresses = |scene: &Scene| -> Vec<usize> {
        let key = |index: u32| scene.find(&index.to_le_bytes()).key();
        (0..KEYS).map(|index| key(index).as_ptr().addr()).collect()
    };
    let before = addresses(&scene);
    scene.heap.is_divided.store(true, Ordering::Relaxed);
    scene.heap.misplaced.store(true, Ordering::Relaxed);
    while scene.compaction.running_since().is_none() {
        scene.turn_for(2000);
    }
    while scene.compaction.running_since().is_some() {
        scene.turn_for(2000);
    }
    let after = addresses(&scene);
    let has_moved = |index: u32| before[index as usize] != after[index as usize];
    let moved = (0..KEYS).filter(|index| has_moved(*index)).count() as u32;
    assert!((0..KEYS).all(|index| !(is_used(index) && has_moved(index))), "{moved}");
    assert!(moved > KEYS / 2, "{moved}");
    let moved_before = scene.moved();
    scene.turn_for(20 * SECOND);
    assert!(scene.moved() - moved_before > u64::from(KEYS), "the next round takes any");
}
