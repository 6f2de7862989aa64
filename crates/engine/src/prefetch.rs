//! Asks the processor for what a batch of requests will look at, so that the misses of all overlap.
//!
//! ```text
//! segment of the key ─▶ its bucket ─▶ the next bucket, for few ─▶ entry
//! ─▶ bucket of the field or member ─▶ the member's block
//! ```
//! Each stage reads what the stage before it asked for, so all requests of a batch go through one
//! stage before any goes through the next. Everything here is a hint: a stage that finds another
//! key of the same hash, or nothing, asks in vain.

use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::{Sorted, Value};
use base::DatabaseId;
use structures::entry::ValueRef;
pub use structures::prefetch_item;

impl Keyspace {
    /// The stages up to the entries of all these keys, whose order it changes.
    // In loops of their own the processor runs ahead from one address to the next: reading and
    // hashing keys between them would fill its window.
    pub fn prefetch(&self, keys: &mut [(DatabaseId, KeyHash)]) {
        for (database, hash) in &*keys {
            self.database(*database).table.prefetch_segment(*hash);
        }
        for (database, hash) in &*keys {
            self.database(*database).table.prefetch_bucket(*hash);
        }
        let mut displaced = 0;
        for at in 0..keys.len() {
            let (database, hash) = keys[at];
            if !self.database(database).table.prefetch_entry(hash) {
                keys.swap(displaced, at);
                displaced += 1;
            }
        }
        for (database, hash) in &keys[..displaced] {
            self.database(*database).table.prefetch_displaced(*hash);
        }
    }

    /// The value of a key with this hash if it is a collection in a table, whose members have two
    /// stages of their own: [`Value::prefetch_bucket`] and [`Value::prefetch_member`].
    pub fn find_table(&self, database: DatabaseId, hash: KeyHash) -> Option<&Value> {
        let table = &self.database(database).table;
        let is_table = |value: &Value| value.has_table();
        let entry = table.find_likely(
            hash,
            |entry| matches!(entry.value(), ValueRef::Boxed(value) if is_table(value)),
        )?;
        match entry.value() {
            ValueRef::Boxed(value) => Some(value),
            ValueRef::Bytes(_) | ValueRef::Integer(_) | ValueRef::Cold(_) => None,
        }
    }
}

impl Value {
    fn has_table(&self) -> bool {
        match self {
            Self::Hash(hash) => hash.table().is_some(),
            Self::Set(set) => set.table().is_some(),
            Self::Sorted(sorted) => matches!(sorted, Sorted::Tree(_)),
            Self::Text(_) | Self::List(_) | Self::Stream(_) => false,
        }
    }

    /// The stage behind it: asks for the bucket where a field or member would stand.
    pub fn prefetch_bucket(&self, member: KeyHash) {
        match self {
            Self::Hash(hash) => hash.table().into_iter().for_each(|it| it.prefetch_bucket(member)),
            Self::Set(set) => set.table().into_iter().for_each(|it| it.prefetch_bucket(member)),
            Self::Sorted(Sorted::Tree(tree)) => tree.prefetch_bucket(member),
            Self::Sorted(Sorted::Pack(_)) | Self::Text(_) | Self::List(_) | Self::Stream(_) => {}
        }
    }

    /// The last stage: asks for the block that the bucket points to.
    pub fn prefetch_member(&self, member: KeyHash) {
        match self {
            Self::Hash(hash) => {
                hash.table().into_iter().for_each(|it| it.prefetch_displaced(member))
            }
            Self::Set(set) => set.table().into_iter().for_each(|it| it.prefetch_displaced(member)),
            Self::Sorted(Sorted::Tree(tree)) => tree.prefetch_member(member),
            Self::Sorted(Sorted::Pack(_)) | Self::Text(_) | Self::List(_) | Self::Stream(_) => {}
        }
    }
}
