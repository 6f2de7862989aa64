//! Listening sockets: which addresses they take, and one accept at a time.
//!
//! Options of a connection (no delay, keepalive) are set on the listener: Linux hands them down to
//! accepted sockets, which saves five system calls per connection.

use super::NetOptions;
use base::driver::Peer;
use base::machine::Listening;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind,
    getsockname, listen, socket_with, sockopt,
};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Unanswered keepalive probes after which a peer counts as gone, a third of the interval apart:
/// as Redis sets them.
const KEEPALIVE_PROBES: u32 = 3;

/// Why the server cannot listen.
#[derive(Debug)]
pub struct NetError {
    /// What was wanted: an address with its port, a path, or the name of a setting.
    pub address: String,
    /// The step that failed.
    pub step: &'static str,
    pub source: io::Error,
}

impl NetError {
    pub(super) fn new(
        address: impl Into<String>,
        step: &'static str,
        source: impl Into<io::Error>,
    ) -> Self {
        Self { address: address.into(), step, source: source.into() }
    }
}

impl fmt::Display for NetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}: {}", self.address, self.step, self.source)
    }
}

impl std::error::Error for NetError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A connection just accepted.
#[derive(Debug)]
pub struct Accepted {
    pub socket: OwnedFd,
    pub peer: Peer,
    /// It came over a Unix socket.
    pub is_unix: bool,
    /// What comes over it is encrypted.
    pub is_tls: bool,
}

/// The listening sockets of a process. The loop accepts from them; where they listen may change
/// while it runs.
#[derive(Default, Debug)]
pub struct Listeners {
    open: Mutex<Open>,
    /// Counts the changes.
    change: AtomicU64,
}

#[derive(Default, Debug)]
struct Open {
    options: NetOptions,
    sockets: Vec<Listener>,
    /// The number of the next socket.
    next_number: u64,
}

impl Open {
    /// Takes new sockets in, and numbers them.
    fn adopt(&mut self, sockets: Vec<Listener>) {
        for mut socket in sockets {
            socket.number = self.next_number;
            self.next_number += 1;
            self.sockets.push(socket);
        }
    }
}

impl Listeners {
    /// Opens every listener that `options` asks for.
    ///
    /// # Errors
    /// One could not be opened.
    pub(super) fn open(options: &NetOptions) -> Result<Self, NetError> {
        let sockets = open_all(options)?;
        let mut options = options.clone();
        // Where the kernel chose a port, that one is kept.
        let chosen =
            |is_tls| sockets.iter().filter(|it| it.is_tls == is_tls).find_map(Listener::port);
        options.port = options.port.and_then(|_| chosen(false));
        options.tls_port = options.tls_port.and_then(|_| chosen(true));
        let mut open = Open { options, ..Open::default() };
        open.adopt(sockets);
        Ok(Self { open: Mutex::new(open), change: AtomicU64::new(0) })
    }

    /// Listens for TCP connections there and nowhere else.
    ///
    /// # Errors
    /// One socket could not be opened. Then all are as they were, unless another process has taken
    /// an address meanwhile, which the log tells.
    pub fn reopen(&self, listening: &Listening) -> Result<(), NetError> {
        let mut open = self.lock();
        let mut options = open.options.clone();
        options.bind.clone_from(&listening.bind);
        options.port = (listening.port != 0).then_some(listening.port);
        options.tls_port = (listening.tls_port != 0).then_some(listening.tls_port);
        // An address that stays is not free before its socket is closed.
        open.sockets.retain(Listener::is_unix);
        self.change.fetch_add(1, Ordering::Relaxed);
        match open_tcp_ports(&options) {
            Ok(sockets) => {
                open.adopt(sockets);
                open.options = options;
                Ok(())
            }
            Err(error) => {
                match open_tcp_ports(&open.options) {
                    Ok(sockets) => open.adopt(sockets),
                    Err(error) => tracing::error!(%error, "listens for TCP no more"),
                }
                Err(error)
            }
        }
    }

    /// The number of the last change.
    pub(super) fn change(&self) -> u64 {
        self.change.load(Ordering::Relaxed)
    }

