//! An object of any length, encrypted in chunks, so that it is written as it comes and read by
//! ranges.
//!
//! ```text
//! offset 0                  1024                   1024 + 65 552
//!        | header, padded   | 65 536 bytes | tag   | … | less than 65 536 bytes | tag |
//! header: "KILNENC" | version 1 | envelope | zeros
//! ```
//! Each chunk's nonce is its number and whether it is the last one, and the last one alone is not
//! full: it may be empty. So chunks cannot change places, and an object that is cut anywhere ends
//! without a last chunk. Each is bound to the object's name: no object can take another's place.

use crate::data_key::{DataKey, NONCE_BYTES, TAG_BYTES};
use crate::envelope;
use crate::error::KeyError;
use crate::keys::Keys;
use std::sync::Arc;

/// Bytes before the first chunk: room for the longest envelope.
pub const HEADER_BYTES: usize = 1024;

/// Plain bytes of every chunk but the last: what is read and decrypted for one byte of them. A
/// tag for each costs one part in four thousand.
pub const CHUNK_BYTES: usize = 64 << 10;

/// Encrypted bytes of such a chunk.
pub const STORED_CHUNK_BYTES: usize = CHUNK_BYTES + TAG_BYTES;

const MAGIC: &[u8; 7] = b"KILNENC";
const VERSION: u8 = 1;
const ENVELOPE_AT: usize = MAGIC.len() + 1;

const _: () = assert!(ENVELOPE_AT + envelope::ENVELOPE_BYTES_MAX <= HEADER_BYTES);

/// Encrypts an object from its beginning to its end.
#[derive(Debug)]
pub struct Encryptor {
    object: ObjectKey,
    /// Plain bytes of the chunk under way; never full.
    chunk: Vec<u8>,
    number: u64,
}

/// Decrypts an object, chunk by chunk.
#[derive(Clone, Debug)]
pub struct ObjectKey {
    key: Arc<DataKey>,
    name: Vec<u8>,
}

impl Encryptor {
    /// Begins an object of this name; its header. The data key is of this object alone.
    ///
    /// # Errors
    /// [`KeyError::Service`].
    ///
    /// # Panics
    /// The process has no keys.
    pub fn begin(keys: &Keys, name: &str) -> Result<(Self, Vec<u8>), KeyError> {
        let own = keys.make()?;
        let mut header = Vec::with_capacity(HEADER_BYTES);
        header.extend_from_slice(MAGIC);
        header.push(VERSION);
        header.extend_from_slice(&own.envelope);
        header.resize(HEADER_BYTES, 0);
        let object = ObjectKey { key: own.key, name: name.as_bytes().to_vec() };
        Ok((Self { object, chunk: Vec::with_capacity(CHUNK_BYTES), number: 0 }, header))
    }

    /// Takes the next bytes; appends to `stored` what is to be stored.
    pub fn append(&mut self, mut bytes: &[u8], stored: &mut Vec<u8>) {
        while self.chunk.len() + bytes.len() >= CHUNK_BYTES {
            let (now, later) = bytes.split_at(CHUNK_BYTES - self.chunk.len());
            self.chunk.extend_from_slice(now);
            self.end_chunk(stored);
            bytes = later;
        }
        self.chunk.extend_from_slice(bytes);
    }

    /// Appends the last chunk.
    pub fn finish(mut self, stored: &mut Vec<u8>) {
        self.end_chunk(stored);
    }

    fn end_chunk(&mut self, stored: &mut Vec<u8>) {
        let nonce = nonce(self.number, self.chunk.len() < CHUNK_BYTES);
        let tag = self.object.key.encrypt(nonce, &self.object.name, &mut self.chunk);
        stored.extend_from_slice(&self.chunk);
        stored.extend_from_slice(&tag);
        self.chunk.clear();
        self.number += 1;
    }
}

