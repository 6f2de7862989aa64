//! The Redis server that a shard follows as its replica (REPLICAOF). Effects and snapshots carry
//! it; the node's `link` connects to the server that it names.
//!
//! Whom a shard follows is the shard's state and not a process's. So whichever process leads next
//! goes on following, and no process takes a master's data in place of the shard's because of what
//! it was told before others wrote.

use std::fmt;

/// Longest name of a host, in bytes (RFC 1035).
const HOST_BYTES_MAX: usize = 255;

/// The auxiliary field of snapshots that says [`ReplicaOf`]; its value is that of `replicaof`.
pub const FIELD: &str = "kiln-replicaof";

/// A server that a shard follows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Master {
    host: String,
    port: u16,
}

impl Master {
    /// `None` if it is no name of a host: it is shown in lines of INFO, of the configuration file
    /// and of snapshots.
    pub fn new(host: &str, port: u16) -> Option<Self> {
        is_host(host.as_bytes()).then(|| Self { host: host.to_owned(), port })
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// Whether both name one server, as far as names tell.
    pub fn is_same(&self, other: &Self) -> bool {
        self.port == other.port && self.host.eq_ignore_ascii_case(&other.host)
    }
}

impl fmt::Display for Master {
    /// As the directive `replicaof` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.host, self.port)
    }
}

/// The server that a shard follows, as the newest effect about it says.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum ReplicaOf {
    /// Nothing was ever said.
    #[default]
    Unset,
    /// It follows nobody, because an operator said so.
    NoOne,
    Master(Master),
}

impl ReplicaOf {
    /// Reads the value of [`FIELD`]; `None` if it is none.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(' ')?;
        if (host, port) == ("no", "one") {
            return Some(Self::NoOne);
        }
        Master::new(host, port.parse().ok()?).map(Self::Master)
    }
}

impl fmt::Display for ReplicaOf {
    /// As the directive `replicaof` writes it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master(master) => master.fmt(f),
            Self::Unset | Self::NoOne => f.write_str("no one"),
        }
    }
}

/// Whether bytes are the name or address of a host, as far as it matters here.
pub(crate) fn is_host(bytes: &[u8]) -> bool {
    let is_plain = |byte: &u8| (b'!'..=b'~').contains(byte) && *byte != b'"';
    (1..=HOST_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let master = |host| ReplicaOf::Master(Master::new(host, 6379).expect("a host"));
        for said in [ReplicaOf::NoOne, master("10.0.0.1"), master("::1"), master("no")] {
            assert_eq!(ReplicaOf::parse(&said.to_string()), Some(said));
        }
        for bad in ["", "no", "one", "a b", "a 70000", " 1", "a\tb 1", "a \"1"] {
            assert_eq!(ReplicaOf::parse(bad), None, "{bad}");
        }
        assert_eq!(Master::new(&"x".repeat(HOST_BYTES_MAX + 1), 1), None);
    }
}
