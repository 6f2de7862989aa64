//! A room of the simulated world: one machine with a server and its clients, through several lives.
//!
//! The server is the real one: its loop, its recovery, its log on a disk that keeps live and
//! durable bytes apart. Clients speak to it in bytes. Each life ends in a power cut, a failed sync,
//! a killed process or a clean stop; space runs out in between. All of it follows from the seed.
//!
//! | file | holds |
//! |---|---|
//! | [`generate`] | random requests from the commands' usage lines |
//! | [`token`] | unique values |
//! | [`ledger`] | what a client knows of its own keys |
//! | [`user`] | clients |
//! | [`witness`] | what left the server, against what the disk holds |
//! | [`machine`] | starting the server |
//!
//! What is checked:
//! 1. *No reply before durable*: a unique value leaves the server only once the disk has synced it.
//! 2. *No acknowledged write lost*: for a power cut in place of every sync, recovery finds for
//!    each ledger everything whose reply had left by then, and nothing half.
//! 3. *State = replay*: what recovery finds is, by digest, what the server held after that record.
//! 4. *Same seed, same run*: by the trace of everything that happened.

pub mod generate;
pub mod ledger;
pub mod machine;
pub mod token;
pub mod user;
pub mod witness;

pub use machine::Broken;

use crate::clock::SimClock;
use crate::disk::{Faults, SimDisk};
use crate::driver::SimDriver;
use crate::network::{NetworkFaults, SimNetwork};
use crate::random::Random;
use crate::timeline::Timeline;
use base::driver::Driver;
use generate::Generator;
use node::reactor::Scratch;
use node::{Server, Stop};
use user::{Habit, User};
use witness::{SharedWitness, WatchedDriver, Witness};

/// What a run is like.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Replies before the run ends.
    pub replies: u64,
    /// Lives of the server.
    pub lives: u64,
    pub broken: Broken,
}

impl Default for Plan {
    fn default() -> Self {
        Self { replies: 2400, lives: 5, broken: Broken::Nothing }
    }
}

/// What a run was.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub replies: u64,
    /// Replies that were errors: a run of errors proves nothing.
    pub errors: u64,
    /// Syncs in whose place a power cut was tried.
    pub cuts: u64,
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

/// Turns of one life after which something must be stuck.
const TURNS_MAX: u32 = 1_000_000;

/// Clients with a ledger, and without.
const KEEPERS: usize = 3;
const ROAMERS: usize = 3;

struct Room {
    plan: Plan,
    random: Random,
    timeline: Timeline,
    disk: SimDisk,
    network: SimNetwork,
    witness: SharedWitness,
    users: Vec<User>,
}

/// Runs the room of a seed.
///
/// # Errors
/// The first promise that was broken, and when.
pub fn run(seed: u64, plan: Plan) -> Result<Outcome, String> {
    let mut room = Room::new(seed, plan);
    for life in 1..=plan.lives {
        let ending = *room.random.choose(&[
            Ending::PowerCut,
            Ending::PowerCut,
            Ending::FailedSync,
            Ending::Kill,
            Ending::Stop,
        ]);
        let ending = if life == plan.lives { Ending::Stop } else { ending };
        let until = plan.replies * life / plan.lives;
        let lived = room.live(until, ending);
        let seen = room.witness.borrow().violation.clone();
        lived.and(seen.map_or(Ok(()), Err)).map_err(|why| format!("life {life}: {why}"))?;
    }
    let witness = room.witness.borrow();
    let (replies, errors, cuts) = (witness.replies, witness.errors, witness.cuts);
    Ok(Outcome { replies, errors, cuts, trace: room.timeline.trace() })
}

impl Room {
    fn new(seed: u64, plan: Plan) -> Self {
        let timeline = Timeline::new();
        let mut random = Random::stream(seed, "room");
        let faults =
            if random.chance(50) { NetworkFaults::harsh() } else { NetworkFaults::benign() };
        let disk = SimDisk::new(seed);
        let network = SimNetwork::new(&timeline, seed, faults);
        let witness = Witness::new(&disk, seed, KEEPERS, plan.broken);
        let habits = (0..KEEPERS).map(|client| Habit::Keeps { client });
        let roamers = (0..ROAMERS).map(|index| Habit::Roams {
            generator: Box::new(Generator::new(Random::stream(seed, &format!("roamer{index}")))),
            database: 1 + index as u32 % 2,
        });
        let users = habits.chain(roamers).enumerate();
        let users = users
            .map(|(at, habit)| User::new(habit, Random::stream(seed, &format!("user{at}"))))
            .collect();
        Self { plan, random, timeline, disk, network, witness, users }
    }

