//! The master keys that an operator keeps in a file or in the environment.
//!
//! ```text
//! # name  32 bytes in hexadecimal or base64
//! 2026-11 5f1f…
//! 2026-05 kFgq…=
//! ```
//! The first one is current. The others open what was encrypted before.

use crate::data_key::{DataKey, NONCE_BYTES, TAG_BYTES};
use crate::envelope::is_name;
use crate::error::KeyError;
use crate::masters::{DATA_KEY_BYTES, MasterKeys, Wrapped};
use std::fmt;

/// Keys that one text may hold: a key a week for five years.
pub const KEYS_MAX: usize = 256;

/// What a wrapped data key is bound to beside the master key's name.
const CONTEXT: &[u8] = b"kiln data key 1:";

/// Named master keys.
pub struct Keyring {
    /// The current one first.
    keys: Vec<(String, DataKey)>,
}

impl fmt::Debug for Keyring {
    /// Shows the names alone.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys.iter().map(|(name, _)| name)).finish()
    }
}

impl Keyring {
    /// Reads keys: one in a line, its name and its 32 bytes. Empty lines and those that begin with
    /// `#` are skipped.
    ///
    /// # Errors
    /// Which line is wrong and why, without what it says.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let mut keys: Vec<(String, DataKey)> = Vec::new();
        for (index, line) in text.split(|byte| *byte == b'\n').enumerate() {
            let line = line.trim_ascii();
            if line.is_empty() || line.starts_with(b"#") {
                continue;
            }
            let wrong = |what: &str| format!("line {}: {what}", index + 1);
            let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            let (Some(name), Some(key), None) = (words.next(), words.next(), words.next()) else {
                return Err(wrong("a name and a key are needed, and nothing else"));
            };
            if !is_name(name) {
                return Err(wrong("a name has 1 to 64 printable ASCII characters"));
            }
            let Some(key) = key_of(key) else {
                return Err(wrong("a key is 32 bytes in hexadecimal or base64"));
            };
            let name = String::from_utf8_lossy(name).into_owned();
            if keys.iter().any(|(known, _)| *known == name) {
                return Err(wrong("a key of this name stands before it"));
            }
            if keys.len() == KEYS_MAX {
                return Err(wrong("there are more than 256 keys"));
            }
            keys.push((name, DataKey::new(&key)));
        }
        if keys.is_empty() { Err("it holds no key".to_owned()) } else { Ok(Self { keys }) }
    }
}

impl MasterKeys for Keyring {
    fn current(&self) -> &str {
        &self.keys[0].0
    }

    fn wrap(
        &self,
        data_key: &[u8; DATA_KEY_BYTES],
        entropy: &dyn Fn(&mut [u8]),
    ) -> Result<Wrapped, KeyError> {
        let (name, key) = &self.keys[0];
        let (mut nonce, mut sealed) = ([0; NONCE_BYTES], *data_key);
        entropy(&mut nonce);
        let tag = key.encrypt(nonce, &context(name), &mut sealed);
        let bytes = [&nonce[..], &sealed, &tag].concat();
        Ok(Wrapped { name: name.clone(), bytes })
    }

    fn unwrap(&self, wrapped: &Wrapped) -> Result<[u8; DATA_KEY_BYTES], KeyError> {
        let Wrapped { name, bytes } = wrapped;
        let Some((_, key)) = self.keys.iter().find(|(known, _)| known == name) else {
            return Err(KeyError::Unknown { needed: name.clone() });
        };
        let wrong = || KeyError::Wrong { name: name.clone() };
        let (nonce, rest) = bytes.split_first_chunk::<NONCE_BYTES>().ok_or_else(wrong)?;
        let (sealed, tag) = rest.split_last_chunk::<TAG_BYTES>().ok_or_else(wrong)?;
        let mut opened: [u8; DATA_KEY_BYTES] = sealed.try_into().map_err(|_| wrong())?;
        key.decrypt(*nonce, &context(name), &mut opened, *tag).map_err(|_| wrong())?;
        Ok(opened)
    }
}

fn context(name: &str) -> Vec<u8> {
    [CONTEXT, name.as_bytes()].concat()
}

/// 32 bytes, of 64 hexadecimal digits or of 43 characters of base64, with or without its padding.
fn key_of(text: &[u8]) -> Option<[u8; DATA_KEY_BYTES]> {
    let bytes = match text.len() {
        64 => hexadecimal(text)?,
        43 => base64(text)?,
        44 => base64(text.strip_suffix(b"=")?)?,
        _ => return None,
    };
    bytes.try_into().ok()
}

fn hexadecimal(text: &[u8]) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let pair = |pair: &[u8]| u8::try_from(digit(pair[0])? * 16 + digit(pair[1])?).ok();
    text.chunks_exact(2).map(pair).collect()
}

fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let value = |byte: &u8| {
        Some(match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        })
    };
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text {
        bits = bits << 6 | u32::from(value(byte)?);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from(bits >> count & 0xff).ok()?);
        }
        bits &= (1 << count) - 1;
    }
    // What is left over is no byte, and must say nothing.
    (bits == 0).then_some(bytes)
}

#[cfg(test)]
mod tests;
