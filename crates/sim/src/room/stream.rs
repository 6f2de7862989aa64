//! One connection as the witness sees it: what was asked on it, and what leaves the server.

use super::token::{self, Tokens};
use crate::reply::{self, Reply};
use std::collections::VecDeque;

type Bytes = Vec<u8>;

/// What the reply to a request must satisfy, beside revealing nothing that is not durable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Expectation {
    /// Part of a larger request, or of an introduction: not counted as a command.
    Nothing,
    Anything,
    /// It answers the oldest pending change of this client's ledger.
    Change(usize),
    /// It is the EXEC that read this client's keys.
    Holdings(usize),
    /// It acknowledges that these values were pushed to the queue.
    Pushed(Vec<Bytes>),
    /// It may hand out a value of the queue.
    Popped,
    /// If it is nil this key is gone for ever.
    Gone(Bytes),
    /// It is the EXEC that read the queue and told this to the subscribers.
    Told(Bytes),
    /// It is the PUBLISH, or the EXEC with the PUBLISH, of this message.
    Published(Bytes),
    /// It confirms the subscription to `news`.
    Subscribed,
    /// It answers a subscriber that asked when so many messages were published.
    Heard(usize),
    /// It answers a FLUSHALL that was sent while no other ledger had anything pending.
    Swept,
    /// Its work for the room is done, whatever it says.
    Errand,
}

/// One connection.
#[derive(Default)]
pub struct Stream {
    pub expected: VecDeque<Expectation>,
    unparsed: Bytes,
    /// Bytes of it that were looked at.
    scanned: usize,
    /// Where its last line begins.
    line: usize,
    /// What it says was not asked for in this connection's own requests.
    pub is_listening: bool,
    /// A value was lost that it asked for: what it says from now on, until the server ends its
    /// life, is no news.
    pub is_over: bool,
}

impl Stream {
    /// Takes bytes that leave the server; the first value in them that must not leave yet.
    pub fn take(&mut self, bytes: &[u8], tokens: &Tokens) -> Option<String> {
        self.unparsed.extend_from_slice(bytes);
        let mut found = None;
        while self.scanned < self.unparsed.len() {
            let rest = &self.unparsed[self.scanned..];
            let end = rest.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let until = self.scanned + end.unwrap_or(rest.len());
            // A token may have begun in bytes that left before.
            let from = self.scanned.saturating_sub(token::BYTES - 1).max(self.line);
            let text = &self.unparsed[from..until];
            // An error may repeat the request's own words.
            let is_error = self.unparsed[self.line] == b'-';
            found = found.or_else(|| match (is_error, self.is_listening) {
                (true, _) => None,
                (false, false) => tokens.not_durable(text),
                // What others send need never become durable: only what was written must.
                (false, true) => tokens.under_way(text),
            });
            self.scanned = until;
            if end.is_some() {
                self.line = until;
            }
        }
        found
    }

    /// The next whole reply.
    ///
    /// # Errors
    /// The bytes are none.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, String> {
        let Some((reply, length)) = reply::parse(&self.unparsed)? else { return Ok(None) };
        self.unparsed.drain(..length);
        self.scanned -= length;
        self.line = self.line.saturating_sub(length);
        Ok(Some(reply))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_found_however_its_bytes_are_cut() {
        let mut tokens = Tokens::new(1);
        let token = tokens.issue();
        let bytes = [b"$19\r\n", &token[..], b"\r\n-ERR ", &token[..], b"\r\n"].concat();
        for cut in 0..bytes.len() {
            let mut stream = Stream::default();
            let found = [&bytes[..cut], &bytes[cut..]].map(|half| stream.take(half, &tokens));
            assert_eq!(found.iter().flatten().count(), 1, "{cut}");
            assert!(stream.next_reply().unwrap().is_some_and(|reply| reply == Reply::bulk(&token)));
            assert!(matches!(stream.next_reply(), Ok(Some(Reply::Error(_)))));
        }
        let mut errors = Stream::default();
        assert_eq!(errors.take(&[b"-ERR ", &token[..]].concat(), &tokens), None);
        let mut listener = Stream { is_listening: true, ..Stream::default() };
        assert_eq!(listener.take(&bytes, &tokens), None);
        tokens.note_appended(&token);
        assert!(listener.take(&bytes, &tokens).is_some());
    }
}
