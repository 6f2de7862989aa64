//! The world around a test: its clock, chance, and the harness that started the servers.

use base::{Clock, MonotonicNanos};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long anything may take, elections included, on a machine that is busy, before it is called
/// missing.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Has the harness do something to the servers, and waits until it is done. Its answer.
pub fn tell(order: &str) -> String {
    let address = std::env::var("KILN_TEST_CONTROL").expect("the harness names its port");
    #[expect(clippy::disallowed_methods, reason = "a test speaks to its harness")]
    let mut orders = TcpStream::connect(address).expect("the harness listens");
    writeln!(orders, "{order}").expect("the harness listens");
    let mut answer = String::new();
    BufReader::new(orders).read_line(&mut answer).expect("the harness answers");
    let answer = answer.trim().to_owned();
    assert!(!answer.is_empty() && !answer.starts_with("error"), "{order}: {answer}");
    answer
}

/// Faults in a row that the environment asks for, in the long form of a test.
pub fn faults() -> Option<u64> {
    let count = std::env::var("KILN_TEST_FAULTS").ok()?;
    Some(count.parse().expect("KILN_TEST_FAULTS is a number"))
}

/// Random enough for names and identities that no two runs share.
pub fn entropy() -> u64 {
    let mut bytes = [0; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .expect("the kernel has entropy");
    u64::from_le_bytes(bytes)
}

pub fn fresh_name() -> String {
    format!("test-{:016x}", entropy())
}

#[expect(clippy::disallowed_methods, reason = "a test of the real world needs its clock")]
pub fn now() -> Instant {
    Instant::now()
}

struct Running(Instant);

impl Clock for Running {
    fn unix_micros(&self) -> i64 {
        0
    }
    fn monotonic(&self) -> MonotonicNanos {
        MonotonicNanos(self.0.elapsed().as_nanos() as u64)
    }
}

/// A clock that begins to count when it is made.
pub fn clock() -> Arc<dyn Clock> {
    Arc::new(Running(now()))
}

#[expect(clippy::disallowed_methods, reason = "a test of the real world waits for it")]
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        pause(Duration::from_millis(20));
    }
}
