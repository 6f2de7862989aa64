//! Effects on whole keys and whole databases.

use super::{Applied, Hashed};
use crate::keyspace::Keyspace;
use crate::refusal::Refusal;
use crate::value::Value;
use base::DatabaseId;
use structures::entry::{Payload, ValueRef};

impl Keyspace {
    pub(super) fn delete(&mut self, database: DatabaseId, key: Hashed<'_>) -> Applied {
        let Hashed { hash, name } = key;
        match self.take(database, hash, name) {
            Some(entry) => {
                self.discard(entry);
                Applied::Changed
            }
            None => Applied::Nothing,
        }
    }

    pub(super) fn expire(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        at: Option<i64>,
    ) -> Applied {
        let Hashed { hash, name } = key;
        let db = self.database_mut(database);
        let Some(mut found) = db.table.find_mut(hash, name) else { return Applied::Nothing };
        let before = found.as_ref().expire_at();
        // A time that it had already counts as set: who watches the key is told.
        let changed = at.is_some() || before.is_some();
        if found.as_mut().set_expire_in_place(at) {
            if let Some(before) = before {
                db.expiries.remove(before, hash);
            }
            if let Some(at) = at {
                db.expiries.insert(at, hash);
            }
            return if changed { Applied::Changed } else { Applied::Nothing };
        }
        let Some(entry) = self.take(database, hash, name) else { return Applied::Nothing };
        self.put_entry(database, hash, entry.with_expire(at));
        if changed { Applied::Changed } else { Applied::Nothing }
    }

    pub(super) fn rename(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        to_database: DatabaseId,
        to: &[u8],
    ) -> Result<Applied, Refusal> {
        let Hashed { hash, name } = key;
        if to != name {
            // What lies in the store is known there by the hash of its key.
            self.fetch_to_change(database, name)?;
        }
        let Some(entry) = self.take(database, hash, name) else { return Ok(Applied::Nothing) };
        if let (Some(cold), false) = (&mut self.cold, entry.as_ref().is_cold()) {
            cold.release(entry.as_ref().copy_place());
        }
        let renamed = entry.with_key(to);
        self.put_entry(to_database, self.hash(to), renamed);
        Ok(Applied::Changed)
    }

    pub(super) fn copy(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        to_database: DatabaseId,
        to: &[u8],
    ) -> Result<Applied, Refusal> {
        self.fetch_to_change(database, key.name)?;
        let Some(entry) = self.entry(database, key.hash, key.name) else {
            return Ok(Applied::Nothing);
        };
        let expire_at = entry.expire_at();
        let hash = self.hash(to);
        match entry.value() {
            ValueRef::Integer(integer) => {
                self.put(to_database, hash, to, Payload::Integer(integer), expire_at)
            }
            ValueRef::Bytes(bytes) => {
                let bytes = bytes.to_vec();
                self.put(to_database, hash, to, Payload::Bytes(&bytes), expire_at)
            }
            ValueRef::Boxed(value) => {
                let copy: Box<Value> = Box::new(value.copied(&self.work));
                self.put(to_database, hash, to, Payload::Boxed(copy), expire_at)
            }
            ValueRef::Cold(_) => return Err(Refusal::NOT_IN_MEMORY),
        };
        Ok(Applied::Changed)
    }

    pub(super) fn flush(&mut self, database: DatabaseId) -> Applied {
        let hasher = self.hasher;
        let old =
            std::mem::replace(self.database_mut(database), crate::keyspace::Database::new(hasher));
        match &mut self.snapshot {
            Some(snapshot) if snapshot.needs(&old) => snapshot.take_over(old),
            _ => self.dispose(old),
        }
        Applied::Changed
    }
}
