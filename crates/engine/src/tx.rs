//! The only way to change the keyspace.
//!
//! [`Tx::change`] applies an effect and records it for the log in one step, marks the key as
//! written for the tracker and tells those who are interested in it. Replicas and recovery call the
//! same [`Keyspace::apply`] with the recorded effect.

mod expiry;

use crate::apply::{Applied, Hashed};
use crate::effect::{DeleteReason, Effect};
use crate::feed::Word;
use crate::ids::KeyHash;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::notify::{Class, KeyEvent};
use crate::random::Random;
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::unit::{Context, Overdue, TimeoutReply, Unit, Wait};
use crate::value::hash::Seen;
use crate::value::{self, Awaited, EntryRef, StringValue, Value};
use crate::view::View;
use crate::work::Work;
use base::{DatabaseId, UnixMillis};

/// Reads and changes keys within one unit.
pub struct Tx<'a> {
    pub(crate) keyspace: &'a mut Keyspace,
    pub(crate) unit: &'a mut Unit,
    pub(crate) interest: &'a mut Interest,
    pub(crate) random: &'a mut Random,
    pub(crate) context: Context,
    /// The key that [`Self::replace`] made way for.
    replaced: Option<KeyHash>,
}

impl<'a> Tx<'a> {
    pub fn new(
        keyspace: &'a mut Keyspace,
        unit: &'a mut Unit,
        interest: &'a mut Interest,
        random: &'a mut Random,
        context: Context,
    ) -> Self {
        Self { keyspace, unit, interest, random, context, replaced: None }
    }

