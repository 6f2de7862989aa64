//! Simulated clients: each has a habit, and keeps a connection for it.

use super::habit::{Habit, Request};
use super::stream::Expectation;
use super::witness::SharedWitness;
use crate::network::{ClientState, SimClient, SimNetwork};
use crate::random::Random;
use crate::reply::{self, Kind, Reply};

/// What a client may send now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leave {
    /// Nothing; it may not even introduce itself.
    Nothing,
    /// Who it is, and no more.
    Introduction,
    /// One request at a time.
    One,
    /// It may pipeline.
    Many,
}

/// How far a connection is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Nothing was said on it.
    New,
    /// So many replies to come; whether one was a refusal: then it begins again.
    Introducing(usize, bool),
    Ready,
}

/// One client, through all its connections.
pub struct User {
    pub habit: Habit,
    random: Random,
    client: Option<SimClient>,
    received: Vec<u8>,
    outstanding: usize,
    stage: Stage,
    /// Counts connections.
    pub connections: u64,
}

impl User {
    pub fn new(habit: Habit, random: Random) -> Self {
        let (client, received, stage) = (None, Vec::new(), Stage::New);
        Self { habit, random, client, received, outstanding: 0, stage, connections: 0 }
    }

    /// Reads what came, connects again if need be, and perhaps sends something. Whether all is
    /// answered is for [`Self::is_idle`].
    pub fn act(&mut self, network: &SimNetwork, witness: &SharedWitness, leave: Leave) {
        if !self.is_connected(network) {
            return;
        }
        self.receive();
        match self.stage {
            Stage::New | Stage::Introducing(0, true) if leave != Leave::Nothing => {
                self.introduce(witness);
            }
            Stage::Introducing(0, false) => self.stage = Stage::Ready,
            _ => {}
        }
        let limit = match leave {
            Leave::Nothing | Leave::Introduction => 0,
            Leave::One => 1,
            Leave::Many => self.habit.outstanding_max(),
        };
        let times = if leave == Leave::Many { self.random.within(0..4) } else { 1 };
        for _ in 0..times {
            if self.stage == Stage::Ready && self.outstanding < limit {
                let requests = self.habit.next(&mut self.random, witness);
                self.send(witness, requests);
            }
        }
    }

    /// Whether the connection is open; begins another if there is none.
    fn is_connected(&mut self, network: &SimNetwork) -> bool {
        match self.client.as_ref().map(SimClient::state) {
            Some(ClientState::Open) => return true,
            Some(ClientState::Connecting) => {}
            Some(ClientState::Refused | ClientState::Closed | ClientState::Reset) => {
                self.client = None;
            }
            None => {
                self.client = Some(network.connect("node"));
                self.connections += 1;
                self.received.clear();
                self.outstanding = 0;
                self.stage = Stage::New;
            }
        }
        false
    }

    fn receive(&mut self) {
        let Some(client) = &self.client else { return };
        self.received.extend(client.received());
        // What is wrong with a reply was said by the witness as it left.
        while let Ok(Some((reply, length))) = reply::parse(&self.received) {
            self.received.drain(..length);
            if self.habit.is_listening() && reply.kind() == Kind::Message {
                continue;
            }
            self.outstanding = self.outstanding.saturating_sub(1);
            if let Stage::Introducing(left, failed) = &mut self.stage {
                *left = left.saturating_sub(1);
                *failed |= matches!(reply, Reply::Error(_));
            }
        }
    }

    /// Nothing is without a reply, and nothing is to be said first.
    pub fn is_idle(&self) -> bool {
        self.stage == Stage::Ready && self.outstanding == 0
    }

    /// Says again who it is, and reads again what it must know.
    pub fn introduce_again(&mut self) {
        self.stage = Stage::New;
    }

    fn introduce(&mut self, witness: &SharedWitness) {
        let protocol = *self.random.choose(&["2", "3"]);
        let hello = ["HELLO", protocol].map(|word| word.as_bytes().to_vec()).to_vec();
        let mut requests = vec![Request::new(hello, Expectation::Nothing)];
        requests.extend(self.habit.introduction());
        if let Some(client) = self.client.as_ref().filter(|_| self.habit.is_listening()) {
            witness.borrow_mut().listens(client.id());
        }
        self.stage = Stage::Introducing(requests.len(), false);
        self.send(witness, requests);
    }

    /// Sends requests.
    pub fn send(&mut self, witness: &SharedWitness, requests: Vec<Request>) {
        let Some(client) = &self.client else { return };
        for Request { words, expectation } in requests {
            let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
            for word in words {
                bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
                bytes.extend_from_slice(&word);
                bytes.extend_from_slice(b"\r\n");
            }
            witness.borrow_mut().expect(client.id(), expectation);
            client.send(&bytes);
            self.outstanding += 1;
        }
    }
}