    /// One life of the server, until so many replies have left and it ends.
    fn live(&mut self, until: u64, ending: Ending) -> Result<(), String> {
        let (mut server, mut driver) = self.start()?;
        let mut scratch = Scratch::default();
        let mut is_ending = false;
        let mut settled = server.shard.appended().sequence;
        for _ in 0..TURNS_MAX {
            let sends = !is_ending || ending != Ending::Stop;
            for user in &mut self.users {
                user.act(&self.network, &self.witness, sends);
            }
            self.fill_up(is_ending);
            server.turn(&mut driver, &mut scratch);
            settled = self.take_digest(&server, settled);
            self.check()?;
            if self.disk.is_off() || has_stopped(&server) {
                break;
            }
            if !is_ending && self.witness.borrow().replies >= until {
                is_ending = true;
                if ending == Ending::Kill {
                    break;
                }
                self.begin_end(ending);
            }
            if is_ending && ending == Ending::Stop && self.users.iter().all(User::is_idle) {
                self.network.ask_to_stop("node");
            }
        }
        self.end(server, driver, ending)
    }

    /// Starts the server, again if the power goes off meanwhile.
    fn start(&mut self) -> Result<(Server, WatchedDriver), String> {
        self.set_usual_faults();
        if self.random.chance(30) {
            let at = self.disk.syncs() + self.random.within(1..12);
            self.disk.set_faults(Faults { cut_at_sync: Some(at), ..Faults::default() });
        }
        loop {
            let clock = SimClock::new(&self.timeline);
            let driver = SimDriver::listen(&self.network, "node", clock, self.random.draw());
            let witness = self.witness.clone();
            let mut driver = WatchedDriver { driver, witness, disk: self.disk.clone() };
            let (entropy, waker) = (driver.entropy(), driver.waker());
            let broken = self.plan.broken;
            let note = |tail, digest| self.witness.borrow_mut().note_recovery(tail, digest);
            let (disk, timeline) = (&self.disk, &self.timeline);
            let started = machine::start(disk, timeline, entropy, broken, &waker, note);
            self.witness.borrow_mut().look_at_disk();
            self.check()?;
            match started {
                Ok(server) if !self.disk.is_off() => {
                    self.set_usual_faults();
                    return Ok((server, driver));
                }
                Ok(server) => drop((server, driver)),
                Err(_) if self.disk.is_off() => drop(driver),
                Err(why) => return Err(format!("the server does not start: {why}")),
            }
            self.disk.restart();
        }
    }

    /// No fault but what the plan has broken.
    fn set_usual_faults(&self) {
        let lies_about_sync = self.plan.broken == Broken::StubsSync;
        self.disk.set_faults(Faults { lies_about_sync, ..Faults::default() });
    }

    /// Takes space away for a while, now and then.
    fn fill_up(&mut self, is_ending: bool) {
        if is_ending {
            return;
        }
        match self.random.within(0..2000) {
            0 => {
                let left = self.random.within(0..50_000);
                let capacity_bytes = Some(self.disk.used_bytes() + left);
                self.disk.set_faults(Faults { capacity_bytes, ..Faults::default() });
            }
            1..=20 => self.set_usual_faults(),
            _ => {}
        }
    }

    fn begin_end(&mut self, ending: Ending) {
        self.set_usual_faults();
        let at = Some(self.disk.syncs() + self.random.within(1..8));
        let lies_about_sync = self.plan.broken == Broken::StubsSync;
        let faults = Faults { lies_about_sync, ..Faults::default() };
        match ending {
            Ending::PowerCut => self.disk.set_faults(Faults { cut_at_sync: at, ..faults }),
            Ending::FailedSync => self.disk.set_faults(Faults { fail_sync: at, ..faults }),
            Ending::Kill | Ending::Stop => {}
        }
    }

    fn end(&mut self, server: Server, driver: WatchedDriver, ending: Ending) -> Result<(), String> {
        self.witness.borrow_mut().look_at_disk();
        let fits = match (&server.stopping, ending) {
            (Some(Stop::Clean), Ending::Stop) => true,
            (Some(Stop::LogFailed(_)), Ending::FailedSync) => true,
            (None, Ending::Kill) => true,
            _ => self.disk.is_off() && ending == Ending::PowerCut,
        };
        if !fits {
            return Err(format!("a life that ends by {ending:?}: {:?}", server.stopping));
        }
        if !self.disk.is_off() {
            self.disk.kill_process();
            if ending != Ending::Stop && self.random.chance(50) {
                self.disk.cut_power();
            }
        }
        drop((server, driver));
        self.disk.restart();
        Ok(())
    }

    /// Notes what the server holds whenever it has appended all it executed.
    fn take_digest(&self, server: &Server, settled: base::Sequence) -> base::Sequence {
        let appended = server.shard.appended().sequence;
        if appended > settled && !server.shard.has_gathered() {
            self.witness.borrow_mut().note_digest(appended.0, machine::digest(server));
            return appended;
        }
        settled
    }

    fn check(&self) -> Result<(), String> {
        self.witness.borrow().violation.clone().map_or(Ok(()), Err)
    }
}

/// Whether the server's loop would end.
fn has_stopped(server: &Server) -> bool {
    let is_drained = !server.shard.has_gathered() && !server.shard.is_in_flight();
    match server.stopping {
        None => false,
        Some(Stop::Clean) => is_drained,
        Some(_) => true,
    }
}
