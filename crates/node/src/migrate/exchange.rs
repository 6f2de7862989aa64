//! What is said to a target and heard from it, on one connection. A machine without connection or
//! clock: keys and lines in, requests and outcomes out.
//!
//! ```text
//! AUTH, SELECT ─▶ +OK each ─▶ RESTORE k1 … RESTORE k2 … ─▶ +OK or -error each, in order
//! ```
//! No key is sent before the target has said that the database is the right one: Redis sends
//! everything at once, and what should have gone elsewhere may land in database 0.

use super::{Login, Order};
use crate::output::Output;
use base::Sequence;
use resp::client::{take_line, text};
use std::collections::VecDeque;

/// An answer that is waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    Login,
    Select(i64),
    /// To the RESTORE of the key with this index.
    Restore(usize),
}

/// The target says what no server says that executes these requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotAnAnswer;

/// A key as it is sent.
pub(super) struct Dumped<'a> {
    pub index: usize,
    pub key: &'a [u8],
    /// 0: none.
    pub ttl_millis: i64,
    pub payload: &'a [u8],
    pub replaces: bool,
}

/// One connection's exchange.
pub(super) struct Exchange {
    /// Requests, each held until the state that it tells of is durable.
    pub output: Output,
    /// What arrived, up to the end of a line.
    pub input: Vec<u8>,
    awaited: VecDeque<Awaited>,
    /// The database that the target has selected.
    pub selected: Option<i64>,
    /// Something was answered.
    pub has_heard: bool,
    /// The first error that was answered.
    pub refusal: Option<String>,
    /// The target will not do what the keys need.
    is_turned_away: bool,
}

impl Exchange {
    pub fn new() -> Self {
        Self {
            output: Output::default(),
            input: Vec::new(),
            awaited: VecDeque::new(),
            selected: None,
            has_heard: false,
            refusal: None,
            is_turned_away: false,
        }
    }

    /// Says who is there, and which database is meant unless it is the selected one. A login is
    /// said on a connection that was kept as well: it may be refused by now.
    pub fn open(&mut self, order: &Order) {
        if let Some(Login { user, password }) = &order.target.login {
            let user = user.as_ref();
            self.output.reply.array(2 + usize::from(user.is_some()));
            self.output.reply.bulk("AUTH");
            for word in user.into_iter().chain([password]) {
                self.output.reply.bulk(word);
            }
            self.awaited.push_back(Awaited::Login);
        }
        if self.selected != Some(order.into) {
            self.output.reply.array(2);
            self.output.reply.bulk("SELECT");
            self.output.reply.bulk_integer(order.into);
            self.awaited.push_back(Awaited::Select(order.into));
        }
        self.output.hold(Sequence::ZERO, Sequence::ZERO);
    }

    /// Whether keys may be sent.
    pub fn is_open(&self) -> bool {
        let opens = |awaited: &Awaited| !matches!(awaited, Awaited::Restore(_));
        !self.is_turned_away && !self.awaited.iter().any(opens)
    }

    /// Sends a key once its state is durable: when the log is through `observed`.
    pub fn restore(&mut self, dumped: &Dumped<'_>, observed: Sequence, durable: Sequence) {
        let reply = &mut self.output.reply;
        reply.array(4 + usize::from(dumped.replaces));
        reply.bulk("RESTORE");
        reply.bulk(dumped.key);
        reply.bulk_integer(dumped.ttl_millis);
        reply.bulk(dumped.payload);
        if dumped.replaces {
            reply.bulk("REPLACE");
        }
        self.output.hold(observed, durable);
        self.awaited.push_back(Awaited::Restore(dumped.index));
    }

    /// Whether everything that was sent is answered, or will not be.
    pub fn is_answered(&self) -> bool {
        self.awaited.is_empty() || self.is_turned_away
    }

    /// Whether the connection could serve another migration.
    pub fn is_reusable(&self) -> bool {
        let is_quiet = self.awaited.is_empty() && self.input.is_empty();
        is_quiet && self.selected.is_some() && !self.is_turned_away
    }

    /// Whether it is for the target to do something: take what was said, or answer.
    pub fn owes(&self) -> bool {
        let is_held = self.output.held_bytes() > 0;
        !self.output.sendable().is_empty() || !self.awaited.is_empty() && !is_held
    }

