//! What several clients know of a queue between them: each value is pushed once, and goes to one
//! client at most.
//!
//! Consumers block, values move on to a second list, connections break while a value is under way.
//! So of an acknowledged value one of three things must be true: it is in one of the lists, a reply
//! with it has left the server, or a pop without a reply may have taken it.

use crate::reply::Reply;
use std::collections::BTreeSet;

type Bytes = Vec<u8>;

/// The database of the queue, and its lists: values move from the first to the second.
pub const DATABASE: u32 = 3;
pub const LISTS: [&str; 2] = ["queue", "done"];

/// What the clients know together.
#[derive(Default)]
pub struct Queue {
    /// Acknowledged, and not popped as far as anyone knows.
    pushed: BTreeSet<Bytes>,
    /// A reply with them has left the server.
    popped: BTreeSet<Bytes>,
    /// Keys are evicted, or were, or perhaps all databases were emptied.
    pub is_unknown: bool,
    /// All databases are being emptied.
    pub is_flushing: bool,
}

impl Queue {
    /// A push was acknowledged.
    pub fn pushed(&mut self, values: &[Bytes]) {
        let new = values.iter().filter(|value| !self.popped.contains(*value));
        self.pushed.extend(new.cloned());
    }

    /// A reply of a pop leaves the server.
    ///
    /// # Errors
    /// It hands out what another pop has handed out.
    pub fn popped(&mut self, reply: &Reply) -> Result<(), String> {
        let value = match reply {
            Reply::Bulk(value) => value,
            Reply::Array(elements) => match elements.last() {
                Some(Reply::Bulk(value)) => value,
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        self.pushed.remove(value);
        if !self.popped.insert(value.clone()) {
            return Err(format!("{} was popped twice", String::from_utf8_lossy(value)));
        }
        Ok(())
    }

    /// All databases were emptied.
    pub fn flushed(&mut self) {
        self.pushed.clear();
        self.is_unknown = false;
        self.is_flushing = false;
    }

    /// Compares the lists with what is known, while so many pops have no reply.
    ///
    /// # Errors
    /// A value is there twice, or again, or lost.
    pub fn check(&self, found: &[Bytes], unanswered: usize) -> Result<(), String> {
        let held: BTreeSet<&Bytes> = found.iter().collect();
        if held.len() < found.len() {
            return Err("a value is twice in the queue".to_owned());
        }
        if let Some(value) = found.iter().find(|value| self.popped.contains(*value)) {
            return Err(format!("{} was popped and is back", String::from_utf8_lossy(value)));
        }
        let missing = self.pushed.iter().filter(|value| !held.contains(value)).count();
        let may_miss = self.is_unknown || self.is_flushing && found.is_empty();
        if missing > unanswered && !may_miss {
            return Err(format!("{missing} values are missing, {unanswered} may have been popped"));
        }
        Ok(())
    }

    /// A server has begun a new life with these values: no pop is under way.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub fn resolve(&mut self, found: &[Bytes], unanswered: usize) -> Result<(), String> {
        self.check(found, unanswered)?;
        self.pushed = found.iter().cloned().collect();
        self.is_unknown = false;
        self.is_flushing = false;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_in_the_queue_or_popped_once() {
        let mut queue = Queue::default();
        let [a, b] = [b"a".to_vec(), b"b".to_vec()];
        queue.pushed(&[a.clone(), b.clone()]);
        assert!(queue.check(&[b.clone(), a.clone()], 0).is_ok());
        assert!(queue.check(std::slice::from_ref(&b), 0).is_err());
        assert!(queue.check(std::slice::from_ref(&b), 1).is_ok());
        assert!(queue.check(&[b.clone(), b.clone(), a.clone()], 0).is_err());
        assert!(queue.popped(&Reply::Bulk(a.clone())).is_ok());
        assert!(queue.check(std::slice::from_ref(&b), 0).is_ok());
        assert!(queue.check(&[a.clone(), b], 0).is_err());
        assert!(queue.popped(&Reply::Bulk(a)).is_err());
    }
}
