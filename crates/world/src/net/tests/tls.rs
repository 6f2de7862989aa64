//! Encrypted connections, with clients by rustls on threads of their own.

use super::*;
use crate::tls::test_authority::TestAuthority;
use base::tls::ClientAuth;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::path::Path;

type Client = StreamOwned<ClientConnection, TcpStream>;

fn listening(authority: &TestAuthority, client_auth: ClientAuth) -> NetDriver {
    let tls = Arc::new(Tls::default());
    tls.adopt(&authority.settings("server", client_auth)).expect("good certificates");
    let options = NetOptions { port: None, tls_port: Some(0), tls, ..options() };
    NetDriver::bind(&options).expect("loopback has ports")
}

/// What a client trusts and shows.
fn client_config(authority: &TestAuthority, name: Option<&str>) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority.folder.join("ca.crt")).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    Arc::new(match name {
        None => builder.with_no_client_auth(),
        Some(name) => {
            let pair = authority.issue(name);
            let chain = vec![CertificateDer::from_pem_file(&pair.certificate).unwrap()];
            builder
                .with_client_auth_cert(chain, PrivateKeyDer::from_pem_file(&pair.key).unwrap())
                .unwrap()
        }
    })
}

fn dial(driver: &NetDriver, config: &Arc<ClientConfig>) -> Client {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    StreamOwned::new(connection, connect(driver))
}

/// Answers every byte with itself until all clients have gone; who they were.
fn echo(driver: &mut NetDriver, clients: usize) -> Vec<Option<Vec<u8>>> {
    let (mut names, mut closed, mut events) = (Vec::new(), 0, Vec::new());
    let mut waiting: BTreeMap<ConnectionId, Vec<u8>> = BTreeMap::new();
    let deadline = Instant::now() + Duration::from_secs(120);
    while closed < clients {
        assert!(Instant::now() < deadline, "{closed} of {clients} clients are done");
        driver.wait(Some(SECOND_NANOS / 10), &mut events);
        for event in events.drain(..) {
            let id = event.connection().expect("about a connection");
            match event {
                Event::Accepted { peer, .. } => names.push(peer.common_name),
                Event::Readable(_) => {
                    let bytes = waiting.entry(id).or_default();
                    if driver.receive(id, bytes, 100_000) == Received::Closed {
                        driver.close(id);
                        closed += 1;
                    }
                }
                Event::Writable(_) => {}
                Event::Ended(_) => continue,
                other => panic!("unexpected {other:?}"),
            }
            let Some(bytes) = waiting.get_mut(&id).filter(|bytes| !bytes.is_empty()) else {
                continue;
            };
            if let Sent::Bytes(count) = driver.send(id, bytes) {
                bytes.drain(..count);
            }
        }
    }
    names
}

#[test]
fn what_is_encrypted_arrives_both_ways_whoever_is_slow() {
    let authority = TestAuthority::new("echo");
    let mut driver = listening(&authority, ClientAuth::No);
    let clients: Vec<_> = (0..8_usize)
        .map(|number| {
            let mut stream = dial(&driver, &client_config(&authority, None));
            thread::spawn(move || {
                for round in 0..40 {
                    let length = 1 + (number * 31 + round * 7919) % 200_000;
                    let said: Vec<u8> = (0..length).map(|at| (at * 7 + number) as u8).collect();
                    stream.write_all(&said).expect("is taken");
                    if round % 10 == 0 {
                        thread::sleep(Duration::from_millis(5));
                    }
                    let mut heard = vec![0; said.len()];
                    stream.read_exact(&mut heard).expect("comes back");
                    assert!(heard == said);
                }
                stream.conn.send_close_notify();
                stream.flush().expect("a goodbye");
            })
        })
        .collect();
    let names = echo(&mut driver, 8);
    assert_eq!(names, vec![None; 8]);
    clients.into_iter().for_each(|client| client.join().expect("all came back"));
    assert_eq!(driver.connections_count(), 0);
}

#[test]
fn what_counts_as_sent_arrives_although_the_connection_is_closed_at_once() {
    let authority = TestAuthority::new("sent");
    let mut driver = listening(&authority, ClientAuth::No);
    let mut stream = dial(&driver, &client_config(&authority, None));
    let reader = thread::spawn(move || {
        stream.write_all(b"x").expect("is taken");
        thread::sleep(Duration::from_millis(300));
        let mut heard = Vec::new();
        // The goodbye may have found no room.
        let _ = stream.read_to_end(&mut heard);
        heard
    });
    let id = accept(&mut driver);
    // A socket that is closed with something unread would not send what it has.
    let mut asked = Vec::new();
    while asked.is_empty() {
        driver.wait(Some(SECOND_NANOS / 100), &mut Vec::new());
        driver.receive(id, &mut asked, 10);
    }
    let bytes: Vec<u8> = (0..20_000_000_u32).map(|at| (at % 251) as u8).collect();
    let mut sent = 0;
    // Until the kernel takes no more.
    while let Sent::Bytes(count) = driver.send(id, &bytes[sent..]) {
        sent += count;
        if count == 0 || sent == bytes.len() {
            break;
        }
    }
    assert!(sent > 16 << 10 && sent < bytes.len(), "{sent} of a socket's buffer");
    driver.close(id);
    let heard = reader.join().expect("it reads");
    assert_eq!(heard.len(), sent);
    assert!(heard == bytes[..sent]);
}

