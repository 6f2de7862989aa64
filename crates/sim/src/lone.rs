//! A server that leads a log of its own, in memory: for tests of what it tells its clients.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use base::machine::UnknownMachine;
use base::{Incarnation, Position, Seeds, UnixMillis};
use config::Config;
use config::settings::engine_settings;
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use node::{Limits, Options, Server};
use shard::Shard;
use std::path::Path;
use std::sync::Arc;
use txlog::memory::MemoryLog;
use txlog::{Chain, Stamper, WriterId};

/// A server without data, configured as by default.
pub fn server(clock: &SimClock) -> Server {
    let options = Options {
        config: Config::new(Path::new("/data")),
        port: 6379,
        clock: Arc::new(clock.clone()),
        disk: Arc::new(SimDisk::new(1)),
        machine: Arc::new(UnknownMachine),
        entropy: 1,
        seeds: Seeds::fixed(1),
        limits: Limits::default(),
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
    server
}
