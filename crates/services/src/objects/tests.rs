//! The protocol, over a store in memory and over a directory.

mod beginning;

use super::connect::in_memory;
use super::known::Known;
use super::names::{Life, Names, sequence_of};
use super::{Location, Objects, Service, Trouble};
use crate::bucket::faulty::{Fault, Faulty};
use crate::opening::Broken;
use base::{Clock, Incarnation, MonotonicNanos, Sequence};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use txlog::Refusal;
use txlog::remote::store::{Operation, Outcome};

const ALL: usize = usize::MAX;

/// Looks for something that takes a while, before it is called missing.
const LOOKS_MAX: usize = 10_000;

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().build().expect("a runtime needs no more than descriptors").block_on(work)
}

struct TestClock(Instant);

impl Clock for TestClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// A clock that begins to count when it is made.
#[expect(clippy::disallowed_methods, reason = "the waits that are tested are real")]
fn clock() -> Arc<dyn Clock> {
    Arc::new(TestClock(Instant::now()))
}

fn life(incarnation: u64, trim_age_ms: u64) -> Life {
    Life { incarnation: Incarnation(incarnation), trim_age_ms }
}

async fn connect(store: &Arc<dyn ObjectStore>, life: Life) -> io::Result<Arc<Objects>> {
    Objects::over(in_memory(store), Some(life), clock(), Trouble::default()).await.map(Arc::new)
}

/// A client of the log that stands there. One that is begun lets its records be trimmed at once.
async fn client(store: &Arc<dyn ObjectStore>) -> Arc<Objects> {
    connect(store, life(7, 0)).await.expect("the store is well")
}

fn faulty() -> (Arc<Faulty>, Arc<dyn ObjectStore>) {
    let faulty = Arc::new(Faulty::default());
    (Arc::clone(&faulty), faulty)
}

fn memory() -> Arc<dyn ObjectStore> {
    faulty().1
}

fn record(number: u64) -> Bytes {
    Bytes::from(format!("record {number}"))
}

async fn put(client: &Arc<Objects>, number: u64) -> Outcome {
    put_bytes(client, number, record(number)).await
}

async fn put_bytes(client: &Arc<Objects>, number: u64, bytes: Bytes) -> Outcome {
    Arc::clone(client).put(Sequence(number), bytes).await.await
}

async fn put_all(client: &Arc<Objects>, numbers: std::ops::RangeInclusive<u64>) {
    for number in numbers {
        assert_eq!(put(client, number).await, Outcome::Stored, "record {number}");
    }
}

async fn ask(client: &Arc<Objects>, question: Operation) -> Outcome {
    Arc::clone(client).answer(question).await
}

async fn get(client: &Arc<Objects>, from: u64) -> Outcome {
    ask(client, Operation::Get { from: Sequence(from), bytes_max: ALL, waits: false }).await
}

async fn tail(client: &Arc<Objects>) -> Outcome {
    ask(client, Operation::Tail).await
}

async fn trim(client: &Arc<Objects>, through: u64) -> Outcome {
    ask(client, Operation::Trim { through: Sequence(through) }).await
}

fn confirmed(sequence: u64) -> Outcome {
    Outcome::Tail { sequence: Sequence(sequence), is_confirmed: true }
}

fn first(sequence: u64) -> Outcome {
    Outcome::First { sequence: Sequence(sequence) }
}

fn trimmed(sequence: u64) -> Outcome {
    Outcome::Trimmed { first: Sequence(sequence) }
}

fn nothing(tail: u64) -> Outcome {
    Outcome::Records { records: Vec::new(), tail: Sequence(tail) }
}

/// Reads from a place to the end.
async fn read_all(client: &Arc<Objects>, from: u64) -> Vec<Bytes> {
    let mut read = Vec::new();
    loop {
        match get(client, from + read.len() as u64).await {
            Outcome::Records { records, .. } if records.is_empty() => return read,
            Outcome::Records { records, .. } => read.extend(records),
            other => panic!("reading gave {other:?}"),
        }
    }
}

