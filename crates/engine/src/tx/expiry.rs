//! Deletion of what is due: keys whose time has come, and such fields of hashes. Effects like any
//! other.

use super::Tx;
use crate::apply::Applied;
use crate::effect::{DeleteReason, Effect};
use crate::notify::Class;
use crate::unit::Overdue;
use crate::value::hash;
use base::DatabaseId;

/// Fields deleted at most after a read, and field names gathered at a time. It bounds memory and
/// the cost of a read; a guess.
const FIELDS_AT_ONCE: usize = 64;

impl Tx<'_> {
    /// Deletes a key that is due, or its fields that are due, with their events.
    pub(super) fn expire_if_due(&mut self, database: DatabaseId, hash: u64, key: &[u8]) {
        self.expire_up_to(database, hash, key, usize::MAX);
    }

    /// The same after a read, which ignored what is due. Not all of many fields are deleted now:
    /// one deleted field is enough for the log to say that the time has come.
    pub(crate) fn expire_some_if_due(&mut self, database: DatabaseId, hash: u64, key: &[u8]) {
        self.expire_up_to(database, hash, key, FIELDS_AT_ONCE);
    }

    fn expire_up_to(&mut self, database: DatabaseId, hash: u64, key: &[u8], fields_max: usize) {
        let deletes = matches!(self.context.overdue, Overdue::Deleted | Overdue::Left);
        let in_database = self.keyspace.database(database);
        if !deletes || in_database.is_timeless() {
            return;
        }
        let Some(entry) = in_database.find(hash, key) else { return };
        if entry.expire_at().is_some_and(|at| self.context.is_due(at)) {
            self.drop_key(database, hash, key, DeleteReason::Expired);
        } else if hash::next_expiry(entry).is_some_and(|at| self.context.is_due(at)) {
            self.drop_fields(database, hash, key, fields_max);
        }
    }

    /// Deletes a key that expired or was evicted, counts it and publishes its event.
    pub(crate) fn drop_key(
        &mut self,
        database: DatabaseId,
        hash: u64,
        key: &[u8],
        reason: DeleteReason,
    ) {
        let deleted = self.record(database, hash, key, Effect::Delete { reason });
        if deleted.is_ok_and(|applied| applied == Applied::Nothing) {
            return;
        }
        let (class, event) = match reason {
            DeleteReason::Evicted => (Class::Evicted, "evicted"),
            DeleteReason::Expired => (Class::Expired, "expired"),
            DeleteReason::Command => (Class::Generic, "del"),
        };
        self.keyspace.statistics.dropped(reason);
        self.notify_in(database, class, event, key);
    }

    /// Deletes up to `count` fields of a hash that are due, and publishes their event. Returns how
    /// many were deleted. If all fields are due, the key is deleted at once, however many they are.
    pub(crate) fn drop_fields(
        &mut self,
        database: DatabaseId,
        hash: u64,
        key: &[u8],
        count: usize,
    ) -> usize {
        let by = self.context.due_by().0;
        if self.keyspace.fetch_to_change(database, key).is_err() {
            return 0;
        }
        let entry = self.keyspace.database(database).find(hash, key);
        let Some(Ok(fields)) = entry.map(hash::of) else { return 0 };
        let dropped = if fields.is_all_due(by) {
            let dropped = fields.len();
            let effect = Effect::Delete { reason: DeleteReason::Expired };
            let deleted = self.record(database, hash, key, effect);
            debug_assert!(deleted.is_ok(), "any key may be deleted");
            dropped
        } else {
            self.drop_some_fields(database, hash, key, count)
        };
        if dropped > 0 {
            self.keyspace.statistics.dropped_fields(dropped);
            self.notify_in(database, Class::Hash, "hexpired", key);
            if !self.keyspace.exists(database, key) {
                self.notify_in(database, Class::Generic, "del", key);
            }
        }
        dropped
    }

    /// Deletes up to `count` due fields of a hash that keeps others; returns how many.
    fn drop_some_fields(
        &mut self,
        database: DatabaseId,
        hash: u64,
        key: &[u8],
        count: usize,
    ) -> usize {
        let by = self.context.due_by().0;
        let mut dropped = 0;
        while dropped < count {
            let entry = self.keyspace.database(database).find(hash, key);
            let Some(Ok(fields)) = entry.map(hash::of) else { break };
            let due = fields.due(by, FIELDS_AT_ONCE.min(count - dropped));
            for field in &due {
                let effect = Effect::HashDelete { field, is_expired: true };
                let deleted = self.record(database, hash, key, effect);
                debug_assert!(deleted.is_ok(), "it is a hash");
            }
            dropped += due.len();
            if due.is_empty() {
                break;
            }
        }
        dropped
    }
}
