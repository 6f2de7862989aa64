//! AES-256-GCM with one data key.

use crate::error::KeyError;
use crate::masters::DATA_KEY_BYTES;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use std::fmt;

/// Bytes of a nonce. None may be used twice with one key.
pub const NONCE_BYTES: usize = NONCE_LEN;

/// Bytes of the tag that shows whether bytes are those that were encrypted.
pub const TAG_BYTES: usize = 16;

/// A key that encrypts. Whoever uses it keeps the nonces apart.
pub struct DataKey(LessSafeKey);

impl fmt::Debug for DataKey {
    /// Shows nothing of the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

impl DataKey {
    pub fn new(bytes: &[u8; DATA_KEY_BYTES]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, bytes).expect("AES-256 takes 32 bytes");
        Self(LessSafeKey::new(key))
    }

    /// Encrypts bytes in place; the tag. `context` is not encrypted, and must be the same when it
    /// is decrypted.
    pub fn encrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        context: &[u8],
        bytes: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = self.0.seal_in_place_separate_tag(nonce, Aad::from(context), bytes);
        let tag = sealed.expect("no piece reaches the 64 GiB that AES-GCM takes at once");
        tag.as_ref().try_into().expect("the tag of AES-GCM has 16 bytes")
    }

    /// Decrypts bytes in place. What stays in `bytes` after an error is nothing that was encrypted.
    ///
    /// # Errors
    /// [`KeyError::Altered`].
    pub fn decrypt(
        &self,
        nonce: [u8; NONCE_BYTES],
        context: &[u8],
        bytes: &mut [u8],
        tag: [u8; TAG_BYTES],
    ) -> Result<(), KeyError> {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.0.open_in_place_separate_tag(
            nonce,
            Aad::from(context),
            Tag::from(tag),
            bytes,
            0..,
        );
        opened.map(|_| ()).map_err(|_| KeyError::Altered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test case 16 of the specification of GCM (McGrew and Viega): AES-256 with associated data.
    #[test]
    fn it_is_the_aes_gcm_of_the_specification() {
        let bytes = |hex: &str| -> Vec<u8> {
            let digits = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
            (0..hex.len()).step_by(2).map(digits).collect()
        };
        let key = bytes("feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308");
        let nonce: [u8; 12] = bytes("cafebabefacedbaddecaf888").try_into().expect("12");
        let plain = bytes(concat!(
            "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72",
            "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39"
        ));
        let context = bytes("feedfacedeadbeeffeedfacedeadbeefabaddad2");
        let key = DataKey::new(&key.try_into().expect("32"));
        let mut buffer = plain.clone();
        let tag = key.encrypt(nonce, &context, &mut buffer);
        let expected = bytes(concat!(
            "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa",
            "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662"
        ));
        assert_eq!(buffer, expected);
        assert_eq!(tag[..], bytes("76fc6ece0f4e1768cddf8853bb2d551b"));
        key.decrypt(nonce, &context, &mut buffer, tag).expect("nothing was changed");
        assert_eq!(buffer, plain);
        assert_eq!(format!("{key:?}"), "DataKey");
    }
}
