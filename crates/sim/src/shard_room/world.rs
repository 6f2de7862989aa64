//! The world of a shard: its processes, the service that keeps their log, their clients, and time.
//!
//! Whoever has something to do at an instant has its turn, in an order that the seed decides; then
//! time goes on to the next instant at which something happens. A process that lingers in the
//! middle of a turn lets the world go on without it, from within that turn.

use super::chronicle::Chronicle;
use super::crowd::Crowd;
use super::process::{Machine, Process, Turned};
use super::storage::{Storage, is_fault};
use super::weather::{Climate, Weather};
use super::workers::Desk;
use super::{Plan, Seen};
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::limits::Limits;
use crate::network::{NetworkFaults, SimNetwork};
use crate::odds::Odds;
use crate::random::Random;
use crate::tier::{self, Spilling, Tiered};
use crate::timeline::Timeline;
use base::driver::Waker;
use base::time::SECOND;
use base::{Clock, Incarnation, MonotonicNanos};
use config::arguments;
use config::load::load;
use config::settings::engine_settings;
use node::Stop;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use txlog::LogEvent;
use txlog::remote::RemoteLog;
use txlog::remote::memory::{Fates, MemoryService, Wire};
use txlog::remote::store::{Operation, StoreLimits};

const LOG: Incarnation = Incarnation(7);

/// After so long an operation without an answer is in doubt, in nanoseconds.
const PATIENCE_NANOS: u64 = 200_000_000;

/// How long a turn takes, in nanoseconds. Not 0, or a loop that polls would never see the
/// completion that it polls for.
const TURN_NANOS_MIN: u64 = 1_000;

/// One place where a process may live.
pub struct Slot {
    pub machine: Machine,
    /// `None` while it has its turn, and while none lives.
    pub process: RefCell<Option<Box<Process>>>,
    is_in_turn: Cell<bool>,
    /// It does nothing before this: it is stopped, or dead.
    pub idle_until: Cell<MonotonicNanos>,
    /// When it wants a turn although nothing comes.
    wake_at: Cell<MonotonicNanos>,
    /// Its last turn lasts until then.
    busy_until: Cell<MonotonicNanos>,
    pub odds: Arc<Mutex<Odds>>,
    /// Its connection with the log.
    pub wire: RefCell<Option<Wire>>,
    /// It is cut off from the log until then.
    pub cut_until: Cell<MonotonicNanos>,
    /// Its clocks were set or stood still since it last read them at the beginning of a turn. Two
    /// such things between two readings may hide each other, which no rule can help.
    pub are_clocks_touched: Cell<bool>,
}

impl Slot {
    fn new(machine: Machine) -> Self {
        let never = MonotonicNanos(0);
        Self {
            machine,
            process: RefCell::new(None),
            is_in_turn: Cell::new(false),
            idle_until: Cell::new(never),
            wake_at: Cell::new(never),
            busy_until: Cell::new(never),
            odds: Arc::new(Mutex::new(Odds::benign())),
            wire: RefCell::new(None),
            cut_until: Cell::new(never),
            are_clocks_touched: Cell::new(false),
        }
    }

    /// When it has a turn though nothing comes.
    fn due(&self) -> MonotonicNanos {
        self.wake_at.get().max(self.busy_until.get()).max(self.rests_until())
    }

    /// It does nothing before this: it is stopped, dead, or its machine is frozen.
    fn rests_until(&self) -> MonotonicNanos {
        self.idle_until.get().max(self.machine.clock.wakes_at())
    }

    /// Whether it has something to do now.
    fn is_ready(&self, now: MonotonicNanos) -> bool {
        if self.is_in_turn.get() || now < self.rests_until().max(self.busy_until.get()) {
            return false;
        }
        let process = self.process.borrow();
        now >= self.wake_at.get() || process.as_ref().is_some_and(|process| process.has_news())
    }
}

