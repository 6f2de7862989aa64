//! Whether a name stands in a listpack of pairs twice.
//!
//! A restore asks this of every small hash and sorted set, as it walks through their bytes. So each
//! name gets a *sign* of 32 bits, which equal names share, and no two names are compared while all
//! signs differ. Anybody can make names of one sign: these are then compared, and nothing else
//! comes of it.

use std::collections::BTreeSet;
use structures::Listpack;
use structures::listpack::{Item, parse_integer};

/// Names whose signs are compared each with each, which costs less than to sort them. Redis's
/// default for the fields of a small hash and the members of a small sorted set.
const NAMES_FEW: usize = 128;

/// An odd number whose bits look random: 2^64 divided by the golden ratio.
const MULTIPLIER: u64 = 0x9E37_79B9_7F4A_7C15;

/// The names of a listpack, as far as they were read.
#[derive(Default)]
pub(crate) struct Names {
    /// At most one more than [`NAMES_FEW`].
    signs: Vec<u32>,
    /// `true` once two names had one sign, or there were more than [`NAMES_FEW`]: the signs say
    /// nothing any more, and the names themselves are compared.
    are_compared: bool,
}

impl Names {
    pub(crate) fn clear(&mut self) {
        self.signs.clear();
        self.are_compared = false;
    }

    #[inline]
    pub(crate) fn add(&mut self, name: Item<'_>) {
        if self.are_compared {
            return;
        }
        let sign = sign(name);
        self.are_compared = self.signs.len() == NAMES_FEW || self.signs.contains(&sign);
        self.signs.push(sign);
    }

    /// `true` if no name stands twice in `pairs`, whose names were all added. A number is the same
    /// name as its text.
    pub(crate) fn are_distinct(&self, pairs: &Listpack) -> bool {
        !self.are_compared || are_compared_distinct(pairs)
    }
}

/// The same, by the names themselves.
fn are_compared_distinct(pairs: &Listpack) -> bool {
    let mut names = BTreeSet::new();
    pairs.iter().step_by(2).all(|name| names.insert(name.to_vec()))
}

fn sign(name: Item<'_>) -> u32 {
    let text = match name {
        Item::Integer(number) => return mix(number as u64) as u32,
        Item::Bytes(text) => text,
    };
    // A listpack that another program wrote may hold a number as text.
    if let Some(number) = parse_integer(text) {
        return mix(number as u64) as u32;
    }
    let (words, rest) = text.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let mixed = words.fold(text.len() as u64, |mixed, word| mix(mixed ^ word));
    let rest = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
    mix(mixed ^ rest) as u32
}

fn mix(word: u64) -> u64 {
    let product = word.wrapping_mul(MULTIPLIER);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn are_distinct(pairs: &Listpack) -> bool {
        let mut names = Names::default();
        pairs.iter().step_by(2).for_each(|name| names.add(name));
        names.are_distinct(pairs)
    }

    fn pairs(names: &[Item<'_>]) -> Listpack {
        let mut pack = Listpack::new();
        for name in names {
            pack.push_back_item(*name);
            pack.push_back(b"");
        }
        pack
    }

    #[test]
    fn names_are_distinct_by_their_signs_as_by_themselves() {
        let texts: Vec<String> = (0..300).map(|n| format!("{}name{n}", "-".repeat(n))).collect();
        let mut names: Vec<Item<'_>> = Vec::new();
        for (number, text) in (0..).zip(&texts) {
            names.extend([Item::Integer(number), Item::Bytes(text.as_bytes())]);
            assert!(are_distinct(&pairs(&names)), "{}", names.len());
            for twice in [0, names.len() / 2, names.len() - 1] {
                let twice = [&names[..], &[names[twice]]].concat();
                assert!(!are_distinct(&pairs(&twice)), "{}", twice.len());
            }
        }
    }

    #[test]
    fn names_that_differ_in_their_last_bytes_have_signs_of_their_own() {
        let texts = (0..1000).map(|n| format!("field:{n:04}"));
        let signs: BTreeSet<u32> = texts.map(|text| sign(Item::Bytes(text.as_bytes()))).collect();
        assert_eq!(signs.len(), 1000);
    }

    #[test]
    fn a_number_is_the_same_name_as_its_text() {
        // 5 as a number, then "5" as text, which no listpack of ours holds; each with a value.
        let bytes = [15, 0, 0, 0, 4, 0, 5, 1, 0x80, 1, 0x81, b'5', 2, 0x80, 1, 0xFF];
        let mut bytes = bytes.to_vec();
        bytes[0] = bytes.len() as u8;
        let pack = Listpack::from_bytes(bytes).expect("it is a listpack");
        assert!(!are_distinct(&pack));
        assert_eq!(sign(Item::Integer(-70)), sign(Item::Bytes(b"-70")));
    }

    #[test]
    fn names_of_one_sign_are_compared() {
        // The last bytes are those of the word that makes up for the first.
        let first = u64::from_le_bytes(*b"whatever");
        let other = u64::from_le_bytes(*b"wherever");
        let length = 16;
        let made_up = mix(length ^ first) ^ mix(length ^ other) ^ u64::from_le_bytes(*b"nonsense");
        let one = [*b"whatever", *b"nonsense"].concat();
        let two = [*b"wherever", made_up.to_le_bytes()].concat();
        assert_eq!(sign(Item::Bytes(&one)), sign(Item::Bytes(&two)));
        assert!(are_distinct(&pairs(&[Item::Bytes(&one), Item::Bytes(&two)])));
        assert!(!are_distinct(&pairs(&[Item::Bytes(&one), Item::Bytes(&one)])));
    }
}
