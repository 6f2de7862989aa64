//! Applies effects of the log on a replica and tells listeners about them, as a Redis replica tells
//! about the commands that it executes. [`Keyspace::apply_payload`] uses it while anybody listens.
//!
//! An effect does not carry the command that it came from. So keyspace events are named after the
//! effect: INCR is `incrby` and SETBIT is `setrange`. What a command did to one key in several
//! effects of one kind is one event, as LPUSH of three elements is one `lpush`.
//!
//! ```text
//! effects of one unit   ListPush k a · ListPush k b · ListPop l 3   (the last of l)
//! events                lpush k                     · lpop l · del l
//! ```

use crate::apply::{Applied, Hashed};
use crate::effect::{DeleteReason, Effect, End};
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::notify::{Class, KeyEvent};
use crate::refusal::Refusal;
use crate::value::EntryRef;
use crate::work::Work;
use base::DatabaseId;

/// Applies the effects of one record's payload and tells of them. Only needed while somebody
/// listens.
pub(crate) struct Telling<'i, 'p> {
    interest: &'i mut Interest,
    /// Classes of keyspace events to publish.
    classes: u32,
    work: Work,
    /// The key, as it stands in the payload, and event of the last effect.
    last: Option<(&'p [u8], &'static str)>,
}

impl<'i, 'p> Telling<'i, 'p> {
    /// `None` if nobody would hear anything: then applying costs what it costs in a start.
    pub(crate) fn of(interest: &'i mut Interest, keyspace: &Keyspace) -> Option<Self> {
        let is_heard = !interest.subscribers.is_empty();
        let classes = if is_heard { keyspace.settings.notify_keyspace_events } else { 0 };
        let tells = (!interest.is_idle() || classes != 0) && !interest.ignores_applied();
        tells.then_some(Self { interest, classes, work: keyspace.work.clone(), last: None })
    }

    /// Applies an effect.
    ///
    /// # Errors
    /// Those of [`Keyspace::apply`]; then nothing is told.
    pub(crate) fn apply(
        &mut self,
        keyspace: &mut Keyspace,
        database: DatabaseId,
        key: &'p [u8],
        effect: &Effect<'_>,
    ) -> Result<(), Refusal> {
        if effect.is_keyless() {
            self.interest.before_whole(keyspace, database, effect, keyspace.now);
            keyspace.apply(database, key, effect)?;
            self.interest.after_whole(keyspace, database, effect);
            self.last = None;
            return Ok(());
        }
        let hash = keyspace.hash(key);
        // Redis publishes nothing of what it loads from its master.
        let tells_events = self.classes != 0 && !keyspace.is_partial();
        let find = |keyspace: &Keyspace| {
            let entry = keyspace.database(database).find(hash, key);
            entry.map(EntryRef::expire_at)
        };
        let before = if tells_events { find(keyspace) } else { None };
        let hashed = Hashed { hash, name: key };
        if keyspace.apply_to(database, hashed, effect)? == Applied::Nothing {
            return Ok(());
        }
        self.interest.applied(keyspace, database, hash, key, effect);
        if tells_events {
            let change = Change { before, after: find(keyspace) };
            self.publish(database, key, effect, change);
        }
        Ok(())
    }

    /// Publishes the events of an effect that was applied.
    fn publish(&mut self, database: DatabaseId, key: &'p [u8], effect: &Effect<'_>, did: Change) {
        let is_there = did.after.is_some();
        if did.before.is_none() && is_there {
            self.say(Class::New, "new", database, key);
        }
        let Some((class, name)) = event(database, effect) else { return };
        if let Effect::Rename { to_database, to } | Effect::Copy { to_database, to } = *effect {
            self.say(Class::New, "new", to_database, to);
            if matches!(effect, Effect::Rename { .. }) {
                let from = if to_database == database { "rename_from" } else { "move_from" };
                self.say(class, from, database, key);
            }
            self.say(class, name, to_database, to);
            self.last = None;
            return;
        }
        // The decoder lends a key that stands in the payload once for all effects that repeat it,
        // which only effects of one unit do.
        let joins = |last: (&[u8], &str)| std::ptr::eq(last.0, key) && last.1 == name;
        if !self.last.is_some_and(joins) {
            self.say(class, name, database, key);
            self.last = Some((key, name));
        }
        if let Effect::SetString { expire_at: Some(at), .. } = *effect
            && did.before != Some(Some(at))
        {
            self.say(Class::Generic, "expire", database, key);
        }
        if !is_there && !matches!(effect, Effect::Delete { .. }) {
            self.say(Class::Generic, "del", database, key);
        }
    }

