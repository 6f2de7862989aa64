//! Encrypted connections (TLS), as an operator asks for them: which files, and which rules. Who
//! speaks TLS is `world`.

use std::path::PathBuf;

/// A certificate and its key, by the names of their files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyPair {
    /// The certificate, and behind it those that lead to a known one. PEM.
    pub certificate: PathBuf,
    /// Its key. PEM, not encrypted.
    pub key: PathBuf,
}

/// Whether clients must show a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientAuth {
    No,
    /// Who shows one must show a good one.
    Optional,
    Required,
}

/// What TLS is spoken with.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsSettings {
    /// It is spoken on connections that come: then what they need must be there.
    pub accepts: bool,
    /// It is spoken on connections that this server asks for: the same.
    pub connects: bool,
    pub key_pair: Option<KeyPair>,
    /// What is shown on connections that this server asks for; `None`: the same.
    pub own_key_pair: Option<KeyPair>,
    /// Certificates that are trusted: in a file, in all files of a folder.
    pub trusted_file: Option<PathBuf>,
    pub trusted_folder: Option<PathBuf>,
    pub client_auth: ClientAuth,
    /// Versions, as OpenSSL calls them, separated by blanks. Empty: all that are spoken.
    pub protocols: String,
    /// Ciphers of TLS 1.2, as OpenSSL calls them, separated by colons. Empty: all.
    pub ciphers: String,
    /// The same of TLS 1.3.
    pub ciphersuites: String,
    /// The server's order of ciphers counts, not the client's.
    pub prefers_own_order: bool,
    /// Sessions that may be taken up again; 0: none.
    pub sessions_max: usize,
}
