//! The driver against real sockets on the loopback interface.
#![allow(clippy::disallowed_methods, reason = "the tests are the clients")]

mod tls;

use super::*;
use base::machine::Listening;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

const SECOND_NANOS: u64 = 1_000_000_000;

fn options() -> NetOptions {
    NetOptions {
        bind: vec!["127.0.0.1".to_owned()],
        port: Some(0),
        catch_signals: false,
        ..NetOptions::default()
    }
}

fn driver() -> NetDriver {
    NetDriver::bind(&options()).expect("loopback has ports")
}

fn connect(driver: &NetDriver) -> TcpStream {
    let port = driver.local_port().expect("a TCP listener");
    TcpStream::connect(("127.0.0.1", port)).expect("the driver listens")
}

/// Waits until `wanted` picks something from an event; fails after two minutes.
fn wait_for<T>(driver: &mut NetDriver, mut wanted: impl FnMut(&Event) -> Option<T>) -> T {
    let mut events = Vec::new();
    for _ in 0..1200 {
        driver.wait(Some(SECOND_NANOS / 10), &mut events);
        for event in events.drain(..) {
            if let Some(found) = wanted(&event) {
                return found;
            }
        }
    }
    panic!("the event did not come");
}

fn accept(driver: &mut NetDriver) -> ConnectionId {
    wait_for(driver, |event| match event {
        Event::Accepted { connection, .. } => Some(*connection),
        _ => None,
    })
}

