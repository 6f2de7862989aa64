//! Running out of file descriptors. A test binary of its own: the limit is the process's.
#![allow(clippy::disallowed_methods, reason = "the test is the client")]

use base::driver::{Driver, Event};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::io::{ErrorKind, Read};
use std::net::TcpStream;
use std::time::Duration;
use world::net::{NetDriver, NetOptions};

/// Waits that a driver may need for a handful of connections; one that spins needs thousands.
const WAITS_MAX: usize = 50;

#[test]
fn new_clients_are_closed_and_old_ones_served_when_descriptors_run_out() {
    let mut driver = NetDriver::bind(&NetOptions {
        bind: vec!["127.0.0.1".to_owned()],
        port: Some(0),
        catch_signals: false,
        ..NetOptions::default()
    })
    .expect("loopback has ports");
    let port = driver.local_port().expect("a TCP listener");
    let connect = || TcpStream::connect(("127.0.0.1", port)).expect("the backlog has room");

    // Clients of this process need descriptors, too, so they connect before there are none.
    let mut clients: Vec<TcpStream> = (0..20).map(|_| connect()).collect();
    let highest_open = clients.iter().map(std::os::fd::AsRawFd::as_raw_fd).max().expect("some");
    let limits = getrlimit(Resource::Nofile);
    // Room for five of the twenty on the driver's side.
    let mut lowered = limits;
    lowered.current = Some(highest_open as u64 + 1 + 5);
    setrlimit(Resource::Nofile, lowered).expect("is lowered");

    let mut events = Vec::new();
    for _ in 0..WAITS_MAX {
        driver.wait(Some(1_000_000), &mut events);
    }
    setrlimit(Resource::Nofile, limits).expect("is raised");

    let accepted: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::Accepted { connection, .. } => Some(*connection),
            _ => None,
        })
        .collect();
    assert_eq!(accepted.len(), 5, "{events:?}");
    let mut closed = 0;
    for client in &mut clients {
        client.set_read_timeout(Some(Duration::from_millis(10))).expect("is set");
        match client.read(&mut [0; 1]) {
            Ok(0) => closed += 1,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            other => panic!("unexpected {other:?}"),
        }
    }
    assert_eq!(closed, 15, "every client that found no room was told");
    for id in accepted {
        assert_eq!(driver.send(id, b"hello"), base::driver::Sent::Bytes(5));
    }
}
