//! How bytes pass through one connection.
//!
//! The kernel tells once that a socket is ready, so somebody must know when that is used up, or
//! bytes would lie there unheard of. Only the transport can tell: what it says in
//! [`Received::Bytes`] is all that the driver and the loop go by. One that takes bytes out of the
//! socket in records, as TLS does, has others ready behind a short receive, or none although the
//! socket had some.

mod tls;

use base::driver::{Received, Sent};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
pub use tls::{Handshake, TlsTransport};

/// A connected socket, with or without encryption.
#[derive(Debug)]
pub enum Transport {
    /// Plain TCP or a Unix socket.
    Plain(OwnedFd),
    Tls(Box<TlsTransport>),
}

impl Transport {
    /// Goes on with the handshake as far as the socket allows.
    pub fn shake(&mut self) -> Handshake {
        match self {
            Self::Plain(_) => Handshake::Done,
            Self::Tls(tls) => tls.shake(),
        }
    }

    /// The certificate that the other end sent in the handshake.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        match self {
            Self::Plain(_) => None,
            Self::Tls(tls) => tls.peer_certificate(),
        }
    }

    /// Sends pending records of the transport itself (as alerts). Called when the socket can be
    /// written.
    pub fn flush(&mut self) {
        if let Self::Tls(tls) = self {
            tls.flush();
        }
    }

    /// Tells the peer that this side closes the connection (TLS `close_notify`).
    pub fn say_goodbye(&mut self) {
        if let Self::Tls(tls) = self {
            tls.say_goodbye();
        }
    }

    /// Appends at most `bytes_max` bytes, of which there must be one at least.
    pub fn receive(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        match self {
            Self::Plain(socket) => receive(socket, into, bytes_max),
            Self::Tls(tls) => tls.receive(into, bytes_max),
        }
    }

    /// Takes as many bytes as there is room for.
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        match self {
            Self::Plain(socket) => send(socket, bytes),
            Self::Tls(tls) => tls.send(bytes),
        }
    }
}

fn receive(socket: &OwnedFd, into: &mut Vec<u8>, bytes_max: usize) -> Received {
    into.reserve(bytes_max);
    loop {
        let spare = &mut into.spare_capacity_mut()[..bytes_max];
        match rustix::net::recv(socket, spare, RecvFlags::empty()) {
            Ok((_, 0)) => return Received::Closed,
            Ok((_, count)) => {
                let length = into.len() + count;
                // SAFETY: `recv` has initialised the first `count` bytes of the spare
                // capacity, and `count` is at most `bytes_max`, which was reserved.
                unsafe { into.set_len(length) };
                // A short read of a socket has emptied it.
                return Received::Bytes { count, more: count == bytes_max };
            }
            Err(Errno::AGAIN) => return Received::WouldBlock,
            Err(Errno::INTR) => {}
            Err(_) => return Received::Closed,
        }
    }
}

fn send(socket: &OwnedFd, bytes: &[u8]) -> Sent {
    while !bytes.is_empty() {
        match rustix::net::send(socket, bytes, SendFlags::NOSIGNAL) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(count) => return Sent::Bytes(count),
            Err(Errno::AGAIN) => break,
            Err(_) => return Sent::Closed,
        }
    }
    Sent::Bytes(0)
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
            Self::Tls(tls) => tls.socket.as_fd(),
        }
    }
}