    fn say(&mut self, class: Class, name: &str, database: DatabaseId, key: &[u8]) {
        let event = KeyEvent { class, name, database, key };
        self.interest.publish_event(self.classes, event, &self.work);
    }
}

/// A key before and after an effect: `None` if it is not there, else when it expires.
#[derive(Clone, Copy)]
struct Change {
    before: Option<Option<i64>>,
    after: Option<Option<i64>>,
}

/// The keyspace event for an effect on a key; the event of a rename or copy is about the new key.
/// `None` for effects that have no event in Redis.
fn event(database: DatabaseId, effect: &Effect<'_>) -> Option<(Class, &'static str)> {
    let event = match *effect {
        Effect::SetString { .. } => (Class::String, "set"),
        // No other commands count.
        Effect::SetInteger { .. } => (Class::String, "incrby"),
        Effect::Append { .. } => (Class::String, "append"),
        Effect::SetRange { .. } => (Class::String, "setrange"),
        Effect::Delete { reason: DeleteReason::Command } => (Class::Generic, "del"),
        Effect::Delete { reason: DeleteReason::Expired } => (Class::Expired, "expired"),
        Effect::Delete { reason: DeleteReason::Evicted } => (Class::Evicted, "evicted"),
        Effect::Expire { at: Some(_) } => (Class::Generic, "expire"),
        Effect::Expire { at: None } => (Class::Generic, "persist"),
        Effect::Rename { to_database, .. } if to_database == database => {
            (Class::Generic, "rename_to")
        }
        Effect::Rename { .. } => (Class::Generic, "move_to"),
        Effect::Copy { .. } => (Class::Generic, "copy_to"),
        Effect::ListPush { end: End::Head, .. } => (Class::List, "lpush"),
        Effect::ListPush { end: End::Tail, .. } => (Class::List, "rpush"),
        Effect::ListPop { end: End::Head, .. } => (Class::List, "lpop"),
        Effect::ListPop { end: End::Tail, .. } => (Class::List, "rpop"),
        Effect::ListSet { .. } => (Class::List, "lset"),
        Effect::ListInsert { .. } => (Class::List, "linsert"),
        Effect::ListRemove { .. } => (Class::List, "lrem"),
        Effect::HashSet { .. } => (Class::Hash, "hset"),
        Effect::HashDelete { is_expired: false, .. } => (Class::Hash, "hdel"),
        Effect::HashDelete { is_expired: true, .. } => (Class::Hash, "hexpired"),
        Effect::HashExpire { at: Some(_), .. } => (Class::Hash, "hexpire"),
        Effect::HashExpire { at: None, .. } => (Class::Hash, "hpersist"),
        Effect::SetAdd { .. } => (Class::Set, "sadd"),
        Effect::SetRemove { .. } => (Class::Set, "srem"),
        Effect::SortedAdd { .. } => (Class::SortedSet, "zadd"),
        Effect::SortedRemove { .. } => (Class::SortedSet, "zrem"),
        Effect::StreamAdd { .. } | Effect::StreamBlock { .. } => (Class::Stream, "xadd"),
        Effect::StreamDelete { .. } => (Class::Stream, "xdel"),
        Effect::StreamTrim { .. } => (Class::Stream, "xtrim"),
        Effect::StreamSetId { .. } => (Class::Stream, "xsetid"),
        Effect::StreamGroupCreate { .. } => (Class::Stream, "xgroup-create"),
        Effect::StreamGroupDelete { .. } => (Class::Stream, "xgroup-destroy"),
        Effect::StreamConsumerCreate { .. } => (Class::Stream, "xgroup-createconsumer"),
        Effect::StreamConsumerDelete { .. } => (Class::Stream, "xgroup-delconsumer"),
        // An effect that sets a group's ID may come from XREADGROUP, which has no event, or from
        // XGROUP SETID.
        Effect::StreamCreate
        | Effect::StreamGroupSet { .. }
        | Effect::StreamDeliver { .. }
        | Effect::StreamAcknowledge { .. } => return None,
        Effect::FlushDatabase
        | Effect::FlushAll
        | Effect::SwapDatabases { .. }
        | Effect::TransferBegan
        | Effect::TransferEnded
        | Effect::ReplicaOf { .. }
        | Effect::ReplicaOfNoOne
        | Effect::FunctionLoad { .. }
        | Effect::FunctionDelete { .. }
        | Effect::FunctionFlush => unreachable!("effects on whole databases have no event"),
    };
    Some(event)
}

#[cfg(test)]
mod tests;
