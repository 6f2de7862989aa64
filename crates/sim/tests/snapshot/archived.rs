//! The log in the archive: nothing is trimmed that is not there, and every moment of the restore
//! window can be had from log and archive together.

use super::branch::{Named, Outage};
use super::crash::requests;
use super::worker::{archiver, open_log, worker};
use super::world::{DISK_NANOS, LOG, Ledger, Life, STORE, store};
use archive::{Candidate, Content, Extent, Facts, SnapshotPoint, SnapshotStore, StretchFacts};
use base::{Clock, Disk, Incarnation, Position, Sequence};
use engine::digest::Digest;
use shard::archived::{ArchivedLog, Need, archive};
use shard::loading::{KnownLog, OpenLog};
use shard::snapshots::ArchiveLog;
use sim::disk::SimDisk;
use sim::random::Random;
use sim::timeline::Timeline;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use txlog::reader::Goal;
use txlog::{History, LogEvent};
use worker::{Outcome, ShardData};

/// Longer than any run.
const WINDOW_SECONDS: u64 = 1_000_000;

pub fn with_window(store: SnapshotStore) -> SnapshotStore {
    let limits = archive::Limits {
        window_seconds: WINDOW_SECONDS,
        window_spacing_seconds: 1,
        ..store.limits()
    };
    store.with_limits(limits)
}

/// A node with a restore window, whose log was trimmed again and again.
pub fn lived(seed: u64) -> (SimDisk, Ledger) {
    lived_with(seed, archiver)
}

/// The same, where the log is archived in this way.
fn lived_with(seed: u64, archiver: impl Fn(&SimDisk) -> ArchiveLog) -> (SimDisk, Ledger) {
    let disk = SimDisk::new(seed);
    let mut ledger = Ledger::default();
    let life = Life::start_limited(&disk, seed, &mut ledger, with_window);
    let mut life = life.expect("the disk is whole");
    life.archive_log_by(archiver(&disk), DISK_NANOS);
    let mut random = Random::stream(seed, "archived");
    for _ in 0..60 {
        life.client.send(&requests(&mut random));
        life.client.send(b"BGSAVE SCHEDULE\r\n");
        for _ in 0..random.within(5..40) {
            assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
        }
    }
    drop(life);
    disk.kill_process();
    (disk, ledger)
}

/// Where the log begins, without what is archived.
fn first(disk: &SimDisk) -> Sequence {
    let found = txlog::file::inspect(Arc::new(disk.clone()), Path::new(LOG));
    found.expect("it is whole").first.sequence
}

/// What the shard held at a goal, by log and archive together.
pub fn load(disk: &SimDisk, goal: Goal) -> Result<ShardData, String> {
    let timeline = Timeline::new();
    let mut worker = worker(disk, &timeline, 1);
    let (disk, log) = (disk.clone(), worker.store.log());
    worker.open_log = Box::new(move |known| {
        open_log(&disk, &timeline, known).map(|opened| ArchivedLog::over(opened, log.clone()))
    });
    let mut course = worker.unclaimed();
    worker.load_moment(goal, &mut course).map_err(|why| why.to_string())
}

#[test]
fn every_moment_is_had_from_log_and_archive() {
    let (mut moments, mut trimmed) = (0, 0);
    for seed in 1..=20 {
        let (disk, ledger) = lived(seed);
        let begins = first(&disk);
        let store = store(&disk).expect("the disk is whole");
        // The archive begins with the log, as the window was there before the first snapshot.
        let oldest = Sequence(1);
        assert_eq!(store.log().list().expect("it lists")[0].first, oldest);
        for (at, state) in ledger.states().filter(|(at, _)| *at >= oldest) {
            let moment = load(&disk, Goal::Through(at)).expect("it can be had");
            assert_eq!(moment.position.sequence, at);
            assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state, "record {at}");
            moments += 1;
            trimmed += u32::from(at < begins);
        }
    }
    assert!(moments > 1000 && trimmed > 300, "{moments}, of which {trimmed} were trimmed");
}

