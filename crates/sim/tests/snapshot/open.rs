//! A shard that is opened without a server, as a tool does it: by whoever restores, takes snapshots
//! elsewhere, or reads along.

use super::world::{DISK_NANOS, LOG, Ledger, Life, log_options, store};
use base::disk::DiskQueue;
use base::driver::Waker;
use base::{Clock, DatabaseId, Incarnation, Seeds, Sequence, UnixMillis};
use engine::digest::Digest;
use engine::effect::Effect;
use engine::interest::Interest;
use engine::settings::Settings;
use engine::unit::Context;
use shard::loading::{FileLogOpener, KnownLog, Loaded, Loading, OpenLog, Sources};
use shard::role::member::{Member, MemberId};
use shard::{Leadership, News, Shard};
use sim::clock::SimClock;
use sim::disk::SimDisk;
use sim::disk_queue::SimDiskQueue;
use sim::random::Random;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::file::{FileOptions, Queues};
use txlog::memory::MemoryLog;
use txlog::{Chain, Stamper, TransactionLog, WriterId};

const EMPTY: Incarnation = Incarnation(7);

/// A lease that no run outlasts: an hour.
const LEASE_NANOS: u64 = 3_600_000_000_000;

fn sources(disk: &SimDisk, timeline: &Timeline) -> Sources {
    Sources {
        clock: Arc::new(SimClock::new(timeline)),
        store: store(disk).expect("a store"),
        settings: Settings::default(),
        seeds: Seeds::fixed(9),
    }
}

/// Whether a shard has this key.
fn has(shard: &Shard, key: &[u8]) -> bool {
    let keyspace = &shard.engine.keyspace;
    keyspace.database(DatabaseId(0)).find(keyspace.hash(key), key).is_some()
}

#[test]
fn a_shard_in_a_directory_is_opened_beside_its_snapshots() {
    let disk = SimDisk::new(1);
    let mut life = Life::start_unchecked(1_000, Default::default(), &disk, 1).expect("it starts");
    for request in ["SET before 1\r\n", "BGSAVE\r\n", "SET behind 2\r\n"] {
        life.client.send(request.as_bytes());
        (0..200).for_each(|_| assert!(life.turn(&mut Ledger::default())));
    }
    let held = Digest::of_keyspace(&life.server.core.shard.engine.keyspace);
    drop(life);

    let timeline = Timeline::new();
    let queue = || -> Box<dyn DiskQueue> {
        let waker = Waker(Arc::new(|| {}));
        Box::new(SimDiskQueue::new(&timeline, Random::stream(1, "tool"), DISK_NANOS, waker))
    };
    let log = FileLogOpener {
        disk: Arc::new(disk.clone()),
        clock: Arc::new(SimClock::new(&timeline)),
        queues: Queues { commits: queue(), background: queue() },
        directory: Path::new(LOG).to_owned(),
        options: FileOptions { may_write: false, ..log_options(1) },
    };
    let opened = |known: &KnownLog| log.open(known);
    let shard = shard::open(sources(&disk, &timeline), opened, || timeline.pass(DISK_NANOS));
    let shard = shard.expect("it can be read");
    assert!(has(&shard, b"before") && has(&shard, b"behind"));
    assert_eq!(Digest::of_keyspace(&shard.engine.keyspace), held);
}

#[test]
fn a_shard_that_was_opened_reads_on() {
    let (disk, timeline) = (SimDisk::new(1), Timeline::new());
    let log = MemoryLog::new(EMPTY);
    let handle = Box::new(log.handle(1 << 20));
    let opened = |_: &KnownLog| Ok(OpenLog { handle, incarnation: EMPTY, is_free: false });
    let mut shard = shard::open(sources(&disk, &timeline), opened, || {}).expect("an empty log");

    let mut writer = log.handle(1 << 20);
    let mut stamper = Stamper::new(WriterId(1), Chain::start(EMPTY), UnixMillis(0));
    writer.append(log.tail(), stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO));
    writer.poll(&mut Vec::new());
    let mut told = Vec::new();
    shard.poll(&mut told, &mut Interest::default());
    assert_eq!(shard.appended().sequence, Sequence(1), "it heard who leads: {told:?}");
}

#[test]
fn a_shard_is_led_and_written_without_a_server() {
    let (disk, timeline) = (SimDisk::new(1), Timeline::new());
    let clock = SimClock::new(&timeline);
    let handle = Box::new(MemoryLog::new(EMPTY).handle(1 << 20));
    let opened = |_: &KnownLog| Ok(OpenLog { handle, incarnation: EMPTY, is_free: true });
    let mut loading = Loading::open(sources(&disk, &timeline), opened).expect("an empty log");
    loading.finish(|| {}).expect("there is nothing to load");
    let Loaded { mut shard, found } = loading.into_shard().expect("it is loaded");

    let member = Member { id: MemberId([1; 20]), host: "here".to_owned(), port: 1 };
    let introduce = || member.clone();
    let mut leadership = Leadership::new(Arc::new(clock.clone()), 5);
    leadership.follow(member.id, LEASE_NANOS, found);
    let (mut interest, mut news) = (Interest::default(), Vec::new());
    let mut turn = |shard: &mut Shard, leadership: &mut Leadership| {
        timeline.pass(DISK_NANOS);
        leadership.begin_turn(shard, clock.moment());
        leadership.poll(shard, &mut interest, &introduce, &mut news);
        leadership.advance(shard, false, &introduce, &mut news);
        shard.commit(leadership.now());
    };
    while !leadership.roles.leads() {
        turn(&mut shard, &mut leadership);
    }
    let Shard { engine, unit, .. } = &mut shard;
    let context = Context::background(leadership.now(), DatabaseId(0));
    let set = Effect::SetString { value: b"v", expire_at: None };
    let nobody = &mut Interest::default();
    engine.act(context, unit, nobody, |tx| tx.change(b"k", set)).expect("it is a new key");
    let observed = shard.settle_unit(leadership.now());
    assert!(!shard.tracker.is_durable(observed), "it waits for its record");
    for _ in 0..3 {
        turn(&mut shard, &mut leadership);
    }
    assert!(has(&shard, b"k") && shard.tracker.is_durable(observed));
    let led = |it: &News| matches!(it, News::Leader(leader) if leader.member == member);
    assert!(news.iter().any(led) && news.iter().any(|it| matches!(it, News::Durable)));
}
