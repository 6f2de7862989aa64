//! One process of a shard: it starts, serves, is demoted and begins again, as `kiln server` does.
//!
//! Its world are a driver, a log and two clocks. Driver and log may let time pass in the middle of
//! a turn, while the others go on: as a process that is stopped there, or whose machine is busy.
//! Or it may die there: then whatever it does until the turn ends reaches no client.

use super::Broken;
use super::storage::{self, HeldKeys};
use super::world::World;
use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::disk::nameless::ReadOdds;
use crate::disk_queue::SimDiskQueue;
use crate::driver::SimDriver;
use crate::random::Random;
use crate::tapped_log::{Listener, TappedLog};
use crate::tier::SimTier;
use archive::SnapshotStore;
use base::disk::DiskQueue;
use base::driver::{ConnectionId, Driver, Endpoint, Event, Received, Sent, Waker};
use base::machine::UnknownMachine;
use base::{Clock, Epoch, Seeds, Sequence};
use bytes::Bytes;
use config::Config;
use engine::digest::Digest;
use engine::work::Pulse;
use node::Scratch;
use node::Start;
use node::{Options, Server, Stop};
use shard::loading::{Loading, OpenLog, SliceLimits};
use shard::snapshots;
use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use txlog::record::{self, ChainValue};
use txlog::{Kind, LogEvent, TransactionLog, WriterId};

/// What a process's driver and log know together.
pub struct Tether {
    pub index: usize,
    world: Weak<World>,
    /// It has died in the middle of this turn.
    pub is_dead: Cell<bool>,
    /// A `Lead` of its own is under way.
    bid: Cell<Option<(Epoch, WriterId)>>,
    /// The newest epoch of a `Lead` that it has read.
    read: Cell<Epoch>,
    /// It leads this epoch, and has not been told otherwise.
    leads: Cell<Option<Epoch>>,
    /// The epoch at the instant at which it last heard of its log.
    then: Cell<Epoch>,
    /// A command has been interrupted.
    is_amid_command: Cell<bool>,
}

impl Tether {
    /// Time passes in the middle of a turn, or the process dies.
    fn linger(&self) {
        if let Some(world) = self.world.upgrade().filter(|_| !self.is_dead.get()) {
            self.is_dead.set(world.linger(self.index));
        }
    }
}

/// The driver of a process, under the eyes of the chronicle.
struct RoomDriver {
    driver: SimDriver,
    tether: Rc<Tether>,
}

impl RoomDriver {
    fn watch_sending(
        &mut self,
        id: ConnectionId,
        bytes: &[u8],
        send: impl FnOnce(&mut SimDriver) -> Sent,
    ) -> Sent {
        if self.tether.is_dead.get() {
            return Sent::Closed;
        }
        let sent = send(&mut self.driver);
        if let (Sent::Bytes(count), Some(world)) = (&sent, self.tether.world.upgrade()) {
            let (leads, then) = (self.tether.leads.get(), self.tether.then.get());
            let mut chronicle = world.chronicle.borrow_mut();
            chronicle.released(self.tether.index, leads, then, id, &bytes[..*count]);
        }
        // What is still to be sent may leave late: the lease was looked at before.
        self.tether.linger();
        sent
    }
}

impl Driver for RoomDriver {
    fn clock(&self) -> &dyn Clock {
        self.driver.clock()
    }

    /// The world waits, and gives this process its turn.
    fn wait(&mut self, _timeout_nanos: Option<u64>, events: &mut Vec<Event>) {
        self.driver.collect(events);
    }

    fn connect(&mut self, endpoint: &Endpoint) -> ConnectionId {
        self.driver.connect(endpoint)
    }

    fn receive(&mut self, id: ConnectionId, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        self.tether.linger();
        self.driver.receive(id, into, bytes_max)
    }

    fn send(&mut self, id: ConnectionId, bytes: &[u8]) -> Sent {
        self.watch_sending(id, bytes, |driver| driver.send(id, bytes))
    }

    fn send_buffer(&mut self, id: ConnectionId, buffer: &mut Vec<u8>, at: Range<usize>) -> Sent {
        let bytes = buffer[at.clone()].to_vec();
        self.watch_sending(id, &bytes, |driver| driver.send_buffer(id, buffer, at))
    }

    fn set_reading(&mut self, connection: ConnectionId, reading: bool) {
        self.driver.set_reading(connection, reading);
    }

    fn close(&mut self, connection: ConnectionId) {
        self.driver.close(connection);
    }

    fn set_accepting(&mut self, accepting: bool) {
        self.driver.set_accepting(accepting);
    }

    fn waker(&self) -> Waker {
        self.driver.waker()
    }

    fn entropy(&mut self) -> u64 {
        self.driver.entropy()
    }
}

