//! Effects on hashes.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::hash;
use base::DatabaseId;

impl Keyspace {
    pub(super) fn hash_set(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        field: &[u8],
        value: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, Some(hash::create), |hash, recipe| {
            let added = hash::of_mut(hash)?.set(field, value, recipe);
            Ok(if added { Applied::Added } else { Applied::Changed })
        })
    }

    pub(super) fn hash_delete(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        field: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |hash, _| {
            let removed = hash::of_mut(hash)?.remove(field);
            Ok(if removed { Applied::Changed } else { Applied::Nothing })
        })
    }
}