#[test]
fn a_log_that_could_not_be_archived_at_first_stays_until_it_is() {
    for failures in 1..=4 {
        // Before anything is archived, or behind the first stretch.
        for from in 0..2 {
            let (disk, ledger) = lived_with(failures, |disk| {
                let (archive, calls) = (archiver(disk), AtomicU64::new(0));
                let branching = disk.clone();
                Arc::new(move |store, now, through, is_over| {
                    let call = calls.fetch_add(1, Ordering::Relaxed);
                    if (from..from + failures).contains(&call) {
                        archive_for_a_branch(&branching, store, through);
                        return Err("it cannot be archived".to_owned());
                    }
                    archive(store, now, through, is_over)
                })
            });
            let store = store(&disk).expect("the disk is whole");
            let archived = store.log().list().expect("it lists");
            assert_eq!(archived[0].first, Sequence(1));
            assert!(first(&disk) > archived[0].last, "it was trimmed");
            for (at, state) in ledger.states().filter(|(at, _)| *at > Sequence::ZERO) {
                let moment = load(&disk, Goal::Through(at)).expect("it can be had");
                assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state, "record {at}");
            }
        }
    }
}

#[test]
fn a_log_whose_snapshots_nobody_can_read_just_now_is_not_trimmed_unarchived() {
    let disk = SimDisk::new(623);
    let (opened, outage) = (store(&disk).expect("the disk is whole"), Arc::new(Outage::default()));
    let (archive, named) = (opened.archive(), Arc::clone(&outage));
    let named = Named { name: "here".to_owned(), archive, outage: named };
    let over = SnapshotStore::over(Arc::new(named)).with_limits(opened.limits());
    let over = with_window(over);
    let mut life = Life::start_over(over, &disk, 623).expect("it starts");
    let (fails, archive) = (Arc::new(AtomicBool::new(true)), archiver(&disk));
    let failing = Arc::clone(&fails);
    let archive_log: ArchiveLog =
        Arc::new(move |store, now, through, is_over| match failing.load(Ordering::Relaxed) {
            true => Err("it cannot be archived".to_owned()),
            false => archive(store, now, through, is_over),
        });
    life.archive_log_by(archive_log, DISK_NANOS);
    let (mut random, mut ledger) = (Random::stream(623, "requests"), Ledger::default());
    let mut turn = |life: &mut Life| assert!(life.turn(&mut ledger));
    let mut save = |life: &mut Life| {
        for _ in 0..10 {
            life.client.send(&requests(&mut random));
        }
        life.client.send(b"BGSAVE SCHEDULE\r\n");
        (0..100).for_each(|_| turn(life));
    };
    (0..25).for_each(|_| save(&mut life));
    let begins = first(&disk);
    assert_eq!(begins, Sequence(1), "nothing is archived, nothing is trimmed");
    // While it is asked which the newest one is, the store is away; behind that it is there again.
    fails.store(false, Ordering::Relaxed);
    life.client.send(b"BGSAVE SCHEDULE\r\n");
    outage.is_on.store(true, Ordering::Relaxed);
    while !outage.is_noticed.load(Ordering::Relaxed) {
        assert!(life.turn(&mut Ledger::default()));
    }
    outage.is_on.store(false, Ordering::Relaxed);
    for _ in 0..100 {
        assert!(life.turn(&mut Ledger::default()));
    }
    assert_eq!(first(&disk), begins);
    // It is tried again without another snapshot.
    let began = life.clock.monotonic();
    while life.clock.monotonic().seconds_since(began) < 70 {
        assert!(life.turn(&mut Ledger::default()));
    }
    assert_eq!(opened.log().list().expect("it lists")[0].first, begins);
    assert!(first(&disk) > begins);
}