    /// Takes the answers that arrived; which keys the target has taken.
    ///
    /// # Errors
    /// What arrived is none; nothing behind it means anything.
    pub fn hear(&mut self) -> Result<Vec<usize>, NotAnAnswer> {
        let mut taken = Vec::new();
        while let Some(line) = take_line(&mut self.input).map_err(|_| NotAnAnswer)? {
            let awaited = self.awaited.pop_front().ok_or(NotAnAnswer)?;
            self.has_heard = true;
            if let Some(error) = line.strip_prefix(b"-") {
                self.refusal.get_or_insert_with(|| text(error));
                self.is_turned_away |= !matches!(awaited, Awaited::Restore(_));
                continue;
            }
            if line != b"+OK" {
                return Err(NotAnAnswer);
            }
            match awaited {
                Awaited::Login => {}
                Awaited::Select(database) => self.selected = Some(database),
                Awaited::Restore(index) => taken.push(index),
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;

    fn order(login: Option<Login>) -> Order {
        let target = Target { host: "there".to_owned(), port: Some(1), login };
        Order { target, into: 3, timeout_nanos: 1, copies: false, replaces: true }
    }

    /// What would be sent now, lines joined by blanks.
    fn said(exchange: &mut Exchange) -> String {
        let bytes = exchange.output.sendable().to_vec();
        exchange.output.sent(bytes.len());
        String::from_utf8_lossy(&bytes).replace("\r\n", " ").trim_end().to_owned()
    }

    fn hear(exchange: &mut Exchange, bytes: &[u8]) -> Result<Vec<usize>, NotAnAnswer> {
        exchange.input.extend_from_slice(bytes);
        exchange.hear()
    }

    fn send(exchange: &mut Exchange, index: usize, observed: Sequence) {
        let dumped = Dumped { index, key: b"k", ttl_millis: 7, payload: b"v", replaces: true };
        exchange.restore(&dumped, observed, Sequence(5));
    }

    #[test]
    fn keys_are_sent_when_the_database_is_selected() {
        let login = Login { user: Some(b"me".to_vec()), password: b"secret".to_vec() };
        let mut exchange = Exchange::new();
        exchange.open(&order(Some(login)));
        let expected = "*3 $4 AUTH $2 me $6 secret *2 $6 SELECT $1 3";
        assert_eq!(said(&mut exchange), expected);
        assert!(!exchange.is_open());
        assert_eq!(hear(&mut exchange, b"+OK\r\n+O"), Ok(vec![]));
        assert!(!exchange.is_open());
        assert_eq!(hear(&mut exchange, b"K\r\n"), Ok(vec![]));
        assert!(exchange.is_open() && exchange.selected == Some(3));
        send(&mut exchange, 0, Sequence(5));
        assert_eq!(said(&mut exchange), "*5 $7 RESTORE $1 k $1 7 $1 v $7 REPLACE");
        send(&mut exchange, 1, Sequence(5));
        assert_eq!(hear(&mut exchange, b"-BUSYKEY no\r\n+OK\r\n"), Ok(vec![1]));
        assert_eq!(exchange.refusal.as_deref(), Some("BUSYKEY no"));
        assert!(exchange.is_answered() && exchange.is_reusable());
    }

    #[test]
    fn a_key_is_sent_when_its_state_is_durable_and_not_before() {
        let mut exchange = Exchange::new();
        exchange.selected = Some(3);
        exchange.open(&order(None));
        send(&mut exchange, 0, Sequence(6));
        assert_eq!(said(&mut exchange), "");
        assert!(!exchange.owes(), "the log is waited for, not the target");
        exchange.output.release(Sequence(6));
        assert!(exchange.owes());
        assert!(said(&mut exchange).starts_with("*5 $7 RESTORE"));
        assert!(exchange.owes() && !exchange.is_answered());
    }

    #[test]
    fn who_is_turned_away_sends_nothing() {
        let mut exchange = Exchange::new();
        exchange.open(&order(None));
        assert_eq!(hear(&mut exchange, b"-ERR DB index is out of range\r\n"), Ok(vec![]));
        assert!(!exchange.is_open() && exchange.is_answered() && !exchange.is_reusable());
    }

    #[test]
    fn what_is_no_answer_is_noticed() {
        for bytes in [&b"+OK\r\n+OK\r\n"[..], b"$3\r\nfoo\r\n", b"\r\n", b"+QUEUED\r\n", &[7; 5000]]
        {
            let mut exchange = Exchange::new();
            exchange.open(&order(None));
            assert_eq!(hear(&mut exchange, bytes), Err(NotAnAnswer), "{bytes:?}");
        }
    }
}
