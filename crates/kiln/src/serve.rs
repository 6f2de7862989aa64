//! `kiln server`: opens the log, replays it, leads, serves.

use crate::{allocator, configuration};
use base::driver::Waker;
use base::{Clock, Driver};
use engine::settings::Settings;
use node::config::settings::{engine_settings, node_settings};
use node::recovery::{Replayed, lead, replay};
use node::{Options, Server, Shard, Stop};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use txlog::WriterId;
use txlog::file::{FileLog, FileOptions, Queues};
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::ThreadDiskQueue;
use world::net::NetDriver;

/// Runs the server; the process's exit code.
pub fn serve(arguments: &[String]) -> ExitCode {
    match run(arguments) {
        Ok(Stop::Clean | Stop::Now) => ExitCode::SUCCESS,
        Ok(Stop::LogFailed(why)) => {
            tracing::error!("{why}: stopping, so that nothing is acknowledged that is not durable");
            ExitCode::FAILURE
        }
        Err(error) => {
            // Said plainly, because the log may not be set up yet.
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Stop, Box<dyn Error>> {
    let config = configuration::read(arguments)?;
    let settings = node_settings(&config);
    configuration::set_up_process(&settings)?;
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    let mut driver = NetDriver::bind(&configuration::net_options(&settings))?;
    let entropy = driver.entropy();
    let log = &settings.transaction_log;
    let shard = recover(log, engine_settings(&config), driver.waker(), &entropy)?;
    let options = Options {
        config,
        port: driver.local_port().unwrap_or_default(),
        clock: Arc::new(RealClock),
        disk: Arc::new(RealDisk),
        machine: Arc::new(allocator::machine()),
        entropy,
    };
    tracing::info!(port = options.port, "ready to accept connections");
    let mut server = Server::new(shard, options, Box::new(drop));
    let stop = server.run(&mut driver);
    if let Some(path) = &settings.pidfile {
        world::process::remove_pid(path);
    }
    Ok(stop)
}

fn recover(
    directory: &std::path::Path,
    settings: Settings,
    waker: Waker,
    entropy: &u64,
) -> Result<Shard, Box<dyn Error>> {
    let clock = Arc::new(RealClock);
    let queues = Queues {
        commits: Box::new(ThreadDiskQueue::start("log", waker.clone())?),
        background: Box::new(ThreadDiskQueue::start("log-background", waker)?),
    };
    let options = FileOptions::new(*entropy);
    let (log, recovery) =
        FileLog::open(Arc::new(RealDisk), clock.clone(), queues, directory, options)?;
    if !recovery.is_writer {
        return Err("another process writes this transaction log".into());
    }
    let replayed = replay(&log, &recovery, settings, *entropy)?;
    let Replayed { engine, replayer } = replayed;
    tracing::info!(
        records = replayer.at().0,
        effects = replayer.effects,
        keys = engine.keyspace.len(),
        "replayed the transaction log"
    );
    let now = clock.unix_millis();
    let incarnation = recovery.tail.incarnation;
    let wait = || std::thread::yield_now();
    let log = Box::new(log);
    Ok(lead(engine, log, &replayer, incarnation, WriterId(*entropy | 1), now, wait)?)
}
