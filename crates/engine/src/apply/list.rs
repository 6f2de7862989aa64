//! Effects on lists.

use super::{Applied, Hashed};
use crate::effect::End;
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::list;
use base::DatabaseId;
use structures::Quicklist;

/// Elements that are taken off a list at a stretch: so that LTRIM, which may end millions, counts
/// them as they go.
const POPPED_AT_ONCE: usize = 1024;

impl Keyspace {
    pub(super) fn list_push(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        end: End,
        element: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, Some(list::create), |value, _| {
            let list = list::of_mut(value)?;
            list.push(end.into(), element);
            Ok(Applied::Pushed(list.len()))
        })
    }

    pub(super) fn list_pop(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        end: End,
        count: u64,
    ) -> Result<Applied, Refusal> {
        let work = self.work.clone();
        self.edit_list(database, key, |list| {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
            let mut left = count;
            while left > 0 {
                let popped = left.min(POPPED_AT_ONCE);
                work.steps(popped);
                list.remove_range(if end == End::Head { 0 } else { list.len() - popped }, popped);
                left -= popped;
            }
            count > 0
        })
    }

    pub(super) fn list_set(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        index: u64,
        element: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit_list(database, key, |list| {
            usize::try_from(index).is_ok_and(|index| list.set(index, element))
        })
    }

    pub(super) fn list_insert(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        index: u64,
        element: &[u8],
    ) -> Result<Applied, Refusal> {
        let applied = self.edit_list(database, key, |list| {
            let Ok(index) = usize::try_from(index) else { return false };
            if index > 0 && index == list.len() {
                return list.insert_after(index - 1, element);
            }
            list.insert_before(index, element)
        })?;
        Ok(if applied == Applied::Changed { Applied::Added } else { applied })
    }

    pub(super) fn list_remove(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        index: u64,
        count: u64,
    ) -> Result<Applied, Refusal> {
        self.edit_list(database, key, |list| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            usize::try_from(index).is_ok_and(|index| list.remove_range(index, count) > 0)
        })
    }

    /// Lets `edit` change a list that exists; it tells whether it did.
    fn edit_list(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        edit: impl FnOnce(&mut Quicklist) -> bool,
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |value, _| {
            let changed = edit(list::of_mut(value)?);
            Ok(if changed { Applied::Changed } else { Applied::Nothing })
        })
    }
}
