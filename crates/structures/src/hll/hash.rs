//! Which register an element falls to, and what it says there.
//!
//! MurmurHash64A (Austin Appleby, public domain) with Redis's seed; any other hash would make
//! merged counts of data from Redis meaningless.

use super::{REGISTER_BITS, REGISTERS, RUN_BITS};

const SEED: u64 = 0xADC8_3B19;
const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
const SHIFT: u32 = 47;

/// The register of an element, and the length of its run of zeroes with the one that ends it.
pub(super) fn place(element: &[u8]) -> (usize, u8) {
    let hash = murmur(element);
    let register = (hash % REGISTERS as u64) as usize;
    // The added bit ends the run of a hash of nothing but zeroes.
    let rest = hash >> REGISTER_BITS | 1 << RUN_BITS;
    (register, rest.trailing_zeros() as u8 + 1)
}

fn murmur(data: &[u8]) -> u64 {
    let mut hash = SEED ^ (data.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = data.as_chunks::<8>();
    for word in words {
        let mut mixed = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        mixed ^= mixed >> SHIFT;
        hash = (hash ^ mixed.wrapping_mul(MULTIPLIER)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(MULTIPLIER);
    hash ^ hash >> SHIFT
}
