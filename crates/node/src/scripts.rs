//! Scripts that clients had kept, by their hashes. None is run yet.

use base::sha1::sha1;
use engine::refusal::Refusal;
use std::collections::BTreeMap;

/// Bytes of all bodies that are kept, with what it takes to keep them. Applications have some tens
/// of scripts, of some KiB; what is generated without end must not fill the memory. A guess.
const SCRIPTS_BYTES_MAX: usize = 64 << 20;

/// Bytes of a script beside its body: its hash and its place in the tree. About.
const SCRIPT_OVERHEAD_BYTES: usize = 64;

/// The bodies of scripts by their SHA-1.
#[derive(Default)]
pub struct Scripts {
    bodies: BTreeMap<[u8; 20], Vec<u8>>,
    bytes: usize,
}

impl Scripts {
    pub fn len(&self) -> usize {
        self.bodies.len()
    }

    pub fn is_empty(&self) -> bool {
        self.bodies.is_empty()
    }

    /// Bytes that the scripts occupy, about.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps a body; its hash.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn load(&mut self, body: &[u8]) -> Result<[u8; 20], Refusal> {
        let hash = sha1(body);
        if self.bodies.contains_key(&hash) {
            return Ok(hash);
        }
        let bytes = self.bytes + body.len() + SCRIPT_OVERHEAD_BYTES;
        if bytes > SCRIPTS_BYTES_MAX {
            return Err(Refusal::of("ERR the scripts that are kept take too much memory"));
        }
        self.bytes = bytes;
        self.bodies.insert(hash, body.to_vec());
        Ok(hash)
    }

    /// The script that is kept under this hash, in hexadecimal of either case.
    pub fn body(&self, text: &[u8]) -> Option<&[u8]> {
        self.bodies.get(&parse_hash(text)?).map(Vec::as_slice)
    }

    /// Whether a script is kept under this hash, in hexadecimal of either case.
    pub fn contains(&self, text: &[u8]) -> bool {
        parse_hash(text).is_some_and(|hash| self.bodies.contains_key(&hash))
    }
}

fn parse_hash(text: &[u8]) -> Option<[u8; 20]> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let mut hash = [0; 20];
    let (pairs, rest) = text.as_chunks::<2>();
    if pairs.len() != hash.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in hash.iter_mut().zip(pairs) {
        *byte = (digit(*high)? << 4 | digit(*low)?) as u8;
    }
    Some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_is_found_by_its_hash_in_either_case() {
        let mut scripts = Scripts::default();
        let hash = scripts.load(b"return 1").expect("there is room");
        let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(text, "e0e1f9fabfc9d4800c877a703b823ac0578ff8db");
        assert!(scripts.contains(text.as_bytes()));
        assert!(scripts.contains(text.to_ascii_uppercase().as_bytes()));
        assert!(!scripts.contains(b"e0e1f9fabfc9d4800c877a703b823ac0578ff8d"));
        assert!(!scripts.contains(b"g0e1f9fabfc9d4800c877a703b823ac0578ff8db"));
    }

    #[test]
    fn scripts_stay_within_their_room() {
        let mut scripts = Scripts::default();
        let body = vec![b'x'; SCRIPTS_BYTES_MAX / 2];
        scripts.load(&body).expect("there is room");
        scripts.load(&body).expect("it is kept already");
        assert_eq!(scripts.len(), 1);
        assert!(scripts.load(&body[1..]).is_err());
        assert!(scripts.bytes() <= SCRIPTS_BYTES_MAX);
    }
}
