//! The archive over stores in memory that behave badly, and over a directory.

mod claims;
mod looks;
mod pieces;
mod tidying;

use super::bucket::TOMBSTONE;
use super::times::{Patience, Times};
use super::{ARCHIVE, ObjectArchive};
use crate::bucket::Service;
use crate::bucket::faulty::{Fault, Faulty};
use crate::bucket::location::{Location, Store};
use archive::conformance::{self, Bench};
use archive::{Archive, Draft, Entry, StoredPart, Unfinished};
use base::{Clock, MonotonicNanos};
use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutPayload};
use std::future::Future;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

const NAME: &str = "snapshot-00000000000000000007-000";

/// Short waits, but for those that the clock below measures.
const TIMES: Times = Times {
    renewal: Duration::from_millis(5),
    small: Patience {
        attempt: Duration::from_secs(5),
        all: Duration::from_secs(20),
        pause: Duration::from_millis(1),
    },
    large: Patience {
        attempt: Duration::from_secs(5),
        all: Duration::from_secs(20),
        pause: Duration::from_millis(1),
    },
    ..Times::DEFAULT
};

/// A writer with them is frozen from the beginning: it never renews its sign.
const FROZEN: Times = Times { renewal: Duration::from_secs(3600), ..TIMES };

/// Nothing is tried for long.
const IMPATIENT: Times = Times {
    small: Patience { all: Duration::from_millis(50), ..TIMES.small },
    large: Patience { all: Duration::from_millis(50), ..TIMES.large },
    ..TIMES
};

/// Goes on when it is told to.
#[derive(Default)]
struct HandClock(AtomicU64);

impl HandClock {
    fn pass(&self, time: Duration) {
        self.0.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }
}

impl Clock for HandClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.load(Ordering::Relaxed))
    }
}

/// A store, and processes that have archives in it.
struct World {
    store: Arc<Faulty>,
    clock: Arc<HandClock>,
    opened: AtomicU64,
}

impl World {
    fn new() -> Self {
        Self { store: Arc::default(), clock: Arc::default(), opened: AtomicU64::new(0) }
    }

    fn open(&self, times: Times) -> ObjectArchive {
        self.try_open(times).expect("the store is well")
    }

    fn try_open(&self, times: Times) -> io::Result<ObjectArchive> {
        let store = Store {
            objects: Arc::clone(&self.store) as Arc<dyn ObjectStore>,
            prefix: Path::from("some/shard"),
            service: Service::S3,
            directory: None,
        };
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let entropy = self.opened.fetch_add(1, Ordering::Relaxed);
        ObjectArchive::open("s3://bucket/some/shard", store, clock, entropy, times)
    }

    /// So much time passes that who was silent is dead, and what it left is not young.
    fn pass_silence(&self) {
        self.clock.pass(TIMES.silence + Duration::from_secs(1));
    }

    /// The names of all objects below the prefix.
    fn objects(&self) -> Vec<String> {
        let listed = self.store.inner().list(None).map_ok(|meta| meta.location.to_string());
        let mut names: Vec<String> = block_on(listed.try_collect()).expect("it is in memory");
        names.sort();
        let short = |name: String| name.trim_start_matches("some/shard/").to_owned();
        names.into_iter().map(short).collect()
    }

    fn get(&self, name: &str) -> Option<Bytes> {
        let path = Path::from(format!("some/shard/{name}"));
        block_on(async { self.store.inner().get(&path).await.ok()?.bytes().await.ok() })
    }

    /// Puts an object past all faults; whether nothing stood there.
    fn create(&self, name: &str, bytes: &[u8]) -> bool {
        create(&self.store, name, bytes)
    }
}

fn create(store: &Faulty, name: &str, bytes: &[u8]) -> bool {
    let path = Path::from(format!("some/shard/{name}"));
    let payload = PutPayload::from(bytes.to_vec());
    block_on(store.inner().put_opts(&path, payload, PutMode::Create.into())).is_ok()
}

/// Polls what is ready at once: nothing in memory waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(work).expect("a store in memory answers at once")
}

