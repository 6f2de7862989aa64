//! Certificates for tests: an authority, and certificates that it signs.
#![allow(clippy::disallowed_methods, reason = "a test writes the files that an operator would")]
#![allow(clippy::unwrap_used, reason = "only tests and the fuzzer come here")]

use base::tls::{ClientAuth, KeyPair, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair as Keys};
use std::path::PathBuf;

/// A folder with an authority's certificate, and those that it issues.
pub struct TestAuthority {
    pub folder: PathBuf,
    issuer: Issuer<'static, Keys>,
}

impl TestAuthority {
    /// Creates the folder and an authority, whose certificate is `ca.crt`.
    pub fn new(name: &str) -> Self {
        let name = format!("kiln-authority-{}-{name}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let keys = Keys::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "the authority");
        let certificate = params.self_signed(&keys).unwrap();
        std::fs::write(folder.join("ca.crt"), certificate.pem()).unwrap();
        Self { folder, issuer: Issuer::new(params, keys) }
    }

    /// Issues a certificate with this common name: `NAME.crt`, with its key `NAME.key`.
    pub fn issue(&self, name: &str) -> KeyPair {
        let keys = Keys::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&keys, &self.issuer).unwrap();
        let (certificate_file, key) = (self.path(name, "crt"), self.path(name, "key"));
        let pair = KeyPair { certificate: certificate_file, key, password: None };
        std::fs::write(&pair.certificate, certificate.pem()).unwrap();
        std::fs::write(&pair.key, keys.serialize_pem()).unwrap();
        pair
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// TLS settings of a server with a certificate of this name.
    pub fn settings(&self, name: &str, client_auth: ClientAuth) -> TlsSettings {
        TlsSettings {
            accepts: true,
            connects: true,
            own_key_pair: None,
            key_pair: Some(self.issue(name)),
            trusted_file: Some(self.folder.join("ca.crt")),
            trusted_folder: None,
            client_auth,
            protocols: String::new(),
            ciphers: String::new(),
            ciphersuites: String::new(),
            prefers_own_order: false,
            sessions_max: 10,
        }
    }
}

impl Drop for TestAuthority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
