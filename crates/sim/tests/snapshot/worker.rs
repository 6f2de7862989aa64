//! A worker that takes snapshots off the box, alone and beside a node that writes.

use super::crash::requests;
use super::world::{DISK_NANOS, LOG, Ledger, Life, STORE, check_snapshots, log_options, store};
use archive::{
    Archive, Candidate, DirectoryArchive, Facts, SnapshotPoint, SnapshotStore, Unfinished,
};
use base::disk::DiskQueue;
use base::driver::Waker;
use base::{Clock, Epoch, Incarnation, Position, Seeds, Sequence, UnixMillis};
use engine::digest::Digest;
use engine::settings::Settings;
use shard::archived::{Need, archive};
use shard::loading::{Failure, FileLogOpener, KnownLog, OpenLog};
use shard::snapshots::{ArchiveLog, Pace};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::disk_queue::SimDiskQueue;
use sim::random::Random;
use sim::timeline::Timeline;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use txlog::file::{FileOptions, Queues};
use txlog::reader::Goal;
use worker::{Broken, Outcome, Phase, Taken, Worker};

pub fn queue(timeline: &Timeline, seed: u64) -> Box<dyn DiskQueue> {
    let waker = Waker(Arc::new(|| {}));
    Box::new(SimDiskQueue::new(timeline, Random::stream(seed, "worker"), DISK_NANOS, waker))
}

/// Opens the log to read it, and lets nobody know.
pub fn open_log(disk: &SimDisk, timeline: &Timeline, known: &KnownLog) -> Result<OpenLog, Failure> {
    let options = FileOptions { may_write: false, shows_itself: false, ..log_options(99) };
    let opener = FileLogOpener {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(SimClock::new(timeline)),
        queues: Queues { commits: queue(timeline, 1), background: queue(timeline, 2) },
        directory: Path::new(LOG).to_owned(),
        options,
    };
    opener.open(&KnownLog { must_exist: true, ..*known })
}

/// How a node archives its log: in a job, so within one instant of its own time.
pub fn archiver(disk: &SimDisk) -> ArchiveLog {
    let disk = disk.clone();
    Arc::new(move |store, now, through, _| {
        let timeline = Timeline::new();
        let log = open_log(&disk, &timeline, &KnownLog::default());
        let archived = log.and_then(|log| {
            archive(store, log, Need::Window(now), through, &mut |_, is_idle| {
                if is_idle {
                    timeline.pass(DISK_NANOS);
                }
                Ok(())
            })
        });
        archived.map_err(|why| why.to_string())
    })
}

pub fn worker(disk: &SimDisk, timeline: &Timeline, id: u64) -> Worker {
    let clock: Arc<dyn Clock> = Arc::new(SimClock::new(timeline));
    let (opening, passing) = ((disk.clone(), timeline.clone()), timeline.clone());
    Worker {
        store: store(disk).expect("the disk is whole"),
        clock,
        settings: Settings::default(),
        seeds: Seeds::fixed(id),
        id,
        open_log: Box::new(move |known| open_log(&opening.0, &opening.1, known)),
        queues: vec![queue(timeline, 3), queue(timeline, 4)],
        wait: Box::new(move || passing.pass(DISK_NANOS)),
        tell: Box::new(|_| {}),
        goes_on: Box::new(|| true),
        broken: None,
    }
}

fn taken(outcome: Result<Outcome, Failure>) -> Box<Taken> {
    match outcome {
        Ok(Outcome::Taken(taken)) => taken,
        other => panic!("{other:?}"),
    }
}

/// A node, what happened to it, and what it is asked next.
struct World {
    life: Life,
    ledger: Ledger,
    random: Random,
}

impl World {
    fn start(disk: &SimDisk, seed: u64) -> Rc<RefCell<Self>> {
        Self::start_limited(disk, seed, |store| store)
    }

    fn start_limited(
        disk: &SimDisk,
        seed: u64,
        limited: impl FnOnce(SnapshotStore) -> SnapshotStore,
    ) -> Rc<RefCell<Self>> {
        let mut ledger = Ledger::default();
        let life = Life::start_limited(disk, seed, &mut ledger, limited);
        let life = life.expect("the disk is whole");
        let mut world = Self { life, ledger, random: Random::stream(seed, "requests") };
        for _ in 0..20 {
            world.ask();
            world.pass(20);
        }
        Rc::new(RefCell::new(world))
    }