/// Listens to a process's log.
struct Ear(Rc<Tether>);

impl Listener for Ear {
    fn appends(&mut self, _place: Sequence, record: &Bytes) {
        if let Ok(header) = record::decode_header(record, false)
            && header.kind == Kind::Lead
        {
            self.0.bid.set(Some((header.epoch, header.writer)));
        }
        if self.0.is_amid_command.get()
            && let Some(world) = self.0.world.upgrade()
        {
            world.seen.borrow_mut().renewed_amid += 1;
        }
        self.0.linger();
    }

    fn told(&mut self, events: &mut Vec<LogEvent>) {
        let tether = &self.0;
        if tether.is_dead.get() {
            events.clear();
            return;
        }
        let Some(world) = tether.world.upgrade() else { return };
        world.count(events);
        for event in &*events {
            match event {
                LogEvent::Durable(_) => {
                    if let Some((epoch, writer)) = tether.bid.take() {
                        world.chronicle.borrow_mut().note_leader(epoch, writer);
                        let is_deposed = tether.read.get() > epoch;
                        tether.leads.set((!is_deposed).then_some(epoch));
                    }
                }
                LogEvent::Failed(..) => {
                    tether.bid.take();
                }
                LogEvent::Read(_, bytes) => {
                    if let Some(epoch) = epoch_of_lead(bytes) {
                        tether.read.set(tether.read.get().max(epoch));
                    }
                }
                _ => {}
            }
        }
        tether.linger();
        let mut chronicle = world.chronicle.borrow_mut();
        chronicle.observe();
        tether.then.set(chronicle.epoch());
    }
}

/// Stands between a shard's commands and what they do in their midst, and lets them take long.
struct SlowPulse {
    pulse: Rc<RefCell<dyn Pulse>>,
    tether: Rc<Tether>,
}

impl Pulse for SlowPulse {
    fn beat(&mut self) {
        let Self { pulse, tether } = self;
        let Some(world) = tether.world.upgrade() else { return };
        tether.is_amid_command.set(true);
        pulse.borrow_mut().beat();
        world.work(|| pulse.borrow_mut().beat());
        tether.is_amid_command.set(false);
    }
}

fn epoch_of_lead(record: &Bytes) -> Option<Epoch> {
    let header = record::decode_header(record, false).ok()?;
    (header.kind == Kind::Lead).then_some(header.epoch)
}

/// What does not change from process to process on one machine.
pub struct Machine {
    pub index: usize,
    pub name: String,
    pub clock: SimClock,
    /// How much faster than true time its monotonic clock runs.
    pub drift_ppm: i64,
    pub config: Config,
}

/// A process that lives.
pub struct Process {
    pub server: Server,
    driver: RoomDriver,
    scratch: Scratch,
    /// Until it serves.
    start: Option<Start>,
    pub tether: Rc<Tether>,
    store: SnapshotStore,
    pub held: HeldKeys,
    broken: Broken,
    /// What its tier lies on.
    device: SimDisk,
    /// Where the chain stood when it was last compared.
    compared: ChainValue,
    was_lapsed: bool,
}

/// What a turn brought.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Turned {
    Goes,
    /// It began a new life, because it was demoted.
    Again,
    Ended(Stop),
}

impl Process {
    /// Starts a process on a machine.
    ///
    /// # Errors
    /// What the process would say as it ends.
    pub fn start(world: &Rc<World>, machine: &Machine) -> Result<Self, String> {
        let entropy = world.draw();
        let clock = machine.clock.clone();
        let driver = SimDriver::listen(&world.network, &machine.name, clock.clone(), entropy);
        let tether = Rc::new(Tether {
            index: machine.index,
            world: Rc::downgrade(world),
            is_dead: Cell::new(false),
            bid: Cell::new(None),
            read: Cell::new(Epoch(0)),
            leads: Cell::new(None),
            then: Cell::new(Epoch(0)),
            is_amid_command: Cell::new(false),
        });
        let mut driver = RoomDriver { driver, tether: Rc::clone(&tether) };
        let mut limits = world.limits.node;
        if let Some(tier) = &world.tier {
            tier.limit(&mut limits);
        }
        // What is there ends with the process.
        let device = SimDisk::new(entropy);
        spoil(world, &device, entropy);
        let random = Random::stream(entropy, "tier");
        let tier = SimTier::new(&device, &world.timeline, random, driver.waker());
        let options = Options {
            config: machine.config.clone(),
            port: 6379,
            clock: Arc::new(clock),
            disk: Arc::new(world.disk.clone()),
            machine: Arc::new(UnknownMachine),
            entropy: driver.entropy(),
            seeds: Seeds::draw(&mut driver),
            limits,
            tier: Arc::new(tier),
        };
        let apart = world.plan.are_stores_apart.then_some(machine.index);
        let storage::Access { store, held, .. } = world.storage.open(apart)?;
        let server = node::begin(options, Box::new(drop));
        let loading = begin_loading(world, machine, &server, &driver, &store)?;
        let scratch = Scratch::default();
        let (start, broken) = (Some(Start::new(loading)), world.plan.broken);
        let (compared, was_lapsed) = (ChainValue::default(), false);
        Ok(Self {
            server,
            driver,
            scratch,
            start,
            tether,
            store,
            held,
            broken,
            device,
            compared,
            was_lapsed,
        })
    }

