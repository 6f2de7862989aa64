//! A replica that knows only what it was sent: a snapshot's file, then commands.

use base::{DatabaseId, HashKey, Sequence, UnixMillis};
use engine::command::Args;
use engine::digest::Digest;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::load::Loader;
use engine::settings::Settings;
use engine::unit::{Context, Unit};
use node::Function;
use node::standard;
use resp::{ArgumentRanges, Decoded, Decoder, Reply};
use sim::network::SimClient;
use std::collections::BTreeMap;
use std::ops::Range;

/// What it is sent next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Line,
    Length,
    File(usize),
    Commands,
}

pub struct Follower {
    client: SimClient,
    received: Vec<u8>,
    stage: Stage,
    engine: Engine,
    database: DatabaseId,
    /// Bytes of the stream executed, and received.
    pub executed: u64,
    reached: u64,
    /// What the primary told in each turn, and the first record that may hold what it told of.
    told: Vec<(Range<u64>, Sequence)>,
    /// What the primary held when it had told so much.
    states: BTreeMap<u64, Digest>,
    /// How often it was found to hold what its primary held.
    pub agreements: u64,
}

impl Follower {
    pub fn attach(client: SimClient) -> Self {
        client.send(b"PSYNC ? -1\r\n");
        Self {
            client,
            received: Vec::new(),
            stage: Stage::Line,
            engine: Engine::new(Keyspace::new(Settings::default(), HashKey::fixed(11)), 11),
            database: DatabaseId(0),
            executed: 0,
            reached: 0,
            told: Vec::new(),
            states: BTreeMap::new(),
            agreements: 0,
        }
    }

    /// How far it is, for the report of a failure.
    pub fn describe(&self) -> String {
        format!("{:?}, executed {} of {}", self.stage, self.executed, self.reached)
    }

    /// The primary told these bytes of the stream in a turn, of changes in `first` or a later
    /// record; `state` is what it holds, if all of it is in records.
    pub fn note(&mut self, bytes: Range<u64>, first: Sequence, state: Option<Digest>) {
        if let Some(state) = state {
            self.states.insert(bytes.end, state);
        }
        self.told.push((bytes, first));
    }

    /// Takes what has arrived. Nothing of it may be of a record beyond `durable`.
    pub fn follow(&mut self, durable: Sequence) {
        let arrived = self.client.received();
        self.reached += if self.stage == Stage::Commands { arrived.len() as u64 } else { 0 };
        let arrives = !arrived.is_empty();
        self.received.extend(arrived);
        while self.step() {}
        if arrives && self.stage == Stage::Commands {
            // Else it would be taken for dead.
            self.client.send(format!("REPLCONF ACK {}\r\n", self.executed).as_bytes());
        }
        let begun = self.told.iter().filter(|(bytes, _)| bytes.start < self.reached);
        let newest = begun.map(|(_, first)| *first).max().unwrap_or(Sequence::ZERO);
        assert!(newest <= durable, "told of record {newest}, durable is {durable}");
        self.told.retain(|(bytes, _)| bytes.end > self.reached);
        if let Some(state) = self.states.get(&self.executed)
            && self.stage == Stage::Commands
        {
            assert_eq!(*state, Digest::of_keyspace(&self.engine.keyspace), "at {}", self.executed);
            self.agreements += 1;
        }
    }

    /// One line, the file or one command; whether there was enough of it.
    fn step(&mut self) -> bool {
        let line_end = self.received.iter().position(|byte| *byte == b'\n');
        match self.stage {
            Stage::Line | Stage::Length => {
                let Some(end) = line_end else { return false };
                let line: Vec<u8> = self.received.drain(..=end).collect();
                self.read_line(String::from_utf8_lossy(&line).trim());
            }
            Stage::File(length) => {
                if self.received.len() < length {
                    return false;
                }
                let file: Vec<u8> = self.received.drain(..length).collect();
                let mut loader = Loader::new(&file[..], UnixMillis(0));
                let loaded = loader.load_all(&mut self.engine.keyspace);
                loaded.expect("the file is whole");
                self.stage = Stage::Commands;
                self.reached = self.executed + self.received.len() as u64;
            }
            Stage::Commands => return self.execute(),
        }
        true
    }

    fn read_line(&mut self, line: &str) {
        match line.split_once(' ') {
            Some(("+FULLRESYNC", rest)) => {
                let offset = rest.split(' ').nth(1).and_then(|offset| offset.parse().ok());
                self.executed = offset.expect("an offset");
                self.stage = Stage::Length;
            }
            None if line.starts_with('$') => {
                self.stage = Stage::File(line[1..].parse().expect("a length"));
            }
            // A sign of life.
            _ => assert!(line.is_empty(), "{line}"),
        }
    }

    fn execute(&mut self) -> bool {
        let mut ranges = ArgumentRanges::default();
        let decoded = Decoder::default().next(&self.received, &mut ranges);
        let Decoded::Request { consumed } = decoded else {
            assert!(matches!(decoded, Decoded::Incomplete { .. } | Decoded::Empty { .. }));
            return false;
        };
        let request: Vec<u8> = self.received.drain(..consumed).collect();
        self.executed += consumed as u64;
        let args = Args::new(&request, ranges.ranges());
        let name = String::from_utf8_lossy(args.at(0)).into_owned();
        match name.as_str() {
            "SELECT" => {
                let number = String::from_utf8_lossy(args.at(1)).parse();
                self.database = DatabaseId(number.expect("a number"));
            }
            "MULTI" | "EXEC" | "PING" => {}
            _ => {
                let (catalog, functions) = standard();
                let found = catalog.find(args.at(0), args.get(1));
                let function = found.and_then(|command| functions.of(command.id));
                let Some(Function::Data(function)) = function else { panic!("told {name}") };
                // Its clock stands still: keys go when the primary says so.
                let context = Context::background(UnixMillis(0), self.database);
                let (mut unit, mut reply) = (Unit::new(0), Reply::default());
                let ran = self.engine.run(
                    &function,
                    context,
                    args,
                    &mut reply,
                    &mut unit,
                    &mut Interest::default(),
                );
                assert!(ran.is_ok(), "{name}: {ran:?}");
            }
        }
        true
    }
}
