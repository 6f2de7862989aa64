//! The private key of a certificate, read from its PEM file, which may be encrypted.
//!
//! An encrypted key is PKCS#8 by PBES2, which OpenSSL writes since 1.1 (`openssl genpkey`, `openssl
//! pkcs8 -topk8`; `openssl rsa` and `openssl ec` since 3.0). The older form, a PEM file with the
//! line `Proc-Type: 4,ENCRYPTED`, is refused: it derives the cipher's key by one round of MD5.

use base::tls::Password;
use pkcs8::pkcs5::EncryptionScheme;
use pkcs8::pkcs5::pbes2::Kdf;
use pkcs8::{EncryptedPrivateKeyInfo, SecretDocument};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// The first line of a key that is encrypted in the older form.
const OLD_FORM: &str = "Proc-Type: 4,ENCRYPTED";

const NONE: &str = "there is no private key in it";

/// The largest number of rounds of PBKDF2, some seconds of one core. OpenSSL writes 2,048 unless it
/// is told, and OWASP advises 600,000.
const PBKDF2_ROUNDS_MAX: u32 = 2_000_000;

/// The most memory that scrypt goes through, in bytes, over all its passes: four times what OpenSSL
/// asks for unless it is told.
const SCRYPT_BYTES_MAX: u64 = 64 << 20;

/// Reads a private key from the text of its file.
///
/// # Errors
/// There is none, or it cannot be decrypted. The text says so, and nothing of key or password.
pub(super) fn private_key(
    text: &[u8],
    password: Option<&Password>,
) -> Result<PrivateKeyDer<'static>, &'static str> {
    // What stands around a key may be in any encoding.
    let words = String::from_utf8_lossy(text);
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
    if asks_too_much(&encrypted.encryption_algorithm) {
        return Err("its password is derived at too high a cost; `openssl pkcs8 -topk8 -iter` \
                    writes it with fewer rounds");
    }
    let key = encrypted.decrypt(&password.0).map_err(|_| {
        "it cannot be decrypted: the password is another, or the cipher is none of PBES2 with AES"
    })?;
    Ok(PrivatePkcs8KeyDer::from(key.as_bytes().to_vec()).into())
}

/// Whether deriving the cipher's key takes longer, or more memory, than a server may spend on it
/// that serves others meanwhile: the file says how much (RFC 8018, RFC 7914 section 7).
fn asks_too_much(scheme: &EncryptionScheme<'_>) -> bool {
    match scheme.pbes2().map(|parameters| &parameters.kdf) {
        Some(Kdf::Pbkdf2(kdf)) => kdf.iteration_count > PBKDF2_ROUNDS_MAX,
        Some(Kdf::Scrypt(kdf)) => {
            let bytes = kdf.cost_parameter.saturating_mul(128 * u64::from(kdf.block_size));
            bytes.saturating_mul(u64::from(kdf.parallelization)) > SCRYPT_BYTES_MAX
        }
        // What is none of these is not decrypted.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A key of P-256: `openssl genpkey`, then `openssl pkcs8 -topk8 -v2 aes-256-cbc -passout
    /// pass:1234`.
    const ENCRYPTED: &[u8] = include_bytes!("key/encrypted.pem");
    /// The same key by `openssl pkcs8 -topk8 -nocrypt`.
    const PLAIN: &[u8] = include_bytes!("key/plain.pem");
    /// The same key by `openssl pkcs8 -topk8 -scrypt -passout pass:1234`.
    const SCRYPT: &[u8] = include_bytes!("key/scrypt.pem");

    fn read(text: &[u8], password: Option<&Password>) -> PrivateKeyDer<'static> {
        private_key(text, password).expect("it can be read")
    }

    #[test]
    fn an_encrypted_key_is_what_it_was_before() {
        let password = Password(b"1234".to_vec());
        let plain = read(PLAIN, None);
        assert_eq!(read(ENCRYPTED, Some(&password)), plain);
        assert_eq!(read(SCRYPT, Some(&password)), plain);
        assert_eq!(read(PLAIN, Some(&password)), plain, "it needs none");
        let behind =
            [b"Bag Attributes of Z\xfcrich\n".as_slice(), ENCRYPTED, b"and more\n"].concat();
        assert_eq!(read(&behind, Some(&password)), plain);
    }

    /// Otherwise a file says for how long the server is still, or how much memory it takes: the
    /// three ask for 3,000,000 rounds, 260 MB, and 127 passes over 16 MB.
    #[test]
    fn a_key_whose_password_costs_too_much_is_refused() {
        let password = Password(b"1234".to_vec());
        for text in [
            include_bytes!("key/pbkdf2_slow.pem").as_slice(),
            include_bytes!("key/scrypt_large.pem"),
            include_bytes!("key/scrypt_slow.pem"),
        ] {
            let why = private_key(text, Some(&password)).expect_err("it costs too much");
            assert!(why.contains("too high a cost"), "{why}");
        }
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
