//! Where the shard's snapshots and its archived log are, what goes wrong there, and with which keys
//! all of it is encrypted.
//!
//! Every process has a disk of its own over one that all share, as machines have over a network. A
//! run with workers draws a restore window, how many snapshots stay, and in some of its runs keys,
//! which are rotated as an operator does it: first all processes get the new key beside the old
//! one, and only when all have it does it become current, for one after the other.

use super::Seen;
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::faulty_disk::{DiskOdds, FaultyDisk};
use crate::limits::Limits;
use crate::random::Random;
use crate::timeline::Timeline;
use archive::SnapshotStore;
use base::MonotonicNanos;
use encryption::{Keyring, Keys};
use shard::archived::{Need, archive};
use shard::loading::OpenLog;
use shard::snapshots::ArchiveLog;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use txlog::remote::memory::{Fate, MemoryService};
use txlog::remote::store::StoreLimits;
use txlog::remote::{RemoteLimits, RemoteLog};

/// Where the snapshots are; where stores are apart, with the number of the process behind it.
const STORE: &str = "/data/snapshots";

/// A restore window longer than any run, in seconds, whatever its clocks do.
pub const WINDOW_SECONDS: u64 = 1_000_000;

/// What the key file says at each stage of a rotation.
const STAGES: [&str; 3] = [
    "old 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
    "old 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f\n\
     new f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f",
    "new f0f1f2f3f4f5f6f7f8f9fafbfcfdfeff000102030405060708090a0b0c0d0e0f\n\
     old 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f",
];

/// Nobody asks an archive that answers nothing more often than this at one instant.
const ASKED_MAX: u32 = 1_000;

/// A process's keys, and the stage of the rotation at which it has them.
pub struct HeldKeys {
    pub keys: Keys,
    stage: Cell<usize>,
}

/// What a process has of the archive.
pub struct Access {
    pub store: SnapshotStore,
    pub disk: FaultyDisk,
    pub held: HeldKeys,
}

/// The archive of a run.
pub struct Storage {
    disk: SimDisk,
    random: RefCell<Random>,
    pub odds: Arc<DiskOdds>,
    pub limits: archive::Limits,
    /// The stage of the key file, and when its first change is due; `None`: there are no keys.
    keys: Option<(Cell<usize>, MonotonicNanos)>,
    /// When faults begin or end next; `None`: never.
    next_at: Cell<Option<MonotonicNanos>>,
    /// How long a job on the disk takes at least, in nanoseconds.
    pub job_nanos: u64,
    /// The same of a job in which the log is archived.
    pub archiving_nanos: u64,
}

/// How long a job on the disk takes at least where nothing is wrong, in nanoseconds.
pub const DISK_NANOS: u64 = 50_000;

impl Storage {
    /// The archive of a run without workers: nothing goes wrong there.
    pub fn plain(seed: u64, disk: &SimDisk, limits: &Limits) -> Self {
        Self {
            disk: disk.clone(),
            random: RefCell::new(Random::stream(seed, "archive")),
            odds: Arc::default(),
            limits: limits.snapshots,
            keys: None,
            next_at: Cell::new(None),
            job_nanos: DISK_NANOS,
            archiving_nanos: DISK_NANOS,
        }
    }

    /// The archive of a run that lasts for so long.
    pub fn draw(
        seed: u64,
        disk: &SimDisk,
        limits: &Limits,
        now: MonotonicNanos,
        nanos: u64,
    ) -> Self {
        let plain = Self::plain(seed, disk, limits);
        let mut random = plain.random.borrow_mut();
        let limits = archive::Limits {
            retained: *random.choose(&[1, 2, 2, 3]),
            window_seconds: *random.choose(&[0, 1, WINDOW_SECONDS, WINDOW_SECONDS]),
            window_spacing_seconds: *random.choose(&[1, 3]),
            ..plain.limits
        };
        let rotates_at = MonotonicNanos(now.0 + random.within(0..nanos / 2));
        let keys = random.chance(40).then(|| (Cell::new(0), rotates_at));
        let job_nanos =
            *random.choose(&[DISK_NANOS, DISK_NANOS, 20 * DISK_NANOS, 200 * DISK_NANOS]);
        let archiving_nanos = *random.choose(&[job_nanos, job_nanos, nanos / 20, nanos / 5]);
        let next_at = Cell::new(random.chance(66).then_some(now));
        drop(random);
        Self { limits, keys, job_nanos, archiving_nanos, next_at, ..plain }
    }

