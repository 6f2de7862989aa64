//! A room of the simulated world: one machine with a server and its clients, through several lives.
//!
//! The server is the real one: its loop, its start from snapshot and log, on a disk that keeps live
//! and durable bytes apart. Clients speak to it in bytes. Each life ends in a power cut, a failed
//! sync, a killed process or a clean stop; space runs out in between. All of it follows from the
//! seed.
//!
//! | file | holds |
//! |---|---|
//! | [`generate`] | random requests from the commands' usage lines |
//! | [`token`] | unique values |
//! | [`ledger`], [`queue`] | what clients know of their own keys, and of those they share |
//! | [`news`] | what subscribers must hear |
//! | [`habit`], [`user`] | what clients send, and on which connection |
//! | [`crowd`] | all clients, and what they do together |
//! | [`stream`] | one connection as the witness sees it |
//! | [`shadow`] | a replica that follows the server record by record |
//! | [`witness`] | what left the server, against what the disk holds and a power cut would leave |
//! | [`watched`] | where the server meets crowd and witness |
//! | [`machine`] | starting the server |
//!
//! What is checked:
//! 1. *No reply before durable*: a unique value leaves the server only once the disk has synced it,
//!    be it in a reply, a message, a keyspace event or a line of MONITOR.
//! 2. *No acknowledged write lost*: for a power cut in place of every sync, of the log and of
//!    snapshots, a start finds for each ledger everything whose reply had left by then, and nothing
//!    half; also if the newest snapshot turns out damaged.
//! 3. *State = replay*: what a start finds is, by digest, what the server held after that record,
//!    and what the server holds is what its records make.
//! 4. *Who listens hears*: a message that was published to somebody whose subscription was
//!    confirmed, be it while the server loaded, arrives, and in order.
//! 5. *A value is in one place*: what is live in a tier is what keys have there; a value that its
//!    device loses is answered by nobody, and is there in the next life.
//! 6. *Same seed, same run*: by the trace of everything that happened.

pub mod crowd;
pub mod generate;
pub mod habit;
pub mod ledger;
pub mod machine;
pub mod news;
pub mod queue;
pub mod shadow;
pub mod stream;
pub mod token;
pub mod user;
pub mod watched;
pub mod witness;

pub use machine::Broken;
pub use witness::Seen;

use crate::clock::SimClock;
use crate::disk::nameless::ReadOdds;
use crate::disk::{Faults, SimDisk};
use crate::driver::SimDriver;
use crate::limits::Limits;
use crate::network::{NetworkFaults, SimNetwork};
use crate::random::Random;
use crate::tapped_log::TappedLog;
use crate::tier::{self, Pressure, Spilling, Tiered};
use crate::timeline::Timeline;
use base::driver::Driver;
use crowd::Crowd;
use generate::Generator;
use habit::Habit;
use machine::Machine;
use node::Scratch;
use node::{Server, Stop};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use user::User;
use watched::WatchedDriver;
use witness::{SharedWitness, Witness};

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Commands answered before the run ends.
    pub commands: u64,
    /// Lives of the server.
    pub lives: u64,
    pub broken: Broken,
    /// Where values go that memory has no room for; `None`: what the seed says.
    pub tier: Option<Option<Tiered>>,
    /// What the device of the tier does wrong.
    pub device: Device,
}

/// What the device does wrong on which the values lie that memory has no room for.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Device {
    pub reads: ReadOdds,
    /// How many of a thousand writes fail.
    pub failed_writes: u64,
}

impl Device {
    fn is_good(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            commands: 2400,
            lives: 5,
            broken: Broken::Nothing,
            tier: None,
            device: Device::default(),
        }
    }
}

/// What a run was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Commands that were executed, rightly or in vain.
    pub commands: u64,
    /// Sync points of the run, of the log and of snapshots. At each a power cut was tried.
    pub syncs: u64,
    pub seen: Seen,
    /// Different snapshots that were published.
    pub published: u64,
    /// Commits that the loop made itself, for a lone client.
    pub inline: u64,
    /// Requests that ran while others were answered, because their values had come.
    pub amid_sending: u64,
    /// Phases in which keys were evicted, all databases emptied, one client was alone.
    pub phases: [u64; 3],
    /// What the server was limited to.
    pub limits: Limits,
    /// What became of values that left memory.
    pub spilling: Spilling,
    /// Lives that ended before their time, because a value was lost in them.
    pub demotions: u64,
    /// The digest of everything that happened.
    pub trace: u64,
}

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Ending {
    PowerCut,
    FailedSync,
    Kill,
    Stop,
}

/// How a life went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lived {
    ToItsEnd,
    /// A value was lost, and all is read anew from snapshot and log.
    Demoted,
}