#[test]
fn what_is_lost_of_the_archive_or_in_its_way_keeps_nothing_in_the_log() {
    for lost in ["a stretch", "one that reaches far", "another log's", "what nobody can remove"] {
        let (disk, mut ledger) = lived(6);
        let (opened, begins) = (store(&disk).expect("the disk is whole"), first(&disk));
        let extents = opened.log().list().expect("it lists");
        let mut led_from = Sequence::ZERO;
        let far = Extent::of(Sequence(1), Sequence(1 << 50));
        match lost {
            "a stretch" => {
                let gone = &extents[extents.len() / 3];
                assert!(gone.last < begins, "the log has it no more");
                let whole = opened.list().expect("it lists").into_iter();
                let whole = whole.map(|it| it.whole().expect("it is whole").point.position);
                let behind = whole.map(|at| at.sequence).filter(|it| *it >= gone.last);
                led_from = behind.min().expect("there are newer ones");
                opened.archive().remove(&gone.name()).expect("the disk is whole");
            }
            "one that reaches far" => {
                let mut draft = opened.archive().begin(&far.name()).expect("nobody has it");
                draft.publish(b"junk").expect("the disk is whole");
            }
            "what nobody can remove" => {
                let unfinished = Path::new(STORE).join("snapshot-00000000000000000001-000");
                let sign = unfinished.with_extension("writing");
                drop(disk.create_new(&sign).expect("the disk is whole"));
                let stray = unfinished.join("stray");
                disk.create_directory(&stray).expect("the disk is whole");
            }
            _ => {
                let found = opened.log().find(&extents[0]).expect("it is whole");
                let (mut facts, of) = (found.facts, Incarnation(4242));
                facts.first = Position { incarnation: of, ..facts.first };
                facts.last = far.last;
                opened.log().write(facts, b"records").expect("the disk is whole");
            }
        }
        let life = Life::start_limited(&disk, 6, &mut ledger, with_window);
        let mut life = life.expect("the disk is whole");
        life.archive_log_by(archiver(&disk), DISK_NANOS);
        let mut random = Random::stream(6, "more");
        for _ in 0..60 {
            life.client.send(&requests(&mut random));
            life.client.send(b"BGSAVE SCHEDULE\r\n");
            for _ in 0..30 {
                assert!(life.turn(&mut ledger), "{:?}", life.server.core.stopping);
            }
        }
        assert!(first(&disk) > begins, "{lost}: it is trimmed");
        let archived = life.server.core.saving().archived.expect("it is archived");
        assert!(archived >= begins && archived < far.last, "{lost}: {archived}");
        drop(life);
        disk.kill_process();
        let gone = &extents[extents.len() / 3];
        for (at, state) in ledger.states().filter(|(at, _)| *at > Sequence::ZERO) {
            match load(&disk, Goal::Through(at)) {
                Ok(moment) => assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state),
                // No snapshot of then is left that leads to it past the gap.
                Err(why) => assert!(
                    lost == "a stretch" && (gone.first..=led_from).contains(&at),
                    "{lost}: record {at}: {why}"
                ),
            }
        }
    }
}

#[test]
fn where_no_older_snapshot_leads_on_the_newest_does() {
    let (disk, _) = lived(6);
    let limits = |store: SnapshotStore| {
        let limits = archive::Limits { window_seconds: 1, ..store.limits() };
        store.with_limits(limits)
    };
    let store = limits(store(&disk).expect("the disk is whole"));
    assert!(first(&disk) > Sequence(1));
    let mut candidates = store.list().expect("it lists").into_iter();
    let newest = candidates.next().expect("there is one").whole().expect("it is whole").point;
    for candidate in candidates {
        store.archive().remove(candidate.name()).expect("the disk is whole");
    }
    for extent in store.log().list().expect("it lists") {
        store.archive().remove(&extent.name()).expect("the disk is whole");
    }
    let (archive_log, is_over) = (archiver(&disk), AtomicBool::new(false));
    let through = newest.position.sequence;
    let led_from = archive_log(&store, newest.clock, through, &is_over);
    assert_eq!(led_from, Ok(through));
}