fn write(draft: &mut dyn Draft, index: usize, bytes: &[u8]) -> io::Result<String> {
    let name = draft.part_name(index);
    let mut part = draft.part(&name)?;
    part.append(bytes)?;
    part.finish()?;
    Ok(name)
}

fn names(entries: &[Entry]) -> Vec<(&str, bool)> {
    entries.iter().map(|entry| (&*entry.name, entry.is_published)).collect()
}

fn pause(time: Duration) {
    #[expect(clippy::disallowed_methods, reason = "what renews a sign does so in real time")]
    std::thread::sleep(time);
}

/// Waits until something is so.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..10_000 {
        if is_so() {
            return;
        }
        pause(Duration::from_millis(2));
    }
    panic!("never came: {what}");
}

/// How the store behaves while the suite runs.
#[derive(Clone, Copy)]
enum Temper {
    Well,
    /// Every other put is done, and not answered.
    Forgetful,
    /// One of three requests fails.
    Busy,
}

struct MemoryBench {
    world: World,
    temper: Temper,
}

impl MemoryBench {
    fn set_temper(&self, is_on: bool) {
        match self.temper {
            Temper::Well => {}
            Temper::Forgetful => self.world.store.set_forgetful(is_on),
            Temper::Busy => self.world.store.set_busy_every(if is_on { 3 } else { 0 }),
        }
    }
}

impl Bench for MemoryBench {
    fn reset(&mut self) {
        self.world = World::new();
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        // Whether a store keeps its word is asked once, of one that is well.
        self.set_temper(false);
        let archive = self.world.open(TIMES);
        self.set_temper(true);
        Arc::new(archive)
    }

    fn pass_silence(&mut self) {
        pause(Duration::from_millis(200));
        self.world.pass_silence();
    }

    fn large_bytes(&self) -> usize {
        (20 << 20) + 12_345
    }

    fn at_once(&self, works: Vec<Box<dyn FnOnce() + Send + '_>>) {
        at_once(works);
    }
}

fn at_once(works: Vec<Box<dyn FnOnce() + Send + '_>>) {
    std::thread::scope(|scope| {
        for work in works {
            scope.spawn(work);
        }
    });
}

#[test]
fn objects_keep_what_every_archive_must() {
    conformance::run(&mut MemoryBench { world: World::new(), temper: Temper::Well });
}

#[test]
fn objects_keep_it_though_answers_to_puts_are_lost() {
    conformance::run(&mut MemoryBench { world: World::new(), temper: Temper::Forgetful });
}

#[test]
fn objects_keep_it_though_the_store_is_busy() {
    conformance::run(&mut MemoryBench { world: World::new(), temper: Temper::Busy });
}

struct DirectoryBench {
    path: std::path::PathBuf,
    clock: Arc<HandClock>,
    opened: u64,
}

impl Bench for DirectoryBench {
    fn reset(&mut self) {
        // It may not be there yet.
        let _ = std::fs::remove_dir_all(&self.path);
    }

    fn open(&mut self) -> Arc<dyn Archive> {
        let url = format!("file-object:{}", self.path.display());
        let (location, _) = Location::parse(&url, &ARCHIVE).expect("the URL is right");
        let store = location.store(true, &ARCHIVE).expect("a directory can be made");
        self.opened += 1;
        let clock = Arc::clone(&self.clock) as Arc<dyn Clock>;
        let archive = ObjectArchive::open(&url, store, clock, self.opened, TIMES);
        Arc::new(archive.expect("the directory is well"))
    }

    fn pass_silence(&mut self) {
        pause(Duration::from_millis(500));
        self.clock.pass(TIMES.silence + Duration::from_secs(1));
    }

    fn large_bytes(&self) -> usize {
        (20 << 20) + 12_345
    }

    fn at_once(&self, works: Vec<Box<dyn FnOnce() + Send + '_>>) {
        at_once(works);
    }
}

#[test]
fn objects_that_are_files_keep_what_every_archive_must() {
    let path = std::env::temp_dir().join(format!("kiln-archive-{}", std::process::id()));
    conformance::run(&mut DirectoryBench { path: path.clone(), clock: Arc::default(), opened: 0 });
    std::fs::remove_dir_all(path).expect("the snapshots lie there");
}

