//! The directives `tls-*` as settings of encrypted connections.

use crate::Config;
use crate::table::{DIRECTIVES, row};
use base::tls::{ClientAuth, KeyPair, Password, TlsSettings};
use std::path::PathBuf;

/// The directives about TLS. A change of any of them puts all in force anew.
pub const TLS_ROWS: [usize; 18] = [
    row("tls-port"),
    row("tls-replication"),
    row("tls-cluster"),
    row("tls-client-cert-file"),
    row("tls-client-key-file"),
    row("tls-client-key-file-pass"),
    row("tls-auth-clients"),
    row("tls-cert-file"),
    row("tls-key-file"),
    row("tls-key-file-pass"),
    row("tls-ca-cert-file"),
    row("tls-ca-cert-dir"),
    row("tls-protocols"),
    row("tls-ciphers"),
    row("tls-ciphersuites"),
    row("tls-prefer-server-ciphers"),
    row("tls-session-caching"),
    row("tls-session-cache-size"),
];

/// Sessions kept where `tls-session-cache-size` sets no limit: Redis's default.
const SESSIONS_MAX: usize = 20480;

pub(super) fn tls_settings(config: &Config) -> TlsSettings {
    let file = |row: usize| -> Option<PathBuf> {
        let name = config.text(row);
        (!name.is_empty()).then(|| crate::resolve(&config.directory(), name))
    };
    let words = |row: usize| String::from_utf8_lossy(config.text(row)).into_owned();
    let pair = |certificate, key, password| {
        let text = config.text(password);
        let password = (!text.is_empty()).then(|| Password(text.to_vec()));
        let pair = file(certificate).zip(file(key));
        pair.map(|(certificate, key)| KeyPair { certificate, key, password })
    };
    let kept = match config.number::<usize>(const { row("tls-session-cache-size") }) {
        0 => SESSIONS_MAX,
        some => some,
    };
    let keeps_sessions = config.is_on(const { row("tls-session-caching") });
    TlsSettings {
        accepts: config.number::<u16>(const { row("tls-port") }) != 0,
        connects: config.is_on(const { row("tls-replication") })
            || config.is_on(const { row("tls-cluster") }),
        key_pair: pair(
            const { row("tls-cert-file") },
            const { row("tls-key-file") },
            const { row("tls-key-file-pass") },
        ),
        own_key_pair: pair(
            const { row("tls-client-cert-file") },
            const { row("tls-client-key-file") },
            const { row("tls-client-key-file-pass") },
        ),
        trusted_file: file(const { row("tls-ca-cert-file") }),
        trusted_folder: file(const { row("tls-ca-cert-dir") }),
        client_auth: match config.word(const { row("tls-auth-clients") }) {
            "no" => ClientAuth::No,
            "optional" => ClientAuth::Optional,
            _ => ClientAuth::Required,
        },
        protocols: words(const { row("tls-protocols") }),
        ciphers: words(const { row("tls-ciphers") }),
        ciphersuites: words(const { row("tls-ciphersuites") }),
        prefers_own_order: config.is_on(const { row("tls-prefer-server-ciphers") }),
        sessions_max: if keeps_sessions { kept } else { 0 },
    }
}

/// The name of the first directive about TLS among the rows that CONFIG SET named. An error about
/// TLS names this directive.
pub fn tls_directive(named: &[usize]) -> Option<&'static str> {
    let found = named.iter().find(|row| TLS_ROWS.contains(row));
    found.map(|row| DIRECTIVES[*row].name)
}
