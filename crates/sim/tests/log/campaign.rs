//! Several nodes over one service that does everything wrong, from a seed.
//!
//! Each node reads all the time, leads when it pleases, appends while it leads, is cut off, and
//! dies. Whatever the service does to its operations, of what a log tells this must be true:
//!
//! 1. What is told durable stands at its place, counts for every reader, and does so once.
//! 2. What is told to have failed for certain never counts.
//! 3. What counts of one writer is in the order in which it was appended, and no counter has two
//!    meanings.
//! 4. Every reader reads the same records in the same order.
//! 5. When the faults end, somebody can lead and append, and everyone reads to the end.

use base::time::MILLISECOND;
use base::{Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use sim::clock::SimClock;
use sim::odds::Odds;
use sim::random::Random;
use sim::timeline::Timeline;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};
use txlog::remote::memory::{MemoryService, Wire};
use txlog::remote::store::{Operation, StoreLimits};
use txlog::remote::{Broken, RemoteLog};
use txlog::{
    AppendError, Chain, Consumed, Follower, Gate, Kind, LogEvent, Part, Record, Stamper, Ticket,
    TransactionLog, WriterId, empty_record,
};

const LOG: Incarnation = Incarnation(7);
const NODES: usize = 3;
const FAULTY_STEPS: u64 = 1500;
/// Steps of 5 ms within which a healed service must be of use again.
const HEALING_STEPS: u64 = 10_000;
/// How often a run came by what it is about.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Seen {
    durable: u64,
    shifted: u64,
    deposed: u64,
    in_doubt: u64,
    trimmed: u64,
    trace: u64,
}

/// What was stored and told, by all nodes together.
struct Ledger {
    service: MemoryService,
    /// Every record ever stored, from place 1 on, and whether it counts.
    records: Vec<(Bytes, bool)>,
    reader: Follower,
    counters: BTreeMap<(WriterId, u64), Bytes>,
    last_counter: BTreeMap<WriterId, u64>,
    counted: BTreeSet<Bytes>,
    /// Told to have failed for certain.
    never: BTreeSet<Bytes>,
    seen: Seen,
}

impl Ledger {
    fn new(service: &MemoryService) -> Self {
        Self {
            service: service.clone(),
            records: Vec::new(),
            reader: Follower::new(Sequence::ZERO, Chain::start(LOG)),
            counters: BTreeMap::new(),
            last_counter: BTreeMap::new(),
            counted: BTreeSet::new(),
            never: BTreeSet::new(),
            seen: Seen::default(),
        }
    }

    /// Looks at what was stored since the last time.
    fn observe(&mut self) -> Result<(), String> {
        self.service.advance();
        while let Some(bytes) = self.service.record(self.reader.at().next()) {
            let at = self.reader.at().next();
            let header = Record::decode(&bytes).map_err(|error| error.to_string())?.header;
            let first =
                self.counters.entry((header.writer, header.counter)).or_insert(bytes.clone());
            if *first != bytes {
                return Err(format!("place {at}: a counter has two meanings"));
            }
            let consumed = self.reader.consume(at, &bytes).map_err(|error| error.to_string())?;
            let counts = consumed != Consumed::Void;
            if counts {
                if !self.counted.insert(bytes.clone()) {
                    return Err(format!("place {at}: it counts twice"));
                }
                let last = self.last_counter.insert(header.writer, header.counter).unwrap_or(0);
                if header.counter != last + 1 {
                    return Err(format!("place {at}: out of its writer's order"));
                }
            }
            self.records.push((bytes, counts));
        }
        match self.never.iter().find(|bytes| self.counted.contains(*bytes)) {
            Some(_) => Err("what had failed for certain counts".to_owned()),
            None => Ok(()),
        }
    }

    fn durable(&mut self, at: Sequence, bytes: &Bytes) -> Result<(), String> {
        self.seen.durable += 1;
        match self.records.get(at.0 as usize - 1) {
            Some((stored, true)) if stored == bytes => Ok(()),
            Some((stored, false)) if stored == bytes => {
                Err(format!("told durable at {at}, where it is void"))
            }
            Some(_) => Err(format!("told durable at {at}, where another record stands")),
            None => Err(format!("told durable at {at}, behind the end")),
        }
    }

