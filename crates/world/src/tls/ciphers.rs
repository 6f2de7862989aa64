//! Versions and ciphers of TLS by OpenSSL's names, as `redis.conf` has them.
//!
//! rustls supports TLS 1.2 and 1.3, and no cipher known to be weak. Asking for any other is an
//! error that names it, so that nobody believes it to be in use.

use rustls::crypto::ring::cipher_suite as suites;
use rustls::version::{TLS12, TLS13};
use rustls::{SupportedCipherSuite, SupportedProtocolVersion};

/// Ciphers of TLS 1.2, in the order of preference.
const CIPHERS: [(&str, SupportedCipherSuite); 6] = [
    ("ECDHE-ECDSA-AES256-GCM-SHA384", suites::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-ECDSA-AES128-GCM-SHA256", suites::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-ECDSA-CHACHA20-POLY1305", suites::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
    ("ECDHE-RSA-AES256-GCM-SHA384", suites::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384),
    ("ECDHE-RSA-AES128-GCM-SHA256", suites::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256),
    ("ECDHE-RSA-CHACHA20-POLY1305", suites::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
];

/// Those of TLS 1.3.
const CIPHERSUITES: [(&str, SupportedCipherSuite); 3] = [
    ("TLS_AES_256_GCM_SHA384", suites::TLS13_AES_256_GCM_SHA384),
    ("TLS_AES_128_GCM_SHA256", suites::TLS13_AES_128_GCM_SHA256),
    ("TLS_CHACHA20_POLY1305_SHA256", suites::TLS13_CHACHA20_POLY1305_SHA256),
];

/// OpenSSL's words for a group of ciphers. Each stands for all ciphers supported here.
const EVERY: [&str; 4] = ["DEFAULT", "ALL", "HIGH", "ECDHE"];

/// The versions that a list names; all supported ones if it is empty.
///
/// # Errors
/// The list names a version that is not supported.
pub fn versions(list: &str) -> Result<Vec<&'static SupportedProtocolVersion>, String> {
    if list.trim().is_empty() {
        return Ok(vec![&TLS13, &TLS12]);
    }
    let one = |word: &str| match word.to_ascii_lowercase().as_str() {
        "tlsv1.2" => Ok(&TLS12),
        "tlsv1.3" => Ok(&TLS13),
        _ => Err(format!("tls-protocols: {word} is not spoken; TLSv1.2 and TLSv1.3 are")),
    };
    list.split_ascii_whitespace().map(one).collect()
}

/// The cipher suites that both lists allow.
///
/// # Errors
/// A list names a cipher that is not supported, or no cipher remains.
pub fn chosen_suites(
    ciphers: &str,
    ciphersuites: &str,
) -> Result<Vec<SupportedCipherSuite>, String> {
    let newer = chosen("tls-ciphersuites", ciphersuites, &CIPHERSUITES)?;
    let older = chosen("tls-ciphers", ciphers, &CIPHERS)?;
    Ok(newer.into_iter().chain(older).collect())
}

fn chosen(
    directive: &str,
    list: &str,
    known: &[(&str, SupportedCipherSuite)],
) -> Result<Vec<SupportedCipherSuite>, String> {
    let is_known = |word: &str| known.iter().find(|(name, _)| name.eq_ignore_ascii_case(word));
    let mut chosen: Vec<(&str, SupportedCipherSuite)> = Vec::new();
    let mut left_out: Vec<&str> = Vec::new();
    let words = || list.split([':', ',', ' ']).filter(|word| !word.is_empty());
    for word in words() {
        if let Some(without) = word.strip_prefix(['!', '-']) {
            // Leaving out a cipher that is not supported is no error.
            left_out.push(without);
        } else if EVERY.iter().any(|every| every.eq_ignore_ascii_case(word)) {
            chosen.extend(known);
        } else if let Some(suite) = is_known(word) {
            chosen.push(*suite);
        } else {
            let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            return Err(format!("{directive}: {word} is not spoken; these are: {names}"));
        }
    }
    if words().next().is_none() {
        chosen.extend(known);
    }
    chosen.retain(|(name, _)| !left_out.iter().any(|out| out.eq_ignore_ascii_case(name)));
    let mut suites = Vec::new();
    for (_, suite) in chosen {
        if !suites.contains(&suite) {
            suites.push(suite);
        }
    }
    if suites.is_empty() { Err(format!("{directive}: nothing is left")) } else { Ok(suites) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_have_the_names_of_openssl() {
        let named = |list: &str| versions(list).map(|found| found.len());
        assert_eq!((named(""), named("TLSv1.2 tlsv1.3"), named("TLSv1.3")), (Ok(2), Ok(2), Ok(1)));
        assert!(named("TLSv1.1 TLSv1.2").is_err_and(|why| why.contains("TLSv1.1 is not spoken")));
    }

    #[test]
    fn a_list_chooses_names_and_leaves_out() {
        let names = |list: &str| {
            let found = chosen("x", list, &CIPHERS)?;
            let name = |suite| CIPHERS.iter().find(|(_, one)| *one == suite).map(|(name, _)| *name);
            Ok::<_, String>(found.into_iter().filter_map(name).collect::<Vec<_>>())
        };
        assert_eq!(names("").map(|it| it.len()), Ok(6));
        assert_eq!(names("DEFAULT:!MEDIUM:!aNULL").map(|it| it.len()), Ok(6));
        let two = "ECDHE-RSA-CHACHA20-POLY1305:ecdhe-rsa-aes128-gcm-sha256";
        let found = ["ECDHE-RSA-CHACHA20-POLY1305", "ECDHE-RSA-AES128-GCM-SHA256"];
        assert_eq!(names(two), Ok(found.to_vec()));
        assert_eq!(names("HIGH:-ECDHE-RSA-AES128-GCM-SHA256").map(|it| it.len()), Ok(5));
        assert!(names("AES128-SHA256").is_err_and(|why| why.contains("AES128-SHA256 is not")));
        assert!(names("!ECDHE-RSA-AES128-GCM-SHA256").is_err());
    }
}
