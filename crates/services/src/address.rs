//! What the URLs of logs have in common: servers, a user, files for TLS.
//!
//! ```text
//! scheme://[user:password@]host[:port][,host[:port]…]/rest[?option=value&…]
//! ```
//!
//! `%40` and its like stand for characters that mean something here. No error repeats what may be
//! a secret.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// An error that says which part is wrong.
pub fn wrong(what: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("the URL of the log: {what}"))
}

/// The rest of a password reads as a path or as options if it is written as it is. It is not shown.
const MISPLACED: &str = "a character stands where none like it can: write / ? @ : % of a user or a \
                         password as %2F %3F %40 %3A %25";

/// The path of a log within its service: it has no raw `@`, which would belong to a user.
pub fn path(text: &str) -> io::Result<&str> {
    if text.contains('@') { Err(wrong(MISPLACED)) } else { Ok(text) }
}

/// Splits a user from hosts: neither has a raw `@`.
pub fn split_user(authority: &str) -> (Option<&str>, &str) {
    match authority.rsplit_once('@') {
        Some((user, hosts)) => (Some(user), hosts),
        None => (None, authority),
    }
}

/// `host:port` of each of the servers listed; a port that is not named is `port`.
pub fn servers(hosts: &str, port: u16) -> io::Result<Vec<String>> {
    let servers: Vec<String> = hosts
        .split(',')
        .filter(|host| !host.is_empty())
        .map(|host| with_port(host, port))
        .collect();
    if servers.is_empty() {
        return Err(wrong("it names no server"));
    }
    Ok(servers)
}

/// Where the port's colon stands, if there is one: those within the brackets of an IPv6 address
/// begin none.
pub fn port_at(host: &str) -> Option<usize> {
    host.rfind(':').filter(|&colon| host.rfind(']').is_none_or(|bracket| bracket < colon))
}

fn with_port(host: &str, port: u16) -> String {
    if port_at(host).is_some() { host.to_owned() } else { format!("{host}:{port}") }
}

/// The options behind the `?`, decoded.
pub fn options(text: &str) -> io::Result<Vec<(&str, String)>> {
    fn taken_apart(option: &str) -> io::Result<(&str, String)> {
        let (key, value) = option.split_once('=').unwrap_or((option, ""));
        if !key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(wrong(MISPLACED));
        }
        if !option.contains('=') {
            return Err(wrong(format_args!("the option {key} has no value")));
        }
        Ok((key, decoded(value)?))
    }
    text.split('&').filter(|option| !option.is_empty()).map(taken_apart).collect()
}

/// Resolves `%40` and its like.
pub fn decoded(text: &str) -> io::Result<String> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.ok_or_else(|| wrong("% is not followed by two hexadecimal digits"))?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).map_err(|_| wrong("what % stands for is not UTF-8"))
}

/// Files for TLS, each as PEM.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Tls {
    pub is_required: bool,
    pub authorities: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

impl Tls {
    /// Takes an option if it is one of these. Says whether it was.
    pub fn set(&mut self, key: &str, value: &str) -> io::Result<bool> {
        match (key, value) {
            ("tls", "true") => self.is_required = true,
            ("tls", value) => return Err(wrong(format_args!("tls does not take {value:?}"))),
            ("ca", path) => self.authorities = Some(path.into()),
            ("cert", path) => self.certificate = Some(path.into()),
            ("key", path) => self.key = Some(path.into()),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Checked when every option has been taken.
    pub fn checked(self) -> io::Result<Self> {
        if self.certificate.is_some() != self.key.is_some() {
            return Err(wrong("cert and key go together"));
        }
        Ok(self)
    }
}
