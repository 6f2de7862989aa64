//! Three servers on one log in memory.

use base::driver::Waker;
use base::machine::{Identity, Machine, UnknownMachine, Usage};
use base::time::MILLISECOND;
use base::{Clock, HashKey, Incarnation, Position, Seeds, Sequence, UnixMillis};
use config::Config;
use config::arguments;
use config::load::load;
use config::settings::engine_settings;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use node::Scratch;
use node::{Limits, Options, Server, Stop};
use shard::Shard;
use shard::recovery::Replayer;
use shard::role::member::MemberId;
use shard::role::state::{Roles, Terms};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::driver::SimDriver;
use sim::network::{NetworkFaults, SimClient, SimNetwork};
use sim::random::Random;
use sim::tapped_log::{Listener, TappedLog};
use sim::tier::SimTier;
use sim::timeline::Timeline;
use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use txlog::record::encode_in_place;
use txlog::remote::RemoteLog;
use txlog::remote::memory::{Fate, MemoryService, MemoryStore};
use txlog::remote::store::{Operation, RecordStore, StoreLimits};
use txlog::{Chain, Header, Kind, Part, Refusal, TransactionLog, WriterId, empty_record};

const LOG: Incarnation = Incarnation(7);
const LIMITS: StoreLimits =
    StoreLimits { record_bytes_max: 4096, puts_max: 4, record_cost_bytes: 0 };
const PATIENCE_NANOS: u64 = 200 * MILLISECOND;
const LEASE_MILLIS: u64 = 1000;

/// Where each member's machine says that it is.
pub const ADDRESS: &str = "10.1.2.3";
pub const ADDRESS_V6: &str = "fd00::3";

struct Elsewhere;

impl Machine for Elsewhere {
    fn usage(&self) -> Usage {
        UnknownMachine.usage()
    }
    fn identity(&self) -> Identity {
        Identity {
            address_v4: Some(ADDRESS.to_owned()),
            address_v6: Some(ADDRESS_V6.to_owned()),
            ..UnknownMachine.identity()
        }
    }
    fn fill_random(&self, bytes: &mut [u8]) {
        UnknownMachine.fill_random(bytes);
    }
}

/// Whether a log takes no writes from a member, as a service that cannot show that it syncs.
#[derive(Clone, Default)]
struct Trouble(Rc<Cell<bool>>);

impl Listener for Trouble {
    fn troubles(&self, so: Option<Refusal>) -> Option<Refusal> {
        let unverified = || Refusal::Unavailable("a server does not show that it syncs".to_owned());
        so.or_else(|| self.0.get().then(unverified))
    }
}

struct Member {
    trouble: Trouble,
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    clock: SimClock,
}

/// Three servers on one log. The lower its number, the sooner a member stands.
pub struct Three {
    members: Vec<Option<Member>>,
    timeline: Timeline,
    network: SimNetwork,
    service: MemoryService,
}

impl Three {
    /// `line` is what each is configured by.
    pub fn new(line: &[&str]) -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let service = MemoryService::new(Arc::new(SimClock::new(&timeline)), LOG);
        let members = (0..3)
            .map(|number| Some(member(number, line, &timeline, &network, &service)))
            .collect();
        Self { members, timeline, network, service }
    }

    /// Ends a member and begins it anew, with a wall clock that is wrong by so much. It has heard
    /// nobody.
    pub fn restart(&mut self, number: u8, wrong_micros: i64, line: &[&str]) {
        let member = member(number, line, &self.timeline, &self.network, &self.service);
        member.clock.step_wall(wrong_micros);
        self.members[usize::from(number)] = Some(member);
    }

    /// What a member takes the time to be, in milliseconds ahead of true time.
    pub fn clock_of(&self, number: usize) -> i64 {
        let server = &self.members[number].as_ref().expect("it lives").server;
        let clock = server.core.shard.applied_clock().unwrap_or(server.core.turn.now);
        clock.0 - SimClock::new(&self.timeline).unix_millis().0
    }

    /// Changes how a member is configured.
    pub fn configure(&mut self, number: usize, line: &[&str]) {
        let server = &mut self.members[number].as_mut().expect("it lives").server;
        server.adopt(config(line));
    }

    pub fn step_wall(&mut self, number: usize, micros: i64) {
        self.members[number].as_ref().expect("it lives").clock.step_wall(micros);
    }

    /// Lets the log take nothing from a member, or take what it says again.
    pub fn trouble(&mut self, number: usize, is_in_trouble: bool) {
        let member = self.members[number].as_ref().expect("it lives");
        member.trouble.0.set(is_in_trouble);
    }

    /// Lets the log answer nobody.
    pub fn stall(&mut self) {
        self.service.set_stalled(true);
    }

    /// Records of a member that are not durable.
    pub fn under_way(&self, number: usize) -> u64 {
        let shard = &self.members[number].as_ref().expect("it lives").server.core.shard;
        shard.appended().sequence.0 - shard.durable().sequence.0
    }

    pub fn end(&mut self, number: usize) {
        self.members[number] = None;
    }

    /// Where a member has read that its primary is.
    pub fn primary_of(&self, number: usize) -> Option<String> {
        let member = self.members[number].as_ref()?;
        member.server.core.leadership.roles.leader().map(|leader| leader.member.host.clone())
    }

    /// The server of a member.
    pub fn member(&mut self, number: usize) -> &mut Server {
        &mut self.members[number].as_mut().expect("it lives").server
    }

    /// A client of a member.
    pub fn connect(&self, number: usize) -> SimClient {
        self.network.connect(&format!("member {number}"))
    }

    pub fn pass(&mut self, millis: u64) {
        for _ in 0..millis {
            self.timeline.pass(MILLISECOND);
            let alive = self.members.iter_mut().flatten();
            for member in alive.filter(|member| member.server.core.stopping.is_none()) {
                member.server.turn(&mut member.driver, &mut member.scratch);
            }
        }
    }

    /// As [`Self::elapse`], where turns take some 50 ms.
    pub fn stride(&mut self, millis: u64) {
        let until = self.millis() + millis;
        while self.millis() < until {
            self.timeline.pass(49 * MILLISECOND);
            self.pass(1);
        }
    }

    /// True time, in milliseconds since the beginning. In a turn that has nothing to do it goes on
    /// by up to 100 ms.
    pub fn millis(&self) -> u64 {
        self.timeline.now().0 / MILLISECOND
    }

    /// Lets the members turn until so much true time has gone, or a little more.
    pub fn elapse(&mut self, millis: u64) {
        let until = self.millis() + millis;
        while self.millis() < until {
            self.pass(1);
        }
    }

    /// Why a member stopped.
    pub fn end_of(&self, number: usize) -> Option<Stop> {
        self.members[number].as_ref().expect("it lives").server.core.stopping.clone()
    }

    /// Puts the next record that counts, as the primary would that ended, for readers of at least
    /// this version.
    pub fn put_for_readers(&mut self, reader_version_min: u32) {
        let tail = self.service.tail();
        let chain = loop {
            let reader = self.members.iter().flatten().next().expect("one lives");
            if reader.server.core.shard.appended() == tail {
                break reader.server.core.shard.chain();
            }
            self.pass(1);
        };
        let header = Header {
            kind: Kind::Data,
            part: Part::Whole,
            is_compressed: false,
            is_encrypted: false,
            sets_clock: false,
            reader_version_min,
            epoch: chain.epoch,
            writer: WriterId(9),
            counter: 1,
            predecessor: chain.value,
            clock: UnixMillis(0),
            durable: Sequence::ZERO,
        };
        let mut record = empty_record(0);
        encode_in_place(&header, &mut record);
        let (sequence, record) = (tail.sequence.next(), record.freeze());
        let mut store = connect(&self.service);
        store.begin(Operation::Put { sequence, record: record.clone() });
        self.pass(1);
        assert_eq!(self.service.record(sequence), Some(record));
    }

    /// Who leads after so many leases.
    pub fn leader_after(&mut self, leases: u64) -> Option<usize> {
        self.pass(leases * LEASE_MILLIS);
        let leads = |member: &Option<Member>| {
            member.as_ref().is_some_and(|it| it.server.core.leadership.roles.leads())
        };
        self.members.iter().position(leads)
    }
}