    pub(super) fn with<T>(&self, look: impl FnOnce(&[Listener]) -> T) -> T {
        look(&self.lock().sockets)
    }

    /// Calls `change` for each socket that is not yet watched, or unwatched, as is wanted of all.
    pub(super) fn watch(&self, is_watched: bool, mut change: impl FnMut(&Listener)) {
        for socket in &mut self.lock().sockets {
            if std::mem::replace(&mut socket.is_watched, is_watched) != is_watched {
                change(socket);
            }
        }
    }

    /// Takes the next connection that waits at the socket of this number. One that was closed has
    /// none.
    pub(super) fn accept(&self, number: u64) -> Result<Accepted, Errno> {
        let open = self.lock();
        let socket = open.sockets.iter().find(|it| it.number == number);
        socket.map_or(Err(Errno::AGAIN), Listener::accept)
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    /// Its number among all that this process has opened: 0 until it is adopted.
    number: u64,
    /// Whether the poller reports it.
    is_watched: bool,
    /// The path of a Unix socket; its file goes away with the listener.
    path: Option<PathBuf>,
    /// Whether its connections use TLS.
    is_tls: bool,
}

impl Listener {
    /// A TCP listener, not yet adopted.
    fn new(socket: OwnedFd) -> Self {
        Self { socket, number: 0, is_watched: false, path: None, is_tls: false }
    }

    /// The number by which the poller reports it.
    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    pub fn is_unix(&self) -> bool {
        self.path.is_some()
    }

    /// The port of a TCP listener.
    pub fn port(&self) -> Option<u16> {
        socket_address(&getsockname(&self.socket).ok()?).map(|address| address.port())
    }

    /// Takes the next waiting connection.
    pub fn accept(&self) -> Result<Accepted, Errno> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, peer) = acceptfrom_with(&self.socket, flags)?;
        if let Some(path) = &self.path {
            let name = format!("{}:0", path.display());
            let peer =
                Peer { address: name.clone(), local: name, is_local: true, common_name: None };
            return Ok(Accepted { socket, peer, is_unix: true, is_tls: false });
        }
        let peer = tcp_peer(&socket, peer.as_ref().and_then(socket_address));
        Ok(Accepted { socket, peer, is_unix: false, is_tls: self.is_tls })
    }
}

