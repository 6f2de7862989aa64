//! Applies effects: the one place where keys change, on every role.
//!
//! The primary calls it through [`crate::tx::Tx`], recovery and replicas with effects read from the
//! log. Applying looks at no clock and draws no chance; the only inputs are the keyspace, the
//! effect and the settings that choose encodings.

mod functions;
mod hash;
mod keys;
mod list;
mod set;
mod sorted;
mod stream;
mod string;

use crate::cold::place_of;
use crate::effect::Effect;
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::master::{Master, ReplicaOf};
use crate::refusal::Refusal;
use crate::value::hash::next_expiry;
use crate::value::{Entry, EntryRef, Recipe, Value, entry_bytes};
use base::DatabaseId;
use structures::entry::{Payload, ValueRef};

/// The outcome of applying an effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Nothing was there to change: the effect need not be recorded.
    Nothing,
    /// Something that was there changed or went.
    Changed,
    /// Something new came: a key, a field, a member, an entry.
    Added,
    /// An element came to an end of a list, which has so many now.
    Pushed(usize),
}

/// A key's name, and the hash by which the keyspace knows it.
#[derive(Clone, Copy)]
pub(crate) struct Hashed<'a> {
    pub hash: KeyHash,
    pub name: &'a [u8],
}

impl Keyspace {
    /// Applies one effect. The databases it names exist.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds a type that the effect is not for; then nothing changed.
    pub fn apply(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) -> Result<Applied, Refusal> {
        self.apply_to(database, Hashed { hash: self.hash(key), name: key }, effect)
    }

    /// As [`Self::apply`], for whoever has the key's hash.
    pub(crate) fn apply_to(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        effect: &Effect<'_>,
    ) -> Result<Applied, Refusal> {
        if self.snapshot.is_some() {
            self.keep_before(database, key.name, effect);
        }
        if self.cold.is_some() {
            self.stop_encoding_before(database, key.hash, effect);
        }
        match *effect {
            Effect::SetString { value, expire_at } => {
                Ok(self.set_string(database, key, value, expire_at))
            }
            Effect::SetInteger { value } => self.set_integer(database, key, value),
            Effect::Append { bytes } => self.append(database, key, bytes),
            Effect::SetRange { offset, bytes } => self.set_range(database, key, offset, bytes),
            Effect::Delete { .. } => Ok(self.delete(database, key)),
            Effect::Expire { at } => Ok(self.expire(database, key, at)),
            Effect::Rename { to_database, to } => self.rename(database, key, to_database, to),
            Effect::Copy { to_database, to } => self.copy(database, key, to_database, to),
            Effect::FlushDatabase
            | Effect::FlushAll
            | Effect::SwapDatabases { .. }
            | Effect::TransferBegan
            | Effect::TransferEnded
            | Effect::ReplicaOf { .. }
            | Effect::ReplicaOfNoOne => self.change_whole(database, effect),
            Effect::ListPush { end, value } => self.list_push(database, key, end, value),
            Effect::ListPop { end, count } => self.list_pop(database, key, end, count),
            Effect::ListSet { index, value } => self.list_set(database, key, index, value),
            Effect::ListInsert { index, value } => self.list_insert(database, key, index, value),
            Effect::ListRemove { index, count } => self.list_remove(database, key, index, count),
            Effect::HashSet { field, value, expire_at } => {
                self.hash_set(database, key, (field, value), expire_at)
            }
            Effect::HashDelete { field, .. } => self.hash_delete(database, key, field),
            Effect::HashExpire { field, at } => self.hash_expire(database, key, field, at),
            Effect::SetAdd { member } => self.set_add(database, key, member),
            Effect::SetRemove { member } => self.set_remove(database, key, member),
            Effect::SortedAdd { member, score } => self.sorted_add(database, key, member, score),
            Effect::SortedRemove { member } => self.sorted_remove(database, key, member),
            Effect::StreamCreate
            | Effect::StreamAdd { .. }
            | Effect::StreamDelete { .. }
            | Effect::StreamTrim { .. }
            | Effect::StreamSetId { .. }
            | Effect::StreamBlock { .. } => self.change_stream(database, key, effect),
            Effect::StreamGroupCreate { .. }
            | Effect::StreamGroupSet { .. }
            | Effect::StreamGroupDelete { .. }
            | Effect::StreamConsumerCreate { .. }
            | Effect::StreamConsumerDelete { .. }
            | Effect::StreamDeliver { .. }
            | Effect::StreamAcknowledge { .. } => self.change_group(database, key, effect),
            Effect::FunctionLoad { .. } | Effect::FunctionDelete { .. } | Effect::FunctionFlush => {
                self.change_libraries(effect)
            }
        }
    }

