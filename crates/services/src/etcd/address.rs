//! The URL of a log in etcd, taken apart.
//!
//! ```text
//! etcd://[user:password@]host[:port][,host[:port]…]/prefix[?option=value&…]
//! ```
//!
//! The options are listed in docs/operations/etcd.md. What is not known is refused.

use crate::address::{self, Tls, decoded, servers, split_user, wrong};
use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The port of clients, as every member has it by default.
const CLIENT_PORT: u16 = 2379;

/// How long a member may take to accept a connection.
const CONNECT_WAIT: Duration = Duration::from_secs(2);

/// How often a connection that is waited on is asked whether it lives, and how long it may take to
/// say so. etcd hangs up on whoever asks more often than every 5 s (`--grpc-keepalive-min-time`): a
/// member that was stopped is noticed sooner by what it does not answer.
const ALIVE_PAUSE: Duration = Duration::from_secs(10);
const ALIVE_WAIT: Duration = Duration::from_secs(5);

/// How a client proves who it is. It cannot be shown, on purpose.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    None,
    Password {
        user: String,
        password: String,
    },
    /// A file whose first line is `user:password`.
    File(PathBuf),
}

/// Where a log is. It is shown without secrets.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port` of each member.
    pub members: Vec<String>,
    pub prefix: String,
    pub credentials: Credentials,
    pub tls: Tls,
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "etcd://{}/{}", self.members.join(","), self.prefix)
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
    /// Says which part is wrong, without showing a password.
    pub fn parse(url: &str) -> io::Result<Self> {
        let rest = url.strip_prefix("etcd://");
        let rest = rest.ok_or_else(|| wrong("it does not begin with etcd://"))?;
        let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, prefix) = place.split_once('/').unwrap_or((place, ""));
        let (user, hosts) = split_user(authority);
        let mut address = Self {
            members: servers(hosts, CLIENT_PORT)?,
            prefix: decoded(address::path(prefix)?.trim_end_matches('/'))?,
            credentials: credentials(user)?,
            tls: Tls::default(),
        };
        if address.prefix.is_empty() {
            return Err(wrong("the prefix of the log's keys is missing"));
        }
        for (key, value) in address::options(options)? {
            match key {
                key if address.tls.set(key, &value)? => {}
                "creds" if address.credentials == Credentials::None => {
                    address.credentials = Credentials::File(value.into());
                }
                "creds" => return Err(wrong("either a user or creds, not both")),
                _ => return Err(wrong(format_args!("there is no option {key:?}"))),
            }
        }
        address.tls = address.tls.checked()?;
        Ok(address)
    }

    /// The members as its client names them.
    pub fn endpoints(&self) -> Vec<String> {
        let scheme = if self.has_tls() { "https" } else { "http" };
        self.members.iter().map(|member| format!("{scheme}://{member}")).collect()
    }

    /// Whoever names a file for TLS wants it.
    fn has_tls(&self) -> bool {
        let Tls { is_required, authorities, certificate, key: _ } = &self.tls;
        *is_required || authorities.is_some() || certificate.is_some()
    }

    /// How to connect. Reads the files that the URL names.
    ///
    /// # Errors
    /// A file cannot be read, or does not hold what it should.
    pub fn options(&self) -> io::Result<ConnectOptions> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_WAIT)
            .with_keep_alive(ALIVE_PAUSE, ALIVE_WAIT)
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        match &self.credentials {
            Credentials::None => {}
            Credentials::Password { user, password } => options = options.with_user(user, password),
            Credentials::File(path) => {
                let text = contents(path)?;
                let line = text.lines().next().unwrap_or_default();
                let (user, password) = line.split_once(':').ok_or_else(|| {
                    wrong(format_args!("the file {} is not user:password", path.display()))
                })?;
                options = options.with_user(user, password);
            }
        }
        if self.has_tls() {
            options = options.with_tls(self.tls()?);
        }
        Ok(options)
    }

    fn tls(&self) -> io::Result<TlsOptions> {
        let mut tls = match &self.tls.authorities {
            Some(path) => TlsOptions::new().ca_certificate(Certificate::from_pem(contents(path)?)),
            None => TlsOptions::new().with_native_roots(),
        };
        if let (Some(certificate), Some(key)) = (&self.tls.certificate, &self.tls.key) {
            tls = tls.identity(Identity::from_pem(contents(certificate)?, contents(key)?));
        }
        Ok(tls)
    }
}

fn credentials(user: Option<&str>) -> io::Result<Credentials> {
    let Some(user) = user else { return Ok(Credentials::None) };
    let (user, password) =
        user.split_once(':').ok_or_else(|| wrong("the user has no password: user:password@"))?;
    Ok(Credentials::Password { user: decoded(user)?, password: decoded(password)? })
}

fn contents(path: &Path) -> io::Result<String> {
    let explained = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
    };
    std::fs::read_to_string(path).map_err(explained)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Address {
        Address::parse(url).expect("the URL is right")
    }

    #[test]
    fn a_url_names_members_and_a_prefix() {
        let address = parse("etcd://a,b:4,[::1]/kiln/shard-0/");
        assert_eq!(address.endpoints(), ["http://a:2379", "http://b:4", "http://[::1]:2379"]);
        assert_eq!(address.prefix, "kiln/shard-0");
        assert_eq!(parse("etcd://a//registry/%25").prefix, "/registry/%");
    }

    #[test]
    fn tls_is_asked_for_or_follows_from_its_files() {
        for options in ["tls=true", "ca=/c", "cert=/c&key=/k"] {
            let address = parse(&format!("etcd://a/x?{options}"));
            assert_eq!(address.endpoints(), ["https://a:2379"], "{options}");
        }
    }

    #[test]
    fn secrets_are_decoded_and_never_shown() {
        let address = parse("etcd://me:p%40ss%2fword@a:1/x");
        let password = "p@ss/word".to_owned();
        assert!(address.credentials == Credentials::Password { user: "me".into(), password });
        assert_eq!(format!("{address} {address:?}"), "etcd://a:1/x etcd://a:1/x");
        assert!(parse("etcd://a/x?creds=/k").credentials == Credentials::File("/k".into()));
    }

    #[test]
    fn what_is_wrong_with_a_url_is_said() {
        let wrong = [
            ("a:2379/x", "begin with etcd://"),
            ("etcd://a:2379", "prefix of the log's keys is missing"),
            ("etcd://a:2379/", "prefix of the log's keys is missing"),
            ("etcd:///x", "no server"),
            ("etcd://hush@a/x", "no password"),
            ("etcd://me:hush%zz@a/x", "hexadecimal"),
            ("etcd://me:hush@a/x?creds=/k", "not both"),
            ("etcd://me:hu/sh@a/x", "as %2F"),
            ("etcd://me:pass?hush@a/x", "prefix"),
            ("etcd://me:1/2?hush@a/x", "as %2F"),
            ("etcd://a/x?cert=/c", "go together"),
            ("etcd://a/x?tls=maybe", "tls does not take"),
            ("etcd://a/x?lease=5", "no option \"lease\""),
        ];
        for (url, part) in wrong {
            let error = Address::parse(url).expect_err(url).to_string();
            assert!(error.contains(part), "{url}: {error}");
            assert!(!error.contains("hush"), "{error}");
        }
    }
}
