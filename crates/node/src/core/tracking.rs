//! Client-side caching (CLIENT TRACKING): what a client has read is remembered, and it is told when
//! that changes, so that it drops it from its cache.
//!
//! What a client must drop is written to its output when the unit that changed it ends, and waits
//! for nothing but what stands before it there: the log is not asked. So replies and what
//! invalidates them leave in the order in which they were executed. Everything before it was
//! executed earlier, and waits for no later record than the reply to whoever made the change: where
//! that reply may leave, what invalidates may leave too, and does in the same turn.
//!
//! ```text
//! execution   T reads k = 1      W sets k = 2       T reads k
//! output of T reply 1 (held: 7)  drop k             reply 2 (held: 8)
//! output of W                    OK (held: 8)
//! ```
//! Told over another connection (REDIRECT), it waits for the replies that the client which tracks
//! has yet to get: else it would arrive before the value that it is about.
//! What clients may rely on stands in docs/protocol.md.

use crate::core::Core;
use crate::session::tracking::Tracking;
use crate::session::{ClientKind, Session};
use base::{ConnectionId, Sequence};
use catalog::Registered;
use engine::command::{Args, Flags};
use engine::ids::CacherId;
use engine::interest::caches::{Broadcast, Invalidated, Notice};
use resp::{Protocol, Reply};

/// Where a subscriber that speaks RESP2 hears for others what they must drop.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// What one client must drop.
#[derive(Clone, Copy)]
enum Dropped<'a> {
    Keys(&'a [&'a [u8]]),
    /// The whole cache.
    All,
}

impl Core {
    /// A client tracks from now on as it said, and was told so.
    pub(crate) fn track(&mut self, client: ConnectionId, tracking: Tracking) {
        let cacher = CacherId(client.0);
        self.interest.caches.add(cacher);
        for prefix in &tracking.prefixes {
            self.shard.engine.keyspace.work.step();
            self.interest.caches.add_prefix(cacher, prefix);
        }
        self.clients.at_mut(client).tracking = Some(Box::new(tracking));
    }

    /// A client tracks no more, if it did.
    pub(crate) fn untrack(&mut self, client: ConnectionId) {
        if let Some(tracking) = self.clients.at_mut(client).tracking.take() {
            self.interest.caches.remove(CacherId(client.0), &tracking.prefixes);
            self.discard_tracked();
        }
    }

    /// Remembers the keys that a client has read by a command, if it wants to be told of them.
    pub(crate) fn remember_read(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) {
        // What a script reads is noted as it does.
        let reads = command.flags.contains(Flags::READONLY);
        if !reads || command.flags.contains(Flags::RUNS_SCRIPT) || !self.remembers(client) {
            return;
        }
        let keyspace = &self.shard.engine.keyspace;
        let (caches, hasher) = (&mut self.interest.caches, keyspace.hasher());
        command.for_each_key(args, |index, _| {
            keyspace.work.step();
            if let Some(key) = args.get(index) {
                caches.remember(CacherId(client.0), keyspace.hash(key), key, hasher);
            }
        });
    }

    /// Whether what a client's request reads is remembered.
    pub(crate) fn remembers(&self, client: ConnectionId) -> bool {
        self.clients.at(client).tracking.as_ref().is_some_and(|it| it.remembers())
    }

    /// Remembers the keys that a client has named to a script which reads: whatever it reads, its
    /// answer may be about any of them, as in Redis.
    pub(crate) fn remember_named(&mut self, client: ConnectionId, keys: &[Vec<u8>]) {
        let keyspace = &self.shard.engine.keyspace;
        let (caches, hasher) = (&mut self.interest.caches, keyspace.hasher());
        for key in keys {
            keyspace.work.step();
            caches.remember(CacherId(client.0), keyspace.hash(key), key, hasher);
        }
    }

    /// A request of a client has ended: what CLIENT CACHING said was said of it.
    pub(crate) fn end_caching(&mut self, client: ConnectionId, command: Option<&Registered>) {
        if self.interest.caches.is_empty() || !self.clients.has(client) {
            return;
        }
        let keeps = command.is_some_and(|command| command.flags.contains(Flags::KEEPS_CACHING));
        let session = self.clients.at_mut(client);
        // One that waits has not ended, and a transaction's requests are one.
        let goes_on = keeps || session.blocked.is_some() || session.transaction.is_some();
        if let Some(tracking) = session.tracking.as_mut().filter(|_| !goes_on) {
            tracking.is_named = false;
        }
    }

    /// Everybody drops what they cached: another process has led meanwhile, or the data set is
    /// another one.
    pub(crate) fn drop_caches(&mut self) {
        self.interest.caches.changed_all();
        self.tell_invalidated(None);
    }

    /// Lets clients drop keys if more are remembered than `tracking-table-max-keys` allows, some at
    /// a time; whether there are still too many.
    pub(crate) fn limit_tracked(&mut self) -> bool {
        let keys_max = self.process.settings.tracking_table_max_keys;
        if !self.interest.caches.is_over(keys_max) {
            return false;
        }
        let at_once = self.process.options.limits.untracked_keys_max;
        let has_more = self.shard.engine.limit_tracked(keys_max, at_once, &mut self.interest);
        self.tell_invalidated(None);
        has_more
    }

