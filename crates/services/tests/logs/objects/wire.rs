//! What lies between a writer and its server, and can keep requests back.

use crate::outside::PATIENCE;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// A port of its own in front of a server.
#[derive(Clone)]
pub struct Wire {
    port: u16,
    state: Arc<(Mutex<Held>, Condvar)>,
}

#[derive(Default)]
struct Held {
    holds: bool,
    requests: Vec<u8>,
    /// The first lines of the server's answers since the wire held.
    answers: Vec<u8>,
}

impl Wire {
    pub fn to(endpoint: &str) -> Self {
        #[allow(clippy::disallowed_methods, reason = "the test is the network")]
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let port = listener.local_addr().expect("it listens").port();
        let server = endpoint.strip_prefix("http://").expect("plain HTTP").to_owned();
        let wire = Self { port, state: Arc::default() };
        let of_thread = wire.clone();
        spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(server) = connect(&server) else { continue };
                of_thread.join(client, server);
            }
        });
        wire
    }

    pub fn endpoint(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn join(&self, client: TcpStream, server: TcpStream) {
        let (mut from_client, mut to_server) = (clone(&client), clone(&server));
        let wire = self.clone();
        spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from_client.read(&mut buffer) {
                wire.pass(&buffer[..length]);
                if to_server.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            // The server may have closed it first: then there is nobody left to tell.
            let _ = to_server.shutdown(Shutdown::Write);
        });
        let (mut from_server, mut to_client, wire) = (server, client, self.clone());
        spawn(move || {
            let mut buffer = vec![0; 64 << 10];
            while let Ok(length @ 1..) = from_server.read(&mut buffer) {
                let line = buffer[..length].split(|byte| *byte == b'\r').next();
                wire.held().answers.extend_from_slice(line.unwrap_or_default());
                wire.state.1.notify_all();
                if to_client.write_all(&buffer[..length]).is_err() {
                    break;
                }
            }
            // As above, with the client.
            let _ = to_client.shutdown(Shutdown::Write);
        });
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.state.0.lock().expect("no test panics here")
    }

    /// Waits as long as the wire holds.
    fn pass(&self, bytes: &[u8]) {
        let mut held = self.held();
        if held.holds {
            held.requests.extend_from_slice(bytes);
            self.state.1.notify_all();
        }
        while held.holds {
            held = self.state.1.wait(held).expect("no test panics here");
        }
    }

    pub fn hold(&self) {
        *self.held() = Held { holds: true, ..Held::default() };
    }

    pub fn until_held(&self, what: &str) {
        let mut held = self.held();
        while !String::from_utf8_lossy(&held.requests).contains(what) {
            let (next, wait) =
                self.state.1.wait_timeout(held, PATIENCE).expect("no test panics here");
            assert!(!wait.timed_out(), "the request never came");
            held = next;
        }
    }

    /// Lets everything through, and waits for the server's answer: whether it took the record.
    pub fn release(&self) -> bool {
        let mut held = self.held();
        held.holds = false;
        self.state.1.notify_all();
        while held.answers.is_empty() {
            let (next, wait) =
                self.state.1.wait_timeout(held, PATIENCE).expect("no test panics here");
            assert!(!wait.timed_out(), "the server never answered");
            held = next;
        }
        held.answers.starts_with(b"HTTP/1.1 200")
    }
}

fn clone(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("descriptors are left")
}

#[allow(clippy::disallowed_methods, reason = "the test is the network")]
fn connect(address: &str) -> std::io::Result<TcpStream> {
    TcpStream::connect(address)
}

#[allow(clippy::disallowed_methods, reason = "the test is the network")]
fn spawn(work: impl FnOnce() + Send + 'static) {
    std::thread::spawn(work);
}
