//! Cold values of keys: fetched for commands to come, or read at once.

use super::guests::Guest;
use super::{Brought, TAG_FETCHED, add};
use crate::effect::Effect;
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::rdb::RdbError;
use crate::refusal::Refusal;
use crate::value::content::{growth_of, with_payload};
use crate::value::hash::next_expiry;
use crate::value::{Entry, EntryRef, Recipe, Value, entry_bytes, is_past_in_memory};
use base::DatabaseId;
use structures::Occupied;
use structures::entry::{Payload, ValueRef};
use tier::Place;

/// Bytes of values that are read together for a record of the log, as they lie in the store; one
/// value may exceed them. There must be memory for them before others leave.
const FETCHED_BYTES_MAX: usize = 1 << 20;

/// A value that is not in memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ColdValue {
    pub place: Place,
    /// Bytes that it may take once it has come into memory.
    pub bytes: usize,
}

/// An entry with its value.
pub enum WithValue<'a> {
    InMemory(EntryRef<'a>),
    /// A copy, made for who asks.
    Beside(Entry),
}

impl WithValue<'_> {
    pub fn as_ref(&self) -> EntryRef<'_> {
        match self {
            Self::InMemory(entry) => *entry,
            Self::Beside(entry) => entry.as_ref(),
        }
    }
}

/// Whether an effect on a key asks for the value that the key has.
fn changes_value(effect: &Effect<'_>, key: &[u8]) -> bool {
    match effect {
        Effect::SetString { .. }
        | Effect::SetInteger { .. }
        | Effect::Delete { .. }
        | Effect::Expire { .. } => false,
        // A record of the store is known by the hash of the key.
        Effect::Rename { to, .. } => *to != key,
        effect => !effect.is_keyless(),
    }
}

/// Puts a value into its entry, which keeps the place of its copy.
fn come(found: &mut Occupied<'_, Entry>, payload: Payload<'_, Value>, place: Place) {
    found.update(|entry| entry.with_copied_payload(payload, place.bits()).0);
}

impl Keyspace {
    /// Where the value of a key lies, if it is not in memory.
    #[inline]
    pub fn cold_place(&self, database: DatabaseId, key: &[u8]) -> Option<Place> {
        let database = self.database(database);
        if database.cold_keys == 0 {
            return None;
        }
        super::cold_place(database.find(self.hash(key), key)?)
    }

    /// The value of a key, if it is not in memory, for who is shown nothing of a key that expires
    /// by `hidden_by()`, in Unix milliseconds.
    #[inline]
    pub fn cold_value(
        &self,
        database: DatabaseId,
        key: &[u8],
        hidden_by: impl FnOnce() -> i64,
    ) -> Option<ColdValue> {
        let database = self.database(database);
        if database.cold_keys == 0 {
            return None;
        }
        let entry = database.find(self.hash(key), key)?;
        let place = super::cold_place(entry)?;
        let is_due = entry.expire_at().is_some_and(|at| at <= hidden_by());
        // No value that left took more in memory than its record may have.
        let most = self.cold.as_ref()?.tier.limits().record_bytes_max;
        let bytes = (place.length() * growth_of(entry.tag())).min(most).max(place.length());
        (!is_due).then_some(ColdValue { place, bytes })
    }

    /// Whether a key with this hash still has its value at this place, and not in memory.
    pub fn is_cold_at(&self, hash: KeyHash, place: Place) -> bool {
        let is_it = |entry: EntryRef<'_>| super::cold_place(entry) == Some(place);
        let mut holders = self.databases().filter(|(_, database)| database.cold_keys > 0);
        holders.any(|(_, it)| it.table.find_where(hash, is_it).is_some())
    }

    /// Forgets a copy that cannot be read, of a value that is in memory. A value that is not stays
    /// where it is.
    pub fn forget_copy_at(&mut self, hash: KeyHash, place: Place) {
        let Some(id) = self.holder_of(hash, place) else { return };
        let Self { databases, cold: Some(cold), .. } = self else { return };
        let database = &mut databases[id.0 as usize];
        let is_it = |entry: EntryRef<'_>| entry.copy_place() == Some(place.bits());
        if let Some(mut found) = database.table.find_mut_where(hash, is_it) {
            database.placed -= cold.forget_copy(&mut found);
        }
    }