    fn ask(&mut self) {
        // Its own snapshots are another test's.
        let requests = requests(&mut self.random);
        let requests = String::from_utf8(requests).expect("they are text");
        self.life.client.send(requests.replace("BGSAVE SCHEDULE", "PING").as_bytes());
    }

    fn pass(&mut self, turns: u32) {
        for _ in 0..turns {
            let lives = self.life.turn(&mut self.ledger);
            assert!(lives, "{:?}", self.life.server.core.stopping);
        }
    }
}

/// A worker beside this node, which goes on being written at the worker's every step.
fn beside(world: &Rc<RefCell<World>>, disk: &SimDisk) -> Worker {
    let timeline = world.borrow().life.timeline.clone();
    let mut worker = worker(disk, &timeline, 7);
    let (waiting, going) = (Rc::clone(world), Rc::clone(world));
    worker.wait = Box::new(move || waiting.borrow_mut().pass(1));
    worker.goes_on = Box::new(move || {
        let mut world = going.borrow_mut();
        if world.random.chance(30) {
            world.ask();
        }
        world.pass(3);
        true
    });
    worker
}

#[test]
fn what_a_worker_publishes_beside_writes_is_the_state_of_its_record() {
    let mut checked = 0;
    for seed in 1..=12 {
        let disk = SimDisk::new(seed);
        let world = World::start(&disk, seed);
        let mut worker = beside(&world, &disk);
        let mut last = 0;
        for _ in 0..2 {
            let taken = taken(worker.take_once());
            let sequence = taken.snapshot.point.position.sequence.0;
            assert!(sequence > last, "it goes on");
            last = sequence;
            let proof = taken.snapshot.manifest.proof.expect("it was proven");
            checked += u32::from(proof.checked.is_some());
            let digest = taken.snapshot.manifest.digest().expect("a number");
            assert_eq!(digest.map(|it| it != 0), Some(true));
            (0..10).for_each(|_| world.borrow_mut().ask());
            world.borrow_mut().pass(60);
        }
        drop(worker);
        let World { life, mut ledger, .. } =
            Rc::into_inner(world).expect("nobody else has it").into_inner();
        assert_eq!(check_snapshots(&disk, &mut ledger), Ok(2));
        let held = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
        drop(life);
        let life = Life::start_unchecked(DISK_NANOS, Default::default(), &disk, seed + 100);
        let life = life.expect("it starts from the worker's snapshot");
        assert_eq!(Digest::of_keyspace(&life.server.core.shard.engine.keyspace), held);
    }
    assert!(checked >= 20, "the primary's next checksum was met: {checked} of 24");
}

/// A disk with a log, and no node any more.
pub fn left(seed: u64) -> (SimDisk, Ledger) {
    let disk = SimDisk::new(seed);
    let world = World::start(&disk, seed);
    let World { ledger, .. } = Rc::into_inner(world).expect("nobody else has it").into_inner();
    disk.kill_process();
    (disk, ledger)
}

fn whole(store: &SnapshotStore) -> usize {
    let candidates = store.list().expect("it lists").into_iter();
    candidates.filter(|it| matches!(it, Candidate::Whole(_))).count()
}

/// Kills a worker at an operation on its disk, or cuts the power there; whether it came so far.
fn killed(at: u64, cuts_power: bool) -> bool {
    let (disk, mut ledger) = left(3);
    let mut worker_to_kill = worker(&disk.for_process(), &Timeline::new(), 1);
    let killed = disk.clone();
    let kill = move || if cuts_power { killed.cut_power() } else { killed.kill_process() };
    disk.interrupt(at, Box::new(kill));
    let outcome = worker_to_kill.take_once();
    let has_ended = matches!(outcome, Ok(Outcome::Taken(_)));
    drop(worker_to_kill);
    if cuts_power {
        disk.cut_power();
        disk.restart();
    } else {
        disk.kill_process();
    }
    disk.interrupt(u64::MAX, Box::new(|| {}));
    let published = check_snapshots(&disk, &mut ledger).expect("nothing half is published");
    assert!(!has_ended || published == 1, "{outcome:?}");
    let store = store(&disk).expect("the disk is whole");
    store.remove_unpublished(Unfinished::Signed).expect("the disk is whole");
    let names = base::Disk::list(&disk, Path::new(STORE)).expect("it lists");
    let left = names.iter().filter(|it| it.name.starts_with("snapshot-")).count();
    assert_eq!(left, published, "operation {at}: {names:?}");
    // It had not claimed for ever.
    match worker(&disk, &Timeline::new(), 2).take_once() {
        Ok(Outcome::Taken(_)) => assert_eq!(whole(&store), published + 1),
        Ok(Outcome::Nothing(_)) => assert_eq!(published, 1),
        other => panic!("{other:?}"),
    }
    !has_ended
}

