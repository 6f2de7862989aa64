//! What a request does with a key, as Redis's key specifications say it (Redis documentation,
//! "Command key specifications"): a set of their flags, as bits.

use super::Args;

/// What becomes of a key, if that is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KeyUse(u16);

/// The words, in the order in which Redis shows them; word `n` is bit `n`.
const WORDS: [&str; 11] = [
    "RO",
    "RW",
    "OW",
    "RM",
    "access",
    "update",
    "insert",
    "delete",
    "not_key",
    "incomplete",
    "variable_flags",
];

impl KeyUse {
    /// Unknown, or nothing: it is only named.
    pub const NONE: Self = Self(0);
    /// Its value is shown, or changes what else is shown.
    pub const ACCESS: Self = Self::of("access");
    /// What is hashed like a key and is none, as the channel of SPUBLISH is.
    pub const NOT_KEY: Self = Self::of("not_key");
    /// There are more keys than the specification tells.
    pub const INCOMPLETE: Self = Self::of("incomplete");
    /// It depends on the other arguments.
    pub const VARIABLE: Self = Self::of("variable_flags");
    /// Anything that changes it.
    pub const WRITES: Self = Self::of("update").union(Self::of("insert")).union(Self::of("delete"));

    pub const READ: Self = Self::of("RO").union(Self::ACCESS);
    pub const UPDATE: Self = Self::of("RW").union(Self::of("update"));
    pub const CHANGE: Self = Self::UPDATE.union(Self::ACCESS);
    pub const MOVE: Self = Self::of("RW").union(Self::ACCESS).union(Self::of("delete"));
    pub const OVERWRITE: Self = Self::of("OW").union(Self::of("update"));

    /// Whether what becomes of the key depends on its value: not if it is overwritten or removed
    /// without being shown.
    pub const fn needs_value(self) -> bool {
        self.intersects(Self::ACCESS) || !self.intersects(Self::of("OW").union(Self::of("RM")))
    }

    /// The bit of a word, known when compiling.
    ///
    /// # Panics
    /// If there is no such word, which fails the build.
    const fn of(word: &str) -> Self {
        let mut bit = 0;
        while bit < WORDS.len() {
            if same(WORDS[bit].as_bytes(), word.as_bytes()) {
                return Self(1 << bit);
            }
            bit += 1;
        }
        panic!("no flag of a key specification has this name");
    }

    /// Reads words that are joined by `+`; `None` if one is unknown.
    pub fn parse(text: &str) -> Option<Self> {
        text.split('+').try_fold(Self::NONE, |all, word| {
            let bit = WORDS.iter().position(|known| *known == word)?;
            Some(all.union(Self(1 << bit)))
        })
    }

    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The words, in Redis's order.
    pub fn words(self) -> impl Iterator<Item = &'static str> + Clone {
        let is_in = move |(bit, _): &(usize, &&str)| self.0 >> bit & 1 == 1;
        WORDS.iter().enumerate().filter(is_in).map(|(_, word)| *word)
    }
}

/// Finds the keys of a request where its specifications do not reach: calls back with each key's
/// argument and what becomes of it. A request that makes no sense may have none.
pub type KeyFinder = fn(Args<'_>, &mut dyn FnMut(usize, KeyUse));

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_bits_and_words_again() {
        for text in ["RO", "RW+access+update+variable_flags", "OW+insert", "not_key"] {
            let words: Vec<&str> = KeyUse::parse(text).expect("known").words().collect();
            assert_eq!(words.join("+"), text);
        }
        assert_eq!(KeyUse::parse("RW+nosuch"), None);
    }
}
