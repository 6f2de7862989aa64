//! TLS: what is spoken on encrypted connections, made from the files and rules that the operator
//! names. How bytes pass through one such connection stands in `net/transport/tls.rs`.
//!
//! What is adopted counts for connections that are accepted from then on. Those that stand keep
//! what they agreed on, so a certificate is renewed without losing any of them. Files are read when
//! settings are adopted, on the loop: an operator asks for it, rarely. What cannot be used is
//! refused by name, and what was spoken before goes on.

mod ciphers;
pub mod name;
#[cfg(any(test, feature = "hostile"))]
pub mod papers;
mod verify;

use base::tls::{ClientAuth, KeyPair, TlsSettings};
use ciphers::{chosen_suites, versions};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use verify::Vouched;

/// Longest file of certificates or of a key, in bytes. A guess: a bundle of every public authority
/// takes a quarter of it.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Most files of a folder of trusted certificates. A guess.
const TRUSTED_FILES_MAX: usize = 4096;

/// What TLS is spoken with now. Shared by those who adopt settings and those who accept.
#[derive(Default)]
pub struct Tls {
    spoken: Mutex<Spoken>,
}

#[derive(Clone, Default)]
struct Spoken {
    server: Option<Arc<ServerConfig>>,
    client: Option<Arc<ClientConfig>>,
}

impl fmt::Debug for Tls {
    /// Without what is spoken: there are keys in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Speaks from now on as these settings say.
    ///
    /// # Errors
    /// What is wrong with them, or with a file. Then everything is as before.
    pub fn adopt(&self, settings: &TlsSettings) -> Result<(), String> {
        let server = settings.accepts.then(|| server_config(settings)).transpose()?;
        let client = settings.connects.then(|| client_config(settings)).transpose()?;
        let spoken = Spoken { server: server.map(Arc::new), client: client.map(Arc::new) };
        *self.spoken.lock().unwrap_or_else(PoisonError::into_inner) = spoken;
        Ok(())
    }

    /// What is spoken on connections that are accepted; `None`: nothing is set up.
    pub(crate) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner).server.clone()
    }

    /// What is spoken on connections that this server asks for; `None`: nothing is set up.
    pub(crate) fn client(&self) -> Option<Arc<ClientConfig>> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner).client.clone()
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
    let verifier = Vouched { roots: trusted(settings)?, algorithms };
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
    format!("{certificate} and {key} cannot be used: {error}")
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn load_pair(pair: &KeyPair) -> Result<Pair, String> {
    let chain = certificates(&pair.certificate)?;
    if chain.is_empty() {
        return Err(format!("{}: there is no certificate in it", pair.certificate.display()));
    }
    let text = read(&pair.key)?;
    let is_encrypted = [&b"ENCRYPTED PRIVATE KEY"[..], b"Proc-Type: 4,ENCRYPTED"];
    if is_encrypted.iter().any(|mark| text.windows(mark.len()).any(|part| part == *mark)) {
        return Err(format!(
            "{}: encrypted keys are not read; write it without a password, readable for the \
             server alone",
            pair.key.display()
        ));
    }
    let key = PrivateKeyDer::from_pem_slice(&text)
        .map_err(|_| format!("{}: there is no private key in it", pair.key.display()))?;
    Ok((chain, key))
}

/// The certificates that are trusted.
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
        // What else lies there is none of ours, as OpenSSL has it.
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
