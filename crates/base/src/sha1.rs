//! SHA-1 (RFC 3174), because Redis's digests are made of it, and because it names scripts.

const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];

/// The hash of a text.
pub fn sha1(bytes: &[u8]) -> [u8; 20] {
    let (blocks, rest) = bytes.as_chunks::<64>();
    let mut hash = Sha1::default();
    hash.add(blocks);
    hash.finish(rest)
}

/// A hash in the making, for a text that is long.
#[derive(Debug)]
pub struct Sha1 {
    state: [u32; 5],
    blocks: u64,
}

impl Default for Sha1 {
    fn default() -> Self {
        Self { state: START, blocks: 0 }
    }
}

impl Sha1 {
    /// Adds the next blocks of the text.
    pub fn add(&mut self, blocks: &[[u8; 64]]) {
        self.blocks += blocks.len() as u64;
        for block in blocks {
            compress(&mut self.state, block);
        }
    }

    /// The hash of all blocks and the rest of the text.
    ///
    /// # Panics
    /// The rest is a whole block or longer.
    pub fn finish(mut self, rest: &[u8]) -> [u8; 20] {
        assert!(rest.len() < 64, "whole blocks are added");
        let bits = (self.blocks * 64 + rest.len() as u64) * 8;
        // The end: a one bit, zeroes, and the length in bits in the last eight bytes of a block.
        let mut end = [0; 128];
        end[..rest.len()].copy_from_slice(rest);
        end[rest.len()] = 0x80;
        let length = if rest.len() < 56 { 64 } else { 128 };
        end[length - 8..length].copy_from_slice(&bits.to_be_bytes());
        self.add(end[..length].as_chunks::<64>().0);
        let mut hash = [0; 20];
        for (bytes, word) in hash.chunks_exact_mut(4).zip(self.state) {
            bytes.copy_from_slice(&word.to_be_bytes());
        }
        hash
    }
}

/// A hash as Redis shows it: 40 hexadecimal digits in lower case.
pub fn hex(hash: &[u8; 20]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

fn compress(state: &mut [u32; 5], block: &[u8; 64]) {
    let mut words = [0_u32; 80];
    let (chunks, _) = block.as_chunks::<4>();
    for (word, chunk) in words.iter_mut().zip(chunks) {
        *word = u32::from_be_bytes(*chunk);
    }
    for at in 16..80 {
        let mixed = words[at - 3] ^ words[at - 8] ^ words[at - 14] ^ words[at - 16];
        words[at] = mixed.rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = *state;
    for (round, word) in words.into_iter().enumerate() {
        let (chosen, constant) = match round {
            0..20 => (b & c | !b & d, 0x5a82_7999),
            20..40 => (b ^ c ^ d, 0x6ed9_eba1),
            40..60 => (b & c | b & d | c & d, 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6_u32),
        };
        let next = a.rotate_left(5).wrapping_add(chosen).wrapping_add(e);
        let next = next.wrapping_add(constant).wrapping_add(word);
        (a, b, c, d, e) = (next, a, b.rotate_left(30), c, d);
    }
    for (word, added) in state.iter_mut().zip([a, b, c, d, e]) {
        *word = word.wrapping_add(added);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &[u8], expected: &str) {
        assert_eq!(hex(&sha1(text)), expected);
    }

    #[test]
    fn hashes_are_those_of_the_standard() {
        check(b"", "da39a3ee5e6b4b0d3255bfef95601890afd80709");
        check(b"abc", "a9993e364706816aba3e25717850c26c9cd0d89d");
        check(
            b"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
            "84983e441c3bd26ebaae4aa1f95129e5e54670f1",
        );
        check(&[b'a'; 1_000_000], "34aa973cd4c4daa4f61eeb2bdbad27316534016f");
    }
}