    /// What a process has of it that begins now; with a number, on a disk of its own.
    ///
    /// # Errors
    /// The archive's.
    pub fn open(&self, apart: Option<usize>) -> Result<Access, String> {
        let random = Random::from_seed(self.random.borrow_mut().draw());
        let disk = FaultyDisk::new(&self.disk, &self.odds, random);
        let path = apart.map_or(STORE.to_owned(), |index| format!("{STORE}-{index}"));
        let held = self.keys();
        let store = SnapshotStore::open(Arc::new(disk.clone()), Path::new(&path));
        let store = store.map_err(|error| error.to_string())?;
        let store = store.with_limits(self.limits).with_keys(held.keys.clone());
        Ok(Access { store, disk, held })
    }

    fn keys(&self) -> HeldKeys {
        let Some((stage, _)) = &self.keys else {
            return HeldKeys { keys: Keys::none(), stage: Cell::new(0) };
        };
        let random = Mutex::new(Random::from_seed(self.random.borrow_mut().draw()));
        let entropy = move |bytes: &mut [u8]| {
            let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.iter_mut().for_each(|byte| *byte = random.draw() as u8);
        };
        let keys = Keys::new(ring(stage.get()), Arc::new(entropy)).expect("the keys are local");
        HeldKeys { keys, stage: Cell::new(stage.get()) }
    }

    /// The keys of whoever reads everything.
    pub fn all_keys(&self) -> Keys {
        let held = self.keys();
        if self.keys.is_some() {
            held.keys.replace(ring(1)).expect("they are local, and hold those of before");
        }
        held.keys
    }

    pub fn is_encrypted(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether the new key is current.
    pub fn is_rotated(&self) -> bool {
        self.keys.as_ref().is_some_and(|(stage, _)| stage.get() == 2)
    }

    /// Lets a process read the key file again: at once if a key was added, some time if another one
    /// became current.
    pub fn reread(&self, held: &HeldKeys) {
        let Some((stage, _)) = &self.keys else { return };
        let (known, newest) = (held.stage.get(), stage.get());
        if known < newest && (known == 0 || self.random.borrow_mut().chance(5)) {
            held.keys.replace(ring(known + 1)).expect("they are local, and hold those of before");
            held.stage.set(known + 1);
        }
    }

    /// Goes on with the rotation, if it is time. `all_have` says whether everybody holds the keys
    /// of this stage.
    pub fn rotate(&self, now: MonotonicNanos, all_have: impl FnOnce(usize) -> bool) {
        let Some((stage, rotates_at)) = &self.keys else { return };
        match stage.get() {
            0 if now >= *rotates_at => stage.set(1),
            1 if all_have(1) => stage.set(2),
            _ => {}
        }
    }

    /// When something changes though nobody does anything.
    pub fn next_at(&self) -> Option<MonotonicNanos> {
        self.next_at.get()
    }

    /// Faults begin or end; rarely the archive's machine loses power, and all that was not synced.
    pub fn disturb(&self, now: MonotonicNanos, lease_nanos: u64, seen: &mut Seen) {
        if self.next_at.get().is_none_or(|at| now < at) {
            return;
        }
        let mut random = self.random.borrow_mut();
        self.odds.set(*random.choose(&[0, 0, 3, 10, 60]));
        self.next_at.set(Some(MonotonicNanos(now.0 + random.within(0..4 * lease_nanos))));
        if random.chance(10) {
            self.disk.cut_power();
            self.disk.restart();
            seen.off_box.cuts += 1;
        }
    }

    /// Nothing goes wrong any more.
    pub fn heal(&self) {
        self.next_at.set(None);
        self.odds.set(0);
    }
}

impl HeldKeys {
    pub fn stage(&self) -> usize {
        self.stage.get()
    }
}

fn ring(stage: usize) -> Arc<Keyring> {
    Arc::new(Keyring::parse(STAGES[stage].as_bytes()).expect("the keys are right"))
}

/// Whether a process may end because of this: the archive failed it.
pub fn is_fault(why: &str) -> bool {
    why.contains(crate::faulty_disk::FAULT) || why.contains("the process of this handle is dead")
}

/// How a server archives the log: in a job, so within one instant.
pub fn archiver(
    service: &MemoryService,
    timeline: &Timeline,
    limits: StoreLimits,
    remote: RemoteLimits,
) -> ArchiveLog {
    let (service, timeline) = (service.clone(), timeline.clone());
    Arc::new(move |store, now, through, _| {
        let connected = service.connect(limits, 1, Box::new(|_| Fate::default()));
        let clock = Arc::new(SimClock::new(&timeline));
        let handle = RemoteLog::limited(Box::new(connected), clock, remote);
        let incarnation = handle.incarnation();
        let log = OpenLog { handle: Box::new(handle), incarnation, is_free: false };
        let mut asked = 0;
        let archived = archive(store, log, Need::Window(now), through, &mut |_, is_idle| {
            asked = if is_idle { asked + 1 } else { 0 };
            if asked > ASKED_MAX { Err("the log does not answer".into()) } else { Ok(()) }
        });
        archived.map_err(|why| why.to_string())
    })
}
