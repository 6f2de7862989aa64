//! Keys that somebody would choose who wants them to collide: for tests of everything that knows
//! keys by their hash.
//!
//! Each family is one against which some hash function has failed. Its random counterpart has keys
//! of the same lengths, so that the two cost the same unless the hash makes the difference.

/// How to make the key of a number.
type Make = fn(u64) -> Vec<u8>;

/// The families, by name.
pub const FAMILIES: [(&str, Make); 11] = [
    ("a block that makes a known multiplication zero", zero_product),
    ("the same in the second block", zero_product_behind),
    ("numbers that differ in their low bits", |n| n.to_le_bytes().into()),
    ("numbers that differ in their high bits", |n| n.to_be_bytes().into()),
    ("names with a number behind", |n| format!("object:{n:010}").into_bytes()),
    ("a long common beginning", |n| padded(&[b'a'; 1000], &n.to_le_bytes())),
    ("a long common end", |n| padded(&n.to_le_bytes(), &[b'a'; 1000])),
    ("zeroes of many lengths", zeroes),
    ("one block, lengthened by zeroes and by itself", lengthened),
    ("the same blocks in another order", permuted),
    ("two bits of zeroes set", two_bits),
];

/// As many keys of random bytes, as long as those of a family.
pub fn random_like(make: Make, keys: u64) -> impl Iterator<Item = Vec<u8>> {
    let mut state = 0x6b69_6c6e;
    let mut word = move || {
        state = mixed(state);
        state
    };
    (0..keys).map(move |n| {
        let len = make(n).len();
        let words: Vec<u8> =
            (0..len.div_ceil(8).max(2)).flat_map(|_| word().to_le_bytes()).collect();
        // Never shorter than what can be told apart.
        words[..len.max(8)].into()
    })
}

fn mixed(state: u64) -> u64 {
    let word = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// The public secrets of rapidhash, which wyhash and its other heirs share in part: a factor that
/// is zero hides the other one, whatever the seed is.
const SECRETS: [u64; 8] = [
    0x2d35_8dcc_aa6c_78a5,
    0x8bb8_4b93_962e_acc9,
    0x4b33_a62e_d433_d4a3,
    0x4d5a_2da5_1de1_aa47,
    0xa076_1d64_78bd_642f,
    0xe703_7ed1_a0b4_28db,
    0x90ed_1765_281c_388c,
    0xaaaa_aaaa_aaaa_aaaa,
];

fn zero_product(n: u64) -> Vec<u8> {
    padded(&SECRETS[n as usize % 8].to_le_bytes(), &n.to_le_bytes())
}

fn zero_product_behind(n: u64) -> Vec<u8> {
    padded(&n.to_le_bytes(), &SECRETS[n as usize % 8].to_le_bytes())
}

fn padded(first: &[u8], second: &[u8]) -> Vec<u8> {
    [first, second].concat()
}

/// Lengths up to 1000, and a byte that tells keys of one length apart.
fn zeroes(n: u64) -> Vec<u8> {
    let mut key = vec![0; (n % 1000) as usize + 2];
    key[..2].copy_from_slice(&((n / 1000) as u16).to_le_bytes());
    key
}

fn lengthened(n: u64) -> Vec<u8> {
    let block = (n / 128 + 1).to_le_bytes();
    let mut key = block.repeat((n % 128 / 16) as usize + 1);
    key.resize(key.len() + (n % 16) as usize, 0);
    key
}

/// The factorial digits of the number say which of the blocks left comes next.
fn permuted(mut n: u64) -> Vec<u8> {
    let mut left: Vec<u64> = (0..10).map(|block| mixed(block) | 1).collect();
    let mut key = Vec::new();
    while !left.is_empty() {
        let at = (n % left.len() as u64) as usize;
        n /= left.len() as u64;
        key.extend_from_slice(&left.remove(at).to_le_bytes());
    }
    key
}

/// Every pair of 256 bits, as far as the numbers go.
fn two_bits(n: u64) -> Vec<u8> {
    let mut key = vec![0_u8; 32];
    let (mut high, mut left) = (1, n);
    while left >= high {
        left -= high;
        high += 1;
    }
    for bit in [high, left] {
        key[bit as usize / 8] |= 1 << (bit % 8);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_family_has_a_key_twice() {
        for (name, make) in FAMILIES {
            let chosen: BTreeSet<_> = (0..20_000).map(make).collect();
            assert_eq!(chosen.len(), 20_000, "{name}");
            let random: BTreeSet<_> = random_like(make, 20_000).collect();
            assert_eq!(random.len(), 20_000, "{name}");
        }
    }
}
