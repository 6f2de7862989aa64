//! Workers that take snapshots off the box, beside the shard.
//!
//! A worker blocks, so its attempt is one call in whose midst the world goes on, as it does in the
//! midst of a turn: whenever it waits, and at its every step. There it is stopped for a while, told
//! to end, or killed: then nothing that it still does reaches the archive.

use super::world::World;
use super::{Broken, storage};
use crate::clock::SimClock;
use crate::disk_queue::SimDiskQueue;
use crate::odds::Odds;
use crate::random::Random;
use base::disk::DiskQueue;
use base::driver::Waker;
use base::{Clock, MonotonicNanos, Seeds, Sequence};
use config::settings::engine_settings;
use engine::digest::Digest;
use shard::archived::ArchivedLog;
use shard::loading::{Failure, KnownLog, OpenLog};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use txlog::reader::Goal;
use worker::{Outcome, Worker};

/// How long one attempt may take, in nanoseconds: who waits for what does not come is told to end.
const ATTEMPT_NANOS_MAX: u64 = 3_000_000_000;

/// How long a way back to a moment may take, in nanoseconds: byte by byte and effect by effect, if
/// limits say so, and nobody else does anything meanwhile.
const MOMENT_NANOS_MAX: u64 = 60_000_000_000;

/// Time between two looks of a worker that waits, in nanoseconds.
const WAIT_NANOS: u64 = 300_000;

/// How long a step takes, in nanoseconds, at most.
const STEP_NANOS_MAX: u64 = 400_000;

/// One of so many steps of a worker is its last, and before one of so many it stands still.
const DEATH_PART: u64 = 400;
const PAUSE_PART: u64 = 300;

/// Moments to which a run goes back in the end.
const MOMENTS: u64 = 3;

/// What an attempt may end with although nothing is wrong but what was made to be.
const EXPECTED: [&str; 4] = [
    "it was told to stop",
    "another worker has taken over the claim",
    "another process has published a newer snapshot meanwhile",
    "the log was trimmed meanwhile",
];

/// A place for a worker.
pub struct Desk {
    clock: SimClock,
    random: RefCell<Random>,
    wakes_at: Cell<MonotonicNanos>,
    is_at_work: Cell<bool>,
    /// The stage of its keys, while it is at work.
    stage: Cell<usize>,
}

impl Desk {
    pub fn new(seed: u64, index: usize, clock: SimClock, now: MonotonicNanos) -> Self {
        let mut random = Random::stream(seed, &format!("worker {index}"));
        let wakes_at = MonotonicNanos(now.0 + random.within(0..1_000_000_000));
        Self {
            clock,
            random: RefCell::new(random),
            wakes_at: Cell::new(wakes_at),
            is_at_work: Cell::new(false),
            stage: Cell::new(0),
        }
    }

    /// When it begins its next attempt.
    pub fn wakes_at(&self) -> Option<MonotonicNanos> {
        (!self.is_at_work.get()).then(|| self.wakes_at.get())
    }

    /// Whether it holds the keys of this stage, or will read them when it begins.
    pub fn has_keys_of(&self, stage: usize) -> bool {
        !self.is_at_work.get() || self.stage.get() >= stage
    }
}

/// An attempt, as the world sees it.
struct Attempt {
    world: Weak<World>,
    index: usize,
    access: storage::Access,
    until: MonotonicNanos,
    is_disturbed: bool,
}

impl Attempt {
    fn pass(&self, nanos: u64) {
        if let Some(world) = self.world.upgrade() {
            world.pass(nanos + self.access.disk.take_late_nanos());
            world.storage.reread(&self.access.held);
            world.desks[self.index].stage.set(self.access.held.stage());
        }
    }

    /// A step; whether to go on.
    fn goes_on(&self) -> bool {
        let Some(world) = self.world.upgrade() else { return false };
        let desk = &world.desks[self.index];
        let within = |part| desk.random.borrow_mut().within(0..part);
        let mut nanos = within(STEP_NANOS_MAX);
        if self.is_disturbed && within(DEATH_PART) == 0 {
            world.seen.borrow_mut().off_box.deaths += 1;
            self.access.disk.kill();
            return false;
        }
        if self.is_disturbed && within(PAUSE_PART) == 0 {
            nanos += within(2 * world.lease_nanos);
        }
        self.pass(nanos);
        world.is_well() && world.now() < self.until
    }
}

impl World {
    /// The worker that begins an attempt now. None does in the midst of somebody's turn, which it
    /// would hold up.
    pub fn choose_worker(&self) -> Option<usize> {
        let now = self.now();
        let is_due = |desk: &Desk| desk.wakes_at().is_some_and(|at| now >= at);
        self.desks.iter().position(is_due).filter(|_| self.is_between_turns())
    }