fn assert_lost(outcome: &Outcome) {
    assert!(matches!(outcome, Outcome::Lost(_)), "{outcome:?}");
}

/// The names of all objects.
async fn objects(store: &Arc<dyn ObjectStore>) -> Vec<Path> {
    use futures_util::TryStreamExt;
    let listed = store.list(None).map_ok(|meta| meta.location);
    let mut names: Vec<Path> = listed.try_collect().await.expect("the store is well");
    names.sort();
    names
}

/// Where records stand, or ghosts.
async fn places(store: &Arc<dyn ObjectStore>) -> Vec<u64> {
    let paths = objects(store).await;
    let records = paths.iter().filter(|path| Names::is_record(path));
    let mut places: Vec<u64> = records.filter_map(sequence_of).map(|at| at.0).collect();
    places.sort_unstable();
    places
}

async fn count_records(store: &Arc<dyn ObjectStore>) -> usize {
    objects(store).await.iter().filter(|path| Names::is_record(path)).count()
}

/// Two clients go through a log's whole life.
async fn keeps_a_log(one: &Arc<Objects>, two: &Arc<Objects>) {
    assert_eq!(get(one, 1).await, nothing(0));
    assert_eq!(tail(one).await, confirmed(0));
    put_all(one, 1..=40).await;
    assert_eq!(tail(two).await, confirmed(40));
    let expected: Vec<Bytes> = (1..=40).map(record).collect();
    assert_eq!(read_all(two, 1).await, expected);
    assert_eq!(put_bytes(two, 40, Bytes::from_static(b"other")).await, Outcome::Misplaced);
    assert_eq!(put(two, 42).await, Outcome::Misplaced, "41 is not there yet");
    assert_eq!(put(two, 41).await, Outcome::Stored);
    assert_eq!(put(one, 41).await, Outcome::Misplaced);
    assert_eq!(get(one, 50).await, nothing(41));
    assert_eq!(trim(one, 30).await, first(31));
    assert_eq!(ask(two, Operation::First).await, first(31));
    assert_eq!(get(two, 30).await, trimmed(31));
    assert_eq!(read_all(two, 31).await.len(), 11);
    assert_eq!(trim(two, 99).await, first(41), "the newest record is never trimmed");
    assert_eq!(tail(two).await, confirmed(41));
    assert_eq!(put(one, 42).await, Outcome::Stored);
}

#[test]
fn a_log_is_kept_in_memory() {
    block_on(async {
        let memory = memory();
        keeps_a_log(&client(&memory).await, &client(&memory).await).await;
        // Where the log changed hands, or somebody tried: it is not told apart.
        assert_eq!(places(&memory).await, [1, 40, 41, 42]);
    });
}

