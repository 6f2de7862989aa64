//! Effects on hashes.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::{Hash, Recipe, Value, hash};
use base::DatabaseId;

impl Keyspace {
    pub(super) fn hash_set(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        (field, value): (&[u8], &[u8]),
        expire_at: Option<i64>,
    ) -> Result<Applied, Refusal> {
        self.edit_hash(database, key, Some(hash::create), |hash, recipe| {
            let added = match expire_at {
                None => hash.set(field, value, recipe),
                at => hash.set_expiring(field, value, at, recipe),
            };
            if added { Applied::Added } else { Applied::Changed }
        })
    }

    pub(super) fn hash_delete(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        field: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit_hash(database, key, None, |hash, _| {
            if hash.remove(field) { Applied::Changed } else { Applied::Nothing }
        })
    }

    pub(super) fn hash_expire(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        field: &[u8],
        at: Option<i64>,
    ) -> Result<Applied, Refusal> {
        self.edit_hash(database, key, None, |hash, recipe| {
            if hash.expire(field, at, recipe) { Applied::Changed } else { Applied::Nothing }
        })
    }

    /// As [`Keyspace::edit`], for a hash. Also updates the database's queue of hashes by their
    /// first expiry.
    fn edit_hash(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        create: Option<fn(&Recipe<'_>) -> Value>,
        edit: impl FnOnce(&mut Hash, &Recipe<'_>) -> Applied,
    ) -> Result<Applied, Refusal> {
        let (mut before, mut after, mut is_new) = (None, None, false);
        let applied = self.edit(database, key, create, |value, recipe| {
            let hash = hash::of_mut(value)?;
            is_new = hash.is_empty();
            before = hash.next_expiry();
            let applied = edit(hash, recipe);
            after = hash.next_expiry();
            Ok(applied)
        })?;
        // `edit` has queued a new hash already.
        if before != after && !is_new {
            self.database_mut(database).fields_expire(key.hash, before, after);
        }
        Ok(applied)
    }
}
