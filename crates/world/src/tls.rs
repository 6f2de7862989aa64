//! TLS configurations for accepted and dialed connections, built from the operator's files and
//! rules. How bytes pass through one connection stands in `net/transport/tls.rs`.
//!
//! New settings count for connections that begin after them. Open connections keep what they
//! negotiated, so a certificate can be renewed without losing any of them. Files are read on the
//! loop when settings are adopted, which an operator asks for rarely. Settings that cannot be used
//! are refused with the reason, and the ones before stay in force.

mod ciphers;
mod key;
pub mod name;
#[cfg(any(test, feature = "hostile"))]
pub mod test_authority;
mod verify;

use base::tls::{ClientAuth, KeyPair, TlsSettings};
use ciphers::{chosen_suites, versions};
use key::private_key;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use verify::AuthorityVerifier;

/// Longest file of certificates or of a key, in bytes. A guess: a bundle of every public authority
/// takes a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Most files of a folder of trusted certificates. A guess.
const TRUSTED_FILES_MAX: usize = 4096;

/// The TLS configurations in force. CONFIG SET replaces them; the network driver reads them for
/// each new connection.
#[derive(Default)]
pub struct Tls {
    configs: Mutex<Configs>,
}

/// What each end of a connection speaks. `None`: TLS is not set up for it.
#[derive(Clone, Default)]
struct Configs {
    server: Option<Arc<ServerConfig>>,
    client: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Tls {
    /// Shows no configuration: there are private keys in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Puts settings in force, for connections that begin later.
    ///
    /// # Errors
    /// A text that names the bad setting or file. The settings in force then stay.
    pub fn adopt(&self, settings: &TlsSettings) -> Result<(), String> {
        let server = settings.accepts.then(|| server_config(settings)).transpose()?;
        let client = settings.connects.then(|| client_config(settings)).transpose()?;
        let configs = Configs { server: server.map(Arc::new), client: client.map(Arc::new) };
        *self.configs.lock().unwrap_or_else(PoisonError::into_inner) = configs;
        Ok(())
    }

    /// The configuration for accepted connections; `None`: TLS is not set up for them.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner).server.clone()
    }

    /// The configuration for connections that this server dials; `None`: TLS is not set up for
    /// them.
    pub(crate) fn client(&self) -> Option<Arc<ClientConfig>> {
        self.configs.lock().unwrap_or_else(PoisonError::into_inner).client.clone()
    }
}

fn server_config(settings: &TlsSettings) -> Result<ServerConfig, String> {
    let pair = settings.key_pair.as_ref().ok_or("tls-cert-file and tls-key-file are needed")?;
    let provider = provider(settings)?;
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(&settings.protocols)?)
        .map_err(|error| format!("the ciphers and tls-protocols do not go together: {error}"))?;
    let builder = match settings.client_auth {
        ClientAuth::No => builder.with_no_client_auth(),
        auth => {
            let roots = Arc::new(trusted(settings)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
            let verifier = match auth {
                ClientAuth::Optional => verifier.allow_unauthenticated(),
                _ => verifier,
            };
            let verifier = verifier.build();
            let verifier =
                verifier.map_err(|error| format!("the trusted certificates: {error}"))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (chain, key) = load_pair(pair)?;
    let mut config =
        builder.with_single_cert(chain, key).map_err(|error| unusable(pair, &error))?;
    config.ignore_client_order = settings.prefers_own_order;
    if settings.sessions_max == 0 {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else {
        config.session_storage = ServerSessionMemoryCache::new(settings.sessions_max);
        config.send_tls13_tickets = 1;
    }
    Ok(config)
}

fn client_config(settings: &TlsSettings) -> Result<ClientConfig, String> {
    let provider = provider(settings)?;
    let algorithms = provider.signature_verification_algorithms;
    let verifier = AuthorityVerifier { roots: trusted(settings)?, algorithms };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions(&settings.protocols)?)
        .map_err(|error| format!("the ciphers and tls-protocols do not go together: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let Some(pair) = settings.own_key_pair.as_ref().or(settings.key_pair.as_ref()) else {
        return Ok(builder.with_no_client_auth());
    };
    let (chain, key) = load_pair(pair)?;
    builder.with_client_auth_cert(chain, key).map_err(|error| unusable(pair, &error))
}

fn provider(settings: &TlsSettings) -> Result<Arc<CryptoProvider>, String> {
    let cipher_suites = chosen_suites(&settings.ciphers, &settings.ciphersuites)?;
    Ok(Arc::new(CryptoProvider { cipher_suites, ..ring::default_provider() }))
}

fn unusable(pair: &KeyPair, error: &rustls::Error) -> String {
    let (certificate, key) = (pair.certificate.display(), pair.key.display());
    let mut text = format!("{certificate} and {key} cannot be used: {error}");
    if text.contains("UnsupportedCertVersion") {
        text += ". Certificates must be of X.509 version 3; `openssl x509 -req` writes that with \
                 `-extfile`, and `openssl req -x509` always";
    }
    text
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn load_pair(pair: &KeyPair) -> Result<Pair, String> {
    let chain = certificates(&pair.certificate)?;
    if chain.is_empty() {
        return Err(format!("{}: there is no certificate in it", pair.certificate.display()));
    }
    let text = read(&pair.key)?;
    let key = private_key(&text, pair.password.as_ref());
    Ok((chain, key.map_err(|why| format!("{}: {why}", pair.key.display()))?))
}

/// The trusted certificates, from the file and from the folder.
fn trusted(settings: &TlsSettings) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = &settings.trusted_file {
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| format!("{}: {error}", file.display()))?;
        }
    }
    if let Some(folder) = &settings.trusted_folder {
        let files = std::fs::read_dir(folder).and_then(|entries| {
            entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()
        });
        let mut files = files.map_err(|error| format!("{}: {error}", folder.display()))?;
        files.sort();
        if files.len() > TRUSTED_FILES_MAX {
            return Err(format!("{}: more than {TRUSTED_FILES_MAX} files", folder.display()));
        }
        // Files without certificates in the folder are ignored, as OpenSSL does.
        for file in files.iter().filter(|file| file.is_file()) {
            roots.add_parsable_certificates(certificates(file).unwrap_or_default());
        }
    }
    if roots.is_empty() {
        return Err("tls-ca-cert-file or tls-ca-cert-dir must name a certificate, or \
                    tls-auth-clients, tls-replication and tls-cluster be no"
            .to_owned());
    }
    Ok(roots)
}

fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let text = read(file)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    found.map_err(|error| format!("{}: {error}", file.display()))
}

#[expect(clippy::disallowed_methods, reason = "this crate is where they are called")]
fn read(file: &Path) -> Result<Vec<u8>, String> {
    let failed = |why: &dyn fmt::Display| format!("{}: {why}", file.display());
    // Opening a FIFO would wait for somebody to write into it.
    let kind = std::fs::metadata(file).map_err(|error| failed(&error))?;
    if !kind.is_file() {
        return Err(failed(&"it is no regular file"));
    }
    let opened = std::fs::File::open(file).map_err(|error| failed(&error))?;
    let mut bytes = Vec::new();
    let mut bounded = opened.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut bytes).map_err(|error| failed(&error))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(failed(&"it is too long for a certificate or a key"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests;
