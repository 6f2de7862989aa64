//! Connections that the server asks for: names looked up on a thread of their own, then the
//! addresses tried one after the other, without ever blocking the loop.
//!
//! ```text
//! name ─▶ resolver thread ─▶ addresses ─▶ connect ─▶ epoll: writable, or failed ─▶ next address
//! ```

use super::connections::Connection;
use super::handshakes::Side;
use super::listener::{new_socket, set_keepalive, tcp_peer};
use super::transport::{TlsTransport, Transport};
use super::{NetDriver, watched};
use base::driver::{ConnectionId, Endpoint, Event, Waker};
use rustix::io::Errno;
use rustix::net::{AddressFamily, bind, connect, sockopt};
use rustls::ClientConfig;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::thread;

/// Names that wait to be looked up. A server connects to a handful of hosts; a guess.
const NAMES_MAX: usize = 64;

/// Addresses of one name that are tried. A guess: names have one or two.
const ADDRESSES_MAX: usize = 8;

/// A connection that was asked for and does not stand yet.
#[derive(Default)]
struct Dial {
    /// Those still to be tried.
    addresses: VecDeque<SocketAddr>,
    /// The one being tried.
    current: Option<SocketAddr>,
    /// What became of the last one.
    why: String,
    is_encrypted: bool,
    source: Option<IpAddr>,
}

/// All connections that were asked for and do not stand yet.
#[derive(Default)]
pub struct Dials {
    pending: BTreeMap<ConnectionId, Dial>,
    /// Those that failed and whose node is still to be told.
    failed: Vec<(ConnectionId, String)>,
    /// Begins with the first name.
    resolver: Option<Resolver>,
}

impl Dials {
    pub fn has_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Tells the node that a connection it asked for has failed, and why.
    pub fn fail(&mut self, id: ConnectionId, why: String) {
        self.failed.push((id, why));
    }

    pub fn forget(&mut self, id: ConnectionId) {
        self.pending.remove(&id);
        self.failed.retain(|(failed, _)| *failed != id);
    }
}

type Question = (ConnectionId, String, u16);
type Answer = (ConnectionId, io::Result<Vec<SocketAddr>>);

/// A thread that asks the system for the addresses of names, which may take seconds.
struct Resolver {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
}

impl Resolver {
    fn start(waker: Waker) -> io::Result<Self> {
        let (questions, asked) = sync_channel::<Question>(NAMES_MAX);
        let (answer, answers) = channel();
        // Never joined: it may be deep in a look-up when the process ends.
        thread::Builder::new().name("resolver".to_owned()).spawn(move || {
            while let Ok((id, host, port)) = asked.recv() {
                let found = (host.as_str(), port).to_socket_addrs().map(Iterator::collect);
                if answer.send((id, found)).is_err() {
                    break;
                }
                waker.wake();
            }
        })?;
        Ok(Self { questions, answers })
    }
}

impl NetDriver {
    pub(super) fn dial(&mut self, endpoint: &Endpoint) -> ConnectionId {
        let Endpoint { host, port, .. } = endpoint;
        let (host, port) = (host.as_str(), *port);
        // The descriptors that are left are for the log and the like.
        let has_room = self.connections.count() < self.room.dialing_max;
        let Some(id) = has_room.then(|| self.connections.reserve()).flatten() else {
            let id = self.connections.vacant_id();
            self.dials.failed.push((id, "too many connections are open".to_owned()));
            return id;
        };
        let source = endpoint.source.as_ref().map(|source| source.parse::<IpAddr>());
        let mut dial = Dial { is_encrypted: endpoint.is_encrypted, ..Dial::default() };
        match source.transpose() {
            Ok(source) => dial.source = source,
            Err(_) => {
                let source = endpoint.source.as_deref().unwrap_or_default();
                self.dials.failed.push((id, format!("{source:?} is no address to come from")));
                return id;
            }
        }
        let address = host.parse::<IpAddr>();
        if let Ok(ip) = address {
            dial.addresses.push_back(SocketAddr::new(ip, port));
        }
        self.dials.pending.insert(id, dial);
        if address.is_ok() {
            self.dial_next(id);
        } else if let Err(why) = self.look_up(id, host, port) {
            self.fail_dial(id, why);
        }
        id
    }

