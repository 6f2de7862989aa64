//! Appends to what keeps a log, without Kiln: what the storage and its client alone cost.
//!
//! ```text
//! cargo run --release -p services --example bare -- LOG RECORD-BYTES VALUE-BYTES WINDOW SECONDS
//! ```
//!
//! | log | an append is |
//! |---|---|
//! | `file:DIRECTORY` | a write and an fdatasync, within a file of zeroes that was synced before |
//! | `jetstream://…/NAME` | a publish by the same client library, and its acknowledgement |
//! | `etcd://…/PREFIX` | a put of a new key by the same client library (feature `etcd`) |
//! | `s3://…/PREFIX` | a create-only put by the same client library |
//!
//! A record holds keys and values as redis-benchmark sends them: a service that compresses what it
//! stores, as JetStream does, is to find as much to save as in Kiln's records. So many records as
//! the window says are under way at a time. Nothing is named as expected, read
//! back or checked but that the answer is a yes. One line of JSON tells what was seen. What it
//! writes is left behind.

use base::driver::Waker;
use base::{Clock, MonotonicNanos};
use bytes::Bytes;
use futures_util::StreamExt;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::path::Path;
use object_store::{ObjectStore, PutMode, PutPayload};
use serde_json::json;
use std::error::Error;
use std::fs::OpenOptions;
use std::future::Future;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;

/// Zeroes written ahead, as the segments of Kiln's own log are.
const FILE_BYTES: usize = 64 << 20;

type Failure = Box<dyn Error>;

/// What is asked for.
struct Wanted {
    log: String,
    record: Bytes,
    window: usize,
    turn: Duration,
}

/// What was seen: a time for each append, and for all of them.
struct Seen {
    times: Vec<Duration>,
    took: Duration,
}

fn main() -> ExitCode {
    match arguments().and_then(|wanted| Ok((run(&wanted)?, wanted))) {
        Ok((seen, wanted)) => {
            println!("{}", told(seen, &wanted));
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}\nusage: bare LOG RECORD-BYTES VALUE-BYTES WINDOW SECONDS");
            ExitCode::FAILURE
        }
    }
}

fn arguments() -> Result<Wanted, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [log, bytes, value_bytes, window, seconds] = &arguments[..] else {
        return Err("five arguments are needed".into());
    };
    Ok(Wanted {
        log: log.clone(),
        record: record(bytes.parse()?, value_bytes.parse()?),
        window: window.parse()?,
        turn: Duration::from_secs_f64(seconds.parse()?),
    })
}

