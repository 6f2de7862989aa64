//! Client-side caching (CLIENT TRACKING): the keys that a client has read are recorded, and when
//! one changes, the client is told to drop it from its cache.
//!
//! An invalidation is written to a client's output when the unit that changed the key ends. It
//! waits for nothing but the bytes before it in that output, not for the log. So replies and the
//! invalidations of their keys leave in the order of execution. Everything before an invalidation
//! was executed earlier, and waits for no later record than the reply to the client that made the
//! change: when that reply may leave, the invalidation may too, and does in the same turn.
//!
//! ```text
//! execution   T reads k = 1      W sets k = 2       T reads k
//! output of T reply 1 (held: 7)  drop k             reply 2 (held: 8)
//! output of W                    OK (held: 8)
//! ```
//! An invalidation over another connection (REDIRECT) waits for the replies that the tracking
//! client has yet to get: otherwise it could arrive before the value that it is about.

use crate::core::Core;
use crate::session::tracking::Tracking;
use crate::session::{ClientKind, Session};
use base::{ConnectionId, Sequence};
use catalog::{CommandId, Registered};
use engine::command::{Args, Flags};
use engine::ids::CacherId;
use engine::interest::caches::{Broadcast, Invalidated, Notice};
use resp::{Protocol, Reply};

/// The channel on which a RESP2 client gets the invalidations of other connections.
const CHANNEL: &[u8] = b"__redis__:invalidate";

/// What one client must drop from its cache.
#[derive(Clone, Copy)]
enum Dropped<'a> {
    Keys(&'a [&'a [u8]]),
    /// The whole cache.
    All,
}

impl Core {
    /// Turns tracking on for a client, with these settings.
    pub(crate) fn track(&mut self, client: ConnectionId, tracking: Tracking) {
        let cacher = CacherId(client.0);
        self.interest.caches.add(cacher);
        for prefix in &tracking.prefixes {
            self.shard.engine.keyspace.work.step();
            self.interest.caches.add_prefix(cacher, prefix);
        }
        self.clients.at_mut(client).tracking = Some(Box::new(tracking));
    }

    /// Turns tracking off for a client, if it is on.
    pub(crate) fn untrack(&mut self, client: ConnectionId) {
        if let Some(tracking) = self.clients.at_mut(client).tracking.take() {
            self.interest.caches.remove(CacherId(client.0), &tracking.prefixes);
            self.discard_tracked();
        }
    }

    /// Records the keys that a client has read by a command, if it tracks them.
    pub(crate) fn remember_read(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) {
        // Reads of a script are recorded at each of its calls.
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

    /// Whether the keys that a client's request reads are recorded.
    pub(crate) fn remembers(&self, client: ConnectionId) -> bool {
        self.clients.at(client).tracking.as_ref().is_some_and(|it| it.remembers())
    }

    /// Records the keys that a client has named to a script, when the script first reads: its
    /// answer may be about any of them, as in Redis.
    pub(crate) fn remember_named(&mut self, client: ConnectionId, keys: &[Vec<u8>]) {
        let keyspace = &self.shard.engine.keyspace;
        let (caches, hasher) = (&mut self.interest.caches, keyspace.hasher());
        for key in keys {
            keyspace.work.step();
            caches.remember(CacherId(client.0), keyspace.hash(key), key, hasher);
        }
    }

    /// Ends the effect of CLIENT CACHING when the request after it has ended.
    #[inline]
    pub(crate) fn end_caching(&mut self, client: ConnectionId, command: Option<CommandId>) {
        if !self.interest.caches.is_empty() && self.clients.has(client) {
            let command = command.map(|id| self.process.catalog.command(id));
            self.end_caching_of(client, command);
        }
    }

    fn end_caching_of(&mut self, client: ConnectionId, command: Option<&Registered>) {
        let keeps = command.is_some_and(|command| command.flags.contains(Flags::KEEPS_CACHING));
        let session = self.clients.at_mut(client);
        // A request that waits has not ended, and a transaction counts as one request.
        let goes_on = keeps || session.blocked.is_some() || session.transaction.is_some();
        if let Some(tracking) = session.tracking.as_mut().filter(|_| !goes_on) {
            tracking.caching_was_called = false;
        }
    }

    /// Tells every tracking client to drop its whole cache: another process has led meanwhile, or
    /// the data set was replaced.
    pub(crate) fn drop_caches(&mut self) {
        self.interest.caches.changed_all();
        self.tell_invalidated(None);
    }

    /// Invalidates some keys if more are recorded than `tracking-table-max-keys` allows; returns
    /// whether there are still too many.
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

    /// Sends the pending invalidations. `actor` is the client whose request changed the keys.
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
            // The client may have changed its mode since it read the key.
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

    /// Sends an invalidation to one client, or to the client that it redirects to.
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
            // RESP2 has no messages between replies.
            return;
        }
        self.hold_pushed(to, observed);
    }

    /// Tells a client that the client it redirects to is gone.
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

    /// Hands discarded tables of recorded keys to the thread that frees them.
    fn discard_tracked(&mut self) {
        let garbage = self.interest.caches.take_garbage();
        self.shard.engine.keyspace.statistics.left_to_free(garbage.len());
        self.discard(garbage);
    }
}

/// Whether messages may be written to a session between replies: not to a replication stream, whose
/// bytes are counted.
fn takes_pushes(session: &Session) -> bool {
    session.kind == ClientKind::Client && !session.flow.is_cut
}

/// Whether a session's protocol has messages between replies.
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
