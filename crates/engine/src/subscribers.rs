//! Who is subscribed to which channels and patterns.
//!
//! The engine keeps the names, as it keeps watched and awaited keys, because PUBLISH answers with
//! the number of its receivers, and scripts may call it. Node registers and forgets clients, and
//! delivers: a message is addressed here, at the moment at which it is published, and leaves when
//! everything its unit wrote or read is durable.

use crate::glob;
use crate::ids::SubscriberId;
use crate::work::Work;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The three sorts of subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sort {
    Channel,
    Pattern,
    /// A channel of the slot that its name hashes to; patterns do not see it.
    Shard,
}

type ByName = BTreeMap<Arc<[u8]>, BTreeSet<SubscriberId>>;

/// Subscriptions by name. No name's set is empty.
#[derive(Default)]
pub struct Subscribers {
    channels: ByName,
    patterns: ByName,
    shard_channels: ByName,
}

/// One delivery of a message: a client gets it once for its channel and once for each pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receiver {
    pub subscriber: SubscriberId,
    /// The pattern that matched.
    pub pattern: Option<Arc<[u8]>>,
}

impl Subscribers {
    /// Subscribes a client; subscribing twice is subscribing once.
    pub fn subscribe(&mut self, subscriber: SubscriberId, sort: Sort, name: &[u8]) {
        let by_name = self.by_name_mut(sort);
        match by_name.get_mut(name) {
            Some(subscribers) => {
                subscribers.insert(subscriber);
            }
            None => {
                by_name.insert(name.into(), BTreeSet::from([subscriber]));
            }
        }
    }

    pub fn unsubscribe(&mut self, subscriber: SubscriberId, sort: Sort, name: &[u8]) {
        let by_name = self.by_name_mut(sort);
        if let Some(subscribers) = by_name.get_mut(name) {
            subscribers.remove(&subscriber);
            if subscribers.is_empty() {
                by_name.remove(name);
            }
        }
    }

    /// The deliveries of a message: direct subscribers first, then pattern by pattern.
    pub fn receivers(&self, channel: &[u8], sharded: bool, work: &Work) -> Vec<Receiver> {
        let sort = if sharded { Sort::Shard } else { Sort::Channel };
        let direct = self.by_name(sort).get(channel).into_iter().flatten();
        let mut receivers: Vec<Receiver> =
            direct.map(|&subscriber| Receiver { subscriber, pattern: None }).collect();
        if sharded {
            return receivers;
        }
        for (pattern, subscribers) in &self.patterns {
            if glob::matches(pattern, channel, work) {
                receivers.extend(subscribers.iter().map(|&subscriber| Receiver {
                    subscriber,
                    pattern: Some(Arc::clone(pattern)),
                }));
            }
        }
        receivers
    }

    /// Whether no message can have a receiver.
    pub fn is_empty(&self) -> bool {
        self.channels.is_empty() && self.patterns.is_empty() && self.shard_channels.is_empty()
    }

    /// How many names somebody is subscribed to.
    pub fn names_len(&self, sort: Sort) -> usize {
        self.by_name(sort).len()
    }

    /// The names that somebody is subscribed to, in order.
    pub fn names(&self, sort: Sort) -> impl Iterator<Item = &[u8]> {
        self.by_name(sort).keys().map(|name| &**name)
    }

    /// How many clients are subscribed to exactly this name.
    pub fn subscribers_len(&self, sort: Sort, name: &[u8]) -> usize {
        self.by_name(sort).get(name).map_or(0, BTreeSet::len)
    }

    fn by_name(&self, sort: Sort) -> &ByName {
        match sort {
            Sort::Channel => &self.channels,
            Sort::Pattern => &self.patterns,
            Sort::Shard => &self.shard_channels,
        }
    }

    fn by_name_mut(&mut self, sort: Sort) -> &mut ByName {
        match sort {
            Sort::Channel => &mut self.channels,
            Sort::Pattern => &mut self.patterns,
            Sort::Shard => &mut self.shard_channels,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_receives_once_for_its_channel_and_once_for_each_pattern() {
        let mut subscribers = Subscribers::default();
        let (one, two) = (SubscriberId(1), SubscriberId(2));
        for name in [b"news", b"news"] {
            subscribers.subscribe(one, Sort::Channel, name);
        }
        subscribers.subscribe(one, Sort::Pattern, b"n*");
        subscribers.subscribe(two, Sort::Pattern, b"*");
        subscribers.subscribe(two, Sort::Shard, b"news");
        let to = |channel: &[u8], sharded| {
            let receivers = subscribers.receivers(channel, sharded, &Work::default());
            let named = receivers.into_iter().map(|to| (to.subscriber.0, to.pattern));
            named.collect::<Vec<_>>()
        };
        let pattern = |text: &[u8]| Some(Arc::from(text));
        assert_eq!(to(b"news", false), [(1, None), (2, pattern(b"*")), (1, pattern(b"n*"))]);
        assert_eq!(to(b"news", true), [(2, None)]);
        assert_eq!(to(b"old", false), [(2, pattern(b"*"))]);
    }

    #[test]
    fn a_name_without_subscribers_is_forgotten() {
        let mut subscribers = Subscribers::default();
        for sort in [Sort::Channel, Sort::Pattern, Sort::Shard] {
            subscribers.subscribe(SubscriberId(7), sort, b"a");
            assert_eq!(subscribers.names(sort).collect::<Vec<_>>(), [b"a"]);
            subscribers.unsubscribe(SubscriberId(7), sort, b"a");
        }
        assert!(subscribers.is_empty());
    }
}
