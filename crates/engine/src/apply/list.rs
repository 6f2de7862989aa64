//! Effects on lists.

use super::Applied;
use crate::effect::End;
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::list;
use base::DatabaseId;
use structures::Quicklist;

impl Keyspace {
    pub(super) fn list_push(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        end: End,
        element: &[u8],
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, Some(list::create), |value, _| {
            list::of_mut(value)?.push(end.into(), element);
            Ok(Applied::Added)
        })
    }

    pub(super) fn list_pop(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        end: End,
        count: u64,
    ) -> Result<Applied, Refusal> {
        self.edit_list(database, key, |list| {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
            let index = match end {
                End::Head => 0,
                End::Tail => list.len() - count,
            };
            list.remove_range(index, count) > 0
        })
    }

    pub(super) fn list_set(
        &mut self,
        database: DatabaseId,
        key: &[u8],
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
        key: &[u8],
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
        key: &[u8],
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
        key: &[u8],
        edit: impl FnOnce(&mut Quicklist) -> bool,
    ) -> Result<Applied, Refusal> {
        self.edit(database, key, None, |value, _| {
            let changed = edit(list::of_mut(value)?);
            Ok(if changed { Applied::Changed } else { Applied::Nothing })
        })
    }
}