#[test]
fn killed_at_any_step_a_worker_leaves_nothing_half_and_the_next_one_goes_on() {
    for cuts_power in [false, true] {
        let kills = (1..).take_while(|at| killed(*at, cuts_power)).count();
        assert!(kills > 60, "{kills}");
    }
}

#[test]
fn of_two_workers_one_takes_the_snapshot() {
    let (disk, _) = left(4);
    let timeline = Timeline::new();
    let mut first = worker(&disk, &timeline, 1);
    let second = Rc::new(RefCell::new(worker(&disk, &timeline, 2)));
    let busy = Rc::new(RefCell::new(0));
    let (asked, counted) = (Rc::clone(&second), Rc::clone(&busy));
    first.goes_on = Box::new(move || {
        let outcome = asked.borrow_mut().take_once().expect("it may ask");
        assert_eq!(outcome, Outcome::Busy);
        *counted.borrow_mut() += 1;
        true
    });
    let published = taken(first.take_once()).snapshot.point.position.sequence;
    assert!(*busy.borrow() > 3);
    let outcome = second.borrow_mut().take_once().expect("the claim is free");
    assert_eq!(outcome, Outcome::Nothing(published));
    assert_eq!(whole(&store(&disk).expect("the disk is whole")), 1);
}

#[test]
fn whoever_is_told_to_stop_leaves_nothing() {
    let (disk, _) = left(5);
    for steps in 0..40 {
        let mut stopping = worker(&disk, &Timeline::new(), 1);
        let mut left = steps;
        stopping.goes_on = Box::new(move || {
            left -= 1;
            left >= 0
        });
        let Err(why) = stopping.take_once() else { return };
        assert_eq!(why.to_string(), "it was told to stop");
        let store = store(&disk).expect("the disk is whole");
        assert_eq!(whole(&store), 0);
        assert_eq!(store.claimed().expect("it can be read"), None);
        let names = base::Disk::list(&disk, Path::new(STORE)).expect("it lists");
        assert!(names.iter().all(|it| it.name == "claim.lock"), "{names:?}");
    }
    panic!("it never ended");
}

#[test]
fn other_data_than_the_log_has_is_found_before_it_is_published() {
    let (disk, _) = left(6);
    let mut broken = worker(&disk, &Timeline::new(), 1);
    broken.broken = Some(Broken::WritesOtherData);
    let why = broken.take_once().expect_err("it must be found").to_string();
    assert!(why.contains("gives other data than was to be written"), "{why}");
    assert_eq!(whole(&store(&disk).expect("the disk is whole")), 0);
}

/// Otherwise the test before would prove nothing.
#[test]
fn other_data_that_nobody_restores_is_published() {
    let (disk, ledger) = left(6);
    let mut broken = worker(&disk, &Timeline::new(), 1);
    broken.broken = Some(Broken::WritesOtherDataUnproven);
    let at = taken(broken.take_once()).snapshot.point.position.sequence;
    let mut reading = worker(&disk, &Timeline::new(), 2);
    let mut course = reading.unclaimed();
    let held = reading.load_moment(Goal::Through(at), &mut course).expect("it is published");
    let (_, state) = ledger.states().filter(|(record, _)| *record <= at).last().expect("states");
    assert_ne!(Digest::of_keyspace(&held.engine.keyspace), state);
}

#[test]
fn a_worker_that_was_stopped_at_any_step_takes_the_next_snapshot() {
    let (disk, _) = left(7);
    let mut stops = 0;
    for stops_at in 0..60 {
        let mut stopped = worker(&disk, &Timeline::new(), 1);
        let mut steps = 0;
        stopped.goes_on = Box::new(move || {
            steps += 1;
            steps <= stops_at
        });
        if stopped.take_once().is_ok() {
            break;
        }
        stops += 1;
        // The same worker, with the same threads.
        stopped.goes_on = Box::new(|| true);
        match stopped.take_once() {
            Ok(Outcome::Taken(_)) => {}
            other => panic!("step {stops_at}: {other:?}"),
        }
        remove_snapshots(&disk);
    }
    assert!(stops > 5, "{stops}");
}