#[test]
fn a_hundred_connections_get_their_bytes_back() {
    let mut driver = driver();
    let port = driver.local_port().expect("a TCP listener");
    let clients: Vec<_> = (0..100_u32)
        .map(|number| {
            thread::spawn(move || {
                let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connects");
                for round in 0..20_u32 {
                    let said = format!("client {number} round {round}\r\n");
                    stream.write_all(said.as_bytes()).expect("is taken");
                    let mut heard = vec![0; said.len()];
                    stream.read_exact(&mut heard).expect("comes back");
                    assert_eq!(heard, said.as_bytes());
                }
            })
        })
        .collect();

    let mut events = Vec::new();
    let mut seen = BTreeSet::new();
    let mut closed = 0;
    let deadline = Instant::now() + Duration::from_secs(300);
    while closed < 100 {
        assert!(Instant::now() < deadline, "{closed} of 100 clients are done");
        driver.wait(Some(SECOND_NANOS), &mut events);
        for event in events.drain(..) {
            match event {
                Event::Accepted { connection, peer } => {
                    assert!(seen.insert(connection), "an id came twice");
                    assert!(peer.is_local && peer.address.starts_with("127.0.0.1:"));
                    assert_eq!(peer.local, format!("127.0.0.1:{port}"));
                }
                Event::Readable(connection) => {
                    let mut bytes = Vec::new();
                    match driver.receive(connection, &mut bytes, 16) {
                        Received::Bytes { count, .. } => {
                            assert_eq!(count, bytes.len());
                            assert_eq!(driver.send(connection, &bytes), Sent::Bytes(count));
                        }
                        Received::WouldBlock => {}
                        Received::Closed => {
                            driver.close(connection);
                            closed += 1;
                        }
                    }
                }
                Event::Ended(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }
    assert_eq!(driver.connections_count(), 0);
    for client in clients {
        client.join().expect("the client saw what it said");
    }
}

#[test]
fn ids_are_not_reused_after_a_close() {
    let mut driver = driver();
    let mut seen = BTreeSet::new();
    for _ in 0..50 {
        let _client = connect(&driver);
        let id = accept(&mut driver);
        assert!(seen.insert(id));
        driver.close(id);
        assert_eq!(driver.send(id, b"x"), Sent::Closed);
        assert_eq!(driver.receive(id, &mut Vec::new(), 1), Received::Closed);
    }
}

fn short_send_resumes(mut driver: NetDriver, mut client: impl Read + Send + 'static) {
    let id = accept(&mut driver);
    let bytes: Vec<u8> = (0..8 << 20).map(|index: u32| (index % 251) as u8).collect();
    let Sent::Bytes(mut sent) = driver.send(id, &bytes) else { panic!("closed") };
    assert!(sent < bytes.len(), "the socket buffer took everything: make the test larger");
    let length = bytes.len();
    let reader = thread::spawn(move || {
        let mut heard = vec![0; length];
        client.read_exact(&mut heard).expect("everything comes");
        heard
    });
    while sent < length {
        wait_for(&mut driver, |event| (*event == Event::Writable(id)).then_some(()));
        let Sent::Bytes(more) = driver.send(id, &bytes[sent..]) else { panic!("closed") };
        sent += more;
    }
    assert!(reader.join().expect("reads") == bytes);
}

#[test]
fn a_short_send_resumes_when_writable() {
    let driver = driver();
    let client = connect(&driver);
    short_send_resumes(driver, client);
}

#[test]
fn a_short_send_to_a_unix_socket_resumes_when_writable() {
    let path = std::env::temp_dir().join(format!("kiln-short-{}.sock", std::process::id()));
    let driver =
        NetDriver::bind(&NetOptions { port: None, unix_socket: Some(path.clone()), ..options() })
            .expect("binds");
    let client = UnixStream::connect(&path).expect("the driver listens");
    short_send_resumes(driver, client);
    assert!(!path.exists(), "the socket's file stayed behind");
}

#[test]
fn a_unix_socket_has_the_mode_asked_for_and_is_local() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("kiln-mode-{}.sock", std::process::id()));
    std::fs::write(&path, b"stale").expect("a stale file");
    let mut driver = NetDriver::bind(&NetOptions {
        port: None,
        unix_socket: Some(path.clone()),
        unix_socket_permissions: Some(0o700),
        ..options()
    })
    .expect("replaces the stale file");
    let mode = std::fs::metadata(&path).expect("exists").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    let mut client = UnixStream::connect(&path).expect("the driver listens");
    client.write_all(b"last words").expect("is taken");
    drop(client);
    let mut connection = None;
    let (id, is_readable) = wait_for(&mut driver, |event| match event {
        Event::Accepted { connection: id, peer } => {
            assert!(peer.is_local);
            assert_eq!(peer.address, format!("{}:0", path.display()));
            connection = Some(*id);
            None
        }
        event => connection.map(|id| (id, *event == Event::Readable(id))),
    });
    assert!(is_readable);
    let mut bytes = Vec::new();
    assert_eq!(driver.receive(id, &mut bytes, 100), Received::Bytes { count: 10, more: false });
    assert_eq!(bytes, b"last words");
    assert_eq!(driver.receive(id, &mut bytes, 100), Received::Closed);
}

#[test]
fn what_is_not_received_is_reported_again() {
    let mut driver = driver();
    let mut client = connect(&driver);
    let id = accept(&mut driver);
    client.write_all(b"abcdef").expect("is taken");
    let mut bytes = Vec::new();
    for expected in [b"ab".as_slice(), b"abcd", b"abcdef"] {
        wait_for(&mut driver, |event| (*event == Event::Readable(id)).then_some(()));
        assert_eq!(driver.receive(id, &mut bytes, 2), Received::Bytes { count: 2, more: true });
        assert_eq!(bytes, expected);
    }
    // The socket is empty, but only the kernel can tell after a full receive.
    assert_eq!(driver.receive(id, &mut bytes, 2), Received::WouldBlock);
    let mut events = Vec::new();
    driver.wait(Some(0), &mut events);
    assert_eq!(events, []);
    drop(client);
    wait_for(&mut driver, |event| (*event == Event::Readable(id)).then_some(()));
    assert_eq!(driver.receive(id, &mut bytes, 2), Received::Closed);
}

#[test]
fn a_connection_that_is_not_read_from_is_silent_until_resumed() {
    let mut driver = driver();
    let mut client = connect(&driver);
    let id = accept(&mut driver);
    driver.set_reading(id, false);
    client.write_all(b"abc").expect("is taken");
    let mut events = Vec::new();
    driver.wait(Some(SECOND_NANOS / 20), &mut events);
    assert_eq!(events, []);
    driver.set_reading(id, true);
    driver.wait(Some(SECOND_NANOS), &mut events);
    assert_eq!(events, [Event::Readable(id)]);
    let mut bytes = Vec::new();
    assert_eq!(driver.receive(id, &mut bytes, 100), Received::Bytes { count: 3, more: false });
}

#[test]
fn the_end_of_a_connection_that_is_not_read_from_is_told_once() {
    let mut driver = driver();
    let mut client = connect(&driver);
    let id = accept(&mut driver);
    driver.set_reading(id, false);
    client.write_all(b"abc").expect("is taken");
    drop(client);
    wait_for(&mut driver, |event| (*event == Event::Ended(id)).then_some(()));
    let mut events = Vec::new();
    driver.wait(Some(SECOND_NANOS / 20), &mut events);
    assert_eq!(events, []);
    // What came before it is still there.
    driver.set_reading(id, true);
    driver.wait(Some(SECOND_NANOS), &mut events);
    assert_eq!(events, [Event::Readable(id)]);
    let mut bytes = Vec::new();
    assert_eq!(driver.receive(id, &mut bytes, 100), Received::Bytes { count: 3, more: false });
    assert_eq!(driver.receive(id, &mut bytes, 100), Received::Closed);
}

#[test]
fn beyond_the_most_connections_who_comes_is_closed() {
    let room = Room { accepting_max: 2, dialing_max: 2 };
    let options = NetOptions { room: Some(room), ..options() };
    let mut driver = NetDriver::bind(&options).expect("loopback has ports");
    let (clients, ids): (Vec<_>, Vec<_>) =
        (0..2).map(|_| (connect(&driver), accept(&mut driver))).unzip();
    let mut late = connect(&driver);
    late.set_nonblocking(true).expect("is set");
    let mut events = Vec::new();
    let mut waits = 0;
    while late.read(&mut [0; 1]).map_err(|error| error.kind()) != Ok(0) {
        waits += 1;
        assert!(waits < 1200, "it is told");
        driver.wait(Some(SECOND_NANOS / 10), &mut events);
        assert_eq!(events, []);
    }
    // One goes, and the next one has its place.
    drop(clients);
    for id in ids {
        driver.close(id);
    }
    let _client = connect(&driver);
    accept(&mut driver);
}

#[test]
fn a_reset_breaks_the_connection() {
    let mut driver = driver();
    let client = connect(&driver);
    let id = accept(&mut driver);
    driver.set_reading(id, false);
    rustix::net::sockopt::set_socket_linger(&client, Some(Duration::ZERO)).expect("is set");
    drop(client);
    wait_for(&mut driver, |event| (*event == Event::Broken(id)).then_some(()));
    let mut events = Vec::new();
    driver.wait(Some(0), &mut events);
    assert_eq!(events, [], "a broken connection is reported once");
    assert_eq!(driver.send(id, b"x"), Sent::Closed);
}

#[test]
fn the_waker_ends_a_wait_and_is_remembered_before_one() {
    let mut driver = driver();
    let waker = driver.waker();
    let mut events = Vec::new();

    let before = Instant::now();
    waker.wake();
    driver.wait(None, &mut events);
    for _ in 0..3 {
        let waker = driver.waker();
        let thread = thread::spawn(move || {
            thread::sleep(Duration::from_millis(30));
            waker.wake();
        });
        driver.wait(Some(1000 * SECOND_NANOS), &mut events);
        thread.join().expect("wakes");
        // The wake-up may have left an edge behind.
        driver.wait(Some(0), &mut events);
    }
    assert!(before.elapsed() < Duration::from_secs(500), "a wait was not ended");
    assert_eq!(events, []);

    let before = Instant::now();
    driver.wait(Some(SECOND_NANOS / 20), &mut events);
    assert!(before.elapsed() >= Duration::from_millis(50), "nobody called the waker");
}

#[test]
fn connections_wait_while_accepting_is_off() {
    let mut driver = driver();
    driver.set_accepting(false);
    let _client = connect(&driver);
    let mut events = Vec::new();
    driver.wait(Some(SECOND_NANOS / 20), &mut events);
    assert_eq!(events, []);
    driver.set_accepting(true);
    accept(&mut driver);
}

#[test]
fn signals_ask_for_a_shutdown() {
    let mut driver = NetDriver::bind(&NetOptions { catch_signals: true, ..options() })
        .expect("loopback has ports");
    signal_hook::low_level::raise(signal_hook::consts::SIGTERM).expect("is raised");
    wait_for(&mut driver, |event| (*event == Event::Shutdown).then_some(()));
}

#[test]
fn bind_patterns_work_as_in_redis_conf() {
    let bound = |patterns: &[&str]| {
        let bind = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        NetDriver::bind(&NetOptions { bind, ..options() })
    };
    assert!(bound(&["*", "-::*"]).is_ok());
    assert!(bound(&["localhost"]).is_ok());
    // An address of a documentation network, which no machine has.
    let driver = bound(&["127.0.0.1", "-192.0.2.1"]).expect("the second one is optional");
    assert_eq!(driver.listeners.with(<[_]>::len), 1);
    let error = bound(&["192.0.2.1"]).err().expect("nobody has it").to_string();
    assert!(error.starts_with("cannot listen on 192.0.2.1:0: cannot bind: "), "{error}");
    let error = bound(&["-no.such.name.invalid"]).err().expect("not a name").to_string();
    assert!(error.contains("no.such.name.invalid, port 0: cannot resolve"), "{error}");
}

#[test]
fn it_listens_elsewhere_when_told_and_where_it_did_if_that_cannot_be() {
    let mut driver = driver();
    let first = driver.local_port().expect("a TCP listener");
    let other = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
    let taken = other.local_addr().expect("it is bound").port();
    let at = |port| Listening { bind: vec!["127.0.0.1".to_owned()], port, tls_port: 0 };
    let error = driver.listeners().reopen(&at(taken)).expect_err("somebody has it").to_string();
    assert!(error.contains("cannot"), "{error}");
    assert_eq!(driver.local_port(), Some(first));
    accepts(&mut driver, first);
    drop(other);
    driver.listeners().reopen(&at(taken)).expect("it is free now");
    assert_eq!(driver.local_port(), Some(taken));
    accepts(&mut driver, taken);
    TcpStream::connect(("127.0.0.1", first)).expect_err("nobody listens there");
}

/// A Unix socket stays where it is, and is heard, wherever else the server listens.
#[test]
fn a_unix_socket_is_heard_when_the_port_has_changed() {
    let path = std::env::temp_dir().join(format!("kiln-moved-{}.sock", std::process::id()));
    let options = NetOptions { unix_socket: Some(path.clone()), ..options() };
    let mut driver = NetDriver::bind(&options).expect("binds");
    let free = || {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
        listener.local_addr().expect("it is bound").port()
    };
    for port in [free(), 0, free()] {
        let listening = Listening { bind: vec!["127.0.0.1".to_owned()], port, tls_port: 0 };
        driver.listeners().reopen(&listening).expect("it is free");
        let client = UnixStream::connect(&path).expect("the driver listens");
        wait_for(&mut driver, |event| matches!(event, Event::Accepted { .. }).then_some(()));
        drop(client);
        if port != 0 {
            accepts(&mut driver, port);
        }
    }
}

/// Checks that a connection to the port is reported.
fn accepts(driver: &mut NetDriver, port: u16) {
    let _client = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
    wait_for(driver, |event| matches!(event, Event::Accepted { .. }).then_some(()));
}

#[test]
fn a_taken_port_is_named_in_the_error() {
    let first = driver();
    let port = first.local_port().expect("a TCP listener");
    let error = NetDriver::bind(&NetOptions { port: Some(port), ..options() });
    let error = error.err().expect("the port is taken").to_string();
    assert!(error.contains(&format!("127.0.0.1:{port}: cannot ")), "{error}");
    assert!(error.contains("in use"), "{error}");
}

#[test]
fn every_connection_of_a_storm_is_accepted_over_several_waits() {
    let mut driver = NetDriver::bind(&NetOptions { backlog: 1_000, ..options() }).expect("binds");
    let clients: Vec<_> = (0..300).map(|_| connect(&driver)).collect();
    let mut per_wait = BTreeMap::new();
    let mut events = Vec::new();
    let mut accepted = 0;
    for turn in 0..1_000 {
        driver.wait(Some(SECOND_NANOS / 100), &mut events);
        let in_this_wait =
            events.drain(..).filter(|event| matches!(event, Event::Accepted { .. })).count();
        assert!(in_this_wait <= ACCEPTS_PER_WAIT_MAX);
        per_wait.insert(turn, in_this_wait);
        accepted += in_this_wait;
        if accepted == clients.len() {
            return;
        }
    }
    panic!("{accepted} of 300 accepted: {per_wait:?}");
}

#[test]
fn connections_that_are_asked_for_carry_bytes_both_ways() {
    for host in ["127.0.0.1", "localhost"] {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
        let port = listener.local_addr().expect("is bound").port();
        let mut driver = driver();
        let id = driver.connect(&Endpoint::tcp(host, port));
        let peer = wait_for(&mut driver, |event| match event {
            Event::Connected { connection, peer } if *connection == id => Some(peer.clone()),
            Event::Unreachable { why, .. } => panic!("{host}: {why}"),
            _ => None,
        });
        let (mut stream, from) = listener.accept().expect("somebody connects");
        assert_eq!((peer.address, peer.local), (format!("127.0.0.1:{port}"), from.to_string()));
        assert_eq!(driver.send(id, b"hello"), Sent::Bytes(5));
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).expect("five bytes come");
        assert_eq!(&heard, b"hello");
        stream.write_all(b"back").expect("is taken");
        wait_for(&mut driver, |event| (*event == Event::Readable(id)).then_some(()));
        let mut bytes = Vec::new();
        assert_eq!(driver.receive(id, &mut bytes, 100), Received::Bytes { count: 4, more: false });
        drop(stream);
        wait_for(&mut driver, |event| (*event == Event::Readable(id)).then_some(()));
        assert_eq!(driver.receive(id, &mut bytes, 100), Received::Closed);
        driver.close(id);
        assert_eq!(driver.connections_count(), 0);
    }
}

