//! Branches: new logs whose data stays in their parent's archive.

use super::archived;
use super::moments::new_log;
use super::worker::{open_log, queue, worker};
use super::world::{DISK_NANOS, Life, STORE, store};
use archive::{Access, DirectoryArchive, SnapshotStore};
use base::disk::{DiskJob, DiskOutcome, DiskQueue, DiskTicket};
use base::{Disk, Sequence};
use engine::digest::Digest;
use shard::archived::ArchivedLog;
use shard::loading::{Loading, Sources};
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use txlog::reader::Goal;
use worker::{Outcome, Worker};

/// Disks by the names of the archives on them.
#[derive(Clone, Default)]
struct Disks(Arc<Mutex<BTreeMap<String, SimDisk>>>);

/// An archive under a name that no other disk has.
pub struct Named {
    pub name: String,
    pub archive: Arc<dyn archive::Archive>,
    pub outage: Arc<Outage>,
}

/// A time in which no manifest can be read, and whether anybody has tried.
#[derive(Default)]
pub struct Outage {
    pub is_on: AtomicBool,
    pub is_noticed: AtomicBool,
}

impl Disks {
    fn add(&self, name: &str, disk: &SimDisk) -> SnapshotStore {
        let mut disks = self.0.lock().expect("no holder panics");
        disks.insert(name.to_owned(), disk.clone());
        drop(disks);
        let opened = store(disk).expect("the disk is whole");
        let (archive, outage) = (opened.archive(), Arc::default());
        let named = Named { name: name.to_owned(), archive, outage };
        let limits = opened.limits();
        let disks = self.clone();
        SnapshotStore::over(Arc::new(named))
            .with_limits(limits)
            .with_parents(Arc::new(move |name, access| disks.open(name, access)))
    }

    fn open(&self, name: &str, access: Access) -> std::io::Result<Arc<dyn archive::Archive>> {
        let disks = self.0.lock().expect("no holder panics");
        let disk: Arc<dyn Disk> = match disks.get(name) {
            Some(disk) => Arc::new(disk.clone()),
            None => return Err(std::io::ErrorKind::NotFound.into()),
        };
        Ok(Arc::new(match access {
            Access::Read => DirectoryArchive::open_to_read(disk, Path::new(STORE)),
            Access::Write => DirectoryArchive::open(disk, Path::new(STORE))?,
        }))
    }
}

impl archive::Archive for Named {
    fn location(&self) -> String {
        self.name.clone()
    }

    fn list(&self, of: archive::Content) -> std::io::Result<Vec<archive::Entry>> {
        self.archive.list(of)
    }

