//! Applies effects: the one place where keys change, on every role.
//!
//! The primary calls it through [`crate::tx::Tx`], recovery and replicas with effects read from the
//! log. Applying looks at no clock and draws no chance; the only inputs are the keyspace, the
//! effect and the settings that choose encodings.

mod hash;
mod keys;
mod list;
mod set;
mod sorted;
mod string;

pub(crate) use string::payload_of;

use crate::effect::{Effect, EffectDecoder, EffectError};
use crate::interest::{Interest, Telling};
use crate::keyspace::{Entry, EntryRef, Keyspace};
use crate::master::{Master, ReplicaOf};
use crate::refusal::Refusal;
use crate::unit::KeyHash;
use crate::value::{Recipe, Value};
use base::{DatabaseId, UnixMillis};
use structures::entry::Payload;

/// Effects of a record that are decoded ahead, so that the misses of their keys overlap: as many as
/// the loop parses of a pipeline at a time.
const EFFECTS_AHEAD: usize = 16;

/// What an effect did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// Nothing was there to change: the effect need not be recorded.
    Nothing,
    /// Something that was there changed or went.
    Changed,
    /// Something new came: a key, a field, a member, an element.
    Added,
}

/// A record's payload that cannot be applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApplyError {
    Malformed(EffectError),
    /// The effect is for another type than the key holds, or names a database that is not there.
    Impossible {
        effect_index: u64,
    },
}

impl Keyspace {
    /// Applies all effects of a record's payload and tells those who are interested; how many
    /// effects there were. `now` is the record's clock.
    ///
    /// # Errors
    /// [`ApplyError`] if the payload is damaged or does not fit this keyspace.
    pub fn apply_payload(
        &mut self,
        payload: &[u8],
        now: UnixMillis,
        interest: &mut Interest,
    ) -> Result<u64, ApplyError> {
        self.now = now;
        let mut telling = Telling::of(interest, self);
        let mut decoder = EffectDecoder::new(payload);
        let mut count = 0;
        let mut batch = Vec::with_capacity(EFFECTS_AHEAD);
        loop {
            while batch.len() < EFFECTS_AHEAD
                && let Some(effect) = decoder.next_effect().map_err(ApplyError::Malformed)?
            {
                batch.push(effect);
            }
            if batch.is_empty() {
                return Ok(count);
            }
            self.prefetch_keys(&batch);
            for (database, key, effect) in batch.drain(..) {
                let impossible = || ApplyError::Impossible { effect_index: count };
                if !self.has_databases_of(database, &effect) {
                    return Err(impossible());
                }
                let applied = match &mut telling {
                    None => self.apply(database, key, &effect).map(drop),
                    Some(telling) => telling.apply(self, database, key, &effect),
                };
                applied.map_err(|_| impossible())?;
                self.garbage.clear();
                count += 1;
            }
        }
    }

