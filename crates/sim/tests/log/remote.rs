//! The conformance suite over the remote log, with one put under way at a time and with several.

use base::time::MILLISECOND;
use base::{Incarnation, Position, Sequence};
use sim::clock::SimClock;
use sim::timeline::Timeline;
use std::sync::{Arc, Mutex};
use txlog::conformance::{Bench, Loss, run};
use txlog::remote::memory::{Fate, MemoryService};
use txlog::remote::store::{Operation, StoreLimits};
use txlog::remote::{Broken, RemoteLog};
use txlog::{Follower, TransactionLog};

struct RemoteBench {
    timeline: Timeline,
    service: MemoryService,
    incarnations: u64,
    puts_max: usize,
    loss: Arc<Mutex<Option<Loss>>>,
    confirms_tail: bool,
    counts_void_records: bool,
    broken: Option<Broken>,
}

impl RemoteBench {
    fn new(puts_max: usize) -> Self {
        let timeline = Timeline::new();
        let clock = Arc::new(SimClock::new(&timeline));
        Self {
            timeline,
            service: MemoryService::new(clock, Incarnation(0)),
            incarnations: 0,
            puts_max,
            loss: Arc::default(),
            confirms_tail: true,
            counts_void_records: false,
            broken: None,
        }
    }
}

impl Bench for RemoteBench {
    fn reset(&mut self) {
        self.incarnations += 1;
        *self.loss.lock().expect("not poisoned") = None;
        let clock = Arc::new(SimClock::new(&self.timeline));
        self.service = MemoryService::new(clock, Incarnation(self.incarnations));
        self.service.set_confirms_tail(self.confirms_tail);
    }

    fn open(&mut self) -> Box<dyn TransactionLog> {
        let limits =
            StoreLimits { record_bytes_max: 4096, puts_max: self.puts_max, record_cost_bytes: 0 };
        let loss = Arc::clone(&self.loss);
        let fates = move |operation: &Operation| {
            let round_trip = Fate {
                arrives_nanos: Some(MILLISECOND),
                answers_nanos: Some(MILLISECOND),
                ..Fate::default()
            };
            if !matches!(operation, Operation::Put { .. }) {
                return round_trip;
            }
            match loss.lock().expect("not poisoned").take() {
                Some(Loss::Acknowledgement) => Fate { answers_nanos: None, ..round_trip },
                Some(Loss::Record) => Fate { arrives_nanos: None, ..round_trip },
                None => round_trip,
            }
        };
        let store = self.service.connect(limits, 100 * MILLISECOND, Box::new(fates));
        let clock = Arc::new(SimClock::new(&self.timeline));
        let mut log = RemoteLog::new(Box::new(store), clock);
        if let Some(broken) = self.broken {
            log.break_rule(broken);
        }
        Box::new(log)
    }

    fn origin(&self) -> Position {
        self.service.tail().at(Sequence::ZERO)
    }

    fn wait(&mut self) {
        self.timeline.pass(5 * MILLISECOND);
    }

    fn crash(&mut self) {}

    fn recreate(&mut self) {
        self.incarnations += 1;
        self.service.recreate(Incarnation(self.incarnations));
    }

    fn lose_next(&mut self, loss: Loss) -> bool {
        *self.loss.lock().expect("not poisoned") = Some(loss);
        true
    }

    fn accepts_by_number(&self) -> bool {
        self.puts_max > 1
    }

    fn resolves_doubts(&self) -> bool {
        true
    }

    fn confirms_tail(&self) -> bool {
        self.confirms_tail
    }

    fn follower(&self) -> Follower {
        let start = txlog::Chain::start(self.origin().incarnation);
        let mut follower = Follower::new(Sequence::ZERO, start);
        follower.counts_void_records = self.counts_void_records;
        follower
    }
}

#[test]
fn the_remote_log_conforms_with_one_put_at_a_time() {
    run(&mut RemoteBench::new(1));
}

#[test]
fn the_remote_log_conforms_with_puts_in_a_window() {
    run(&mut RemoteBench::new(8));
}

#[test]
fn the_remote_log_conforms_where_no_tail_is_confirmed() {
    run(&mut RemoteBench { confirms_tail: false, ..RemoteBench::new(8) });
}

#[test]
#[should_panic(expected = "never")]
fn readers_of_a_remote_log_without_the_void_rule_are_caught() {
    run(&mut RemoteBench { counts_void_records: true, ..RemoteBench::new(8) });
}

#[test]
#[should_panic(expected = "assertion")]
fn a_remote_log_that_assumes_the_best_is_caught() {
    run(&mut RemoteBench { broken: Some(Broken::AssumesTheBest), ..RemoteBench::new(8) });
}
