//! Where a log in JetStream lies and how to get there, as written in its URL.
//!
//! ```text
//! jetstream://[user:password@ | token@]host[:port][,host[:port]…]/name[?option=value&…]
//! ```
//!
//! The options are listed in docs/operations/jetstream.md. What is not known is refused: a
//! misspelt `replicas` must not quietly become the default.

use crate::address::{self, Tls, decoded, port_at, servers, split_user, wrong};
use std::fmt;
use std::io;
use std::path::PathBuf;

/// The port of clients, as every NATS server has it by default.
const CLIENT_PORT: u16 = 4222;

/// The port of the monitoring endpoint, as NATS's documentation sets it everywhere.
const MONITOR_PORT: u16 = 8222;

/// Copies that JetStream keeps at most.
const REPLICAS_MAX: usize = 5;

/// Copies below which the loss of one machine may lose records, or stops the log.
const REPLICAS_SAFE: usize = 3;

/// The longest name: it is part of a stream's name, which is the name of a directory.
const NAME_BYTES_MAX: usize = 64;

/// How a client proves who it is. It cannot be shown, on purpose.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    None,
    Password {
        user: String,
        password: String,
    },
    Token(String),
    /// A file with a JWT and its key, as `nsc` writes it.
    File(PathBuf),
}

/// How many copies the stream must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replicas {
    /// Three when the stream is made; as many as it has, but not fewer, when it is found.
    Safe,
    Exactly(usize),
}

impl Replicas {
    pub fn when_created(self) -> usize {
        match self {
            Self::Safe => REPLICAS_SAFE,
            Self::Exactly(count) => count,
        }
    }

    pub fn accepts(self, found: usize) -> bool {
        match self {
            Self::Safe => found >= REPLICAS_SAFE,
            Self::Exactly(count) => found == count,
        }
    }
}

/// Whether each server must show that it syncs before it acknowledges.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SyncCheck {
    /// Monitoring endpoints, `host:port`.
    At(Vec<String>),
    /// The operator takes the risk.
    Off,
}

/// A log's URL, taken apart. It is shown without secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port` of each server.
    pub servers: Vec<String>,
    pub name: String,
    pub credentials: Credentials,
    pub tls: Tls,
    pub replicas: Replicas,
    pub sync: SyncCheck,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "jetstream://{}/{}", self.servers.join(","), self.name)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}

impl Address {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// Says which part is wrong, without showing a password or token.
    pub fn parse(url: &str) -> io::Result<Self> {
        let rest = url
            .strip_prefix("jetstream://")
            .ok_or_else(|| wrong("it does not begin with jetstream://"))?;
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, name) =
            rest.rsplit_once('/').ok_or_else(|| wrong("the log's name is missing"))?;
        let (user, hosts) = split_user(authority);
        let servers = servers(hosts, CLIENT_PORT)?;
        let monitors = servers.iter().map(|server| beside(server, MONITOR_PORT)).collect();
        let mut address = Self {
            servers,
            name: checked_name(address::path(name)?)?,
            credentials: credentials(user)?,
            tls: Tls::default(),
            replicas: Replicas::Safe,
            sync: SyncCheck::At(monitors),
        };
        for (key, value) in address::options(options)? {
            if !address.tls.set(key, &value)? {
                address.set(key, &value)?;
            }
        }
        address.tls = address.tls.checked()?;
        Ok(address)
    }

    fn set(&mut self, key: &str, value: &str) -> io::Result<()> {
        match (key, value) {
            ("replicas", count) => {
                let count = count.parse().ok().filter(|count| (1..=REPLICAS_MAX).contains(count));
                let count = count.ok_or_else(|| wrong("replicas is a number from 1 to 5"))?;
                self.replicas = Replicas::Exactly(count);
            }
            ("sync", "unchecked") => self.sync = SyncCheck::Off,
            ("monitor", hosts) => self.sync = SyncCheck::At(servers(hosts, MONITOR_PORT)?),
            ("creds", path) if self.credentials == Credentials::None => {
                self.credentials = Credentials::File(path.into());
            }
            ("creds", _) => return Err(wrong("either a user or creds, not both")),
            ("sync", value) => return Err(wrong(format_args!("sync does not take {value:?}"))),
            _ => return Err(wrong(format_args!("there is no option {key:?}"))),
        }
        Ok(())
    }
}

