//! Digests of values and of the whole data set, equal to those of Redis 7.0's DEBUG DIGEST.
//!
//! ```text
//! xor(d, x) = d ^ sha1(x)            order does not matter: members of sets, keys of databases
//! mix(d, x) = sha1(d ^ sha1(x))      order matters: elements of lists, a field and its value
//! ```
//! So two servers of either kind can be compared, and a replica or a snapshot with its primary,
//! whatever their encodings. Not for secrets: SHA-1 is broken against those who aim.

use crate::keyspace::Keyspace;
use crate::value::{Element, EntryRef, Stream, StringValue, Value};
use crate::work::Work;
use base::sha1::{self, sha1};
use std::ops::ControlFlow;

/// 160 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Digest(pub [u8; 20]);

impl Digest {
    fn xor(&mut self, bytes: &[u8]) {
        for (left, right) in self.0.iter_mut().zip(sha1(bytes)) {
            *left ^= right;
        }
    }

    fn mix(&mut self, bytes: &[u8]) {
        self.xor(bytes);
        self.0 = sha1(&self.0);
    }

    /// Adds two texts that belong together.
    fn add_pair(&mut self, first: &[u8], second: &[u8]) {
        self.xor(&Self::of_pair(first, second).0);
    }

    fn of_pair(first: &[u8], second: &[u8]) -> Self {
        let mut pair = Self::default();
        pair.mix(first);
        pair.mix(second);
        pair
    }

    /// As DEBUG shows it.
    pub fn hex(&self) -> String {
        sha1::hex(&self.0)
    }
}

/// Adds a value's digest to `digest`.
fn add_value(digest: &mut Digest, entry: EntryRef<'_>, work: &Work) {
    work.step();
    match Value::of(entry) {
        Some(value) => add_collection(digest, value, work),
        None => {
            digest.mix(&0_u32.to_be_bytes());
            digest.mix(&StringValue::of(entry).map_or(Vec::new(), |text| text.to_vec()));
        }
    }
    if entry.expire_at().is_some() {
        digest.xor(b"!!expire!!");
    }
}

fn add_collection(digest: &mut Digest, value: &Value, work: &Work) {
    digest.mix(&value.type_number().to_be_bytes());
    if let Value::Stream(stream) = value {
        return add_stream(digest, stream, work);
    }
    value.each(|element| {
        work.step();
        match element {
            Element::Text(bytes) | Element::Ordered(bytes) => digest.mix(bytes),
            Element::Member(bytes) => digest.xor(bytes),
            Element::Pair(field, text, expire_at) => {
                let mut pair = Digest::of_pair(field, text);
                if expire_at.is_some() {
                    pair.xor(b"!!hexpire!!");
                }
                digest.xor(&pair.0);
            }
            Element::Scored(member, score) => {
                digest.add_pair(member, resp::format_double::format_double(score).as_bytes());
            }
            // Only the entries of a stream count, as in Redis.
            Element::Stream(_) => {}
        }
    });
}

fn add_stream(digest: &mut Digest, stream: &Stream, work: &Work) {
    for entry in stream.iter() {
        work.step();
        digest.mix(format!("{}.{}", entry.id.millis, entry.id.sequence).as_bytes());
        for (field, value) in entry.fields() {
            digest.mix(&field.to_vec());
            digest.mix(&value.to_vec());
        }
    }
}

/// The digest of one value (DEBUG DIGEST-VALUE).
pub fn of_value(entry: EntryRef<'_>, work: &Work) -> Digest {
    let mut digest = Digest::default();
    add_value(&mut digest, entry, work);
    digest
}

/// The digest of everything (DEBUG DIGEST); zeroes if there are no keys.
pub fn of_keyspace(keyspace: &Keyspace) -> Digest {
    let mut all = Digest::default();
    for (id, database) in keyspace.databases().filter(|(_, database)| !database.is_empty()) {
        all.mix(&id.0.to_be_bytes());
        let looked = keyspace.look_at_each(database.table().iter(), |entry| {
            let mut digest = Digest::default();
            digest.mix(entry.key());
            add_value(&mut digest, entry, &keyspace.work);
            all.xor(&digest.0);
            ControlFlow::Continue(())
        });
        // Of what is lost, which is noted, no digest is right.
        if looked.is_err() {
            return all;
        }
    }
    all
}
