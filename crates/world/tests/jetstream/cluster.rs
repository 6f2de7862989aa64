//! The servers under test, and what can be done to them.

use base::driver::Waker;
use base::{Clock, MonotonicNanos, Sequence};
use bytes::Bytes;
use serde_json::Value;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use txlog::remote::RemoteLog;
use txlog::remote::store::{Operation, OperationId, Outcome, RecordStore};
use world::log::jetstream::{self, Broken};
use world::log::service::ServiceStore;

/// How long anything may take: elections, on a machine that is busy.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The servers, as the environment names them.
pub struct Cluster {
    /// A log's URL, with NAME in place of its name.
    url: String,
    control: Option<BufReader<TcpStream>>,
}

/// The servers whose URL is in the variable `name`, or none: then a test has nothing to do.
pub fn cluster(name: &str) -> Option<Cluster> {
    let url = std::env::var(name).ok()?;
    let control = std::env::var("KILN_TEST_JETSTREAM_CONTROL").ok().map(|address| {
        #[expect(clippy::disallowed_methods, reason = "a test speaks to its harness")]
        let stream = TcpStream::connect(address).expect("the harness listens");
        BufReader::new(stream)
    });
    Some(Cluster { url, control })
}

pub fn three_servers() -> Option<Cluster> {
    cluster("KILN_TEST_JETSTREAM")
}

/// Random enough for names and identities that no two runs share.
pub fn entropy() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    #[expect(clippy::disallowed_types, reason = "a test wants numbers that differ each time")]
    let state = std::collections::hash_map::RandomState::new();
    state.build_hasher().finish()
}

pub fn fresh_name() -> String {
    format!("test-{:016x}", entropy())
}

impl Cluster {
    pub fn url(&self, name: &str, options: &str) -> String {
        format!("{}{options}", self.url.replace("NAME", name))
    }

    /// The same servers, as somebody sees them who says who it is.
    pub fn as_user(&self, user: &str) -> Self {
        let url = self.url.replace("jetstream://", &format!("jetstream://{user}@"));
        Self { url, control: None }
    }

    /// A store, and what wakes whoever waits for it.
    pub fn open(&self, name: &str, options: &str) -> std::io::Result<Store> {
        let (waker, woken) = channel();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end of a test.
            let _ = waker.send(());
        }));
        let store = jetstream::open(&self.url(name, options), waker, entropy())?;
        Ok(Store { store, woken, ended: Vec::new() })
    }

    /// Tells the harness to do something to the servers; its answer.
    pub fn tell(&mut self, order: &str) -> String {
        let control = self.control.as_mut().expect("the harness named its control port");
        writeln!(control.get_mut(), "{order}").expect("the harness lives");
        let mut answer = String::new();
        control.read_line(&mut answer).expect("the harness lives");
        assert!(!answer.starts_with("error"), "{order}: {answer}");
        answer.trim().to_owned()
    }
}

/// Asks JetStream past the log's back, as an operator does.
pub fn operator(cluster: &Cluster, subject: &str, question: &Value) -> Value {
    let url = cluster.url("x", "");
    let servers = url.trim_start_matches("jetstream://").split('/').next().unwrap_or_default();
    let servers: Vec<async_nats::ServerAddr> =
        servers.split(',').map(|server| server.parse().expect("an address")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime starts");
    runtime.block_on(async {
        let client = async_nats::connect(servers).await.expect("a server accepts");
        let payload = Bytes::from(question.to_string());
        let answer = client.request(format!("$JS.API.{subject}"), payload).await;
        serde_json::from_slice(&answer.expect("JetStream answers").payload).expect("JSON")
    })
}

/// A store, driven by hand.
pub struct Store {
    pub store: ServiceStore,
    woken: Receiver<()>,
    ended: Vec<(OperationId, Outcome)>,
}

impl Store {
    pub fn begin(&mut self, operation: Operation) -> OperationId {
        self.store.begin(operation)
    }

    pub fn put(&mut self, sequence: u64, record: &[u8]) -> OperationId {
        let record = Bytes::copy_from_slice(record);
        self.begin(Operation::Put { sequence: Sequence(sequence), record })
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

    pub fn ask(&mut self, operation: Operation) -> Outcome {
        let id = self.begin(operation);
        self.outcome(id)
    }

    /// Asks until the cluster answers.
    pub fn ask_patiently(&mut self, operation: &Operation) -> Outcome {
        let began = now();
        loop {
            match self.ask(operation.clone()) {
                Outcome::Failed(what) => {
                    assert!(began.elapsed() < PATIENCE, "never answered: {what}");
                    pause(Duration::from_millis(50));
                }
                outcome => return outcome,
            }
        }
    }

    /// Everything from a place on.
    pub fn read(&mut self, from: u64) -> Vec<Bytes> {
        let mut found = Vec::new();
        loop {
            let from = Sequence(from + found.len() as u64);
            let get = Operation::Get { from, bytes_max: 4 << 20, waits: false };
            match self.ask_patiently(&get) {
                Outcome::Records { records, .. } if records.is_empty() => return found,
                Outcome::Records { records, .. } => found.extend(records),
                other => panic!("reading at {from} gave {other:?}"),
            }
        }
    }

    /// Waits until the log's trouble is as wanted.
    pub fn await_trouble(&self, what: &str, is_wanted: impl Fn(Option<String>) -> bool) {
        let began = now();
        while !is_wanted(self.store.trouble().map(|refusal| refusal.to_string())) {
            assert!(began.elapsed() < PATIENCE, "{what}: {:?}", self.store.trouble());
            pause(Duration::from_millis(50));
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test of the real world needs its clock")]
pub fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "a test of the real world waits for it")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// The machine's clock.
pub struct RealClock(Instant);

impl Clock for RealClock {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.elapsed().as_nanos() as u64)
    }
}

pub fn clock() -> Arc<RealClock> {
    Arc::new(RealClock(now()))
}

/// A whole log over a store. What wakes is not waited for: tests poll.
pub fn log(cluster: &Cluster, name: &str) -> RemoteLog {
    let waker = Waker(Arc::new(|| {}));
    let store = jetstream::open(&cluster.url(name, ""), waker, entropy()).expect("the log opens");
    RemoteLog::new(Box::new(store), clock())
}

/// As [`log`], with a rule broken.
pub fn broken_log(cluster: &Cluster, name: &str, broken: Broken) -> RemoteLog {
    let waker = Waker(Arc::new(|| {}));
    let store = jetstream::open_broken(&cluster.url(name, ""), waker, entropy(), broken);
    RemoteLog::new(Box::new(store.expect("the log opens")), clock())
}

thread_local! {
    /// Counts, so that a test's records are all different.
    static NUMBER: Cell<u64> = const { Cell::new(0) };
}

/// A record that no other one equals.
pub fn unique_record(bytes: usize) -> Bytes {
    let number = NUMBER.with(|number| number.replace(number.get() + 1));
    let mut record = vec![number as u8; bytes.max(16)];
    record[..8].copy_from_slice(&number.to_le_bytes());
    record[8..16].copy_from_slice(&entropy().to_le_bytes());
    record.into()
}