    /// The database of the key with this hash that has its value, or a copy of it, at this place.
    pub(super) fn holder_of(&self, hash: KeyHash, place: Place) -> Option<DatabaseId> {
        let is_it = |entry: EntryRef<'_>| super::place_of(entry) == Some(place.bits());
        let mut holders = self.databases().filter(|(_, database)| database.placed > 0);
        let found = holders.find(|(_, it)| it.table.find_where(hash, is_it).is_some());
        found.map(|(id, _)| id)
    }

    /// The content of a record that a key with this hash has its value in was read: the value comes
    /// into memory, if the key still has it there.
    pub fn put_fetched(&mut self, hash: KeyHash, place: Place, content: &[u8]) {
        self.put_decoded(hash, place, |found, recipe| {
            with_payload(content, recipe, |payload| come(found, payload, place))
        });
    }

    /// As [`Self::put_fetched`], of what may have been decoded by whoever read it.
    pub fn put_brought(&mut self, hash: KeyHash, place: Place, brought: Brought) {
        match brought {
            Brought::Content(content) => self.put_fetched(hash, place, &content),
            Brought::Value(value) => {
                let mut value = Some(value);
                self.put_decoded(hash, place, |found, _| {
                    if let Some(value) = value.take() {
                        come(found, Payload::Boxed(value), place);
                    }
                    Ok(())
                });
                if let Some(value) = value {
                    self.forget_brought(Brought::Value(value));
                }
            }
        }
    }

    /// Frees what was read for a key that has its value there no more.
    pub fn forget_brought(&mut self, brought: Brought) {
        if let Brought::Value(value) = brought
            && value.elements() > self.settings.limits.freed_inline_elements_max
        {
            self.garbage.push(value);
        }
    }

    fn put_decoded(
        &mut self,
        hash: KeyHash,
        place: Place,
        put: impl FnOnce(&mut Occupied<'_, Entry>, &Recipe<'_>) -> Result<(), RdbError>,
    ) {
        let Some(id) = self.holder_of(hash, place) else { return };
        let Self { databases, settings, hasher, work, cold, .. } = self;
        let Some(cold) = cold else { return };
        let database = &mut databases[id.0 as usize];
        let is_it = |entry: EntryRef<'_>| super::cold_place(entry) == Some(place);
        let Some(mut found) = database.table.find_mut_where(hash, is_it) else { return };
        let before = entry_bytes(found.as_ref());
        let recipe = Recipe { settings, hasher: *hasher, work };
        if let Err(error) = put(&mut found, &recipe) {
            cold.fail(format!("a value that was not in memory cannot be decoded: {error}"));
            return;
        }
        found.as_ref().set_tag(TAG_FETCHED);
        let after = entry_bytes(found.as_ref());
        database.entry_bytes = database.entry_bytes + after - before;
        database.cold_keys -= 1;
        database.cold_entry_bytes -= before;
        let bytes = after.saturating_sub(before);
        cold.guests.push_back(Guest { hash, place, bytes });
        cold.guest_bytes += bytes;
        add(&cold.statistics.fetched, 1);
    }

    /// Has the value of a key in memory, whatever that takes: for who cannot wait.
    ///
    /// # Errors
    /// It is lost, which is noted.
    pub fn fetch_now(&mut self, database: DatabaseId, key: &[u8]) -> Result<(), Refusal> {
        let hash = self.hash(key);
        let Some(place) = self.cold_place(database, key) else { return Ok(()) };
        let Some(cold) = &self.cold else { return Ok(()) };
        for content in cold.contents_at([place].into_iter())? {
            self.put_fetched(hash, place, &content);
        }
        match self.cold_place(database, key) {
            None => Ok(()),
            Some(_) => Err(Refusal::LOST),
        }
    }

    /// Before an effect changes the value of a key.
    ///
    /// # Errors
    /// As [`Self::fetch_now`].
    #[inline]
    pub(crate) fn fetch_to_change(
        &mut self,
        database: DatabaseId,
        key: &[u8],
    ) -> Result<(), Refusal> {
        match self.cold.is_some() && self.database(database).cold_keys > 0 {
            true => self.fetch_now(database, key),
            false => Ok(()),
        }
    }

