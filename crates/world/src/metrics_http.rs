//! Answers `GET /metrics` over HTTP/1.1, for Prometheus.
//!
//! One thread, one connection at a time, each with a deadline and a limit on its request: whoever
//! scrapes comes every few seconds, and whoever does anything else cannot cost more than that. A
//! web framework would be the larger part of what it serves. The text comes from a function that
//! the owner of the numbers hands in, and is asked for on this thread.

use crate::clock::RealClock;
use base::time::{Clock, MonotonicNanos};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longest request, its header included. Prometheus sends some 300 bytes.
const REQUEST_BYTES_MAX: usize = 8 << 10;

/// How long a connection may last, from its accept to its close. A guess: a scrape on a busy
/// machine takes milliseconds.
const CONNECTION_NANOS_MAX: u64 = 1_000_000_000;

/// How long accepting rests when the system is out of descriptors.
const REST: Duration = Duration::from_millis(100);

/// Gives the metrics in Prometheus's text format.
pub type MetricsProvider = Arc<dyn Fn() -> String + Send + Sync>;

/// The thread. Dropping it stops it, which takes until the connection at hand has ended.
#[derive(Debug)]
pub struct MetricsServer {
    local: SocketAddr,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens and answers from now on. With port 0 the kernel chooses one.
    ///
    /// # Errors
    /// The address cannot be had, or the system has no thread to give.
    #[allow(clippy::disallowed_methods, reason = "sockets belong to this crate")]
    pub fn start(address: SocketAddr, provider: MetricsProvider) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let local = listener.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let is_stopped = Arc::clone(&stop);
        let serve = move || serve(&listener, &is_stopped, &provider);
        let thread = thread::Builder::new().name("metrics".to_owned()).spawn(serve)?;
        Ok(Self { local, stop, thread: Some(thread) })
    }

    /// The port that it listens on.
    pub fn local_port(&self) -> u16 {
        self.local.port()
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        // A first write to an eventfd does not fail.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            // Its panic, from the provider, has been reported already.
            let _ = thread.join();
        }
    }
}