/// So that the next worker has something to do.
fn remove_snapshots(disk: &SimDisk) {
    let archive = DirectoryArchive::open(Arc::new(disk.clone()), Path::new(STORE));
    let archive = archive.expect("the disk is whole");
    for entry in archive.list(archive::Content::Snapshots).expect("it lists") {
        archive.remove(&entry.name).expect("the disk is whole");
    }
}

/// Whether INFO shows a worker.
fn worker_seen(world: &Rc<RefCell<World>>) -> bool {
    let world = &mut *world.borrow_mut();
    world.life.replies.clear();
    world.life.client.send(b"INFO persistence\r\n");
    world.pass(20);
    !String::from_utf8_lossy(&world.life.replies).contains("kiln_snapshot_worker:none")
}

/// A line of `INFO persistence`, as a number.
fn shown(world: &Rc<RefCell<World>>, name: &str) -> i64 {
    let world = &mut *world.borrow_mut();
    world.life.replies.clear();
    world.life.client.send(b"INFO persistence\r\n");
    world.pass(20);
    let replies = String::from_utf8_lossy(&world.life.replies);
    let line = replies.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    line.and_then(|it| it.trim().parse().ok()).expect("INFO has it, and it is a number")
}

/// Seconds of simulated time, in which a worker's claim is renewed, or not.
fn seconds(world: &Rc<RefCell<World>>, seconds: u64, mut each: impl FnMut()) {
    let now = || world.borrow().life.clock.monotonic();
    let began = now();
    while now().seconds_since(began) < seconds {
        world.borrow_mut().pass(1);
        each();
    }
}

#[test]
fn a_primary_leaves_snapshots_to_a_worker_as_long_as_it_lives_and_trims_behind_its() {
    let disk = SimDisk::new(8);
    let world = World::start(&disk, 8);
    let mut worker = beside(&world, &disk);
    let due = |world: &Rc<RefCell<World>>| {
        let shard = &mut world.borrow_mut().life.server.core.shard;
        shard.grown.bytes = 2 << 30;
    };
    let taken_here =
        |world: &Rc<RefCell<World>>| world.borrow().life.server.core.saving().published;
    let mut claimed = worker.claim().expect("it may").expect("nobody else has it");
    seconds(&world, 6, || worker.rest(&mut claimed).expect("it goes on"));
    assert!(worker_seen(&world), "it is seen");
    due(&world);
    seconds(&world, 60, || worker.rest(&mut claimed).expect("it goes on"));
    assert_eq!(taken_here(&world), 0, "the worker lives");
    let first = super::world::first_record(&disk);
    for _ in 0..3 {
        let outcome = worker.take(&mut claimed).expect("it can be taken");
        assert!(matches!(outcome, Outcome::Taken(_)), "{outcome:?}");
        for _ in 0..40 {
            world.borrow_mut().ask();
            world.borrow_mut().pass(20);
        }
        seconds(&world, 20, || worker.rest(&mut claimed).expect("it goes on"));
    }
    let store = store(&disk).expect("the disk is whole");
    assert_eq!(whole(&store), 2, "the primary prunes");
    assert!(super::world::first_record(&disk) > first, "and trims");
    let grown = world.borrow().life.server.core.shard.grown.bytes;
    assert!(grown < 1 << 30, "what the worker's snapshots cover is counted no more: {grown}");
    // It dies: its claim is not renewed any more.
    drop(claimed);
    due(&world);
    seconds(&world, 20, || {});
    assert_eq!(taken_here(&world), 0, "it may only be slow");
    seconds(&world, 30, || {});
    assert!(taken_here(&world) > 0, "it is gone");
    assert!(!worker_seen(&world));
}