/// Lives that may end before their time: then the device is replaced, or a run would have no end
/// in which each read is wrong.
const DEMOTIONS_MAX: u64 = 20;

/// Turns of one life after which something must be stuck.
const TURNS_MAX: u32 = 1_000_000;

/// Clients with a ledger of their own, and without.
const KEEPERS: usize = 3;
const ROAMERS: usize = 3;

/// Turns from one look at what is live in the tier to the next.
const TIER_CHECK_TURNS: u32 = 100;

/// How long a turn takes while the server loads, at most.
const LOADING_TURN_NANOS_MAX: u64 = 2_000_000;

/// How often, of 100 times, the newest snapshot is found damaged at a start.
const DAMAGE_PERCENT: u64 = 10;

struct Room {
    plan: Plan,
    random: Random,
    machine: Rc<Machine>,
    network: SimNetwork,
    witness: SharedWitness,
    crowd: Rc<RefCell<Crowd>>,
    spilling: Spilling,
    amid_sending: u64,
    /// Lives that ended because a value was lost in them.
    demotions: u64,
}

/// Runs the room of a seed.
///
/// # Errors
/// The first promise that was broken, and when.
pub fn run(seed: u64, plan: Plan) -> Result<Outcome, String> {
    let mut room = Room::new(seed, plan);
    let limits = room.machine.limits;
    for life in 1..=plan.lives {
        let ending = *room.random.choose(&[
            Ending::PowerCut,
            Ending::PowerCut,
            Ending::FailedSync,
            Ending::Kill,
            Ending::Stop,
        ]);
        let ending = if life == plan.lives { Ending::Stop } else { ending };
        let until = plan.commands * life / plan.lives;
        let mut lived = room.live(until, ending);
        while lived == Ok(Lived::Demoted) {
            room.note_demotion();
            lived = room.live(until, ending);
        }
        let seen = room.witness.borrow().violation.clone();
        // What the witness saw first says more than what came of it.
        let tier = room.machine.tier;
        let context = |why| format!("limits {limits:?}, tier {tier:?}, life {life}: {why}");
        seen.map_or(lived, Err).map_err(context)?;
    }
    Ok(room.outcome())
}

impl Room {
    fn new(seed: u64, plan: Plan) -> Self {
        let timeline = Timeline::new();
        let mut random = Random::stream(seed, "room");
        let faults =
            if random.chance(50) { NetworkFaults::harsh() } else { NetworkFaults::benign() };
        let network = SimNetwork::new(&timeline, seed, faults);
        // Large values are split into several records, or fit into one beyond 32 KiB.
        let record_bytes_max = *random.choose(&[6 << 10, 20 << 10, 72 << 10]);
        let mut tier = plan.tier.unwrap_or_else(|| Tiered::draw(seed));
        if let Some(tier) = &mut tier {
            tier.limits.cold.keeps_encoding = plan.broken == Broken::KeepsEncoding;
        }
        let machine = Rc::new(Machine {
            disk: SimDisk::new(seed),
            clock: SimClock::new(&timeline),
            timeline,
            broken: plan.broken,
            record_bytes_max,
            limits: Limits::draw(seed),
            tier,
        });
        let witness = Witness::new(Rc::clone(&machine), seed, KEEPERS);
        let mut habits: Vec<Habit> = (0..KEEPERS)
            .map(|client| Habit::Keeps { client, large_bytes: record_bytes_max, entries: 0 })
            .collect();
        habits.extend((0..ROAMERS).map(|index| Habit::Roams {
            generator: Box::new(Generator::new(Random::stream(seed, &format!("roamer{index}")))),
            database: 1 + index as u32 % 2,
        }));
        let limits_memory = is_short_of_memory(&machine);
        let operates = Habit::Operates { limits_memory };
        habits.extend([Habit::Hands, Habit::Hands, operates, Habit::Subscribes]);
        habits.push(Habit::Tells { made: VecDeque::new(), count: 0 });
        if random.chance(50) {
            habits.push(Habit::Monitors);
        }
        let users = habits.into_iter().enumerate();
        let users =
            users.map(|(at, habit)| User::new(habit, Random::stream(seed, &format!("user{at}"))));
        let crowd = Crowd::new(users.collect(), Random::stream(seed, "crowd"));
        let (crowd, spilling) = (Rc::new(RefCell::new(crowd)), Spilling::default());
        machine.disk.set_read_odds(plan.device.reads);
        machine.disk.set_failed_writes(plan.device.failed_writes);
        Self {
            plan,
            random,
            machine,
            network,
            witness,
            crowd,
            spilling,
            amid_sending: 0,
            demotions: 0,
        }
    }

