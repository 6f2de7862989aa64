//! A service of channels: each put and question ends when the test says so.

use super::*;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{Semaphore, oneshot};

/// Turns of looking for an outcome after which it is missing.
const TURNS_MAX: u64 = 200_000_000;

#[derive(Default)]
struct Seen {
    /// Puts in the order in which they were sent.
    sent: Vec<Sequence>,
    answers: BTreeMap<Sequence, oneshot::Sender<Outcome>>,
}

struct Fake {
    seen: Mutex<Seen>,
    /// Puts that may be sent.
    room: Semaphore,
}

impl Fake {
    fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().expect("no test panics while it holds this")
    }

    fn sent(&self) -> Vec<Sequence> {
        self.seen().sent.clone()
    }

    fn answer_put(&self, sequence: u64, outcome: Outcome) {
        let answer = self.seen().answers.remove(&Sequence(sequence)).expect("the put was sent");
        answer.send(outcome).expect("the put is waited for");
    }
}

impl Service for Fake {
    #[expect(clippy::async_yields_async, reason = "what is sent ends later")]
    fn put(self: Arc<Self>, sequence: Sequence, _: Bytes) -> Later<Later<Outcome>> {
        Box::pin(async move {
            self.room.acquire().await.expect("never closed").forget();
            let (tell, told) = oneshot::channel();
            let mut seen = self.seen();
            seen.sent.push(sequence);
            seen.answers.insert(sequence, tell);
            let ends: Later<Outcome> =
                Box::pin(async move { told.await.expect("the test answers every put") });
            ends
        })
    }

    fn answer(self: Arc<Self>, question: Operation) -> Later<Outcome> {
        Box::pin(async move {
            assert_ne!(question, Operation::First, "a client that breaks");
            Outcome::Tail { sequence: Sequence(7), is_confirmed: true }
        })
    }
}

struct Bench {
    fake: Arc<Fake>,
    store: ServiceStore,
    wakes: Arc<AtomicU64>,
}

impl Bench {
    fn new(room: usize) -> Self {
        let fake = Arc::new(Fake { seen: Mutex::default(), room: Semaphore::new(room) });
        let wakes = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&wakes);
        let waker = Waker(Arc::new(move || {
            counted.fetch_add(1, Ordering::SeqCst);
        }));
        let limits = StoreLimits { record_bytes_max: 100, puts_max: 4, record_cost_bytes: 0 };
        let facts = Facts { incarnation: Incarnation(3), limits };
        let service = Arc::clone(&fake);
        let connect = async move { Ok((service, facts)) };
        let store = ServiceStore::start("fake", waker, Trouble::default(), connect);
        Self { fake, store: store.expect("a thread can be had"), wakes }
    }

    fn put(&mut self, sequence: u64) -> OperationId {
        let (sequence, record) = (Sequence(sequence), Bytes::from_static(b"record"));
        self.store.begin(Operation::Put { sequence, record })
    }

    fn await_sent(&self, count: usize) -> Vec<Sequence> {
        for _ in 0..TURNS_MAX {
            let sent = self.fake.sent();
            if sent.len() >= count {
                return sent;
            }
            std::thread::yield_now();
        }
        panic!("{count} puts were never sent");
    }

    fn outcomes(&mut self, count: usize) -> Vec<(OperationId, Outcome)> {
        let mut outcomes = Vec::new();
        for _ in 0..TURNS_MAX {
            self.store.poll(&mut outcomes);
            if outcomes.len() >= count {
                return outcomes;
            }
            std::thread::yield_now();
        }
        panic!("{count} outcomes never came");
    }
}

#[test]
fn puts_are_sent_in_the_order_in_which_they_were_begun() {
    let mut bench = Bench::new(0);
    let ids: Vec<_> = (1..=4).map(|sequence| bench.put(sequence)).collect();
    bench.fake.room.add_permits(4);
    assert_eq!(bench.await_sent(4), [1, 2, 3, 4].map(Sequence));
    // Their answers may come in any order.
    for sequence in [3, 1, 4, 2] {
        bench.fake.answer_put(sequence, Outcome::InDoubt(sequence.to_string()));
        let expected = Outcome::InDoubt(sequence.to_string());
        assert_eq!(bench.outcomes(1), [(ids[sequence as usize - 1], expected)]);
    }
    assert_eq!(bench.wakes.load(Ordering::SeqCst), 4);
}

#[test]
fn a_service_that_takes_no_puts_answers_questions() {
    let mut bench = Bench::new(0);
    bench.put(1);
    let id = bench.store.begin(Operation::Tail);
    let tail = Outcome::Tail { sequence: Sequence(7), is_confirmed: true };
    assert_eq!(bench.outcomes(1), [(id, tail)]);
    assert_eq!(bench.fake.sent(), []);
}

#[test]
fn what_comes_beyond_the_queue_was_not_sent() {
    let mut bench = Bench::new(0);
    let mut refused = Vec::new();
    for sequence in 1..10_000 {
        bench.put(sequence);
        bench.store.poll(&mut refused);
        if !refused.is_empty() {
            break;
        }
    }
    assert!(matches!(&refused[0].1, Outcome::Failed(_)), "{refused:?}");
}

#[test]
fn an_operation_whose_client_breaks_ends_all_the_same() {
    let mut bench = Bench::new(1);
    let question = bench.store.begin(Operation::First);
    let broken_off = BROKEN_OFF.to_owned();
    assert_eq!(bench.outcomes(1), [(question, Outcome::Failed(broken_off.clone()))]);
    let put = bench.put(1);
    bench.await_sent(1);
    // Its end goes without an answer.
    bench.fake.seen().answers.clear();
    assert_eq!(bench.outcomes(1), [(put, Outcome::InDoubt(broken_off))]);
}

#[test]
fn a_failed_connection_is_told_and_leaves_no_thread() {
    let (waker, trouble) = (Waker(Arc::new(|| ())), Trouble::default());
    let connect = async { Err::<(Arc<Fake>, Facts), _>(io::Error::other("nobody there")) };
    let error = ServiceStore::start("fake", waker, trouble, connect).err().expect("it failed");
    assert_eq!(error.to_string(), "nobody there");
}

#[test]
fn trouble_is_shared_with_whoever_finds_it() {
    let trouble = Trouble::default();
    trouble.clone().set(Some(Refusal::Unavailable("no quorum".to_owned())));
    assert_eq!(trouble.get(), Some(Refusal::Unavailable("no quorum".to_owned())));
    trouble.clone().set(None);
    assert_eq!(trouble.get(), None);
}