    /// Whether an effect needs the value that its key has now. The database need not exist.
    pub(crate) fn changes_value_of(
        &self,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) -> bool {
        self.databases.get(database.0 as usize).is_some() && changes_value(effect, key)
    }

    /// Where the value lies that an effect changes, if it is not in memory. The database that it
    /// names may not exist.
    fn changed_place(
        &self,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) -> Option<Place> {
        let changes = self.changes_value_of(database, key, effect);
        changes.then(|| self.cold_place(database, key)).flatten()
    }

    /// Has the values in memory that the first of these effects change, whatever that takes: what
    /// a record of the log needs is read together, as far as it is not too much. Of how many, and
    /// of one at least.
    ///
    /// # Errors
    /// One is lost, which is noted.
    pub(crate) fn fetch_for_effects(
        &mut self,
        effects: &[(DatabaseId, &[u8], Effect<'_>)],
    ) -> Result<usize, Refusal> {
        let (mut cold, mut bytes, mut count) = (Vec::new(), 0, 0);
        for (database, key, effect) in effects {
            if let Some(place) = self.changed_place(*database, key, effect) {
                bytes += place.length();
                if count > 0 && bytes > FETCHED_BYTES_MAX {
                    break;
                }
                cold.push((place, self.hash(key)));
            }
            count += 1;
        }
        self.fetch_together(cold)?;
        Ok(count)
    }

    /// Has these values in memory, by place and hash of the key: what must be read is read
    /// together.
    ///
    /// # Errors
    /// One is lost, which is noted.
    pub(crate) fn fetch_together(
        &mut self,
        mut cold: Vec<(Place, KeyHash)>,
    ) -> Result<(), Refusal> {
        cold.sort_unstable();
        cold.dedup();
        let Some(store) = &self.cold else { return Ok(()) };
        let contents = store.contents_at(cold.iter().map(|(place, _)| *place))?;
        for ((place, hash), content) in cold.into_iter().zip(contents) {
            self.put_fetched(hash, place, &content);
        }
        Ok(())
    }

    /// Whether a key is due by a Unix time in milliseconds, or all of its fields are. A hash that
    /// is not in memory is looked at if one of its fields is due; if it is lost, it is not past.
    pub(crate) fn is_past(&self, entry: EntryRef<'_>, by: i64) -> bool {
        if !entry.is_cold() || next_expiry(entry).is_none_or(|at| at > by) {
            return is_past_in_memory(entry, by);
        }
        self.with_value(entry).is_ok_and(|found| is_past_in_memory(found.as_ref(), by))
    }

    /// The entry with its value: beside the keyspace, if the value is not in memory. For who looks
    /// at it once.
    ///
    /// # Errors
    /// It is lost, which is noted.
    pub fn with_value<'a>(&'a self, entry: EntryRef<'a>) -> Result<WithValue<'a>, Refusal> {
        if !entry.is_cold() {
            return Ok(WithValue::InMemory(entry));
        }
        self.looked_at(entry).map(WithValue::Beside).ok_or(Refusal::LOST)
    }

    fn looked_at(&self, entry: EntryRef<'_>) -> Option<Entry> {
        let ValueRef::Cold(value) = entry.value() else { return None };
        let cold = self.cold.as_deref()?;
        let content = cold.content_at(value.place)?;
        self.decoded(entry, &content)
    }

    /// A copy of an entry with the value that this content is of. `None`: it cannot be decoded,
    /// which is noted.
    pub(super) fn decoded(&self, entry: EntryRef<'_>, content: &[u8]) -> Option<Entry> {
        let cold = self.cold.as_deref()?;
        let put = with_payload(content, &self.recipe(), |payload| {
            Entry::new(entry.key(), payload, entry.expire_at())
        });
        let put = put.map_err(|error| cold.fail(format!("a value cannot be decoded: {error}")));
        let looked_at = put.ok()?;
        looked_at.set_access(entry.access());
        Some(looked_at)
    }
}
