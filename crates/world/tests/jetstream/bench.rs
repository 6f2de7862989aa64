//! What every log must keep, kept by this one; and a log that keeps it not, noticed.

use super::cluster::{Cluster, clock, entropy, fresh_name, operator, three_servers};
use base::driver::Waker;
use base::{Position, Sequence};
use serde_json::json;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use txlog::TransactionLog;
use txlog::conformance::{self, Bench, Loss};
use txlog::remote::RemoteLog;
use world::log::jetstream::{self, Broken};

/// The longest wait of one turn. Outcomes end it.
const TURN: Duration = Duration::from_millis(20);

struct JetStreamBench {
    cluster: Cluster,
    name: String,
    origin: Position,
    wake: Sender<()>,
    woken: Receiver<()>,
    broken: Option<Broken>,
}

impl JetStreamBench {
    fn new(cluster: Cluster, broken: Option<Broken>) -> Self {
        let (wake, woken) = channel();
        let (name, origin) = (String::new(), Position::default());
        Self { cluster, name, origin, wake, woken, broken }
    }

    fn log(&self) -> RemoteLog {
        let wake = self.wake.clone();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end of a test.
            let _ = wake.send(());
        }));
        let url = self.cluster.url(&self.name, "");
        let store = match self.broken {
            None => jetstream::open(&url, waker, entropy()),
            Some(broken) => jetstream::open_broken(&url, waker, entropy(), broken),
        };
        RemoteLog::new(Box::new(store.expect("the log opens")), clock())
    }

    fn create(&mut self) {
        let incarnation = self.log().incarnation();
        self.origin = Position { incarnation, sequence: Sequence::ZERO };
    }
}

impl Bench for JetStreamBench {
    fn reset(&mut self) {
        self.name = fresh_name();
        self.create();
    }

    fn open(&mut self) -> Box<dyn TransactionLog> {
        Box::new(self.log())
    }

    fn origin(&self) -> Position {
        self.origin
    }

    fn wait(&mut self) {
        // Timed out or woken: what follows is a poll.
        let _ = self.woken.recv_timeout(TURN);
        while self.woken.try_recv().is_ok() {}
    }

    fn crash(&mut self) {
        self.cluster.tell("crash");
    }

    fn recreate(&mut self) {
        let delete = format!("STREAM.DELETE.kiln-{}", self.name);
        assert_eq!(operator(&self.cluster, &delete, &json!({}))["success"], true);
        self.create();
    }

    fn lose_next(&mut self, _: Loss) -> bool {
        false
    }

    fn accepts_by_number(&self) -> bool {
        true
    }

    fn resolves_doubts(&self) -> bool {
        true
    }

    fn confirms_tail(&self) -> bool {
        false
    }
}

#[test]
fn it_keeps_what_every_log_must() {
    let Some(cluster) = three_servers() else { return };
    conformance::run(&mut JetStreamBench::new(cluster, None));
}

#[test]
fn puts_without_a_number_are_noticed() {
    let Some(cluster) = three_servers() else { return };
    let mut bench = JetStreamBench::new(cluster, Some(Broken::IgnoresNumbers));
    let run = std::panic::AssertUnwindSafe(|| conformance::run(&mut bench));
    assert!(std::panic::catch_unwind(run).is_err(), "the suite passed a log without an order");
}