/// Everything.
pub struct World {
    pub plan: Plan,
    pub timeline: Timeline,
    pub network: SimNetwork,
    pub service: MemoryService,
    /// What machines read their configuration from.
    pub disk: SimDisk,
    /// Where the snapshots are.
    pub storage: Storage,
    /// Of workers.
    pub desks: Vec<Desk>,
    pub slots: Vec<Slot>,
    pub chronicle: RefCell<Chronicle>,
    crowd: RefCell<Crowd>,
    pub weather: RefCell<Weather>,
    pub lease_nanos: u64,
    /// What every process is limited to.
    pub limits: Limits,
    pub store_limits: StoreLimits,
    /// Where values go that memory has no room for, if they go.
    pub tier: Option<Tiered>,
    /// Devices of tiers read and write wrongly.
    pub has_bad_devices: bool,
    random: RefCell<Random>,
    pub stalled_until: Cell<MonotonicNanos>,
    /// Some process is amid a command that takes long.
    is_working: Cell<bool>,
    /// Nothing goes wrong any more.
    pub is_healed: Cell<bool>,
    pub seen: RefCell<Seen>,
}

impl World {
    pub fn new(seed: u64, plan: Plan) -> Result<Rc<Self>, String> {
        let timeline = Timeline::new();
        let mut random = Random::stream(seed, "shard room");
        let climate = if plan.is_calm {
            Climate::calm()
        } else {
            Climate::draw(&mut Random::stream(seed, "climate"))
        };
        let faults =
            if climate.is_harsh { NetworkFaults::harsh() } else { NetworkFaults::benign() };
        let network = SimNetwork::new(&timeline, seed, faults);
        let service = MemoryService::new(Arc::new(SimClock::new(&timeline)), LOG);
        service.set_confirms_tail(random.chance(70));
        let disk = SimDisk::new(seed);
        let lease_millis = *random.choose(&[200, 500, 1000]);
        let store_limits = store_limits(seed, &mut random);
        let tier = Tiered::draw(seed);
        let mut slots = Vec::new();
        for index in 0..plan.nodes {
            slots.push(Slot::new(machine(
                index,
                &timeline,
                &disk,
                lease_millis,
                &climate,
                tier.as_ref(),
                &mut random,
            )?));
        }
        let mut limits = Limits::draw(seed);
        let (storage, desks) = off_box(seed, &plan, &timeline, &disk, &mut limits, lease_millis);
        let settings = engine_settings(&slots[0].machine.config);
        let mut chronicle = Chronicle::new(&service, LOG, &timeline, settings, seed);
        chronicle.use_keys(storage.all_keys());
        let crowd = Crowd::new(plan.clients, plan.nodes, seed);
        let lease_nanos = lease_millis * 1_000_000;
        let mut weather = Weather::new(climate, lease_nanos, Random::stream(seed, "weather"));
        weather.awakening = plan.awakening;
        let is_calm = plan.is_calm;
        let world = Rc::new(Self {
            plan,
            timeline,
            network,
            service,
            disk,
            storage,
            desks,
            slots,
            chronicle: RefCell::new(chronicle),
            crowd: RefCell::new(crowd),
            weather: RefCell::new(weather),
            lease_nanos,
            limits,
            store_limits,
            tier,
            has_bad_devices: !is_calm && Random::stream(seed, "devices").chance(60),
            random: RefCell::new(random),
            stalled_until: Cell::new(MonotonicNanos(0)),
            is_working: Cell::new(false),
            is_healed: Cell::new(false),
            seen: RefCell::new(Seen::default()),
        });
        // The last one is a challenger that joins once there is something to challenge.
        let joins_at = world.now().0 + world.random.borrow_mut().within(0..plan.nanos / 2);
        if let Some(last) = world.slots.last() {
            last.idle_until.set(MonotonicNanos(joins_at));
        }
        Ok(world)
    }

    pub fn now(&self) -> MonotonicNanos {
        self.timeline.now()
    }

    /// Unpredictable bits.
    pub fn draw(&self) -> u64 {
        self.random.borrow_mut().draw()
    }

    /// A handle on the log for the process in a slot.
    pub fn connect(&self, index: usize, clock: Arc<dyn Clock>, waker: Waker) -> RemoteLog {
        let slot = &self.slots[index];
        let odds = Arc::clone(&slot.odds);
        let mut random = Random::from_seed(self.draw());
        let fates =
            move |_: &Operation| odds.lock().expect("nobody panics with it").fate(&mut random);
        let store = self.service.connect(self.store_limits, PATIENCE_NANOS, Box::new(fates));
        let wire = store.wire();
        wire.set_waker(waker);
        wire.set_reachable(self.now() >= slot.cut_until.get());
        *slot.wire.borrow_mut() = Some(wire);
        let mut log = RemoteLog::limited(Box::new(store), clock, self.limits.remote);
        if let Some(rule) = self.plan.broken.of_log() {
            log.break_rule(rule);
        }
        log
    }

