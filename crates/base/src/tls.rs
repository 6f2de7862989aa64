//! Settings of encrypted connections (TLS): the operator's files and rules. The crate `world`
//! carries them out.

use std::fmt;
use std::path::PathBuf;

/// A certificate and its key, by the names of their files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPair {
    /// A PEM file: the certificate first, then the intermediate certificates up to a trusted one.
    pub certificate: PathBuf,
    /// A PEM file: the private key of the certificate. It may be encrypted if it is in PKCS#8.
    pub key: PathBuf,
    /// The password of an encrypted key; of no use to one that is not.
    pub password: Option<Password>,
}

/// The password of a private key.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(pub Vec<u8>);

impl fmt::Debug for Password {
    /// Shows nothing of it: settings may be logged.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}

/// The rule for client certificates (`tls-auth-clients`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientAuth {
    No,
    /// A client may come without a certificate. If it sends one, a trusted authority must have
    /// signed it.
    Optional,
    Required,
}

/// The files and rules of TLS, as the directives `tls-*` give them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsSettings {
    /// Whether clients may connect over TLS (`tls-port` is set). Then `key_pair` must be given.
    pub accepts: bool,
    /// Whether this server dials others over TLS (`tls-replication` or `tls-cluster`). Then trusted
    /// certificates must be given.
    pub connects: bool,
    pub key_pair: Option<KeyPair>,
    /// The certificate for connections that this server dials; `None`: `key_pair` is used there
    /// too.
    pub own_key_pair: Option<KeyPair>,
    /// A PEM file of trusted certificates (authorities), and a folder of such files. Both count.
    pub trusted_file: Option<PathBuf>,
    pub trusted_folder: Option<PathBuf>,
    pub client_auth: ClientAuth,
    /// Allowed versions, by OpenSSL's names, separated by blanks. Empty: all that rustls supports.
    pub protocols: String,
    /// Allowed ciphers of TLS 1.2, by OpenSSL's names, separated by colons. Empty: all.
    pub ciphers: String,
    /// Allowed ciphers of TLS 1.3, in the same form.
    pub ciphersuites: String,
    /// Whether the server's order of ciphers decides, rather than the client's.
    pub prefers_own_order: bool,
    /// Sessions kept for resumption by clients; 0: none can be resumed.
    pub sessions_max: usize,
}