#[test]
fn beyond_its_room_the_server_does_not_connect() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("is bound").port();
    let room = Room { accepting_max: 1, dialing_max: 3 };
    let mut driver = NetDriver::bind(&NetOptions { room: Some(room), ..options() }).unwrap();
    let _client = connect(&driver);
    let accepted = accept(&mut driver);
    let dial = |driver: &mut NetDriver| {
        let id = driver.connect(&Endpoint::tcp("127.0.0.1", port));
        let why = wait_for(driver, |event| match event {
            Event::Connected { connection, .. } if *connection == id => Some(None),
            Event::Unreachable { connection, why } if *connection == id => Some(Some(why.clone())),
            _ => None,
        });
        why.map_or(Ok(id), Err)
    };
    let first = dial(&mut driver).expect("there is room");
    dial(&mut driver).expect("there is room");
    assert_eq!(dial(&mut driver), Err("too many connections are open".to_owned()));
    driver.close(first);
    let again = dial(&mut driver).expect("there is room again");
    driver.close(accepted);
    driver.close(again);
    assert_eq!(driver.connections_count(), 1);
}

#[test]
fn a_host_that_cannot_be_reached_is_said_so_and_forgotten() {
    let mut driver = driver();
    // Reserved, and not among the ports that the system gives out: nobody listens on it.
    let port = 1;
    for (host, wanted) in [("127.0.0.1", "refused"), ("no.such.name.invalid", "look the name up")] {
        let id = driver.connect(&Endpoint::tcp(host, port));
        let why = wait_for(&mut driver, |event| match event {
            Event::Unreachable { connection, why } if *connection == id => Some(why.clone()),
            _ => None,
        });
        assert!(why.contains(wanted), "{why}");
        assert_eq!(driver.send(id, b"x"), Sent::Closed);
        assert_eq!(driver.connections_count(), 0);
    }
}

#[test]
fn a_connection_closed_while_it_is_had_is_not_heard_of_again() {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("loopback has ports");
    let port = listener.local_addr().expect("is bound").port();
    let mut driver = driver();
    for host in ["127.0.0.1", "localhost", "no.such.name.invalid"] {
        let id = driver.connect(&Endpoint::tcp(host, port));
        driver.close(id);
    }
    let mut events = Vec::new();
    for _ in 0..20 {
        driver.wait(Some(SECOND_NANOS / 50), &mut events);
    }
    assert_eq!(events, []);
    assert_eq!(driver.connections_count(), 0);
}
