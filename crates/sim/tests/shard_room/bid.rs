//! A candidate that reads on before it is told what became of its `Lead`.

use base::time::MILLISECOND;
use base::{HashKey, Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use config::Config;
use config::settings::engine_settings;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use shard::Renewal;
use shard::Shard;
use shard::recovery::Replayer;
use shard::role::member::Member;
use shard::{Progress, Told};
use sim::clock::SimClock;
use sim::timeline::Timeline;
use std::path::Path;
use std::sync::Arc;
use txlog::remote::RemoteLog;
use txlog::remote::memory::{Fate, MemoryService};
use txlog::remote::store::{Operation, RecordStore, StoreLimits};
use txlog::{Chain, Follower, Kind, Part, Stamper, TransactionLog, WriterId, empty_record};

const LOG: Incarnation = Incarnation(7);
const LIMITS: StoreLimits =
    StoreLimits { record_bytes_max: 4096, puts_max: 4, record_cost_bytes: 0 };
const PATIENCE_NANOS: u64 = 10_000 * MILLISECOND;

/// How long an acknowledgement is under way: reading is quicker.
const ACKNOWLEDGED_NANOS: u64 = 100 * MILLISECOND;

/// A candidate whose `Lead` is stored at place 1, which it has read and does not know of.
struct Candidate {
    shard: Shard,
    service: MemoryService,
    timeline: Timeline,
    told: Vec<Told>,
}

impl Candidate {
    fn new() -> Self {
        let timeline = Timeline::new();
        let clock = SimClock::new(&timeline);
        let service = MemoryService::new(Arc::new(clock.clone()), LOG);
        let fates = |operation: &Operation| match operation {
            Operation::Put { .. } => {
                Fate { answers_nanos: Some(ACKNOWLEDGED_NANOS), ..Fate::default() }
            }
            _ => Fate::default(),
        };
        let store = service.connect(LIMITS, PATIENCE_NANOS, Box::new(fates));
        let mut log = RemoteLog::new(Box::new(store), Arc::new(clock));
        log.read_from(Position { incarnation: LOG, sequence: Sequence(1) });
        let engine = Engine::new(
            Keyspace::new(engine_settings(&Config::new(Path::new("/data"))), HashKey::fixed(1)),
            1,
        );
        let replayer = Replayer::new(Sequence::ZERO, Chain::start(LOG));
        let shard = Shard::following(engine, Box::new(log), replayer, LOG);
        let mut this = Self { shard, service, timeline, told: Vec::new() };
        assert_eq!(this.pass(5), None);
        this.shard.stand(WriterId(2), 1000, &Member::default(), UnixMillis(1), false);
        this.pass(5);
        assert_eq!(this.shard.appended().sequence, Sequence(1), "it has read its own Lead");
        this
    }

    /// Lets milliseconds pass; what the log told that ends a life, if it did.
    fn pass(&mut self, millis: u64) -> Option<Progress> {
        for _ in 0..millis {
            self.timeline.pass(MILLISECOND);
            match self.shard.poll(&mut self.told, &mut Interest::default()) {
                Progress::Nothing | Progress::Durable => {}
                end => return Some(end),
            }
        }
        None
    }

    /// Somebody else's record lands behind the `Lead`, and is read.
    fn lands(&mut self, record: Bytes) {
        let mut other = self.service.connect(LIMITS, PATIENCE_NANOS, Box::new(|_| Fate::default()));
        other.begin(Operation::Put { sequence: Sequence(2), record });
        assert_eq!(self.pass(5), None);
        assert_eq!(self.shard.appended().sequence, Sequence(2), "it has read that record");
        assert!(!self.told.contains(&Told::Led));
    }
}

#[test]
fn a_straggler_that_is_read_before_the_acknowledgement_takes_no_leadership_away() {
    let mut candidate = Candidate::new();
    let mut deposed = Stamper::new(WriterId(1), Chain::start(LOG), UnixMillis(0));
    let part = Part::Whole;
    let now = UnixMillis(1);
    candidate.lands(deposed.stamp(Kind::Data, part, empty_record(0), now, Sequence::ZERO));
    assert_eq!(candidate.pass(200), None);
    assert!(candidate.told.contains(&Told::Led));
    candidate.shard.renew(&Renewal::new(1000, &Member::default()), now);
    assert_eq!(candidate.pass(500), None);
    assert_eq!(candidate.shard.durable().sequence, Sequence(3), "behind the straggler");
}

#[test]
fn who_is_deposed_before_the_acknowledgement_does_not_lead() {
    let mut candidate = Candidate::new();
    let lead = candidate.service.record(Sequence(1)).expect("it is stored");
    let mut reader = Follower::new(Sequence::ZERO, Chain::start(LOG));
    reader.consume(Sequence(1), &lead).expect("a record");
    let mut other = Stamper::new(WriterId(3), reader.chain(), UnixMillis(1));
    candidate.lands(other.lead(1000, &[], UnixMillis(1), Sequence(1)));
    assert!(matches!(candidate.pass(200), Some(Progress::Deposed(_))));
    assert!(!candidate.told.contains(&Told::Led));
}