#[test]
fn what_a_manifest_is_put_for_is_published_once_whatever_is_told() {
    let world = World::new();
    let archive = world.open(TIMES);
    for (number, fault) in
        [Fault::LosesAnswer, Fault::LosesRequest, Fault::Conflicts].into_iter().enumerate()
    {
        let name = format!("snapshot-00000000000000000007-{number:03}");
        let mut draft = archive.begin(&name).expect("nobody has the name");
        world.store.fail_next([fault]);
        draft.publish(b"manifest").expect("it is repeated, or found");
        let why = draft.publish(b"manifest").expect_err("it is published");
        assert_eq!(why.kind(), ErrorKind::AlreadyExists);
        assert_eq!(archive.manifest(&name, 100).expect("it is there"), b"manifest");
    }
    let mut draft = archive.begin(NAME.replace("000", "009").as_str()).expect("nobody has it");
    write(&mut *draft, 0, b"part").expect("the store is well");
    world.create(&format!("{}/manifest.json", NAME.replace("000", "009")), b"another's");
    let why = draft.publish(b"manifest").expect_err("another one is there");
    assert_eq!(why.kind(), ErrorKind::AlreadyExists);
    draft.abandon().expect("the store is well");
    let name = NAME.replace("000", "009");
    assert_eq!(archive.manifest(&name, 100).expect("it is not touched"), b"another's");
}

/// A manifest whose put is in doubt does not come late: it is found and removed, or held off.
#[test]
fn what_is_abandoned_in_doubt_is_not_published_later() {
    for lands in [false, true] {
        let world = World::new();
        let archive = world.open(IMPATIENT);
        let mut draft = archive.begin(NAME).expect("nobody has the name");
        write(&mut *draft, 0, b"part").expect("the store is well");
        let fault = if lands { Fault::LosesAnswer } else { Fault::LosesRequest };
        world.store.fail_next([fault]);
        // Behind the look at the sign and the put nothing is answered until it is given up.
        let store = Arc::clone(&world.store);
        world.store.interrupt(3, move || store.set_away(true));
        draft.publish(b"manifest").expect_err("nobody answers");
        world.store.set_away(false);
        draft.abandon().expect("the store answers again");
        assert_eq!(world.create(&format!("{NAME}/manifest.json"), b"manifest"), lands);
        let left: Vec<String> =
            world.objects().into_iter().filter(|it| !it.ends_with("manifest.json")).collect();
        assert_eq!(left, [""; 0]);
    }
}

#[test]
fn a_store_that_ignores_the_condition_is_refused_and_one_that_is_read_is_not_touched() {
    let world = World::new();
    world.store.fail_next([Fault::LosesRequest]);
    assert!(world.try_open(TIMES).is_err(), "it does not answer");
    let faults = [Fault::Overwrites, Fault::Overwrites];
    world.store.fail_next(faults);
    let why = world.try_open(TIMES).err().expect("it overwrites");
    assert_eq!(why.kind(), ErrorKind::Unsupported);
    assert!(why.to_string().contains("so it cannot hold snapshots"), "{why}");

    let world = World::new();
    let archive = world.open(TIMES);
    assert!(archive.bucket.has_versions && world.objects().is_empty(), "what was tried is gone");
    archive.begin(NAME).expect("nobody has it").publish(b"manifest").expect("it is new");
    let store = Store {
        objects: Arc::clone(&world.store) as Arc<dyn ObjectStore>,
        prefix: Path::from("some/shard"),
        service: Service::S3,
        directory: None,
    };
    let before = world.objects();
    let bucket = ObjectArchive::over(store, TIMES, false);
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let reader = ObjectArchive::new("s3://b/p", bucket, clock, None).expect("a thread can be had");
    assert_eq!(reader.manifest(NAME, 100).expect("it is published"), b"manifest");
    assert_eq!(reader.claimed().expect("it can be asked"), None);
    let outcomes = [
        reader.begin("snapshot-x").err(),
        reader.remove(NAME).err(),
        reader.remove_unpublished(Unfinished::All).err(),
        reader.claim(b"mine").err(),
    ];
    for outcome in outcomes {
        assert_eq!(outcome.expect("it only reads").kind(), ErrorKind::PermissionDenied);
    }
    assert_eq!(world.objects(), before);
}