fn serve(listener: &TcpListener, stop: &OwnedFd, provider: &MetricsProvider) {
    loop {
        let mut sources = [PollFd::new(stop, PollFlags::IN), PollFd::new(listener, PollFlags::IN)];
        match poll(&mut sources, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => {
                tracing::error!(%error, "metrics are not served any more");
                return;
            }
        }
        if !sources[0].revents().is_empty() {
            return;
        }
        match listener.accept() {
            // The client's failure is its own; nothing of ours depends on it.
            Ok((stream, _)) => drop(answer(stream, provider)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => rest(),
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "this thread is of this crate, and not the loop's")]
fn rest() {
    thread::sleep(REST);
}

/// Reads one request, answers it and closes.
fn answer(mut stream: TcpStream, provider: &MetricsProvider) -> io::Result<()> {
    let deadline = MonotonicNanos(RealClock.monotonic().0 + CONNECTION_NANOS_MAX);
    stream.set_nonblocking(false)?;
    let response = match read_head(&mut stream, deadline)? {
        Some(head) => respond(&head, provider),
        None => plain("431 Request Header Fields Too Large", "the request is too long\n"),
    };
    stream.set_write_timeout(Some(left_until(deadline)?))?;
    stream.write_all(&response)?;
    stream.shutdown(Shutdown::Write)?;
    // Bytes that were not read would turn the close into a reset, and the reset could overtake
    // the response.
    let mut discarded = [0; 1024];
    for _ in 0..64 {
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        if stream.read(&mut discarded)? == 0 {
            break;
        }
    }
    Ok(())
}

/// The request up to the empty line; `None` if it is longer than allowed.
fn read_head(stream: &mut TcpStream, deadline: MonotonicNanos) -> io::Result<Option<Vec<u8>>> {
    let mut head = vec![0; REQUEST_BYTES_MAX];
    let mut length = 0;
    while length < REQUEST_BYTES_MAX {
        stream.set_read_timeout(Some(left_until(deadline)?))?;
        match stream.read(&mut head[length..])? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            count => length += count,
        }
        if let Some(end) = head[..length].windows(4).position(|window| window == b"\r\n\r\n") {
            head.truncate(end);
            return Ok(Some(head));
        }
    }
    Ok(None)
}

fn left_until(deadline: MonotonicNanos) -> io::Result<Duration> {
    match deadline.since(RealClock.monotonic()) {
        0 => Err(ErrorKind::TimedOut.into()),
        nanos => Ok(Duration::from_nanos(nanos)),
    }
}

fn respond(head: &[u8], provider: &MetricsProvider) -> Vec<u8> {
    let line = head.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let words: Vec<&[u8]> = line.split(|&byte| byte == b' ').collect();
    let [method, target, version] = words[..] else {
        return plain("400 Bad Request", "not an HTTP request\n");
    };
    if !version.starts_with(b"HTTP/1.") {
        return plain("505 HTTP Version Not Supported", "HTTP/1.1 is spoken here\n");
    }
    let path = target.split(|&byte| byte == b'?').next().unwrap_or_default();
    match (path, method) {
        (b"/metrics", b"GET") => response("200 OK", METRICS_TYPE, "", &provider(), true),
        (b"/metrics", b"HEAD") => response("200 OK", METRICS_TYPE, "", &provider(), false),
        (b"/metrics", _) => {
            let allow = "Allow: GET, HEAD\r\n";
            response("405 Method Not Allowed", PLAIN_TYPE, allow, "GET it\n", true)
        }
        _ => plain("404 Not Found", "metrics are at /metrics\n"),
    }
}

/// The version of Prometheus's text format.
const METRICS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
const PLAIN_TYPE: &str = "text/plain; charset=utf-8";

fn plain(status: &str, body: &str) -> Vec<u8> {
    response(status, PLAIN_TYPE, "", body, true)
}

fn response(status: &str, media: &str, headers: &str, body: &str, with_body: bool) -> Vec<u8> {
    let length = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {media}\r\nContent-Length: {length}\r\n\
         {headers}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "the tests are the clients")]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Instant;

    fn server() -> MetricsServer {
        let scrapes = AtomicU64::new(0);
        let provider = move || format!("scrapes {}\n", scrapes.fetch_add(1, Ordering::Relaxed));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        MetricsServer::start(address, Arc::new(provider)).expect("loopback has ports")
    }

    fn connect(server: &MetricsServer) -> TcpStream {
        TcpStream::connect((Ipv4Addr::LOCALHOST, server.local_port())).expect("it listens")
    }

    fn ask(server: &MetricsServer, request: &[u8]) -> String {
        let mut stream = connect(server);
        stream.write_all(request).expect("is taken");
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("is text");
        response
    }

    #[test]
    fn metrics_are_asked_for_at_each_scrape() {
        let server = server();
        for scrape in 0..3 {
            let response = ask(&server, b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
            assert_eq!(
                response,
                format!(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n\
                     Content-Length: 10\r\nConnection: close\r\n\r\nscrapes {scrape}\n"
                )
            );
        }
        let head = ask(&server, b"HEAD /metrics?x=y HTTP/1.0\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("close\r\n\r\n"), "{head}");
    }

    #[test]
    fn anything_else_is_refused_by_its_status() {
        let server = server();
        for (request, status) in [
            (b"GET / HTTP/1.1\r\n\r\n".as_slice(), "404"),
            (b"GET /metrics2 HTTP/1.1\r\n\r\n", "404"),
            (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "405"),
            (b"GET /metrics HTTP/2.0\r\n\r\n", "505"),
            (b"*1\r\n$4\r\nPING\r\n\r\n", "400"),
            (&[b'x'; REQUEST_BYTES_MAX + 100], "431"),
        ] {
            let response = ask(&server, request);
            assert!(response.starts_with(&format!("HTTP/1.1 {status} ")), "{response}");
        }
    }

    #[test]
    fn a_request_may_come_in_pieces() {
        let server = server();
        let mut stream = connect(&server);
        for piece in [b"GET /met".as_slice(), b"rics HTTP/1.1\r", b"\n\r", b"\n"] {
            stream.write_all(piece).expect("is taken");
            thread::sleep(Duration::from_millis(5));
        }
        let mut response = String::new();
        stream.read_to_string(&mut response).expect("is text");
        assert!(response.ends_with("scrapes 0\n"), "{response}");
    }

    #[test]
    fn a_silent_client_holds_up_others_no_longer_than_its_deadline() {
        let server = server();
        let _silent = connect(&server);
        let before = Instant::now();
        let response = ask(&server, b"GET /metrics HTTP/1.1\r\n\r\n");
        assert!(response.starts_with("HTTP/1.1 200 "));
        assert!(before.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn a_stopped_server_gives_its_port_back() {
        let server = server();
        let port = server.local_port();
        drop(server);
        assert!(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err());
    }
}
