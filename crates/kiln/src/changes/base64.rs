//! Base64 with padding (RFC 4648, section 4), for bytes that are no text.

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bits that a digit holds.
const DIGIT_BITS: u32 = 6;

/// Bytes that four digits hold.
const GROUP_BYTES: usize = 3;

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(GROUP_BYTES) * 4);
    for group in bytes.chunks(GROUP_BYTES) {
        let mut word = [0; 4];
        word[1..=group.len()].copy_from_slice(group);
        let word = u32::from_be_bytes(word);
        for digit in 0..4 {
            let value = word >> (DIGIT_BITS * (3 - digit)) & 63;
            let is_there = digit as usize <= group.len();
            text.push(if is_there { DIGITS[value as usize] as char } else { '=' });
        }
    }
    text
}

/// The bytes that are encoded like this; `None` if none are.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * GROUP_BYTES);
    for group in text.as_bytes().chunks(4) {
        let digits = group.iter().take_while(|digit| **digit != b'=').count();
        let mut word: u32 = 0;
        for digit in &group[..digits] {
            let value = DIGITS.iter().position(|known| known == digit)?;
            word = word << DIGIT_BITS | value as u32;
        }
        word <<= DIGIT_BITS * (4 - digits as u32);
        bytes.extend_from_slice(&word.to_be_bytes()[1..digits.max(1)]);
    }
    // One text for each: no digit alone, no bits behind the last byte, and all padding.
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_the_standard_says() {
        let examples = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (bytes, text) in examples {
            assert_eq!(encode(bytes.as_bytes()), text);
            assert_eq!(decode(text).as_deref(), Some(bytes.as_bytes()), "{text}");
        }
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&all)), Some(all));
    }

    #[test]
    fn another_text_encodes_nothing() {
        for text in ["Z", "Zg", "Zg=", "Zh==", "Zg==Zg==", "Z===", "====", "Zm9v\n", "é", "Zg=v"] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