    fn read(&self, at: Sequence, bytes: &Bytes) -> Result<(), String> {
        match self.records.get(at.0 as usize - 1) {
            Some((stored, _)) if stored == bytes => Ok(()),
            _ => Err(format!("another record was read at {at} than stands there")),
        }
    }
}

/// Leading, or about to.
struct Tenure {
    stamper: Stamper,
    /// The last place told durable, or gone over.
    settled: Sequence,
    pending: VecDeque<(Ticket, Bytes)>,
}

struct Node {
    log: RemoteLog,
    wire: Wire,
    follower: Follower,
    caught_up: Sequence,
    tenure: Option<Tenure>,
    /// The log's end when it was asked for.
    tails: BTreeMap<Ticket, Sequence>,
}

struct World {
    timeline: Timeline,
    service: MemoryService,
    random: Random,
    odds: Arc<Mutex<Odds>>,
    puts_max: usize,
    broken: Option<Broken>,
    nodes: Vec<Node>,
    ledger: Ledger,
    writers: u64,
    payloads: u64,
}

fn position(sequence: Sequence) -> Position {
    Position { incarnation: LOG, sequence }
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let timeline = Timeline::new();
        let service = MemoryService::new(Arc::new(SimClock::new(&timeline)), LOG);
        let mut random = Random::from_seed(seed);
        service.set_confirms_tail(random.chance(70));
        let odds = Arc::new(Mutex::new(Odds::draw(&mut random)));
        let puts_max = *random.choose(&[1, 2, 4, 8]);
        let ledger = Ledger::new(&service);
        let mut world = Self {
            timeline,
            service,
            random,
            odds,
            puts_max,
            broken,
            nodes: Vec::new(),
            ledger,
            writers: 0,
            payloads: 0,
        };
        for _ in 0..NODES {
            let node = world.boot(Follower::new(Sequence::ZERO, Chain::start(LOG)));
            world.nodes.push(node);
        }
        world
    }

    /// A process that begins with what `follower` has read, as from a snapshot.
    fn boot(&mut self, follower: Follower) -> Node {
        let limits =
            StoreLimits { record_bytes_max: 4096, puts_max: self.puts_max, record_cost_bytes: 0 };
        let mut random = Random::from_seed(self.random.draw());
        let odds = Arc::clone(&self.odds);
        let fates = move |_: &Operation| odds.lock().expect("not poisoned").fate(&mut random);
        let store = self.service.connect(limits, 200 * MILLISECOND, Box::new(fates));
        let wire = store.wire();
        let mut log = RemoteLog::new(Box::new(store), Arc::new(SimClock::new(&self.timeline)));
        if let Some(broken) = self.broken {
            log.break_rule(broken);
        }
        log.read_from(position(follower.at().next()));
        let (tenure, caught_up, tails) = (None, Sequence::ZERO, BTreeMap::new());
        Node { log, wire, follower, caught_up, tenure, tails }
    }

    fn run(mut self) -> Result<Seen, String> {
        for _ in 0..FAULTY_STEPS {
            let node = self.random.within(0..NODES as u64) as usize;
            self.timeline.pass(self.random.within(0..8 * MILLISECOND));
            self.disturb(node);
            self.act(node);
            self.poll(node)?;
        }
        self.heal()?;
        Ok(Seen { trace: self.timeline.trace(), ..self.ledger.seen })
    }

    /// Something goes wrong, or comes right again.
    fn disturb(&mut self, node: usize) {
        match self.random.within(0..1000) {
            0..8 => {
                let follower = self.nodes[node].follower.clone();
                self.nodes[node] = self.boot(follower);
            }
            8..24 => {
                let is_reachable = self.random.chance(60);
                self.nodes[node].wire.set_reachable(is_reachable);
            }
            24..30 => {
                let is_stalled = self.random.chance(30);
                self.service.set_stalled(is_stalled);
            }
            30..36 => {
                let is_full = self.random.chance(30);
                self.service.set_full(is_full);
            }
            36..42 => {
                let tail = self.service.tail();
                let through = Sequence(tail.sequence.0.saturating_sub(30));
                self.nodes[node].log.trim(tail.at(through));
            }
            42..46 => *self.odds.lock().expect("not poisoned") = Odds::draw(&mut self.random),
            _ => {}
        }
    }

    fn act(&mut self, node: usize) {
        let chance = self.random.within(0..100);
        let at = self.nodes[node].follower.at();
        if chance < 2 {
            self.nodes[node].log.read_from(position(at.next()));
        } else if chance < 4 {
            let ticket = self.nodes[node].log.tail();
            let tail = self.service.tail().sequence;
            self.nodes[node].tails.insert(ticket, tail);
        } else if self.nodes[node].tenure.is_none() {
            if chance < 20 && self.nodes[node].caught_up == at {
                self.stand(node);
            }
        } else if chance < 5 {
            // The lease has lapsed, and nobody else leads: it stands again.
            self.append(node, true);
        } else if self.nodes[node].log.gate() == Gate::Open || chance < 8 {
            for _ in 0..self.random.within(1..5) {
                self.append(node, false);
            }
        }
    }

    /// Appends a `Lead` behind everything that was read.
    fn stand(&mut self, index: usize) {
        self.writers += 1;
        let node = &mut self.nodes[index];
        let settled = node.follower.at();
        let stamper = Stamper::new(WriterId(self.writers), node.follower.chain(), UnixMillis(0));
        node.tenure = Some(Tenure { stamper, settled, pending: VecDeque::new() });
        self.append(index, true);
    }

    fn append(&mut self, node: usize, is_lead: bool) {
        self.payloads += 1;
        let padding = self.random.within(0..600) as usize;
        let node = &mut self.nodes[node];
        let Some(tenure) = &mut node.tenure else { return };
        let clock = UnixMillis(1);
        let record = if is_lead {
            tenure.stamper.lead(1000, &[], clock, tenure.settled)
        } else {
            let mut buffer = empty_record(8 + padding);
            buffer.extend_from_slice(&self.payloads.to_le_bytes());
            buffer.resize(buffer.len() + padding, 0);
            tenure.stamper.stamp(Kind::Data, Part::Whole, buffer, clock, tenure.settled)
        };
        let after = Sequence(tenure.settled.0 + tenure.pending.len() as u64);
        let ticket = node.log.append(position(after), record.clone());
        tenure.pending.push_back((ticket, record));
    }

    fn poll(&mut self, index: usize) -> Result<(), String> {
        let mut events = Vec::new();
        self.nodes[index].log.poll(&mut events);
        self.ledger.observe()?;
        for event in events {
            self.timeline.record("event", format!("{index} {event:?}").as_bytes());
            self.hear(index, event)?;
        }
        Ok(())
    }

    fn hear(&mut self, index: usize, event: LogEvent) -> Result<(), String> {
        let Self { nodes, ledger, .. } = self;
        let node = &mut nodes[index];
        match event {
            LogEvent::Read(at, bytes) => {
                ledger.read(at.sequence, &bytes)?;
                let consumed = node.follower.consume(at.sequence, &bytes);
                consumed.map_err(|error| format!("reading {}: {error}", at.sequence))?;
            }
            LogEvent::CaughtUp(at) if at.sequence == node.follower.at() => {
                node.caught_up = at.sequence;
            }
            LogEvent::Trimmed { .. } => {
                ledger.seen.trimmed += 1;
                node.follower = ledger.reader.clone();
                node.log.read_from(position(node.follower.at().next()));
            }
            LogEvent::Durable(at) => {
                let tenure = node.tenure.as_mut().ok_or("durable without a tenure")?;
                while tenure.settled < at.sequence {
                    let (_, bytes) = tenure.pending.pop_front().ok_or("nothing was appended")?;
                    tenure.settled = tenure.settled.next();
                    ledger.durable(tenure.settled, &bytes)?;
                }
            }
            LogEvent::Shifted { by } => {
                ledger.seen.shifted += 1;
                node.tenure.as_mut().ok_or("shifted without a tenure")?.settled.0 += by;
            }
            LogEvent::Failed(ticket, error) => {
                let tenure = node.tenure.as_mut().ok_or("failed without a tenure")?;
                let (first, bytes) = tenure.pending.pop_front().ok_or("nothing was appended")?;
                if first != ticket {
                    return Err("failures come out of order".to_owned());
                }
                match error {
                    AppendError::Conflict { .. } => {
                        ledger.seen.deposed += 1;
                        ledger.never.insert(bytes);
                    }
                    AppendError::NotAttempted => {
                        ledger.never.insert(bytes);
                    }
                    AppendError::InDoubt => ledger.seen.in_doubt += 1,
                    other => return Err(format!("an append failed: {other}")),
                }
                if tenure.pending.is_empty() {
                    node.tenure = None;
                }
            }
            LogEvent::Tail { ticket, position, confirmed } => {
                let asked = node.tails.remove(&ticket).ok_or("a tail nobody asked for")?;
                if confirmed && position.sequence < asked {
                    return Err(format!("confirmed {}, {asked} was stored", position.sequence));
                }
            }
            LogEvent::Unanswered(..) => {}
            other => return Err(format!("unexpected: {other:?}")),
        }
        Ok(())
    }

    /// All faults end. One node leads, unless one does, and everyone reads to the end.
    fn heal(&mut self) -> Result<(), String> {
        *self.odds.lock().expect("not poisoned") = Odds::benign();
        self.service.set_stalled(false);
        self.service.set_full(false);
        self.nodes.iter().for_each(|node| node.wire.set_reachable(true));
        let goal = self.ledger.seen.durable + 20;
        for _ in 0..HEALING_STEPS {
            self.timeline.pass(5 * MILLISECOND);
            for index in 0..NODES {
                self.poll(index)?;
            }
            let leader = self.nodes.iter().position(|node| node.tenure.is_some());
            let is_done = self.ledger.seen.durable >= goal;
            match leader {
                Some(leader) if !is_done && self.nodes[leader].log.gate() == Gate::Open => {
                    self.append(leader, false);
                }
                None if !is_done => {
                    let ready = |node: &Node| node.caught_up == node.follower.at();
                    if let Some(ready) = self.nodes.iter().position(ready) {
                        self.stand(ready);
                    }
                }
                _ => {}
            }
            let end = self.ledger.reader.at();
            let is_read = self.nodes.iter().all(|node| node.follower.at() == end);
            let is_settled = self
                .nodes
                .iter()
                .all(|node| node.tenure.as_ref().is_none_or(|tenure| tenure.pending.is_empty()));
            if is_done && is_read && is_settled {
                return Ok(());
            }
        }
        Err("a healed service is of no use".to_owned())
    }
}