#[test]
fn a_certificate_says_who_a_client_is() {
    let authority = TestAuthority::new("who");
    for (auth, name, is_let_in) in [
        (ClientAuth::Required, Some("alice"), true),
        (ClientAuth::Required, None, false),
        (ClientAuth::Optional, Some("bob"), true),
        (ClientAuth::Optional, None, true),
    ] {
        let mut driver = listening(&authority, auth);
        let mut stream = dial(&driver, &client_config(&authority, name));
        let client = thread::spawn(move || {
            let mut heard = [0; 2];
            stream.write_all(b"hi").and_then(|()| stream.read_exact(&mut heard)).is_ok()
        });
        if is_let_in {
            let names = echo(&mut driver, 1);
            assert_eq!(names, [name.map(|name| name.as_bytes().to_vec())]);
        } else {
            turn_until(&mut driver, |_| client.is_finished());
        }
        assert_eq!(client.join().unwrap(), is_let_in, "{auth:?} {name:?}");
        assert_eq!(driver.connections_count(), 0);
    }
}

/// Waits again and again, with nothing to hear.
fn turn_until(driver: &mut NetDriver, is_over: impl Fn(&NetDriver) -> bool) {
    let (mut events, deadline) = (Vec::new(), Instant::now() + Duration::from_secs(60));
    while !is_over(driver) {
        assert!(Instant::now() < deadline, "it does not end");
        driver.wait(Some(SECOND_NANOS / 100), &mut events);
        assert_eq!(events, [], "nobody is accepted");
    }
}

/// Asks for an encrypted connection from one driver to another; what the one that asks hears, and
/// the name that the other one is shown.
fn dial_over(
    authority: &TestAuthority,
    from: &str,
    to: &mut NetDriver,
) -> (Event, Option<Vec<u8>>) {
    let tls = Arc::new(Tls::default());
    tls.adopt(&authority.settings(from, ClientAuth::No)).expect("good certificates");
    let mut caller = NetDriver::bind(&NetOptions { port: None, tls, ..options() }).unwrap();
    let port = to.local_port().expect("a listener");
    caller.connect(&base::driver::Endpoint::tcp("127.0.0.1", port).encrypted(true));
    let (mut events, mut name) = (Vec::new(), None);
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < deadline, "nothing comes of it");
        to.wait(Some(0), &mut events);
        for event in events.drain(..) {
            if let Event::Accepted { peer, .. } = event {
                name = peer.common_name;
            }
        }
        caller.wait(Some(SECOND_NANOS / 100), &mut events);
        let heard = events.drain(..).next();
        if let Some(Event::Connected { connection, .. }) = heard {
            assert_eq!(caller.send(connection, b"hello"), Sent::Bytes(5));
            let id = wait_for(to, |event| match event {
                Event::Accepted { connection, peer } => {
                    name.clone_from(&peer.common_name);
                    Some(*connection)
                }
                Event::Readable(connection) => Some(*connection),
                _ => None,
            });
            let mut bytes = Vec::new();
            while bytes.len() < 5 {
                to.receive(id, &mut bytes, 100);
                to.wait(Some(SECOND_NANOS / 100), &mut Vec::new());
            }
            assert_eq!(bytes, b"hello");
        }
        if let Some(event) = heard {
            return (event, name);
        }
    }
}

#[test]
fn servers_ask_for_encrypted_connections_and_show_who_they_are() {
    let authority = TestAuthority::new("servers");
    let mut there = listening(&authority, ClientAuth::Required);
    let (heard, name) = dial_over(&authority, "replica", &mut there);
    assert!(matches!(heard, Event::Connected { .. }), "{heard:?}");
    assert_eq!(name, Some(b"replica".to_vec()));
}

#[test]
fn a_server_that_nobody_vouches_for_is_not_spoken_to() {
    let (authority, others) = (TestAuthority::new("believer"), TestAuthority::new("impostor"));
    let mut there = listening(&others, ClientAuth::No);
    let (heard, _) = dial_over(&authority, "replica", &mut there);
    let Event::Unreachable { why, .. } = heard else { panic!("{heard:?}") };
    assert!(why.contains("invalid peer certificate"), "{why}");
}

#[test]
fn who_speaks_no_tls_or_stops_amid_a_handshake_is_nobodys_client() {
    let authority = TestAuthority::new("strangers");
    let mut driver = listening(&authority, ClientAuth::No);
    driver.handshakes.limits.nanos_max = SECOND_NANOS / 2;
    let mut plain = connect(&driver);
    plain.write_all(b"PING\r\n").unwrap();
    let plain = thread::spawn(move || {
        let mut heard = Vec::new();
        let _ = plain.read_to_end(&mut heard);
        heard
    });
    turn_until(&mut driver, |_| plain.is_finished());
    assert!(!plain.join().unwrap().contains(&b'+'), "an alert at most");
    let mut half = connect(&driver);
    half.write_all(&[22, 3, 1, 0, 200, 1, 0, 0]).unwrap();
    let silent = connect(&driver);
    turn_until(&mut driver, |driver| driver.connections_count() == 2);
    turn_until(&mut driver, |driver| driver.connections_count() == 0);
    drop((half, silent));
}

