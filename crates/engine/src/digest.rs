//! Digests of what keys hold: two keyspaces with the same contents have the same digest.
//!
//! Compares a live keyspace with one that replayed its log, a snapshot with what it was taken of,
//! a replica with its primary. So nothing may count but what clients can see: neither the order of
//! tables, nor the seed of their hash, nor the encoding of a value, nor when a key was last used.
//! What has no order is summed (not XORed, where two equal elements would cancel out).

use crate::keyspace::Keyspace;
use crate::value::stream::Part;
use crate::value::{Element, EntryRef, Stream, StringValue, Value, type_name};
use base::DatabaseId;
use std::fmt;
use std::ops::ControlFlow;
use structures::KeyHasher;

/// Seeds of the two halves. Fixed for ever, so that digests of different processes compare.
const SEEDS: [u64; 2] = [0x6b69_6c6e_6469_6765, 0x7374_2063_6f6e_7465];

/// Keys between two calls of who is told how far a digest is.
const TOLD_KEYS: u64 = 4096;

/// 128 bits; 0 is the digest of nothing. It tells apart what chance or a bug made different, not
/// what an enemy chose to collide.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Digest(u128);

impl fmt::Display for Digest {
    /// 40 hexadecimal digits, the form of DEBUG DIGEST.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:040x}", self.0)
    }
}

impl Digest {
    /// Of all databases and libraries of functions. Keys past their time count until an effect
    /// deletes them.
    pub fn of_keyspace(keyspace: &Keyspace) -> Self {
        let mut digest = Self::default();
        digest.add_keyspace(keyspace, &mut |_| true);
        digest
    }

