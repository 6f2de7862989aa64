//! The conformance suite over a service.

use super::outside::fresh_name;
use super::place::{Place, polled};
use base::driver::Waker;
use base::{Position, Sequence};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use txlog::TransactionLog;
use txlog::conformance::{self, Bench, Loss};

/// The longest wait of one turn. Outcomes end it.
const TURN: Duration = Duration::from_millis(20);

/// Runs the suite.
pub fn run(place: impl Place) {
    let (wake, woken) = channel();
    let (name, origin) = (String::new(), Position::default());
    conformance::run(&mut ServiceBench { place, name, origin, wake, woken });
}

struct ServiceBench<P> {
    place: P,
    name: String,
    origin: Position,
    wake: Sender<()>,
    woken: Receiver<()>,
}

impl<P: Place> ServiceBench<P> {
    fn create(&mut self) {
        let incarnation = self.place.log(&self.name, polled()).incarnation();
        self.origin = Position { incarnation, sequence: Sequence::ZERO };
    }
}

impl<P: Place> Bench for ServiceBench<P> {
    fn reset(&mut self) {
        self.name = fresh_name();
        self.create();
    }

    fn open(&mut self) -> Box<dyn TransactionLog> {
        let wake = self.wake.clone();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end of a test.
            let _ = wake.send(());
        }));
        Box::new(self.place.log(&self.name, waker))
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
        self.place.crash();
    }

    fn recreate(&mut self) {
        self.place.delete(&self.name);
        self.create();
    }

    fn lose_next(&mut self, _: Loss) -> bool {
        false
    }

    fn accepts_by_number(&self) -> bool {
        P::ACCEPTS_BY_NUMBER
    }

    fn resolves_doubts(&self) -> bool {
        true
    }

    fn confirms_tail(&self) -> bool {
        P::CONFIRMS_TAIL
    }
}