    /// The same unit, reading only.
    pub fn view(&mut self) -> View<'_> {
        View::new(self.keyspace, self.unit, self.interest, self.random, self.context)
    }

    /// The instant at which this unit executes.
    pub fn now(&self) -> UnixMillis {
        self.context.now
    }

    /// Whether an expiry at this instant has come. What a master says is never overdue: it will
    /// say itself when the key goes.
    pub fn is_overdue(&self, at: i64) -> bool {
        self.context.overdue != Overdue::Kept && at <= self.context.now.0
    }

    /// The selected database's number.
    pub fn database_id(&self) -> DatabaseId {
        self.context.database
    }

    pub fn settings(&self) -> &Settings {
        &self.keyspace.settings
    }

    pub fn random(&mut self) -> &mut Random {
        self.random
    }

    /// Counts steps of long work, whatever of the keyspace is borrowed meanwhile.
    pub fn work(&self) -> Work {
        self.keyspace.work.clone()
    }

    pub fn keyspace(&self) -> &Keyspace {
        self.keyspace
    }

    /// Whether the client may be left waiting (false inside MULTI and scripts).
    pub fn may_block(&self) -> bool {
        self.context.may_block
    }

    /// Whether the command runs again for a blocked client; a key of another type than the one it
    /// waits for is then passed over.
    pub fn is_retry(&self) -> bool {
        self.context.retry
    }

    /// Whether a blocking command may take from `key`: any key when it runs first, later only the
    /// key that became ready, wherever it stands among the arguments.
    pub fn may_serve(&self, key: &[u8]) -> bool {
        !self.context.retry || self.unit.woken_by.as_deref().is_none_or(|woken| woken == key)
    }

    /// The entry of a key; a key past its time is deleted first, by an effect.
    pub fn find(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        self.find_in(self.context.database, key)
    }

    /// As [`Self::find`], in any database.
    pub fn find_in(&mut self, database: DatabaseId, key: &[u8]) -> Option<EntryRef<'_>> {
        self.find_hashed(database, self.keyspace.hash(key), key)
    }

    fn find_hashed(
        &mut self,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
    ) -> Option<EntryRef<'_>> {
        self.keyspace.work.step();
        self.unit.observe(hash);
        self.expire_if_due(database, hash, key);
        let entry = self.keyspace.database(database).find(hash, key)?;
        if self.context.overdue != Overdue::Hidden {
            return Some(entry);
        }
        let by = self.context.hidden_by();
        let is_hidden = self.keyspace.is_past(entry, by);
        if is_hidden || value::hash::next_expiry(entry).is_some_and(|at| at <= by) {
            self.unit.rests_on_clock = true;
            self.interest.hid(self.keyspace, key);
        }
        (!is_hidden).then_some(entry)
    }

    /// The hash at `key`, without the fields that are due.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds another type.
    pub fn hash(&mut self, key: &[u8]) -> Result<Option<Seen<'_>>, Refusal> {
        let by = self.context.hidden_by();
        let found = self.find(key).map(value::hash::of).transpose()?;
        Ok(found.map(|hash| Seen::new(hash, by)))
    }

    /// As [`Self::find`], counted as a client's read: a hit or a miss, and the access word.
    pub fn find_read(&mut self, key: &[u8]) -> Option<EntryRef<'_>> {
        let hash = self.keyspace.hash(key);
        if self.find_hashed(self.context.database, hash, key).is_none() {
            self.keyspace.statistics.miss();
            self.notify(Class::KeyMiss, "keymiss", key);
            return None;
        }
        self.keyspace.statistics.hit();
        let entry = self.keyspace.database(self.context.database).find(hash, key)?;
        if self.context.touch {
            self.keyspace.touch(entry, self.context.now);
        }
        Some(entry)
    }

    /// The string at `key`.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds another type.
    pub fn string(&mut self, key: &[u8]) -> Result<Option<StringValue<'_>>, Refusal> {
        let work = self.work();
        let found = self.find(key).map(StringValue::of).transpose()?;
        // Whoever asks for a string goes through it.
        work.bytes(found.as_ref().map_or(0, StringValue::len));
        Ok(found)
    }

    /// The boxed value at `key`, whatever its type; strings are not boxed values.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds a string.
    pub fn value(&mut self, key: &[u8]) -> Result<Option<&Value>, Refusal> {
        match self.find(key) {
            None => Ok(None),
            Some(entry) => Value::of(entry).map(Some).ok_or(Refusal::WRONG_TYPE),
        }
    }

    /// Whether the key exists.
    pub fn exists(&mut self, key: &[u8]) -> bool {
        self.find(key).is_some()
    }

    /// Applies an effect on a key of the selected database and records it, unless it changes
    /// nothing.
    ///
    /// # Errors
    /// WRONGTYPE if the key holds a type that the effect is not for; then nothing happened.
    pub fn change(&mut self, key: &[u8], effect: Effect<'_>) -> Result<Applied, Refusal> {
        self.change_in(self.context.database, key, effect)
    }

    /// As [`Self::change`], in any database.
    ///
    /// # Errors
    /// As [`Self::change`].
    pub fn change_in(
        &mut self,
        database: DatabaseId,
        key: &[u8],
        effect: Effect<'_>,
    ) -> Result<Applied, Refusal> {
        let hash = self.keyspace.hash(key);
        self.unit.observe(hash);
        self.expire_if_due(database, hash, key);
        self.record(database, hash, key, effect)
    }

    /// Makes changes of which those who follow are told by one command on the selected database
    /// instead of one for each effect. It must have exactly these effects on an equal keyspace.
    ///
    /// # Errors
    /// Those of `change`; then nothing is told.
    pub fn told_as(
        &mut self,
        words: &[Word<'_>],
        change: impl FnOnce(&mut Self) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let is_told = self.unit.feed.mute();
        let changed = change(self);
        self.unit.feed.unmute();
        if is_told && changed.is_ok() {
            self.unit.feed.say(self.context.database, words);
        }
        changed
    }

    /// Dirties the transactions that watch a key although nothing in it changed: Redis does so for
    /// some commands that might have changed it.
    pub fn touch(&mut self, key: &[u8]) {
        self.interest.touched(self.keyspace, self.context.database, key);
    }

    /// Deletes a key of the selected database; whether it was there.
    pub fn delete(&mut self, key: &[u8]) -> bool {
        let effect = Effect::Delete { reason: DeleteReason::Command };
        self.change(key, effect).is_ok_and(|applied| applied != Applied::Nothing)
    }

    /// Deletes a key that the same command puts anew; whether it was there. To those who listen for
    /// events such a key is no new one.
    pub fn replace(&mut self, key: &[u8]) -> bool {
        let existed = self.delete(key);
        self.replaced = existed.then(|| self.keyspace.hash(key));
        existed
    }

    /// Applies an effect on a whole database or on all of them.
    pub fn change_all(&mut self, database: DatabaseId, effect: Effect<'_>) {
        self.unit.whole = true;
        let now = self.context.now;
        self.interest.before_whole(self.keyspace, database, &effect, now);
        let applied = self.keyspace.apply(database, &[], &effect);
        debug_assert!(applied.is_ok(), "effects on databases meet no type");
        self.keyspace.work.step();
        self.unit.effects.push(database, &[], &effect);
        if self.unit.feed.is_on() {
            self.unit.feed.tell(self.keyspace, database, &[], &effect);
        }
        self.unit.changes += 1;
        self.interest.after_whole(self.keyspace, database, &effect);
        self.unit.garbage.append(&mut self.keyspace.garbage);
    }

    fn record(
        &mut self,
        database: DatabaseId,
        hash: u64,
        key: &[u8],
        effect: Effect<'_>,
    ) -> Result<Applied, Refusal> {
        let tells_new = self.keyspace.settings.notify_keyspace_events & Class::New as u32 != 0;
        let is_there = || self.keyspace.database(database).find(hash, key).is_some();
        let existed = tells_new && (self.replaced == Some(hash) || is_there());
        let applied = self.keyspace.apply_to(database, Hashed { hash, name: key }, &effect)?;
        self.keyspace.work.step();
        if applied == Applied::Nothing {
            return Ok(applied);
        }
        let before = self.unit.effects.len();
        self.unit.effects.push(database, key, &effect);
        self.keyspace.work.bytes(self.unit.effects.len() - before);
        if self.unit.feed.is_on() {
            self.unit.feed.tell(self.keyspace, database, key, &effect);
        }
        self.unit.changes += 1;
        self.interest.applied(self.keyspace, database, hash, key, &effect);
        if !self.keyspace.garbage.is_empty() {
            self.unit.garbage.append(&mut self.keyspace.garbage);
        }
        // A copy leaves its source as it was.
        if !matches!(effect, Effect::Copy { .. }) {
            self.unit.wrote(hash);
        }
        if tells_new && !existed {
            self.notify_in(database, Class::New, "new", key);
        }
        if let Some((database, key)) = effect.second_key() {
            self.unit.wrote(self.keyspace.hash(key));
            if tells_new {
                self.notify_in(database, Class::New, "new", key);
            }
        }
        Ok(applied)
    }

    /// Leaves the client waiting for one of `keys`. The command must not have replied.
    pub fn wait(
        &mut self,
        keys: Vec<Vec<u8>>,
        awaited: Awaited,
        wait_millis: Option<u64>,
        on_timeout: TimeoutReply,
    ) {
        let database = self.context.database;
        let since = Vec::new();
        self.unit.wait = Some(Wait { database, keys, awaited, wait_millis, on_timeout, since });
    }

    /// Publishes a keyspace event of the selected database if its class is switched on.
    pub fn notify(&mut self, class: Class, event: &str, key: &[u8]) {
        self.notify_in(self.context.database, class, event, key);
    }

    /// As [`Self::notify`], in any database.
    pub fn notify_in(&mut self, database: DatabaseId, class: Class, event: &str, key: &[u8]) {
        let classes = self.keyspace.settings.notify_keyspace_events;
        if classes != 0 {
            let event = KeyEvent { class, name: event, database, key };
            self.interest.publish_event(classes, event, &self.keyspace.work);
        }
    }
}
