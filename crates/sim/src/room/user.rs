//! Simulated clients: some keep a ledger of their own keys, the others send anything.

use super::generate::Generator;
use super::ledger::{Change, queries};
use super::token::Tokens;
use super::witness::{Expectation, SharedWitness};
use crate::network::{ClientState, SimClient, SimNetwork};
use crate::random::Random;
use crate::reply;

/// Requests without a reply at most: clients pipeline.
const OUTSTANDING_MAX: usize = 12;

/// What a client does.
pub enum Habit {
    /// Changes its own keys, and knows what they must hold.
    Keeps { client: usize },
    /// Sends what the generator makes, in one of the other databases.
    Roams { generator: Box<Generator>, database: u32 },
}

/// One client, through all its connections.
pub struct User {
    habit: Habit,
    random: Random,
    client: Option<SimClient>,
    received: Vec<u8>,
    outstanding: usize,
    /// Replies to come before the client knows what its keys hold.
    unresolved: usize,
    is_introduced: bool,
}

impl User {
    pub fn new(habit: Habit, random: Random) -> Self {
        Self {
            habit,
            random,
            client: None,
            received: Vec::new(),
            outstanding: 0,
            unresolved: 0,
            is_introduced: false,
        }
    }

    /// Reads what came, connects again if need be, and perhaps sends something. Whether all is
    /// answered is for [`Self::is_idle`].
    pub fn act(&mut self, network: &SimNetwork, witness: &SharedWitness, sends: bool) {
        let Some(client) = &self.client else {
            self.connect(network);
            return;
        };
        match client.state() {
            ClientState::Connecting => return,
            ClientState::Open => {}
            ClientState::Refused | ClientState::Closed | ClientState::Reset => {
                self.client = None;
                return;
            }
        }
        self.received.extend(client.received());
        while let Ok(Some((_, length))) = reply::parse(&self.received) {
            self.received.drain(..length);
            self.outstanding -= 1;
            self.unresolved = self.unresolved.saturating_sub(1);
        }
        if !self.is_introduced {
            self.introduce(witness);
        } else if sends && self.unresolved == 0 && self.outstanding < OUTSTANDING_MAX {
            for _ in 0..self.random.within(0..5) {
                self.send_something(witness);
            }
        }
    }

    /// Nothing is without a reply.
    pub fn is_idle(&self) -> bool {
        self.is_introduced && self.outstanding == 0
    }

    fn connect(&mut self, network: &SimNetwork) {
        self.client = Some(network.connect("node"));
        self.received.clear();
        self.outstanding = 0;
        self.unresolved = 0;
        self.is_introduced = false;
    }

    fn introduce(&mut self, witness: &SharedWitness) {
        self.is_introduced = true;
        match self.habit {
            Habit::Keeps { client } => {
                self.request(witness, &[b"MULTI".to_vec()], Expectation::Anything);
                for query in queries(client) {
                    self.request(witness, &query, Expectation::Anything);
                }
                self.request(witness, &[b"EXEC".to_vec()], Expectation::Holdings(client));
                self.unresolved = self.outstanding;
            }
            Habit::Roams { database, .. } => {
                let words = [b"SELECT".to_vec(), database.to_string().into_bytes()];
                self.request(witness, &words, Expectation::Anything);
            }
        }
    }

    fn send_something(&mut self, witness: &SharedWitness) {
        match &mut self.habit {
            Habit::Keeps { client } => {
                let client = *client;
                let change = change(&mut self.random, &mut witness.borrow_mut().tokens, true);
                let requests = change.requests(client);
                witness.borrow_mut().ledgers[client].submit(change);
                for (index, words) in requests.iter().enumerate() {
                    let is_last = index + 1 == requests.len();
                    let expectation =
                        if is_last { Expectation::Change(client) } else { Expectation::Anything };
                    self.request(witness, words, expectation);
                }
            }
            Habit::Roams { generator, .. } => {
                let mut requests = Vec::new();
                let mut make = |count| {
                    let tokens = &mut witness.borrow_mut().tokens;
                    (0..count).map(|_| generator.request(tokens)).collect::<Vec<_>>()
                };
                let word = |word: &str| vec![word.as_bytes().to_vec()];
                if self.random.chance(10) {
                    if self.random.chance(30) {
                        let key = format!("key:4:{}", self.random.within(0..3));
                        requests.push(vec![b"WATCH".to_vec(), key.into_bytes()]);
                        requests.append(&mut make(1));
                    }
                    requests.push(word("MULTI"));
                    requests.append(&mut make(self.random.within(1..5)));
                    let ends: [&str; 4] = ["EXEC", "EXEC", "EXEC", "DISCARD"];
                    requests.push(word(self.random.choose::<&str>(&ends)));
                } else if self.random.chance(1) {
                    let swap = ["SWAPDB", "1", "2"].map(|word| word.as_bytes().to_vec());
                    requests.push(swap.to_vec());
                } else {
                    requests.append(&mut make(1));
                }
                for words in requests {
                    self.request(witness, &words, Expectation::Anything);
                }
            }
        }
    }

    fn request(&mut self, witness: &SharedWitness, words: &[Vec<u8>], expectation: Expectation) {
        let Some(client) = &self.client else { return };
        let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            bytes.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            bytes.extend_from_slice(word);
            bytes.extend_from_slice(b"\r\n");
        }
        witness.borrow_mut().expect(client.id(), expectation);
        client.send(&bytes);
        self.outstanding += 1;
    }
}

fn change(random: &mut Random, tokens: &mut Tokens, may_group: bool) -> Change {
    let name = |random: &mut Random| format!("m{}", random.within(0..5)).into_bytes();
    match random.within(0..if may_group { 13 } else { 12 }) {
        0 | 1 => Change::Set(tokens.issue()),
        2 => Change::Delete,
        3 => Change::Count(random.within(1..9) as i64),
        4 => Change::PushHead(tokens.issue()),
        5 => Change::PushTail(tokens.issue()),
        6 => Change::PopHead,
        7 => Change::PopTail,
        8 => Change::Add(name(random)),
        9 => Change::Remove(name(random)),
        10 => Change::SetField(name(random), tokens.issue()),
        11 => Change::DeleteField(name(random)),
        _ => {
            let count = random.within(1..5);
            Change::Together((0..count).map(|_| change(random, tokens, false)).collect())
        }
    }
}