    /// A worker tries to take a snapshot.
    pub fn attempt(self: &Rc<Self>, index: usize) {
        let desk = &self.desks[index];
        desk.is_at_work.set(true);
        let cuts = self.seen.borrow().off_box.cuts;
        let is_disturbed = !self.is_healed.get();
        let outcome =
            self.work_at(index, is_disturbed, ATTEMPT_NANOS_MAX, |worker| worker.take_once());
        desk.is_at_work.set(false);
        let rest = desk.random.borrow_mut().within(0..4 * self.lease_nanos);
        desk.wakes_at.set(MonotonicNanos(self.now().0 + rest));
        let mut seen = self.seen.borrow_mut();
        match outcome {
            Ok(Outcome::Taken(_)) => seen.off_box.snapshots += 1,
            Ok(Outcome::Busy) => seen.off_box.busy += 1,
            Ok(Outcome::Nothing(_)) => {}
            Err(why) => {
                seen.off_box.failures += 1;
                // Its draft lost its lock with the archive's power, and somebody removed it.
                let is_removed = why == "entity not found" && seen.off_box.cuts > cuts;
                let is_expected = is_removed || EXPECTED.iter().any(|it| why.contains(it));
                if !is_expected && !storage::is_fault(&why) {
                    self.chronicle.borrow_mut().fail(format!("worker {index}: {why}"));
                }
            }
        }
    }

    /// Lets a worker do something for so long at most.
    fn work_at<T>(
        self: &Rc<Self>,
        index: usize,
        is_disturbed: bool,
        nanos_max: u64,
        work: impl FnOnce(&mut Worker) -> Result<T, Failure>,
    ) -> Result<T, String> {
        let access = self.storage.open(None)?;
        let desk = &self.desks[index];
        desk.stage.set(access.held.stage());
        let store = access.store.clone();
        let (world, until) = (Rc::downgrade(self), MonotonicNanos(self.now().0 + nanos_max));
        let attempt = Rc::new(Attempt { world, index, access, until, is_disturbed });
        let draw = || desk.random.borrow_mut().draw();
        let queue = |seed: u64| -> Box<dyn DiskQueue> {
            let (random, waker) = (Random::from_seed(seed), Waker(Arc::new(|| {})));
            Box::new(SimDiskQueue::new(&self.timeline, random, self.storage.job_nanos, waker))
        };
        let queues = vec![queue(draw()), queue(draw())];
        let (id, seed) = (draw(), draw());
        let (opening, waiting, going) = (Rc::clone(&attempt), Rc::clone(&attempt), attempt);
        let mut worker = Worker {
            store,
            clock: Arc::new(desk.clock.clone()),
            settings: engine_settings(&self.slots[0].machine.config),
            seeds: Seeds::fixed(seed),
            id,
            open_log: Box::new(move |known| opening.open_log(known)),
            queues,
            wait: Box::new(move || waiting.pass(WAIT_NANOS)),
            tell: Box::new(|_| {}),
            goes_on: Box::new(move || going.goes_on()),
            broken: match self.plan.broken {
                Broken::Worker(rule) => Some(rule),
                _ => None,
            },
        };
        work(&mut worker).map_err(|why| why.to_string())
    }

    /// What the shard held at some moments of the run, by log and archive, is what its log made
    /// there; how many of them there were.
    ///
    /// # Errors
    /// It is not, or cannot be had.
    pub fn go_back(self: &Rc<Self>) -> Result<u64, String> {
        if self.storage.limits.window_seconds < storage::WINDOW_SECONDS {
            return Ok(0);
        }
        let access = self.storage.open(None)?;
        let newest = self.service.tail().sequence;
        for _ in 0..MOMENTS {
            // The window was there from the beginning.
            let at = Sequence(self.desks[0].random.borrow_mut().within(1..newest.0 + 1));
            let (log, goal) = (access.store.log(), Goal::Through(at));
            let moment = self.work_at(0, false, MOMENT_NANOS_MAX, |worker| {
                let mut open = std::mem::replace(
                    &mut worker.open_log,
                    Box::new(|_| Err("it is being opened".into())),
                );
                worker.open_log =
                    Box::new(move |known| Ok(ArchivedLog::over(open(known)?, log.clone())));
                let mut course = worker.unclaimed();
                worker.load_moment(goal, &mut course)
            });
            let moment = moment.map_err(|why| format!("the moment of record {at}: {why}"))?;
            let held = Digest::of_keyspace(&moment.engine.keyspace);
            self.chronicle.borrow_mut().judge_moment(moment.standing.chain.value, held)?;
        }
        Ok(MOMENTS)
    }
}

impl Attempt {
    fn open_log(&self, _: &KnownLog) -> Result<OpenLog, Failure> {
        let world = self.world.upgrade().ok_or("the world is gone")?;
        let desk = &world.desks[self.index];
        let mut random = Random::from_seed(desk.random.borrow_mut().draw());
        let is_benign = !self.is_disturbed || random.chance(50);
        let odds = if is_benign { Odds::benign() } else { Odds::draw(&mut random) };
        let clock: Arc<dyn Clock> = Arc::new(desk.clock.clone());
        let log = world.read_along(clock, Box::new(move |_| odds.fate(&mut random)));
        let incarnation = log.incarnation();
        Ok(OpenLog { handle: Box::new(log), incarnation, is_free: false })
    }
}
