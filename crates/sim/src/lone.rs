//! A server that leads a log of its own, in memory: for tests of what it tells its clients.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::random::Random;
use crate::tier::SimTier;
use base::driver::Waker;
use base::machine::UnknownMachine;
use base::{Incarnation, Moment, Position, Seeds, UnixMillis};
use config::Config;
use config::settings::engine_settings;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use node::{Limits, Options, Server};
use shard::Shard;
use shard::role::member::MemberId;
use shard::role::state::{Roles, Terms};
use std::path::Path;
use std::sync::Arc;
use txlog::memory::MemoryLog;
use txlog::{Chain, Stamper, WriterId};

/// As a start does it.
fn open_tier(server: &mut Server) {
    let opened = server.core.process.open_tier();
    let Some(mut tiering) = opened.expect("the disk is whole") else { return };
    tiering.serve(&mut server.core.shard.engine.keyspace);
    server.core.shard.tiering = Some(tiering);
}

/// Has a server lead from a moment on, under a lease.
pub fn lead(server: &mut Server, since: Moment, lease_nanos: u64) {
    let roles = &mut server.core.leadership.roles;
    *roles = Roles::new(MemberId([1; 20]), Terms { lease_nanos, jitter_nanos: 0, may_lead: true });
    roles.bid(since);
    roles.led();
}

/// A server without data, configured as by default.
pub fn server(clock: &SimClock) -> Server {
    let waker = Waker(Arc::new(|| {}));
    server_with(Config::new(Path::new("/data")), Limits::default(), clock, &SimDisk::new(1), waker)
}

/// A server without data, with a tier if it is configured to have one, on `disk`. `waker` is called
/// for its tier.
pub fn server_with(
    config: Config,
    limits: Limits,
    clock: &SimClock,
    disk: &SimDisk,
    waker: Waker,
) -> Server {
    let tier = SimTier::new(disk, clock.timeline(), Random::from_seed(1), waker);
    let options = Options {
        config,
        port: 6379,
        clock: Arc::new(clock.clone()),
        disk: Arc::new(disk.clone()),
        machine: Arc::new(UnknownMachine),
        entropy: 1,
        seeds: Seeds::fixed(1),
        limits,
        tier: Arc::new(tier),
    };
    let engine = Engine::new(
        Keyspace::new(engine_settings(&options.config), options.seeds.hash),
        options.seeds.chance,
    );
    let incarnation = Incarnation(0);
    let stamper = Stamper::new(WriterId(0), Chain::start(incarnation), UnixMillis(0));
    let log = Box::new(MemoryLog::new(incarnation).handle(1 << 20));
    let mut server = node::begin(options, Box::new(drop));
    server.core.shard = Shard::leading(engine, log, stamper, Position::default());
    open_tier(&mut server);
    server
}