#[test]
fn a_log_is_kept_in_a_directory() {
    block_on(async {
        let name = format!("kiln-objects-{}", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let url = format!("file-object:{}?trim_age_ms=0", path.display());
        let location = Location::parse(&url).expect("the URL is right");
        let connect =
            || Objects::connect(&location, clock(), Some(Incarnation(7)), Trouble::default());
        let one = Arc::new(connect().await.expect("the directory can be made"));
        let two = Arc::new(connect().await.expect("the log is there"));
        keeps_a_log(&one, &two).await;
        std::fs::remove_dir_all(&path).expect("the directory is there");
        assert_lost(&put(&one, 43).await);
        assert_lost(&get(&two, 43).await);
        std::fs::remove_dir_all(&path).expect("the put has made it anew");
    });
}

#[test]
fn a_client_that_comes_late_finds_the_end() {
    block_on(async {
        let memory = memory();
        let writer = client(&memory).await;
        for end in [1, 2, 3, 64, 65, 100] {
            let Outcome::Tail { sequence, .. } = tail(&writer).await else { panic!("a tail") };
            put_all(&writer, sequence.0 + 1..=end).await;
            assert_eq!(tail(&client(&memory).await).await, confirmed(end));
        }
        assert_eq!(trim(&writer, 90).await, first(91));
        assert_eq!(tail(&client(&memory).await).await, confirmed(100));
        assert_eq!(put(&client(&memory).await, 101).await, Outcome::Stored);
    });
}

#[test]
fn a_record_put_where_one_was_trimmed_does_not_count() {
    block_on(async {
        let memory = memory();
        let (paused, reader) = (client(&memory).await, client(&memory).await);
        put_all(&paused, 1..=3).await;
        assert_eq!(read_all(&reader, 1).await.len(), 3);
        // `paused` is about to put record 4 when another one takes the place.
        let other = client(&memory).await;
        put_all(&other, 4..=5).await;
        let candidate = client(&memory).await;
        assert_eq!(read_all(&candidate, 1).await.len(), 5);
        put_all(&other, 6..=8).await;
        assert_eq!(trim(&other, 7).await, first(8));
        assert_eq!(places(&memory).await, [1, 4, 8], "where the log changes hands it is kept");
        let ghost = Bytes::from_static(b"ghost");
        assert_eq!(put_bytes(&paused, 4, ghost.clone()).await, Outcome::Misplaced);
        // Where a candidate stands, nothing need be kept: it looks at the floor.
        assert_eq!(put_bytes(&candidate, 6, ghost.clone()).await, Outcome::Misplaced);
        // It cannot tell a ghost from a record of its own that counted and was trimmed since, so it
        // takes nothing away.
        assert_eq!(places(&memory).await, [1, 4, 6, 8]);

        // One whose writer died in between is met by nobody, and goes with the next trimming.
        let path = other.names.record(other.life, Sequence(5));
        memory.put(&path, ghost.into()).await.expect("the store is well");
        assert_eq!(get(&reader, 5).await, trimmed(8));
        assert_eq!(put(&paused, 6).await, Outcome::Misplaced);
        assert_eq!(put(&other, 9).await, Outcome::Stored);
        assert_eq!(trim(&other, 7).await, first(8));
        assert_eq!(places(&memory).await, [1, 4, 6, 8, 9]);
    });
}

/// A writer is frozen, its clocks with it, with its put at 4 on the way. Another one takes that
/// place, a third one goes on, and trims. Where records stand then, and what becomes of the put.
async fn is_slept_through(
    broken: Option<Broken>,
    tamper: impl AsyncFnOnce(&Arc<dyn ObjectStore>, &Objects),
) -> (Vec<u64>, Outcome) {
    let memory = memory();
    // By the frozen writer's clock, what it knows is young.
    let young = life(7, 1_000_000);
    let client = async || {
        let client = connect(&memory, young).await.expect("the store is well");
        client.known().broken = broken;
        client
    };
    let (frozen, leader, next) = (client().await, client().await, client().await);
    put_all(&frozen, 1..=3).await;
    assert_eq!(read_all(&leader, 1).await.len(), 3);
    put_all(&leader, 4..=4).await;
    assert_eq!(read_all(&next, 1).await.len(), 4);
    put_all(&next, 5..=8).await;
    tamper(&memory, &next).await;
    // By the trimmer's clock, it is old.
    *next.known() = Known::new(0, next.now());
    next.known().broken = broken;
    assert_eq!(tail(&next).await, confirmed(8));
    assert_eq!(trim(&next, 7).await, first(8));
    // The leader slept too, and takes the store's answer only now.
    assert_eq!(leader.placed(Sequence(4), leader.now()).await, Outcome::Misplaced);
    let places = places(&memory).await;
    (places, put_bytes(&frozen, 4, Bytes::from_static(b"acknowledged")).await)
}

#[test]
fn a_kept_record_stays_though_its_writer_hears_of_it_after_it_was_trimmed() {
    let (places, late) = block_on(is_slept_through(None, async |_, _| {}));
    assert_eq!((places, late), (vec![1, 4, 5, 8], Outcome::Misplaced));
}

#[test]
fn a_put_counts_in_a_trimmed_place_if_anything_that_is_kept_goes() {
    for broken in [Broken::TrimsKept, Broken::DeletesLate] {
        let (_, late) = block_on(is_slept_through(Some(broken), async |_, _| {}));
        assert_eq!(late, Outcome::Stored, "{broken:?}: nobody will ever read it");
    }
    // The same if the object below kept/ is gone before the trimming.
    let tidy = async |memory: &Arc<dyn ObjectStore>, client: &Objects| {
        let kept = client.names.kept(client.life, Sequence(4));
        memory.delete(&kept).await.expect("the store is well");
    };
    let (places, late) = block_on(is_slept_through(None, tidy));
    assert_eq!((places, late), (vec![1, 5, 8], Outcome::Stored));
}

/// A writer whose machine was frozen, its clocks with it, while another one took the next place,
/// went on, and trimmed it: what the writer's put becomes, and one of it that was read back.
async fn wakes_from_a_freeze(broken: Option<Broken>) -> (Outcome, Outcome) {
    let (faulty, memory) = faulty();
    // By its clock, what it knows is young.
    let young = life(7, 1_000_000);
    let frozen = connect(&memory, young).await.expect("the store is well");
    frozen.known().broken = broken;
    put_all(&frozen, 1..=3).await;
    let other = connect(&memory, young).await.expect("the store is well");
    other.known().broken = broken;
    put_all(&other, 4..=6).await;
    let candidate = connect(&memory, young).await.expect("the store is well");
    candidate.known().broken = broken;
    assert_eq!(read_all(&candidate, 1).await.len(), 6);
    assert_eq!(get(&candidate, 7).await, nothing(6), "it knows that the place was free");
    put_all(&other, 7..=9).await;
    // By the other one's clock, it is old.
    *other.known() = Known::new(0, other.now());
    assert_eq!(tail(&other).await, confirmed(9));
    assert_eq!(trim(&other, 8).await, first(9));
    let put = put_bytes(&frozen, 4, Bytes::from_static(b"acknowledged")).await;
    // The candidate's put is done, and its answer is lost: so it reads the place.
    faulty.fail_next_record([Fault::LosesAnswer]);
    let stood = put_bytes(&candidate, 7, Bytes::from_static(b"stands")).await;
    assert!(matches!(stood, Outcome::InDoubt(_)), "{stood:?}");
    (put, get(&candidate, 7).await)
}

#[test]
fn a_writer_that_was_frozen_takes_no_ghost_for_a_record() {
    let (put, read_back) = block_on(wakes_from_a_freeze(None));
    assert_eq!(put, Outcome::Misplaced);
    assert_eq!(read_back, trimmed(9));
}

#[test]
fn a_writer_that_trusts_every_answer_acknowledges_a_ghost() {
    let (put, read_back) = block_on(wakes_from_a_freeze(Some(Broken::TrustsAll)));
    assert_eq!(put, Outcome::Stored, "nobody will ever read it");
    assert!(matches!(read_back, Outcome::Records { .. }), "{read_back:?}");
}

#[test]
fn a_writer_that_goes_on_asks_for_nothing_but_its_puts() {
    block_on(async {
        let (faulty, memory) = faulty();
        let writer = connect(&memory, life(7, 1_000_000)).await.expect("the store is well");
        put_all(&writer, 1..=1).await;
        let before = faulty.requests();
        put_all(&writer, 2..=10).await;
        assert_eq!(faulty.requests() - before, 9);
    });
}

#[test]
fn a_doubt_that_was_settled_keeps_nothing() {
    block_on(async {
        let (faulty, memory) = faulty();
        let writer = client(&memory).await;
        put_all(&writer, 1..=2).await;
        faulty.fail_next_record([Fault::LosesAnswer]);
        assert!(matches!(put(&writer, 3).await, Outcome::InDoubt(_)));
        assert_eq!(read_all(&writer, 3).await, [record(3)]);
        put_all(&writer, 4..=5).await;
        assert_eq!(trim(&writer, 4).await, first(5));
        assert_eq!(places(&memory).await, [1, 5]);
    });
}

#[test]
fn records_are_trimmed_only_when_they_were_known_for_the_trim_age() {
    block_on(async {
        let memory = memory();
        let age = life(7, 300);
        let one = connect(&memory, age).await.expect("the store is well");
        put_all(&one, 1..=10).await;
        let two = connect(&memory, life(8, 0)).await.expect("the log is there");
        assert_eq!(two.life, age, "a log's age is fixed when it is begun");
        assert_eq!(tail(&two).await, confirmed(10));
        assert_eq!(trim(&two, 5).await, first(1), "it knows them for a moment only");
        let mut looks = 0..LOOKS_MAX;
        while looks.next().is_some() && trim(&two, 5).await != first(6) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(trim(&two, 5).await, first(6));
    });
}

#[test]
fn deletions_that_a_crash_left_undone_are_done_later() {
    block_on(async {
        let memory = memory();
        let client = client(&memory).await;
        put_all(&client, 1..=10).await;
        let floor = client.names.floor(client.life, Sequence(8));
        memory.put(&floor, Bytes::new().into()).await.expect("the store is well");
        assert_eq!(count_records(&memory).await, 10);
        assert_eq!(get(&client, 8).await, trimmed(9), "the floor alone decides");
        assert_eq!(trim(&client, 1).await, first(9));
        assert_eq!(places(&memory).await, [1, 9, 10]);
    });
}

/// A leader that comes next, appends three records and trims all but the newest; what came of that.
async fn leads_and_trims(store: &Arc<dyn ObjectStore>) -> (Sequence, Outcome) {
    let leader = client(store).await;
    let Outcome::Tail { sequence: end, .. } = tail(&leader).await else { panic!("a tail") };
    put_all(&leader, end.0 + 1..=end.0 + 3).await;
    (end, trim(&leader, end.0 + 2).await)
}

#[test]
fn what_trimming_lists_does_not_grow_with_what_is_kept() {
    block_on(async {
        let (faulty, memory) = faulty();
        let mut listed = Vec::new();
        for _ in 0..60 {
            let before = faulty.listed();
            let (end, trimmed) = leads_and_trims(&memory).await;
            assert_eq!(trimmed, first(end.0 + 3));
            listed.push(faulty.listed() - before);
        }
        let kept =
            objects(&memory).await.iter().filter(|it| it.as_ref().contains("/kept/")).count();
        assert_eq!(kept, 60, "they stay");
        assert_eq!(listed[59], listed[19], "{listed:?}");
    });
}

#[test]
fn deletions_that_fail_again_and_again_are_done_when_they_can_be() {
    block_on(async {
        let (faulty, memory) = faulty();
        for _ in 0..20 {
            leads_and_trims(&memory).await;
        }
        // More floors are raised than stay, and below none of them anything is deleted.
        faulty.set_deletes(false);
        for _ in 0..20 {
            let (_, trimmed) = leads_and_trims(&memory).await;
            assert!(matches!(trimmed, Outcome::Failed(_)), "{trimmed:?}");
        }
        faulty.set_deletes(true);
        let (end, trimmed) = leads_and_trims(&memory).await;
        assert_eq!(trimmed, first(end.0 + 3));
        let kept = (0..=40).map(|lead| 3 * lead + 1);
        assert_eq!(places(&memory).await, kept.chain([end.0 + 3]).collect::<Vec<_>>());
        let is_floor = |path: &&Path| path.as_ref().contains("/floor/");
        assert_eq!(objects(&memory).await.iter().filter(is_floor).count(), 8);
    });
}

#[test]
fn floors_do_not_pile_up() {
    block_on(async {
        let memory = memory();
        let client = client(&memory).await;
        for number in 1..=30 {
            put_all(&client, number..=number).await;
            assert_eq!(trim(&client, number).await, first(number));
        }
        let is_floor = |path: &&Path| path.as_ref().contains("/floor/");
        assert_eq!(objects(&memory).await.iter().filter(is_floor).count(), 8);
        assert_eq!(ask(&client, Operation::First).await, first(30));
    });
}

#[test]
fn a_log_begun_anew_is_another_one() {
    block_on(async {
        let memory = memory();
        let old = client(&memory).await;
        put_all(&old, 1..=3).await;
        for path in objects(&memory).await {
            memory.delete(&path).await.expect("the store is well");
        }
        let new = connect(&memory, life(8, 0)).await.expect("a log is begun");
        put_all(&new, 1..=2).await;
        assert_lost(&put(&old, 4).await);
        assert_lost(&get(&old, 1).await);
        assert_lost(&get(&old, 4).await);
        assert_lost(&tail(&old).await);
        assert_lost(&trim(&old, 1).await);
        assert_eq!(old.trouble.get(), Some(Refusal::LogLost));
        assert_eq!(read_all(&new, 1).await, [record(1), record(2)]);
    });
}

#[test]
fn what_an_operator_deletes_is_missed() {
    block_on(async {
        let memory = memory();
        let one = client(&memory).await;
        put_all(&one, 1..=3).await;
        let delete = async |path: Path| memory.delete(&path).await.expect("the store is well");
        delete(one.names.record(one.life, Sequence(2))).await;
        assert_lost(&get(&one, 2).await);
        delete(one.names.floor(one.life, Sequence(0))).await;
        assert_lost(&get(&one, 3).await);
        connect(&memory, life(7, 0)).await.err().expect("a log without a floor is refused");
        delete(one.names.incarnation()).await;
        let error = connect(&memory, life(8, 0)).await.err().expect("records without identity");
        assert!(error.to_string().contains("but records are there"), "{error}");
    });
}

#[test]
fn a_store_that_ignores_the_condition_is_refused() {
    block_on(async {
        let (faulty, store) = faulty();
        faulty.fail_next([Fault::Overwrites; 2]);
        let error = connect(&store, life(7, 0)).await.err().expect("it is refused");
        assert!(error.to_string().contains("ignores If-None-Match"), "{error}");
        assert_eq!(objects(&store).await, [], "nothing is left behind");
    });
}

#[test]
fn a_conflict_about_a_free_place_is_tried_again() {
    block_on(async {
        let (faulty, store) = faulty();
        let client = client(&store).await;
        faulty.fail_next([Fault::Conflicts; 3]);
        put_all(&client, 1..=2).await;
        assert_eq!(read_all(&client, 1).await.len(), 2);
        faulty.fail_next_record([Fault::Conflicts; 6]);
        let outcome = put(&client, 3).await;
        assert!(matches!(outcome, Outcome::InDoubt(_)), "{outcome:?}");
        assert_eq!(put(&client, 3).await, Outcome::Stored);
    });
}

#[test]
fn an_answer_that_is_lost_leaves_a_doubt_and_one_record() {
    block_on(async {
        let (faulty, store) = faulty();
        let client = client(&store).await;
        faulty.fail_next_record([Fault::LosesAnswer]);
        let outcome = put(&client, 1).await;
        assert!(matches!(outcome, Outcome::InDoubt(_)), "{outcome:?}");
        assert_eq!(put(&client, 1).await, Outcome::Misplaced, "it meets itself");
        assert_eq!(read_all(&client, 1).await, [record(1)]);
        faulty.fail_next_record([Fault::LosesRequest]);
        let outcome = put(&client, 2).await;
        assert!(matches!(outcome, Outcome::InDoubt(_)), "{outcome:?}");
        assert_eq!(put(&client, 2).await, Outcome::Stored);
    });
}

#[test]
fn a_place_is_kept_before_the_log_changes_hands_there() {
    block_on(async {
        let (faulty, store) = faulty();
        let client = client(&store).await;
        for fault in [Fault::LosesRequest, Fault::IsFull] {
            faulty.fail_next([fault]);
            let outcome = put(&client, 1).await;
            assert!(matches!(outcome, Outcome::InDoubt(_) | Outcome::Full(_)), "{outcome:?}");
            assert_eq!(places(&store).await, [0; 0], "nothing is put that might not be kept");
        }
        faulty.fail_next([Fault::Conflicts; 2]);
        assert_eq!(put(&client, 1).await, Outcome::Stored);
        let path = client.names.kept(client.life, Sequence(1));
        store.head(&path).await.expect("it is kept");
    });
}

#[test]
fn a_store_without_space_has_written_nothing() {
    block_on(async {
        let (faulty, store) = faulty();
        let client = client(&store).await;
        faulty.fail_next_record([Fault::IsFull]);
        let outcome = put(&client, 1).await;
        assert!(matches!(outcome, Outcome::Full(_)), "{outcome:?}");
        assert_eq!(get(&client, 1).await, nothing(0));
    });
}

#[test]
fn a_store_that_is_away_is_a_reason_to_refuse_until_it_is_back() {
    block_on(async {
        let (faulty, store) = faulty();
        let client = client(&store).await;
        faulty.set_away(true);
        let outcome = get(&client, 1).await;
        assert!(matches!(outcome, Outcome::Failed(_)), "{outcome:?}");
        assert!(client.trouble.get().is_some());
        faulty.set_away(false);
        let mut looks = 0..LOOKS_MAX;
        while looks.next().is_some() && client.trouble.get().is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(client.trouble.get(), None);
    });
}

#[test]
fn a_reader_at_the_end_gets_what_comes() {
    block_on(async {
        let memory = memory();
        let (writer, reader) = (client(&memory).await, client(&memory).await);
        put_all(&writer, 1..=5).await;
        assert_eq!(read_all(&reader, 1).await.len(), 5);
        let from = Sequence(6);
        let waiting =
            tokio::spawn(reader.clone().answer(Operation::Get { from, bytes_max: 1, waits: true }));
        tokio::task::yield_now().await;
        put_all(&writer, 6..=6).await;
        let outcome = waiting.await.expect("the reader ends");
        let records = vec![record(6)];
        assert_eq!(outcome, Outcome::Records { records, tail: Sequence(6) });
    });
}

#[test]
fn an_answer_holds_as_many_bytes_as_were_asked_for_but_at_least_one_record() {
    block_on(async {
        let memory = memory();
        let client = client(&memory).await;
        put_all(&client, 1..=9).await;
        let get = async |from, bytes_max| {
            let question = Operation::Get { from: Sequence(from), bytes_max, waits: false };
            match ask(&client, question).await {
                Outcome::Records { records, .. } => records,
                other => panic!("reading gave {other:?}"),
            }
        };
        assert_eq!(get(1, ALL).await.len(), 9);
        assert_eq!(get(1, 24).await, [record(1), record(2), record(3)]);
        assert_eq!(get(2, 1).await, [record(2)]);
    });
}

#[test]
fn a_piece_has_few_records_however_small_they_are() {
    block_on(async {
        let client = client(&memory()).await;
        put_all(&client, 1..=400).await;
        let Outcome::Records { records, tail } = get(&client, 1).await else {
            panic!("the records are there")
        };
        assert!((128..=144).contains(&records.len()), "{} records", records.len());
        assert!(tail > Sequence(records.len() as u64), "it has not come to the end");
        assert_eq!(read_all(&client, 1).await, (1..=400).map(record).collect::<Vec<_>>());
    });
}
