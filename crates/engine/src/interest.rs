//! The clients that must be told when keys change, and the notices for them. The node registers
//! clients here and delivers the notices; whatever changes keys writes them.
//!
//! | a client that | is registered in | its notices |
//! |---|---|---|
//! | watches a key for a transaction | [`Watchers`] | [`Interest::dirtied`] |
//! | waits for a key (BLPOP) | [`Waiters`] | [`Interest::ready`] |
//! | is subscribed to a channel | [`Subscribers`] | [`Interest::messages`] |
//! | caches what it reads | [`Caches`] | [`Caches::take_notices`] |
//!
//! Keys are changed by [`crate::tx::Tx`] as a command executes, and by [`Keyspace::apply_payload`]
//! as a replica applies a record of the log; both tell. There is one [`Interest`] in a server, not
//! one in each keyspace: clients stay connected when a loading replaces the keyspace. On most
//! servers nobody is registered most of the time, so that is asked first.

pub mod caches;
mod waiters;
mod watchers;

use crate::effect::{DeleteReason, Effect};
use crate::ids::{KeyHash, SubscriberId, WatcherId};
use crate::keyspace::Keyspace;
use crate::notify::{KeyEvent, Message};
use crate::subscribers::{Receiver, Subscribers};
use crate::work::Work;
use base::{DatabaseId, UnixMillis};
pub use caches::Caches;
use std::collections::{BTreeMap, BTreeSet};
pub use waiters::Waiters;
use watchers::Replaced;
pub use watchers::Watchers;

/// Bytes that a message takes on the wire beside its channel, its payload and its pattern, at
/// least: the shortest, `*3 $7 message $1 $1` with its line ends, takes 29.
const MESSAGE_BYTES_MIN: usize = 24;

/// A value for some keys of some databases. Two levels, so that a lookup needs no owned key. No
/// database's map is empty.
type ByKey<T> = BTreeMap<DatabaseId, BTreeMap<Vec<u8>, T>>;

/// Notices that the listeners of changed keys are still to get: see [`Interest::take_notices`].
#[derive(Default)]
pub struct Notices {
    dirtied: Vec<WatcherId>,
    ready: Vec<(DatabaseId, Vec<u8>)>,
    messages: Vec<Message>,
    owed: BTreeMap<SubscriberId, usize>,
    overdrawn: BTreeSet<SubscriberId>,
    caches: caches::CacheNotices,
}

/// The listeners of one shard, and what changes have brought since the node last took it.
#[derive(Default)]
pub struct Interest {
    pub watchers: Watchers,
    pub waiters: Waiters,
    pub subscribers: Subscribers,
    pub caches: Caches,
    /// Connections whose watched keys changed.
    pub dirtied: Vec<WatcherId>,
    /// Keys that may now serve a blocked client, in the order in which they became ready.
    pub ready: Vec<(DatabaseId, Vec<u8>)>,
    /// What was published, with its receivers.
    pub messages: Vec<Message>,
    /// Bytes of `messages` that each of their receivers will be sent, at least.
    owed: BTreeMap<SubscriberId, usize>,
    /// Bytes of `messages` beyond which a subscriber gets no more of them; `None`: never.
    pub owed_bytes_max: Option<usize>,
    /// Subscribers that got no more of them. The node disconnects them, so that nobody misses a
    /// message in silence.
    pub overdrawn: BTreeSet<SubscriberId>,
    /// See [`Self::ignore_applied`].
    ignores_applied: bool,
}

impl Interest {
    /// Nobody's yet. What one subscriber is owed at a time is bounded by so many bytes, if any.
    pub fn bounded(owed_bytes_max: Option<usize>) -> Self {
        Self { owed_bytes_max, ..Self::default() }
    }

    /// Lets nobody hear of what is applied from the log, so that a test can prove that it would
    /// notice.
    #[doc(hidden)]
    pub fn ignore_applied(&mut self) {
        self.ignores_applied = true;
    }

    pub(crate) fn ignores_applied(&self) -> bool {
        self.ignores_applied
    }

    /// Whether there is something to tell.
    pub fn has_notices(&self) -> bool {
        let is_told = !self.messages.is_empty() || self.caches.has_notices();
        !self.dirtied.is_empty() || !self.ready.is_empty() || is_told
    }

    /// Whether nobody listens for changes of keys.
    pub(crate) fn is_idle(&self) -> bool {
        self.watchers.is_empty() && self.waiters.is_empty() && self.caches.is_empty()
    }

    /// Takes all notices out, while the unit that caused them is suspended and other requests run.
    /// The notices for caches too: nobody is shown what the unit changed before it ends, and the
    /// client that runs it must get its reply first.
    pub fn take_notices(&mut self) -> Notices {
        Notices {
            dirtied: std::mem::take(&mut self.dirtied),
            ready: std::mem::take(&mut self.ready),
            messages: std::mem::take(&mut self.messages),
            owed: std::mem::take(&mut self.owed),
            overdrawn: std::mem::take(&mut self.overdrawn),
            caches: self.caches.take_notices(),
        }
    }