    /// Adds all of them. `goes_on` is told every so many keys, and ends it by saying no: what was
    /// added is then of no use.
    pub fn add_keyspace(&mut self, keyspace: &Keyspace, goes_on: &mut dyn FnMut(u64) -> bool) {
        for (name, code) in keyspace.libraries().iter() {
            self.add(&[b"library", name, code]);
        }
        let mut untold = 0;
        for (DatabaseId(id), database) in keyspace.databases() {
            let looked = keyspace.look_at_each(database.table().iter(), |entry| {
                let value = Self::of_value(entry);
                self.add(&[&id.to_le_bytes(), entry.key(), &value.0.to_le_bytes()]);
                untold += 1;
                if untold == TOLD_KEYS {
                    untold = 0;
                    if !goes_on(TOLD_KEYS) {
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            });
            // Of what is lost, which is noted, no digest is right.
            if !matches!(looked, Ok(ControlFlow::Continue(()))) {
                return;
            }
        }
    }

    /// The number.
    pub fn value(self) -> u128 {
        self.0
    }

    /// Of one key's type, value and expiry, without its name (DEBUG DIGEST-VALUE).
    pub fn of_value(entry: EntryRef<'_>) -> Self {
        let contents = match Value::of(entry) {
            None => Self::of_string(entry),
            Some(value) => Self::of_collection(value),
        };
        let expire_at = entry.expire_at().map_or([0; 8], i64::to_le_bytes);
        let is_expiring = [u8::from(entry.expire_at().is_some())];
        let type_name = type_name(entry).as_bytes();
        let mut digest = Self::default();
        digest.add(&[type_name, &is_expiring, &expire_at, &contents.0.to_le_bytes()]);
        digest
    }

    fn of_string(entry: EntryRef<'_>) -> Self {
        let mut digest = Self::default();
        if let Ok(text) = StringValue::of(entry) {
            digest.add(&[&text.to_vec()]);
        }
        digest
    }

    fn of_collection(value: &Value) -> Self {
        let (mut digest, mut index) = (Self::default(), 0_u64);
        if let Value::Stream(stream) = value {
            digest.add_entries(stream);
        }
        value.each(|element| match element {
            Element::Stream(part) => digest.add_part(part),
            Element::Text(bytes) | Element::Member(bytes) => digest.add(&[bytes]),
            Element::Ordered(item) => {
                digest.add(&[&index.to_le_bytes(), item]);
                index += 1;
            }
            Element::Pair(field, text, None) => digest.add(&[field, text]),
            Element::Pair(field, text, Some(at)) => digest.add(&[field, text, &at.to_le_bytes()]),
            Element::Scored(member, score) => {
                digest.add(&[&score.to_bits().to_le_bytes(), member]);
            }
        });
        digest
    }

    /// Adds the entries of a stream. Their division into blocks does not count.
    fn add_entries(&mut self, stream: &Stream) {
        for entry in stream.iter() {
            let id = entry.id.to_bytes().to_vec();
            let texts = entry.fields().flat_map(|(field, value)| [field.to_vec(), value.to_vec()]);
            let parts: Vec<Vec<u8>> = std::iter::once(id).chain(texts).collect();
            self.add(&parts.iter().map(Vec::as_slice).collect::<Vec<&[u8]>>());
        }
    }

    /// Adds the parts of a stream other than entries.
    fn add_part(&mut self, part: Part<'_>) {
        match part {
            Part::Empty | Part::Block { .. } => {}
            Part::Head { last, added, max_deleted } => {
                self.add(&[&last.to_bytes(), &added.to_le_bytes(), &max_deleted.to_bytes()]);
            }
            Part::Group { name, last, read } => {
                self.add(&[name, &last.to_bytes(), &read.to_le_bytes()]);
            }
            Part::Consumer { group, name, seen } => {
                self.add(&[b"consumer", group, name, &seen.to_le_bytes()]);
            }
            Part::Pending { group, consumer, seen: _, time, count, ids } => {
                for id in ids.iter() {
                    let (time, count) = (time.to_le_bytes(), count.to_le_bytes());
                    self.add(&[group, consumer, &id.to_bytes(), &time, &count]);
                }
            }
        }
    }

    /// Adds one element, whose parts are told apart by their lengths.
    fn add(&mut self, parts: &[&[u8]]) {
        let mut bytes = Vec::with_capacity(parts.iter().map(|part| part.len() + 8).sum());
        for part in parts {
            bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        let [low, high] = SEEDS.map(|seed| u128::from(KeyHasher::fixed(seed).hash(&bytes)));
        self.0 = self.0.wrapping_add(high << 64 | low);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    fn digest(lines: &[&str]) -> Digest {
        let mut bench = Bench::new();
        for line in lines {
            bench.run(line);
        }
        assert_eq!(Digest::of_keyspace(&bench.engine.keyspace), Digest::of_keyspace(&bench.twin));
        Digest::of_keyspace(&bench.engine.keyspace)
    }

    #[test]
    fn order_and_encoding_do_not_count() {
        let one = digest(&["SET a 1", "SADD s 1 2 3", "HSET h f v g w"]);
        let other = digest(&["HSET h g w f v", "SADD s x 3 2 1", "SREM s x", "APPEND a 1"]);
        assert_eq!(one, other);
        assert_eq!(digest(&["SET a 1", "DEL a"]), Digest::default());
    }

    #[test]
    fn everything_that_clients_see_counts() {
        let lines: [&[&str]; 10] = [
            &["SET a 1"],
            &["SET b 1"],
            &["SET a 2"],
            &["SET a 1", "PEXPIREAT a 9999999999999"],
            &["SET a 1", "PEXPIREAT a 9999999999998"],
            &["SET a 1", "MOVE a 1"],
            &["RPUSH a 1"],
            &["RPUSH a 1 2"],
            &["RPUSH a 2 1"],
            &["SADD a 1"],
        ];
        let mut digests: Vec<String> = lines.map(|lines| digest(lines).to_string()).into();
        assert!(digests.iter().all(|digest| digest.len() == 40));
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), lines.len());
    }
}