#[test]
fn what_the_archive_lacks_behind_a_trimmed_snapshot_is_archived_from_where_it_ends() {
    let mut gaps = 0;
    for seed in 1..=20 {
        let (disk, _) = lived(seed);
        let store = with_window(store(&disk).expect("the disk is whole"));
        let (begins, extents) = (first(&disk), store.log().list().expect("it lists"));
        let remove = |name: &str| store.archive().remove(name).expect("the disk is whole");
        // Nothing leads on from the log's beginning. Some is archived of what the log still has,
        // and the snapshots that stand there are gone: one leads there, from before the trimming.
        remove(&extents[0].name());
        let Some(last) = extents.iter().find(|it| it.last.next() > begins) else { continue };
        let is_led_to = extents[0].last < begins && last.last > extents[0].last;
        if !is_led_to {
            continue;
        }
        for behind in extents.iter().filter(|it| it.last > last.last) {
            remove(&behind.name());
            gaps += 1;
        }
        for candidate in store.list().expect("it lists") {
            let snapshot = candidate.whole().expect("it is whole");
            if (begins..=last.last.next()).contains(&snapshot.point.position.sequence.next()) {
                remove(&snapshot.name);
            }
        }
        let timeline = Timeline::new();
        let log = open_log(&disk, &timeline, &KnownLog::default()).expect("the log is there");
        let through = newest_of(&disk);
        let need = Need::Window(base::UnixMillis(0));
        let done = archive(&store, log, need, through, &mut |_, is_idle| {
            if is_idle {
                timeline.pass(DISK_NANOS);
            }
            Ok(())
        });
        done.expect("the log is whole");
        let extents = store.log().list().expect("it lists");
        assert_eq!(archive::covered(&extents, oldest(&store)), through, "seed {seed}");
    }
    assert!(gaps > 10, "{gaps}");
}

/// The newest record of the log.
fn newest_of(disk: &SimDisk) -> Sequence {
    let found = txlog::file::inspect(Arc::new(disk.clone()), Path::new(LOG));
    found.expect("it is whole").tail.sequence
}

/// What is archived for a branch says nothing of the log before it, which is still there.
fn archive_for_a_branch(disk: &SimDisk, store: &SnapshotStore, through: Sequence) {
    let whole = store.list().expect("it lists").into_iter();
    let newest = whole.map(|it| it.whole().expect("it is whole").point.position.sequence).next();
    let Some(newest) = newest.filter(|it| *it < through) else { return };
    let timeline = Timeline::new();
    let log = open_log(disk, &timeline, &KnownLog::default()).expect("the log is there");
    let archived = archive(store, log, Need::Behind(newest), through, &mut |_, is_idle| {
        if is_idle {
            timeline.pass(super::world::DISK_NANOS);
        }
        Ok(())
    });
    archived.expect("the log is whole");
}

#[test]
fn a_moment_is_had_beside_a_snapshot_of_another_log() {
    let (disk, ledger) = lived(3);
    let states: Vec<_> = ledger.states().collect();
    let (at, state) = states[states.len() / 2];
    publish_as_of_another_log(&store(&disk).expect("the disk is whole"), at);
    let moment = load(&disk, Goal::Through(at)).expect("it can be had");
    assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state);
}

/// Publishes what the newest snapshot holds as what another log had behind this record.
fn publish_as_of_another_log(store: &SnapshotStore, sequence: Sequence) {
    let candidates = store.list().expect("it lists");
    let newest = candidates.iter().find_map(Candidate::whole).expect("there are snapshots");
    let position = Position { incarnation: Incarnation(4242), sequence };
    let point = SnapshotPoint { position, ..newest.point };
    let mut writer = store.begin(position).expect("the disk is whole");
    for part in 0..newest.manifest.parts.len() {
        let mut bytes = Vec::new();
        let mut reader = store.open_part(newest, part).expect("it is there");
        reader.read_to_end(&mut bytes).expect("it is whole");
        writer.write_part(&bytes).expect("the disk is whole");
    }
    let facts = Facts::unproven(point, newest.manifest.keys, 10);
    writer.publish(&facts).expect("the disk is whole");
}

fn oldest(store: &SnapshotStore) -> Sequence {
    let entries = store.list().expect("it lists").into_iter();
    let whole = entries.filter_map(|candidate| match candidate {
        archive::Candidate::Whole(snapshot) => Some(snapshot.point.position.sequence),
        archive::Candidate::Damaged { .. } => None,
    });
    whole.min().expect("there are snapshots")
}

