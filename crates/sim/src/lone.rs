//! A server that leads a log of its own, in memory: for tests of what it tells its clients.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use crate::random::Random;
use crate::tier::SimTier;
use base::driver::Waker;
use base::machine::UnknownMachine;
use base::{Incarnation, Position, Seeds, UnixMillis};
use config::Config;
use config::settings::engine_settings;
use engine::cold::ColdLimits;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use node::{Limits, Options, Server};
use shard::Shard;
use shard::tiering::{TierOrder, Tiering, TieringLimits};
use std::path::Path;
use std::sync::Arc;
use txlog::memory::MemoryLog;
use txlog::{Chain, Stamper, WriterId};

/// As a start does it.
fn open_tier(server: &mut Server) {
    let process = &server.core.process;
    let tier = process.settings.tier.clone();
    let Some(path) = tier.path else { return };
    let (path, bytes_max, readers) = (path.as_path(), tier.bytes_max, tier.read_threads);
    let order = TierOrder { path, bytes_max, readers, by_ring: false };
    let opened = process.options.tier.open(&order);
    let limits = process.options.limits.tiering;
    let value_bytes_min = tier.value_bytes_min as usize;
    let limits = TieringLimits { cold: ColdLimits { value_bytes_min, ..limits.cold }, ..limits };
    let mut tiering = Tiering::new(opened.expect("the disk is whole"), limits, tier.bytes_max);
    tiering.serve(&mut server.core.shard.engine.keyspace);
    server.core.shard.tiering = Some(tiering);
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
