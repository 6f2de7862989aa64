//! Effects on sorted sets.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::sorted;
use base::DatabaseId;
use structures::Scored;

impl Keyspace {
    pub(super) fn sorted_add(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        member: &[u8],
        score: f64,
    ) -> Result<Applied, Refusal> {
        // No command lets it through, a damaged record might.
        if score.is_nan() {
            return Err(Refusal::NOT_A_FLOAT);
        }
        self.edit(database, key, Some(sorted::create), |value, recipe| {
            Ok(match sorted::of_mut(value)?.insert(member, score, recipe) {
                Scored::Added => Applied::Added,
                Scored::Updated(_) => Applied::Changed,
                Scored::Unchanged => Applied::Nothing,
            })
        })
    }

    pub(super) fn sorted_remove(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        member: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |value, _| {
            let removed = sorted::of_mut(value)?.remove(member).is_some();
            Ok(if removed { Applied::Changed } else { Applied::Nothing })
        })
    }
}