    fn begin(&self, name: &str) -> std::io::Result<Box<dyn archive::Draft>> {
        self.archive.begin(name)
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> std::io::Result<Vec<u8>> {
        if self.outage.is_on.load(Ordering::Relaxed) {
            self.outage.is_noticed.store(true, Ordering::Relaxed);
            return Err(std::io::Error::other("it is away"));
        }
        self.archive.manifest(name, bytes_max)
    }

    fn parts(&self, name: &str) -> std::io::Result<BTreeMap<String, u64>> {
        self.archive.parts(name)
    }

    fn open(&self, name: &str, part: &str) -> std::io::Result<Arc<dyn archive::StoredPart>> {
        self.archive.open(name, part)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.archive.remove(name)
    }

    fn remove_unpublished(&self, of: archive::Unfinished) -> std::io::Result<()> {
        self.archive.remove_unpublished(of)
    }

    fn claim(&self, said: &[u8]) -> std::io::Result<Option<Box<dyn archive::Claim>>> {
        self.archive.claim(said)
    }

    fn claimed(&self) -> std::io::Result<Option<Vec<u8>>> {
        self.archive.claimed()
    }
}

/// Who reads the shard on a disk, whose store this is.
fn reader(disk: &SimDisk, store: SnapshotStore) -> Worker {
    let timeline = Timeline::new();
    let mut worker = worker(disk, &timeline, 1);
    let (disk, log) = (disk.clone(), store.log());
    worker.store = store;
    worker.open_log = Box::new(move |known| {
        open_log(&disk, &timeline, known).map(|opened| ArchivedLog::over(opened, log.clone()))
    });
    worker
}

/// Branches the shard of one disk onto another.
fn branch(
    from: (&SimDisk, SnapshotStore),
    goal: Goal,
    into: (&SimDisk, SnapshotStore),
) -> Result<Sequence, String> {
    branch_killed(from, goal, into, || {})
}

/// The same, with something that happens once the new archive is there.
fn branch_killed(
    from: (&SimDisk, SnapshotStore),
    goal: Goal,
    into: (&SimDisk, SnapshotStore),
    then: impl FnOnce(),
) -> Result<Sequence, String> {
    let text = |why: Box<dyn std::error::Error>| why.to_string();
    let mut parent = reader(from.0, from.1);
    let timeline = Timeline::new();
    let mut making = worker(into.0, &timeline, 2);
    making.store = into.1;
    then();
    let mut claimed = making.claim().map_err(text)?.ok_or("it is busy")?;
    let fork = parent.find_fork(goal, &mut claimed).map_err(text)?;
    let log = new_log(into.0, &timeline)?;
    let named = parent.keep_for_branch(&fork, log.incarnation, "a branch", &mut claimed);
    making.begin_branch(&fork, named.map_err(text)?, log, &mut claimed).map_err(text)?;
    claimed.release();
    Ok(fork.point.position.sequence)
}

fn held(life: &Life) -> Digest {
    Digest::of_keyspace(&life.server.core.shard.engine.keyspace)
}

/// Lets a shard live for a while: it is written to, and takes snapshots.
fn live(life: &mut Life, random: &mut Random, rounds: u32) {
    for _ in 0..rounds {
        life.client.send(&super::crash::requests(random));
        life.client.send(b"BGSAVE SCHEDULE\r\n");
        for _ in 0..40 {
            assert!(life.turn(&mut Default::default()), "{:?}", life.server.core.stopping);
        }
    }
}

#[test]
fn a_branch_is_the_moment_and_neither_knows_of_what_the_other_writes() {
    let (mut branches, mut of_trimmed) = (0, 0);
    for seed in 1..=8 {
        let disks = Disks::default();
        let (from, ledger) = match seed % 2 {
            0 => archived::lived(seed),
            _ => super::moments::lived(seed),
        };
        let parent = disks.add("parent", &from);
        let states: Vec<(Sequence, Digest)> = ledger.states().collect();
        let last = states.last().expect("it was written to").1;
        let mut random = Random::stream(seed, "branches");
        for number in 0..4 {
            let (at, state) = states[random.within(0..states.len() as u64) as usize];
            let into = SimDisk::new(seed * 100 + number);
            let child = disks.add("child", &into);
            let made = branch((&from, parent.clone()), Goal::Through(at), (&into, child.clone()));
            let Ok(sequence) = made else {
                let why = made.expect_err("it is none");
                // A snapshot may be there for a branch alone, and the log behind it gone.
                let is_gone = why.contains("neither in the log nor archived")
                    || why.contains("the log was trimmed");
                assert!(is_gone || why.contains("no whole snapshot is as old"), "{why}");
                continue;
            };
            assert_eq!(sequence, at);
            // Nothing of the data was copied.
            let names = into.list(Path::new(STORE)).expect("it lists").into_iter();
            assert_eq!(names.filter(|it| it.is_directory).count(), 1);
            let mut life = Life::start_over(child.clone(), &into, seed).expect("it starts");
            assert_eq!(held(&life), state, "seed {seed}, record {at}");
            // The parent goes on, and forgets what it no longer needs itself.
            let mut other =
                Life::start_over(parent.clone(), &from, seed + number).expect("as ever");
            if number == 0 {
                assert_eq!(held(&other), last);
            }
            live(&mut other, &mut random, 6);
            drop(other);
            from.kill_process();
            drop(life);
            into.kill_process();
            life = Life::start_over(child.clone(), &into, seed).expect("it starts again");
            assert_eq!(held(&life), state, "what it needs was kept");
            assert_eq!(parent.pins().expect("it lists").len(), 1);
            live(&mut life, &mut random, 6);
            let diverged = held(&life);
            assert_ne!(diverged, state);
            // With snapshots of its own it needs its parent no more.
            assert_eq!(parent.pins().expect("it lists"), []);
            drop(life);
            into.kill_process();
            let alone = store(&into).expect("the disk is whole");
            let life = Life::start_over(alone, &into, seed).expect("it starts without its parent");
            assert_eq!(held(&life), diverged);
            branches += 1;
            of_trimmed += u32::from(seed % 2 == 0);
        }
    }
    assert!(branches > 6 && of_trimmed > 4, "{branches}, {of_trimmed}");
}

#[test]
fn a_branch_of_a_branch_and_a_worker_on_it() {
    let (from, ledger) = archived::lived(6);
    let disks = Disks::default();
    let parent = disks.add("parent", &from);
    let (at, state) = ledger.states().last().expect("it was written to");
    let first = SimDisk::new(601);
    let child = disks.add("child", &first);
    branch((&from, parent.clone()), Goal::Through(at), (&first, child.clone())).expect("it is");
    let mut life = Life::start_over(child.clone(), &first, 1).expect("it starts");
    life.client.send(b"SET only here\r\n");
    for _ in 0..40 {
        assert!(life.turn(&mut Default::default()), "{:?}", life.server.core.stopping);
    }
    let diverged = held(&life);
    assert_ne!(diverged, state);
    drop(life);
    first.kill_process();
    // No snapshot of the first has data: the second's is that of the first's parent.
    let second = SimDisk::new(602);
    let grandchild = disks.add("grandchild", &second);
    branch((&first, child.clone()), Goal::Tail, (&second, grandchild.clone())).expect("it is");
    let life = Life::start_over(grandchild.clone(), &second, 2).expect("it starts");
    assert_eq!(held(&life), diverged);
    drop(life);
    second.kill_process();
    let mut worker = reader(&second, grandchild.clone());
    for _ in 0..2 {
        match worker.take_once() {
            Ok(Outcome::Taken(taken)) => assert!(!taken.snapshot.manifest.parts.is_empty()),
            other => panic!("{other:?}"),
        }
        let mut life = Life::start_over(grandchild.clone(), &second, 3).expect("it starts");
        life.client.send(b"INCR counter\r\n");
        for _ in 0..40 {
            assert!(life.turn(&mut Default::default()), "{:?}", life.server.core.stopping);
        }
        drop(life);
        second.kill_process();
    }
    // Gone is gone: what is not there any more is said by name.
    for pin in parent.pins().expect("it lists") {
        parent.unpin(&pin).expect("the disk is whole");
    }
    for entry in parent.log().list().expect("it lists") {
        parent.archive().remove(&entry.name()).expect("the disk is whole");
    }
    let needs_log = Life::start_over(child.clone(), &first, 4);
    let is_of_snapshot = parent.list().expect("it lists").iter().any(|it| match it {
        archive::Candidate::Whole(it) => it.point.position.sequence == at,
        archive::Candidate::Damaged { .. } => false,
    });
    match needs_log {
        Ok(_) => assert!(is_of_snapshot, "it needs no log"),
        Err(why) => assert!(why.contains("the parent's log is not archived"), "{why}"),
    }
    // Nor is it branched any more, which would be found at the branch's start only.
    let again = |number| {
        let third = SimDisk::new(number);
        let into = disks.add("another grandchild", &third);
        branch((&first, child.clone()), Goal::Tail, (&third, into))
    };
    let pins = child.pins().expect("it lists").len();
    let why = again(603).expect_err("its parent's log is gone");
    let expected = ["the parent's log in ", "is not archived"];
    assert!(expected.iter().all(|part| why.contains(part)), "{why}");
    for entry in parent.list().expect("it lists") {
        parent.archive().remove(entry.name()).expect("the disk is whole");
    }
    let why = again(604).expect_err("its parent's data is gone");
    assert!(why.contains("it is gone"), "{why}");
    assert_eq!(child.pins().expect("it lists").len(), pins);
}

#[test]
fn killed_at_any_step_a_branch_is_whole_or_none() {
    let (mut kills, mut whole) = (0, 0);
    let (lived, ledger) = archived::lived(8);
    for at in 1.. {
        let from = lived.copy();
        let disks = Disks::default();
        let parent = disks.add("parent", &from);
        let states: Vec<(Sequence, Digest)> = ledger.states().collect();
        let (record, state) = states[states.len() * 3 / 4];
        let into = SimDisk::new(at);
        let child = disks.add("child", &into);
        let killed = into.clone();
        let kill = || into.interrupt(at, Box::new(move || killed.cut_power()));
        let goal = Goal::Through(record);
        let made = branch_killed((&from, parent.clone()), goal, (&into, child.clone()), kill);
        into.cut_power();
        into.restart();
        into.interrupt(u64::MAX, Box::new(|| {}));
        match Life::start_over(disks.add("child", &into), &into, 9) {
            Ok(life) => {
                let is_new = life.server.core.shard.appended().sequence <= Sequence(1);
                assert!(made.is_err() && is_new || held(&life) == state, "step {at}");
                whole += u32::from(made.is_err() && !is_new);
            }
            Err(why) => {
                assert!(made.is_err(), "it was branched and does not start: {why}");
                let is_none = why.contains("begins with the data of") || why.contains("the log is");
                assert!(is_none, "step {at}: {why}");
            }
        }
        if made.is_ok() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 20, "{kills}, of which {whole} had it all");
}

/// A shard without a restore window that took these two snapshots and was written to since.
fn with_two_snapshots(
    seed: u64,
) -> (SimDisk, SnapshotStore, Vec<Sequence>, Vec<(Sequence, Digest)>) {
    let disk = SimDisk::new(seed);
    let mut ledger = super::world::Ledger::default();
    let mut life = Life::start(&disk, seed, &mut ledger).expect("the disk is whole");
    let mut random = Random::stream(seed, "two snapshots");
    for _ in 0..3 {
        for _ in 0..6 {
            let text = String::from_utf8(super::crash::requests(&mut random)).expect("text");
            life.client.send(text.replace("BGSAVE SCHEDULE", "PING").as_bytes());
            for _ in 0..30 {
                assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
            }
        }
        life.client.send(b"BGSAVE SCHEDULE\r\n");
        for _ in 0..60 {
            assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        }
    }
    drop(life);
    disk.kill_process();
    let parent = Disks::default().add("parent", &disk);
    let whole = parent.list().expect("it lists").into_iter().filter_map(|it| match it {
        archive::Candidate::Whole(it) => Some(it.point.position.sequence),
        archive::Candidate::Damaged { .. } => None,
    });
    let whole = whole.collect();
    (disk, parent, whole, ledger.states().collect())
}

#[test]
fn what_one_branch_archived_hides_no_gap_from_the_next_nor_from_a_window() {
    let mut branched = 0;
    for seed in 1..=6 {
        let (from, parent, snapshots, states) = with_two_snapshots(seed);
        let [newer, older] = snapshots[..] else { panic!("{snapshots:?}") };
        // First behind the newer one, then between the two.
        let (tail, between) = (states.last().expect("there are some").0, Sequence(newer.0 - 1));
        for (number, goal) in [tail, between, older.next()].into_iter().enumerate() {
            let into = SimDisk::new(seed * 1000 + number as u64);
            let disks = Disks::default();
            disks.add("parent", &from);
            let child = disks.add("child", &into);
            let at = branch((&from, parent.clone()), Goal::Through(goal), (&into, child.clone()));
            let at = at.expect("the log has it");
            let life = Life::start_over(child, &into, seed).expect("it starts");
            let expected = states.iter().find(|(record, _)| *record == at).map(|(_, state)| *state);
            assert!(expected.is_none_or(|expected| expected == held(&life)));
            branched += u32::from(expected.is_some());
        }
        // A window that is opened now reaches back to the older one.
        let store = archived::with_window(parent.clone());
        let mut life = Life::start_over(store.clone(), &from, seed).expect("as ever");
        life.archive_log_by(super::worker::archiver(&from), DISK_NANOS);
        live(&mut life, &mut Random::stream(seed, "later"), 8);
        drop(life);
        from.kill_process();
        let extents = store.log().list().expect("it lists");
        let oldest = snapshots.into_iter().min().expect("there are two");
        let covered = archive::covered(&extents, oldest);
        assert!(covered > tail, "archived without a gap from {oldest} to {covered}, not {tail}");
    }
    assert!(branched > 6, "{branched}");
}

#[test]
fn a_branch_that_fails_leaves_no_pin_and_one_waits_for_who_prunes() {
    let (from, parent, _, states) = with_two_snapshots(3);
    let goal = Goal::Through(states.last().expect("there are some").0);
    let mut worker = reader(&from, parent.clone());
    let mut course = worker.unclaimed();
    let fork = worker.find_fork(goal, &mut course).expect("it is there");
    // The mark of one that removes old snapshots: a draft that is not published.
    let mark = "pin-18446744073709551615-00000000000000000001-0000000000000001";
    let draft = parent.archive().begin(mark).expect("nobody has the name");
    assert!(parent.is_being_pruned().expect("it lists"));
    let branch = base::Incarnation(77);
    let why = worker.keep_for_branch(&fork, branch, "a branch", &mut course).map(|_| ());
    let why = why.expect_err("the one never ends").to_string();
    assert!(why.contains("old snapshots are being removed"), "{why}");
    assert_eq!(parent.pins().expect("it lists"), []);
    draft.abandon().expect("the disk is whole");
    worker.keep_for_branch(&fork, branch, "a branch", &mut course).expect("nobody is at it");
    assert_eq!(parent.pins().expect("it lists").len(), 1);
}

/// A thread that shows while it is at work.
struct Marked {
    inner: Box<dyn DiskQueue>,
    at_work: Arc<AtomicBool>,
}

impl DiskQueue for Marked {
    fn submit(&mut self, job: DiskJob) -> DiskTicket {
        let at_work = Arc::clone(&self.at_work);
        self.inner.submit(Box::new(move || {
            at_work.store(true, Ordering::Relaxed);
            let outcome = job();
            at_work.store(false, Ordering::Relaxed);
            outcome
        }))
    }