    /// Asks the processor for the entries that a batch will change. The databases that it names may
    /// not exist.
    fn prefetch_keys(&self, batch: &[(DatabaseId, &[u8], Effect<'_>)]) {
        if batch.len() < 2 {
            return;
        }
        let mut hashes = [0; EFFECTS_AHEAD];
        let mut last: &[u8] = &[];
        for (hash, (database, key, _)) in hashes.iter_mut().zip(batch) {
            // Further effects on a key repeat where it stands, and need no second look.
            let is_new = !std::ptr::eq(last, *key) && !key.is_empty();
            if is_new && self.databases.get(database.0 as usize).is_some() {
                *hash = self.hash(key);
            }
            last = key;
        }
        // In loops of their own the processor runs ahead from one address to the next; in the loop
        // above, reading and hashing the keys fills its window.
        let wanted = || hashes.iter().zip(batch).filter(|(hash, _)| **hash != 0);
        for (hash, (database, ..)) in wanted() {
            self.prefetch_bucket(*database, *hash);
        }
        for (hash, (database, ..)) in wanted() {
            self.prefetch_entry(*database, *hash);
        }
    }

    fn has_databases_of(&self, database: DatabaseId, effect: &Effect<'_>) -> bool {
        let count = self.databases.len() as u32;
        let other = match *effect {
            Effect::Rename { to_database, .. } | Effect::Copy { to_database, .. } => to_database,
            Effect::SwapDatabases { with } => with,
            _ => database,
        };
        database.0 < count && other.0 < count
    }

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
        if self.snapshot.is_some() {
            self.keep_before(database, key, effect);
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
            Effect::Rename { to_database, to } => Ok(self.rename(database, key, to_database, to)),
            Effect::Copy { to_database, to } => Ok(self.copy(database, key, to_database, to)),
            Effect::FlushDatabase => Ok(self.flush(database)),
            Effect::FlushAll => {
                for id in 0..self.databases.len() as u32 {
                    self.flush(DatabaseId(id));
                }
                // Nothing is no part of anything.
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
            Effect::ListPush { end, value } => self.list_push(database, key, end, value),
            Effect::ListPop { end, count } => self.list_pop(database, key, end, count),
            Effect::ListSet { index, value } => self.list_set(database, key, index, value),
            Effect::ListInsert { index, value } => self.list_insert(database, key, index, value),
            Effect::ListRemove { index, count } => self.list_remove(database, key, index, count),
            Effect::HashSet { field, value } => self.hash_set(database, key, field, value),
            Effect::HashDelete { field } => self.hash_delete(database, key, field),
            Effect::SetAdd { member } => self.set_add(database, key, member),
            Effect::SetRemove { member } => self.set_remove(database, key, member),
            Effect::SortedAdd { member, score } => self.sorted_add(database, key, member, score),
            Effect::SortedRemove { member } => self.sorted_remove(database, key, member),
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
        let db = self.database_mut(database);
        db.entry_bytes += entry_bytes(entry.as_ref());
        let old = db.table.insert(hash, entry);
        db.entry_bytes -= old.as_ref().map_or(0, |old| entry_bytes(old.as_ref()));
        if let Some(at) = old.as_ref().and_then(Entry::expire_at) {
            db.expiries.remove(at, hash);
        }
        if let Some(at) = expire_at {
            db.expiries.insert(at, hash);
        }
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
    /// value of another type with WRONGTYPE, and then has changed nothing.
    pub(crate) fn edit(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        create: Option<fn(&Recipe<'_>) -> Value>,
        edit: impl FnOnce(&mut Value, &Recipe<'_>) -> Result<Applied, Refusal>,
    ) -> Result<Applied, Refusal> {
        let hash = self.hash(key);
        let Self { databases, settings, hasher, work, .. } = self;
        let recipe = Recipe { settings, hasher: *hasher, work };
        let db = &mut databases[database.0 as usize];
        let Some(mut found) = db.table.find_mut(hash, key) else {
            let Some(create) = create else { return Ok(Applied::Nothing) };
            let mut value = create(&recipe);
            let applied = edit(&mut value, &recipe)?;
            if !value.is_empty() {
                self.put(database, hash, key, Payload::Boxed(Box::new(value)), None);
            }
            return Ok(applied);
        };
        let value = found.as_mut().into_boxed_mut().ok_or(Refusal::WRONG_TYPE)?;
        let before = value.allocated_bytes();
        let applied = edit(value, &recipe)?;
        let after = value.allocated_bytes();
        let is_empty = value.is_empty();
        db.entry_bytes = db.entry_bytes + after - before;
        if is_empty && let Some(entry) = self.take(database, hash, key) {
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
        db.entry_bytes -= entry_bytes(entry.as_ref());
        if let Some(at) = entry.expire_at() {
            db.expiries.remove(at, hash);
        }
        Some(entry)
    }

    /// Frees an entry: at once if that is quick, else on a background thread.
    pub(crate) fn discard(&mut self, entry: Entry) {
        if let structures::entry::ValueRef::Boxed(value) = entry.value()
            && value.elements() > ELEMENTS_FREED_INLINE_MAX
        {
            self.garbage.push(Box::new(entry));
        }
    }
}

/// Elements of a collection that are freed on the loop; more go to a background thread. Redis's
/// lazyfree threshold.
const ELEMENTS_FREED_INLINE_MAX: usize = 64;

/// Bytes an entry and its boxed value occupy.
pub(crate) fn entry_bytes(entry: EntryRef<'_>) -> usize {
    let boxed = match entry.value() {
        structures::entry::ValueRef::Boxed(value) => value.allocated_bytes(),
        _ => 0,
    };
    entry.allocated_bytes() + boxed
}
