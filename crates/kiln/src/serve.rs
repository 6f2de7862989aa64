//! `kiln server`: loads the newest snapshot and the log behind it, leads, serves.

use crate::keys::{self, Holder};
use crate::tier::RealTier;
use crate::work::part_threads;
use crate::{Broken, allocator, configuration, logs, snapshots};
use archive::SnapshotStore;
use base::{Driver, Event, Seeds};
use config::settings::{NodeSettings, node_settings};
use node::Metrics;
use node::{Limits, Options, Server, Stop};
use shard::loading::Loading;
use shard::role::state::Broken as Rule;
use shard::snapshots::Pace;
use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use world::clock::RealClock;
use world::descriptors::{self, Room};
use world::disk::RealDisk;
use world::disk_queue::{ThreadDiskQueue, Urgency};
use world::garbage::GarbageCollector;
use world::metrics_http::MetricsServer;
use world::net::NetDriver;
use world::systemd;
use world::tls::Tls;

/// Runs the server; the process's exit code.
pub fn serve(arguments: &[String], broken: Option<Broken>) -> ExitCode {
    match run(arguments, broken) {
        Ok(Stop::Clean | Stop::Now) => ExitCode::SUCCESS,
        Ok(Stop::LogFailed(why) | Stop::Demoted(why)) => {
            tracing::error!("{why}: stopping, so that nothing is acknowledged that is not durable");
            ExitCode::FAILURE
        }
        Err(error) => {
            // Said plainly, because the log may not be set up yet.
            eprintln!("{error}");
            let is_unknown = error.is::<configuration::UnknownDirective>();
            if is_unknown { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Lets the process open as many files as the system allows it.
fn provide_descriptors(settings: &NodeSettings) {
    if let Err(error) = descriptors::raise_limit() {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
    let room = Room::of_process().clients_max();
    if room < settings.maxclients as usize {
        tracing::warn!(
            maxclients = settings.maxclients,
            room,
            "the limit of open files leaves no room for so many clients (ulimit -n)"
        );
    }
}

fn run(arguments: &[String], broken: Option<Broken>) -> Result<Stop, Box<dyn Error>> {
    let config = configuration::read(arguments)?;
    let settings = node_settings(&config);
    configuration::set_up_process(&settings)?;
    allocator::start();
    for warning in config.warnings() {
        tracing::warn!("{warning}");
    }
    // Before anything holds a value.
    let slow_memory = allocator::slow_memory(&settings.slow_memory);
    provide_descriptors(&settings);
    let tls = Arc::<Tls>::default();
    tls.adopt(&settings.tls).map_err(|why| format!("cannot speak TLS: {why}"))?;
    let keys = keys::of(&settings)?;
    if let Some(key) = keys.current() {
        tracing::info!(key, "what is written is encrypted");
    }
    let mut driver = NetDriver::bind(&configuration::net_options(&settings, &tls))?;
    let holder = Arc::new(Holder::new(keys.clone()));
    let options = Options {
        config: config.clone(),
        port: driver.local_port().unwrap_or_default(),
        clock: Arc::new(RealClock),
        disk: Arc::new(RealDisk),
        machine: Arc::new(allocator::machine(tls, holder, driver.listeners(), slow_memory)),
        entropy: driver.entropy(),
        seeds: Seeds::draw(&mut driver),
        tier: Arc::new(RealTier { waker: driver.waker() }),
        limits: Limits::default(),
    };
    let store = snapshots::open(&settings, keys, driver.entropy())?;
    let garbage = GarbageCollector::start()?;
    let mut server = node::begin(options, Box::new(move |value| garbage.discard(value)));
    server.core.start_with_acl_file()?;
    let _metrics = serve_metrics(&settings, Arc::clone(&server.metrics))?;
    let mut life = Life::First;
    let mut failures = 0;
    let stop = loop {
        match live(&mut server, &mut driver, &store, life, broken) {
            Ok(Stop::Demoted(why)) => {
                failures = 0;
                tracing::warn!("begins again as a replica: {why}");
            }
            Ok(stop) => break stop,
            Err(error) if life == Life::First || failures == FAILURES_MAX => return Err(error),
            // The service may be away for a while: a process that has served waits for it.
            Err(error) => {
                failures += 1;
                tracing::error!("cannot begin again yet: {error}");
                if rest(&mut driver) {
                    break Stop::Clean;
                }
            }
        }
        life = Life::Later;
        server = server.begin_again(&mut driver);
    };
    tell_manager(systemd::notify_stopping());
    if let Some(path) = &settings.pidfile {
        world::process::remove_pid(path);
    }
    if matches!(stop, Stop::Clean | Stop::Now) {
        server.core.tell_stopped();
    }
    server.leave_memory();
    Ok(stop)
}

/// Which of a process's lives it is: after each demotion another one begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    First,
    Later,
}

/// Attempts to begin again that fail in a row, before the process ends: ten minutes, or more if
/// each takes long.
const FAILURES_MAX: u32 = 600;

/// Time between two attempts to begin again, in nanoseconds.
const REST_NANOS: u64 = 1_000_000_000;

/// Lets some time pass; whether the process is to stop. Who connects meanwhile is turned away.
fn rest(driver: &mut NetDriver) -> bool {
    let until = driver.clock().monotonic().0 + REST_NANOS;
    loop {
        let left = until.saturating_sub(driver.clock().monotonic().0);
        if left == 0 {
            return false;
        }
        let mut events = Vec::new();
        driver.wait(Some(left), &mut events);
        for event in events {
            match event {
                Event::Shutdown => return true,
                Event::Accepted { connection, .. } => driver.close(connection),
                _ => {}
            }
        }
    }
}

/// Loads and serves, until the process is to stop or to begin again.
fn live(
    server: &mut Server,
    driver: &mut NetDriver,
    store: &SnapshotStore,
    life: Life,
    broken: Option<Broken>,
) -> Result<Stop, Box<dyn Error>> {
    let loading = loading(server, store.clone(), driver, life, broken)?;
    if let Some(stop) = server.load(driver, loading)? {
        return Ok(stop);
    }
    match broken {
        Some(Broken::Lease) => server.core.leadership.roles.break_rule(Rule::ServesWithoutLease),
        Some(Broken::Replies) => server.core.shard.break_tracker(),
        Some(Broken::Master) => server.link.break_master(&mut server.core),
        Some(Broken::Floor | Broken::Tail | Broken::Unseen) | None => {}
    }
    let queue = ThreadDiskQueue::start("snapshot", Urgency::Patient, driver.waker())?;
    let pace = match broken {
        Some(Broken::Unseen) => Pace { trims_unconfirmed: true, ..Pace::default() },
        // The trimming must come while a put is under way, so sooner than a put is given up.
        Some(Broken::Floor) => Pace { report_nanos: 0, ..Pace::default() },
        _ => Pace::default(),
    };
    server.core.keep_snapshots(store.clone(), Box::new(queue), pace);
    let archive_log = logs::archiver(&server.core.process.settings.transaction_log);
    let queue = ThreadDiskQueue::start("archive", Urgency::Patient, driver.waker())?;
    // Its job may be long, and a store may hang: nobody waits for it when the process ends, or
    // begins again. What it is at is published whole or not at all.
    server.core.archive_log_by(archive_log, Box::new(queue.detached()));
    let queue = ThreadDiskQueue::start("feed", Urgency::Patient, driver.waker())?;
    server.feed.read_files_by(Box::new(queue));
    let part = if server.core.is_following() { "replica" } else { "primary" };
    tracing::info!(port = server.core.process.options.port, part, "Ready to accept connections");
    tell_manager(systemd::notify_ready());
    Ok(server.run(driver))
}

fn loading(
    server: &Server,
    store: SnapshotStore,
    driver: &mut NetDriver,
    life: Life,
    broken: Option<Broken>,
) -> Result<Loading, Box<dyn Error>> {
    let settings = &server.core.process.settings;
    // Who was deposed lets others lead, and asks first.
    let takes_free_log = life == Life::First && settings.replica_priority > 0;
    // Of its own: a log makes its salts of it, and shows its identity to clients.
    let (waker, entropy) = (driver.waker(), driver.entropy());
    let open = |known: &_| logs::open(settings, known, waker, entropy, takes_free_log, broken);
    let mut loading = server.open_shard(store, open)?;
    loading.read_parts_by(part_threads(&driver.waker())?);
    Ok(loading)
}

/// Serves the figures, if `metrics-port` asks for it, on the first address of `bind`.
fn serve_metrics(
    settings: &NodeSettings,
    metrics: Arc<Metrics>,
) -> Result<Option<MetricsServer>, Box<dyn Error>> {
    if settings.metrics_port == 0 {
        return Ok(None);
    }
    let first = settings.bind.first().map_or("", |host| host.trim_start_matches('-'));
    let host: IpAddr = match first {
        "*" => Ipv4Addr::UNSPECIFIED.into(),
        "::*" => Ipv6Addr::UNSPECIFIED.into(),
        "localhost" | "" => Ipv4Addr::LOCALHOST.into(),
        address => address
            .parse()
            .map_err(|_| format!("metrics need an address, not a name, in bind: {address}"))?,
    };
    let address = SocketAddr::from((host, settings.metrics_port));
    let server = MetricsServer::start(address, Arc::new(move || metrics.render()))
        .map_err(|error| format!("cannot serve metrics on {address}: {error}"))?;
    tracing::info!(%address, "metrics are served at /metrics");
    Ok(Some(server))
}

/// A service manager that cannot be told is no reason to stop.
fn tell_manager(told: std::io::Result<bool>) {
    if let Err(error) = told {
        tracing::warn!("cannot tell the service manager: {error}");
    }
}
