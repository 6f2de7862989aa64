//! What is tested: servers that the environment names, and directories.

use base::driver::Waker;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use txlog::remote::RemoteLog;
use world::clock::RealClock;
use world::log::objects;

/// How long anything may take, on a machine that is busy, before it is called missing.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Where logs are kept.
#[derive(Clone, Debug)]
pub enum Place {
    /// At an endpoint that speaks S3.
    S3 {
        endpoint: String,
    },
    Directory(PathBuf),
}

impl Place {
    /// The server that can be killed.
    pub fn first() -> Option<Self> {
        Self::named("KILN_TEST_S3")
    }

    pub fn second() -> Option<Self> {
        Self::named("KILN_TEST_S3_SECOND")
    }

    fn named(variable: &str) -> Option<Self> {
        std::env::var(variable).ok().map(|endpoint| Self::S3 { endpoint })
    }

    pub fn directory(name: &str) -> Self {
        let name = format!("kiln-objects-{}-{name}", std::process::id());
        Self::Directory(std::env::temp_dir().join(name))
    }

    /// The log of this name, whose records may be trimmed after so many milliseconds.
    pub fn url(&self, name: &str, trim_age_ms: u64) -> String {
        match self {
            Self::S3 { endpoint } => format!(
                "s3://logs/{name}?endpoint={endpoint}&region=us-east-1&allow_http=true&\
                 trim_age_ms={trim_age_ms}"
            ),
            Self::Directory(path) => {
                format!("file-object:{}?trim_age_ms={trim_age_ms}", path.join(name).display())
            }
        }
    }

    /// Deletes a log, as an operator does.
    pub fn delete(&self, name: &str) {
        match self {
            Self::S3 { .. } => tell(&format!("delete {} {name}", self.endpoint())),
            Self::Directory(path) => {
                std::fs::remove_dir_all(path.join(name)).expect("the log is there");
            }
        }
    }

    pub fn endpoint(&self) -> &str {
        match self {
            Self::S3 { endpoint } => endpoint,
            Self::Directory(_) => "",
        }
    }
}

/// Has the harness do something to the first server, and waits until it is done.
#[allow(clippy::disallowed_methods, reason = "the test is the client")]
pub fn tell(order: &str) {
    let address = std::env::var("KILN_TEST_S3_CONTROL").expect("the harness names its port");
    let mut orders = TcpStream::connect(address).expect("the harness listens");
    writeln!(orders, "{order}").expect("the harness listens");
    let mut answer = String::new();
    BufReader::new(orders).read_line(&mut answer).expect("the harness answers");
    assert_eq!(answer.trim(), "done", "{order}");
}

pub fn entropy() -> u64 {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("the kernel has entropy");
    u64::from_le_bytes(bytes)
}

pub fn fresh_name() -> String {
    format!("log-{:016x}", entropy())
}

pub fn open(url: &str, waker: Waker) -> RemoteLog {
    let store = objects::open(url, waker, entropy()).expect("the log opens");
    RemoteLog::new(Box::new(store), Arc::new(RealClock))
}

/// A handle for whoever polls all the time.
pub fn open_polled(url: &str) -> RemoteLog {
    open(url, Waker(Arc::new(|| {})))
}

#[allow(clippy::disallowed_methods, reason = "the test is the world")]
pub fn now() -> Instant {
    Instant::now()
}

#[allow(clippy::disallowed_methods, reason = "the test is the world")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}