    fn look_up(&mut self, id: ConnectionId, host: &str, port: u16) -> Result<(), String> {
        let resolver = match self.dials.resolver.take() {
            Some(resolver) => resolver,
            None => Resolver::start(self.poller.waker()).map_err(|error| error.to_string())?,
        };
        let asked = resolver.questions.try_send((id, host.to_owned(), port));
        if !matches!(asked, Err(TrySendError::Disconnected(_))) {
            self.dials.resolver = Some(resolver);
        }
        asked.map_err(|_| "too many names wait to be looked up".to_owned())
    }

    /// Takes what the resolver found.
    pub(super) fn take_answers(&mut self) {
        let Some(resolver) = &self.dials.resolver else { return };
        for (id, found) in resolver.answers.try_iter().collect::<Vec<_>>() {
            // The connection may have been closed meanwhile.
            let Some(dial) = self.dials.pending.get_mut(&id) else { continue };
            match found {
                Ok(addresses) => {
                    dial.why = "the name has no address".to_owned();
                    dial.addresses = addresses.into_iter().take(ADDRESSES_MAX).collect();
                    self.dial_next(id);
                }
                Err(error) => self.fail_dial(id, format!("cannot look the name up: {error}")),
            }
        }
    }

    /// Tries the next address, or fails for good.
    fn dial_next(&mut self, id: ConnectionId) {
        while let Some(dial) = self.dials.pending.get_mut(&id) {
            let Some(address) = dial.addresses.pop_front() else {
                let why = std::mem::take(&mut dial.why);
                self.fail_dial(id, why);
                return;
            };
            dial.current = Some(address);
            let tls = dial.is_encrypted.then(|| self.tls.client());
            match begin(&address, dial.source, self.keepalive_seconds, tls) {
                Ok(mut connection) => {
                    connection.is_dialing = true;
                    let added = self.poller.add(&connection.transport, id.0, watched(&connection));
                    match added {
                        Ok(()) => {
                            self.connections.put(id, connection);
                            return;
                        }
                        Err(error) => dial.why = format!("{address}: {error}"),
                    }
                }
                Err(error) => dial.why = format!("{address}: {error}"),
            }
        }
    }

    fn fail_dial(&mut self, id: ConnectionId, why: String) {
        self.connections.remove(id);
        self.dials.pending.remove(&id);
        self.dials.failed.push((id, why));
    }

    /// The kernel has news of a connection that it was connecting. Whether it stands.
    pub(super) fn end_dial(&mut self, id: ConnectionId, events: &mut Vec<Event>) -> bool {
        let Some(connection) = self.connections.find(id) else { return false };
        let Some(dial) = self.dials.pending.get_mut(&id) else { return false };
        match sockopt::socket_error(&connection.transport) {
            Ok(Ok(())) => {
                connection.is_dialing = false;
                let peer = tcp_peer(&connection.transport, dial.current);
                let is_encrypted = dial.is_encrypted;
                self.dials.pending.remove(&id);
                if is_encrypted {
                    self.begin_handshake(id, peer, Side::Dialed);
                } else {
                    events.push(Event::Connected { connection: id, peer });
                }
                true
            }
            Ok(Err(error)) | Err(error) => {
                let address = dial.current.map_or_else(String::new, |address| address.to_string());
                dial.why = format!("{address}: {}", io::Error::from(error));
                self.dial_next(id);
                false
            }
        }
    }

    pub(super) fn report_failed_dials(&mut self, events: &mut Vec<Event>) {
        for (connection, why) in self.dials.failed.drain(..) {
            events.push(Event::Unreachable { connection, why });
        }
    }
}

/// Begins to connect. `tls`: `None` for a plain connection, `Some(None)` if TLS is asked for and
/// not set up, which is an error.
fn begin(
    address: &SocketAddr,
    source: Option<IpAddr>,
    keepalive_seconds: u32,
    tls: Option<Option<Arc<ClientConfig>>>,
) -> Result<Connection, io::Error> {
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = new_socket(family)?;
    sockopt::set_tcp_nodelay(&socket, true)?;
    set_keepalive(&socket, keepalive_seconds)?;
    if let Some(source) = source {
        bind(&socket, &SocketAddr::new(source, 0))?;
    }
    match connect(&socket, address) {
        Ok(()) | Err(Errno::INPROGRESS | Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let transport = match tls {
        None => Transport::Plain(socket),
        Some(None) => return Err(io::Error::other("no certificates are set up for TLS")),
        Some(Some(config)) => {
            let tls =
                TlsTransport::dialed(socket, config, address.ip()).map_err(io::Error::other)?;
            Transport::Tls(Box::new(tls))
        }
    };
    Ok(Connection::over(transport, false))
}