#[test]
fn nobody_waits_for_the_log_to_be_archived_but_its_trimming() {
    const ARCHIVING_SECONDS: u64 = 600;
    let disk = SimDisk::new(12);
    let world = World::start_limited(&disk, 12, |store| {
        let limits = archive::Limits { window_seconds: 1, ..store.limits() };
        store.with_limits(limits)
    });
    world.borrow_mut().life.archive_log_by(archiver(&disk), ARCHIVING_SECONDS * 1_000_000_000);
    let taken_here = || world.borrow().life.server.core.saving().published;
    let store = store(&disk).expect("the disk is whole");
    let first = super::world::first_record(&disk);
    // It has no window, and archives nothing.
    let mut worker = beside(&world, &disk);
    let mut claimed = worker.claim().expect("it may").expect("nobody else has it");
    for _ in 0..3 {
        seconds(&world, 6, || worker.rest(&mut claimed).expect("it goes on"));
        let outcome = worker.take(&mut claimed).expect("it can be taken");
        assert!(matches!(outcome, Outcome::Taken(_)), "{outcome:?}");
    }
    world.borrow_mut().life.server.core.shard.grown.bytes = 2 << 30;
    seconds(&world, 90, || worker.rest(&mut claimed).expect("it goes on"));
    assert!(worker_seen(&world) && taken_here() == 0, "the worker lives");
    // One of its own, while everything is written anew.
    world.borrow_mut().life.client.send(b"BGSAVE\r\n");
    for _ in 0..200 {
        world.borrow_mut().ask();
        world.borrow_mut().pass(20);
    }
    seconds(&world, 10, || worker.rest(&mut claimed).expect("it goes on"));
    assert_eq!(taken_here(), 1);
    let there = || -> Vec<(String, Sequence)> {
        let whole = store.list().expect("it lists").into_iter();
        let whole = whole.map(|it| it.whole().expect("it is whole").clone());
        whole.map(|it| (it.name.clone(), it.point.position.sequence)).collect()
    };
    assert_eq!(there().len(), 4, "nothing is pruned");
    assert_eq!(super::world::first_record(&disk), first, "nothing is trimmed");
    // Who pins one meanwhile keeps it.
    let (name, oldest) = there().pop().expect("there are some");
    world.borrow_mut().life.server.core.shard.pin_snapshot("somebody", &name);
    seconds(&world, 3 * ARCHIVING_SECONDS, || worker.rest(&mut claimed).expect("it goes on"));
    let stay: Vec<String> = there().into_iter().map(|(name, _)| name).collect();
    assert!(stay.len() == 3 && stay.contains(&name), "the rest is pruned: {stay:?}");
    assert!(super::world::first_record(&disk) > first, "it is trimmed");
    assert_eq!(store.log().list().expect("it lists")[0].first, oldest.next(), "and archived");
}

#[test]
fn info_shows_how_old_the_newest_proven_snapshot_and_its_proof_are() {
    let disk = SimDisk::new(11);
    let world = World::start(&disk, 11);
    let shows = |name: &str| shown(&world, &format!("kiln_snapshot_{name}"));
    let ages = || [shows("proven_age_seconds"), shows("proof_age_seconds")];
    seconds(&world, 6, || {});
    assert_eq!((shows("proven_record"), ages()), (0, [-1, -1]), "nothing is proven");
    let mut worker = beside(&world, &disk);
    let taken = taken(worker.take_once());
    let manifest = &taken.snapshot.manifest;
    let (record, began) =
        (taken.snapshot.point.position.sequence.0 as i64, taken.snapshot.point.began);
    let proved = manifest.proof.expect("it was proven").at_ms;
    seconds(&world, 40, || {});
    assert_eq!(shows("proven_record"), record);
    let now = world.borrow().life.clock.unix_millis().0;
    let [age, proof_age] = ages();
    // Less than a second passes between the two lines.
    assert!((0..=1).contains(&(age - (now - began.0) / 1000)), "{age}");
    assert!((0..=1).contains(&(proof_age - (now - proved) / 1000)), "{proof_age}");
    assert!(age >= proof_age && proof_age >= 40, "{age} {proof_age}");
    // One that the primary takes itself is newer, and not proven.
    world.borrow_mut().life.client.send(b"SET a b\r\nBGSAVE\r\n");
    seconds(&world, 12, || {});
    assert!(shows("last_record") > record);
    assert_eq!(shows("proven_record"), record);
    assert!(shows("proof_age_seconds") >= proof_age + 12);
}

/// A worker that was given another shard's log and this shard's store.
fn publish_of_another_log(store: &SnapshotStore, sequence: u64) {
    let position = Position { incarnation: Incarnation(4242), sequence: Sequence(sequence) };
    let (clock, began) = (UnixMillis(0), UnixMillis(0));
    let point = SnapshotPoint { position, chain: 0, epoch: Epoch(1), log_sum: None, clock, began };
    let mut writer = store.begin(position).expect("the disk is whole");
    writer.write_part(b"bytes").expect("the disk is whole");
    writer.publish(&Facts::unproven(point, 0, 10)).expect("the disk is whole");
}

