//! A server whose wall clock is wrong leads only when nobody else can.

use base::machine::UnknownMachine;
use base::{Incarnation, Position, Sequence};
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use node::config::Config;
use node::config::settings::engine_settings;
use node::reactor::Scratch;
use node::recovery::Replayer;
use node::role::member::MemberId;
use node::role::state::{Roles, Terms};
use node::{Options, Server, Shard};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::driver::SimDriver;
use sim::network::{NetworkFaults, SimNetwork};
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::remote::RemoteLog;
use txlog::remote::memory::{Fate, MemoryService};
use txlog::remote::store::StoreLimits;
use txlog::{Chain, TransactionLog};

const LOG: Incarnation = Incarnation(7);
const LIMITS: StoreLimits = StoreLimits { record_bytes_max: 4096, puts_max: 4 };
const MILLISECOND: u64 = 1_000_000;
const PATIENCE_NANOS: u64 = 200 * MILLISECOND;
const LEASE_MILLIS: u64 = 1000;

const HOUR_MICROS: i64 = 3_600_000_000;

struct Member {
    server: Server,
    driver: SimDriver,
    scratch: Scratch,
    clock: SimClock,
}

/// Three servers on one log. The lower its number, the sooner a member stands.
struct Three {
    members: Vec<Option<Member>>,
    timeline: Timeline,
}

impl Three {
    fn new() -> Self {
        let timeline = Timeline::new();
        let network = SimNetwork::new(&timeline, 1, NetworkFaults::benign());
        let service = MemoryService::new(Arc::new(SimClock::new(&timeline)), LOG);
        let members =
            (0..3).map(|number| Some(member(number, &timeline, &network, &service))).collect();
        Self { members, timeline }
    }

    fn step_wall(&mut self, number: usize, micros: i64) {
        self.members[number].as_ref().expect("it lives").clock.step_wall(micros);
    }

    fn end(&mut self, number: usize) {
        self.members[number] = None;
    }

    /// Who leads after so many leases.
    fn leader_after(&mut self, leases: u64) -> Option<usize> {
        for _ in 0..leases * LEASE_MILLIS {
            self.timeline.pass(MILLISECOND);
            for member in self.members.iter_mut().flatten() {
                member.server.turn(&mut member.driver, &mut member.scratch);
            }
        }
        let leads =
            |member: &Option<Member>| member.as_ref().is_some_and(|it| it.server.roles.leads());
        self.members.iter().position(leads)
    }
}

fn member(
    number: u8,
    timeline: &Timeline,
    network: &SimNetwork,
    service: &MemoryService,
) -> Member {
    let clock = SimClock::new(timeline);
    let options = Options {
        config: Config::new(Path::new("/data")),
        port: 6379,
        clock: Arc::new(clock.clone()),
        disk: Arc::new(SimDisk::new(1)),
        machine: Arc::new(UnknownMachine),
        entropy: number.into(),
    };
    let store = service.connect(LIMITS, PATIENCE_NANOS, Box::new(|_| Fate::default()));
    let mut log = RemoteLog::new(Box::new(store), Arc::new(clock.clone()));
    log.read_from(Position { incarnation: LOG, sequence: Sequence(1) });
    let engine = Engine::new(Keyspace::new(engine_settings(&options.config), 1), 1);
    let replayer = Replayer::new(Sequence::ZERO, Chain::start(LOG));
    let shard = Shard::following(engine, Box::new(log), replayer, LOG);
    let mut server = Server::new(shard, options, Box::new(drop));
    let terms = Terms {
        lease_nanos: LEASE_MILLIS * MILLISECOND,
        jitter_nanos: u64::from(number) * 20 * MILLISECOND,
        may_lead: true,
    };
    server.roles = Roles::new(MemberId([number + 1; 20]), terms);
    let driver = SimDriver::listen(network, &format!("member {number}"), clock.clone(), 1);
    Member { server, driver, scratch: Scratch::default(), clock }
}

#[test]
fn who_stands_first_leads_if_all_clocks_agree() {
    let mut three = Three::new();
    assert_eq!(three.leader_after(3), Some(0));
    three.step_wall(1, 5_000_000);
    three.end(0);
    assert_eq!(three.leader_after(3), Some(1), "a clock may be off by seconds");
}

#[test]
fn a_server_with_a_wrong_clock_leads_when_nobody_else_can() {
    for wrong in [HOUR_MICROS, -HOUR_MICROS] {
        let mut three = Three::new();
        assert_eq!(three.leader_after(3), Some(0));
        three.step_wall(1, wrong);
        three.end(0);
        assert_eq!(three.leader_after(3), Some(2), "its clock is right");
        three.end(2);
        assert_eq!(three.leader_after(4), Some(1), "who else");
    }
}