fn run(seed: u64, broken: Option<Broken>) -> Result<Seen, String> {
    World::new(seed, broken).run()
}

#[test]
fn what_a_remote_log_tells_is_true_whatever_its_service_does() {
    let mut all = Seen::default();
    for seed in 0..200 {
        let seen = run(seed, None).unwrap_or_else(|what| panic!("seed {seed}: {what}"));
        all.durable += seen.durable;
        all.shifted += seen.shifted;
        all.deposed += seen.deposed;
        all.in_doubt += seen.in_doubt;
        all.trimmed += seen.trimmed;
    }
    let met_all = all.shifted > 100 && all.in_doubt > 500 && all.trimmed > 20;
    assert!(met_all && all.durable > 20_000 && all.deposed > 1000, "{all:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in 0..5 {
        assert_eq!(run(seed, None), run(seed, None));
    }
}

/// The first seed in which a rule that is broken on purpose is noticed, and how.
fn caught(broken: Broken) -> String {
    (0..200).find_map(|seed| run(seed, Some(broken)).err()).expect("a broken rule goes unnoticed")
}

#[test]
fn acknowledgements_behind_a_missing_one_must_not_count() {
    assert!(caught(Broken::CountsEveryAcknowledgement).contains("told durable"));
}

#[test]
fn what_is_in_doubt_must_not_be_told_durable() {
    assert!(caught(Broken::AssumesTheBest).contains("told durable"));
}

#[test]
fn what_is_in_doubt_must_not_be_put_elsewhere() {
    let what = caught(Broken::ResendsElsewhere);
    assert!(what.contains("told durable") || what.contains("failed for certain"), "{what}");
}

#[test]
fn a_lead_must_not_be_passed_over() {
    assert!(caught(Broken::IgnoresLeads).contains("told durable"));
}
