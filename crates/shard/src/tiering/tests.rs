mod faults;

use super::reading::READING_SHARE;
use super::shrinking::SHRINK_NANOS;
use super::*;
use base::disk::DiskJob;
use base::time::SECOND;
use base::{DatabaseId, HashKey};
use engine::cold::ColdValue;
use engine::digest::Digest;
use engine::effect::{DeleteReason, Effect};
use engine::settings::Settings;
use std::ops::RangeFrom;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use tier::Keys;

pub(crate) const NOW: UnixMillis = UnixMillis(1);
pub(crate) const HERE: DatabaseId = DatabaseId(0);
pub(crate) const DELETE: Effect<'_> = Effect::Delete { reason: DeleteReason::Command };

/// A queue whose jobs run when the test says so.
#[derive(Clone, Default)]
pub(crate) struct Queue(Arc<Mutex<Jobs>>);

#[derive(Default)]
pub(crate) struct Jobs {
    submitted: u64,
    pub queued: VecDeque<(DiskTicket, DiskJob)>,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

impl Queue {
    pub fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.0.lock().expect("no test panics with it")
    }

    /// Runs the job that was submitted last, as if those before took long.
    fn run_last(&self) {
        let mut jobs = self.jobs();
        let last = jobs.queued.pop_back();
        jobs.done.extend(last.map(|(ticket, job)| (ticket, job())));
    }

    pub fn run(&self) {
        let mut jobs = self.jobs();
        while let Some((ticket, job)) = jobs.queued.pop_front() {
            let outcome = job();
            jobs.done.push((ticket, outcome));
        }
    }
}

impl DiskQueue for Queue {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        let mut jobs = self.jobs();
        jobs.submitted += 1;
        let ticket = DiskTicket(jobs.submitted);
        jobs.queued.push_back((ticket, job));
        ticket
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        done.append(&mut self.jobs().done);
    }

    fn drain(&mut self) {
        self.run();
    }
}

/// A file in memory.
#[derive(Default)]
struct File {
    bytes: Mutex<Vec<u8>>,
    /// So many reads to come fail, and so many cuts.
    failing_reads: AtomicU64,
    failing_cuts: AtomicU64,
}

impl File {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().expect("no test panics with it")
    }
}

/// Fails if it is to fail another time.
fn fail(times: &AtomicU64) -> io::Result<()> {
    let left = |left: u64| left.checked_sub(1);
    match times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
        Ok(_) => Err(io::Error::other("the test has it fail")),
        Err(_) => Ok(()),
    }
}

