//! Effects on sets.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::set;
use base::DatabaseId;

impl Keyspace {
    pub(super) fn set_add(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        member: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, Some(set::create), |value, recipe| {
            let added = set::of_mut(value)?.add(member, recipe);
            Ok(if added { Applied::Added } else { Applied::Nothing })
        })
    }

    pub(super) fn set_remove(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        member: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |value, _| {
            let removed = set::of_mut(value)?.remove(member);
            Ok(if removed { Applied::Changed } else { Applied::Nothing })
        })
    }
}
