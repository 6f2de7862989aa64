//! Digests of values and of the whole data set, equal to those of Redis 7.0's DEBUG DIGEST.
//!
//! ```text
//! xor(d, x) = d ^ sha1(x)            order does not matter: members of sets, keys of databases
//! mix(d, x) = sha1(d ^ sha1(x))      order matters: elements of lists, a field and its value
//! ```
//! So two servers of either kind can be compared, and a replica or a snapshot with its primary,
//! whatever their encodings. Not for secrets: SHA-1 is broken against those who aim.

use crate::keyspace::Keyspace;
use crate::sha1::sha1;
use crate::value::{EntryRef, Value};
use crate::work::Work;
use structures::entry::ValueRef;
use structures::listpack::Item;
use structures::member::MemberRef;

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

    /// As DEBUG shows it.
    pub fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Redis's numbers of the types.
fn type_number(value: ValueRef<'_, Value>) -> u32 {
    match value {
        ValueRef::Bytes(_) | ValueRef::Integer(_) | ValueRef::Boxed(Value::Text(_)) => 0,
        ValueRef::Boxed(Value::List(_)) => 1,
        ValueRef::Boxed(Value::Set(_)) => 2,
        ValueRef::Boxed(Value::Sorted(_)) => 3,
        ValueRef::Boxed(Value::Hash(_)) => 4,
    }
}

/// An element's text.
fn text<'a>(item: Item<'a>, buffer: &'a mut Vec<u8>) -> &'a [u8] {
    match item {
        Item::Bytes(bytes) => bytes,
        Item::Integer(integer) => {
            buffer.clear();
            buffer.extend_from_slice(integer.to_string().as_bytes());
            buffer
        }
    }
}

/// Adds a value's digest to `digest`.
fn add_value(digest: &mut Digest, entry: EntryRef<'_>, work: &Work) {
    work.step();
    let mut buffer = Vec::new();
    let value = entry.value();
    digest.mix(&type_number(value).to_be_bytes());
    match value {
        ValueRef::Bytes(bytes) => digest.mix(bytes),
        ValueRef::Integer(integer) => digest.mix(integer.to_string().as_bytes()),
        ValueRef::Boxed(Value::Text(bytes)) => digest.mix(bytes),
        ValueRef::Boxed(Value::List(list)) => {
            for item in list.iter().inspect(|_| work.step()) {
                digest.mix(text(item, &mut buffer));
            }
        }
        ValueRef::Boxed(Value::Set(set)) => {
            for member in set.iter().inspect(|_| work.step()) {
                match member {
                    MemberRef::Bytes(bytes) => digest.xor(bytes),
                    MemberRef::Integer(integer) => digest.xor(integer.to_string().as_bytes()),
                }
            }
        }
        ValueRef::Boxed(Value::Sorted(sorted)) => {
            for (member, score) in sorted.iter().inspect(|_| work.step()) {
                let mut pair = Digest::default();
                pair.mix(text(member, &mut buffer));
                pair.mix(resp::format_double::format_double(score).as_bytes());
                digest.xor(&pair.0);
            }
        }
        ValueRef::Boxed(Value::Hash(hash)) => {
            for (field, value) in hash.iter().inspect(|_| work.step()) {
                let mut pair = Digest::default();
                pair.mix(text(field, &mut buffer));
                pair.mix(text(value, &mut buffer));
                digest.xor(&pair.0);
            }
        }
    }
    if entry.expire_at().is_some() {
        digest.xor(b"!!expire!!");
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
        for entry in database.table().iter() {
            let mut digest = Digest::default();
            digest.mix(entry.key());
            add_value(&mut digest, entry, &keyspace.work);
            all.xor(&digest.0);
        }
    }
    all
}
