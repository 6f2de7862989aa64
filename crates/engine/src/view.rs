//! [`View`]: the keyspace for a command that only reads. Every command declared with
//! [`crate::command::read`] is given one, looks keys up through it, and cannot change them.
//!
//! Each key that is looked up is noted in the unit, so that the reply waits for the writes that it
//! reveals. A key past its time is invisible at once; its deletion is an effect, which the executor
//! records right after the command. Where no effects may be recorded (a replica, a pause of
//! writes), a key is past its time when the clock of the newest record says so.

use crate::feed::Word;
use crate::interest::Interest;
use crate::keyspace::{Database, Keyspace};
use crate::notify::{Class, KeyEvent};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::stream_id::StreamId;
use crate::unit::{Context, TimeoutReply, Unit, Wait};
use crate::value::hash::{self, Seen};
use crate::value::{self, Awaited, EntryRef, StringValue, Value};
use crate::work::Work;
use base::{DatabaseId, UnixMillis};

/// Reads keys, notes what was read.
pub struct View<'a> {
    pub(crate) keyspace: &'a Keyspace,
    pub(crate) unit: &'a mut Unit,
    pub(crate) interest: &'a mut Interest,
    pub(crate) random: &'a mut Random,
    pub(crate) context: Context,
}

impl<'a> View<'a> {
    pub fn new(
        keyspace: &'a Keyspace,
        unit: &'a mut Unit,
        interest: &'a mut Interest,
        random: &'a mut Random,
        context: Context,
    ) -> Self {
        Self { keyspace, unit, interest, random, context }
    }

    /// The instant at which this unit executes.
    pub fn now(&self) -> UnixMillis {
        self.context.now
    }

    pub fn context(&self) -> &Context {
        &self.context
    }

    /// The selected database's number.
    pub fn database_id(&self) -> DatabaseId {
        self.context.database
    }

