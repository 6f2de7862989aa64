//! What subscribers must hear: the messages to `news`, all of them and in order.
//!
//! ```text
//! subscriber   SUBSCRIBE ─▶ confirmed                            PING ─▶ PONG: m came before it
//! publisher                    └─ then ─▶ PUBLISH m ─▶ answered ──┘
//! ```
//! A connection to which a subscription was confirmed must hear each message whose PUBLISH was sent
//! after that and answered, before the answer to whatever it asks itself after that one. It may
//! have subscribed while the server was still loading.

use base::driver::ConnectionId;
use std::collections::{BTreeMap, BTreeSet};

type Bytes = Vec<u8>;

/// Messages of one life of the server, and who must hear them.
#[derive(Default)]
pub struct News {
    /// Who sent each message: the connection, and how many were sent before.
    sent: BTreeMap<Bytes, (ConnectionId, usize)>,
    /// Those whose PUBLISH was answered, in the order of the answers.
    published: Vec<Bytes>,
    subscribers: BTreeMap<ConnectionId, Subscriber>,
    /// How often a message was found to have come to somebody who had to hear it.
    pub arrived: u64,
}

struct Subscriber {
    /// So many messages had been sent when it was told that it is subscribed.
    since: usize,
    /// What it has heard.
    heard: BTreeSet<Bytes>,
    /// The last message of each publisher that it has heard.
    newest: BTreeMap<ConnectionId, usize>,
    /// How many published messages were looked for.
    judged: usize,
}

impl News {
    /// A message is sent to the server.
    pub fn sends(&mut self, publisher: ConnectionId, message: &[u8]) {
        let count = self.sent.len();
        self.sent.insert(message.to_vec(), (publisher, count));
    }

    /// The server has said that a message was published.
    pub fn publishes(&mut self, message: Bytes) {
        self.published.push(message);
    }

    /// How many messages are known to be published: whoever asks now must have heard these.
    pub fn published(&self) -> usize {
        self.published.len()
    }

    /// A connection was told that it is subscribed.
    pub fn subscribes(&mut self, connection: ConnectionId) {
        let (since, judged) = (self.sent.len(), self.published.len());
        self.subscribers.entry(connection).or_insert_with(|| Subscriber {
            since,
            heard: BTreeSet::new(),
            newest: BTreeMap::new(),
            judged,
        });
    }

    /// A message came to a connection.
    ///
    /// # Errors
    /// It came twice, or a later one of its publisher was there before it.
    pub fn hears(&mut self, connection: ConnectionId, message: &[u8]) -> Result<(), String> {
        let Some(&(publisher, number)) = self.sent.get(message) else { return Ok(()) };
        let Some(subscriber) = self.subscribers.get_mut(&connection) else { return Ok(()) };
        let before = subscriber.newest.insert(publisher, number);
        if before.is_some_and(|before| before >= number) {
            return Err(format!("{} came after later messages", text(message)));
        }
        subscriber.heard.insert(message.to_vec());
        Ok(())
    }

    /// A connection was answered what it asked when so many messages were known to be published.
    ///
    /// # Errors
    /// One of them did not come.
    pub fn answered(&mut self, connection: ConnectionId, published: usize) -> Result<(), String> {
        let Some(subscriber) = self.subscribers.get_mut(&connection) else { return Ok(()) };
        let from = subscriber.judged.min(published);
        subscriber.judged = subscriber.judged.max(published);
        for message in &self.published[from..published] {
            if self.sent.get(message).is_some_and(|(_, number)| *number < subscriber.since) {
                continue;
            }
            if !subscriber.heard.contains(message) {
                return Err(format!("a subscriber never heard {}", text(message)));
            }
            self.arrived += 1;
        }
        Ok(())
    }
}

fn text(message: &[u8]) -> String {
    String::from_utf8_lossy(message).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTENER: ConnectionId = ConnectionId(1);
    const PUBLISHER: ConnectionId = ConnectionId(2);

    fn news() -> News {
        let mut news = News::default();
        news.sends(PUBLISHER, b"before");
        news.subscribes(LISTENER);
        for message in [&b"a"[..], b"b"] {
            news.sends(PUBLISHER, message);
        }
        for message in [&b"before"[..], b"a", b"b"] {
            news.publishes(message.to_vec());
        }
        news
    }

    #[test]
    fn what_was_published_behind_a_subscription_must_come() {
        let mut deaf = news();
        assert!(deaf.answered(LISTENER, 2).is_err(), "`a` did not come");
        let mut news = news();
        news.hears(LISTENER, b"a").unwrap();
        assert_eq!(news.answered(LISTENER, 2), Ok(()), "it asked before `b` was published");
        assert!(news.answered(LISTENER, 3).is_err());
        assert_eq!(news.arrived, 1);
    }

    #[test]
    fn messages_of_one_publisher_come_in_order_and_once() {
        for wrong in [[b"b", b"a"], [b"a", b"a"]] {
            let mut news = news();
            news.hears(LISTENER, wrong[0]).unwrap();
            assert!(news.hears(LISTENER, wrong[1]).is_err());
        }
    }
}
