//! The private key of a certificate, read from its PEM file, which may be encrypted.
//!
//! An encrypted key is PKCS#8 by PBES2, which OpenSSL writes since 1.1 (`openssl genpkey`, `openssl
//! pkcs8 -topk8`; `openssl rsa` and `openssl ec` since 3.0). The older form, a PEM file with the
//! line `Proc-Type: 4,ENCRYPTED`, is refused: it derives the cipher's key by one round of MD5.

use base::tls::Password;
use pkcs8::{EncryptedPrivateKeyInfo, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The first line of a key that is encrypted in the older form.
const OLD_FORM: &str = "Proc-Type: 4,ENCRYPTED";

const NONE: &str = "there is no private key in it";

/// Reads a private key from the text of its file.
///
/// # Errors
/// There is none, or it cannot be decrypted. The text says so, and nothing of key or password.
pub(super) fn private_key(
    text: &[u8],
    password: Option<&Password>,
) -> Result<PrivateKeyDer<'static>, &'static str> {
    let words = std::str::from_utf8(text).unwrap_or_default();
    if words.contains(OLD_FORM) {
        return Err(
            "it is encrypted in an old form; `openssl pkcs8 -topk8` writes the one that is read",
        );
    }
    let Some(begin) = words.find(BEGIN) else {
        return PrivateKeyDer::from_pem_slice(text).map_err(|_| NONE);
    };
    let end = words[begin..].find(END).ok_or(NONE)? + END.len();
    let (_, encrypted) = SecretDocument::from_pem(&words[begin..begin + end]).map_err(|_| NONE)?;
    let Some(password) = password else {
        return Err("it is encrypted, and no password is set for it (tls-key-file-pass, \
                    tls-client-key-file-pass)");
    };
    let encrypted = EncryptedPrivateKeyInfo::try_from(encrypted.as_bytes()).map_err(|_| NONE)?;
    let key = encrypted.decrypt(&password.0).map_err(|_| {
        "it cannot be decrypted: the password is another, or the cipher is none of PBES2 with AES"
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of P-256: `openssl genpkey`, then `openssl pkcs8 -topk8 -v2 aes-256-cbc -passout
    /// pass:1234`.
    const ENCRYPTED: &[u8] = include_bytes!("key/encrypted.pem");
    /// The same key by `openssl pkcs8 -topk8 -nocrypt`.
    const PLAIN: &[u8] = include_bytes!("key/plain.pem");

    #[test]
    fn an_encrypted_key_is_what_it_was_before() {
        let password = Password(b"1234".to_vec());
        let plain = private_key(PLAIN, None).unwrap();
        assert_eq!(private_key(ENCRYPTED, Some(&password)).unwrap(), plain);
        assert_eq!(private_key(PLAIN, Some(&password)).unwrap(), plain, "it needs none");
        let behind = [b"Bag Attributes\n".as_slice(), ENCRYPTED, b"and more\n"].concat();
        assert_eq!(private_key(&behind, Some(&password)).unwrap(), plain);
    }

    #[test]
    fn what_cannot_be_read_is_refused_without_a_word_of_the_password() {
        let wrong = Password(b"sesame".to_vec());
        let why = private_key(ENCRYPTED, Some(&wrong)).unwrap_err();
        assert!(why.contains("the password is another") && !why.contains("sesame"), "{why}");
        assert!(private_key(ENCRYPTED, None).unwrap_err().contains("no password is set"));
        assert_eq!(format!("{wrong:?}"), "Password");
        let old = b"-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n";
        assert!(private_key(old, Some(&wrong)).unwrap_err().contains("old form"));
        for length in 0..ENCRYPTED.len() - 1 {
            assert!(private_key(&ENCRYPTED[..length], Some(&wrong)).is_err());
        }
    }
}
