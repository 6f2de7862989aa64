//! A log that took back what it had acknowledged, under a replica that has applied it: restored
//! from a backup, it was led on by somebody else, and has long gone past the replica's place.

use base::time::MILLISECOND;
use base::{Epoch, HashKey, Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use config::Config;
use config::settings::engine_settings;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use shard::Shard;
use shard::recovery::Replayer;
use shard::role::member::Member;
use shard::{Progress, Told};
use sim::clock::SimClock;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::remote::RemoteLog;
use txlog::remote::memory::{Fate, MemoryService, MemoryStore};
use txlog::remote::store::{Operation, RecordStore, StoreLimits};
use txlog::{
    Chain, Consumed, Follower, Kind, Part, Stamper, TransactionLog, WriterId, empty_record,
};

const LOG: Incarnation = Incarnation(7);
const LIMITS: StoreLimits =
    StoreLimits { record_bytes_max: 4096, puts_max: 4, record_cost_bytes: 0 };
const PATIENCE_NANOS: u64 = 1000 * MILLISECOND;

/// What the backup holds: a Lead and two writes. Behind it both histories have a Lead of their own.
const BACKED_UP: Sequence = Sequence(3);

/// What the replica has applied.
const APPLIED: Sequence = Sequence(10);

struct World {
    timeline: Timeline,
    service: MemoryService,
    writes: MemoryStore,
    replica: Shard,
    told: Vec<Told>,
}

impl World {
    /// A replica that has applied one history, and its log, which holds the other one, with so many
    /// records behind the replica's place.
    fn new(behind: u64, joins_histories: bool) -> Self {
        let timeline = Timeline::new();
        let clock = SimClock::new(&timeline);
        let service = MemoryService::new(Arc::new(clock.clone()), LOG);
        let connect = || service.connect(LIMITS, PATIENCE_NANOS, Box::new(|_| Fate::default()));
        let mut log = RemoteLog::new(Box::new(connect()), Arc::new(clock));
        log.read_from(Position { incarnation: LOG, sequence: Sequence(1) });
        let engine = Engine::new(
            Keyspace::new(engine_settings(&Config::new(Path::new("/data"))), HashKey::fixed(1)),
            1,
        );
        let mut replayer = Replayer::new(Sequence::ZERO, Chain::start(LOG));
        if joins_histories {
            replayer.join_histories();
        }
        let replica = Shard::following(engine, Box::new(log), replayer, LOG);
        let writes = connect();
        let mut world = Self { timeline, service, writes, replica, told: Vec::new() };
        let mut first = Stamper::new(WriterId(1), Chain::start(LOG), UnixMillis(0));
        world.lead(&mut first);
        world.write(&mut first, BACKED_UP);
        let backed_up = first.chain();
        let mut lost = Stamper::new(WriterId(2), backed_up, UnixMillis(0));
        world.lead(&mut lost);
        world.write(&mut lost, APPLIED);
        assert_eq!(world.pass(100), None);
        assert_eq!(world.replica.appended().sequence, APPLIED);
        world.service.cut(BACKED_UP);
        let mut other = Stamper::new(WriterId(3), backed_up, UnixMillis(0));
        world.lead(&mut other);
        world.write(&mut other, Sequence(APPLIED.0 + behind));
        world
    }

    fn put(&mut self, record: Bytes) {
        let sequence = self.service.tail().sequence.next();
        self.writes.begin(Operation::Put { sequence, record });
        self.service.advance();
        assert_eq!(self.service.tail().sequence, sequence, "it is stored at once");
    }

    fn lead(&mut self, stamper: &mut Stamper) {
        self.put(stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO));
    }

    fn write(&mut self, stamper: &mut Stamper, through: Sequence) {
        while self.service.tail().sequence < through {
            let (part, buffer) = (Part::Whole, empty_record(0));
            self.put(stamper.stamp(Kind::Data, part, buffer, UnixMillis(1), Sequence::ZERO));
        }
    }

    /// Lets milliseconds pass; what the log told that ends the replica's life, if it did.
    fn pass(&mut self, millis: u64) -> Option<Progress> {
        for _ in 0..millis {
            self.timeline.pass(MILLISECOND);
            match self.replica.poll(&mut self.told, &mut Interest::default()) {
                Progress::Nothing | Progress::Durable => {}
                end => return Some(end),
            }
        }
        None
    }

    /// The replica waits until it hears nobody, and stands.
    fn stand(&mut self) -> Option<Progress> {
        assert_eq!(self.pass(100), None, "a few void records may be stragglers");
        self.replica.stand(WriterId(4), 1000, &Member::default(), UnixMillis(2), false);
        self.pass(1000)
    }
}

fn is_named(end: Option<Progress>) -> bool {
    matches!(end, Some(Progress::Fatal(why)) if why.contains("another history"))
}

#[test]
fn a_replica_of_another_history_does_not_stand() {
    let mut world = World::new(5, false);
    let tail = world.service.tail();
    let end = world.stand();
    assert!(is_named(end.clone()), "{end:?}");
    assert_eq!(world.service.tail(), tail, "it has appended nothing");
}

#[test]
#[should_panic(expected = "leads, and for everybody else its Lead is void")]
fn a_replica_that_stands_in_any_history_is_caught() {
    let mut world = World::new(5, true);
    assert_eq!(world.stand(), None);
    let leads = world.told.contains(&Told::Led);
    // An outsider reads the log as it is stored, and asks no process.
    let mut reader = Follower::new(Sequence::ZERO, Chain::start(LOG));
    let mut counts = 0;
    for at in 1..=world.service.tail().sequence.0 {
        let record = world.service.record(Sequence(at)).expect("it is stored");
        let consumed = reader.consume(Sequence(at), &record);
        let is_lead =
            |it: &Consumed| matches!(it, Consumed::Record(r) if r.header.epoch > Epoch(2));
        counts += u64::from(consumed.is_ok_and(|consumed| is_lead(&consumed)));
    }
    assert!(!leads || counts > 0, "a process leads, and for everybody else its Lead is void");
}

#[test]
fn many_void_records_in_a_row_are_looked_into_by_who_never_stands() {
    let mut world = World::new(40, false);
    let end = world.pass(1000);
    assert!(is_named(end.clone()), "{end:?}");
}

#[test]
fn a_later_epoch_of_another_history_ends_a_replica_at_once() {
    let mut world = World::new(1, false);
    assert_eq!(world.pass(100), None);
    let mut reader = Follower::new(Sequence::ZERO, Chain::start(LOG));
    for at in 1..=world.service.tail().sequence.0 {
        let record = world.service.record(Sequence(at)).expect("it is stored");
        reader.consume(Sequence(at), &record).expect("one history");
    }
    let mut next = Stamper::new(WriterId(5), reader.chain(), UnixMillis(1));
    world.lead(&mut next);
    let end = world.pass(100);
    assert!(is_named(end.clone()), "{end:?}");
}

#[test]
fn a_replica_stands_in_its_own_history() {
    let mut world = World::new(0, false);
    // The lost records are written again, byte for byte: that is the same history.
    world.service.cut(BACKED_UP);
    let mut first = Stamper::new(WriterId(1), Chain::start(LOG), UnixMillis(0));
    first.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
    for _ in 1..BACKED_UP.0 {
        first.stamp(Kind::Data, Part::Whole, empty_record(0), UnixMillis(1), Sequence::ZERO);
    }
    let mut lost = Stamper::new(WriterId(2), first.chain(), UnixMillis(0));
    world.lead(&mut lost);
    world.write(&mut lost, APPLIED);
    assert_eq!(world.stand(), None);
    assert!(world.told.contains(&Told::Led));
}
