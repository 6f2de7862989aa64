//! What every log must keep, kept by this one over real servers and in a directory; and two writers
//! of one place, of whom the server lets one have it.

use super::stores::{Place, entropy, fresh_name, open, tell};
use base::driver::Waker;
use base::{Position, Sequence};
use bytes::Bytes;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use txlog::TransactionLog;
use txlog::conformance::{self, Bench, Loss};
use txlog::remote::RemoteLog;
use txlog::remote::store::{Operation, Outcome, RecordStore};
use world::log::objects;

/// The longest wait of one turn. Outcomes end it.
const TURN: Duration = Duration::from_millis(20);

struct ObjectsBench {
    place: Place,
    /// Whether the server forgets nothing when it is killed.
    survives: bool,
    name: String,
    origin: Position,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl ObjectsBench {
    fn new(place: Place, survives: bool) -> Self {
        let (wake, woken) = channel();
        let (name, origin) = (String::new(), Position::default());
        Self { place, survives, name, origin, wake, woken }
    }

    fn log(&self) -> RemoteLog {
        let wake = self.wake.clone();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end of a test.
            let _ = wake.send(());
        }));
        // The suite trims what it has just written.
        open(&self.place.url(&self.name, 0), waker)
    }

    fn create(&mut self) {
        let incarnation = self.log().incarnation();
        self.origin = Position { incarnation, sequence: Sequence::ZERO };
    }
}

impl Bench for ObjectsBench {
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
        if self.survives {
            tell("kill");
            tell("start");
        }
    }

    fn recreate(&mut self) {
        self.place.delete(&self.name);
        self.create();
    }

    fn lose_next(&mut self, _: Loss) -> bool {
        false
    }

    fn accepts_by_number(&self) -> bool {
        false
    }

    fn resolves_doubts(&self) -> bool {
        true
    }
}

#[test]
fn a_server_keeps_what_every_log_must() {
    let Some(place) = Place::first() else { return };
    conformance::run(&mut ObjectsBench::new(place, true));
}

#[test]
fn another_server_keeps_what_every_log_must() {
    let Some(place) = Place::second() else { return };
    conformance::run(&mut ObjectsBench::new(place, false));
}

#[test]
fn a_directory_keeps_what_every_log_must() {
    let place = Place::directory("conformance");
    let Place::Directory(path) = place.clone() else { unreachable!("it is a directory") };
    conformance::run(&mut ObjectsBench::new(place, false));
    std::fs::remove_dir_all(path).expect("the logs lie there");
}

/// Every place is contended: as many writers as there are, each of them sure that it is free.
#[test]
fn of_many_writers_of_one_place_one_has_it() {
    const WRITERS: usize = 4;
    const PLACES: u64 = 25;
    for place in [Place::first(), Place::second()].into_iter().flatten() {
        let url = place.url(&fresh_name(), 60_000);
        let open = |_| objects::open(&url, Waker(Arc::new(|| {})), entropy()).expect("it opens");
        let mut writers: Vec<_> = (0..WRITERS).map(open).collect();
        for sequence in (1..=PLACES).map(Sequence) {
            for (number, writer) in writers.iter_mut().enumerate() {
                let record = Bytes::from(format!("{number} at {sequence}"));
                writer.begin(Operation::Put { sequence, record });
            }
            let outcomes: Vec<Outcome> = writers.iter_mut().map(outcome).collect();
            let winners: Vec<usize> =
                (0..WRITERS).filter(|number| outcomes[*number] == Outcome::Stored).collect();
            let misplaced =
                outcomes.iter().filter(|outcome| **outcome == Outcome::Misplaced).count();
            assert_eq!((winners.len(), misplaced), (1, WRITERS - 1), "{place:?}: {outcomes:?}");
            writers[0].begin(Operation::Get { from: sequence, bytes_max: 1, waits: false });
            let records = vec![Bytes::from(format!("{} at {sequence}", winners[0]))];
            assert_eq!(outcome(&mut writers[0]), Outcome::Records { records, tail: sequence });
        }
    }
}

fn outcome(store: &mut impl RecordStore) -> Outcome {
    let mut outcomes = Vec::new();
    let began = super::stores::now();
    while outcomes.is_empty() {
        assert!(began.elapsed() < super::stores::PATIENCE, "no outcome came");
        store.poll(&mut outcomes);
        super::stores::pause(Duration::from_millis(1));
    }
    outcomes.remove(0).1
}