#[test]
fn a_primary_trims_and_prunes_nothing_behind_the_snapshots_of_another_log() {
    let disk = SimDisk::new(9);
    let world = World::start(&disk, 9);
    let mut worker = beside(&world, &disk);
    let taken = taken(worker.take_once());
    let own = taken.snapshot.point.position;
    let store = store(&disk).expect("the disk is whole");
    // The first look takes what is there for old.
    seconds(&world, 6, || {});
    let (first, grown) = (super::world::first_record(&disk), 1 << 20);
    world.borrow_mut().life.server.core.shard.grown.bytes = grown;
    for ahead in [1000, 1001, 1002] {
        publish_of_another_log(&store, own.sequence.0 + ahead);
        seconds(&world, 12, || {});
    }
    assert_eq!(whole(&store), 4, "nothing is pruned");
    assert_eq!(super::world::first_record(&disk), first, "nothing is trimmed");
    assert!(world.borrow().life.server.core.shard.grown.bytes >= grown, "nothing is covered");
    // No start and no worker takes a newest one of another log for this one's.
    let why = worker.take_once().expect_err("it is refused").to_string();
    assert!(why.contains("it was deleted and created anew"), "{why}");
}

#[test]
fn a_worker_that_lives_and_publishes_nothing_does_not_let_the_log_grow_for_ever() {
    let disk = SimDisk::new(10);
    let world = World::start(&disk, 10);
    let mut worker = beside(&world, &disk);
    let mut claimed = worker.claim().expect("it may").expect("nobody else has it");
    seconds(&world, 6, || worker.rest(&mut claimed).expect("it goes on"));
    let alone = Pace::default().log_growth_bytes_alone;
    for (grown, expected) in [(alone - (1 << 30), 0), (alone, 1)] {
        world.borrow_mut().life.server.core.shard.grown.bytes = grown;
        seconds(&world, 20, || worker.rest(&mut claimed).expect("it goes on"));
        assert!(worker_seen(&world), "it lives");
        let published = world.borrow().life.server.core.saving().published;
        assert_eq!(published, expected, "{grown} bytes");
    }
}

/// Takes a snapshot of what a dead primary left, and does something amid the proof, once the parts
/// are written.
fn proven_amid(
    disk: &SimDisk,
    timeline: &Timeline,
    work: impl FnMut() + 'static,
) -> Result<Outcome, Failure> {
    let mut worker = worker(disk, timeline, 1);
    let is_written = Rc::new(Cell::new(false));
    let (noted, mut work) = (Rc::clone(&is_written), work);
    worker.tell = Box::new(move |progress| {
        is_written.set(is_written.get() || progress.phase == Phase::Rehearsing);
    });
    worker.goes_on = Box::new(move || {
        if noted.take() {
            work();
        }
        true
    });
    worker.take_once()
}

#[test]
fn without_a_primary_the_proof_waits_half_a_minute_for_its_checksum_and_says_so() {
    let disk = SimDisk::new(11);
    let world = World::start(&disk, 11);
    world.borrow_mut().life.client.send(b"SET unchecked value\r\n");
    world.borrow_mut().pass(20);
    drop(world);
    disk.kill_process();
    let timeline = Timeline::new();
    let clock = SimClock::new(&timeline);
    let began = clock.monotonic();
    let taken = taken(proven_amid(&disk, &timeline, || {}));
    let proof = taken.snapshot.manifest.proof.expect("it was proven");
    assert_eq!(proof.checked, None, "nobody said what the data is");
    let waited = clock.monotonic().seconds_since(began);
    assert!((30..40).contains(&waited), "{waited} s");
}

#[test]
fn a_log_that_is_gone_amid_the_proof_is_told_and_nothing_is_published() {
    let (disk, _) = left(12);
    let gone = disk.clone();
    let outcome = proven_amid(&disk, &Timeline::new(), move || {
        let log = Path::new(LOG);
        for entry in base::Disk::list(&gone, log).expect("the log is there") {
            base::Disk::remove(&gone, &log.join(entry.name)).expect("a file can be removed");
        }
    });
    let why = outcome.expect_err("there is no log").to_string();
    assert!(why.contains("deleted or cut meanwhile"), "{why}");
    assert_eq!(whole(&store(&disk).expect("the disk is whole")), 0);
}