    /// Tells clients what they must drop. `actor` is the client whose request changed it.
    pub(crate) fn tell_invalidated(&mut self, actor: Option<ConnectionId>) {
        let (notices, broadcasts) = self.interest.caches.take_notices();
        for notice in &notices {
            match notice {
                Notice::Key(invalidated) => self.tell_readers(invalidated, actor),
                Notice::All => {
                    for cacher in self.interest.caches.clients().collect::<Vec<_>>() {
                        self.tell_dropped(ConnectionId(cacher.0), Dropped::All);
                    }
                }
            }
        }
        for (prefix, keys) in &broadcasts {
            self.tell_broadcast(prefix, keys, actor);
        }
        self.discard_tracked();
    }

    fn tell_readers(&mut self, invalidated: &Invalidated, actor: Option<ConnectionId>) {
        for reader in &invalidated.readers {
            let client = ConnectionId(reader.0);
            let Some(tracking) = self.tracking(client) else { continue };
            let is_own = invalidated.by_command && actor == Some(client);
            // It may have turned to prefixes since it read.
            if tracking.is_broadcast() || tracking.spares_own && is_own {
                continue;
            }
            self.tell_dropped(client, Dropped::Keys(&[&invalidated.key]));
        }
    }

    fn tell_broadcast(&mut self, prefix: &[u8], keys: &Broadcast, actor: Option<ConnectionId>) {
        let all: Vec<&[u8]> = keys.keys().map(Vec::as_slice).collect();
        for cacher in self.interest.caches.clients_of(prefix).collect::<Vec<_>>() {
            let client = ConnectionId(cacher.0);
            let Some(tracking) = self.tracking(client) else { continue };
            if tracking.spares_own && actor == Some(client) {
                let others = keys.iter().filter(|(_, by_command)| !**by_command);
                let others: Vec<&[u8]> = others.map(|(key, _)| key.as_slice()).collect();
                if !others.is_empty() {
                    self.tell_dropped(client, Dropped::Keys(&others));
                }
            } else {
                self.tell_dropped(client, Dropped::Keys(&all));
            }
        }
    }

    fn tracking(&self, client: ConnectionId) -> Option<&Tracking> {
        self.clients.sessions.get(client)?.tracking.as_deref()
    }

    /// Tells one client what it must drop, or whom it wants to be told instead.
    fn tell_dropped(&mut self, client: ConnectionId, dropped: Dropped<'_>) {
        self.shard.engine.keyspace.work.step();
        let session = self.clients.at(client);
        let Some(tracking) = &session.tracking else { return };
        let (to, observed) = match tracking.redirect {
            None => (client, Sequence::ZERO),
            Some(id) => match self.clients.by_id.get(&id).map(|other| self.clients.at(*other)) {
                Some(other) if !other.flow.is_closing => (other.connection, session.flow.waits_for),
                _ => return self.tell_redirect_broken(client, id),
            },
        };
        let is_redirected = tracking.redirect.is_some();
        let target = self.clients.at_mut(to);
        if hears_pushes(target) {
            let reply = target.reply();
            reply.push(2);
            reply.bulk(b"invalidate");
            write_dropped(reply, dropped);
        } else if is_redirected && target.is_subscriber() && takes_pushes(target) {
            let reply = target.reply();
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(CHANNEL);
            write_dropped(reply, dropped);
        } else {
            // In RESP2 nothing may come between replies.
            return;
        }
        self.hold_pushed(to, observed);
    }

    /// Tells a client that whoever should be told in its place is gone.
    fn tell_redirect_broken(&mut self, client: ConnectionId, id: u64) {
        let session = self.clients.at_mut(client);
        if let Some(tracking) = &mut session.tracking {
            tracking.is_redirect_broken = true;
        }
        if hears_pushes(session) {
            let reply = session.reply();
            reply.push(2);
            reply.bulk(b"tracking-redir-broken");
            reply.integer(id as i64);
            self.hold_pushed(client, Sequence::ZERO);
        }
    }

    /// Frees tables of remembered keys away from the loop.
    fn discard_tracked(&mut self) {
        let garbage = self.interest.caches.take_garbage();
        self.discard(garbage);
    }
}

/// Whether something may be written to a session that it did not ask for. The bytes of a stream of
/// replication are counted.
fn takes_pushes(session: &Session) -> bool {
    session.kind == ClientKind::Client && !session.flow.is_cut
}

/// Whether a session can be told something between its replies.
fn hears_pushes(session: &Session) -> bool {
    session.output.reply.protocol() == Protocol::Resp3 && takes_pushes(session)
}

fn write_dropped(reply: &mut Reply, dropped: Dropped<'_>) {
    match dropped {
        Dropped::All => reply.null(),
        Dropped::Keys(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(*key));
        }
    }
}
