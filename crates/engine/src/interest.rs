//! Clients that must hear of changes, and what they are to be told.
//!
//! | who | registered in | told by |
//! |---|---|---|
//! | watches a key for a transaction | [`Watchers`] | [`Interest::dirtied`] |
//! | waits for a key | [`Waiters`] | [`Interest::ready`] |
//! | is subscribed to a channel | [`Subscribers`] | [`Interest::messages`] |
//!
//! Listeners are connections: they belong to the node, which lends them to whatever changes keys,
//! and outlive the shard that a loading replaces. Every change is told here, on every role: by
//! [`crate::tx::Tx`] as a command executes, and by [`Keyspace::apply_payload`] as a record of the
//! log is applied. All of it is empty on most servers most of the time, which is asked first.

mod applied;
mod waiters;
mod watchers;

use crate::effect::Effect;
use crate::keyspace::Keyspace;
use crate::notify::{self, KeyEvent, Message};
use crate::subscribers::Subscribers;
use crate::unit::{KeyHash, WatcherId};
pub(crate) use applied::Telling;
use base::{DatabaseId, UnixMillis};
use std::collections::BTreeMap;
pub use waiters::Waiters;
use watchers::Replaced;
pub use watchers::Watchers;

/// A value for some keys of some databases. Two levels, so that a lookup needs no owned key. No
/// database's map is empty.
type ByKey<T> = BTreeMap<DatabaseId, BTreeMap<Vec<u8>, T>>;

/// The listeners of one shard, and what changes have brought since the node last took it.
#[derive(Default)]
pub struct Interest {
    pub watchers: Watchers,
    pub waiters: Waiters,
    pub subscribers: Subscribers,
    /// Connections whose watched keys changed.
    pub dirtied: Vec<WatcherId>,
    /// Keys that may now serve a blocked client, in the order in which they became ready.
    pub ready: Vec<(DatabaseId, Vec<u8>)>,
    /// What was published, with its receivers.
    pub messages: Vec<Message>,
    /// See [`Self::ignore_applied`].
    ignores_applied: bool,
}

impl Interest {
    /// Lets nobody hear of what is applied from the log, so that a test can prove that it would
    /// notice.
    #[doc(hidden)]
    pub fn ignore_applied(&mut self) {
        self.ignores_applied = true;
    }

    /// Whether there is something to tell.
    pub fn has_notices(&self) -> bool {
        !self.dirtied.is_empty() || !self.ready.is_empty() || !self.messages.is_empty()
    }

    /// An effect on a key was applied: the key, and the one that a rename or a copy made.
    pub(crate) fn applied(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        if self.watchers.is_empty() && self.waiters.is_empty() {
            return;
        }
        // A copy leaves its source as it was.
        if !matches!(effect, Effect::Copy { .. }) {
            self.changed(keyspace, database, hash, key);
        }
        if let Effect::Rename { to_database, to } | Effect::Copy { to_database, to } = *effect {
            self.changed(keyspace, to_database, keyspace.hash(to), to);
        }
    }

    fn changed(&mut self, keyspace: &Keyspace, database: DatabaseId, hash: KeyHash, key: &[u8]) {
        if !self.watchers.is_empty() {
            let exists = keyspace.database(database).find(hash, key).is_some();
            self.watchers.dirty(database, key, exists, &mut self.dirtied);
        }
        if !self.waiters.is_empty() && self.waiters.wait_for(database, key) {
            self.serves(database, key);
        }
    }

    /// Dirties the transactions that watch a key although nothing in it changed.
    pub(crate) fn touched(&mut self, keyspace: &Keyspace, database: DatabaseId, key: &[u8]) {
        if !self.watchers.is_empty() {
            let exists = keyspace.exists(database, key);
            self.watchers.dirty(database, key, exists, &mut self.dirtied);
        }
    }

    /// An effect on whole databases is about to be applied. Dirties the watchers of the keys that
    /// are there now, and for an exchange of those that are there in the other database. A key past
    /// its time counts as absent.
    pub(crate) fn before_whole(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        effect: &Effect<'_>,
        now: UnixMillis,
    ) {
        if self.watchers.is_empty() {
            return;
        }
        let affected: Vec<(DatabaseId, Option<DatabaseId>)> = match *effect {
            Effect::FlushAll => keyspace.databases().map(|(id, _)| (id, None)).collect(),
            Effect::SwapDatabases { with } => vec![(database, Some(with)), (with, Some(database))],
            Effect::FlushDatabase => vec![(database, None)],
            _ => return,
        };
        for (watched_in, replaced_by) in affected {
            self.watchers.replace_database(watched_in, &mut self.dirtied, |key| Replaced {
                existed: keyspace.exists(watched_in, key),
                exists: replaced_by.is_some_and(|id| keyspace.exists(id, key)),
                is_expired: replaced_by.is_some_and(|id| keyspace.is_expired(id, key, now)),
            });
        }
    }

    /// An effect on whole databases was applied: databases that were exchanged may have what
    /// somebody waits for.
    pub(crate) fn after_whole(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        effect: &Effect<'_>,
    ) {
        let Effect::SwapDatabases { with } = *effect else { return };
        for exchanged in [database, with] {
            let waited = self.waiters.keys_of(exchanged);
            let there = waited.filter(|key| keyspace.exists(exchanged, key));
            for key in there.map(<[u8]>::to_vec).collect::<Vec<_>>() {
                self.serves(exchanged, &key);
            }
        }
    }

    /// Publishes a message, if anybody gets it; to how many it will be delivered.
    pub fn publish(&mut self, channel: &[u8], payload: &[u8], sharded: bool) -> usize {
        notify::publish(&self.subscribers, channel, payload, sharded, &mut self.messages)
    }

    /// Publishes an event on a key, if its class is among `classes`.
    pub(crate) fn publish_event(&mut self, classes: u32, event: KeyEvent<'_>) {
        notify::publish_event(classes, event, &self.subscribers, &mut self.messages);
    }

    /// Somebody waits for this key, and it may serve them once the unit ends.
    fn serves(&mut self, database: DatabaseId, key: &[u8]) {
        if !self.ready.iter().any(|(d, k)| *d == database && k == key) {
            self.ready.push((database, key.to_vec()));
        }
    }
}