    /// A handle on the log for who only reads it.
    pub fn read_along(&self, clock: Arc<dyn Clock>, fates: Fates) -> RemoteLog {
        let store = self.service.connect(self.store_limits, PATIENCE_NANOS, fates);
        RemoteLog::limited(Box::new(store), clock, self.limits.remote)
    }

    /// Counts what logs tell.
    pub fn count(&self, events: &[LogEvent]) {
        let mut seen = self.seen.borrow_mut();
        for event in events {
            match event {
                LogEvent::Shifted { .. } => seen.shifts += 1,
                LogEvent::Failed(_, txlog::AppendError::InDoubt) => seen.in_doubt += 1,
                LogEvent::Failed(_, txlog::AppendError::Conflict { .. }) => seen.conflicts += 1,
                LogEvent::Trimmed { .. } => seen.trimmed_readers += 1,
                _ => {}
            }
        }
    }

    /// Time passes in the middle of a process's turn, now and then. Whether it dies there.
    pub fn linger(self: &Rc<Self>, index: usize) -> bool {
        let drawn = self.weather.borrow_mut().lingers();
        let Some(nanos) = drawn.nanos else { return drawn.dies };
        self.seen.borrow_mut().lingered += 1;
        if let Some(awakening) = drawn.freezes {
            self.freeze(&self.slots[index], nanos, awakening);
        }
        self.pass(nanos);
        drawn.dies
    }

    /// A step of a command takes long, now and then. Time passes between its pulses, and each calls
    /// `beat`.
    pub fn work(self: &Rc<Self>, mut beat: impl FnMut()) {
        // Who works beside another holds that one up: turns lie within each other.
        let drawn = self.weather.borrow_mut().works();
        let Some(work) = drawn.filter(|_| !self.is_working.replace(true)) else { return };
        let is_long = work.pulses * work.pulse_nanos > self.lease_nanos;
        self.seen.borrow_mut().long_commands += u64::from(is_long);
        for _ in 0..work.pulses {
            self.pass(work.pulse_nanos);
            beat();
        }
        self.is_working.set(false);
    }

    /// Where nothing went wrong, who led the shard went on.
    pub fn judge_calm(&self) -> Result<(), String> {
        let stored = self.chronicle.borrow().stored;
        if self.plan.is_calm && stored.leads > stored.yields + 1 {
            let (leads, yields) = (stored.leads, stored.yields);
            return Err(format!("a healthy primary was deposed: {leads} led, {yields} yielded"));
        }
        Ok(())
    }

    /// Lets everyone who is not in the middle of a turn go on for so long.
    pub fn pass(self: &Rc<Self>, nanos: u64) {
        let until = MonotonicNanos(self.now().0 + nanos);
        while self.is_well() {
            self.look();
            if let Some(index) = self.choose_ready() {
                self.turn(index);
                continue;
            }
            if let Some(index) = self.choose_worker() {
                self.attempt(index);
                continue;
            }
            let now = self.now();
            if now >= until {
                return;
            }
            let next = self.next_instant().unwrap_or(until).min(until);
            while self.timeline.step(next.max(MonotonicNanos(now.0 + 1))) {}
        }
    }

    /// Nothing was found to be wrong so far.
    pub fn is_well(&self) -> bool {
        self.chronicle.borrow().violation.is_none()
    }

    /// Everything but processes does what it has to do at this instant.
    fn look(self: &Rc<Self>) {
        self.chronicle.borrow_mut().observe();
        let now = self.now();
        self.disturb(now);
        self.end_disturbances(now);
        self.storage.disturb(now, self.lease_nanos, &mut self.seen.borrow_mut());
        self.storage.rotate(now, |stage| {
            let has = |slot: &Slot| slot.process.borrow().as_ref().map(|it| it.held.stage());
            let have = self.slots.iter().all(|slot| has(slot).is_none_or(|has| has >= stage));
            have && self.is_between_turns() && self.desks.iter().all(|it| it.has_keys_of(stage))
        });
        let mut chronicle = self.chronicle.borrow_mut();
        self.crowd.borrow_mut().act(&self.network, &mut chronicle, now);
    }