#[test]
fn what_is_trimmed_is_archived_before() {
    for seed in 1..=10 {
        let (disk, _) = lived(seed);
        let store = store(&disk).expect("the disk is whole");
        let (begins, oldest) = (first(&disk), oldest(&store));
        let mut next = oldest.next();
        for Extent { first, last, .. } in store.log().list().expect("it lists") {
            assert!(first <= next, "records {next} to {first} are missing");
            next = next.max(last.next());
        }
        assert!(next >= begins, "{next} to {begins} is neither here nor there");
    }
}

/// Reads log and archive from a record on, through the log's end.
fn read(disk: &SimDisk, from: Sequence) -> Result<Vec<Position>, String> {
    let timeline = Timeline::new();
    let log = store(disk).expect("the disk is whole").log();
    let known = KnownLog::default();
    let opened = open_log(disk, &timeline, &known).map_err(|why| why.to_string())?;
    let OpenLog { mut handle, incarnation, .. } = ArchivedLog::over(opened, log);
    handle.read_from(Position { incarnation, sequence: from });
    let (mut events, mut read) = (Vec::new(), Vec::new());
    loop {
        handle.poll(&mut events);
        for event in events.drain(..) {
            match event {
                LogEvent::Read(position, _) => read.push(position),
                LogEvent::CaughtUp(_) => return Ok(read),
                LogEvent::Trimmed { first } => return Err(format!("trimmed up to {first}")),
                LogEvent::ReadFailed(why) => return Err(why),
                other => panic!("{other:?}"),
            }
        }
        timeline.pass(super::world::DISK_NANOS);
    }
}

#[test]
fn log_and_archive_are_read_as_one_and_damage_is_named() {
    let (disk, _) = lived(4);
    let extents = store(&disk).expect("the disk is whole").log().list().expect("it lists");
    let oldest = extents.first().expect("there are some").first;
    assert!(first(&disk) > oldest.next());
    for from in [oldest, oldest.next(), Sequence(extents[1].last.0)] {
        let read = read(&disk, from).expect("all of it is there");
        let sequences: Vec<u64> = read.iter().map(|position| position.sequence.0).collect();
        let expected: Vec<u64> = (from.0..from.0 + read.len() as u64).collect();
        assert_eq!(sequences, expected);
    }
    let why = read(&disk, Sequence(oldest.0 - 1)).expect_err("that is gone");
    assert_eq!(why, format!("trimmed up to {oldest}"));
    // Each bit of a part's file, and some of its manifest.
    let folder = Path::new(STORE).join(extents[0].name());
    for entry in disk.list(&folder).expect("it lists") {
        let path = folder.join(&entry.name);
        let step = if entry.name.ends_with(".json") { 1 } else { 97 };
        for at in (0..entry.length).step_by(step) {
            disk.damage(&path, at as usize, 2);
            match read(&disk, oldest) {
                Err(why) => assert!(why.contains("log-0000"), "{why}"),
                Ok(read) => {
                    assert!(entry.name.ends_with(".json") && !read.is_empty(), "byte {at}");
                }
            }
            disk.damage(&path, at as usize, 2);
        }
    }
    assert!(read(&disk, oldest).is_ok());
    // A stretch that is gone is a gap, not the beginning.
    let archive = archive::DirectoryArchive::open(Arc::new(disk.clone()), Path::new(STORE));
    let archive: Arc<dyn archive::Archive> = Arc::new(archive.expect("the disk is whole"));
    archive.remove(&extents[1].name()).expect("it can be removed");
    let why = read(&disk, oldest).expect_err("there is a gap");
    assert!(why.contains("neither in the log nor archived"), "{why}");
    assert_eq!(archive.list(Content::Log).expect("it lists").len(), extents.len() - 1);
}

