//! Certificates for tests: an authority, and those for whom it vouches.
#![allow(clippy::disallowed_methods, reason = "a test writes the files that an operator would")]
#![allow(clippy::unwrap_used, reason = "only tests and the fuzzer come here")]

use base::tls::{ClientAuth, KeyPair, TlsSettings};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair as Keys};
use std::path::PathBuf;

/// Certificates and keys in a folder of their own.
pub struct Papers {
    pub folder: PathBuf,
    issuer: Issuer<'static, Keys>,
}

impl Papers {
    /// An authority, whose certificate is `ca.crt`.
    pub fn new(name: &str) -> Self {
        let name = format!("kiln-papers-{}-{name}", std::process::id());
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

    /// A certificate in this name, `NAME.crt`, with its key `NAME.key`.
    pub fn issue(&self, name: &str) -> KeyPair {
        let keys = Keys::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&keys, &self.issuer).unwrap();
        let pair = KeyPair { certificate: self.path(name, "crt"), key: self.path(name, "key") };
        std::fs::write(&pair.certificate, certificate.pem()).unwrap();
        std::fs::write(&pair.key, keys.serialize_pem()).unwrap();
        pair
    }

    fn path(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// Settings of a server with this name.
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

impl Drop for Papers {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