#[test]
fn who_goes_amid_a_record_is_seen_to_go() {
    let authority = TestAuthority::new("amid");
    let mut driver = listening(&authority, ClientAuth::No);
    let mut stream = dial(&driver, &client_config(&authority, None));
    let client = thread::spawn(move || {
        let mut heard = [0; 2];
        stream.write_all(b"hi").and_then(|()| stream.read_exact(&mut heard)).expect("an echo");
        let half_of_a_record = [23, 3, 3, 0, 100, 1, 2, 3];
        stream.sock.write_all(&half_of_a_record).expect("is taken");
        stream.sock.shutdown(std::net::Shutdown::Write).expect("it is open");
        stream
    });
    assert_eq!(echo(&mut driver, 1).len(), 1);
    client.join().expect("an echo");
    assert_eq!(driver.connections_count(), 0);
}

#[test]
fn of_too_many_handshakes_the_oldest_gives_way() {
    let authority = TestAuthority::new("many");
    let mut driver = listening(&authority, ClientAuth::No);
    driver.handshakes.limits.count_max = 5;
    let _silent: Vec<TcpStream> = (0..30).map(|_| connect(&driver)).collect();
    turn_until(&mut driver, |driver| driver.connections_count() == 5);
    let mut stream = dial(&driver, &client_config(&authority, None));
    let client = thread::spawn(move || {
        let mut heard = [0; 2];
        stream.write_all(b"hi").and_then(|()| stream.read_exact(&mut heard)).expect("an echo");
        stream.conn.send_close_notify();
        stream.flush()
    });
    assert_eq!(echo(&mut driver, 1).len(), 1);
    client.join().unwrap().unwrap();
    assert!(driver.connections_count() <= 5);
}

#[test]
fn a_renewed_certificate_is_shown_to_new_clients_and_costs_no_connection() {
    let authority = TestAuthority::new("renewed");
    let mut driver = listening(&authority, ClientAuth::No);
    let config = client_config(&authority, None);
    let ask = |driver: &mut NetDriver, mut stream: Client| {
        let client = thread::spawn(move || {
            let mut heard = [0; 2];
            stream.write_all(b"hi").and_then(|()| stream.read_exact(&mut heard)).expect("an echo");
            stream
        });
        let mut events = Vec::new();
        while !client.is_finished() {
            driver.wait(Some(SECOND_NANOS / 100), &mut events);
            for event in events.drain(..) {
                let Event::Readable(id) = event else { continue };
                let mut bytes = Vec::new();
                driver.receive(id, &mut bytes, 100);
                driver.send(id, &bytes);
            }
        }
        client.join().expect("an echo")
    };
    let shown = |stream: &Client| {
        let chain = stream.conn.peer_certificates().expect("a certificate");
        crate::tls::name::common_name(&chain[0]).map(<[u8]>::to_vec)
    };
    let old = dial(&driver, &config);
    let old = ask(&mut driver, old);
    assert_eq!(shown(&old), Some(b"server".to_vec()));
    driver.tls.adopt(&authority.settings("renewed", ClientAuth::No)).unwrap();
    let new = dial(&driver, &config);
    let new = ask(&mut driver, new);
    assert_eq!(shown(&new), Some(b"renewed".to_vec()));
    let old = ask(&mut driver, old);
    assert_eq!(shown(&old), Some(b"server".to_vec()));
}

#[test]
fn whatever_a_stranger_says_the_handshake_ends() {
    let authority = TestAuthority::new("hostile words");
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(client_config(&authority, None), name).unwrap();
    let mut hello = Vec::new();
    client.write_tls(&mut hello).unwrap();
    hostile::shake_hands(&hello);
    for cut in 0..hello.len() {
        hostile::shake_hands(&hello[..cut]);
    }
    let mut state = 1_u64;
    for _ in 0..2000 {
        let mut said = hello.clone();
        for _ in 0..3 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let at = (state >> 33) as usize % said.len();
            said[at] = (state >> 24) as u8;
        }
        hostile::shake_hands(&said);
    }
}

/// What the fuzzer's target `tls` begins with, and what it ever found.
#[test]
fn the_fuzzers_seeds_are_survived() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/tls");
    let seeds = std::fs::read_dir(folder).expect("the seeds are a folder of the repository");
    let mut survived = 0;
    for seed in seeds {
        let path = seed.expect("a folder can be listed").path();
        println!("{path:?}");
        hostile::shake_hands(&std::fs::read(path).expect("a seed can be read"));
        survived += 1;
    }
    assert!(survived >= 5, "too few seeds");
}