/// A request as clients send it.
pub fn request(words: &[&str]) -> String {
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), bulks.collect::<String>())
}

/// What a new client of a member is answered, within 5 s.
pub fn ask(three: &mut Three, number: usize, words: &[&str]) -> String {
    let client = three.connect(number);
    client.send(request(words).as_bytes());
    let mut said = Vec::new();
    for _ in 0..50 {
        three.elapse(100);
        said.extend(client.received());
        if said.ends_with(b"\n") {
            break;
        }
    }
    String::from_utf8_lossy(&said).into_owned()
}

fn connect(service: &MemoryService) -> MemoryStore {
    service.connect(LIMITS, PATIENCE_NANOS, Box::new(|_| Fate::default()))
}

fn config(line: &[&str]) -> Config {
    let line: Vec<Vec<u8>> = line.iter().map(|word| word.as_bytes().to_vec()).collect();
    load(&SimDisk::new(1), Path::new("/data"), &arguments::parse(&line), None)
        .expect("the line can be read")
}

fn member(
    number: u8,
    line: &[&str],
    timeline: &Timeline,
    network: &SimNetwork,
    service: &MemoryService,
) -> Member {
    let clock = SimClock::new(timeline);
    let random = Random::from_seed(number.into());
    let tier = SimTier::new(&SimDisk::new(1), timeline, random, Waker(Arc::new(|| {})));
    let options = Options {
        config: config(line),
        port: 6379,
        clock: Arc::new(clock.clone()),
        disk: Arc::new(SimDisk::new(1)),
        machine: Arc::new(Elsewhere),
        entropy: number.into(),
        seeds: Seeds::fixed(number.into()),
        limits: Limits::default(),
        tier: Arc::new(tier),
    };
    let store = connect(service);
    let mut log = RemoteLog::new(Box::new(store), Arc::new(clock.clone()));
    log.read_from(Position { incarnation: LOG, sequence: Sequence(1) });
    let engine = Engine::new(Keyspace::new(engine_settings(&options.config), HashKey::fixed(1)), 1);
    let replayer = Replayer::new(Sequence::ZERO, Chain::start(LOG));
    let shard = Shard::following(engine, Box::new(log), replayer, LOG);
    let mut server = node::begin(options, Box::new(drop));
    server.core.shard = shard;
    let trouble = Trouble::default();
    let listener = trouble.clone();
    server.core.shard.wrap_log(|log| Box::new(TappedLog { log, listener }));
    let terms = Terms {
        lease_nanos: LEASE_MILLIS * MILLISECOND,
        jitter_nanos: u64::from(number) * 20 * MILLISECOND,
        may_lead: true,
    };
    server.core.leadership.roles = Roles::new(MemberId([number + 1; 20]), terms);
    let driver = SimDriver::listen(network, &format!("member {number}"), clock.clone(), 1);
    Member { trouble, server, driver, scratch: Scratch::default(), clock }
}
