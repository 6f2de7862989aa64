//! Appends to a JetStream cluster: through Kiln's store, and by the bare client.
//!
//! ```sh
//! cargo run --profile checked -p services --example jetstream -- 'jetstream://127.0.0.1:4222/NAME'
//! ```
//!
//! Both write to streams that are set up alike. The bare client keeps as many publishes under way,
//! names no sequence and checks nothing but that there is an answer. Turns alternate, because a
//! disk's speed changes from minute to minute. The streams are left behind.

use async_nats::Client;
use base::driver::Waker;
use base::{Clock, MonotonicNanos, Sequence};
use bytes::Bytes;
use futures_util::StreamExt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use txlog::remote::store::{Operation, Outcome, RecordStore};

/// Turns of each kind.
const TURNS: usize = 5;

/// How long a turn takes.
const TURN: Duration = Duration::from_secs(3);

/// Bytes of a record, and how many are under way.
const SHAPES: [(usize, usize); 4] = [(100, 1), (16 << 10, 1), (16 << 10, 8), (512 << 10, 8)];

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[expect(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn now() -> Instant {
    Instant::now()
}

/// The time since the program began.
struct Uptime(Instant);

impl Clock for Uptime {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// Kiln's store on a log of its own.
struct Ours {
    store: Box<dyn RecordStore>,
    woken: Receiver<()>,
    last: u64,
}

impl Ours {
    fn open(url: &str, number: usize) -> Self {
        let (wake, woken) = channel();
        let waker = Waker(Arc::new(move || {
            // Nobody waits any more at the end.
            let _ = wake.send(());
        }));
        let url = url.replace("NAME", &format!("bench-{}-{number}", std::process::id()));
        let entropy = u64::from(std::process::id());
        let store =
            services::open(&url, Arc::new(Uptime(now())), waker, entropy).expect("the log opens");
        Self { store, woken, last: 0 }
    }

    /// Times of all appends of a turn.
    fn turn(&mut self, record: &Bytes, window: usize) -> Vec<Duration> {
        let mut times = Vec::new();
        let mut under_way = Vec::new();
        let mut ended = Vec::new();
        let began = now();
        while began.elapsed() < TURN || !under_way.is_empty() {
            while under_way.len() < window && began.elapsed() < TURN {
                self.last += 1;
                let (sequence, record) = (Sequence(self.last), record.clone());
                let id = self.store.begin(Operation::Put { sequence, record });
                under_way.push((id, now()));
            }
            self.woken.recv_timeout(PATIENCE).expect("puts end");
            self.store.poll(&mut ended);
            for (id, outcome) in ended.drain(..) {
                assert_eq!(outcome, Outcome::Stored);
                let index = under_way.iter().position(|(of, _)| *of == id).expect("it was begun");
                times.push(under_way.remove(index).1.elapsed());
            }
        }
        times
    }
}

/// The bare client on the subject of another log.
async fn bare(client: &Client, subject: &str, record: &Bytes, window: usize) -> Vec<Duration> {
    let began = now();
    let appends = futures_util::stream::repeat_with(|| async {
        let sent = now();
        let answer = client.request(subject.to_owned(), record.clone()).await;
        let answer = answer.expect("JetStream answers").payload;
        assert!(answer.starts_with(b"{\"stream\""), "{answer:?}");
        sent.elapsed()
    });
    let until = appends.take_while(|_| std::future::ready(began.elapsed() < TURN));
    until.buffered(window).collect().await
}

fn report(name: &str, bytes: usize, times: &mut [Duration]) -> f64 {
    times.sort();
    let seconds = TURN.as_secs_f64() * TURNS as f64;
    let megabytes = times.len() as f64 * bytes as f64 / 1e6 / seconds;
    let at = |share: f64| times[(times.len() as f64 * share) as usize].as_secs_f64() * 1e3;
    println!(
        "  {name:5} {:7.0} records/s {megabytes:7.1} MB/s  p50 {:6.2} ms  p99 {:6.2} ms",
        times.len() as f64 / seconds,
        at(0.5),
        at(0.99)
    );
    megabytes
}

fn main() {
    let url = std::env::args().nth(1).expect("the URL of a log, with NAME for its name");
    let servers = url.trim_start_matches("jetstream://").split('/').next().unwrap_or_default();
    let servers: Vec<async_nats::ServerAddr> =
        servers.split(',').map(|server| server.parse().expect("an address")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime starts");
    let client = runtime.block_on(async_nats::connect(servers)).expect("a server accepts");
    for (number, (bytes, window)) in SHAPES.into_iter().enumerate() {
        println!("{bytes} bytes, {window} under way, {TURNS} turns of {} s", TURN.as_secs());
        let record = Bytes::from(vec![7; bytes]);
        let mut ours = Ours::open(&url, 2 * number);
        let other = Ours::open(&url, 2 * number + 1);
        let subject = format!(
            "kiln.bench-{}-{}.{:016x}",
            std::process::id(),
            2 * number + 1,
            other.store.incarnation().0
        );
        let (mut stored, mut published) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            stored.extend(ours.turn(&record, window));
            published.extend(runtime.block_on(bare(&client, &subject, &record, window)));
        }
        let ours = report("kiln", bytes, &mut stored);
        let bare = report("bare", bytes, &mut published);
        println!("  ratio {:.3}", ours / bare);
    }
}
