//! What is under way to a target: the dialogue with it, and its requests, each withheld until the
//! state that it tells of is durable.

use super::Order;
use crate::output::Output;
use base::Sequence;
use peers::restore::{Dumped, RestoreDialogue};

/// One connection's dialogue, and what is still to be sent.
#[derive(Default)]
pub(super) struct Exchange {
    pub dialogue: RestoreDialogue,
    pub output: Output,
}

impl Exchange {
    /// Goes on with a target that has this database selected, if any.
    pub fn new(selected: Option<i64>) -> Self {
        Self { dialogue: RestoreDialogue::new(selected), ..Self::default() }
    }

    /// Says who is there, and which database is meant.
    pub fn open(&mut self, order: &Order) {
        self.dialogue.open(order.target.login.as_ref(), order.into, &mut self.output.reply);
        self.output.hold(Sequence::ZERO, Sequence::ZERO);
    }

    /// Sends a key once its state is durable: when the log is through `observed`.
    pub fn restore(&mut self, dumped: &Dumped<'_>, observed: Sequence, durable: Sequence) {
        self.dialogue.restore(dumped, &mut self.output.reply);
        self.output.hold(observed, durable);
    }

    /// Whether it is for the target to do something: take what was said, or answer.
    pub fn owes(&self) -> bool {
        let is_held = self.output.held_bytes() > 0;
        self.output.sendable_bytes() > 0 || self.dialogue.awaits() && !is_held
    }
}

#[cfg(test)]
mod tests {
    use super::super::Target;
    use super::*;
    use base::driver::Sent;

    /// What would be sent now, lines joined by blanks.
    fn said(exchange: &mut Exchange) -> String {
        let mut bytes = Vec::new();
        exchange.output.offer(exchange.output.sendable_bytes(), |buffer, range| {
            bytes.extend_from_slice(&buffer[range]);
            Sent::Bytes(bytes.len())
        });
        String::from_utf8_lossy(&bytes).replace("\r\n", " ").trim_end().to_owned()
    }

    #[test]
    fn a_key_is_sent_when_its_state_is_durable_and_not_before() {
        let target = Target { host: "there".to_owned(), port: Some(1), login: None };
        let order = Order { target, into: 3, timeout_nanos: 1, copies: false, replaces: true };
        let mut exchange = Exchange::new(Some(3));
        exchange.open(&order);
        let dumped = Dumped { index: 0, key: b"k", ttl_millis: 7, payload: b"v", replaces: true };
        exchange.restore(&dumped, Sequence(6), Sequence(5));
        assert_eq!(said(&mut exchange), "");
        assert!(!exchange.owes(), "the log is waited for, not the target");
        exchange.output.release(Sequence(6));
        assert!(exchange.owes());
        assert!(said(&mut exchange).starts_with("*5 $7 RESTORE"));
        assert!(exchange.owes() && !exchange.dialogue.is_answered());
    }
}
