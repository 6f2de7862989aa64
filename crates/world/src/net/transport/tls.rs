//! A TLS connection over a socket that does not block.
//!
//! ```text
//! socket ─▶ records ─▶ rustls ─▶ plain bytes ─▶ input of the loop
//! output ─▶ a chunk of it, as a record ─▶ socket      (at most one chunk is under way)
//! ```
//! A chunk counts as sent when the kernel has taken its whole record. So bytes that the loop
//! believes to be sent are sent, and closing the connection afterwards loses none. Until then the
//! loop keeps the bytes and offers them again; they are not encrypted twice.
//!
//! Memory per connection is bounded: an incomplete record (18 KB), the plain bytes of complete ones
//! (16 KB and one record), and our chunk.

use base::driver::{Received, Sent};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, Connection, ServerConfig, ServerConnection};
use std::io::{self, BufRead, Read, Write};
use std::net::IpAddr;
use std::sync::Arc;

/// Plain bytes that are encrypted at a time: the most that one record holds (RFC 8446, 5.1).
const CHUNK_BYTES_MAX: usize = 16 << 10;

/// Reads of a socket in a row that bring no application data although each was full. They are 4 KiB
/// each, so tickets and new keys come nowhere near: they are some 200 bytes. A peer that sends
/// nothing else must not keep the loop busy.
const SILENT_READS_MAX: usize = 32;

/// A connection whose bytes are encrypted.
#[derive(Debug)]
pub struct TlsTransport {
    pub socket: OwnedFd,
    connection: Connection,
    /// Plain bytes of the chunk under way: already encrypted, not yet counted as sent.
    under_way: usize,
}

/// The state of a handshake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Handshake {
    /// Not over: go on when the socket is ready.
    Pending,
    /// Over: the peer is verified, and its first bytes may already be there.
    Done,
    Failed(String),
}

/// The outcome of reading from the socket.
enum Wire {
    /// Some records came. `emptied`: the socket has no more for now.
    Records {
        emptied: bool,
    },
    WouldBlock,
    Closed,
}