impl DiskFile for File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        fail(&self.failing_reads)?;
        let bytes = self.bytes();
        let from = (offset as usize).min(bytes.len());
        let count = into.len().min(bytes.len() - from);
        into[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut all = self.bytes();
        let end = offset as usize + bytes.len();
        let length = all.len().max(end);
        all.resize(length, 0);
        all[offset as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        fail(&self.failing_cuts)?;
        self.bytes().resize(length as usize, 0);
        Ok(())
    }

    fn allocate(&self, _offset: u64, _length: u64) -> io::Result<()> {
        Ok(())
    }

    fn stands_at(&self, _path: &Path) -> io::Result<bool> {
        Ok(false)
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Four records of a value to a piece, four pieces to a segment.
const LIMITS: tier::Limits = tier::Limits {
    segment_bytes: 16 << 10,
    piece_bytes: 4 << 10,
    packed_bytes_max: 4 << 10,
    record_bytes_max: 4 << 10,
    buffered_bytes_max: 16 << 10,
    writes_max: 1,
    fill_percent_max: 90,
    free_percent_min: 5,
    free_segments_min: 4,
    reserve_segments: 2,
    room_percent_min: 5,
    file_bytes_max: u64::MAX,
};

/// A keyspace with a tier of eight segments.
pub(crate) struct Tiered {
    pub keyspace: Keyspace,
    /// The same without a tier.
    pub twin: Keyspace,
    pub tiering: Tiering,
    pub reads: Queue,
    writes: Queue,
    file: Arc<File>,
}

impl Tiered {
    pub fn new() -> Self {
        Self::with(TieringLimits { tier: LIMITS, ..TieringLimits::default() })
    }

    fn with(limits: TieringLimits) -> Self {
        let (reads, writes) = (Queue::default(), Queue::default());
        let file = Arc::new(File::default());
        let files = TierFiles {
            file: Arc::clone(&file) as Arc<dyn DiskFile>,
            room_bytes: u64::MAX,
            reads: Box::new(reads.clone()),
            writes: Box::new(writes.clone()),
            urgent: Box::new(Queue::default()),
            keys: Box::new(Box::new(Keys::new(&std::array::from_fn(|number| number as u8)))),
        };
        let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(1));
        let mut tiering = Tiering::new(files, limits, 8 * limits.tier.segment_bytes as u64);
        tiering.serve(&mut keyspace);
        let twin = Keyspace::new(Settings::default(), HashKey::fixed(1));
        Self { keyspace, twin, tiering, reads, writes, file }
    }

    fn apply(&mut self, key: &str, effect: &Effect<'_>) {
        for keyspace in [&mut self.keyspace, &mut self.twin] {
            keyspace.apply(HERE, key.as_bytes(), effect).expect("it fits");
        }
    }

    /// Gives a key a value of which four fill a page, and moves it out.
    pub fn put(&mut self, key: &str, byte: u8) {
        self.apply(key, &Effect::SetString { value: &[byte; 990], expire_at: None });
        self.keyspace.spill_all(NOW);
    }

    /// Gives keys values until one of them finds no room on the file; their names.
    fn fill(&mut self) -> Vec<String> {
        let mut keys = Vec::new();
        while keys.last().is_none_or(|key: &String| self.place(key).is_some()) {
            keys.push(format!("key{}", keys.len()));
            self.put(&keys[keys.len() - 1], 1);
            self.settle();
        }
        keys
    }

    /// Deletes every other value of a full tier, and puts more until a segment is being read to be
    /// cleaned; the keys that it was filled with, and numbers of further ones.
    fn begin_cleaning(&mut self) -> (Vec<String>, RangeFrom<usize>) {
        let keys = self.fill();
        for key in keys.iter().step_by(2) {
            self.apply(key, &DELETE);
        }
        let mut more = 0..;
        while !self.tiering.cleaner.is_busy() {
            self.writes.run();
            self.poll();
            self.put(&format!("more{}", more.next().expect("it has no end")), 1);
            self.poll();
        }
        (keys, more)
    }

    fn flush(&mut self) {
        self.apply("", &Effect::FlushAll);
    }

    pub fn poll(&mut self) -> Vec<Place> {
        let mut arrived = Vec::new();
        self.tiering.poll(&mut self.keyspace, MonotonicNanos(0), &mut arrived);
        arrived
    }

    /// Writes what is to be written, and cleans what is to be cleaned.
    pub fn settle(&mut self) {
        self.keyspace.cold_mut().expect("it has a tier").tier.close_pieces();
        for _ in 0..100 {
            self.poll();
            self.writes.run();
        }
        self.poll();
    }

    pub fn place(&self, key: &str) -> Option<Place> {
        self.keyspace.cold_place(HERE, key.as_bytes())
    }

    fn fetch(&mut self, key: &str) -> bool {
        self.fetch_for(key, Need::Few)
    }

    fn fetch_for(&mut self, key: &str, need: Need) -> bool {
        let value = self.keyspace.cold_value(HERE, key.as_bytes(), || i64::MIN);
        let hash = self.keyspace.hash(key.as_bytes());
        self.tiering.fetch(&mut self.keyspace, hash, value.expect("it is not in memory"), need)
    }

    /// Whether all values are what they were made, wherever they lie.
    pub fn is_whole(&self) -> bool {
        Digest::of_keyspace(&self.keyspace) == Digest::of_keyspace(&self.twin)
    }
}

#[test]
fn a_read_under_way_brings_nothing_to_who_has_its_place_later() {
    let mut tiered = Tiered::new();
    tiered.put("key", 1);
    tiered.settle();
    assert!(tiered.fetch("key"), "it lies on the file");
    tiered.reads.run();
    let place = tiered.place("key");
    tiered.flush();
    tiered.put("key", 2);
    assert_eq!(tiered.place("key"), place);
    assert_eq!(tiered.poll(), place.into_iter().collect::<Vec<_>>(), "who waits looks again");
    assert_eq!(tiered.place("key"), place);
    assert!(!tiered.fetch("key"), "it is not on the file yet");
    assert!(tiered.is_whole(), "it has what was there before");
}

#[test]
fn a_cleaning_that_waits_for_room_ends_when_all_is_flushed() {
    let mut tiered = Tiered::new();
    let (keys, more) = tiered.begin_cleaning();
    // New values take the room in memory that its records need.
    for number in more.take(12) {
        tiered.put(&format!("more{number}"), 1);
    }
    for _ in 0..8 {
        if !tiered.tiering.cleaner.waits() {
            tiered.writes.run_last();
            tiered.poll();
        }
    }
    assert!(tiered.tiering.cleaner.waits(), "some of it has no room");
    tiered.flush();
    for key in &keys {
        tiered.put(key, 2);
    }
    for _ in 0..100 {
        tiered.poll();
        tiered.writes.run();
    }
    assert!(!tiered.tiering.cleaner.waits(), "it has ended");
    assert!(tiered.is_whole(), "some have what was there before");
}

#[test]
fn a_request_that_needs_many_values_leaves_reads_to_others() {
    let mut tiered = Tiered::new();
    tiered.tiering.limits.reads_max = 4;
    for number in 0..20 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    for number in 0..19 {
        assert!(tiered.fetch_for(&format!("key{number}"), Need::Many));
    }
    assert_eq!(tiered.reads.jobs().queued.len(), 2, "half of what may be read at a time");
    let last = tiered.place("key19");
    assert!(tiered.fetch("key19"));
    tiered.reads.run_last();
    assert_eq!(tiered.poll(), last.into_iter().collect::<Vec<_>>(), "it did not wait for them");
    for _ in 0..20 {
        tiered.reads.run();
        tiered.poll();
    }
    assert_eq!(tiered.keyspace.cold_keys(), 0);
    assert!(tiered.is_whole());
}

#[test]
fn a_request_that_needs_many_values_has_its_reads_however_many_others_there_are() {
    let mut tiered = Tiered::new();
    tiered.tiering.limits.reads_max = 2;
    for number in 0..20 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    // Others that never end stand in the queue before those of the long request.
    for number in 0..10 {
        assert!(tiered.fetch(&format!("key{number}")));
    }
    for number in 10..20 {
        assert!(tiered.fetch_for(&format!("key{number}"), Need::Many));
    }
    let is_here = |tiered: &Tiered, number: u8| tiered.place(&format!("key{number}")).is_none();
    while !(0..10).all(|number| is_here(&tiered, number)) {
        tiered.reads.run();
        tiered.poll();
    }
    assert!((10..20).filter(|number| is_here(&tiered, *number)).count() >= 5);
}

#[test]
fn while_nobody_waits_for_a_single_value_more_are_read_at_a_time() {
    let mut tiered = Tiered::new();
    (tiered.tiering.limits.reads_max, tiered.tiering.limits.patient_reads_max) = (2, 8);
    for number in 0..20 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    tiered.tiering.be_patient(true);
    for number in 0..19 {
        assert!(tiered.fetch_for(&format!("key{number}"), Need::Many));
    }
    assert_eq!(tiered.reads.jobs().queued.len(), 8);
    tiered.tiering.be_patient(false);
    assert!(tiered.fetch("key19"));
    tiered.reads.run_last();
    tiered.poll();
    assert!(tiered.place("key19").is_none(), "it waited for none of them");
    tiered.reads.run();
    tiered.poll();
    assert_eq!(tiered.reads.jobs().queued.len(), 1, "a client may come at any time");
    for _ in 0..20 {
        tiered.reads.run();
        tiered.poll();
    }
    assert_eq!(tiered.keyspace.cold_keys(), 0);
    assert!(tiered.is_whole());
}

#[test]
fn long_values_of_a_request_that_needs_many_leave_memory_to_others() {
    let mut tiered = Tiered::new();
    tiered.tiering.limits.reads_max = 4;
    // A single read takes all there is.
    tiered.tiering.limits.read_bytes_max = 1;
    for number in 0..20 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    for number in 0..19 {
        assert!(tiered.fetch_for(&format!("key{number}"), Need::Many));
    }
    assert_eq!(tiered.reads.jobs().queued.len(), 1);
    let last = tiered.place("key19");
    assert!(tiered.fetch("key19"));
    tiered.reads.run_last();
    assert_eq!(tiered.poll(), last.into_iter().collect::<Vec<_>>(), "it did not wait for them");
    for _ in 0..20 {
        assert!(tiered.reads.jobs().queued.len() <= 1, "there is no memory for two");
        tiered.reads.run();
        tiered.poll();
    }
    assert_eq!(tiered.keyspace.cold_keys(), 0);
    assert!(tiered.is_whole());
}

#[test]
fn a_value_that_somebody_needs_alone_does_not_wait_among_the_many_of_another() {
    let mut tiered = Tiered::new();
    tiered.tiering.limits.reads_max = 2;
    for number in 0..20 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    for number in 0..20 {
        assert!(tiered.fetch_for(&format!("key{number}"), Need::Many));
    }
    let last = tiered.place("key19").expect("it is not in memory");
    for _ in 0..2 {
        assert!(tiered.fetch("key19"), "it is being waited for, once");
    }
    tiered.reads.run_last();
    assert_eq!(tiered.poll(), [last]);
    while tiered.keyspace.cold_keys() > 0 {
        assert!(!tiered.reads.jobs().queued.is_empty());
        tiered.reads.run();
        tiered.poll();
    }
    assert!(tiered.is_whole());
}

#[test]
fn what_a_value_takes_in_memory_counts_while_it_is_read() {
    let mut tiered = Tiered::new();
    tiered.put("key", 1);
    tiered.settle();
    let value = tiered.keyspace.cold_value(HERE, b"key", || i64::MIN).expect("it is cold");
    // As a table may.
    let value = ColdValue { bytes: 4 * value.place.length(), ..value };
    let hash = tiered.keyspace.hash(b"key");
    assert!(tiered.tiering.fetch(&mut tiered.keyspace, hash, value, Need::Few));
    let coming = tiered.keyspace.cold().expect("it has a tier").coming_bytes;
    assert!(coming >= 5 * value.place.length(), "{coming}");
}

#[test]
fn who_needs_more_than_one_long_value_needs_many() {
    let tiered = Tiered::new();
    let (tiering, max) = (&tiered.tiering, tiered.tiering.limits.reads_max);
    assert_eq!(tiering.need_of(max, 500 * max), Need::Few);
    assert_eq!(tiering.need_of(max + 1, 500 * max), Need::Many);
    assert_eq!(tiering.need_of(1, 7 << 20), Need::Few, "nobody can need less");
    assert_eq!(tiering.need_of(2, 7 << 20), Need::Many);
}

#[test]
fn values_that_have_come_are_taken_up_in_more_than_one_turn() {
    let mut tiered = Tiered::new();
    for number in 0..9 {
        tiered.put(&format!("key{number}"), number);
        tiered.settle();
    }
    let value = tiered.keyspace.cold_value(HERE, b"key0", || i64::MIN).expect("it is cold");
    tiered.tiering.limits.taken_bytes_max = 4 * value.bytes;
    for number in 0..9 {
        assert!(tiered.fetch(&format!("key{number}")));
    }
    tiered.reads.run();
    let used = tiered.keyspace.used_bytes();
    let arrived: Vec<_> = std::iter::from_fn(|| {
        let count = tiered.poll().len();
        assert!(tiered.keyspace.used_bytes() <= used, "it was counted before it came");
        (count > 0).then_some((count, tiered.tiering.has_ended_reads()))
    })
    .collect();
    assert_eq!(arrived, [(4, true), (4, true), (1, false)]);
    assert!(tiered.is_whole());
}

#[test]
fn a_full_tier_whose_empty_segments_a_snapshot_holds_has_room_soon() {
    let mut tiered = Tiered::new();
    let mut keys = tiered.fill();
    assert_eq!(tiered.tiering.spill(&mut tiered.keyspace, 1, NOW), Spilled::Nothing);
    // It notes the places of some, which must be kept until it has read them.
    tiered.keyspace.begin_snapshot(NOW);
    for key in &keys[..keys.len() - 2] {
        tiered.keyspace.apply(HERE, key.as_bytes(), &DELETE).expect("it fits");
    }
    // More take what was free.
    keys.clear();
    while keys.last().is_none_or(|key: &String| tiered.place(key).is_some()) {
        keys.push(format!("more{}", keys.len()));
        tiered.put(&keys[keys.len() - 1], 1);
        tiered.keyspace.cold_mut().expect("it has a tier").tier.close_pieces();
        tiered.writes.run();
        tiered.tiering.take_writes(&mut tiered.keyspace);
        tiered.tiering.submit_writes(&mut tiered.keyspace);
    }
    let cold_keys = tiered.keyspace.cold_keys();
    assert_eq!(tiered.tiering.spill(&mut tiered.keyspace, 1, NOW), Spilled::Behind);
    while !tiered.keyspace.walk_snapshot(100, 1 << 20) {
        tiered.poll();
        tiered.reads.run();
    }
    tiered.keyspace.spill_all(NOW);
    assert!(tiered.keyspace.cold_keys() > cold_keys, "what was held is free");
}

#[test]
fn what_a_snapshot_reads_is_taken_up_in_more_than_one_turn() {
    let mut tiered = Tiered::new();
    for number in 0..450 {
        // Some begin in the same page and end in another one.
        let value = &[1; 170][..70 + 100 * usize::from(number % 3 == 0)];
        let effect = Effect::SetString { value, expire_at: None };
        tiered.apply(&format!("key{number}"), &effect);
        if number % 50 == 49 {
            tiered.keyspace.spill_all(NOW);
            tiered.settle();
        }
    }
    assert_eq!(tiered.keyspace.cold_keys(), 450);
    tiered.keyspace.begin_snapshot(NOW);
    assert!(!tiered.keyspace.walk_snapshot(1000, 1 << 20), "it waits for the values");
    tiered.poll();
    tiered.reads.run();
    // Amid a turn, who waits for a value does not wait for these.
    tiered.tiering.take_arrived(&mut tiered.keyspace, &mut Vec::new());
    let before = tiered.tiering.statistics.reads;
    let read: Vec<_> = std::iter::from_fn(|| {
        let has_ended = tiered.tiering.has_ended_reads();
        tiered.poll();
        has_ended.then(|| tiered.tiering.statistics.reads - before)
    })
    .collect();
    // Some are in buffers, and need not be read.
    assert!(matches!(read[..], [256, 400..=450]), "{read:?}");
    assert_eq!(tiered.tiering.statistics.failed_reads, 0);
    let steps = (1..20).find(|_| tiered.keyspace.walk_snapshot(1000, 1 << 20));
    assert!(
        steps.is_some_and(|it| it > 1),
        "it has all of them, and writes some at a time: {steps:?}"
    );
}

/// Of 5 MB of values so many bytes are more than `maxmemory`, and the tier has room for them.
fn with_memory_lacking(over: u64, limits: TieringLimits) -> Tiered {
    let mut tiered = Tiered::with(limits);
    tiered.tiering.set_capacity(&mut tiered.keyspace, 8 << 20);
    for number in 0..5000 {
        let effect = Effect::SetString { value: &[1; 990], expire_at: None };
        tiered.apply(&format!("key{number}"), &effect);
    }
    tiered.keyspace.settings.maxmemory = tiered.keyspace.used_bytes() as u64 - over;
    tiered
}

fn lacking(tiered: &Tiered) -> u64 {
    tiered.keyspace.bytes_over_limit(0) as u64
}

fn part_of_room(tiered: &mut Tiered) -> Made {
    part_of_room_for(tiered, RoomFor::Growing)
}

fn part_of_room_for(tiered: &mut Tiered, room_for: RoomFor) -> Made {
    let Tiered { tiering, keyspace, .. } = tiered;
    tiering.make_part_of_room(keyspace, 0, room_for, NOW)
}

#[test]
fn a_request_makes_a_part_of_the_room_that_is_lacking() {
    let over = 4 << 20;
    let tier = tier::Limits { buffered_bytes_max: 8 << 20, ..LIMITS };
    let mut tiered = with_memory_lacking(over, TieringLimits { tier, ..TieringLimits::default() });
    assert_eq!(part_of_room(&mut tiered), Made::More);
    let freed = over - lacking(&tiered);
    assert!((over / 8..over / 4).contains(&freed), "{freed}");
    while part_of_room(&mut tiered) == Made::More {
        tiered.writes.run();
        tiered.poll();
    }
    assert_eq!(lacking(&tiered), 0);
}

#[test]
fn the_requests_of_a_turn_take_few_steps_together_while_little_is_lacking() {
    let tier = tier::Limits { buffered_bytes_max: 8 << 20, ..LIMITS };
    let limits = TieringLimits { tier, buckets_per_step: 4, ..TieringLimits::default() };
    let mut tiered = with_memory_lacking(30 << 10, limits);
    tiered.tiering.shared_steps_left = 0;
    assert_eq!(part_of_room(&mut tiered), Made::More, "each of them takes one");
    assert!((1..30 << 10).contains(&lacking(&tiered)));
    tiered.poll();
    assert_eq!(part_of_room(&mut tiered), Made::Done, "another turn takes as many as it may");
    assert!(tiered.tiering.shared_steps_left < SHARED_STEPS);
    let mut tiered = with_memory_lacking(500, limits);
    tiered.tiering.shared_steps_left = 0;
    assert_eq!(part_of_room(&mut tiered), Made::Done, "one was enough");
    let mut tiered = with_memory_lacking(3 << 20, limits);
    tiered.tiering.shared_steps_left = 0;
    part_of_room_for(&mut tiered, RoomFor::Other);
    let still = lacking(&tiered);
    assert!(((3 << 20) - (20 << 10)..3 << 20).contains(&still), "it adds nothing: {still}");
    part_of_room_for(&mut tiered, RoomFor::Turn);
    let ended = lacking(&tiered);
    assert!(still - ended > 3 * ((3 << 20) - still), "the turn takes some for itself: {ended}");
    part_of_room(&mut tiered);
    let by_request = ended - lacking(&tiered);
    assert!(by_request > 10 * ((3 << 20) - still), "much is lacking: it takes many: {by_request}");
}

#[test]
fn requests_go_on_while_very_much_leaves_memory_as_fast_as_it_can() {
    let over = 4 << 20;
    let limits =
        TieringLimits { tier: LIMITS, encoded_per_turn: 4 << 10, ..TieringLimits::default() };
    let mut tiered = with_memory_lacking(over, limits);
    let mut passed_at = Vec::new();
    while lacking(&tiered) > 0 {
        // The buffers have room for less than a part.
        let is_behind = part_of_room(&mut tiered) == Made::Behind;
        if is_behind && tiered.tiering.lets_pass(&tiered.keyspace, 0) {
            passed_at.push(lacking(&tiered));
        }
        tiered.writes.run();
        tiered.poll();
    }
    assert!(passed_at.len() > 100, "{passed_at:?}");
    assert!(passed_at[0] > over / 10 * 9, "{passed_at:?}");
    assert!(passed_at.is_sorted_by(|one, next| one >= &(next + (4 << 10))), "{passed_at:?}");
}

#[test]
fn who_waited_for_a_tier_in_vain_does_not_wait_again_before_it_takes_something() {
    let mut tiered = Tiered::new();
    for number in 0..100 {
        let effect = Effect::SetString { value: &[1; 990], expire_at: None };
        tiered.apply(&format!("key{number}"), &effect);
    }
    let limit = tiered.keyspace.used_bytes() as u64 - 36_000;
    tiered.keyspace.settings.maxmemory = limit;
    let room = |tiered: &mut Tiered, at: u64| {
        let Tiered { tiering, keyspace, .. } = tiered;
        tiering.poll(keyspace, MonotonicNanos(at), &mut Vec::new());
        tiering.make_room(keyspace, 0, NOW)
    };
    // The buffers take some, and are not written.
    assert_eq!(room(&mut tiered, 1), Made::Behind);
    assert_eq!(room(&mut tiered, SECOND), Made::Behind);
    assert_eq!(room(&mut tiered, SECOND + 1), Made::Done);
    assert_eq!(tiered.tiering.behind_since(), Some(MonotonicNanos(1)));
    // Whoever made room otherwise made it for a moment.
    tiered.keyspace.settings.maxmemory = limit * 2;
    assert_eq!(room(&mut tiered, SECOND + 2), Made::Done);
    assert_eq!(tiered.tiering.behind_since(), None);
    tiered.keyspace.settings.maxmemory = limit;
    assert_eq!(room(&mut tiered, SECOND + 3), Made::Done, "it counts as full");
    for _ in 0..10 {
        tiered.writes.run();
        room(&mut tiered, SECOND + 4);
    }
    tiered.keyspace.settings.maxmemory = tiered.keyspace.used_bytes() as u64 - 36_000;
    assert_eq!(room(&mut tiered, SECOND + 5), Made::Behind, "it takes values again");
    // What leaves without a write shows as well that it is not full.
    tiered.tiering.late.freed_at = MonotonicNanos(3 * SECOND);
    assert_eq!(room(&mut tiered, 4 * SECOND - 1), Made::Behind);
    assert_eq!(room(&mut tiered, 4 * SECOND), Made::Done);
}

/// As [`LIMITS`], with long records, which are pieces of their own; and values that are encoded and
/// decoded as long ones are.
fn long_limits() -> TieringLimits {
    let tier = tier::Limits {
        segment_bytes: 32 << 10,
        packed_bytes_max: 2 << 10,
        record_bytes_max: 16 << 10,
        buffered_bytes_max: 40 << 10,
        ..LIMITS
    };
    let cold = ColdLimits { slice_bytes: 1 << 10, ..ColdLimits::default() };
    TieringLimits { tier, cold, built_bytes_min: 1 << 10, ..TieringLimits::default() }
}

impl Tiered {
    /// Gives a key a list of so many bytes, about.
    fn push(&mut self, key: &str, bytes: usize) {
        for number in 0..bytes / 100 {
            let mut element = vec![number as u8; 98];
            element[..key.len()].copy_from_slice(key.as_bytes());
            let end = engine::effect::End::Tail;
            self.apply(key, &Effect::ListPush { end, value: &element });
        }
    }
}

#[test]
fn a_long_value_is_decoded_by_who_brings_it_whether_it_is_written_or_not() {
    let mut tiered = Tiered::with(long_limits());
    tiered.push("list", 12_000);
    tiered.keyspace.spill_all(NOW);
    for is_written in [false, true] {
        if is_written {
            tiered.settle();
        }
        let place = tiered.place("list");
        assert!(tiered.fetch("list"), "a thread decodes it");
        assert!(tiered.place("list").is_some());
        tiered.reads.run();
        assert_eq!(tiered.poll(), place.into_iter().collect::<Vec<_>>());
        assert_eq!(tiered.place("list"), None);
        assert_eq!(tiered.tiering.statistics.reads, u64::from(is_written));
        assert!(tiered.is_whole());
        tiered.keyspace.spill_all(NOW);
    }
    // What was changed meanwhile stays as it is now.
    assert!(tiered.fetch("list"));
    tiered.reads.run();
    tiered.apply("list", &DELETE);
    tiered.push("list", 500);
    tiered.poll();
    assert!(tiered.is_whole());
}

#[test]
fn a_damaged_long_value_is_read_twice_and_then_lost() {
    let mut tiered = Tiered::with(long_limits());
    tiered.push("list", 12_000);
    tiered.keyspace.spill_all(NOW);
    tiered.settle();
    let length = tiered.tiering.file.length().expect("it is in memory");
    let noise = vec![7; length as usize];
    tiered.tiering.file.write_at(0, &noise).expect("it is in memory");
    assert!(tiered.fetch("list"));
    for _ in 0..2 {
        assert_eq!(tiered.keyspace.cold_failure(), None);
        tiered.reads.run();
        tiered.poll();
    }
    assert!(tiered.keyspace.cold_failure().is_some());
    assert_eq!(tiered.tiering.statistics.failed_reads, 2);
    assert!(tiered.place("list").is_some(), "it is not taken for absent");
}

#[test]
fn long_values_of_a_segment_that_is_cleaned_are_handed_over() {
    let mut tiered = Tiered::with(long_limits());
    let mut round = 0;
    while tiered.tiering.statistics.cleaned_segments < 20 {
        for number in 0..18 {
            let key = format!("list{number}");
            // Some stay, beside others that go.
            if (number + round) % 3 > 0 || round == 0 {
                tiered.apply(&key, &DELETE);
                tiered.push(&key, 3000 + 100 * ((number + round) % 30));
            }
            tiered.keyspace.spill_all(NOW);
            tiered.settle();
        }
        round += 1;
        assert!(round < 100, "something is cleaned");
    }
    assert!(tiered.keyspace.cold_keys() > 12 && tiered.is_whole());
    assert!(tiered.keyspace.cold().expect("it has a tier").tier.figures().survivor_records > 0);
}

#[test]
fn a_long_value_leaves_over_several_turns_in_which_others_wait() {
    let limits = TieringLimits { encoded_per_turn: 700, ..long_limits() };
    let mut tiered = Tiered::with(limits);
    for number in 0..120 {
        tiered.apply("set", &Effect::SetAdd { member: format!("{number:0>98}").as_bytes() });
    }
    let used = tiered.keyspace.used_bytes() as u64;
    tiered.keyspace.settings.maxmemory = used - 1000;
    let make_room = |tiered: &mut Tiered| tiered.tiering.make_room(&mut tiered.keyspace, 0, NOW);
    let mut turns = 0;
    while make_room(&mut tiered) != Made::Done {
        assert!(tiered.keyspace.cold().expect("it has a tier").encodes_next_turn());
        tiered.poll();
        turns += 1;
        assert!(turns < 100, "it comes to an end");
    }
    // At least sixteen members are encoded at a time.
    assert!(turns > 4, "{turns}");
    assert!(tiered.place("set").is_some());
    tiered.settle();
    assert!(tiered.is_whole());
}

#[test]
fn reads_under_way_take_a_part_of_maxmemory_and_count_with_what_is_made_of_them() {
    let mut tiered = Tiered::with(long_limits());
    let keys = ["one", "two", "three"];
    for key in keys {
        tiered.push(key, 9000);
        tiered.keyspace.spill_all(NOW);
        tiered.settle();
    }
    let read_bytes = |tiered: &Tiered, key: &str| {
        let place = tiered.place(key).expect("it is not in memory");
        tiered.keyspace.cold().expect("it has a tier").tier.read(place).length()
    };
    let coming = |tiered: &Tiered| tiered.keyspace.cold().expect("it has a tier").coming_bytes;
    let bytes = read_bytes(&tiered, "one");
    // A read has room whatever the limit is, a second one if the first has not exceeded it.
    for (share, at_once) in [(1, 1), (2 * bytes, 1), (2 * bytes + 1, 2), (usize::MAX / 16, 3)] {
        tiered.keyspace.settings.maxmemory = (READING_SHARE * share) as u64;
        let used = tiered.keyspace.used_bytes();
        for key in keys {
            assert!(tiered.fetch(key), "it lies on the file");
        }
        assert_eq!(tiered.reads.jobs().queued.len(), at_once, "{share}");
        let waited_for = keys.len() * WANTED_BYTES;
        assert_eq!(coming(&tiered), at_once * 2 * bytes + waited_for);
        assert_eq!(tiered.keyspace.used_bytes(), used + coming(&tiered));
        while coming(&tiered) > 0 {
            // What was read and is not taken up yet still counts.
            let before = coming(&tiered);
            tiered.reads.run();
            assert_eq!(coming(&tiered), before);
            tiered.poll();
        }
        assert!(keys.iter().all(|key| tiered.place(key).is_none()));
        tiered.keyspace.spill_all(NOW);
    }
    assert!(tiered.is_whole());
    // The bytes of what is not written yet count among the buffers.
    tiered.push("four", 9000);
    tiered.keyspace.spill_all(NOW);
    assert!(tiered.fetch("four"), "a thread decodes it");
    assert_eq!(coming(&tiered), read_bytes(&tiered, "four") + WANTED_BYTES);
}

#[test]
fn the_end_of_the_file_is_given_back_bit_by_bit_and_what_comes_meanwhile_stays() {
    let mut tiered = Tiered::new();
    let step = 2 * LIMITS.segment_bytes as u64;
    tiered.tiering.limits.shrunk_bytes_max = step;
    let length = |tiered: &Tiered| tiered.tiering.file.length().expect("it is in memory");
    let mut looks = 0;
    let mut look = |tiered: &mut Tiered| {
        looks += 1;
        let now = MonotonicNanos(looks * SHRINK_NANOS);
        tiered.tiering.poll(&mut tiered.keyspace, now, &mut Vec::new());
        tiered.writes.run();
    };
    tiered.fill();
    look(&mut tiered);
    let before = length(&tiered);
    assert!(before > 2 * step, "{before}");
    tiered.flush();
    look(&mut tiered);
    assert_eq!(length(&tiered), before - step);
    tiered.put("key", 2);
    tiered.keyspace.cold_mut().expect("it has a tier").tier.close_pieces();
    while length(&tiered) > step {
        let before = length(&tiered);
        look(&mut tiered);
        assert!(length(&tiered) < before && length(&tiered) >= before - step);
    }
    look(&mut tiered);
    let place = tiered.place("key").expect("it is not in memory");
    let cold = tiered.keyspace.cold().expect("it has a tier");
    assert!(!cold.tier.in_memory(place, &mut Vec::new()), "it was written");
    assert!(tiered.is_whole());
}
