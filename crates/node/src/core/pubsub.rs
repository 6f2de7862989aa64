//! Subscribing sessions, and the delivery of messages.
//!
//! The engine keeps who is subscribed to what and addresses a message when it is published. A
//! message waits like a reply: it leaves when everything its unit wrote or read is durable, and
//! everything its sender still waits for. To its own sender it comes after the reply.

use crate::core::Core;
use crate::session::{NAME_BYTES, ReplyMode, Session};
use base::{ConnectionId, Sequence};
use engine::ids::SubscriberId;
use engine::notify::Message;
use engine::subscribers::Sort;
use resp::Reply;
use std::collections::BTreeSet;

impl Session {
    /// The session's own side of its subscriptions.
    pub fn subscribed(&mut self, sort: Sort) -> &mut BTreeSet<Vec<u8>> {
        match sort {
            Sort::Channel => &mut self.subscriptions.channels,
            Sort::Pattern => &mut self.subscriptions.patterns,
            Sort::Shard => &mut self.subscriptions.shard_channels,
        }
    }

    /// Tells the client that a subscription came or went, whatever CLIENT REPLY says. `name` is
    /// `None` if there was nothing to unsubscribe from.
    pub fn confirm(&mut self, kind: &str, name: Option<&[u8]>, subscriptions: usize) {
        let mut apart = Reply::new(self.output.reply.protocol());
        let is_silent = matches!(self.reply_mode, ReplyMode::Off | ReplyMode::Skip);
        let reply = if is_silent { &mut apart } else { &mut self.output.reply };
        reply.push(3);
        reply.bulk(kind);
        match name {
            Some(name) => reply.bulk(name),
            None => reply.null(),
        }
        reply.integer(subscriptions as i64);
        self.pushes.extend_from_slice(apart.bytes());
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
impl Core {
    /// Subscribes a session; subscribing twice is subscribing once.
    pub fn subscribe(&mut self, client: ConnectionId, sort: Sort, name: &[u8]) {
        if self.clients.at_mut(client).subscribed(sort).insert(name.to_vec()) {
            self.clients.at_mut(client).subscriptions.bytes += name.len() + NAME_BYTES;
            let subscriber = SubscriberId(client.0);
            self.interest.subscribers.subscribe(subscriber, sort, name);
        }
    }

    pub fn unsubscribe(&mut self, client: ConnectionId, sort: Sort, name: &[u8]) {
        self.shard.engine.keyspace.work.step();
        if self.clients.at_mut(client).subscribed(sort).remove(name) {
            self.clients.at_mut(client).subscriptions.bytes -= name.len() + NAME_BYTES;
            let subscriber = SubscriberId(client.0);
            self.interest.subscribers.unsubscribe(subscriber, sort, name);
        }
    }

    /// Drops all subscriptions of a session, without telling it.
    pub(crate) fn forget_subscriptions(&mut self, client: ConnectionId) {
        for sort in [Sort::Channel, Sort::Pattern, Sort::Shard] {
            for name in self.clients.at_mut(client).subscribed(sort).clone() {
                self.unsubscribe(client, sort, &name);
            }
        }
    }

    /// Disconnects those for whom more was published in one unit than they may be owed. They need
    /// not be subscribers any more: the unit may have ended that.
    pub(crate) fn cut_overdrawn(&mut self) {
        for subscriber in std::mem::take(&mut self.interest.overdrawn) {
            let overdrawn = ConnectionId(subscriber.0);
            if self.clients.has(overdrawn) {
                self.cut_off(overdrawn);
            }
        }
    }

    /// Delivers messages; they leave when `observed` is durable, and what their sender still waits
    /// for.
    pub(crate) fn publish(
        &mut self,
        messages: &[Message],
        observed: Sequence,
        sender: Option<ConnectionId>,
    ) {
        let sender = sender.and_then(|client| self.clients.sessions.get(client));
        let observed = sender.map_or(observed, |session| observed.max(session.flow.waits_for));
        for message in messages {
            for receiver in &message.receivers {
                self.shard.engine.keyspace.work.step();
                let to = ConnectionId(receiver.subscriber.0);
                let pattern = receiver.pattern.as_deref();
                if self.clients.has(to) {
                    self.deliver(to, message, pattern, observed);
                }
            }
        }
    }

    fn deliver(
        &mut self,
        client: ConnectionId,
        message: &Message,
        pattern: Option<&[u8]>,
        observed: Sequence,
    ) {
        let session = self.clients.at_mut(client);
        if !session.flow.is_cut {
            push_message(session.reply(), message, pattern);
            self.hold(client, observed);
        }
    }
}