    fn outcome(&self) -> Outcome {
        let witness = self.witness.borrow();
        Outcome {
            commands: self.commands(),
            syncs: self.machine.disk.syncs(),
            seen: witness.seen,
            published: witness.published.len() as u64,
            inline: witness.inline,
            amid_sending: self.amid_sending,
            phases: self.crowd.borrow().phases,
            limits: self.machine.limits,
            spilling: self.spilling,
            demotions: self.demotions,
            trace: self.machine.timeline.trace(),
        }
    }

    fn commands(&self) -> u64 {
        let seen = self.witness.borrow().seen;
        seen.replies - seen.refused
    }

    /// A value was lost. A device that loses too many is replaced.
    fn note_demotion(&mut self) {
        self.demotions += 1;
        if self.demotions == DEMOTIONS_MAX {
            self.machine.disk.set_read_odds(ReadOdds::default());
        }
    }

    /// One life of the server, until so many commands were answered and it ends.
    fn live(&mut self, until: u64, ending: Ending) -> Result<Lived, String> {
        let (mut server, mut driver) = self.start()?;
        let mut scratch = Scratch::default();
        let mut is_ending = false;
        let mut settled = server.core.shard.appended().sequence;
        let disk = self.machine.disk.clone();
        for turn in 0..=TURNS_MAX {
            if turn == TURNS_MAX {
                return Err(format!("a life does not end by {ending:?}"));
            }
            self.let_something_happen(is_ending);
            self.crowd.borrow_mut().used_bytes = server.core.shard.engine.keyspace.used_bytes();
            server.turn(&mut driver, &mut scratch);
            settled = self.take_digest(&server, settled);
            self.check()?;
            if turn % TIER_CHECK_TURNS == 0 && !disk.is_off() {
                tier::check(&server.core.shard.engine.keyspace)?;
            }
            if disk.is_off() || has_stopped(&server) {
                break;
            }
            if !is_ending && self.commands() >= until {
                is_ending = true;
                if ending == Ending::Kill {
                    break;
                }
                self.begin_end(ending);
            }
            if is_ending && ending == Ending::Stop && self.crowd.borrow().is_idle() {
                self.network.ask_to_stop("node");
            }
            if is_ending && ending == Ending::FailedSync && !disk.will_fail() {
                // It hit a snapshot, which was given up, or space for the log.
                self.begin_end(ending);
            }
        }
        self.spilling.add(&server.core.shard);
        self.amid_sending += server.core.process.ran_amid_sending();
        if !disk.is_off() {
            tier::check(&server.core.shard.engine.keyspace)?;
        }
        self.end(server, driver, ending)
    }

    /// Starts the server, again if the power goes off meanwhile.
    fn start(&mut self) -> Result<(Server, WatchedDriver), String> {
        let machine = Rc::clone(&self.machine);
        let disk = &machine.disk;
        if self.random.chance(DAMAGE_PERCENT) {
            machine.damage_newest(&mut self.random)?;
        }
        self.set_usual_faults();
        if self.random.chance(30) {
            let at = disk.syncs() + self.random.within(1..12);
            disk.set_faults(Faults { cut_at_sync: Some(at), ..Faults::default() });
        }
        loop {
            self.crowd.borrow_mut().begin_life(&self.witness);
            if is_short_of_memory(&machine) {
                self.witness.borrow_mut().expect_refusals();
            }
            let clock = machine.clock.clone();
            let driver = SimDriver::listen(&self.network, "node", clock, self.random.draw());
            let (network, witness) = (self.network.clone(), self.witness.clone());
            let crowd = Rc::clone(&self.crowd);
            let turn_nanos = self.random.within(0..LOADING_TURN_NANOS_MAX);
            let mut driver = WatchedDriver { driver, network, witness, crowd, turn_nanos };
            let faults_before = disk.read_faults();
            let (entropy, waker) = (driver.entropy(), driver.waker());
            let mut server = machine.process(entropy, &waker);
            let loaded = machine.store().and_then(|store| {
                let loading = machine.begin_loading(&server, store.clone(), &waker)?;
                let loaded = server.load(&mut driver, loading);
                loaded.map(|_| store).map_err(|error| error.to_string())
            });
            self.witness.borrow_mut().look_at_disk();
            self.check()?;
            match loaded {
                Ok(store) if !disk.is_off() => {
                    let tap = self.witness.borrow_mut().note_recovery(&server)?;
                    server.core.shard.wrap_log(|log| Box::new(TappedLog { log, listener: tap }));
                    machine.complete(&mut server, store, entropy, &waker);
                    driver.turn_nanos = 0;
                    self.set_usual_faults();
                    return Ok((server, driver));
                }
                Ok(_) => drop((server, driver)),
                Err(_) if disk.is_off() => drop((server, driver)),
                Err(_) if !self.plan.device.is_good() && disk.read_faults() != faults_before => {
                    drop((server, driver));
                    self.note_demotion();
                }
                Err(why) => return Err(format!("the server does not start: {why}")),
            }
            disk.restart();
        }
    }