impl TlsTransport {
    /// The server's end of a connection that was accepted.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn accepted(socket: OwnedFd, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        let connection = Connection::Server(ServerConnection::new(config)?);
        Ok(Self { socket, connection, under_way: 0 })
    }

    /// The client's end of a connection that this server asks for.
    ///
    /// # Errors
    /// The configuration cannot be used.
    pub fn dialed(
        socket: OwnedFd,
        config: Arc<ClientConfig>,
        address: IpAddr,
    ) -> Result<Self, rustls::Error> {
        let name = ServerName::IpAddress(address.into());
        let connection = Connection::Client(ClientConnection::new(config, name)?);
        Ok(Self { socket, connection, under_way: 0 })
    }

    /// The certificate that the other end sent in the handshake.
    pub fn peer_certificate(&self) -> Option<&[u8]> {
        self.connection.peer_certificates()?.first().map(AsRef::as_ref)
    }

    /// Goes on with the handshake as far as the socket allows.
    pub fn shake(&mut self) -> Handshake {
        for _ in 0..SILENT_READS_MAX {
            match self.write_records() {
                Ok(true) => {}
                Ok(false) => return Handshake::Pending,
                Err(error) => return Handshake::Failed(error.to_string()),
            }
            if !self.connection.is_handshaking() {
                return Handshake::Done;
            }
            match self.read_records() {
                Ok(Wire::Records { .. }) => {}
                Ok(Wire::WouldBlock) => return Handshake::Pending,
                Ok(Wire::Closed) => return Handshake::Failed("the peer went away".to_owned()),
                Err(why) => return Handshake::Failed(why),
            }
        }
        Handshake::Failed("too many messages".to_owned())
    }

    /// As [`super::Transport::receive`].
    pub fn receive(&mut self, into: &mut Vec<u8>, bytes_max: usize) -> Received {
        let before = into.len();
        let mut emptied = false;
        for _ in 0..SILENT_READS_MAX {
            let is_over = self.take_plain(into, before + bytes_max);
            let count = into.len() - before;
            if count > 0 && (is_over || emptied || count == bytes_max) {
                return Received::Bytes { count, more: is_over || count == bytes_max };
            }
            if is_over {
                return Received::Closed;
            }
            if emptied {
                return Received::WouldBlock;
            }
            match self.read_records() {
                Ok(Wire::Records { emptied: all }) => emptied = all,
                Ok(Wire::WouldBlock) => emptied = true,
                Ok(Wire::Closed) => {
                    // Records that were complete before the end still count.
                    self.take_plain(into, before + bytes_max);
                    let count = into.len() - before;
                    let whole = Received::Bytes { count, more: true };
                    return if count > 0 { whole } else { Received::Closed };
                }
                Err(why) => {
                    tracing::debug!(why, "a connection ends: its records make no sense");
                    return Received::Closed;
                }
            }
        }
        match into.len() - before {
            0 => Received::Closed,
            count => Received::Bytes { count, more: true },
        }
    }

    /// As [`super::Transport::send`].
    pub fn send(&mut self, bytes: &[u8]) -> Sent {
        let mut sent = 0;
        loop {
            match self.write_records() {
                Ok(true) => {}
                Ok(false) => return Sent::Bytes(sent),
                Err(_) => return Sent::Closed,
            }
            // The chunk was sent; the loop offers its bytes again here, and they are counted now.
            let done = self.under_way.min(bytes.len() - sent);
            self.under_way -= done;
            sent += done;
            let rest = &bytes[sent..];
            let chunk = &rest[..rest.len().min(CHUNK_BYTES_MAX)];
            if chunk.is_empty() {
                return Sent::Bytes(sent);
            }
            match self.connection.writer().write(chunk) {
                Ok(0) | Err(_) => return Sent::Closed,
                Ok(count) => self.under_way = count,
            }
        }
    }

    /// Sends the connection's own pending records (alerts, tickets), as far as the socket takes
    /// them.
    pub fn flush(&mut self) {
        // Nothing to handle here: if the socket has failed, the next read or send finds it and
        // closes.
        let _ = self.write_records();
    }

    /// Sends `close_notify`, if the socket takes it at once.
    pub fn say_goodbye(&mut self) {
        self.connection.send_close_notify();
        self.flush();
    }

    /// Moves plain bytes into a buffer up to a length. Returns whether the peer has ended its
    /// stream.
    fn take_plain(&mut self, into: &mut Vec<u8>, length_max: usize) -> bool {
        let mut reader = self.connection.reader();
        while into.len() < length_max {
            match reader.fill_buf() {
                Ok([]) => return true,
                Ok(plain) => {
                    let count = plain.len().min(length_max - into.len());
                    into.extend_from_slice(&plain[..count]);
                    reader.consume(count);
                }
                Err(error) => return error.kind() != io::ErrorKind::WouldBlock,
            }
        }
        false
    }

    fn read_records(&mut self) -> Result<Wire, String> {
        let mut socket = Socket { socket: &self.socket, emptied: false };
        match self.connection.read_tls(&mut socket) {
            Ok(0) => return Ok(Wire::Closed),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(Wire::WouldBlock),
            Err(_) => return Ok(Wire::Closed),
        }
        let emptied = socket.emptied;
        let processed = self.connection.process_new_packets();
        // Answers of the connection itself: an alert, tickets, a new key. A client that does not
        // speak TLS gets no alert: it would take that for a reply.
        let speaks_plainly = matches!(processed, Err(rustls::Error::InvalidMessage(_)));
        if !speaks_plainly || !self.connection.is_handshaking() {
            self.flush();
        }
        match processed {
            Ok(_) => Ok(Wire::Records { emptied }),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Writes pending records to the socket; returns whether the kernel took all of them.
    fn write_records(&mut self) -> io::Result<bool> {
        while self.connection.wants_write() {
            let mut socket = Socket { socket: &self.socket, emptied: false };
            match self.connection.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}

/// The socket as `std::io::Read` and `Write`, which rustls needs.
struct Socket<'s> {
    socket: &'s OwnedFd,
    /// Whether the last read returned less than asked for: then the socket is empty for now.
    emptied: bool,
}

impl Read for Socket<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            match rustix::net::recv(self.socket, &mut *into, RecvFlags::empty()) {
                Ok((_, count)) => {
                    self.emptied = count < into.len();
                    return Ok(count);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Write for Socket<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match rustix::net::send(self.socket, bytes, SendFlags::NOSIGNAL) {
                Ok(count) => return Ok(count),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
