//! Who is subscribed to what, and the delivery of messages.
//!
//! A message waits like a reply: it leaves when everything its unit wrote or read is durable.

use crate::server::Server;
use crate::session::Session;
use base::{ConnectionId, Sequence};
use engine::glob;
use engine::notify::Message;
use resp::Reply;
use std::collections::{BTreeMap, BTreeSet};

/// Subscriptions by name.
#[derive(Default)]
pub struct PubSub {
    pub channels: BTreeMap<Vec<u8>, BTreeSet<ConnectionId>>,
    pub patterns: BTreeMap<Vec<u8>, BTreeSet<ConnectionId>>,
    pub shard_channels: BTreeMap<Vec<u8>, BTreeSet<ConnectionId>>,
}

/// The three sorts of subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Channel,
    Pattern,
    Shard,
}

impl PubSub {
    fn map(&mut self, sort: Sort) -> &mut BTreeMap<Vec<u8>, BTreeSet<ConnectionId>> {
        match sort {
            Sort::Channel => &mut self.channels,
            Sort::Pattern => &mut self.patterns,
            Sort::Shard => &mut self.shard_channels,
        }
    }

    /// How many clients get a message to this channel, for PUBLISH's reply.
    pub fn receivers(&self, channel: &[u8], sharded: bool) -> usize {
        if sharded {
            return self.shard_channels.get(channel).map_or(0, BTreeSet::len);
        }
        let direct = self.channels.get(channel).map_or(0, BTreeSet::len);
        let matching = self.patterns.iter().filter(|(pattern, _)| glob::matches(pattern, channel));
        direct + matching.map(|(_, subscribers)| subscribers.len()).sum::<usize>()
    }
}

impl Session {
    /// The session's own side of its subscriptions.
    pub fn subscribed(&mut self, sort: Sort) -> &mut BTreeSet<Vec<u8>> {
        match sort {
            Sort::Channel => &mut self.channels,
            Sort::Pattern => &mut self.patterns,
            Sort::Shard => &mut self.shard_channels,
        }
    }
}

impl Server {
    /// Subscribes a session; subscribing twice is subscribing once.
    pub fn subscribe(&mut self, session: &mut Session, sort: Sort, name: &[u8]) {
        session.subscribed(sort).insert(name.to_vec());
        let subscribers = self.pubsub.map(sort).entry(name.to_vec()).or_default();
        subscribers.insert(session.connection);
    }

    pub fn unsubscribe(&mut self, session: &mut Session, sort: Sort, name: &[u8]) {
        session.subscribed(sort).remove(name);
        let map = self.pubsub.map(sort);
        if let Some(subscribers) = map.get_mut(name) {
            subscribers.remove(&session.connection);
            if subscribers.is_empty() {
                map.remove(name);
            }
        }
    }

    /// Drops all subscriptions of a session, without telling it.
    pub(crate) fn forget_subscriptions(&mut self, session: &mut Session) {
        for sort in [Sort::Channel, Sort::Pattern, Sort::Shard] {
            for name in std::mem::take(session.subscribed(sort)) {
                self.unsubscribe(session, sort, &name);
            }
        }
    }

    /// Delivers messages; they leave when `observed` is durable. `current` is the session whose
    /// command is running, which the map does not hold.
    pub(crate) fn publish(
        &mut self,
        messages: &[Message],
        observed: Sequence,
        mut current: Option<&mut Session>,
    ) {
        for message in messages {
            let mut deliver =
                |server: &mut Self, to: ConnectionId, pattern: Option<&[u8]>| match current
                    .as_deref_mut()
                {
                    Some(session) if session.connection == to => {
                        push_message(session.reply(), message, pattern);
                        server.hold(session, observed);
                    }
                    _ => {
                        let Some(mut session) = server.sessions.remove(&to) else { return };
                        push_message(session.reply(), message, pattern);
                        server.hold(&mut session, observed);
                        server.sessions.insert(to, session);
                    }
                };
            let map =
                if message.sharded { &self.pubsub.shard_channels } else { &self.pubsub.channels };
            let direct: Vec<ConnectionId> =
                map.get(&message.channel).into_iter().flatten().copied().collect();
            for to in direct {
                deliver(self, to, None);
            }
            if message.sharded {
                continue;
            }
            let matching: Vec<(Vec<u8>, ConnectionId)> = self
                .pubsub
                .patterns
                .iter()
                .filter(|(pattern, _)| glob::matches(pattern, &message.channel))
                .flat_map(|(pattern, to)| to.iter().map(|to| (pattern.clone(), *to)))
                .collect();
            for (pattern, to) in matching {
                deliver(self, to, Some(&pattern));
            }
        }
    }
}

fn push_message(reply: &mut Reply, message: &Message, pattern: Option<&[u8]>) {
    let kind: &[u8] = match (message.sharded, pattern) {
        (true, _) => b"smessage",
        (false, None) => b"message",
        (false, Some(_)) => b"pmessage",
    };
    reply.push(if pattern.is_some() { 4 } else { 3 });
    reply.bulk(kind);
    if let Some(pattern) = pattern {
        reply.bulk(pattern);
    }
    reply.bulk(&message.channel);
    reply.bulk(&message.payload);
}