/// A store whose answers are lost is neither refused for it nor trusted less.
#[test]
fn a_store_is_known_though_its_answers_are_lost() {
    let world = World::new();
    // What a put and what an update are tried with.
    world.store.fail_next([Fault::MeetsItself]);
    world.store.let_updates_meet(1);
    let archive = world.open(TIMES);
    assert!(archive.bucket.has_versions && world.objects().is_empty());
    world.store.fail_next([Fault::LosesAnswer]);
    let why = world.try_open(TIMES).err().expect("the client gave that put up");
    assert!(why.to_string().contains("timed out"), "{why}");

    // One that fails amid the updates is asked again.
    for at in 6..=8 {
        let world = World::new();
        let store = Arc::clone(&world.store);
        world.store.interrupt(at, move || store.set_busy(1));
        assert!(world.open(TIMES).bucket.has_versions, "failed at request {at}");
    }
}

#[test]
fn what_the_store_does_not_answer_is_not_taken_for_absent() {
    let world = World::new();
    let archive = world.open(IMPATIENT);
    let mut draft = archive.begin(NAME).expect("nobody has it");
    let part = write(&mut *draft, 0, b"part").expect("the store is well");
    draft.publish(b"manifest").expect("it is new");
    world.store.set_away(true);
    let failures = [
        archive.list(archive::Content::Snapshots).err(),
        archive.manifest(NAME, 100).err(),
        archive.parts(NAME).err(),
        archive.open(NAME, &part).err(),
        archive.remove_unpublished(Unfinished::All).err(),
        archive.claimed().err(),
        archive.claim(b"").err(),
        archive.begin("snapshot-x").err(),
    ];
    for failure in failures {
        let failure = failure.expect("nobody answers");
        let kind = failure.kind();
        assert!(!matches!(kind, ErrorKind::NotFound | ErrorKind::InvalidData), "{failure}");
    }
    world.store.set_away(false);
    assert_eq!(
        names(&archive.list(archive::Content::Snapshots).expect("it answers")),
        [(NAME, true)]
    );
}

#[test]
fn an_archive_may_lie_beside_a_log_and_takes_no_notice_of_it() {
    let world = World::new();
    let archive = world.open(TIMES);
    let others = ["incarnation", "0000000000000001/log/00000000000000000001", "zebra", "snap"];
    for name in others {
        assert!(world.create(name, b"another's"));
    }
    let name = format!("{NAME}/manifest.json");
    assert!(world.create(&name, b"manifest"));
    assert_eq!(
        names(&archive.list(archive::Content::Snapshots).expect("it answers")),
        [(NAME, true)]
    );
    archive.remove(NAME).expect("it can be removed");
    archive.remove_unpublished(Unfinished::All).expect("there is nothing");
    let mut left: Vec<String> = others.map(str::to_owned).into();
    left.sort();
    assert_eq!(world.objects(), left);
}

/// As `docs/formats/snapshot.md` has them.
#[test]
fn small_objects_are_the_documented_ones() {
    let writer = super::sign::Writer(0x0123_4567_89ab_cdef);
    let sign = super::sign::content(writer, 7);
    assert_eq!(sign, &b"{\"writer\":\"0123456789abcdef\",\"renewed\":7}\n"[..]);
    let claim = super::claim::content(writer, 7, b"{}").expect("it is short");
    assert_eq!(claim, &b"{\"holder\":\"0123456789abcdef\",\"renewal\":7}\n{}"[..]);
    assert_eq!(TOMBSTONE, b"{\"abandoned\":true}\n");
    assert_eq!(TOMBSTONE.len(), 19);
    archive::Manifest::decode(TOMBSTONE).expect_err("a tombstone is no manifest");
}