    fn poll(&mut self, done: &mut Vec<(DiskTicket, DiskOutcome)>) {
        self.inner.poll(done);
    }

    fn drain(&mut self) {
        self.inner.drain();
    }
}

/// An archive that counts who asks it: parts of snapshots are opened by the loop, nothing else is.
struct Asked {
    inner: Arc<dyn archive::Archive>,
    at_work: Arc<AtomicBool>,
    by_threads: Arc<AtomicUsize>,
    by_loop: Arc<AtomicUsize>,
}

impl Asked {
    fn note(&self) {
        let is_thread = self.at_work.load(Ordering::Relaxed);
        let count = if is_thread { &self.by_threads } else { &self.by_loop };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

impl archive::Archive for Asked {
    fn location(&self) -> String {
        self.inner.location()
    }

    fn list(&self, of: archive::Content) -> std::io::Result<Vec<archive::Entry>> {
        self.note();
        self.inner.list(of)
    }

    fn begin(&self, name: &str) -> std::io::Result<Box<dyn archive::Draft>> {
        self.inner.begin(name)
    }

    fn manifest(&self, name: &str, bytes_max: u64) -> std::io::Result<Vec<u8>> {
        self.note();
        self.inner.manifest(name, bytes_max)
    }

    fn parts(&self, name: &str) -> std::io::Result<BTreeMap<String, u64>> {
        self.note();
        self.inner.parts(name)
    }

    fn open(&self, name: &str, part: &str) -> std::io::Result<Arc<dyn archive::StoredPart>> {
        if name.starts_with("log-") {
            self.note();
        }
        self.inner.open(name, part)
    }

    fn remove(&self, name: &str) -> std::io::Result<()> {
        self.inner.remove(name)
    }

    fn remove_unpublished(&self, of: archive::Unfinished) -> std::io::Result<()> {
        self.inner.remove_unpublished(of)
    }

    fn claim(&self, said: &[u8]) -> std::io::Result<Option<Box<dyn archive::Claim>>> {
        self.inner.claim(said)
    }

    fn claimed(&self) -> std::io::Result<Option<Vec<u8>>> {
        self.inner.claimed()
    }
}

#[test]
fn a_start_on_a_branch_asks_the_parent_s_archive_by_threads_and_not_by_the_loop() {
    let (from, ledger) = archived::lived(6);
    let disks = Disks::default();
    let parent = disks.add("parent", &from);
    let (at, state) = ledger.states().last().expect("it was written to");
    let into = SimDisk::new(611);
    let child = disks.add("child", &into);
    branch((&from, parent), Goal::Through(at), (&into, child.clone())).expect("it is");
    let (at_work, by_threads, by_loop) = (
        Arc::<AtomicBool>::default(),
        Arc::<AtomicUsize>::default(),
        Arc::<AtomicUsize>::default(),
    );
    let (marked, threads, turns) = (at_work.clone(), by_threads.clone(), by_loop.clone());
    let child = child.with_parents(Arc::new(move |name, access| {
        Ok(Arc::new(Asked {
            inner: disks.open(name, access)?,
            at_work: marked.clone(),
            by_threads: threads.clone(),
            by_loop: turns.clone(),
        }))
    }));
    let timeline = Timeline::new();
    let clock: Arc<dyn base::Clock> = Arc::new(sim::clock::SimClock::new(&timeline));
    let (settings, seeds) = (Default::default(), base::Seeds::fixed(9));
    let sources = Sources { clock, store: child, settings, seeds };
    let opened = |known: &_| open_log(&into, &timeline, known);
    let mut loading = Loading::open(sources, opened).expect("there is a log");
    let reader = Marked { inner: queue(&timeline, 5), at_work };
    loading.read_parts_by(vec![Box::new(reader)]);
    loading.finish(|| timeline.pass(DISK_NANOS)).expect("the data can be had back");
    assert_eq!(loading.take_readers().len(), 1, "the thread comes back");
    let (engine, ..) = loading.into_loaded().expect("it is loaded");
    assert_eq!(Digest::of_keyspace(&engine.keyspace), state);
    let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
    assert!(count(&by_threads) > 3, "{}", count(&by_threads));
    assert_eq!(count(&by_loop), 0);
}

#[test]
fn a_moment_before_a_branch_began_is_said_to_be_its_parent_s() {
    let (from, ledger) = archived::lived(6);
    let disks = Disks::default();
    let parent = disks.add("parent", &from);
    let (at, _) = ledger.states().last().expect("it was written to");
    let into = SimDisk::new(621);
    let child = disks.add("child", &into);
    branch((&from, parent), Goal::Through(at), (&into, child.clone())).expect("it is");
    let mut worker = reader(&into, child);
    let mut course = worker.unclaimed();
    let goal = Goal::Clock(base::UnixMillis(1));
    let why = worker.load_moment(goal, &mut course).map(|_| ()).expect_err("it is not here");
    let why = why.to_string();
    assert!(why.contains("before this branch began") && why.contains("are in parent"), "{why}");
    let why = worker.find_fork(goal, &mut course).map(|_| ()).expect_err("nor for a branch of it");
    assert!(why.to_string().contains("before this branch began"), "{why}");
}

#[test]
fn a_moment_behind_a_branch_s_beginning_is_not_said_to_be_before_it() {
    let (from, ledger) = archived::lived(6);
    let disks = Disks::default();
    let parent = disks.add("parent", &from);
    let (at, _) = ledger.states().last().expect("it was written to");
    let into = SimDisk::new(622);
    let child = disks.add("child", &into);
    branch((&from, parent), Goal::Through(at), (&into, child.clone())).expect("it is");
    // Its parent's data cannot be had.
    disks.0.lock().expect("no holder panics").remove("parent");
    let mut worker = reader(&into, child);
    let mut course = worker.unclaimed();
    let goal = Goal::Clock(base::UnixMillis(i64::MAX));
    let why = worker.load_moment(goal, &mut course).map(|_| ()).expect_err("it is not here");
    let why = why.to_string();
    assert!(why.contains("cannot be read") && !why.contains("before this branch began"), "{why}");
}
