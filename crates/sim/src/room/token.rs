//! Unique values, which can be told from everything else wherever they appear: in a reply's bytes,
//! on the disk. So what a reply reveals can be compared with what is durable, without asking the
//! server or its log what they think.

use crate::random::Random;
use std::collections::{BTreeMap, BTreeSet};

const PREFIX: &[u8] = b"tok";
/// Bytes of a token.
pub const BYTES: usize = PREFIX.len() + 16;

/// Every unique value of a run.
pub struct Tokens {
    random: Random,
    issued: BTreeSet<u64>,
    /// In records that were appended.
    appended: BTreeSet<u64>,
    /// Synced, and the how manieth.
    durable: BTreeMap<u64, usize>,
}

impl Tokens {
    pub fn new(seed: u64) -> Self {
        let random = Random::stream(seed, "tokens");
        let (issued, appended) = (BTreeSet::new(), BTreeSet::new());
        Self { random, issued, appended, durable: BTreeMap::new() }
    }

    /// A value that no one has used. 64 random bits, so that no operation on strings makes one
    /// value of others.
    pub fn issue(&mut self) -> Vec<u8> {
        let number = self.random.draw();
        self.issued.insert(number);
        format!("tok{number:016x}").into_bytes()
    }

    /// A unique value of about this many bytes, which begins and ends with tokens: it is whole only
    /// where both are.
    pub fn issue_large(&mut self, bytes: usize) -> Vec<u8> {
        let mut value = self.issue();
        value.resize(bytes.max(BYTES), b'.');
        value.extend(self.issue());
        value
    }

    /// These bytes stand in a record that was appended.
    pub fn note_appended(&mut self, bytes: &[u8]) {
        self.appended.extend(find(bytes));
    }

    /// What was under way is lost, or durable by now.
    pub fn begin_life(&mut self) {
        self.appended.clear();
    }

    /// These bytes are durable.
    pub fn note_durable(&mut self, bytes: &[u8]) {
        for number in find(bytes) {
            let count = self.durable.len();
            self.durable.entry(number).or_insert(count);
        }
    }

    /// How many values are durable.
    pub fn durable_count(&self) -> usize {
        self.durable.len()
    }

    /// The first value in `bytes` that is not durable.
    pub fn not_durable(&self, bytes: &[u8]) -> Option<String> {
        self.not_durable_then(bytes, usize::MAX)
    }

    /// The first value in `bytes` that was not durable when so many values were.
    pub fn not_durable_then(&self, bytes: &[u8], count: usize) -> Option<String> {
        let is_early = |n: &u64| self.durable.get(n).is_none_or(|rank| *rank >= count);
        let mut found = find(bytes);
        let early = found.find(|number| self.issued.contains(number) && is_early(number));
        early.map(|number| format!("tok{number:016x}"))
    }

    /// The first value in `bytes` that is under way to the disk: written by somebody, not durable.
    pub fn under_way(&self, bytes: &[u8]) -> Option<String> {
        let is_under_way = |n: &u64| self.appended.contains(n) && !self.durable.contains_key(n);
        find(bytes).find(is_under_way).map(|number| format!("tok{number:016x}"))
    }
}

/// Every token in `bytes`, in order.
pub fn all(bytes: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    find(bytes).map(|number| format!("tok{number:016x}").into_bytes())
}

fn find(bytes: &[u8]) -> impl Iterator<Item = u64> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            at += bytes.get(at..)?.iter().position(|byte| *byte == PREFIX[0])?;
            let window = bytes.get(at..at + BYTES)?;
            at += 1;
            if let Some(digits) = window.strip_prefix(PREFIX)
                && let Ok(digits) = std::str::from_utf8(digits)
                && let Ok(number) = u64::from_str_radix(digits, 16)
            {
                return Some(number);
            }
        }
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
    #[test]
    fn a_value_is_under_way_from_its_record_to_its_sync() {
        let mut tokens = Tokens::new(1);
        let (one, two) = (tokens.issue(), tokens.issue());
        assert_eq!(tokens.under_way(&one), None);
        tokens.note_appended(&[&b"tto"[..], &one].concat());
        assert!(tokens.under_way(&one).is_some());
        let before = tokens.durable_count();
        tokens.note_durable(&one);
        assert_eq!(tokens.under_way(&[one.clone(), two].concat()), None);
        assert!(tokens.not_durable_then(&one, before).is_some());
        assert!(tokens.not_durable_then(&one, before + 1).is_none());
    }
}