impl ObjectKey {
    /// Opens the object of this name by its header.
    ///
    /// # Errors
    /// [`KeyError`].
    pub fn open(keys: &Keys, name: &str, header: &[u8]) -> Result<Self, KeyError> {
        if header.len() != HEADER_BYTES {
            return Err(KeyError::Malformed("its header is cut short"));
        }
        if !is_encrypted(header) {
            return Err(KeyError::Malformed("its header is none of an encrypted object"));
        }
        if header[MAGIC.len()] != VERSION {
            return Err(KeyError::Malformed("this release does not know the form of the object"));
        }
        let (wrapped, length) = envelope::decode(&header[ENVELOPE_AT..])?;
        if header[ENVELOPE_AT + length..].iter().any(|byte| *byte != 0) {
            return Err(KeyError::Malformed("its header has something behind the envelope"));
        }
        Ok(Self { key: keys.open(&wrapped)?, name: name.as_bytes().to_vec() })
    }

    /// Decrypts the chunk of this number in place: as it is stored, and all of it. Returns the
    /// count of plain bytes, at the beginning of `stored`. One of less than [`CHUNK_BYTES`] is the
    /// last.
    ///
    /// # Errors
    /// [`KeyError::Altered`]: it is another chunk, or is cut.
    pub fn decrypt_chunk(&self, number: u64, stored: &mut [u8]) -> Result<usize, KeyError> {
        let (bytes, tag) = stored.split_last_chunk_mut().ok_or(KeyError::Altered)?;
        let nonce = nonce(number, bytes.len() < CHUNK_BYTES);
        self.key.decrypt(nonce, &self.name, bytes, *tag)?;
        Ok(bytes.len())
    }
}

/// Whether an object begins as an encrypted one does.
pub fn is_encrypted(object: &[u8]) -> bool {
    object.starts_with(MAGIC)
}

/// Encrypts a whole object.
///
/// # Errors
/// [`KeyError::Service`].
///
/// # Panics
/// The process has no keys.
pub fn encrypt(keys: &Keys, name: &str, plain: &[u8]) -> Result<Vec<u8>, KeyError> {
    let (mut encryptor, mut stored) = Encryptor::begin(keys, name)?;
    encryptor.append(plain, &mut stored);
    encryptor.finish(&mut stored);
    Ok(stored)
}

/// Decrypts a whole object.
///
/// # Errors
/// [`KeyError`].
pub fn decrypt(keys: &Keys, name: &str, stored: &[u8]) -> Result<Vec<u8>, KeyError> {
    let header = stored.get(..HEADER_BYTES).unwrap_or(stored);
    let object = ObjectKey::open(keys, name, header)?;
    let mut plain = Vec::with_capacity(stored.len() - HEADER_BYTES);
    let mut rest = &stored[HEADER_BYTES..];
    for number in 0.. {
        let (chunk, behind) = rest.split_at(rest.len().min(STORED_CHUNK_BYTES));
        let mut chunk = chunk.to_vec();
        let count = object.decrypt_chunk(number, &mut chunk)?;
        plain.extend_from_slice(&chunk[..count]);
        rest = behind;
        if count < CHUNK_BYTES {
            break;
        }
    }
    if rest.is_empty() { Ok(plain) } else { Err(KeyError::Altered) }
}

/// Bytes that are stored of an object with so many plain bytes.
pub fn stored_bytes(plain: u64) -> u64 {
    let chunks = plain / CHUNK_BYTES as u64 + 1;
    HEADER_BYTES as u64 + plain + chunks * TAG_BYTES as u64
}

/// Plain bytes of an object that is stored with so many; `None` if none is.
pub fn plain_bytes(stored: u64) -> Option<u64> {
    let chunks = stored.checked_sub(HEADER_BYTES as u64)?;
    let full = chunks / STORED_CHUNK_BYTES as u64;
    let last = (chunks % STORED_CHUNK_BYTES as u64).checked_sub(TAG_BYTES as u64)?;
    Some(full * CHUNK_BYTES as u64 + last)
}

/// Where the chunk of this number begins; `None` beyond what can be numbered.
pub fn chunk_at(number: u64) -> Option<u64> {
    number.checked_mul(STORED_CHUNK_BYTES as u64)?.checked_add(HEADER_BYTES as u64)
}

fn nonce(number: u64, is_last: bool) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce[8] = u8::from(is_last);
    nonce
}

#[cfg(test)]
mod tests;
