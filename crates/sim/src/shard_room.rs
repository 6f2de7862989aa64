//! A whole shard of the simulated world: a primary, its replicas and a challenger, on one log.
//!
//! Every process is the real one: its loop, its start from snapshot and log, its roles, and the log
//! over a service (`txlog::remote`), which here is in memory and does everything wrong that a
//! service can. Processes are stopped, also in the middle of a turn, killed, asked to hand over and
//! cut off; machines are frozen together with their monotonic clocks; clocks drift as far as the
//! margin of the lease bears, and jump. All of it follows from the seed.
//!
//! | file | holds |
//! |---|---|
//! | [`world`] | who has its turn, and time |
//! | [`process`] | one process, through several lives |
//! | [`weather`], `disturb` | what goes wrong, where and when; and how |
//! | [`workers`] | workers that take snapshots off the box; back to moments in the end |
//! | [`storage`] | the archive, its faults, and the keys of everything that is stored |
//! | [`chronicle`] | what the log holds, as an outsider sees it |
//! | [`crowd`], [`client`] | clients: where they go, and what they ask |
//! | [`account`], [`history`] | what they were told, held against the order of the log |
//! | [`volatile`] | what they were told of keys that expire |
//!
//! What is checked:
//! 1. *One leader*: who leads an epoch is who wrote the `Lead` of that epoch that counts.
//! 2. *No reply outside a lease*: at the instant at which a primary last looked at its lease before
//!    it sends, no other `Lead` counts. That is more than clients could notice.
//! 3. *No reply before durable*: a unique value leaves a process only once a record with it counts.
//! 4. *No acknowledged write lost*: it is in the log, and what was refused is not. Each key's
//!    operations may have happened in the order of the log, each between its request and its reply.
//! 5. *A replica holds a prefix*: by digest, what it holds behind a record is what the log makes;
//!    so does the primary; and no connection is ever shown what is older than it has seen.
//! 6. *What has expired stays away*: a key that somebody was shown to be gone is never shown again.
//! 7. *Nothing is stuck*: when the faults end, all processes serve and hold the same.
//! 8. *No command deposes its primary*: where nothing goes wrong but that commands take several
//!    leases, nobody stands who was not handed leadership.
//! 9. *Everybody can start*: where each has its own snapshots, what the log was trimmed of is not
//!    missing in any of them.
//! 10. *The archive is enough*: where workers take snapshots, in the end one process alone starts
//!     from archive and log and holds what the log makes, and what the shard held at moments of the
//!     run can be had.
//! 11. *Same seed, same run*: by the trace of everything that happened.

pub mod account;
pub mod chronicle;
pub mod client;
pub mod crowd;
mod disturb;
pub mod history;
pub mod process;
pub mod storage;
pub mod volatile;
pub mod weather;
pub mod workers;
pub mod world;

use crate::clock::Awakening;
use crate::limits::Limits;
use crate::tier::Spilling;
use chronicle::Stored;
use crowd::Served;
use std::rc::Rc;
use world::World;

/// A build that is broken on purpose, so that a test can prove that it is noticed.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Broken {
    #[default]
    Nothing,
    /// Replies leave before what they reveal is durable.
    HoldsNothing,
    /// Records of one writer carry one counter.
    ReusesCounters,
    /// Readers apply records that are void.
    CountsVoidRecords,
    /// Keys are hidden by a clock that no record has.
    HidesByItsOwnClock,
    /// Commands that take long do not renew the lease.
    RenewsNothingAmid,
    /// The log is trimmed through snapshots that others do not see.
    TrimsUnseen,
    /// A new primary trims the log before replicas could say what they see.
    TrimsBeforeReports,
    /// The log is trimmed through what no snapshot holds.
    TrimsUnheld,
    /// A worker breaks a rule.
    Worker(worker::Broken),
    /// A wall clock that is set back takes back that a machine was frozen.
    ForgetsFreezes,
    /// A process breaks a rule of leadership.
    Role(shard::role::state::Broken),
    /// The log breaks a rule.
    Log(txlog::remote::Broken),
}

impl Broken {
    fn of_log(self) -> Option<txlog::remote::Broken> {
        match self {
            Self::Log(rule) => Some(rule),
            _ => None,
        }
    }
}

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Places for processes; the last one joins late.
    pub nodes: usize,
    pub clients: usize,
    /// How long things go wrong, in nanoseconds.
    pub nanos: u64,
    /// Bytes of log from one snapshot to the next.
    pub log_growth_bytes: u64,
    /// Nothing goes wrong but that commands take long.
    pub is_calm: bool,
    /// Each process keeps its snapshots on a disk of its own, though all believe that they share
    /// one. In the end all start again from what they have.
    pub are_stores_apart: bool,
    /// Workers take snapshots off the box, and the archive fails now and then, is encrypted or has
    /// a restore window. In the end one process starts alone, from archive and log.
    pub has_workers: bool,
    pub broken: Broken,
    /// How machines wake that were frozen; `None`: in any way in which they notice.
    pub awakening: Option<Awakening>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            nodes: 4,
            clients: 9,
            nanos: 8_000_000_000,
            log_growth_bytes: 24 << 10,
            is_calm: false,
            are_stores_apart: false,
            has_workers: false,
            broken: Broken::Nothing,
            awakening: None,
        }
    }
}