    /// No fault but what the plan has broken.
    fn set_usual_faults(&self) {
        self.machine.disk.set_faults(self.usual_faults());
    }

    fn usual_faults(&self) -> Faults {
        let lies_about_sync = self.plan.broken == Broken::StubsSync;
        Faults { lies_about_sync, ..Faults::default() }
    }

    /// Takes space away for a while, now and then, and lets time pass.
    fn let_something_happen(&mut self, is_ending: bool) {
        if is_ending {
            // What waits for the disk to have space again looks at it twice a second.
            if self.random.chance(1) {
                self.machine.timeline.pass(self.random.within(1_000_000..100_000_000));
            }
            return;
        }
        match self.random.within(0..2000) {
            0 => {
                self.witness.borrow_mut().expect_refusals();
                let left = self.random.within(0..50_000);
                let capacity_bytes = Some(self.machine.disk.used_bytes() + left);
                self.machine.disk.set_faults(Faults { capacity_bytes, ..self.usual_faults() });
            }
            1..=20 => self.set_usual_faults(),
            21..=30 => self.machine.timeline.pass(self.random.within(1_000_000..300_000_000)),
            // Longer than from one renewal of a lease to the next.
            32..=37 => self.machine.timeline.pass(self.random.within(1..1_500_000_000)),
            31 => self.machine.clock.step_wall(self.random.within(1..3_000_000) as i64),
            _ => {}
        }
    }

    fn begin_end(&mut self, ending: Ending) {
        let faults = self.usual_faults();
        let disk = &self.machine.disk;
        let at = Some(disk.syncs() + self.random.within(1..8));
        disk.set_faults(match ending {
            Ending::PowerCut => Faults { cut_at_sync: at, ..faults },
            Ending::FailedSync => Faults { fail_sync: at, ..faults },
            Ending::Kill | Ending::Stop => faults,
        });
        if ending == Ending::Stop {
            self.crowd.borrow_mut().is_sending = false;
        }
    }

    fn end(
        &mut self,
        server: Server,
        driver: WatchedDriver,
        ending: Ending,
    ) -> Result<Lived, String> {
        self.witness.borrow_mut().note_death();
        let disk = &self.machine.disk;
        let is_demoted = matches!(server.core.stopping, Some(Stop::Demoted(_)));
        if is_demoted && !self.plan.device.is_good() {
            if !disk.is_off() {
                disk.kill_process();
            }
            drop((server, driver));
            disk.restart();
            return Ok(Lived::Demoted);
        }
        let fits = match (&server.core.stopping, ending) {
            (Some(Stop::Clean), Ending::Stop) => true,
            (Some(Stop::LogFailed(_)), Ending::FailedSync) => true,
            (None, Ending::Kill) => true,
            _ => disk.is_off() && ending == Ending::PowerCut,
        };
        if !fits {
            return Err(format!("a life that ends by {ending:?}: {:?}", server.core.stopping));
        }
        if !disk.is_off() {
            disk.kill_process();
            if ending != Ending::Stop && self.random.chance(50) {
                disk.cut_power();
            }
        }
        drop((server, driver));
        disk.restart();
        Ok(Lived::ToItsEnd)
    }

    /// Notes what the server holds whenever it has appended all it executed.
    fn take_digest(&self, server: &Server, settled: base::Sequence) -> base::Sequence {
        let appended = server.core.shard.appended().sequence;
        // What lies on the file cannot be had without power, and is lost in a life that is over.
        let keyspace = &server.core.shard.engine.keyspace;
        if self.machine.disk.is_off() || keyspace.cold_failure().is_some() {
            return settled;
        }
        // The effects of a suspended script are in no record, and held records in no log.
        let shard = &server.core.shard;
        let is_appended = !shard.has_gathered() && !shard.holds_records();
        let is_whole = is_appended && !server.is_amid_script();
        if appended > settled && is_whole {
            let held = self.machine.disk.read_rightly(|| machine::digest(server));
            self.witness.borrow_mut().note_digest(appended.0, held);
            return appended;
        }
        settled
    }

    fn check(&self) -> Result<(), String> {
        self.witness.borrow().violation.clone().map_or(Ok(()), Err)
    }
}

/// Whether values leave memory because it is short.
fn is_short_of_memory(machine: &Machine) -> bool {
    machine.tier.is_some_and(|tier| matches!(tier.pressure, Pressure::Memory(_)))
}

/// Whether the server's loop would end.
fn has_stopped(server: &Server) -> bool {
    let is_written = !server.core.shard.has_gathered() && !server.core.shard.is_in_flight();
    let is_drained = is_written && !server.is_amid_script();
    match server.core.stopping {
        None => false,
        Some(Stop::Clean) => is_drained,
        Some(_) => true,
    }
}