fn checked_name(name: &str) -> io::Result<String> {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(is_fine) {
        return Err(wrong(format_args!(
            "the log's name {name:?} is not 1 to {NAME_BYTES_MAX} letters, digits, - and _"
        )));
    }
    Ok(name.to_owned())
}

fn credentials(user: Option<&str>) -> io::Result<Credentials> {
    Ok(match user.map(|user| user.split_once(':').ok_or(user)) {
        None => Credentials::None,
        Some(Ok((user, password))) => {
            Credentials::Password { user: decoded(user)?, password: decoded(password)? }
        }
        Some(Err(token)) => Credentials::Token(decoded(token)?),
    })
}

/// Another port of the same host.
fn beside(server: &str, port: u16) -> String {
    format!("{}:{port}", &server[..port_at(server).unwrap_or(server.len())])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).expect("the URL is right")
    }

    fn complaint(url: &str) -> String {
        Address::parse(url).expect_err("the URL is wrong").to_string()
    }

    #[test]
    fn ports_and_monitors_have_defaults() {
        let address = parse("jetstream://a,b:4333,[::1],[::2]:5/orders");
        assert_eq!(address.servers, ["a:4222", "b:4333", "[::1]:4222", "[::2]:5"]);
        let monitors = ["a:8222", "b:8222", "[::1]:8222", "[::2]:8222"].map(str::to_owned);
        assert_eq!(address.sync, SyncCheck::At(monitors.to_vec()));
        assert_eq!(address.name, "orders");
        assert_eq!(address.replicas, Replicas::Safe);
    }

    #[test]
    fn secrets_are_decoded_and_never_shown() {
        let address = parse("jetstream://me:p%40ss%2fword@a:1/x");
        let password = "p@ss/word".to_owned();
        assert!(address.credentials == Credentials::Password { user: "me".into(), password });
        assert_eq!(format!("{address} {address:?}"), "jetstream://a:1/x jetstream://a:1/x");
        let token = parse("jetstream://s3cret@a/x").credentials;
        assert!(token == Credentials::Token("s3cret".into()));
        assert!(!complaint("jetstream://me:hush%zz@a/x").contains("hush"));
        assert!(!complaint("jetstream://me:hush@/x").contains("hush"));
        for url in ["jetstream://me:p/hush@a", "jetstream://me:p/x?hush@a/x", "jetstream://m:hush/"]
        {
            assert!(!complaint(url).contains("hush"), "{}", complaint(url));
        }
    }

    #[test]
    fn fewer_copies_than_three_must_be_asked_for() {
        let address = parse("jetstream://a/x");
        assert_eq!(address.replicas.when_created(), 3);
        let accepted = [1, 2, 3, 5].map(|count| address.replicas.accepts(count));
        assert_eq!(accepted, [false, false, true, true]);
        let one = parse("jetstream://a/x?replicas=1").replicas;
        assert_eq!([1, 3].map(|count| one.accepts(count)), [true, false]);
        assert!(complaint("jetstream://a/x?replicas=0").contains("1 to 5"));
    }

    #[test]
    fn options_are_known_or_refused() {
        let address = parse("jetstream://a/x?tls=true&ca=/c%20a&creds=/k&monitor=m,n:1");
        assert!(address.tls.is_required);
        assert_eq!(address.tls.authorities, Some("/c a".into()));
        assert!(address.credentials == Credentials::File("/k".into()));
        assert_eq!(address.sync, SyncCheck::At(vec!["m:8222".into(), "n:1".into()]));
        assert_eq!(parse("jetstream://a/x?sync=unchecked").sync, SyncCheck::Off);
        let wrong = [
            ("nats://a/x", "jetstream://"),
            ("jetstream://a", "name is missing"),
            ("jetstream:///x", "no server"),
            ("jetstream://a/x.y", "letters, digits"),
            ("jetstream://a/", "letters, digits"),
            ("jetstream://a/x?sync=off", "sync does not take"),
            ("jetstream://a/x?replica=1", "no option \"replica\""),
            ("jetstream://a/x?tls", "has no value"),
            ("jetstream://u:p@a/x?creds=/k", "not both"),
            ("jetstream://a/x?cert=/c", "go together"),
        ];
        for (url, part) in wrong {
            assert!(complaint(url).contains(part), "{url}: {}", complaint(url));
        }
    }
}
