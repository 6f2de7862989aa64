//! A connection: a socket that does not block, TLS on it if asked for, and the replies it waits
//! for.
//!
//! All connections receive into one buffer, which is counted and forgotten. With TLS the records
//! are received into it too, as many as there are in one call; rustls by itself would take 4 KiB at
//! a time.

use crate::memcached;
use crate::replies::{Outcomes, Replies, Unusable};
use crate::requests::Protocol;
use rustls::client::Resumption;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore};
use std::collections::VecDeque;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::Path;
use std::sync::Arc;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Makes connections that are alike.
pub struct Dialer {
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    protocol: Protocol,
    goes_on: bool,
}

/// Counts replies of one protocol or the other.
enum Counter {
    Resp(Replies),
    Memcached(memcached::Replies),
}

pub struct Connection {
    pub socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
    counter: Counter,
    /// What of a batch the kernel has not taken, without TLS: with it rustls keeps that.
    unsent: Vec<u8>,
    /// Requests under way, the index of the first, and when they were sent, after the start.
    pub under_way: u64,
    pub first: u64,
    pub sent_nanos: u64,
    /// Of each of them whether it is cold, if that is asked for.
    pub are_cold: VecDeque<bool>,
}

impl Dialer {
    /// With `authority`, a file of certificates, connections speak TLS 1.3. Errors of the server
    /// are counted if it `goes_on`, and end it otherwise.
    ///
    /// # Errors
    /// The file cannot be read or used.
    pub fn new(
        port: u16,
        authority: Option<&Path>,
        protocol: Protocol,
        goes_on: bool,
    ) -> Result<Self, String> {
        Ok(Self { port, tls: authority.map(tls_config).transpose()?, protocol, goes_on })
    }

    /// A connection on which nothing was sent, its handshake over.
    ///
    /// # Errors
    /// The server cannot be reached or trusted.
    #[expect(clippy::disallowed_methods, reason = "a client; before it measures it may block")]
    pub fn dial(&self) -> Result<Connection, String> {
        let failed = |error| format!("cannot connect to port {}: {error}", self.port);
        let mut socket = TcpStream::connect((LOOPBACK, self.port)).map_err(failed)?;
        socket.set_nodelay(true).map_err(failed)?;
        let tls = self.tls.as_ref().map(|config| shaken(config, &mut socket)).transpose()?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Connection {
            socket,
            tls: tls.map(Box::new),
            counter: match self.protocol {
                Protocol::Resp => Counter::Resp(Replies::new(self.goes_on)),
                Protocol::Memcached => Counter::Memcached(memcached::Replies::new(self.goes_on)),
            },
            unsent: Vec::new(),
            under_way: 0,
            first: 0,
            sent_nanos: 0,
            are_cold: VecDeque::new(),
        })
    }
}

fn tls_config(authority: &Path) -> Result<Arc<ClientConfig>, String> {
    let unusable = |why: &dyn std::fmt::Display| format!("{}: {why}", authority.display());
    let mut roots = RootCertStore::empty();
    for found in CertificateDer::pem_file_iter(authority).map_err(|error| unusable(&error))? {
        let certificate = found.map_err(|error| unusable(&error))?;
        roots.add(certificate).map_err(|error| unusable(&error))?;
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    // Each connection is made once.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

fn shaken(config: &Arc<ClientConfig>, socket: &mut TcpStream) -> Result<ClientConnection, String> {
    let name = ServerName::IpAddress(LOOPBACK.into());
    let mut tls =
        ClientConnection::new(Arc::clone(config), name).map_err(|error| error.to_string())?;
    // A batch may be larger than what rustls holds by itself.
    tls.set_buffer_limit(None);
    while tls.is_handshaking() {
        tls.complete_io(socket).map_err(|error| format!("the TLS handshake failed: {error}"))?;
    }
    Ok(tls)
}

impl Counter {
    fn count(&mut self, bytes: &[u8]) -> Result<u64, Unusable> {
        match self {
            Self::Resp(replies) => replies.count(bytes),
            Self::Memcached(replies) => replies.count(bytes),
        }
    }
}

impl Connection {
    /// What its replies were, if no success.
    pub fn outcomes(&self) -> Outcomes {
        match &self.counter {
            Counter::Resp(replies) => replies.outcomes,
            Counter::Memcached(replies) => replies.outcomes,
        }
    }

    /// Sends a batch. What the kernel does not take goes out with [`Self::flush`].
    pub fn send(&mut self, batch: &[u8]) -> Result<(), String> {
        if let Some(tls) = &mut self.tls {
            tls.writer().write_all(batch).map_err(|error| error.to_string())?;
            return self.flush();
        }
        let taken = taken(self.socket.write(batch))?;
        self.unsent.extend_from_slice(&batch[taken..]);
        Ok(())
    }

    /// Sends what the kernel did not take before, as far as it does now.
    pub fn flush(&mut self) -> Result<(), String> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() && taken(tls.write_tls(&mut self.socket))? > 0 {}
        } else if !self.unsent.is_empty() {
            let taken = taken(self.socket.write(&self.unsent))?;
            self.unsent.drain(..taken);
        }
        Ok(())
    }

    /// Receives what there is, by way of `buffer`; how many replies it completes.
    ///
    /// A buffer that was not filled has emptied the socket, so epoll reports what comes next.
    pub fn receive(&mut self, buffer: &mut [u8]) -> Result<u64, String> {
        let mut complete = 0;
        loop {
            let received = match self.socket.read(buffer) {
                Ok(0) => return Err("the server closed a connection".to_owned()),
                read => taken(read)?,
            };
            complete += self.count(&buffer[..received])?;
            if received < buffer.len() {
                return Ok(complete);
            }
        }
    }

    fn count(&mut self, mut bytes: &[u8]) -> Result<u64, String> {
        let Some(tls) = &mut self.tls else {
            return self.counter.count(bytes).map_err(told);
        };
        let mut complete = 0;
        while !bytes.is_empty() {
            tls.read_tls(&mut bytes).map_err(|error| error.to_string())?;
            tls.process_new_packets().map_err(|error| error.to_string())?;
            let mut reader = tls.reader();
            loop {
                let plain = match reader.fill_buf() {
                    Ok(plain) => plain,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error.to_string()),
                };
                let length = plain.len();
                if length == 0 {
                    return Err("the server closed a connection".to_owned());
                }
                complete += self.counter.count(plain).map_err(told)?;
                reader.consume(length);
            }
        }
        Ok(complete)
    }
}

/// Bytes that the kernel took or gave; 0 if it can neither for now.
fn taken(outcome: std::io::Result<usize>) -> Result<usize, String> {
    match outcome {
        Ok(count) => Ok(count),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(0)
        }
        Err(error) => Err(format!("a connection broke: {error}")),
    }
}

fn told(unusable: Unusable) -> String {
    match unusable {
        Unusable::Refused(text) => format!("the server answered with an error: {text}"),
        Unusable::NotResp => "the server answered with what is no RESP2".to_owned(),
        Unusable::NotMemcached => "the server answered as no memcached does".to_owned(),
    }
}
