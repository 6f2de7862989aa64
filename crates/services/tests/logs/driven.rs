//! A store driven by hand.

use super::outside::{PATIENCE, entropy, fresh_name, now, pause, until};
use super::place::Place;
use base::Sequence;
use base::driver::Waker;
use bytes::Bytes;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use txlog::remote::store::{Operation, OperationId, Outcome, RecordStore};

pub struct Driven {
    pub store: Box<dyn RecordStore>,
    woken: Receiver<()>,
    ended: Vec<(OperationId, Outcome)>,
}

pub fn get(from: u64, waits: bool) -> Operation {
    Operation::Get { from: Sequence(from), bytes_max: 1 << 20, waits }
}

pub fn trim(through: u64) -> Operation {
    Operation::Trim { through: Sequence(through) }
}

pub fn first(sequence: u64) -> Outcome {
    Outcome::First { sequence: Sequence(sequence) }
}

/// A log with so many records, each its own number.
pub fn stored(place: &impl Place, name: &str, count: u64) -> Driven {
    let mut store = Driven::open(place, name).expect("the log opens");
    for sequence in 1..=count {
        assert_eq!(store.put_and_see(sequence, &sequence.to_le_bytes()), Outcome::Stored);
    }
    store
}

/// A reader at the end of a log is told of each record when it comes.
pub fn a_reader_waits_at_the_end(place: &impl Place) {
    let name = fresh_name();
    let mut writer = stored(place, &name, 0);
    let mut reader = stored(place, &name, 0);
    assert_eq!(reader.store.incarnation(), writer.store.incarnation());
    for sequence in 1..=20 {
        let waiting = reader.begin(get(sequence, true));
        let record = unique_record(100);
        assert_eq!(writer.put_and_see(sequence, &record), Outcome::Stored);
        let mut outcome = reader.outcome(waiting);
        // On a busy machine the wait may have ended before, or the service has ended it: a log asks
        // again then.
        let mut failures = 0;
        while brings_nothing(&outcome) || matches!(outcome, Outcome::Failed(_)) && failures < 5 {
            failures += usize::from(!brings_nothing(&outcome));
            outcome = reader.ask(get(sequence, true));
        }
        let tail = Sequence(sequence);
        assert_eq!(outcome, Outcome::Records { records: vec![record], tail });
    }
}

/// Whether it is a piece without a record: nothing came while somebody waited.
pub fn brings_nothing(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Records { records, .. } if records.is_empty())
}

impl Driven {
    /// A store, and what wakes whoever waits for it.
    pub fn open(place: &impl Place, name: &str) -> io::Result<Self> {
        let (waker, woken) = channel();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end of a test.
            let _ = waker.send(());
        }));
        Ok(Self { store: place.open(name, waker, entropy())?, woken, ended: Vec::new() })
    }

    pub fn begin(&mut self, operation: Operation) -> OperationId {
        self.store.begin(operation)
    }

    pub fn put(&mut self, sequence: u64, record: &[u8]) -> OperationId {
        let record = Bytes::copy_from_slice(record);
        self.begin(Operation::Put { sequence: Sequence(sequence), record })
    }

    /// Puts, and waits for what became of it.
    pub fn put_and_see(&mut self, sequence: u64, record: &[u8]) -> Outcome {
        let put = self.put(sequence, record);
        self.outcome(put)
    }

    /// Waits for the outcome of one operation.
    pub fn outcome(&mut self, id: OperationId) -> Outcome {
        let began = now();
        loop {
            self.store.poll(&mut self.ended);
            if let Some(index) = self.ended.iter().position(|(ended, _)| *ended == id) {
                return self.ended.remove(index).1;
            }
            assert!(began.elapsed() < PATIENCE, "{id:?} never ended");
            // Timed out or woken: the outcome is looked for again.
            let _ = self.woken.recv_timeout(Duration::from_millis(100));
        }
    }

    /// Asks until the service answers. For questions: a put may have been done.
    pub fn ask(&mut self, question: Operation) -> Outcome {
        let began = now();
        loop {
            let id = self.begin(question.clone());
            match self.outcome(id) {
                Outcome::Failed(what) => {
                    assert!(began.elapsed() < PATIENCE, "never answered: {what}");
                    pause(Duration::from_millis(50));
                }
                outcome => return outcome,
            }
        }
    }

    /// Everything from a place to where the log ends. Whichever server answers may be behind, and
    /// is asked again.
    pub fn read(&mut self, from: u64) -> Vec<Bytes> {
        let Outcome::Tail { sequence: end, .. } = self.ask(Operation::Tail) else {
            panic!("the log ends somewhere");
        };
        let began = now();
        let mut found = Vec::new();
        loop {
            let from = Sequence(from + found.len() as u64);
            if from > end {
                return found;
            }
            let get = Operation::Get { from, bytes_max: 4 << 20, waits: false };
            match self.ask(get) {
                Outcome::Records { records, .. } => found.extend(records),
                other => panic!("reading at {from} gave {other:?}"),
            }
            assert!(began.elapsed() < PATIENCE, "no server reads on from {from} to {end}");
        }
    }

    /// Waits until the log's trouble is as wanted.
    pub fn await_trouble(&self, what: &str, is_wanted: impl Fn(Option<String>) -> bool) {
        until(what, || is_wanted(self.store.trouble().map(|refusal| refusal.to_string())));
    }
}

/// A record that no other one equals.
pub fn unique_record(bytes: usize) -> Bytes {
    let mut record = vec![bytes as u8; bytes.max(8)];
    record[..8].copy_from_slice(&entropy().to_le_bytes());
    record.into()
}