/// Keys that differ, and the same value again and again, of letters without a pattern.
fn record(bytes: usize, value_bytes: usize) -> Bytes {
    let mut state: u64 = 1;
    let mut random = || {
        // Knuth's MMIX generator; its high bits are the better ones.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let value: Vec<u8> = (0..value_bytes).map(|_| b'0' + (random() % 64) as u8).collect();
    let mut record = Vec::with_capacity(bytes + value_bytes + 16);
    while record.len() < bytes {
        record.extend_from_slice(format!("key:{:012}", random() % 1_000_000).as_bytes());
        record.extend_from_slice(&value);
    }
    record.truncate(bytes);
    record.into()
}

fn run(wanted: &Wanted) -> Result<Seen, Failure> {
    if let Some(directory) = wanted.log.strip_prefix("file:") {
        return into_file(directory, wanted);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if wanted.log.starts_with("jetstream://") {
        let subject = made_subject(&wanted.log)?;
        return runtime.block_on(into_stream(wanted, &subject));
    }
    #[cfg(feature = "etcd")]
    if wanted.log.starts_with("etcd://") {
        return runtime.block_on(into_etcd(wanted));
    }
    runtime.block_on(into_bucket(wanted))
}

#[expect(clippy::disallowed_methods, reason = "a measurement needs the real clock")]
fn now() -> Instant {
    Instant::now()
}

/// One after the other, whatever the window: the next sync cannot begin before the last has ended.
fn into_file(directory: &str, wanted: &Wanted) -> Result<Seen, Failure> {
    let path = std::path::Path::new(directory).join(format!("bare-{}", std::process::id()));
    let file = OpenOptions::new().write(true).create_new(true).open(&path)?;
    file.write_all_at(&vec![0; FILE_BYTES], 0)?;
    file.sync_all()?;
    let (mut times, mut offset) = (Vec::new(), 0);
    let began = now();
    while began.elapsed() < wanted.turn {
        let sent = now();
        file.write_all_at(&wanted.record, offset as u64)?;
        file.sync_data()?;
        times.push(sent.elapsed());
        offset += wanted.record.len();
        if offset + wanted.record.len() > FILE_BYTES {
            offset = 0;
        }
    }
    let took = began.elapsed();
    std::fs::remove_file(&path)?;
    Ok(Seen { times, took })
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

/// The subject of a new stream. Kiln makes it, so that it is set up as its own are, and has no
/// further part in what is measured.
fn made_subject(log: &str) -> Result<String, Failure> {
    let nobody = Waker(Arc::new(|| {}));
    let clock = Arc::new(Uptime(now()));
    let store = services::open(log, clock, nobody, u64::from(std::process::id()))?;
    let (_, name) = log.rsplit_once('/').ok_or("the log's name is missing")?;
    let name = name.split('?').next().unwrap_or_default();
    Ok(format!("kiln.{name}.{:016x}", store.incarnation().0))
}

async fn into_stream(wanted: &Wanted, subject: &str) -> Result<Seen, Failure> {
    let servers = wanted.log.trim_start_matches("jetstream://").split('/').next();
    let servers = servers.unwrap_or_default();
    let servers = servers.split(',').map(str::parse).collect::<Result<Vec<_>, _>>()?;
    let client: async_nats::Client =
        async_nats::connect(servers as Vec<async_nats::ServerAddr>).await?;
    let one = |_| {
        let asked = client.request(subject.to_owned(), wanted.record.clone());
        async {
            let answer = asked.await?.payload;
            let is_yes = answer.starts_with(b"{\"stream\"");
            if is_yes { Ok(()) } else { Err(format!("JetStream says {answer:?}").into()) }
        }
    };
    in_window(wanted, one).await
}

#[cfg(feature = "etcd")]
async fn into_etcd(wanted: &Wanted) -> Result<Seen, Failure> {
    let (members, prefix) =
        wanted.log.trim_start_matches("etcd://").split_once('/').ok_or("the prefix is missing")?;
    let members: Vec<String> = members.split(',').map(|it| format!("http://{it}")).collect();
    let client = etcd_client::Client::connect(&members[..1], None).await?;
    let one = |number| {
        let mut client = client.kv_client();
        let (key, record) = (format!("{prefix}/{number:020}"), wanted.record.to_vec());
        async move {
            client.put(key, record, None).await?;
            Ok(())
        }
    };
    in_window(wanted, one).await
}

async fn into_bucket(wanted: &Wanted) -> Result<Seen, Failure> {
    // Whoever was first has set the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = Url::parse(&wanted.log)?;
    let bucket = url.host_str().ok_or("the bucket is missing")?;
    let mut builder = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .with_config(AmazonS3ConfigKey::ConditionalPut, "etag");
    for (key, value) in url.query_pairs() {
        builder = builder.with_config(key.parse()?, value);
    }
    let store = builder.build()?;
    let prefix = format!("{}-{}", url.path().trim_matches('/'), std::process::id());
    let one = |number| {
        let path = Path::from(format!("{prefix}/{number:020}"));
        let payload = PutPayload::from_bytes(wanted.record.clone());
        let store = &store;
        async move {
            store.put_opts(&path, payload, PutMode::Create.into()).await?;
            Ok(())
        }
    };
    in_window(wanted, one).await
}

/// Begins appends in order, and each as soon as the window has room for it.
async fn in_window<F>(wanted: &Wanted, one: impl Fn(u64) -> F) -> Result<Seen, Failure>
where
    F: Future<Output = Result<(), Failure>>,
{
    let began = now();
    let appends = futures_util::stream::iter(0..).map(|number| {
        let append = one(number);
        async move {
            let sent = now();
            append.await.map(|()| sent.elapsed())
        }
    });
    let until = appends.take_while(|_| std::future::ready(began.elapsed() < wanted.turn));
    let times: Vec<Result<Duration, Failure>> = until.buffered(wanted.window).collect().await;
    let took = began.elapsed();
    Ok(Seen { times: times.into_iter().collect::<Result<_, _>>()?, took })
}

fn told(mut seen: Seen, wanted: &Wanted) -> serde_json::Value {
    seen.times.sort_unstable();
    let at = |share: f64| {
        let index = (seen.times.len() as f64 * share) as usize;
        seen.times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
    };
    json!({
        "record_bytes": wanted.record.len(),
        "window": wanted.window,
        "records": seen.times.len(),
        "seconds": seen.took.as_secs_f64(),
        "p50_ms": at(0.5),
        "p99_ms": at(0.99),
    })
}