    pub fn settings(&self) -> &'a Settings {
        &self.keyspace.settings
    }

    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Counts steps of long work.
    pub fn work(&self) -> &'a Work {
        &self.keyspace.work
    }

    /// The whole keyspace: whoever looks around in it must say so with [`Self::observe_all`].
    pub fn keyspace(&self) -> &'a Keyspace {
        self.keyspace
    }

    /// The selected database, for commands that look at all of it; the reply then waits for the
    /// shard's last write.
    pub fn observe_all(&mut self) -> &'a Database {
        self.unit.whole = true;
        self.keyspace.database(self.context.database)
    }

    /// The entry of a key in the selected database, as a read by a client: counts a hit or a miss
    /// and updates its access word.
    pub fn find(&mut self, key: &[u8]) -> Option<EntryRef<'a>> {
        let entry = self.find_unused(key)?;
        if self.context.touch {
            self.keyspace.touch(entry, self.context.now);
        }
        Some(entry)
    }

    /// As [`Self::find`], by a command that does not use the value (TTL, TYPE, EXISTS): the access
    /// word stays.
    pub fn find_unused(&mut self, key: &[u8]) -> Option<EntryRef<'a>> {
        let found = self.peek(key);
        if found.is_some() {
            self.keyspace.statistics.hit();
        } else {
            self.keyspace.statistics.miss();
            self.notify(Class::KeyMiss, "keymiss", key);
        }
        found
    }

    /// The entry of a key, without counting or touching it.
    pub fn peek(&mut self, key: &[u8]) -> Option<EntryRef<'a>> {
        self.peek_in(self.context.database, key)
    }

    /// The entry of a key in any database, without counting or touching it.
    pub fn peek_in(&mut self, database: DatabaseId, key: &[u8]) -> Option<EntryRef<'a>> {
        let hash = self.keyspace.hash(key);
        self.keyspace.work.step();
        self.unit.observe(hash);
        let in_database = self.keyspace.database(database);
        let entry = in_database.find(hash, key)?;
        if in_database.is_timeless() || self.is_alive(database, entry) {
            return Some(entry);
        }
        None
    }

    /// Whether an entry is visible: neither itself nor all of its fields are due. Notes the key if
    /// anything of it is due.
    pub(crate) fn is_alive(&mut self, database: DatabaseId, entry: EntryRef<'a>) -> bool {
        let by = self.context.hidden_by();
        let is_due = |at: Option<i64>| at.is_some_and(|at| at <= by);
        let is_past = is_due(entry.expire_at());
        if !is_past && !is_due(hash::next_expiry(entry)) {
            return true;
        }
        self.note_expired(database, entry.key());
        !is_past && !self.keyspace.is_past(entry, by)
    }

    /// A hash without the fields that are due.
    ///
    /// # Errors
    /// WRONGTYPE if the entry holds another type.
    pub fn hash_in(&self, entry: EntryRef<'a>) -> Result<Seen<'a>, Refusal> {
        Ok(Seen::new(hash::of(entry)?, self.context.hidden_by()))
    }

    /// Notes that something of a key is due, to be deleted after the command.
    pub(crate) fn note_expired(&mut self, database: DatabaseId, key: &[u8]) {
        self.unit.expired.push((database, key.to_vec(), self.interest.messages.len()));
    }

    /// How many elements the value at `key` has, which is of this type; 0 if there is none. What is
    /// not in memory need not come for it. `of` counts those of an entry with its value.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds another type.
    pub fn count(
        &mut self,
        key: &[u8],
        type_name: &str,
        of: impl FnOnce(&Self, EntryRef<'_>) -> Result<usize, Refusal>,
    ) -> Result<usize, Refusal> {
        let Some(entry) = self.find(key) else { return Ok(0) };
        if !entry.is_cold() {
            return of(self, entry);
        }
        if value::type_name(entry) != type_name {
            return Err(Refusal::WRONG_TYPE);
        }
        let is_due = hash::next_expiry(entry).is_some_and(|at| at <= self.context.hidden_by());
        if !is_due && let Some(count) = value::known_count(entry) {
            return Ok(count.into());
        }
        of(self, self.keyspace.with_value(entry)?.as_ref())
    }

    /// The string at `key`.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds another type.
    pub fn string(&mut self, key: &[u8]) -> Result<Option<StringValue<'a>>, Refusal> {
        let found = self.find(key).map(StringValue::of).transpose()?;
        // Whoever asks for a string goes through it.
        self.work().bytes(found.as_ref().map_or(0, StringValue::len));
        Ok(found)
    }

    /// The boxed value at `key`, whatever its type; strings are not boxed values.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds a string.
    pub fn value(&mut self, key: &[u8]) -> Result<Option<&'a Value>, Refusal> {
        match self.find(key) {
            None => Ok(None),
            Some(entry) => Value::of(entry).map(Some).ok_or(Refusal::WRONG_TYPE),
        }
    }

    /// Whether the client may be left waiting (false inside MULTI and scripts).
    pub fn may_block(&self) -> bool {
        self.context.may_block
    }

    /// Whether the command runs again for a blocked client.
    pub fn is_retry(&self) -> bool {
        self.context.retry
    }

    /// As [`crate::tx::Tx::may_serve`].
    pub fn may_serve(&self, key: &[u8]) -> bool {
        !self.context.retry || self.unit.woken_by.as_deref().is_none_or(|woken| woken == key)
    }

    /// The IDs behind which a command that has waited reads streams; empty if it has not waited.
    pub fn resumed_since(&self) -> Vec<StreamId> {
        self.unit.resumed_since.clone()
    }

    /// Makes the client wait for one of `keys`. The command must not have replied.
    pub fn wait(
        &mut self,
        keys: Vec<Vec<u8>>,
        awaited: Awaited,
        wait_millis: Option<u64>,
        on_timeout: TimeoutReply,
        since: Vec<StreamId>,
    ) {
        let database = self.context.database;
        let wait = Wait { database, keys, awaited, wait_millis, on_timeout, since };
        self.unit.wait = Some(wait);
    }

    /// Publishes a keyspace event if its class is switched on.
    pub fn notify(&mut self, class: Class, event: &str, key: &[u8]) {
        let classes = self.keyspace.settings.notify_keyspace_events;
        if classes != 0 {
            let database = self.context.database;
            let event = KeyEvent { class, name: event, database, key };
            self.interest.publish_event(classes, event, &self.keyspace.work);
        }
    }

    /// Publishes a message; to how many it will be delivered.
    pub fn publish(&mut self, channel: &[u8], payload: &[u8], sharded: bool) -> usize {
        let verb: &[u8] = if sharded { b"SPUBLISH" } else { b"PUBLISH" };
        let words = [Word::Text(verb), Word::Text(channel), Word::Text(payload)];
        self.unit.feed.say(self.context.database, &words);
        self.interest.publish(channel, payload, sharded, &self.keyspace.work)
    }
}
