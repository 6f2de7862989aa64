//! `kiln server`: opens the log, replays it, leads, serves.

use base::driver::Waker;
use base::{Clock, Driver, Sequence};
use engine::execute::Engine;
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use node::recovery::{Replayer, lead};
use node::{Options, Server, Shard, Stop};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use txlog::WriterId;
use txlog::file::{FileLog, FileOptions, Queues};
use world::clock::RealClock;
use world::disk::RealDisk;
use world::disk_queue::ThreadDiskQueue;
use world::net::{NetDriver, NetOptions};

/// Runs the server; the process's exit code.
pub fn serve(arguments: &[String]) -> ExitCode {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    match run(arguments) {
        Ok(Stop::Clean | Stop::Now) => ExitCode::SUCCESS,
        Ok(Stop::LogFailed(why)) => {
            tracing::error!("{why}: stopping, so that nothing is acknowledged that is not durable");
            ExitCode::FAILURE
        }
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[String]) -> Result<Stop, Box<dyn Error>> {
    let mut net = NetOptions::default();
    let mut directory = PathBuf::from(".");
    for pair in arguments.chunks(2) {
        match pair {
            [name, value] if name == "--port" => net.port = Some(value.parse()?),
            [name, value] if name == "--bind" => {
                net.bind = value.split_ascii_whitespace().map(str::to_owned).collect();
            }
            [name, value] if name == "--dir" => directory = PathBuf::from(value),
            _ => return Err(format!("unknown argument {pair:?}").into()),
        }
    }
    let mut driver = NetDriver::bind(&net)?;
    let shard = recover(&directory.join("log"), driver.waker(), &driver.entropy())?;
    let port = driver.local_port().unwrap_or_default();
    let options = Options { port, ..Options::default() };
    tracing::info!(port, "ready to accept connections");
    let mut server = Server::new(shard, options, Box::new(drop));
    Ok(server.run(&mut driver))
}

fn recover(
    directory: &std::path::Path,
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
    let mut engine = Engine::new(Keyspace::new(Settings::default(), *entropy), *entropy);
    let before = Sequence(recovery.first.sequence.0 - 1);
    let mut replayer = Replayer::new(before, log.first_chain());
    if recovery.tail.sequence >= recovery.first.sequence {
        let mut replay = log.replay(recovery.first.sequence)?;
        while let Some((position, bytes)) = replay.next_record()? {
            replayer.consume(&mut engine, position.sequence, &bytes)?;
        }
    }
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