    /// Whether every process serves, one of them as the primary, and holds what the log makes.
    pub fn is_whole(&self) -> bool {
        let chain = self.chronicle.borrow().chain();
        let mut primaries = 0;
        let mut are_all = true;
        for slot in &self.slots {
            let process = slot.process.borrow();
            let Some(process) = process.as_ref() else { return false };
            primaries += usize::from(process.leads());
            are_all &= process.serves() && process.server.core.shard.chain().value == chain;
        }
        are_all && primaries == 1
    }

    /// What each process does, for a message.
    pub fn describe(&self) -> String {
        let slots = self.slots.iter().map(|slot| match &*slot.process.borrow() {
            None => "none".to_owned(),
            Some(process) => process.describe(),
        });
        let tail = self.service.tail().sequence;
        format!("{}; the log ends at {tail}", slots.collect::<Vec<_>>().join(", "))
    }

    /// Whether nobody is in the midst of a turn.
    pub fn is_between_turns(&self) -> bool {
        self.slots.iter().all(|slot| !slot.is_in_turn.get())
    }

    /// Whether this process serves as the primary, and holds what the log makes.
    pub fn is_whole_alone(&self, index: usize) -> bool {
        let chain = self.chronicle.borrow().chain();
        let process = self.slots[index].process.borrow();
        process.as_ref().is_some_and(|process| {
            process.leads() && process.server.core.shard.chain().value == chain
        })
    }

    fn choose_ready(&self) -> Option<usize> {
        let now = self.now();
        let ready: Vec<usize> =
            (0..self.slots.len()).filter(|index| self.slots[*index].is_ready(now)).collect();
        (!ready.is_empty()).then(|| *self.random.borrow_mut().choose(&ready))
    }

    fn next_instant(&self) -> Option<MonotonicNanos> {
        let now = self.now();
        let news =
            |slot: &&Slot| slot.process.borrow().as_ref().is_some_and(|process| process.has_news());
        let idle = self.slots.iter().filter(|slot| !slot.is_in_turn.get());
        let due = idle.clone().map(Slot::due);
        let soon = idle.filter(news).map(|slot| slot.busy_until.get().max(slot.rests_until()));
        let slots = due.chain(soon);
        let cuts = self.slots.iter().map(|slot| slot.cut_until.get());
        let weather = self.weather.borrow().next_at();
        let crowd = self.crowd.borrow().next_at();
        let others = self.timeline.next_due().into_iter().chain(self.service.next_due());
        let all = slots.chain(cuts).chain(weather).chain(crowd).chain(others);
        let all = all.chain([self.stalled_until.get()]).chain(self.storage.next_at());
        let idle = self.desks.iter().filter(|_| self.is_between_turns());
        let all = all.chain(idle.filter_map(Desk::wakes_at));
        all.filter(|at| *at > now).min()
    }

    /// One turn of the process in a slot; starts one if none lives.
    fn turn(self: &Rc<Self>, index: usize) {
        let slot = &self.slots[index];
        slot.is_in_turn.set(true);
        slot.are_clocks_touched.set(false);
        let process = slot.process.borrow_mut().take();
        let began = process.is_none();
        let turned = match process {
            Some(process) => process.turn(self, &slot.machine),
            None => Process::start(self, &slot.machine).map(|process| (process, Turned::Goes)),
        };
        slot.is_in_turn.set(false);
        let cost = self.random.borrow_mut().within(TURN_NANOS_MIN..40 * TURN_NANOS_MIN);
        let busy_until = MonotonicNanos(self.now().0 + cost);
        slot.busy_until.set(busy_until);
        slot.wake_at.set(busy_until);
        let (mut process, turned) = match turned {
            Ok(turned) => turned,
            Err(why) if is_fault(&why) => {
                self.seen.borrow_mut().off_box.failed_starts += 1;
                return self.end_quietly(index);
            }
            Err(why) => return self.end(index, &format!("does not start: {why}")),
        };
        let mut seen = self.seen.borrow_mut();
        seen.turns += 1;
        seen.lives += u64::from(began);
        match turned {
            Turned::Goes => {}
            Turned::Again => {
                seen.demotions += 1;
                seen.lives += 1;
            }
            Turned::Ended(stop) => {
                drop(seen);
                drop(process);
                match stop {
                    Stop::Clean | Stop::Now => return self.end_quietly(index),
                    stop => return self.end(index, &format!("ends: {stop:?}")),
                }
            }
        }
        seen.lapses += u64::from(process.is_newly_lapsed());
        drop(seen);
        let wait = process.server.wait_nanos().unwrap_or(SECOND);
        // Its clock is not the true one.
        let rate = 1_000_000 + slot.machine.drift_ppm;
        let wait = (u128::from(wait) * 1_000_000).div_ceil(rate.unsigned_abs().into());
        slot.wake_at.set(MonotonicNanos(self.now().0 + wait as u64).max(busy_until));
        *slot.process.borrow_mut() = Some(Box::new(process));
    }