    /// One turn of the loop, and what `kiln server` does around it.
    ///
    /// # Errors
    /// What the process would say as it ends.
    pub fn turn(mut self, world: &Rc<World>, machine: &Machine) -> Result<(Self, Turned), String> {
        world.storage.reread(&self.held);
        if let Some(start) = &mut self.start
            && self.server.advance_start(start).map_err(text)?
        {
            self.start = None;
            self.complete(world, machine);
            let is_behind_snapshot = self.server.core.persistence.keys_loaded > 0;
            world.seen.borrow_mut().snapshots_loaded += u64::from(is_behind_snapshot);
        }
        self.server.turn(&mut self.driver, &mut self.scratch);
        if self.tether.is_dead.get() {
            return Ok((self, Turned::Ended(Stop::Now)));
        }
        self.break_rules();
        self.compare(world);
        let stop = match self.start {
            Some(_) => self.server.stopped_while_loading().map_err(text)?,
            None => self.server.ended(),
        };
        Ok(match stop {
            None => (self, Turned::Goes),
            Some(Stop::Demoted(_)) => {
                let has_lost = self.server.core.shard.engine.keyspace.has_lost_value();
                world.seen.borrow_mut().lost_values += u64::from(has_lost);
                (self.begin_again(world, machine)?, Turned::Again)
            }
            Some(stop) => (self, Turned::Ended(stop)),
        })
    }

    fn begin_again(mut self, world: &Rc<World>, machine: &Machine) -> Result<Self, String> {
        self.server = self.server.begin_again(&mut self.driver);
        self.tether.leads.set(None);
        self.tether.bid.set(None);
        let loading = begin_loading(world, machine, &self.server, &self.driver, &self.store)?;
        self.start = Some(Start::new(loading));
        self.compared = ChainValue::default();
        Ok(self)
    }

    /// Lets it take snapshots, in slices so small that commands come between them, and lets its
    /// commands take long.
    fn complete(&mut self, world: &Rc<World>, machine: &Machine) {
        let work = &self.server.core.shard.engine.keyspace.work;
        work.set_steps_per_pulse(1);
        let tether = Rc::clone(&self.tether);
        work.wrap_pulse(|pulse| Rc::new(RefCell::new(SlowPulse { pulse, tether })));
        let random = Random::stream(world.draw(), &machine.name);
        let queue = SimDiskQueue::new(
            &world.timeline,
            random,
            world.storage.job_nanos,
            self.driver.waker(),
        );
        let trims_at_once = self.broken == Broken::TrimsBeforeReports;
        // Where the store is one, nobody has to be waited for.
        let waits = world.plan.are_stores_apart && !trims_at_once;
        let report_nanos = if waits { world.lease_nanos / 4 } else { 0 };
        let pace = snapshots::Pace {
            step_keys: 4,
            step_bytes: 1 << 10,
            steps_max: 2,
            chunk_bytes: 1 << 10,
            backlog_bytes_max: 4 << 10,
            log_growth_bytes_min: world.plan.log_growth_bytes,
            rest_nanos: 0,
            log_growth_bytes_hasty: 0,
            report_nanos,
            trims_unconfirmed: self.broken == Broken::TrimsUnseen,
            trims_unheld: self.broken == Broken::TrimsUnheld,
            ..world.limits.pace()
        };
        let pace = match world.plan.has_workers {
            true => snapshots::Pace { look_nanos: world.lease_nanos, ..pace },
            false => pace,
        };
        self.server.core.keep_snapshots(self.store.clone(), Box::new(queue), pace);
        let (service, timeline) = (&world.service, &world.timeline);
        let archiver =
            storage::archiver(service, timeline, world.store_limits, world.limits.remote);
        let queue = SimDiskQueue::new(
            timeline,
            Random::stream(world.draw(), &machine.name),
            world.storage.archiving_nanos,
            self.driver.waker(),
        );
        self.server.core.archive_log_by(archiver, Box::new(queue));
    }