#[test]
fn damage_is_read_around_where_another_stretch_holds_the_records() {
    let (disk, _) = lived(4);
    let log = store(&disk).expect("the disk is whole").log();
    let extents = log.list().expect("it lists");
    let oldest = extents[0].first;
    let expected = read(&disk, oldest).expect("all of it is there");
    let found = extents[..2].iter().map(|extent| {
        let (stretch, mut records) = (log.find(extent).expect("it is whole"), Vec::new());
        log.open(&stretch).expect("it is there").read_to_end(&mut records).expect("it is whole");
        (stretch.facts, records)
    });
    let [(first, of_first), (second, of_second)] = &found.collect::<Vec<_>>()[..] else {
        panic!("{extents:?}")
    };
    assert_eq!(second.first.sequence, first.last.next(), "one behind the other");
    let part = |name: &str| {
        let folder = Path::new(STORE).join(name);
        let mut parts = disk.list(&folder).expect("it lists").into_iter();
        let part = parts.find(|entry| !entry.name.ends_with(".json")).expect("it has one");
        (folder.join(&part.name), part.length as usize)
    };
    // Its last byte.
    let damage = |name: &str| {
        let (path, length) = part(name);
        disk.damage(&path, length - 1, 2);
    };
    damage(&extents[1].name());
    let why = read(&disk, oldest).expect_err("nobody else has it");
    assert!(why.contains(&extents[1].name()), "{why}");
    let again = log.write(*second, of_second).expect("the disk is whole");
    assert_eq!(again.name, format!("{}-001", extents[1].name()));
    assert_eq!(read(&disk, oldest).as_ref(), Ok(&expected));
    // One that holds both goes further than the first, and ends amid the second.
    let both =
        StretchFacts { last: second.last, behind: second.behind, clock: second.clock, ..*first };
    let both = log.write(both, &[&of_first[..], of_second].concat()).expect("the disk is whole");
    damage(&both.name);
    assert_eq!(read(&disk, oldest).as_ref(), Ok(&expected));
    // A part that is gone.
    disk.remove(&part(&again.name).0).expect("it is there");
    let why = read(&disk, oldest).expect_err("no stretch has its last record");
    assert!(why.contains("log-0000"), "{why}");
}

#[test]
fn a_place_in_the_archive_is_compared_as_one_in_the_log() {
    let (disk, _) = lived(5);
    let timeline = Timeline::new();
    let log = store(&disk).expect("the disk is whole").log();
    let stretch = log.list().expect("it lists")[0];
    let facts = log.find(&stretch).expect("it is whole").facts;
    assert!(facts.last < first(&disk));
    let opened = open_log(&disk, &timeline, &KnownLog::default()).expect("it is whole");
    let mut handle = ArchivedLog::over(opened, log).handle;
    let mut ask = |sequence, value: u64| {
        let position = Position { sequence, ..facts.first };
        let chain =
            txlog::Chain { value: txlog::record::ChainValue(value), epoch: facts.behind.epoch };
        let asked = handle.compare(position, chain);
        let mut events = Vec::new();
        loop {
            handle.poll(&mut events);
            match events.pop() {
                Some(LogEvent::Compared { ticket, history }) if ticket == asked => return history,
                None => {}
                other => panic!("{other:?}"),
            }
            timeline.pass(super::world::DISK_NANOS);
        }
    };
    assert_eq!(ask(facts.last, facts.behind.chain), History::Same);
    assert_eq!(ask(facts.last, facts.behind.chain ^ 1), History::Other);
}

#[test]
fn a_worker_archives_before_it_publishes() {
    let mut archived = 0;
    for seed in 1..=10 {
        let (disk, ledger) = super::worker::left(seed);
        let mut worker = worker(&disk, &Timeline::new(), 1);
        worker.store = with_window(worker.store);
        let Ok(Outcome::Taken(taken)) = worker.take_once() else { panic!("it is not taken") };
        let through = taken.snapshot.point.position.sequence;
        let log = worker.store.log();
        let newest = log.list().expect("it lists").pop().expect("it was archived");
        let newest = log.find(&newest).expect("it is whole");
        assert_eq!(newest.facts.last, through);
        assert_eq!(newest.facts.behind.chain, taken.snapshot.point.chain);
        // From the log's beginning, as there was no snapshot; or from the node's.
        for (at, state) in ledger.states().filter(|(at, _)| *at >= through) {
            let moment = load(&disk, Goal::Through(at)).expect("it can be had");
            assert_eq!(Digest::of_keyspace(&moment.engine.keyspace), state);
            archived += 1;
        }
    }
    assert!(archived >= 10, "{archived}");
}