    /// A process ends although nobody asked it to, which none of the faults here is a reason for.
    fn end(&self, index: usize, why: &str) {
        self.chronicle.borrow_mut().fail(format!("node {index} {why}"));
    }

    /// A process is gone; another one is started after a while.
    pub fn end_quietly(&self, index: usize) {
        let down = self.random.borrow_mut().within(0..2 * self.lease_nanos);
        let slot = &self.slots[index];
        slot.idle_until.set(MonotonicNanos(self.now().0 + down));
        slot.process.borrow_mut().take();
    }

    /// All processes are gone, and start again after a while.
    pub fn end_all(&self) {
        (0..self.slots.len()).for_each(|index| self.end_quietly(index));
    }

    /// What became of values that left memory, in the lives that go on.
    ///
    /// # Errors
    /// A process has other values in its tier than its keys say.
    pub fn spilling(&self) -> Result<Spilling, String> {
        let mut spilling = Spilling::default();
        for slot in &self.slots {
            let process = slot.process.borrow();
            let Some(process) = process.as_ref() else { continue };
            let shard = &process.server.core.shard;
            tier::check(&shard.engine.keyspace)
                .map_err(|why| format!("{}: {why}", process.describe()))?;
            spilling.add(shard);
        }
        Ok(spilling)
    }

    /// Clients send nothing more from now on.
    pub fn silence(&self) {
        self.crowd.borrow_mut().is_sending = false;
    }

    /// Whether every client has all its answers.
    pub fn is_silent(&self) -> bool {
        self.crowd.borrow().is_idle()
    }

    /// All that clients did, held against the log.
    pub fn judge(&self) -> Result<(), String> {
        self.crowd.borrow().account.judge(&self.chronicle.borrow())
    }

    pub fn crowd_seen(&self) -> super::crowd::Served {
        self.crowd.borrow().served
    }
}

/// What the service that keeps the log takes at a time.
fn store_limits(seed: u64, random: &mut Random) -> StoreLimits {
    StoreLimits {
        // Large values are split into several records.
        record_bytes_max: *random.choose(&[2 << 10, 8 << 10, 64 << 10]),
        puts_max: *random.choose(&[1, 4, 8]),
        record_cost_bytes: (seed % 2) << 10,
    }
}

/// Where snapshots are, and who takes them off the box.
fn off_box(
    seed: u64,
    plan: &Plan,
    timeline: &Timeline,
    disk: &SimDisk,
    limits: &mut Limits,
    lease_millis: u64,
) -> (Storage, Vec<Desk>) {
    if !plan.has_workers {
        return (Storage::plain(seed, disk, limits), Vec::new());
    }
    // A worker waits for the next one.
    let shard = &mut limits.node.shard;
    shard.checksum_nanos = shard.checksum_nanos.min(lease_millis * 500_000);
    let now = timeline.now();
    let desks = (0..1 + seed as usize % 2)
        .map(|index| Desk::new(seed, index, SimClock::new(timeline), now))
        .collect();
    (Storage::draw(seed, disk, limits, now, plan.nanos), desks)
}

fn machine(
    index: usize,
    timeline: &Timeline,
    disk: &SimDisk,
    lease_millis: u64,
    climate: &Climate,
    tier: Option<&Tiered>,
    random: &mut Random,
) -> Result<Machine, String> {
    let name = super::name_of(index);
    let lease = lease_millis.to_string();
    let options = ["--transaction-log-lease", &lease, "--replica-announce-ip", &name];
    let config = match tier {
        Some(tier) => tier.config(&options),
        None => {
            let words: Vec<Vec<u8>> = options.iter().map(|word| word.as_bytes().to_vec()).collect();
            let line = arguments::parse(&words);
            load(disk, Path::new("/data"), &line, None).map_err(|error| error.to_string())?
        }
    };
    let clock = SimClock::new(timeline);
    let drift_ppm = climate.drift_ppm(random);
    clock.set_drift(drift_ppm);
    Ok(Machine { index, name, clock, drift_ppm, config })
}
