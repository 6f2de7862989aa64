//! All clients of a room, and what they do together.
//!
//! ```text
//! ordinary ─▶ lone: one client, one request at a time
//!    ▲    └─▶ quiet: who has a ledger falls silent ─▶ errand: FLUSHALL, or maxmemory
//!    └────────── evicting ◀───────────────────────────────┘
//! ```
//! What empties or evicts the keys of others is sent only while those others are silent, so that
//! it has one place between their commands.

use super::habit::{Habit, Request};
use super::ledger::Change;
use super::stream::Expectation;
use super::user::{Leave, User};
use super::witness::SharedWitness;
use crate::network::SimNetwork;
use crate::random::Random;

/// What the operator does for the room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Errand {
    Sweep,
    Evict,
    /// No limit on memory any more.
    Relieve,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Ordinary,
    /// This user alone, for so many turns.
    Lone(usize, u32),
    Quiet(Errand),
    /// Sent, by the operator's so manieth connection.
    Waiting(Errand, u64),
    /// For so many turns.
    Evicting(u32),
}

/// Turns of a phase. A guess: some hundreds of requests.
const PHASE_TURNS: u32 = 250;

/// The policies of `maxmemory-policy`; from the fifth on they leave alone what never expires.
const POLICIES: [&str; 8] = [
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "noeviction",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// The clients.
pub struct Crowd {
    users: Vec<User>,
    /// Which of them operates.
    operator: usize,
    random: Random,
    phase: Phase,
    /// Whether they may send.
    pub is_sending: bool,
    /// What the server's data occupies, as the room last saw it.
    pub used_bytes: usize,
    /// Phases in which keys were evicted, all databases emptied, one client was alone.
    pub phases: [u64; 3],
}

impl Crowd {
    pub fn new(users: Vec<User>, random: Random) -> Self {
        let operates = |user: &User| matches!(user.habit, Habit::Operates { .. });
        let operator = users.iter().position(operates).expect("a room has an operator");
        let phase = Phase::Ordinary;
        Self { users, operator, random, phase, is_sending: true, used_bytes: 0, phases: [0; 3] }
    }

    /// A new server: what was asked of the old one is forgotten.
    pub fn begin_life(&mut self, witness: &SharedWitness) {
        self.phase = Phase::Ordinary;
        self.is_sending = true;
        witness.borrow_mut().begin_life();
    }

    /// Everyone does something, or not.
    pub fn act(&mut self, network: &SimNetwork, witness: &SharedWitness) {
        self.go_on(witness);
        for (index, user) in self.users.iter_mut().enumerate() {
            let has_leave = match self.phase {
                Phase::Waiting(..) if user.habit.has_ledger() => Leave::Nothing,
                _ if !self.is_sending => Leave::Introduction,
                Phase::Lone(alone, _) if alone == index => Leave::One,
                Phase::Lone(..) => Leave::Introduction,
                // Who comes back must introduce itself before all are quiet.
                Phase::Quiet(_) if user.habit.has_ledger() => Leave::Introduction,
                _ => Leave::Many,
            };
            user.act(network, witness, has_leave);
        }
    }

    /// Nothing is without a reply.
    pub fn is_idle(&self) -> bool {
        self.users.iter().all(User::is_idle)
    }

    fn go_on(&mut self, witness: &SharedWitness) {
        self.phase = match self.phase {
            Phase::Ordinary => match self.random.within(0..1600) {
                0 => Phase::Quiet(Errand::Sweep),
                1 => Phase::Quiet(Errand::Evict),
                2 | 3 => {
                    self.phases[2] += 1;
                    let pipelines = |user: &&User| {
                        matches!(user.habit, Habit::Keeps { .. } | Habit::Roams { .. })
                    };
                    let count = self.users.iter().filter(pipelines).count() as u64;
                    Phase::Lone(self.random.within(0..count) as usize, 2 * PHASE_TURNS)
                }
                _ => Phase::Ordinary,
            },
            Phase::Lone(_, 0) => Phase::Ordinary,
            Phase::Lone(alone, left) => Phase::Lone(alone, left - 1),
            Phase::Quiet(errand) => self.begin_errand(errand, witness),
            Phase::Waiting(errand, connection) => self.end_errand(errand, connection, witness),
            Phase::Evicting(0) => Phase::Quiet(Errand::Relieve),
            Phase::Evicting(left) => Phase::Evicting(left - 1),
        };
    }

    /// Sends the operator once everyone with a ledger is silent.
    fn begin_errand(&mut self, errand: Errand, witness: &SharedWitness) -> Phase {
        let mut ledgers = self.users.iter().filter(|user| user.habit.has_ledger());
        let is_quiet = ledgers.all(User::is_idle) && self.users[self.operator].is_idle();
        if !is_quiet || !self.is_sending {
            return Phase::Quiet(errand);
        }
        let request = match errand {
            Errand::Sweep => {
                self.phases[1] += 1;
                let mut witness = witness.borrow_mut();
                witness.ledgers.iter_mut().for_each(|ledger| ledger.submit(Change::FlushAll));
                witness.queue.is_flushing = true;
                let line = *self.random.choose(&["FLUSHALL", "FLUSHALL ASYNC", "FLUSHALL SYNC"]);
                Request::line(line, Expectation::Swept)
            }
            Errand::Evict => {
                self.phases[0] += 1;
                witness.borrow_mut().expect_refusals();
                let policy = self.random.within(0..POLICIES.len() as u64) as usize;
                if policy < 3 {
                    let mut witness = witness.borrow_mut();
                    witness.is_evicting = true;
                    witness.queue.is_unknown = true;
                    witness.ledgers.iter_mut().for_each(|ledger| ledger.forget());
                }
                let bytes = self.used_bytes as u64 * self.random.within(90..102) / 100;
                let policy = POLICIES[policy];
                let line = format!("CONFIG SET maxmemory {bytes} maxmemory-policy {policy}");
                Request::line(&line, Expectation::Errand)
            }
            Errand::Relieve => {
                let line = "CONFIG SET maxmemory 0 maxmemory-policy noeviction";
                Request::line(line, Expectation::Errand)
            }
        };
        witness.borrow_mut().is_errand_done = false;
        let operator = &mut self.users[self.operator];
        operator.send(witness, vec![request]);
        Phase::Waiting(errand, operator.connections)
    }

    fn end_errand(&mut self, errand: Errand, connection: u64, witness: &SharedWitness) -> Phase {
        let operator = &self.users[self.operator];
        let is_lost = operator.connections != connection;
        let is_done = witness.borrow().is_errand_done;
        match errand {
            Errand::Sweep if is_done => Phase::Ordinary,
            Errand::Sweep if is_lost => {
                // Whether it was executed, each finds out for itself.
                witness.borrow_mut().queue.is_unknown = true;
                self.introduce_keepers();
                Phase::Ordinary
            }
            Errand::Evict if is_done || is_lost => Phase::Evicting(PHASE_TURNS),
            Errand::Relieve if is_done => {
                witness.borrow_mut().is_evicting = false;
                self.introduce_keepers();
                Phase::Ordinary
            }
            Errand::Relieve if is_lost => Phase::Quiet(Errand::Relieve),
            _ => Phase::Waiting(errand, connection),
        }
    }

    fn introduce_keepers(&mut self) {
        let keeps = |user: &&mut User| matches!(user.habit, Habit::Keeps { .. });
        self.users.iter_mut().filter(keeps).for_each(User::introduce_again);
    }
}
