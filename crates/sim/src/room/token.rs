//! Unique values, which can be told from everything else wherever they appear: in a reply's bytes,
//! on the disk. So what a reply reveals can be compared with what is durable, without asking the
//! server or its log what they think.

use crate::random::Random;
use std::collections::BTreeSet;

const PREFIX: &[u8] = b"tok";
const BYTES: usize = PREFIX.len() + 16;

/// Every unique value of a run.
pub struct Tokens {
    random: Random,
    issued: BTreeSet<u64>,
    durable: BTreeSet<u64>,
}

impl Tokens {
    pub fn new(seed: u64) -> Self {
        let random = Random::stream(seed, "tokens");
        Self { random, issued: BTreeSet::new(), durable: BTreeSet::new() }
    }

    /// A value that no one has used. 64 random bits, so that no operation on strings makes one
    /// value of others.
    pub fn issue(&mut self) -> Vec<u8> {
        let number = self.random.draw();
        self.issued.insert(number);
        format!("tok{number:016x}").into_bytes()
    }

    /// These bytes are durable.
    pub fn note_durable(&mut self, bytes: &[u8]) {
        self.durable.extend(find(bytes));
    }

    /// The first value in `bytes` that is not durable.
    pub fn not_durable(&self, bytes: &[u8]) -> Option<String> {
        let mut found = find(bytes);
        let early = found.find(|n| self.issued.contains(n) && !self.durable.contains(n));
        early.map(|number| format!("tok{number:016x}"))
    }
}

fn find(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let starts = bytes.windows(BYTES).filter(|window| window.starts_with(PREFIX));
    starts.filter_map(|window| {
        let digits = std::str::from_utf8(&window[PREFIX.len()..]).ok()?;
        u64::from_str_radix(digits, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_were_issued_and_are_not_durable_are_found() {
        let mut tokens = Tokens::new(1);
        let (one, two) = (tokens.issue(), tokens.issue());
        let both = [&b"x"[..], &one, &two, b"tok0000000000000001"].concat();
        tokens.note_durable(&one);
        assert_eq!(tokens.not_durable(&both), Some(String::from_utf8(two.clone()).unwrap()));
        tokens.note_durable(&two);
        assert_eq!(tokens.not_durable(&both), None);
    }
}