    /// Puts back what [`Self::take_notices`] took. There must be no other notices.
    pub fn put_notices(&mut self, notices: Notices) {
        debug_assert!(!self.has_notices(), "each unit's notices are told at its end");
        let Notices { dirtied, ready, messages, owed, overdrawn, caches } = notices;
        self.caches.put_notices(caches);
        (self.dirtied, self.ready, self.messages) = (dirtied, ready, messages);
        (self.owed, self.overdrawn) = (owed, overdrawn);
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
        if self.is_idle() {
            return;
        }
        let by_command = match *effect {
            Effect::Delete { reason } => reason == DeleteReason::Command,
            Effect::HashDelete { is_expired, .. } => !is_expired,
            _ => true,
        };
        match effect {
            // A copy leaves its source as it was.
            Effect::Copy { .. } => {}
            // Changes within a group wake nobody, and do not dirty transactions in Redis either.
            Effect::StreamGroupCreate { .. }
            | Effect::StreamGroupSet { .. }
            | Effect::StreamConsumerCreate { .. }
            | Effect::StreamConsumerDelete { .. }
            | Effect::StreamDeliver { .. }
            | Effect::StreamAcknowledge { .. } => {
                if !self.caches.is_empty() {
                    self.caches.changed(hash, key, by_command);
                }
            }
            _ => self.changed(keyspace, database, hash, key, by_command),
        }
        if let Some((database, key)) = effect.second_key() {
            self.changed(keyspace, database, keyspace.hash(key), key, by_command);
        }
    }

    fn changed(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        hash: KeyHash,
        key: &[u8],
        by_command: bool,
    ) {
        if !self.watchers.is_empty() {
            let exists = keyspace.database(database).find(hash, key).is_some();
            self.watchers.dirty(database, key, exists, &mut self.dirtied);
        }
        if !self.waiters.is_empty() {
            self.waiters.serve(database, key, &mut self.ready);
        }
        if !self.caches.is_empty() {
            self.caches.changed(hash, key, by_command);
        }
    }

    /// A command hid a key that is due, and no effect says so: clients that cached the key must
    /// drop it all the same.
    pub(crate) fn hid(&mut self, keyspace: &Keyspace, key: &[u8]) {
        if !self.caches.is_empty() {
            self.caches.changed(keyspace.hash(key), key, false);
        }
    }

    /// Marks the transactions that watch a key as dirty, and invalidates caches of it, although no
    /// effect changed it.
    pub(crate) fn touched(&mut self, keyspace: &Keyspace, database: DatabaseId, key: &[u8]) {
        if !self.watchers.is_empty() {
            let exists = keyspace.exists(database, key);
            self.watchers.dirty(database, key, exists, &mut self.dirtied);
        }
        if !self.caches.is_empty() {
            self.caches.changed(keyspace.hash(key), key, true);
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
        let is_about_keys = matches!(
            effect,
            Effect::FlushAll | Effect::FlushDatabase | Effect::SwapDatabases { .. }
        );
        if is_about_keys {
            self.caches.changed_all();
        }
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
            keyspace.work.steps(self.watchers.keys_len(watched_in));
            self.watchers.replace_database(watched_in, &mut self.dirtied, |key| Replaced {
                existed: keyspace.exists(watched_in, key),
                exists: replaced_by.is_some_and(|id| keyspace.exists(id, key)),
                is_expired: replaced_by.is_some_and(|id| keyspace.is_expired(id, key, now)),
            });
        }
    }

    /// An effect on whole databases was applied: databases that were exchanged may have what
    /// somebody waits for, and what somebody must hear the end of may be gone.
    pub(crate) fn after_whole(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        effect: &Effect<'_>,
    ) {
        if self.waiters.is_empty() {
            return;
        }
        let changed: Vec<DatabaseId> = match *effect {
            Effect::SwapDatabases { with } => vec![database, with],
            Effect::FlushDatabase => vec![database],
            Effect::FlushAll => keyspace.databases().map(|(id, _)| id).collect(),
            _ => return,
        };
        for changed in changed {
            let waited = self.waiters.keys_of(changed);
            let waited = waited.inspect(|_| keyspace.work.step());
            let concerned = waited.filter(|key| {
                keyspace.exists(changed, key) || self.waiters.hears_end(changed, key)
            });
            for key in concerned.map(<[u8]>::to_vec).collect::<Vec<_>>() {
                self.waiters.serve(changed, &key, &mut self.ready);
            }
        }
    }

    /// Publishes a message, if anybody gets it; to how many it will be delivered.
    pub fn publish(&mut self, channel: &[u8], payload: &[u8], sharded: bool, work: &Work) -> usize {
        if self.subscribers.is_empty() {
            return 0;
        }
        let mut receivers = self.subscribers.receivers(channel, sharded, work);
        let count = receivers.len();
        self.drop_overdrawn(&mut receivers, channel.len() + payload.len());
        if !receivers.is_empty() {
            let (channel, payload) = (channel.to_vec(), payload.to_vec());
            self.messages.push(Message { channel, payload, sharded, receivers });
        }
        count
    }

    /// Publishes an event on a key, if its class is among `classes`: first to the channel of its
    /// key, then to that of its name.
    pub(crate) fn publish_event(&mut self, classes: u32, event: KeyEvent<'_>, work: &Work) {
        if !self.subscribers.is_empty() {
            for (channel, payload) in event.messages(classes).into_iter().flatten() {
                self.publish(&channel, payload, false, work);
            }
        }
    }

    /// Drops those who are owed so much already, to be disconnected instead. A unit may publish any
    /// number of messages, each to any number of patterns of one client.
    fn drop_overdrawn(&mut self, receivers: &mut Vec<Receiver>, bytes: usize) {
        if self.messages.is_empty() {
            self.owed.clear();
        }
        let Some(limit) = self.owed_bytes_max else { return };
        receivers.retain(|Receiver { subscriber, pattern }| {
            let owed = self.owed.entry(*subscriber).or_default();
            let is_kept = *owed < limit;
            let pattern_bytes = pattern.as_ref().map_or(0, |pattern| pattern.len());
            *owed += bytes + pattern_bytes + MESSAGE_BYTES_MIN;
            if !is_kept {
                self.overdrawn.insert(*subscriber);
            }
            is_kept
        });
    }
}
