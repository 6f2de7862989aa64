//! The payload of one record, encrypted.
//!
//! ```text
//! | encrypted bytes | tag, 16 | nonce, 12 | envelope, e | e, u16 | version 1 | 0 |
//! ```
//! What is needed to read it stands behind it, so that it is encrypted where it lies.

use crate::data_key::{NONCE_BYTES, TAG_BYTES};
use crate::envelope::{self, ENVELOPE_BYTES_MAX};
use crate::error::KeyError;
use crate::keys::Keys;
use crate::masters::Wrapped;
use bytes::BytesMut;

/// Bytes by which a payload grows, at most.
pub const PAYLOAD_OVERHEAD_BYTES_MAX: usize =
    TAG_BYTES + NONCE_BYTES + ENVELOPE_BYTES_MAX + END_BYTES;

/// The length of the envelope, and the version.
const END_BYTES: usize = 4;

const VERSION: u8 = 1;

impl Keys {
    /// Encrypts the payload that begins at `from` in a buffer, and appends what is needed to read
    /// it. `context` stays readable and must be the same when it is decrypted.
    ///
    /// # Panics
    /// The process has no keys.
    pub fn encrypt_payload(&self, context: &[u8], buffer: &mut BytesMut, from: usize) {
        let (own, nonce) = self.for_payload();
        let bytes = TAG_BYTES + NONCE_BYTES + own.envelope.len() + END_BYTES;
        buffer.reserve(bytes);
        let tag = own.key.encrypt(nonce, context, &mut buffer[from..]);
        buffer.extend_from_slice(&tag);
        buffer.extend_from_slice(&nonce);
        buffer.extend_from_slice(&own.envelope);
        let length = u16::try_from(own.envelope.len()).expect("an envelope has 580 bytes at most");
        buffer.extend_from_slice(&length.to_le_bytes());
        buffer.extend_from_slice(&[VERSION, 0]);
    }

    /// Decrypts a payload.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn decrypt_payload(&self, context: &[u8], payload: &[u8]) -> Result<BytesMut, KeyError> {
        let taken = Taken::apart(payload)?;
        let key = self.open(&taken.wrapped)?;
        let mut plain = BytesMut::from(taken.encrypted);
        key.decrypt(taken.nonce, context, &mut plain, taken.tag)?;
        Ok(plain)
    }
}

/// The name of the master key that opens an encrypted payload; `None` if it is malformed.
pub fn key_name_of_payload(payload: &[u8]) -> Option<String> {
    Taken::apart(payload).ok().map(|taken| taken.wrapped.name)
}

/// An encrypted payload, taken apart.
struct Taken<'a> {
    encrypted: &'a [u8],
    tag: [u8; TAG_BYTES],
    nonce: [u8; NONCE_BYTES],
    wrapped: Wrapped,
}

impl<'a> Taken<'a> {
    fn apart(payload: &'a [u8]) -> Result<Self, KeyError> {
        const SHORT: KeyError = KeyError::Malformed("the payload is cut short");
        let (rest, &[low, high, version, zero]) =
            payload.split_last_chunk::<END_BYTES>().ok_or(SHORT)?;
        if (version, zero) != (VERSION, 0) {
            return Err(KeyError::Malformed("this release does not know the form of the payload"));
        }
        let length = usize::from(u16::from_le_bytes([low, high]));
        let at = rest.len().checked_sub(length).ok_or(SHORT)?;
        let (rest, envelope) = rest.split_at(at);
        let (wrapped, read) = envelope::decode(envelope)?;
        if read != envelope.len() {
            return Err(KeyError::Malformed("its envelope has another length"));
        }
        let (rest, nonce) = rest.split_last_chunk().ok_or(SHORT)?;
        let (encrypted, tag) = rest.split_last_chunk().ok_or(SHORT)?;
        Ok(Self { encrypted, tag: *tag, nonce: *nonce, wrapped })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::tests::{ONE, keys};

    fn encrypted(plain: &[u8]) -> BytesMut {
        let mut buffer = BytesMut::from(&b"header"[..]);
        buffer.extend_from_slice(plain);
        keys(&format!("one {ONE}")).encrypt_payload(b"place 7", &mut buffer, 6);
        assert_eq!(buffer.split_to(6), "header", "what stands before it stays");
        buffer
    }

    #[test]
    fn a_payload_is_read_as_it_was_written_and_not_by_looking() {
        let keys = keys(&format!("one {ONE}"));
        for length in [0, 1, 15, 16, 17, 100_000] {
            let plain = vec![0xab; length];
            let payload = encrypted(&plain);
            assert!(payload.len() <= length + PAYLOAD_OVERHEAD_BYTES_MAX);
            assert!(length < 15 || !payload.windows(8).any(|window| window == [0xab; 8]));
            assert_eq!(keys.decrypt_payload(b"place 7", &payload).expect("it is whole"), plain);
            let elsewhere = keys.decrypt_payload(b"place 8", &payload);
            assert_eq!(elsewhere, Err(KeyError::Altered));
        }
    }

    #[test]
    fn the_format_is_the_documented_one() {
        let hex: String =
            encrypted(b"some effects").iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("payload/golden.hex").trim_end());
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found() {
        let keys = keys(&format!("one {ONE}"));
        let payload = encrypted(b"some effects");
        for bit in 0..payload.len() * 8 {
            let mut changed = payload.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(keys.decrypt_payload(b"place 7", &changed).is_err(), "bit {bit}");
        }
        for at in 0..payload.len() {
            assert!(keys.decrypt_payload(b"place 7", &payload[..at]).is_err(), "{at}");
            assert!(keys.decrypt_payload(b"place 7", &payload[at + 1..]).is_err(), "{at}");
        }
    }
}