    /// What is broken on purpose is broken again in each life.
    fn break_rules(&mut self) {
        match self.broken {
            Broken::HoldsNothing if self.start.is_none() => self.server.core.shard.break_tracker(),
            Broken::ReusesCounters if self.server.core.leadership.roles.leads() => {
                self.server.core.shard.break_counters();
            }
            Broken::HidesByItsOwnClock => self.server.core.shard.break_clock(),
            Broken::RenewsNothingAmid => self.server.core.shard.break_renewal(),
            Broken::ForgetsFreezes => self.server.core.leadership.break_clock(),
            Broken::Role(rule) => self.server.core.leadership.roles.break_rule(rule),
            _ => {}
        }
    }

    /// Holds what this process holds against the log, where both say that they are at one place.
    fn compare(&mut self, world: &Rc<World>) {
        let shard = &self.server.core.shard;
        let chain = shard.chain().value;
        let is_unwritten = shard.has_gathered() || shard.holds_records();
        let is_amid = is_unwritten || self.server.is_amid_script();
        // A life in which a value was lost is over, amid whatever it was doing.
        let is_over = shard.engine.keyspace.has_lost_value();
        if self.start.is_some() || is_amid || is_over || chain == self.compared {
            return;
        }
        self.compared = chain;
        let held = self.device.read_rightly(|| Digest::of_keyspace(&shard.engine.keyspace));
        let mut chronicle = world.chronicle.borrow_mut();
        if shard.is_following() {
            self.tether.leads.set(None);
            chronicle.note_follower(self.tether.index, chain, held);
        } else {
            chronicle.note_leading(self.tether.index, chain, held);
        }
    }

    /// Whether it is the primary, as far as it knows.
    pub fn leads(&self) -> bool {
        self.serves() && self.server.core.leadership.roles.leads()
    }

    /// Whether its lease is over, and was not when this was last asked.
    pub fn is_newly_lapsed(&mut self) -> bool {
        let is_lapsed = self.leads() && self.server.core.leadership.is_lapsed;
        let was_lapsed = std::mem::replace(&mut self.was_lapsed, is_lapsed);
        is_lapsed && !was_lapsed
    }

    /// The device of its tier reads and writes rightly from now on.
    pub fn heal(&self) {
        self.device.set_read_odds(ReadOdds::default());
        self.device.set_failed_writes(0);
    }

    /// What it does, for a message.
    pub fn describe(&self) -> String {
        let part = match (self.serves(), self.server.core.leadership.roles.leads()) {
            (false, _) => "starts",
            (true, true) => "leads",
            (true, false) => "follows",
        };
        format!(
            "node {} {part} at {}",
            self.tether.index,
            self.server.core.shard.appended().sequence
        )
    }

    /// Whether it serves, as a primary or as a replica.
    pub fn serves(&self) -> bool {
        self.start.is_none()
    }

    /// Whether something has come for it.
    pub fn has_news(&self) -> bool {
        self.driver.driver.has_news()
    }
}

/// Opens the log and begins to load, in slices so small that clients get a word in.
fn begin_loading(
    world: &Rc<World>,
    machine: &Machine,
    server: &Server,
    driver: &RoomDriver,
    store: &SnapshotStore,
) -> Result<Loading, String> {
    let clock: Arc<dyn Clock> = Arc::new(machine.clock.clone());
    let log = world.connect(machine.index, clock, driver.waker());
    let incarnation = log.incarnation();
    let log: Box<dyn TransactionLog> = Box::new(log);
    let listener = Ear(Rc::clone(&driver.tether));
    let handle = Box::new(TappedLog { log, listener });
    let open = OpenLog { handle, incarnation, is_free: false };
    let mut loading = server.open_shard(store.clone(), |_| Ok(open)).map_err(text)?;
    let reader = |n: usize| -> Box<dyn DiskQueue> {
        let random = Random::stream(n as u64, &machine.name);
        Box::new(SimDiskQueue::new(&world.timeline, random, storage::DISK_NANOS, driver.waker()))
    };
    loading.read_parts_by((0..machine.index % 3).map(reader).collect());
    if world.plan.broken == Broken::CountsVoidRecords {
        loading.count_void_records();
    }
    loading.limit_slices(SliceLimits {
        step_keys: 8,
        step_records: 8,
        steps_max: 4,
        ..SliceLimits::default()
    });
    Ok(loading)
}

fn text(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Has the device of a tier read and write wrongly now and then, if that is so in this run: of
/// every other process.
fn spoil(world: &World, device: &SimDisk, entropy: u64) {
    let mut random = Random::stream(entropy, "device");
    if world.has_bad_devices && !world.is_healed.get() && random.chance(50) {
        device.set_read_odds(ReadOdds::draw(&mut random));
        device.set_failed_writes(*random.choose(&[0, 20, 300]));
    }
}