/// What was seen: a run in which something never happens says nothing about it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Seen {
    pub turns: u64,
    /// Lives that began, of all processes.
    pub lives: u64,
    pub demotions: u64,
    /// Lives that ended because a value was lost in them.
    pub lost_values: u64,
    /// Leases that lapsed under a primary.
    pub lapses: u64,
    /// Appends that ended in doubt, and that met another's record.
    pub in_doubt: u64,
    pub conflicts: u64,
    /// How often a writer's records moved on behind void ones.
    pub shifts: u64,
    pub trimmed_readers: u64,
    /// Snapshots that a start began with.
    pub snapshots_loaded: u64,
    /// How often time passed in the middle of a turn.
    pub lingered: u64,
    /// Commands that took longer than a lease, and records that were appended amid one.
    pub long_commands: u64,
    pub renewed_amid: u64,
    pub pauses: u64,
    pub crashes: u64,
    pub stops: u64,
    pub cuts: u64,
    pub stalls: u64,
    pub jumps: u64,
    /// How often a machine stood still with its monotonic clock.
    pub freezes: u64,
    /// Of workers and the archive.
    pub off_box: OffBoxSeen,
}

/// What was seen of workers and the archive.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct OffBoxSeen {
    /// Snapshots that workers published, attempts that failed, and that found the claim taken.
    pub snapshots: u64,
    pub failures: u64,
    pub busy: u64,
    pub deaths: u64,
    /// Operations on the archive that met a fault, and starts that failed for it.
    pub faults: u64,
    pub failed_starts: u64,
    /// How often the archive's machine lost power.
    pub cuts: u64,
    /// Logs that were trimmed, that were encrypted, and of which the keys were rotated.
    pub trimmed_logs: u64,
    pub encrypted: u64,
    pub rotated: u64,
    /// Moments that were gone back to.
    pub moments: u64,
}

/// What a run was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub seen: Seen,
    pub stored: Stored,
    pub served: Served,
    /// What every process was limited to.
    pub limits: Limits,
    /// What became of values that left memory, in the last lives.
    pub spilling: Spilling,
    /// The digest of everything that happened.
    pub trace: u64,
}

/// How long a shard without faults takes to be whole again, in nanoseconds, at most: many leases,
/// and the longest wait of whoever does not know how long the lease is.
const HEALING_NANOS_MAX: u64 = 180_000_000_000;

/// How far the healing goes at a time, in nanoseconds.
const HEALING_STEP_NANOS: u64 = 20_000_000;

/// How long clients go on when everything works again, in nanoseconds.
const WORKING_NANOS: u64 = 300_000_000;

/// The name under which a process listens, and that clients are sent to.
pub fn name_of(index: usize) -> String {
    format!("node-{index}")
}

/// Runs the shard of a seed.
///
/// # Errors
/// The first promise that was broken, and when.
pub fn run(seed: u64, plan: Plan) -> Result<Outcome, String> {
    let world = World::new(seed, plan)?;
    let judged = live(&world);
    let seconds = world.now().0 / 1_000_000;
    let limits = world.limits;
    let found = world.chronicle.borrow().violation.clone();
    // What was seen first says more than what came of it.
    found.map_or(judged, Err).map_err(|why| {
        format!("limits {limits:?}, tier {:?}, after {seconds} ms: {why}", world.tier)
    })?;
    let spilling = world.spilling()?;
    let (seen, stored) = (*world.seen.borrow(), world.chronicle.borrow().stored);
    let (served, trace) = (world.crowd_seen(), world.timeline.trace());
    Ok(Outcome { seen, stored, served, limits, spilling, trace })
}

fn live(world: &Rc<World>) -> Result<(), String> {
    world.pass(world.plan.nanos);
    world.heal();
    await_whole(world, false)?;
    world.pass(WORKING_NANOS);
    world.silence();
    await_whole(world, true)?;
    world.judge_calm()?;
    if world.plan.are_stores_apart {
        world.end_all();
        await_whole(world, true)?;
    }
    if world.plan.has_workers {
        world.end_all();
        await_one(world)?;
        await_whole(world, true)?;
        let moments = world.go_back()?;
        world.sum_up(moments);
    }
    world.judge()
}

/// Lets one process start alone, and time pass until it serves and holds what the log makes.
fn await_one(world: &Rc<World>) -> Result<(), String> {
    let until = world.now().0 + HEALING_NANOS_MAX;
    let chosen = world.leave_one();
    while world.is_well() && world.now().0 < until {
        world.pass(HEALING_STEP_NANOS);
        if world.is_whole_alone(chosen) {
            world.wake_all();
            return Ok(());
        }
    }
    Err(format!("archive and log are not enough: {}", world.describe()))
}

/// Lets time pass until everybody serves and holds what the log makes.
fn await_whole(world: &Rc<World>, silent: bool) -> Result<(), String> {
    let until = world.now().0 + HEALING_NANOS_MAX;
    while world.is_well() && world.now().0 < until {
        world.pass(HEALING_STEP_NANOS);
        if world.is_whole() && (!silent || world.is_silent()) {
            return Ok(());
        }
    }
    Err(format!("a shard without faults is of no use: {}", world.describe()))
}