/// Both ends of a TCP connection, of which the other one is known.
pub fn tcp_peer(socket: impl AsFd, address: Option<SocketAddr>) -> Peer {
    let name = |address: Option<SocketAddr>| {
        address.map_or_else(|| "?:0".to_owned(), |address| address.to_string())
    };
    let local = getsockname(socket).ok().as_ref().and_then(socket_address);
    let is_local = address.is_some_and(|address| address.ip().is_loopback());
    Peer { address: name(address), local: name(local), is_local, common_name: None }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that stays behind is replaced at the next start.
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Opens every listener that `options` asks for.
///
/// # Errors
/// One could not be opened. Addresses marked `-` are skipped when the machine does not have them.
fn open_all(options: &NetOptions) -> Result<Vec<Listener>, NetError> {
    let mut listeners = open_tcp_ports(options)?;
    if let Some(path) = &options.unix_socket {
        listeners.push(open_unix(path, options)?);
    }
    Ok(listeners)
}

/// The same of those for TCP.
fn open_tcp_ports(options: &NetOptions) -> Result<Vec<Listener>, NetError> {
    let mut listeners = Vec::new();
    for (port, is_tls) in [(options.port, false), (options.tls_port, true)] {
        let Some(mut port) = port else { continue };
        for pattern in &options.bind {
            let (is_optional, host) = match pattern.strip_prefix('-') {
                Some(host) => (true, host),
                None => (false, pattern.as_str()),
            };
            match open_tcp(host, port, options) {
                Ok(mut listener) => {
                    listener.is_tls = is_tls;
                    // With port 0 the kernel chooses once, for all addresses.
                    port = listener.port().unwrap_or(port);
                    listeners.push(listener);
                }
                Err(error) if is_optional && is_unavailable(&error.source) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(listeners)
}

fn open_tcp(host: &str, port: u16, options: &NetOptions) -> Result<Listener, NetError> {
    let ip = resolve(host).map_err(|error| {
        NetError::new(format!("{host}, port {port}"), "cannot resolve the address", error)
    })?;
    let address = SocketAddr::new(ip, port);
    let fail = |step| move |error: Errno| NetError::new(address.to_string(), step, error);
    let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
    let socket = new_socket(family).map_err(fail("cannot create a socket"))?;
    sockopt::set_socket_reuseaddr(&socket, true).map_err(fail("SO_REUSEADDR"))?;
    if address.is_ipv6() {
        // `*` and `::*` are bound side by side.
        sockopt::set_ipv6_v6only(&socket, true).map_err(fail("IPV6_V6ONLY"))?;
    }
    sockopt::set_tcp_nodelay(&socket, true).map_err(fail("TCP_NODELAY"))?;
    set_keepalive(&socket, options.keepalive_seconds).map_err(fail("keepalive"))?;
    bind(&socket, &address).map_err(fail("cannot bind"))?;
    listen(&socket, backlog(options)).map_err(fail("cannot listen"))?;
    Ok(Listener::new(socket))
}

fn open_unix(path: &Path, options: &NetOptions) -> Result<Listener, NetError> {
    let fail =
        |step| move |error: io::Error| NetError::new(path.display().to_string(), step, error);
    match std::fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(fail("cannot replace what has its name")(error)),
    }
    let address = SocketAddrUnix::new(path).map_err(|error| fail("bad path")(error.into()))?;
    let socket = new_socket(AddressFamily::UNIX)
        .map_err(|error| fail("cannot create a socket")(error.into()))?;
    bind(&socket, &address).map_err(|error| fail("cannot bind")(error.into()))?;
    let mut listener = Listener::new(socket);
    listener.path = Some(path.to_owned());
    if let Some(mode) = options.unix_socket_permissions {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .map_err(fail("cannot set its permissions"))?;
    }
    listen(&listener.socket, backlog(options))
        .map_err(|error| fail("cannot listen")(error.into()))?;
    Ok(listener)
}

pub(super) fn new_socket(family: AddressFamily) -> Result<OwnedFd, Errno> {
    socket_with(family, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

fn backlog(options: &NetOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

pub(super) fn set_keepalive(socket: &OwnedFd, seconds: u32) -> Result<(), Errno> {
    if seconds == 0 {
        return Ok(());
    }
    let between_probes = Duration::from_secs(u64::from((seconds / 3).max(1)));
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(u64::from(seconds)))?;
    sockopt::set_tcp_keepintvl(socket, between_probes)?;
    sockopt::set_tcp_keepcnt(socket, KEEPALIVE_PROBES)
}

/// `*` is every IPv4 address, `::*` every IPv6 address, as in redis.conf.
fn resolve(host: &str) -> io::Result<IpAddr> {
    match host {
        "*" => return Ok(Ipv4Addr::UNSPECIFIED.into()),
        "::*" => return Ok(Ipv6Addr::UNSPECIFIED.into()),
        _ => {}
    }
    if let Ok(ip) = host.parse() {
        return Ok(ip);
    }
    let mut found = (host, 0).to_socket_addrs()?;
    let nothing = || io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    found.next().map(|address| address.ip()).ok_or_else(nothing)
}

/// Whether the machine lacks the address or its whole family.
fn is_unavailable(error: &io::Error) -> bool {
    let lacking = [
        Errno::ADDRNOTAVAIL,
        Errno::AFNOSUPPORT,
        Errno::PFNOSUPPORT,
        Errno::PROTONOSUPPORT,
        Errno::SOCKTNOSUPPORT,
        Errno::NOPROTOOPT,
    ];
    lacking.iter().any(|errno| error.raw_os_error() == Some(errno.raw_os_error()))
}

pub(super) fn socket_address(address: &SocketAddrAny) -> Option<SocketAddr> {
    SocketAddr::try_from(address.clone()).ok()
}
