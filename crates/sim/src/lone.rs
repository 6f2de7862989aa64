//! A server that leads a log of its own, in memory: for tests of what it tells its clients.

use crate::clock::SimClock;
use crate::disk::SimDisk;
use base::Seeds;
use base::machine::UnknownMachine;
use config::Config;
use config::settings::engine_settings;
use node::{Options, Server, Shard};
use std::path::Path;
use std::sync::Arc;

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
    };
    let shard = Shard::without_data(engine_settings(&options.config), options.seeds);
    Server::new(shard, options, Box::new(drop))
}