    /// Applies an effect on a whole database or on all.
    fn change_whole(
        &mut self,
        database: DatabaseId,
        effect: &Effect<'_>,
    ) -> Result<Applied, Refusal> {
        match *effect {
            Effect::FlushDatabase => Ok(self.flush(database)),
            Effect::FlushAll => {
                for id in 0..self.databases.len() as u32 {
                    self.flush(DatabaseId(id));
                }
                // An empty keyspace is complete: this clears the mark of a partial transfer.
                self.is_partial = false;
                Ok(Applied::Changed)
            }
            Effect::TransferBegan | Effect::TransferEnded => {
                self.is_partial = *effect == Effect::TransferBegan;
                Ok(Applied::Changed)
            }
            Effect::ReplicaOf { host, port } => {
                let master = Master::new(host, port).ok_or(Refusal::INVALID_HOST)?;
                self.replica_of = ReplicaOf::Master(master);
                Ok(Applied::Changed)
            }
            Effect::ReplicaOfNoOne => {
                self.replica_of = ReplicaOf::NoOne;
                self.is_partial = false;
                Ok(Applied::Changed)
            }
            Effect::SwapDatabases { with } => {
                self.databases.swap(database.0 as usize, with.0 as usize);
                Ok(Applied::Changed)
            }
            _ => unreachable!("all others are on a key"),
        }
    }

    /// The entry of a key, to be looked at before a change.
    pub(crate) fn entry(
        &self,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<EntryRef<'_>> {
        self.database(database).find(hash, key)
    }

    /// Puts a new entry in place of whatever the key held; its expiry is kept in step.
    pub(crate) fn put(
        &mut self,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
        payload: Payload<Value>,
        expire_at: Option<i64>,
    ) -> Applied {
        let entry = Entry::new(key, payload, expire_at);
        entry.set_access(crate::access::fresh(self.now, &self.settings));
        self.put_entry(database, hash, entry)
    }

    /// As [`Self::put`], with a finished entry.
    pub(crate) fn put_entry(
        &mut self,
        database: DatabaseId,
        hash: KeyHash,
        entry: Entry,
    ) -> Applied {
        let expire_at = entry.expire_at();
        let next = next_expiry(entry.as_ref());
        let db = self.database_mut(database);
        db.entry_bytes += entry_bytes(entry.as_ref());
        db.count_in(&entry);
        let old = db.table.insert(hash, entry);
        if let Some(old) = &old {
            db.count_out(old);
        }
        db.entry_bytes -= old.as_ref().map_or(0, |old| entry_bytes(old.as_ref()));
        if let Some(at) = old.as_ref().and_then(Entry::expire_at) {
            db.expiries.remove(at, hash);
        }
        if let Some(at) = expire_at {
            db.expiries.insert(at, hash);
        }
        let next_before = old.as_ref().and_then(|old| next_expiry(old.as_ref()));
        db.fields_expire(hash, next_before, next);
        match old {
            Some(old) => {
                self.discard(old);
                Applied::Changed
            }
            None => Applied::Added,
        }
    }

    /// Lets `edit` change the collection at `key`. If there is none, `create` makes an empty one
    /// (`None`: nothing happens). A collection left empty takes its key with it. `edit` refuses a
    /// value of another type with WRONGTYPE, and then the value is what it was.
    pub(crate) fn edit(
        &mut self,
        database: DatabaseId,
        key: Hashed<'_>,
        create: Option<fn(&Recipe<'_>) -> Value>,
        edit: impl FnOnce(&mut Value, &Recipe<'_>) -> Result<Applied, Refusal>,
    ) -> Result<Applied, Refusal> {
        let Hashed { hash, name } = key;
        self.fetch_to_change(database, name)?;
        let Self { databases, settings, hasher, work, cold, .. } = self;
        let recipe = Recipe { settings, hasher: *hasher, work };
        let db = &mut databases[database.0 as usize];
        let Some(mut found) = db.table.find_mut(hash, name) else {
            let Some(create) = create else { return Ok(Applied::Nothing) };
            let mut value = create(&recipe);
            let applied = edit(&mut value, &recipe)?;
            if applied != Applied::Nothing && !value.is_empty() {
                self.put(database, hash, name, Payload::Boxed(Box::new(value)), None);
            }
            return Ok(applied);
        };
        if let Some(cold) = cold {
            db.placed -= cold.forget_copy(&mut found);
        }
        let value = found.as_mut().into_boxed_mut().ok_or(Refusal::WRONG_TYPE)?;
        let before = value.allocated_bytes();
        let applied = edit(value, &recipe)?;
        let after = value.allocated_bytes();
        let is_empty = value.is_empty();
        db.entry_bytes = db.entry_bytes + after - before;
        if is_empty && let Some(entry) = self.take(database, hash, name) {
            self.discard(entry);
        }
        Ok(applied)
    }

    /// Takes an entry out of its table and its expiry out of the queue; the caller owns its bytes.
    pub(crate) fn take(
        &mut self,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<Entry> {
        let db = self.database_mut(database);
        let entry = db.table.remove(hash, key)?;
        db.count_out(&entry);
        db.entry_bytes -= entry_bytes(entry.as_ref());
        if let Some(at) = entry.expire_at() {
            db.expiries.remove(at, hash);
        }
        db.fields_expire(hash, next_expiry(entry.as_ref()), None);
        Some(entry)
    }

    /// Frees an entry: at once if that is quick, else on a background thread.
    pub(crate) fn discard(&mut self, entry: Entry) {
        if let Some(cold) = &mut self.cold {
            cold.release(place_of(entry.as_ref()));
        }
        if let ValueRef::Boxed(value) = entry.value()
            && value.elements() > self.settings.limits.freed_inline_elements_max
        {
            self.statistics.left_to_free(1);
            self.garbage.push(Box::new(entry));
        }
    }
}
